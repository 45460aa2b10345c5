# Tests and benchmarks that need a GPU, and tests that run the GPU's kernels on the processor.

# tests/gpu/emulated compiles the shipped kernels as C++. It needs no CUDA; `make test` includes it.
EMULATED_BIN := $(O)/tests/gpu/test_gpu_emulated
EMULATED_SRC := $(patsubst lib/device/cuda/%.cu,$(O)/emulated/%.cc,$(wildcard lib/device/cuda/*.cu))
EMULATED_OBJ := $(EMULATED_SRC:.cc=.o) $(O)/emulated/emulator.o $(O)/emulated/dev_cuda_kernels.o
EMULATED_FLAGS = $(OPT) -Ilib -Itests -Itests/gpu/emulated -ffp-contract=off -fno-math-errno -pthread -fPIC -Wall -Wextra \
  -Wno-unused-parameter -Wno-unknown-pragmas $(if $(filter 1,$(WERROR)),-Werror) $(SAN_FLAGS) \
  -include gpu/emulated/emulated_names.h -MMD -MP

$(EMULATED_SRC): $(O)/emulated/%.cc: lib/device/cuda/%.cu ci/emulate_cuda.pl | $(O)/ready
	@mkdir -p $(@D)
	$(Q)ci/emulate_cuda.pl $< >$@
$(EMULATED_SRC:.cc=.o): %.o: %.cc
	@echo "  CXX   $<"
	$(Q)$(CXX) -std=c++17 -D__CUDACC_EMULATED__ $(EMULATED_FLAGS) -c -o $@ $<
$(O)/emulated/emulator.o: tests/gpu/emulated/emulator.cc | $(O)/ready
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(EMULATED_FLAGS) -c -o $@ $<
$(O)/emulated/dev_cuda_kernels.o: lib/device/cuda/dev_cuda_kernels.c | $(O)/ready
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(EMULATED_FLAGS) -c -o $@ $<
$(EMULATED_BIN): $(EMULATED_OBJ)
$(EMULATED_BIN): TEST_LIBS = $(EMULATED_OBJ) -lstdc++
-include $(EMULATED_OBJ:.o=.d)

# The kernels of the layers, compiled in the same way.
EMULATED_NN_BIN := $(O)/tests/gpu/test_nn_emulated
$(O)/emulated/kernels_nn.cc: lib/model/kernels_nn.cu ci/emulate_cuda.pl | $(O)/ready
	@mkdir -p $(@D)
	$(Q)ci/emulate_cuda.pl $< >$@
$(O)/emulated/kernels_nn.o: $(O)/emulated/kernels_nn.cc
	@echo "  CXX   $<"
	$(Q)$(CXX) -std=c++17 $(EMULATED_FLAGS) -c -o $@ $<
$(EMULATED_NN_BIN): $(O)/emulated/kernels_nn.o $(O)/emulated/emulator.o
$(EMULATED_NN_BIN): TEST_LIBS = $(O)/emulated/kernels_nn.o $(O)/emulated/emulator.o -lstdc++
-include $(O)/emulated/kernels_nn.d

# Each patch of tests/nccl/reverts takes a fix of backend nccl out of a copy of the tree.
.PHONY: gpu-reverts
gpu-reverts: all $(FAKE_GPU) ## test the tests of backend nccl: each must fail without the fix that it tests; T=WORD: only some
	$(Q)tests/nccl/reverts/run.sh $(O) '$(T)' $(O)/ddpbench $(FAKE_GPU)

# test-gpu and bench-gpu need a GPU but neither MPI nor network, and take less than 8 minutes each.
# Without a GPU the tests are skipped with the reason, and the benchmark exits with 69.
GPU_BENCH := $(O)/tests/gpu/bench_gpu
GPU_BIN = $(patsubst %.c,$(O)/%,$(wildcard tests/gpu/test_gpu*.c))
# A program looks for modules in its own folder.
$(GPU_BIN) $(GPU_BENCH): | $(if $(CUDA_MODULE),$(O)/tests/gpu/ddpbench-cuda.so)
$(O)/tests/gpu/ddpbench-cuda.so: | $(CUDA_MODULE)
	@mkdir -p $(@D)
	$(Q)ln -sfn ../../$(@F) $@
GPU_SCRIPTS = tests/gpu/record.bats $(NEED_GPU)
$(GPU_BENCH): $(GPU_BENCH).o $(O)/libddpcore.a
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(WHOLE_CORE) $(BASE_LIBS)
-include $(GPU_BENCH).d
.PHONY: test-gpu bench-gpu sanitize-gpu gpu-pack
# The machine with the GPU may have no headers and no packages. Carry build/carry there beside the sources.
gpu-pack: all $(GPU_BIN) $(GPU_BENCH) ## copy what tests/gpu/first_day.sh needs to build/carry
	$(Q)rm -rf build/carry
	$(Q)tests/gpu/first_day.sh pack $(O) build/carry
test-gpu: all $(GPU_BIN) ## run the tests on the GPU: results/gpu-tests.json
	$(Q)RUNS=$${RUNS:-1} DDPBENCH=$(abspath $(O)/ddpbench) PYTHON=$(PYTHON) python3 tests/gpu/run_tests.py --out results/gpu-tests.json \
	  $(GPU_BIN) $(GPU_SCRIPTS)
# NCCL_TESTS=.../all_reduce_perf also compares all-reduce with NVIDIA's tests: results/gpu-nccl.json.
bench-gpu: all $(GPU_BENCH) ## compare the GPU's kernels and a training step with PyTorch: results/gpu-kernels.json, gpu-train.json
	$(Q)status=0; \
	python3 tests/gpu/bench_gpu.py --bench $(abspath $(GPU_BENCH)) --out results/gpu-kernels.json || status=$$?; \
	[ $$status != 69 ] || exit 69; \
	python3 tests/gpu/bench_layers.py --ddpbench $(abspath $(O)/ddpbench) --out results/gpu-train.json || status=$$?; \
	$(if $(NCCL_TESTS),python3 tests/gpu/bench_nccl.py --ddpbench $(abspath $(O)/ddpbench) --nccl-tests $(NCCL_TESTS) \
	  --out results/gpu-nccl.json || status=$$?;) exit $$status
# compute-sanitizer makes kernels much slower, so only the small cases of our own kernels run.
COMPUTE_SANITIZER ?= $(firstword $(shell command -v compute-sanitizer 2>/dev/null) $(wildcard $(CUDA_ROOTS:%=%/bin/compute-sanitizer)))
sanitize-gpu: $(O)/tests/gpu/test_gpu_kernels $(O)/tests/gpu/test_gpu_layers ## run the GPU's kernels under compute-sanitizer
	$(Q)[ -n "$(COMPUTE_SANITIZER)" ] || { echo "no compute-sanitizer on the PATH or beside nvcc" >&2; exit 69; }
	$(Q)for tool in memcheck racecheck initcheck synccheck; do for test in $^; do \
	  CMOCKA_MESSAGE_OUTPUT=TAP $(COMPUTE_SANITIZER) --tool $$tool --error-exitcode 1 $$test --small || exit 1; done; done
