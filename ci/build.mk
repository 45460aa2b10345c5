# Building: every .c file of lib/ except the modules goes into the core library, cmd/*.c into the binary.

MODULE_SRC := lib/comm/mpi/backend_mpi.c
UCX_SRC := lib/comm/ucx/ucx_module.c
FAULT_SRC := lib/base/fault.c # left out of a normal build
LIB_SRC := $(call cuda_layers,$(call cuda_choose,$(filter-out $(MODULE_SRC) $(UCX_SRC) $(if $(filter 0,$(FAULTS)),$(FAULT_SRC)),$(wildcard lib/*/*.c lib/*/*/*.c))))
# The helper that `ddpbench kernels` starts is a separate binary, because it needs the C++ library.
KERNELS_SRC := cmd/kernels_main.c cmd/gbench.cc
CMD_SRC := $(filter-out $(KERNELS_SRC),$(wildcard cmd/*.c))
CU_OBJ := $(CU_SRC:%.cu=$(O)/%.cu.o)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o)
MODULE_OBJ := $(filter $(LIB_OBJ),$(addprefix $(O)/lib/,base/err.o base/mem.o base/strbuf.o base/clock.o \
  base/unit.o base/dtype.o base/coll_kind.o base/cpuinfo.o base/sha256.o launch/launcher.o))
CMD_OBJ := $(CMD_SRC:%.c=$(O)/%.o)
CUDA_MODULE := $(if $(filter 1,$(HAVE_CUDA)),$(O)/ddpbench-cuda.so)
CUDA_MODULE_SRC := $(if $(CUDA_MODULE),$(wildcard lib/*/dev_cuda*.c lib/*/*/dev_cuda*.c))
CUDA_MODULE_OBJ := $(CUDA_MODULE_SRC:%.c=$(O)/%.o) $(CU_OBJ)
MODULES := $(foreach f,$(MPI_FLAVOURS),$(O)/ddpbench-mpi-$f.so) $(if $(HAVE_UCX),$(O)/ddpbench-ucx.so) $(CUDA_MODULE)
HELPERS := $(if $(and $(HAVE_GBENCH),$(wildcard cmd/gbench.cc)),$(O)/ddpbench-kernels)
WHOLE_CORE = -Wl,--whole-archive $(O)/libddpcore.a -Wl,--no-whole-archive
include ci/libddp.mk

# Flags of one source file. Files ending in _avx2 and _avx512 are compiled for those SIMD levels and
# called only after a check at run time. Only FACTS_SRC include build_facts.h. With -O3 and a
# sanitizer of memory or undefined behaviour, the compiler takes minutes for each file of SAN_SLOW.
# The C tests compile faster with -O1.
SAN_SLOW := lib/device/cpu/kernels_%.c
FACTS_SRC := lib/base/conf.c lib/record/provenance.c lib/comm/handshake.c lib/device/cuda/dev_cuda_module.c
AVX2 := -mavx2 -mfma -mf16c
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
source_flags = $(if $(filter %_avx2.c,$1),$(AVX2))$(if $(filter %_avx512.c,$1),$(AVX512)) \
  $(if $(call cuda_named,$1)$(call nccl_named,$1)$(filter tests/nccl/fake_cu%,$1),$(CUDA_INCLUDE)) \
  $(if $(filter %/layers_cuda_cudnn.c,$1),-DDDP_CUDNN=$(HAVE_CUDNN)) \
  $(if $(and $(CUDA_VERSION),$(filter lib/device/cuda/cuda_load.c,$1)),-DDDP_CUDA_VERSION='"$(CUDA_VERSION)"') \
  $(if $(filter tests/unit/% tests/grid/%,$1)$(if $(filter address undefined,$(SAN)),$(filter $(SAN_SLOW),$1)),-O1) \
  $(if $(filter $(FACTS_SRC),$1),-I$(O)) $(if $(filter tests/%,$1),-Itests -Icmd,-include base/banned.h)
compile = $(CC) $(BASE_CFLAGS) $(strip $(call source_flags,$1)) $(CFLAGS) -c -o $(O)/$(1:%.c=%.o) $1

.PHONY: all FORCE
all: $(O)/ddpbench $(MODULES) $(HELPERS) $(LIBDDP) ## build build/ddpbench, its modules and helper, and libddp (default)
	$(Q)mkdir -p build
	$(Q)ln -sfn $(if $(filter build/%,$(O)),$(O:build/%=%),$(abspath $(O)))/ddpbench build/ddpbench
	$(Q)rm -f build/ddpbench-mpi-*.so build/ddpbench-ucx.so build/ddpbench-cuda.so build/ddpbench-kernels
	$(Q)for m in $(notdir $(MODULES) $(HELPERS)); do \
	  ln -sfn $(if $(filter build/%,$(O)),$(O:build/%=%),$(abspath $(O)))/$$m build/$$m; done

$(O)/ddpbench: $(CMD_OBJ) $(O)/libddpcore.a $(O)/objects
	@echo "  LD    $@"
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(CMD_OBJ) $(WHOLE_CORE) $(BASE_LIBS)

$(O)/libddpcore.a: $(LIB_OBJ) $(O)/objects
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $(LIB_OBJ)

$(O)/%.o: %.c | $(O)/ready
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(call compile,$<) -MMD -MP

# The program contains this file. The compiler does not list it among the dependencies.
$(O)/cmd/reference.o: results/schema/ddpbench-1.schema.json

$(CU_OBJ): $(O)/%.cu.o: %.cu | $(O)/ready
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	$(Q)$(CUDA_NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# A module contains the few functions of the core library that it calls, so that the program that loads
# the module need not export them (a program linked with libddp.a does not).
$(O)/ddpbench-mpi-%.so: $(MODULE_SRC) $(MODULE_OBJ) ci/module.map $(O)/build_facts.h | $(O)/ready
	@echo "  MPICC $@"
	$(Q)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC_$*) $(BASE_CFLAGS) $(CFLAGS) -I$(O) \
	  -DDDP_MPI_FLAVOUR='"$*"' -include base/banned.h -MMD -MP -MT $@ -MF $(O)/mpi-$*.d -shared \
	  -Wl,--version-script=ci/module.map $(if $(SAN),,-Wl,--no-undefined) $(LDFLAGS) -o $@ $< \
	  $(MODULE_OBJ) -lm

$(O)/ddpbench-ucx.so: $(UCX_SRC) $(MODULE_OBJ) ci/module.map $(O)/build_facts.h | $(O)/ready
	@echo "  CC    $@"
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) -I$(O) -include base/banned.h -MMD -MP -MT $@ -MF $(O)/ucx.d \
	  -shared -Wl,--version-script=ci/module.map $(if $(SAN),,-Wl,--no-undefined) $(LDFLAGS) -o $@ $< \
	  $(MODULE_OBJ) -lucp -lucs -lm

# The CUDA module names the driver's library as a dependency, so that it is not opened on a machine
# without the driver. The stub stands for that library, because a machine that builds may have none.
$(O)/ddpbench-cuda.so: $(CUDA_MODULE_OBJ) $(MODULE_OBJ) $(O)/stub/libcuda.so.1 ci/module.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared -pthread $(SAN_FLAGS) -Wl,-soname,$(@F) -Wl,--version-script=ci/module.map \
	  $(if $(SAN),,-Wl,--no-undefined) $(LDFLAGS) -o $@ $(CUDA_MODULE_OBJ) $(MODULE_OBJ) $(CUDA_ARCHIVE) \
	  -Wl,--no-as-needed $(O)/stub/libcuda.so.1 -Wl,--as-needed -lrt -lm -ldl
$(O)/stub/libcuda.so.1: | $(O)/ready
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -o $@ -x c /dev/null

# The helper is linked with only the functions that it calls, so that it starts fast.
KERNELS_OBJ := $(O)/cmd/kernels_main.o $(O)/cmd/gbench.o
CXXWARN := -Wall -Wextra -Wshadow $(if $(filter 1,$(WERROR)),-Werror)
$(O)/cmd/gbench.o: cmd/gbench.cc | $(O)/ready
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	$(Q)$(CXX) -std=gnu++17 $(OPT) -pthread $(CXXWARN) $(SAN_FLAGS) $(CFLAGS) -Ilib \
	  -include base/banned.h -MMD -MP -c -o $@ $<
$(O)/ddpbench-kernels: $(KERNELS_OBJ) $(O)/libddpcore.a
	@echo "  LD    $@"
	$(Q)$(CXX) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(KERNELS_OBJ) $(O)/libddpcore.a -lbenchmark $(BASE_LIBS)
-include $(KERNELS_OBJ:.o=.d)

-include $(LIB_OBJ:.o=.d) $(CUDA_MODULE_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(wildcard $(O)/mpi-*.d $(O)/ucx.d)

# Writes a file unless it already has this content. $1: the file. $2: its lines, each quoted for the shell.
update = printf '%s\n' $2 > $1.new; if cmp -s $1.new $1; then rm $1.new; else mv $1.new $1; fi

# The commit changes often; then only the files that include build_facts.h are compiled again.
$(O)/build_facts.h: FORCE
	@mkdir -p $(@D)
	@$(call update,$@,$(call sq,#define DDP_VERSION $(call cstr,$(VERSION))) \
	  $(call sq,#define DDP_COMMIT $(call cstr,$(COMMIT))) \
	  $(call sq,#define DDP_COMPILER $(call cstr,$(CC_ID))) \
	  $(call sq,#define DDP_CFLAGS $(call cstr,$(strip $(OPT) $(SAN_FLAGS) $(CFLAGS)))))
$(FACTS_SRC:%.c=$(O)/%.o): $(O)/build_facts.h

# The list of objects: the binary depends on it, so that it is linked again when a source is removed.
$(O)/objects: FORCE
	@mkdir -p $(@D)
	@$(call update,$@,$(LIB_OBJ) $(CMD_OBJ))

# Reports missing libraries once, with advice, instead of as a compiler error in every file.
$(O)/ready:
	@mkdir -p $(@D)
	@printf '#include <cjson/cJSON.h>\n#include <zlib.h>\n' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 || \
	  { echo "a C compiler ($(CC)) with cJSON and zlib is needed; try: make deps all" >&2; exit 1; }
	@$(if $(strip $(CUDA_NOTES)),printf '%s\n' $(CUDA_NOTES) >&2)
	@touch $@

# The flags come from the rules above, so that editors use the same ones as the build.
ALL_SRC = $(LIB_SRC) $(CUDA_MODULE_SRC) $(CMD_SRC) $(UNIT_SRC)
json_entry = {"directory": "$(CURDIR)", "file": "$1", "command": $(call cstr,$(call compile,$1))}
.PHONY: compile_commands.json
compile_commands.json: ## write compile_commands.json for editors and clang tools
	$(file >$@.new,[)$(foreach s,$(filter-out $(lastword $(ALL_SRC)),$(ALL_SRC)),$(file >>$@.new,$(call json_entry,$s),))\
	$(file >>$@.new,$(call json_entry,$(lastword $(ALL_SRC))))$(file >>$@.new,])
	@mv $@.new $@

.PHONY: demo
demo: ## build, then measure an all-reduce and train on real images; under a minute
	$(Q)$(SUBMAKE) all
	build/ddpbench allreduce --size 64M
	build/ddpbench train --epochs 1

.PHONY: clean
clean: ## remove build/
	rm -rf build compile_commands.json
