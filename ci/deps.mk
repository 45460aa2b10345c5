# deps: installs what the other goals of this command need, then hands them to a fresh make, in
# order. `make deps demo` needs less than `make deps check`; `make deps` alone takes everything.

LATER := $(filter-out deps,$(MAKECMDGOALS))

.NOTPARALLEL:
.PHONY: deps $(LATER)
deps: ## install what the goals beside it need: make deps demo, make deps check
	$(Q)ci/deps.sh $(if $(LATER),$(if $(filter-out all demo install,$(LATER)),check,demo),check)

$(LATER): deps
	+$(Q)$(MAKE) --no-print-directory $@
