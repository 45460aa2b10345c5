# Tests are C programs (cmocka: unit, grid, gpu) and bats scripts. All print TAP, and prove runs them.

# Emulated kernels switch stacks, which AddressSanitizer and ThreadSanitizer do not support. A build without CUDA
# does not have what test_find_cuda_library and test_dev_cuda test.
UNIT_SRC := $(filter-out $(if $(filter address thread,$(SAN)),tests/gpu/test_gpu_emulated.c tests/gpu/test_nn_emulated.c) \
  $(if $(filter 1,$(HAVE_CUDA)),,tests/unit/test_find_cuda_library.c tests/unit/test_dev_cuda.c), \
  $(wildcard tests/unit/test_*.c tests/grid/test_*.c tests/gpu/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(O)/%)
# This script measures times, so it is a benchmark (`make bench-link`): a busy machine must not fail check.
TIMED_SCRIPTS := tests/mpi/slow_link.bats
# These scripts need a GPU and run only in `make test-gpu`. The other scripts of tests/gpu need none.
NEED_GPU := tests/gpu/train_gpu.bats tests/gpu/share_gpu.bats
SCRIPTS := $(filter-out $(TIMED_SCRIPTS) $(NEED_GPU) tests/e2e/%,$(sort $(wildcard tests/*.bats tests/*/*.bats) $(wildcard tests/golden/golden.sh) tests/fault/walk.py))
PROVE = DDPBENCH=$(abspath $(O)/ddpbench) FAULTY=$(abspath $(FAULTS_O)/ddpbench) MPI_FLAVOURS='$(MPI_FLAVOURS)' PYTHON=$(PYTHON) ci/prove.sh

$(UNIT_BIN): $(O)/tests/%: $(O)/tests/%.o $(O)/libddpcore.a
	@echo "  TEST  $@"
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(WHOLE_CORE) $(BASE_LIBS) -lcmocka
.SECONDARY: $(UNIT_BIN:=.o)
# This test defines the few functions of the CUDA runtime that it calls.
$(O)/tests/unit/test_dev_cuda: $(O)/lib/device/cuda/dev_cuda.o
$(O)/tests/unit/test_dev_cuda: TEST_LIBS = $(O)/lib/device/cuda/dev_cuda.o -Wl,--unresolved-symbols=ignore-all
-include $(UNIT_BIN:=.d)

# The module with a fake GPU, and the fake libraries: see tests/nccl/fake_gpu.h. They take the functions
# of the core library from the program, and the libraries take those of the fake GPU from the module.
# The MPI modules are linked into the folder, because a program looks for all modules in one folder.
FAKE_LINK = $(CC) -shared -pthread $(SAN_FLAGS) $(LDFLAGS) -Wl,-soname,$(@F)
FAKE_MODULE := $(O)/tests/nccl/ddpbench-cuda.so
$(FAKE_MODULE): $(addprefix $(O)/,tests/nccl/fake_gpu.o tests/nccl/fake_layers.o lib/device/cuda/dev_cuda_module.o)
	@echo "  LD    $@"
	$(Q)$(FAKE_LINK) -o $@ $^
	$(Q)for f in $(MPI_FLAVOURS); do ln -sfn ../../ddpbench-mpi-$$f.so $(@D)/; done
$(O)/tests/nccl/libnccl.so.2: $(O)/tests/nccl/fake_nccl.o $(FAKE_MODULE)
$(O)/tests/nccl/libcublas.so: $(O)/tests/nccl/fake_cublas.o $(FAKE_MODULE)
$(O)/tests/nccl/libcudnn.so: $(O)/tests/nccl/fake_cudnn.o $(FAKE_MODULE)
$(addprefix $(O)/tests/nccl/,libnccl.so.2 libcublas.so libcudnn.so):
	@echo "  LD    $@"
	$(Q)$(FAKE_LINK) -Wl,-rpath,'$$ORIGIN' -o $@ $^
# Like a library before 2.27, this one has no functions for windows.
$(O)/tests/nccl/old/libnccl.so.2: $(O)/tests/nccl/fake_nccl.o $(FAKE_MODULE) tests/nccl/fake_nccl_old.map
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(FAKE_LINK) -Wl,-rpath,'$$ORIGIN/..' -Wl,--version-script=tests/nccl/fake_nccl_old.map -o $@ $(filter-out %.map,$^)
-include $(patsubst tests/nccl/%.c,$(O)/tests/nccl/%.d,$(wildcard tests/nccl/fake_*.c))

# `make test T=plan` runs the tests whose path contains "plan"; without T all tests run.
T ?=
ALL_TESTS = $(UNIT_BIN) $(SCRIPTS)
TESTS = $(if $(T),$(foreach t,$(ALL_TESTS),$(if $(findstring $(T),$(t:$(O)/%=%)),$t)),$(ALL_TESTS))
# `make quick` runs the C tests that end within two seconds and a smoke test of the command line.
SLOW_TESTS := $(shell sed 's/\#.*//' ci/slow_tests.txt)
QUICK_TESTS = $(filter-out $(SLOW_TESTS:%=$(O)/tests/%) $(O)/tests/grid/%,$(UNIT_BIN)) tests/cli/smoke.bats

.PHONY: unit faults test quick check
unit: $(UNIT_BIN) $(FAKE_GPU) ## build the C tests
FAULTS_O = $(O)-faults
FAULT_SCRIPTS := tests/fault/walk.py tests/fault/points.bats # they need the build with fault points
# No kernel has a fault point, so the second build takes the objects of the first.
FAULT_KERNELS = $(filter $(O)/lib/device/cpu/kernels_%.o,$(LIB_OBJ))
faults: $(FAULT_KERNELS) ## build a second binary with fault points, for tests/fault
	$(Q)mkdir -p $(FAULTS_O)/lib/device/cpu && cp -pu $(FAULT_KERNELS) $(FAULTS_O)/lib/device/cpu
	+$(Q)$(SUBMAKE) O=$(FAULTS_O) FAULTS=1 MPI=0 CUDA=0 OPT='-O1 -g' $(FAULTS_O)/ddpbench
NEEDED_BY_TESTS = $(filter $(UNIT_BIN),$(TESTS)) $(if $(filter tests/nccl/%,$(TESTS)),$(FAKE_GPU)) \
  $(if $(filter $(FAULT_SCRIPTS),$(TESTS)),faults)
test: all $(NEEDED_BY_TESTS) ## build and run every test, or those with T=WORD in their path
	$(Q)$(if $(TESTS),$(PROVE) $(TESTS),echo "no test has '$(T)' in its path" >&2; exit 2)
quick: all $(filter $(UNIT_BIN),$(QUICK_TESTS)) ## run the fast C tests and a smoke test of the command line; a minute
	$(Q)$(PROVE) $(QUICK_TESTS)
# In CI, fuzz-together runs the fuzzers from the same seed for longer, so prove does not run them.
check: ## lint, build and run every test
	+$(Q)$(SUBMAKE) lint
	+$(Q)$(SUBMAKE) all unit faults
	$(Q)$(PROVE) $(if $(CI),$(filter-out $(FUZZ_BIN),$(UNIT_BIN)),$(UNIT_BIN)) $(SCRIPTS)
	+$(if $(CI),$(Q)$(SUBMAKE) fuzz-together FUZZ_SECONDS=20)

# The complete grids, and messages beyond 2^31 bytes, which need 9 GB of memory.
GRID_BIN = $(filter %/test_coll_grid %/test_split_grid %/test_coll_groups %/test_coll_huge,$(UNIT_BIN))
.PHONY: grid
grid: $(GRID_BIN) $(MODULES) ## test every combination in the grids of the collectives
	$(Q)for t in $(GRID_BIN); do CMOCKA_MESSAGE_OUTPUT=TAP $$t --full || exit 1; done
	$(Q)$(if $(MPI_FLAVOURS),GRID_RANKS='1 2 3 4 5 6 7 8' TEST_TIMEOUT=1800 $(PROVE) tests/mpi/coll_grid.bats)
	$(Q)for f in $(MPI_FLAVOURS); do echo "# $$f: 2^31 + 8 elements"; \
	  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpiexec.$$f -n 2 \
	  $(O)/tests/grid/test_coll_huge --mpi $(abspath $(O)) --full || exit 1; done

# Each sanitizer is a flavour of its own, built without MPI and CUDA, whose libraries have leaks and
# races of their own. These targets do not change build/ddpbench. Scripts that need the modules of MPI
# or an installed libddp are left out.
SAN_SCRIPTS := $(filter-out $(FAULT_SCRIPTS) tests/mpi/% tests/api/% tests/cli/build.bats tests/cli/install.bats \
  tests/cli/pages.bats,$(SCRIPTS))
.PHONY: asan ubsan tsan san-test tsan-test
asan: ## run the tests under AddressSanitizer
	+$(Q)$(SUBMAKE) SAN=address MPI=0 CUDA=0 san-test
ubsan: ## run the tests under UndefinedBehaviorSanitizer
	+$(Q)$(SUBMAKE) SAN=undefined MPI=0 CUDA=0 san-test
tsan: ## test the shared-memory engine with threads as ranks, under ThreadSanitizer
	+$(Q)$(SUBMAKE) SAN=thread MPI=0 CUDA=0 tsan-test
# TEST_TIMEOUT: a sanitizer makes some tests many times slower.
# allocator_may_return_null: a test that asks for too much memory expects NULL, as malloc returns.
san-test: $(O)/ddpbench $(HELPERS) $(UNIT_BIN)
	$(Q)TEST_TIMEOUT=1200 ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $(PROVE) $(UNIT_BIN) $(SAN_SCRIPTS)

# ThreadSanitizer sees only one process, so it runs the binary and the tests with threads as ranks.
TSAN_BIN = $(patsubst %.c,$(O)/%,$(shell grep -l -e DDP_LAUNCH_THREADS -e trainer_runs.h $(UNIT_SRC) /dev/null))
# ThreadSanitizer needs a fixed memory layout; the address randomisation of newer kernels breaks it.
FIXED_LAYOUT = $(if $(shell setarch -R true 2>/dev/null && echo y),setarch -R)
tsan-test: $(O)/ddpbench $(TSAN_BIN)
	$(Q)$(FIXED_LAYOUT) env TEST_TIMEOUT=1200 $(PROVE) $(TSAN_BIN) ci/tsan_shm.sh

.PHONY: coverage coverage-report
coverage: ## measure the line coverage of lib/ and cmd/ by all tests: build/coverage/
	+$(Q)$(SUBMAKE) OPT='-O1 -g' CFLAGS='$(CFLAGS) --coverage' LDFLAGS='$(LDFLAGS) --coverage' coverage-report
coverage-report: $(O)/ddpbench $(MODULES) $(HELPERS) $(UNIT_BIN)
	$(Q)find $(O) -name '*.gcda' -exec rm -f {} +
	-$(Q)$(PROVE) $(UNIT_BIN) $(filter-out $(FAULT_SCRIPTS) tests/api/% tests/cli/build.bats tests/cli/install.bats,$(SCRIPTS))
	$(Q)ci/coverage.sh $(O)

# The long form of tests that check runs in part: every fault at every point, 100 kills of each kind,
# 1,000 starts after kills, 10,000 barriers under load, and the full grid.
FULL_BIN = $(filter %/test_launch_cycles %/test_barrier_load,$(UNIT_BIN))
.PHONY: torture
torture: all faults $(FULL_BIN) $(FAKE_GPU) ## test every fault, 1,000 kills, 10,000 barriers under load and the full grid
	$(Q)FAULTY=$(abspath $(FAULTS_O)/ddpbench) $(PYTHON) tests/fault/walk.py --all
	$(Q)for t in $(FULL_BIN); do CMOCKA_MESSAGE_OUTPUT=TAP $$t --full || exit 1; done
	$(Q)KILLS=100 $(PROVE) tests/fault/kill.bats
	$(Q)KILLS=100 TEST_TIMEOUT=1800 $(PROVE) tests/fault/sweep_kill.bats
	$(Q)MOMENTS=40 $(PROVE) tests/nccl/nccl_lost.bats
	+$(Q)$(SUBMAKE) grid

# Wrong edits of algorithms and kernels, which tests must find. Takes most of an hour, so check does not run it.
.PHONY: mutants
mutants: ## test the tests: run unit tests and ddpbench with each error of tests/mutants/list.txt; T=WORD: only some
	$(Q)$(PYTHON) tests/mutants/mutants.py $(T)

# Benchmarks are not tests: check runs none of the targets below.
BENCH_SRC := $(addprefix tests/bench/,bench_kernels.c bench_read_avx2.c bench_read_avx512.c)
BENCH_OBJ := $(BENCH_SRC:%.c=$(O)/%.o) $(O)/tests/bench/bench_nth.o
$(O)/tests/bench/bench_nth.o: tests/bench/bench_nth.cc
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) -Itests -c -o $@ $<
$(O)/tests/bench/bench_kernels: $(BENCH_OBJ) $(O)/libddpcore.a
	$(Q)$(CXX) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(BENCH_OBJ) $(WHOLE_CORE) $(BASE_LIBS)
