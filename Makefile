# ddpbench: build, test, install. `make help` lists the targets and the knobs.
#
# Objects lie in build/<hash of compiler, flags and knobs>/, so a changed knob or flag builds into
# another folder. build/ddpbench links to the flavour that was built last.

MPI ?= auto
UCX ?= auto
CUDA ?= auto
GBENCH ?= auto
SIMGRID ?= auto
WERROR ?= 1
FAULTS ?= 0
SAN ?=
V ?= 0
OPT ?= -O3 -g
CFLAGS ?=
LDFLAGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc 2>/dev/null || echo 1)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
Q := $(if $(filter 1,$(V)),,@)
# Starts make from a recipe with one job per core, unless the caller's -j already limits the jobs.
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

# `make deps check`: the other files look for a compiler and an MPI, which deps may only now install.
# So this make only installs, and starts a fresh make for every other goal.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
include ci/deps.mk
else
include ci/knobs.mk
include ci/build.mk
include ci/test.mk
include ci/gpu.mk
include ci/sim.mk
include ci/fuzz.mk
include ci/pages.mk
include ci/readers.mk
include ci/lint.mk
include ci/install.mk
include ci/help.mk
endif
