/* A BLAS library that never returns from its second product, as OpenBLAS does when the system
 * refuses its buffer. */
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    static volatile int calls;
    (void)order, (void)trans_a, (void)trans_b, (void)alpha, (void)beta;
    while (calls > 0)
        continue;
    calls = 1;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++)
                sum += a[i * lda + l] * b[l * ldb + j];
            c[i * ldc + j] = sum;
        }
    }
}