-include $(BENCH_OBJ:.o=.d)
# Links the benchmark with one build's kernels. $1: old or new. $2: the source tree. $3: its libddp.a.
bench_library = for at in 0 16 32 48; do $(CC) -shared $(filter-out -Ilib,$(BASE_CFLAGS)) $(CFLAGS) -I$2/lib \
  -Itests -DCODE_OFFSET="\"$$at\"" -o $(O)/tests/bench/kernels_$1_$$at.so tests/bench/bench_kernels.c \
  $(BENCH_LIB_OBJ) -Wl,-Bsymbolic $3 $(LDFLAGS) -lstdc++ -lm -ldl || exit 1; done
BENCH_LIB_OBJ := $(filter-out %/bench_kernels.o,$(BENCH_OBJ))
.PHONY: bench-kernels
ifeq ($(OLD),)
bench-kernels: $(O)/tests/bench/bench_kernels ## compare the gradient kernels with this machine's memory bandwidth, or with the build in OLD=DIR
	$(Q)$<
else
bench-kernels: $(BENCH_LIB_OBJ) $(O)/libddp.a
	$(Q)test -e $(OLD)/build/ddpbench || { echo "$(OLD) has no build; run make there" >&2; exit 2; }
	$(Q)$(call bench_library,old,$(OLD),$$(dirname $$(readlink -f $(OLD)/build/ddpbench))/libddp.a)
	$(Q)$(call bench_library,new,.,$(O)/libddp.a)
	$(Q)$(PYTHON) tests/bench/compare_kernels.py $(O)/tests/bench $(ROUNDS)
