# CUDA: 0 never, 1 must, auto when found. NVCC= names a compiler; without it CUDA_HOME, CUDA_PATH, the
# PATH and the usual prefixes are searched. Nothing of CUDA is loaded by a binary that is not asked
# for it: the runtime is linked statically, and that opens the driver when first called.
#
# Sources: lib/*/*.cu, and C files whose name holds _cuda (_nccl: NCCL's header, too), are built with
# it; without it the files *_cuda_absent.c (*_nccl_absent.c) keep the names in lists and say why. The
# layers need cuBLAS's header (else layers_cuda_absent.c), and use cuDNN's where it is there.

ifneq ($(CUDA),0)
  NVCC ?= $(firstword $(wildcard $(patsubst %,%/bin/nvcc,$(CUDA_HOME) $(CUDA_PATH))) \
    $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc) \
    $(lastword $(sort $(wildcard /usr/local/cuda-*/bin/nvcc))))
  CUDA_NVCC := $(shell command -v $(NVCC) 2>/dev/null)
  CUDA_ROOTS := $(patsubst %/bin/nvcc,%,$(CUDA_NVCC) $(realpath $(CUDA_NVCC))) $(CUDA_HOME) $(CUDA_PATH)
  # What a file of the toolkit is called: $1 below one of its folders, $2 where distributions have it.
  cuda_file = $(firstword $(wildcard $(foreach r,$(CUDA_ROOTS),$(foreach d,$1,$r/$d))) $(wildcard $2))
  CUDA_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cuda_runtime_api.h \
    targets/*/include/cuda_runtime_api.h,/usr/include/cuda_runtime_api.h))
  CUDA_ARCHIVE := $(if $(CUDA_NVCC),$(call cuda_file,lib64/libcudart_static.a lib/libcudart_static.a \
    targets/*/lib/libcudart_static.a,/usr/lib/*/libcudart_static.a))
  CUBLAS_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cublas_v2.h targets/*/include/cublas_v2.h,/usr/include/cublas_v2.h))
  CUDNN_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/cudnn.h,/usr/include/cudnn.h /usr/include/*/cudnn.h /usr/local/include/cudnn.h))
  NCCL_HEADER := $(if $(CUDA_NVCC),$(call cuda_file,include/nccl.h,/usr/include/nccl.h /usr/local/include/nccl.h))
endif

HAVE_CUDA := $(if $(and $(CUDA_NVCC),$(CUDA_HEADER),$(CUDA_ARCHIVE)),1,0)
HAVE_NCCL := $(if $(and $(filter 1,$(HAVE_CUDA)),$(NCCL_HEADER)),1,0)
HAVE_CUBLAS := $(if $(and $(filter 1,$(HAVE_CUDA)),$(CUBLAS_HEADER)),1,0)
HAVE_CUDNN := $(if $(and $(filter 1,$(HAVE_CUBLAS)),$(CUDNN_HEADER)),1,0)
ifeq ($(CUDA)$(HAVE_CUDA),10)
  $(error CUDA=1, but $(if $(CUDA_NVCC),$(CUDA_NVCC) has no $(if $(CUDA_HEADER),libcudart_static.a,cuda_runtime_api.h),$(if \
    $(NVCC),there is no $(NVCC),no nvcc is on the PATH, in CUDA_HOME or in the usual prefixes)); install the CUDA toolkit, or name it: NVCC=.../bin/nvcc)
endif

ifeq ($(HAVE_CUDA),1)
  # Code of the A100's and the H100's generation, and PTX that drivers compile for later ones.
  CUDA_ARCHS ?= 80 90
  CUDA_GENCODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
  # --fmad=false, and IEEE division and roots as they are by default: the bits of the processor.
  # No exceptions, no guards of static objects: the host half needs no C++ library then.
  NVCC_FLAGS = -std=c++17 -O3 -lineinfo --fmad=false -ccbin $(CXX) -Ilib $(CUDA_GENCODE) \
    $(if $(filter 1,$(WERROR)),-Werror all-warnings -Xcompiler -Werror) \
    -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-fPIC,-fno-exceptions,-fno-threadsafe-statics,-fno-asynchronous-unwind-tables
  CUDA_INCLUDE := $(filter-out -isystem/usr/include,$(addprefix -isystem,$(sort $(patsubst %/,%, \
    $(dir $(CUDA_HEADER) $(NCCL_HEADER) $(CUBLAS_HEADER) $(CUDNN_HEADER))))))
  # --exclude-libs: libraries that are loaded later bring a runtime of their own.
  CUDA_LIBS := $(CUDA_ARCHIVE) -Wl,--exclude-libs,libcudart_static.a -lrt
  CUDA_VERSION := $(shell $(CUDA_NVCC) --version | sed -n 's/^Cuda.*V\([0-9.]*\)/\1/p')
endif
CUDA_FLAVOUR := $(CUDA) $(HAVE_CUDA) $(HAVE_NCCL) $(HAVE_CUBLAS) $(HAVE_CUDNN) $(CUDA_NVCC) $(CUDA_VERSION) $(CUDA_GENCODE)

# Of the sources $1, those that are built.
cuda_named = $(foreach f,$1,$(if $(findstring _cuda,$(notdir $f)),$f))
nccl_named = $(foreach f,$1,$(if $(findstring _nccl.,$(notdir $f))$(findstring _nccl_,$(notdir $f)),$f))
cuda_choose = $(filter-out $(if $(filter 1,$(HAVE_CUDA)),%/dev_cuda_absent.c %/nn_stream_cuda_absent.c,$(filter-out %_absent.c,$(call cuda_named,$1))) \
  $(if $(filter 1,$(HAVE_NCCL)),%_nccl_absent.c,$(filter-out %_absent.c,$(call nccl_named,$1))),$1)
# Layers on GPUs: $1 sources.
cuda_layers = $(filter-out $(if $(filter 1,$(HAVE_CUBLAS)),%/layers_cuda_absent.c,%/layers_cuda.c %/layers_cuda_load.c) \
  $(if $(filter 1,$(HAVE_CUDNN)),%/layers_cuda_cudnn_absent.c,%/layers_cuda_cudnn.c),$1)
CU_SRC := $(if $(filter 1,$(HAVE_CUDA)),$(wildcard lib/*/*.cu))

# Backend nccl where there is no GPU: the binary with a device that is none in place of device cuda, and
# an NCCL that is none beside it. For tests/nccl.
FAKE_GPU = $(if $(filter 1,$(HAVE_NCCL)),$(O)/tests/nccl/ddpbench $(O)/tests/nccl/libnccl.so.2)
