# Building: every .c under lib/ but the modules goes into the core library; cmd/*.c into the binary.

MODULE_SRC := lib/comm/backend_mpi.c
LIB_SRC := $(filter-out $(MODULE_SRC),$(wildcard lib/*/*.c))
CMD_SRC := $(wildcard cmd/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(O)/%.o)
MODULES := $(foreach f,$(MPI_FLAVOURS),$(O)/ddpbench-mpi-$f.so)

.PHONY: all FORCE
all: $(O)/ddpbench $(MODULES)
	$(Q)mkdir -p build
	$(Q)ln -sfn $(HASH)/ddpbench build/ddpbench
	$(Q)rm -f build/ddpbench-mpi-*.so
	$(Q)for m in $(notdir $(MODULES)); do ln -sfn $(HASH)/$$m build/$$m; done

$(O)/ddpbench: $(CMD_OBJ) $(O)/libddpcore.a
	@echo "  LD    $@"
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(CMD_OBJ) -Wl,--whole-archive $(O)/libddpcore.a -Wl,--no-whole-archive $(BASE_LIBS)

$(O)/libddpcore.a: $(LIB_OBJ)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $(LIB_OBJ)

# Files ending in _avx2 and _avx512 hold code for those levels only, entered after a check at run time.
$(O)/%_avx2.o: SIMD_FLAGS := -mavx2 -mfma -mf16c
$(O)/%_avx512.o: SIMD_FLAGS := -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512

$(O)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(BASE_CFLAGS) $(SIMD_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Build facts change with every commit: only the one file that holds them sees them.
$(O)/build_facts.h: FORCE
	@mkdir -p $(@D)
	@printf '#define DDP_VERSION "%s"\n#define DDP_COMMIT "%s"\n#define DDP_COMPILER "%s"\n#define DDP_CFLAGS "%s"\n' \
	  '$(VERSION)' '$(COMMIT)' '$(CC_ID)' '$(strip $(OPT) $(SAN_FLAGS) $(CFLAGS))' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(O)/lib/record/provenance.o: $(O)/build_facts.h
$(O)/lib/record/provenance.o: BASE_CFLAGS += -I$(O)

$(O)/ddpbench-mpi-%.so: $(MODULE_SRC) $(O)/build_facts.h
	@echo "  MPICC $@"
	$(Q)$(MPICC_$*) $(BASE_CFLAGS) $(CFLAGS) -I$(O) -DDDP_MPI_FLAVOUR='"$*"' -MMD -MP -MF $(O)/mpi-$*.d -shared $(LDFLAGS) -o $@ $<

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(wildcard $(O)/mpi-*.d)

.PHONY: clean
clean:
	rm -rf build