endif

# Compares ddpbench's time of an all-reduce with that of an independent loop, under each MPI.
AGREE_LOOP = $(MPI_FLAVOURS:%=$(O)/tests/bench/mpi_loop.%)
$(O)/tests/bench/mpi_loop.%: tests/bench/mpi_loop.c
	@mkdir -p $(@D)
	$(Q)$(MPICC_$*) -O2 -o $@ $<
.PHONY: bench-agree
bench-agree: all $(AGREE_LOOP) ## compare our all-reduce times with a plain loop around MPI_Allreduce; 5 minutes
	$(Q)rc=0; for f in $(MPI_FLAVOURS); do $(PYTHON) tests/bench/agree.py --ddpbench $(abspath $(O)/ddpbench) \
	  --loop $(O)/tests/bench/mpi_loop.$$f --mpiexec mpiexec.$$f || rc=1; done; exit $$rc

# Tests whether the gate detects slow-downs reliably on this machine. After an interrupt the same
# command resumes.
GATES ?= 60,30
.PHONY: bench-gate
bench-gate: all ## test the gate with GATES=60,30 A/A and slowed pairs; store the noise floor; 25 minutes
	$(Q)$(O)/ddpbench gate --selftest --gates $(GATES) --json $(O)/selftest.json

# Counts in how many of RUNS runs `health` and `isolate` name each fault, and who else they name.
RUNS ?= 20
.PHONY: bench-health
bench-health: all ## test health and isolate on 4 namespaces with RUNS=20 runs of each fault: build/health.md; 40 minutes
	$(Q)printf '| fault | right | verdicts | mean time |\n|---|---|---|---|\n' >$(O)/health.md
	$(Q)RUNS=$(RUNS) TABLE=$(abspath $(O)/health.md) DDPBENCH=$(abspath $(O)/ddpbench) bats tests/e2e/health_hosts.bats; \
	  rc=$$?; cat $(O)/health.md; exit $$rc

