# ddpbench: build, test, install. `make help` lists the targets and the knobs.
#
# Objects lie in build/<hash of compiler, flags and knobs>/, so a changed knob or flag is another
# folder and rebuilds by itself; build/ddpbench is a link to the flavour built last.

MPI ?= auto
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
# A make started by a recipe: one job a core, unless the caller's own -j governs already.
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

# `make deps check`: what deps installs (a compiler, an MPI) must be there before the rest is looked
# at, so this make only installs and gives every other goal to a fresh one.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
include ci/deps.mk
else
include ci/knobs.mk
include ci/build.mk
include ci/test.mk
include ci/gpu.mk
include ci/sim.mk
include ci/fuzz.mk
include ci/lint.mk
include ci/install.mk
include ci/help.mk
endif
