# Lint: each check is a script that can also be run by hand.

.PHONY: lint schema format
lint: $(O)/build_facts.h ## check layers, headers, lengths, language, formatting and shell scripts; clang-tidy, cppcheck
	$(Q)ci/check_layers.sh
	$(Q)ci/schema_dtypes.sh
	$(Q)CC='$(CC)' JOBS='$(JOBS)' ci/check_headers.sh
	$(Q)JOBS='$(JOBS)' ci/check_style.sh
	+$(Q)$(SUBMAKE) compile_commands.json
	$(Q)JOBS='$(JOBS)' ci/check_tools.sh
	$(Q)ci/check_language.sh
	$(Q)JOBS='$(JOBS)' ci/check_format.sh

schema: ## write the element types of lib/base/dtype_list.h into results/schema
	$(Q)ci/schema_dtypes.sh --fix

format: ## rewrite all C files with clang-format 14
	$(Q)ci/check_format.sh --fix