.PHONY: convergence
convergence: all ## compare the accuracy that each sync strategy loses with bounds; half an hour
	$(Q)DDPBENCH=$(abspath $(O)/ddpbench) PYTHON=$(PYTHON) tests/model/convergence.sh
PEER_COLLS = reduce-scatter,all-gather,broadcast,all-to-all
GLOO_LOOP := $(if $(wildcard /usr/include/gloo/allreduce.h),$(O)/tests/bench/gloo_loop)
$(O)/tests/bench/gloo_loop: tests/bench/gloo_loop.cc
	@mkdir -p $(@D)
	$(Q)$(CXX) -O2 -std=c++17 -pthread -o $@ $< -lgloo
.PHONY: bench-peers
bench-peers: all $(GLOO_LOOP) ## compare all-reduce with MPI and Gloo: results/peers.json; PEERS_FLAGS go to peers.py
	$(Q)$(PYTHON) tests/bench/peers.py --ddpbench $(O)/ddpbench --gloo-loop=$(GLOO_LOOP) $(PEERS_FLAGS)
.PHONY: bench-peers-all bench-auto
bench-peers-all: all $(GLOO_LOOP) ## compare the other collectives at 2 ranks, then all at 4 and 8: results/peers-*.json; hours
	$(Q)rc=0; p='$(PYTHON) tests/bench/peers.py --ddpbench $(O)/ddpbench --gloo-loop=$(GLOO_LOOP)'; \
	  $$p --collective $(PEER_COLLS) $(PEERS_FLAGS) --json results/peers-collectives.json || rc=1; \
	  $$p --collective allreduce,$(PEER_COLLS) --ranks 4,8 --max 67108864 $(PEERS_FLAGS) --json results/peers-ranks.json || rc=1; exit $$rc
