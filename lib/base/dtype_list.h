/* One row per element type:
 *
 *   DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)
 *
 *   symbol   the constant of enum ddp_dtype is DDP_<symbol>
 *   name     the canonical name of the type, a string
 *   aliases  other names, as one string: " float fp32 " (each between spaces). The first one is
 *            the name of the type in nccl-tests.
 *   type     the C type that holds an element
 *   kind     FLOAT, SIGNED or UNSIGNED
 *   digits   whole numbers up to 2^digits (floats) or below 2^digits (integers) are exact
 *   mean     the symbol of the type in which the partial sums of an average are sent. Integers of
 *            up to 32 bits use a wider type, so that the sums fit. The sums of 64-bit integers wrap
 *            around, because there is no wider type.
 *   mpi      the MPI type of elements in messages and in MPI's own reductions. There are two
 *            exceptions: floats of 16 and 8 bits are reduced by operations that backend mpi
 *            defines, and averages of integers of up to 32 bits are summed as MPI_INT64_T.
 *   nccl     the NCCL type; ncclNumTypes if NCCL has none
 *
 * The arithmetic is in device/cpu/kernels_cpu.inc.h and device/cuda/kernels_reduce.cu. */
DDP_DTYPE(F32, "f32", " float fp32 float32 ", float, FLOAT, 24, F32, MPI_FLOAT, ncclFloat32)
DDP_DTYPE(F16, "f16", " half fp16 float16 ", uint16_t, FLOAT, 11, F16, MPI_UINT16_T, ncclFloat16)
DDP_DTYPE(BF16, "bf16", " bfloat16 ", uint16_t, FLOAT, 8, BF16, MPI_UINT16_T, ncclBfloat16)
DDP_DTYPE(F64, "f64", " double fp64 float64 ", double, FLOAT, 53, F64, MPI_DOUBLE, ncclFloat64)
DDP_DTYPE(I32, "i32", " int32 int ", int32_t, SIGNED, 31, F64, MPI_INT32_T, ncclInt32)
DDP_DTYPE(U8, "u8", " uint8 ", uint8_t, UNSIGNED, 8, I32, MPI_UINT8_T, ncclUint8)
DDP_DTYPE(I8, "i8", " int8 ", int8_t, SIGNED, 7, I32, MPI_INT8_T, ncclInt8)
DDP_DTYPE(U32, "u32", " uint32 ", uint32_t, UNSIGNED, 32, F64, MPI_UINT32_T, ncclUint32)
DDP_DTYPE(I64, "i64", " int64 ", int64_t, SIGNED, 63, I64, MPI_INT64_T, ncclInt64)
DDP_DTYPE(U64, "u64", " uint64 ", uint64_t, UNSIGNED, 64, U64, MPI_UINT64_T, ncclUint64)
DDP_DTYPE(FP8_E4M3, "fp8-e4m3", " f8e4m3 float8_e4m3fn ", uint8_t, FLOAT, 4, FP8_E4M3, MPI_UINT8_T,
          ncclFloat8e4m3)
DDP_DTYPE(FP8_E5M2, "fp8-e5m2", " f8e5m2 float8_e5m2 ", uint8_t, FLOAT, 3, FP8_E5M2, MPI_UINT8_T,
          ncclFloat8e5m2)
