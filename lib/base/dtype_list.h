/* One row per element type:
 *
 *   DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)
 *
 *   symbol   the constant of enum ddp_dtype is DDP_<symbol>
 *   name     the canonical name of the type
 *   aliases  other names, as one string: " float fp32 " (each between spaces)
 *   type     the C type that holds an element
 *   kind     FLOAT, SIGNED or UNSIGNED
 *   digits   whole numbers up to 2^digits (floats) or below 2^digits (integers) are exact
 *   mean     the symbol of the type in which the partial sums of an average are sent. For integers
 *            it is a wider type, so that the sums fit.
 *   mpi      the MPI type of elements in messages. MPI's reductions use it too, except for 16-bit
 *            floats.
 *   nccl     the NCCL type; ncclNumTypes if NCCL has none
 *
 * The arithmetic is in device/cpu/kernels_cpu.inc.h and device/cuda/kernels_reduce.cu. */
DDP_DTYPE(F32, f32, " float fp32 float32 ", float, FLOAT, 24, F32, MPI_FLOAT, ncclFloat32)
DDP_DTYPE(F16, f16, " half fp16 float16 ", uint16_t, FLOAT, 11, F16, MPI_UINT16_T, ncclFloat16)
DDP_DTYPE(BF16, bf16, " bfloat16 ", uint16_t, FLOAT, 8, BF16, MPI_UINT16_T, ncclBfloat16)
DDP_DTYPE(F64, f64, " double fp64 float64 ", double, FLOAT, 53, F64, MPI_DOUBLE, ncclFloat64)
DDP_DTYPE(I32, i32, " int int32 ", int32_t, SIGNED, 31, F64, MPI_INT32_T, ncclInt32)
DDP_DTYPE(U8, u8, " uint8 ", uint8_t, UNSIGNED, 8, I32, MPI_UINT8_T, ncclUint8)
