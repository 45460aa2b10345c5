# Simulation (tests/sim): the shipped algorithms over the shipped backend mpi, on networks that
# SimGrid simulates. SimGrid's smpicc compiles backend_mpi.c with DDP_MPI_SIMULATED; all other code is
# the library as shipped.

ifneq ($(SIMGRID),0)
  SMPICC := $(shell command -v smpicc 2>/dev/null)
  $(if $(filter 1,$(SIMGRID)),$(or $(SMPICC),$(error SIMGRID=1, but smpicc is not installed: Debian's libsimgrid-dev)))
endif
SIM_BIN := $(if $(SMPICC),$(if $(wildcard tests/sim/ddpsim.c),$(if $(SAN),,$(O)/tests/sim/ddpsim)))
SIM_OBJ := $(patsubst %.c,$(O)/sim/%.o,$(filter-out tests/sim/quick.c,$(wildcard tests/sim/*.c)) lib/comm/mpi/backend_mpi.c)
SIM_QUICK := $(SIM_BIN:ddpsim=quick.so)

# SMPI_NO_OVERRIDE_MALLOC: ranks share only the memory that they share explicitly.
$(SIM_OBJ): $(O)/sim/%.o: %.c $(O)/build_facts.h | $(O)/ready
	@mkdir -p $(@D)
	@echo "  SMPICC $<"
	$(Q)$(SMPICC) $(BASE_CFLAGS) $(CFLAGS) -I$(O) -Itests -DSMPI_NO_OVERRIDE_MALLOC \
	  -DDDP_MPI_FLAVOUR='"simgrid"' -DDDP_MPI_SIMULATED=1 -MMD -MP -c -o $@ $<
$(O)/tests/sim/ddpsim: $(SIM_OBJ) $(O)/libddpcore.a
	@mkdir -p $(@D)
	@echo "  SMPILD $@"
	$(Q)$(SMPICC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(SIM_OBJ) $(O)/libddpcore.a $(BASE_LIBS)
$(O)/tests/sim/quick.so: tests/sim/quick.c | $(O)/ready
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LDFLAGS) -fPIC -shared -o $@ $<
-include $(SIM_OBJ:.o=.d)

unit: $(SIM_BIN) $(SIM_QUICK)

.PHONY: sim-1024
sim-1024: $(SIM_BIN) $(SIM_QUICK) ## simulate 1024 ranks (SimGrid): every algorithm, break-even densities: results/sim-1024.*
	$(Q)$(if $(SIM_BIN),,echo "sim-1024: needs smpicc: Debian's libsimgrid-dev, or make deps" >&2; exit 69;) \
	  $(PYTHON) tests/sim/simulate.py --ddpsim $(SIM_BIN) full
