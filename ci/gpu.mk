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
