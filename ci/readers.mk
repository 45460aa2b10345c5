# readers runs tests/readers. `make deps` does not install the programs that read the outputs.

.PHONY: readers
readers: all ## read our outputs with compare.py of Google Benchmark, junitparser and pandas, and run the recipes; installs them
	$(Q)ci/deps.sh readers
	$(Q)$(PROVE) tests/readers/readers.py tests/cli/recipes.bats
