# The plots that README.md and results/README.md show, the reference, and the check of report pages in a
# browser.

.PHONY: plots
plots: all ## write results/plots/*.svg from the documents in results/
	$(Q)$(PYTHON) ci/make_plots.py --ddpbench $(abspath $(O)/ddpbench)

.PHONY: reference
reference: all ## write cmd/REFERENCE.md, which `ddpbench help --markdown` prints
	$(Q)$(O)/ddpbench help --markdown > $(O)/REFERENCE.md
	$(Q)cp $(O)/REFERENCE.md cmd/REFERENCE.md

# The browser is the Debian package chromium. axe-core and the library that drives the browser come from
# PyPI. SHOTS=DIR keeps pictures of the pages.
VENV := build/venv
$(VENV)/e2e:
	$(Q)command -v chromium >/dev/null || { echo "make e2e needs chromium; try: apt-get install chromium" >&2; exit 69; }
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip install -q playwright==1.* axe-playwright-python==0.*
	$(Q)touch $@
# The codecs of 8-bit floats are compared with those of ml-dtypes, also from PyPI.
$(VENV)/fp8:
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip install -q ml-dtypes==0.* numpy
	$(Q)touch $@
$(O)/tests/e2e/fp8_convert: tests/e2e/fp8_convert.c lib/device/element_ops.h $(O)/libddpcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(O)/libddpcore.a $(BASE_LIBS)
.PHONY: e2e e2e-fp8
e2e-fp8: $(O)/tests/e2e/fp8_convert $(VENV)/fp8
	$(Q)$(VENV)/bin/python tests/e2e/fp8_codes.py $<
e2e: all e2e-fp8 $(VENV)/e2e ## open pages of `ddpbench report` in headless chromium (no errors, no requests, axe-core); compare fp8 with ml-dtypes
	$(Q)tests/e2e/e2e.sh $(abspath $(O)/ddpbench) $(VENV)/bin/python $(SHOTS)
	$(if $(filter 1,$(HAVE_CUDA)),$(Q)tests/e2e/old_cuda.sh $(VENV)/bin/python)
