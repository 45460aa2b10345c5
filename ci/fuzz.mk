# Fuzzing: each tests/fuzz/fuzz_*.c becomes a program, driven by fuzz_main.c (no libFuzzer needed).
# `make test` replays each corpus and mutates it for a second.

FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 1
FUZZ_SRC := $(filter-out tests/fuzz/fuzz_main.c,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:%.c=$(O)/%)
FUZZ_MAIN := $(O)/tests/fuzz/fuzz_main.o
# test.mk runs them among the C tests.
UNIT_BIN += $(FUZZ_BIN)
unit quick test san-test coverage-report: $(FUZZ_BIN)

$(FUZZ_BIN): $(O)/tests/%: $(O)/tests/%.o $(FUZZ_MAIN) $(O)/libddpcore.a
	@echo "  FUZZ  $@"
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(FUZZ_MAIN) $(WHOLE_CORE) $(BASE_LIBS)
.SECONDARY: $(FUZZ_BIN:=.o) $(FUZZ_MAIN)
-include $(FUZZ_BIN:=.d) $(FUZZ_MAIN:.o=.d)

.PHONY: fuzz fuzz-run fuzz-together
fuzz: ## fuzz each decoder for FUZZ_SECONDS (60) from FUZZ_SEED (1), under AddressSanitizer and UBSan
	+$(Q)$(SUBMAKE) SAN=address CFLAGS='$(CFLAGS) -fsanitize=undefined -fno-sanitize-recover=all' \
	  LDFLAGS='$(LDFLAGS) -fsanitize=undefined' MPI=0 CUDA=0 OPT='-O1 -g' fuzz-run
fuzz-run: $(FUZZ_BIN)
	$(Q)for f in $(FUZZ_BIN); do ASAN_OPTIONS=allocator_may_return_null=1:allocator_release_to_os_interval_ms=-1 \
	  $$f --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) || exit 1; done
# Runs all at once, so that it takes as long as one of them. CI runs it after check.
fuzz-together: $(FUZZ_BIN)
	$(Q)mkdir -p $(O)/tap; pids=; for f in $(FUZZ_BIN); do \
	  $$f --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) >$(O)/tap/$${f##*/}.long 2>&1 & pids="$$pids $$!"; done; \
	rc=0; for p in $$pids; do wait $$p || rc=1; done; \
	[ $$rc = 0 ] || cat $(O)/tap/*.long; echo "# every decoder fuzzed $(FUZZ_SECONDS) s: exit $$rc"; exit $$rc
