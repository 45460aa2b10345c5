# Knobs: MPI, UCX, CUDA, GBENCH and SIMGRID are 0 (never), 1 (required) or auto (used when found).

$(foreach k,MPI UCX CUDA GBENCH SIMGRID,$(if $(filter 0 1 auto,$($k)),,$(error $k='$($k)' is not 0, 1 or auto)))
$(foreach k,WERROR FAULTS V,$(if $(filter 0 1,$($k)),,$(error $k='$($k)' is not 0 or 1)))
$(if $(filter-out address undefined thread,$(SAN)),$(error SAN='$(SAN)' is not address, undefined or thread))

# sq quotes its argument as one word for the shell; cstr makes a C string literal.
sq = '$(subst ','\'',$1)'
cstr = "$(subst ",\",$(subst \,\\,$1))"

VERSION := 0.1.0
# Without safe.directory, `sudo make install` in a user's clone would find no commit and rebuild.
COMMIT := $(if $(wildcard .git),$(shell GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --always --dirty --abbrev=12 2>/dev/null))
COMMIT := $(or $(COMMIT),unknown)

# Each MPI whose wrapper compiler is found gets a module of its own. Debian has a compiler for each MPI;
# elsewhere there is one mpicc. MPICC_openmpi= and MPICC_mpich= name others; Intel MPI has MPICH's ABI.
ifneq ($(MPI),0)
  MPICC_OF := $(shell mpicc --showme:version 2>/dev/null | grep -q 'Open MPI' && echo openmpi || { mpicc -show 2>/dev/null | grep -qe -lmpi && echo mpich; })
  MPICC_openmpi := $(or $(shell command -v mpicc.openmpi 2>/dev/null),$(if $(filter openmpi,$(MPICC_OF)),mpicc))
  MPICC_mpich := $(or $(shell command -v mpicc.mpich 2>/dev/null),$(if $(filter mpich,$(MPICC_OF)),mpicc))
endif
MPI_FLAVOURS ?= $(strip $(if $(MPICC_openmpi),openmpi) $(if $(MPICC_mpich),mpich))
ifeq ($(MPI)$(strip $(MPI_FLAVOURS)),1)
  $(error MPI=1, but none of mpicc.openmpi, mpicc.mpich and mpicc is installed; `make deps` installs both)
endif

# Google Benchmark is C++, so the code that uses it is a binary of its own (cmd/kernels_main.c).
CXX ?= g++
HASH_SIGN := \#
ifneq ($(GBENCH),0)
  HAVE_GBENCH := $(shell printf '%s\n' '$(HASH_SIGN)if !__has_include(<benchmark/benchmark.h>)' x '$(HASH_SIGN)endif' \
    | $(CXX) $(CFLAGS) -x c++ -fsyntax-only - >/dev/null 2>&1 && echo 1)
endif
ifeq ($(GBENCH)$(HAVE_GBENCH),1)
  $(error GBENCH=1, but $(CXX) finds no Google Benchmark (Debian: libbenchmark-dev); `make deps` installs it)
endif

# Backend ucx is a module of its own, which needs UCX's headers.
ifneq ($(UCX),0)
  HAVE_UCX := $(shell printf '%s\n' '$(HASH_SIGN)if !__has_include(<ucp/api/ucp.h>)' x '$(HASH_SIGN)endif' \
    | $(CC) $(CFLAGS) -x c -fsyntax-only - >/dev/null 2>&1 && echo 1)
endif
ifeq ($(UCX)$(HAVE_UCX),1)
  $(error UCX=1, but $(CC) finds no UCX (Debian: libucx-dev); `make deps` installs it)
endif

include ci/cuda.mk

SAN_address := -fsanitize=address -fno-omit-frame-pointer
SAN_undefined := -fsanitize=undefined -fno-sanitize-recover=all
SAN_thread := -fsanitize=thread
SAN_FLAGS := $(SAN_$(SAN))

# -Wno-format-truncation: snprintf may cut messages to their buffers on purpose.
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
  -Wwrite-strings -Wundef -Wno-unused-parameter -Wno-format-truncation \
  $(if $(filter 1,$(WERROR)),-Werror)
# -ffp-contract=off: every SIMD level must give the scalar result bit for bit.
BASE_CFLAGS := -std=gnu11 $(OPT) -D_GNU_SOURCE -Ilib -fno-math-errno -ffp-contract=off \
  -fvisibility=default -pthread -fPIC $(WARN) $(SAN_FLAGS) -DDDP_FAULTS=$(FAULTS) \
  -DDDP_GBENCH=$(or $(HAVE_GBENCH),0)
BASE_LDFLAGS := -pthread -rdynamic $(SAN_FLAGS)
BASE_LIBS := -lcjson -lz -lm -ldl

CC_ID := $(shell $(CC) --version 2>/dev/null | head -n 1)
FLAVOUR := $(CC) $(CC_ID) $(BASE_CFLAGS) $(CFLAGS) $(BASE_LDFLAGS) $(LDFLAGS) $(BASE_LIBS) \
  $(MPI_FLAVOURS) $(if $(HAVE_UCX),ucx) $(CUDA_FLAVOUR) $(if $(HAVE_GBENCH),$(CXX))
HASH := $(firstword $(shell printf '%s' $(call sq,$(FLAVOUR)) | cksum))
O := build/$(HASH)
