# Tests: unit (C, cmocka), cli (bats), and scripts; all print TAP and are run by prove.

UNIT_SRC := $(wildcard tests/unit/test_*.c) $(wildcard tests/grid/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(O)/%)
SCRIPTS := $(wildcard tests/cli/*.bats tests/fault/*.bats tests/mpi/*.bats tests/golden/*.bats)

$(O)/tests/%: tests/%.c $(O)/libddpcore.a
	@mkdir -p $(@D)
	@echo "  TEST  $<"
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) -Itests -MMD -MP -MF $@.d $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< \
	  -Wl,--whole-archive $(O)/libddpcore.a -Wl,--no-whole-archive $(BASE_LIBS) -lcmocka
-include $(UNIT_BIN:=.d)

.PHONY: test unit check
unit: $(UNIT_BIN)
test: all unit
	$(Q)ci/prove.sh $(UNIT_BIN) $(SCRIPTS)
check: lint test
.PHONY: lint
lint:
	@true
