# Knobs: what is built, with what. MPI, CUDA, GBENCH: 0 never, 1 must, auto when found.

$(foreach k,MPI CUDA GBENCH,$(if $(filter 0 1 auto,$($k)),,$(error $k=$($k) is not 0, 1 or auto)))
$(foreach k,WERROR FAULTS V,$(if $(filter 0 1,$($k)),,$(error $k=$($k) is not 0 or 1)))

VERSION := 0.1.0
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

# Each MPI becomes a module of its own: found by its wrapper compiler's name.
ifneq ($(MPI),0)
  MPICC_openmpi := $(shell command -v mpicc.openmpi 2>/dev/null)
  MPICC_mpich := $(shell command -v mpicc.mpich 2>/dev/null)
endif
MPI_FLAVOURS ?= $(if $(MPICC_openmpi),openmpi) $(if $(MPICC_mpich),mpich)
ifeq ($(MPI),1)
  ifeq ($(strip $(MPI_FLAVOURS)),)
    $(error MPI=1, but neither mpicc.openmpi nor mpicc.mpich is installed; `make deps` installs both)
  endif
endif

SAN_address := -fsanitize=address -fno-omit-frame-pointer
SAN_undefined := -fsanitize=undefined -fno-sanitize-recover=all
SAN_thread := -fsanitize=thread
SAN_FLAGS := $(if $(SAN),$(or $(SAN_$(SAN)),$(error SAN=$(SAN) is not address, undefined or thread)))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
  -Wwrite-strings -Wundef -Wno-unused-parameter $(if $(filter 1,$(WERROR)),-Werror)
# -ffp-contract=off: every SIMD level must give the scalar result bit for bit.
BASE_CFLAGS := -std=gnu11 $(OPT) -D_GNU_SOURCE -Ilib -fno-math-errno -ffp-contract=off \
  -fvisibility=default -pthread -fPIC $(WARN) $(SAN_FLAGS) -DDDP_FAULTS=$(FAULTS)
BASE_LDFLAGS := -pthread -rdynamic $(SAN_FLAGS)
BASE_LIBS := -lcjson -lz -lm -ldl

CC_ID := $(shell $(CC) --version 2>/dev/null | head -n 1)
HASH := $(firstword $(shell printf '%s' '$(CC_ID) $(BASE_CFLAGS) $(CFLAGS) $(BASE_LDFLAGS) $(LDFLAGS) $(MPI_FLAVOURS) $(CUDA) $(GBENCH)' | cksum))
O := build/$(HASH)
