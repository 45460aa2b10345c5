# CUDA=0 never builds with CUDA, 1 requires it, auto uses it when found. NVCC= names the compiler;
# otherwise CUDA_HOME, CUDA_PATH, the PATH and the usual prefixes are searched.
#
# Sources: with CUDA, the .cu files of lib/ and dev_cuda*.c become the module ddpbench-cuda.so, which
# contains the CUDA runtime. The program opens the module when it first uses a GPU. The other C files
# whose name contains _cuda or _nccl need headers of CUDA or NCCL, and are part of the program. Without
# the headers, *_cuda_absent.c and *_nccl_absent.c are built instead; they keep the names in the lists
# and report why they cannot be used. The layers need cuBLAS's header and use cuDNN if its header is found.
# A part whose compiler or header is too old is left out as well (ci/probe_cuda.sh); CUDA_NOTES says why.

ifneq ($(CUDA),0)
  NVCC ?= $(firstword $(wildcard $(patsubst %,%/bin/nvcc,$(CUDA_HOME) $(CUDA_PATH))) \
    $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc) \
    $(lastword $(sort $(wildcard /usr/local/cuda-*/bin/nvcc))))
  CUDA_NVCC := $(shell command -v $(NVCC) 2>/dev/null)
  CUDA_ROOTS := $(patsubst %/bin/nvcc,%,$(CUDA_NVCC) $(realpath $(CUDA_NVCC))) $(CUDA_HOME) $(CUDA_PATH)
  # Finds a file of the toolkit. $1: its paths below CUDA_ROOTS. $2: its paths in distributions' packages.
  cuda_file = $(firstword $(wildcard $(foreach r,$(CUDA_ROOTS),$(foreach d,$1,$r/$d))) $(wildcard $2))
  CUDA_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cuda_runtime_api.h \
    targets/*/include/cuda_runtime_api.h,/usr/include/cuda_runtime_api.h))
  CUDA_ARCHIVE := $(if $(CUDA_NVCC),$(call cuda_file,lib64/libcudart_static.a lib/libcudart_static.a \
    targets/*/lib/libcudart_static.a,/usr/lib/*/libcudart_static.a))
  CUBLAS_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cublas_v2.h targets/*/include/cublas_v2.h,/usr/include/cublas_v2.h))
  CUDNN_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cudnn.h,/usr/include/cudnn.h /usr/include/*/cudnn.h /usr/local/include/cudnn.h))
  NCCL_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/nccl.h,/usr/include/nccl.h /usr/local/include/nccl.h))
endif

# The reason why CUDA is left out; empty if CUDA is built.
ifeq ($(CUDA),0)
  NO_CUDA := CUDA=0
else ifeq ($(CUDA_NVCC),)
  NO_CUDA := $(if $(NVCC),there is no $(NVCC),no nvcc is on the PATH, in CUDA_HOME or in the usual prefixes)
else ifeq ($(and $(CUDA_HEADER),$(CUDA_ARCHIVE)),)
  NO_CUDA := $(CUDA_NVCC) has no $(if $(CUDA_HEADER),libcudart_static.a,cuda_runtime_api.h)
else
  # Machine code for A100, H100 and, if nvcc knows them, B200 and RTX 50; PTX that the driver compiles
  # for later GPUs.
  CUDA_ARCHS ?= 80 90 $(patsubst compute_%,%,$(filter compute_100 compute_120,$(shell $(CUDA_NVCC) --list-gpu-arch 2>/dev/null)))
  NO_CUDA := $(shell ci/probe_cuda.sh nvcc $(CUDA_NVCC) -ccbin '$(CXX)' $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a))
endif
ifeq ($(CUDA)$(if $(NO_CUDA),0,1),10)
  $(error CUDA=1, but $(NO_CUDA); install the CUDA toolkit (nvcc 12.1 or later), or name it: NVCC=.../bin/nvcc)
endif
HAVE_CUDA := $(if $(NO_CUDA),0,1)
# $1: nccl or cudnn. $2: its header.
probe_header = $(if $2,$(shell ci/probe_cuda.sh $1 '$(CC)' $2 -I$(dir $(CUDA_HEADER))),no $1.h was found)
ifeq ($(HAVE_CUDA),1)
  NO_NCCL := $(call probe_header,nccl,$(NCCL_HEADER))
  NO_CUBLAS := $(if $(CUBLAS_HEADER),,no cublas_v2.h was found)
  NO_CUDNN := $(if $(NO_CUBLAS),,$(call probe_header,cudnn,$(CUDNN_HEADER)))
endif
HAVE_NCCL := $(if $(filter 1,$(HAVE_CUDA)),$(if $(NO_NCCL),0,1),0)
HAVE_CUBLAS := $(if $(filter 1,$(HAVE_CUDA)),$(if $(NO_CUBLAS),0,1),0)
HAVE_CUDNN := $(if $(filter 1,$(HAVE_CUBLAS)),$(if $(NO_CUDNN),0,1),0)
# Printed when a build folder is made. A machine without nvcc is no reason for a note.
cuda_note = $(if $2,$(call sq,note: $1 is left out: $2))
CUDA_NOTES := $(if $(CUDA_NVCC),$(call cuda_note,CUDA,$(NO_CUDA))) $(call cuda_note,backend nccl,$(NO_NCCL)) \
  $(call cuda_note,train --device cuda,$(NO_CUBLAS)) $(call cuda_note,cuDNN,$(NO_CUDNN))

ifeq ($(HAVE_CUDA),1)
  CUDA_GENCODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
  # --fmad=false, with the default IEEE division and square root, gives the same bits as the processor.
  # Without exceptions and guards of static objects the host code needs no C++ library.
  NVCC_FLAGS = -std=c++17 -O3 -lineinfo --fmad=false -ccbin $(CXX) -Ilib -include base/banned.h $(CUDA_GENCODE) \
    $(if $(filter 1,$(WERROR)),-Werror all-warnings -Xcompiler -Werror) \
    -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-fPIC,-fno-exceptions,-fno-threadsafe-statics,-fno-asynchronous-unwind-tables
  # The folders of NCCL and cuDNN come first, because the toolkit's folder may hold other versions.
  CUDA_INCLUDE := $(filter-out -isystem/usr/include,$(addprefix -isystem,$(patsubst %/,%, \
    $(dir $(if $(NO_NCCL),,$(NCCL_HEADER)) $(if $(NO_CUDNN),,$(CUDNN_HEADER)) $(CUDA_HEADER) $(CUBLAS_HEADER)))))
  CUDA_VERSION := $(shell $(CUDA_NVCC) --version | sed -n 's/^Cuda.*V\([0-9.]*\)/\1/p')
endif
CUDA_FLAVOUR := $(CUDA) $(HAVE_CUDA) $(HAVE_NCCL) $(HAVE_CUBLAS) $(HAVE_CUDNN) $(CUDA_NVCC) $(CUDA_VERSION) $(CUDA_GENCODE)

# cuda_named and nccl_named select the sources of $1 that depend on CUDA and on NCCL; cuda_choose and
# cuda_layers leave out the sources of $1 that this build cannot or need not compile.
cuda_named = $(foreach f,$1,$(if $(findstring _cuda,$(notdir $f)),$f))
nccl_named = $(foreach f,$1,$(if $(findstring _nccl.,$(notdir $f))$(findstring _nccl_,$(notdir $f)),$f))
cuda_choose = $(filter-out $(filter lib/device/%,$(foreach f,$1,$(if $(filter dev_cuda%,$(notdir $f)),$f))) \
  $(if $(filter 1,$(HAVE_CUDA)),,$(filter-out %_absent.c,$(call cuda_named,$1))) \
  $(if $(filter 1,$(HAVE_NCCL)),%_nccl_absent.c,$(filter-out %_absent.c,$(call nccl_named,$1))),$1)
cuda_layers = $(filter-out $(if $(filter 1,$(HAVE_CUBLAS)),%/layers_cuda_absent.c,%/layers_cuda.c %/layers_cuda_cudnn.c),$1)
CU_SRC := $(if $(filter 1,$(HAVE_CUDA)),$(wildcard lib/*/*.cu lib/*/*/*.cu))

# tests/nccl runs backend nccl without a GPU: the folder $(O)/tests/nccl contains a module with a fake
# GPU, and fake libraries of NCCL, cuBLAS and cuDNN.
FAKE_GPU = $(if $(filter 1,$(HAVE_NCCL)),$(addprefix $(O)/tests/nccl/,ddpbench-cuda.so libnccl.so.2 old/libnccl.so.2 \
  $(if $(filter 1,$(HAVE_CUBLAS)),libcublas.so) $(if $(filter 1,$(HAVE_CUDNN)),libcudnn.so)) \
  $(if $(filter 1,$(HAVE_CUBLAS)),$(O)/tests/gpu/test_gpu_layers))