bench-auto: all ## compare auto with each of our own algorithms: results/auto.json
	$(Q)$(PYTHON) tests/bench/peers.py --ddpbench $(O)/ddpbench --auto --collective allreduce,$(PEER_COLLS) \
	  --json results/auto.json $(PEERS_FLAGS)
TORCH_PYTHON ?= $(PYTHON)
TRAIN_ROUNDS ?= 15
$(O)/tests/bench/sgemm_peak: $(O)/tests/bench/sgemm_peak.o $(O)/libddpcore.a
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(WHOLE_CORE) $(BASE_LIBS)
-include $(O)/tests/bench/sgemm_peak.d
.PHONY: bench-train
bench-train: all $(O)/tests/bench/sgemm_peak ## compare training with PyTorch and with sgemm (python3-torch), or with the build in OLD=DIR
	$(Q)$(PYTHON) $(if $(OLD),tests/bench/train_old_new.py --old $(OLD)/build/ddpbench --new $(O)/ddpbench, \
	  tests/bench/train_peers.py --ddpbench $(O)/ddpbench --sgemm $(O)/tests/bench/sgemm_peak \
	  --python $(TORCH_PYTHON) --rounds $(TRAIN_ROUNDS))
.PHONY: bench-accuracy
bench-accuracy: all ## test accuracy verdicts on 100 training runs, which a second call continues: results/accuracy-gate.json; hours
	$(Q)$(PYTHON) tests/bench/accuracy_gate.py --ddpbench $(O)/ddpbench --work $(O)/accuracy \
	  --json results/accuracy-gate.json $(ACCURACY_FLAGS)
.PHONY: bench-link
bench-link: all ## measure bandwidth, hier, compression and overlap over slow links between namespaces (root)
	$(Q)TEST_TIMEOUT=900 $(PROVE) $(TIMED_SCRIPTS)

.PHONY: results-tables
results-tables: ## write the tables of README.md and results/README.md from the files in results/
	$(Q)$(PYTHON) ci/results_tables.py

.PHONY: trial
trial: ## add a compressor, an algorithm and a type to a copy of the tree, and test that nothing else has to change
	$(Q)JOBS='$(JOBS)' PYTHON=$(PYTHON) tests/trial/trial.sh
