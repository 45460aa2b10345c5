# help prints every target with a `## text`, and the knobs.

.PHONY: help
help: ## print this text
	@echo "Targets:"
	@sed -n 's/^\([a-z0-9_. -]*\):[^#=]*## \(.*\)/\1|\2/p' ci/*.mk | sort | \
	  while IFS='|' read -r name text; do printf '  %-22s %s\n' "$$name" "$$text"; done
	@printf '%s\n' "" "Knobs (make NAME=VALUE; a changed one rebuilds by itself):" \
	  "  MPI                    0 never, 1 must, auto when found (default auto)" \
	  "  CUDA                   0 never, 1 must, auto when nvcc is found (default auto)" \
	  "  NVCC CUDA_ARCHS        the CUDA compiler, and the GPU architectures (default: 80 90)" \
	  "  GBENCH                 Google Benchmark for 'ddpbench kernels': 0, 1 or auto, as for MPI" \
	  "  UCX                    0 never, 1 must, auto when libucx-dev is found (default auto)" \
"  SIMGRID                0 never, 1 must, auto when smpicc is found (default auto)" \
	  "  CC OPT CFLAGS LDFLAGS  compiler and flags (OPT default: -O3 -g)" \
	  "  SAN                    address, undefined or thread" \
	  "  WERROR                 1: a warning is an error (default)" \
	  "  FAULTS                 1: DDPBENCH_FAULT can make ranks fail, for tests (default 0)" \
	  "  V                      1: show the commands" \
	  "  PREFIX DESTDIR         the folders of install (default /usr/local)" \
	  "  JOBS                   parallel jobs of check and demo (default: one per core)"

# Prints the value of a variable for scripts: `make -s print-O`.
print-%:
	@echo '$($*)'
