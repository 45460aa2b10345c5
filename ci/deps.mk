# deps installs the packages that the other goals of the command line need, then starts a fresh make
# for each of them. `make deps demo` needs fewer packages than `make deps check`; `make deps` alone
# installs all.

LATER := $(filter-out deps,$(MAKECMDGOALS))

.NOTPARALLEL:
.PHONY: deps $(LATER)
deps: ## install the packages that the other goals need: make deps demo, make deps check
	$(Q)ci/deps.sh $(if $(LATER),$(if $(filter-out all demo install,$(LATER)),check,demo),check)

$(LATER): deps
	+$(Q)$(MAKE) --no-print-directory $@
