# The GPU's tests and benchmarks, and its kernels run on the processor (tests/gpu/emulated).

# The shipped kernels as C++: needs no CUDA, and is part of every `make test`.
EMULATED_BIN := $(O)/tests/gpu/test_gpu_emulated
EMULATED_SRC := $(patsubst lib/device/%.cu,$(O)/emulated/%.cc,$(wildcard lib/device/*.cu))
EMULATED_OBJ := $(EMULATED_SRC:.cc=.o) $(O)/emulated/emulator.o $(O)/emulated/dev_cuda_kernels.o
EMULATED_FLAGS = $(OPT) -Ilib -Itests -Itests/gpu/emulated -ffp-contract=off -fno-math-errno -pthread -fPIC -Wall -Wextra \
  -Wno-unused-parameter -Wno-unknown-pragmas $(if $(filter 1,$(WERROR)),-Werror) $(SAN_FLAGS) \
  -include gpu/emulated/emulated_names.h -MMD -MP

$(EMULATED_SRC): $(O)/emulated/%.cc: lib/device/%.cu ci/emulate_cuda.pl | $(O)/ready
	@mkdir -p $(@D)
	$(Q)ci/emulate_cuda.pl $< >$@
$(EMULATED_SRC:.cc=.o): %.o: %.cc
	@echo "  CXX   $<"
	$(Q)$(CXX) -std=c++17 -D__CUDACC_EMULATED__ $(EMULATED_FLAGS) -c -o $@ $<
$(O)/emulated/emulator.o: tests/gpu/emulated/emulator.cc | $(O)/ready
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(EMULATED_FLAGS) -c -o $@ $<
$(O)/emulated/dev_cuda_kernels.o: lib/device/dev_cuda_kernels.c | $(O)/ready
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(EMULATED_FLAGS) -c -o $@ $<
$(EMULATED_BIN): $(EMULATED_OBJ)
$(EMULATED_BIN): TEST_LIBS = $(EMULATED_OBJ) -lstdc++
-include $(EMULATED_OBJ:.o=.d)

# The layers' kernels, likewise.
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

# One command each, where there is a GPU: no MPI, no network, under 8 minutes. Without one the tests
# say what they skipped and why, and the benchmark ends with 69.
GPU_BIN = $(patsubst %.c,$(O)/%,$(wildcard tests/gpu/test_gpu*.c))
GPU_SCRIPTS = tests/gpu/record.bats $(NEED_GPU)
GPU_BENCH := $(O)/tests/gpu/bench_gpu
$(GPU_BENCH): $(GPU_BENCH).o $(O)/libddpcore.a
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(WHOLE_CORE) $(BASE_LIBS)
-include $(GPU_BENCH).d
.PHONY: test-gpu bench-gpu sanitize-gpu
test-gpu: all $(GPU_BIN) ## the GPU's tests: results/gpu-tests.json
	$(Q)DDPBENCH=$(abspath $(O)/ddpbench) PYTHON=$(PYTHON) python3 tests/gpu/run_tests.py --out results/gpu-tests.json \
	  $(GPU_BIN) $(GPU_SCRIPTS)
# NCCL_TESTS=.../all_reduce_perf: all-reduce next to NVIDIA's, too: results/gpu-nccl.json.
bench-gpu: all $(GPU_BENCH) ## the GPU's kernels, and a training step, next to PyTorch: results/gpu-kernels.json, gpu-train.json
	$(Q)status=0; \
	python3 tests/gpu/bench_gpu.py --bench $(abspath $(GPU_BENCH)) --out results/gpu-kernels.json || status=$$?; \
	[ $$status != 69 ] || exit 69; \
	python3 tests/gpu/bench_layers.py --ddpbench $(abspath $(O)/ddpbench) --out results/gpu-train.json || status=$$?; \
	$(if $(NCCL_TESTS),python3 tests/gpu/bench_nccl.py --ddpbench $(abspath $(O)/ddpbench) --nccl-tests $(NCCL_TESTS) \
	  --out results/gpu-nccl.json || status=$$?;) exit $$status
# Each tool slows the kernels down by far; the small cases show what there is to see.
COMPUTE_SANITIZER ?= $(firstword $(shell command -v compute-sanitizer 2>/dev/null) $(wildcard $(CUDA_ROOTS:%=%/bin/compute-sanitizer)))
sanitize-gpu: $(O)/tests/gpu/test_gpu_kernels ## the GPU's kernels under compute-sanitizer
	$(Q)[ -n "$(COMPUTE_SANITIZER)" ] || { echo "no compute-sanitizer on the PATH or beside nvcc" >&2; exit 69; }
	$(Q)for tool in memcheck racecheck; do \
	  CMOCKA_MESSAGE_OUTPUT=TAP $(COMPUTE_SANITIZER) --tool $$tool --error-exitcode 1 $< --small || exit 1; done
