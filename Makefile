# ddpbench: build, test, install. `make help` lists the targets.
# Objects lie in build/<hash of compiler, flags and knobs>/, so a changed knob rebuilds by itself.

MPI ?= auto
CUDA ?= auto
GBENCH ?= auto
WERROR ?= 1
FAULTS ?= 0
SAN ?=
V ?= 0
CC ?= cc
OPT ?= -O3 -g
PREFIX ?= /usr/local
DESTDIR ?=
CFLAGS ?=
LDFLAGS ?=

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
Q := $(if $(filter 1,$(V)),,@)

include ci/knobs.mk
include ci/build.mk
include ci/test.mk
include ci/deps.mk
include ci/install.mk
