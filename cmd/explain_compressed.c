/* `ddpbench explain effective` and `ddpbench explain break-even`. */
#include "explain_compressed.h"

#include "base/mem.h"
#include "bench/break_even.h"
#include "record/record.h"

/* The worked example: topk:0.01 of 64 MiB on 4 ranks takes 40 ms. */
enum { EXAMPLE_RANKS = 4 };
static const double example_ns = 40e6;
static const uint64_t example_bytes = 64u << 20;

static void example_point(struct ddp_point *p)
{
    ddp_point_init(p);
    p->spec.coll = DDP_ALLREDUCE;
    p->spec.ranks = EXAMPLE_RANKS;
    p->spec.size_bytes = example_bytes;
    p->spec.count = example_bytes / sizeof(float);
    snprintf(p->spec.compress, sizeof p->spec.compress, "topk:0.01");
}

void ddp_explain_effective(FILE *out)
{
    struct ddp_point p;
    example_point(&p);
    fputs("A compressed or partial all-reduce moves fewer bytes than the buffer has, so its bus\n"
          "bandwidth would mean nothing. Its effective bandwidth (eff, effective_GBps) is the\n"
          "bus bandwidth that a dense all-reduce would need to finish in the same time:\n"
          "\n"
          "    effective = S / t * 2(n-1)/n    S: bytes of the dense f32 buffer, n: ranks,\n"
          "                                    t: encode + exchange + decode\n"
          "\n",
          out);
    fprintf(out,
            "Example: topk:0.01 of 64 MiB on %d ranks takes %.0f ms:\n"
            "    %llu / %.3f s * %.2f = %.2f GB/s\n"
            "\n",
            EXAMPLE_RANKS, example_ns / 1e6, (unsigned long long)example_bytes, example_ns / 1e9,
            ddp_coll_busbw_factor(DDP_ALLREDUCE, EXAMPLE_RANKS),
            ddp_point_effective_GBps(&p, example_ns));
    fputs("Compare it with the busbw (`ddpbench explain busbw`) of a dense all-reduce of the\n"
          "same size and ranks: the larger one is faster. `x f32` and `x f16` are that\n"
          "comparison, with dense exchanges that were measured directly beside the point.\n"
          "\n"
          "phase_us: the times of encode (select or convert, with error feedback), exchange and\n"
          "decode. Each is the median of the slowest rank's times, so they need not add up to\n"
          "the total. sent, wire_bytes_per_rank: the bytes of the rank that sent most. They are\n"
          "counted for messages; where ranks read each other's memory, they are the bytes that\n"
          "other ranks read; on GPUs they are a model of what a ring would send. density: the\n"
          "fraction of its values that a rank sent. --partial K divides it by K, or by the\n"
          "number of elements if that is smaller. overflows: finite values\n"
          "that became infinite in 16 bits.\n",
          out);
}

static void print_densities(FILE *out)
{
    static const int ranks[] = {2, 4, 8, 16};
    const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms();
    struct ddp_point p;
    example_point(&p);
    fprintf(out, "%-12s", "by bytes");
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++)
        fprintf(out, " %8s%2d", "n = ", ranks[i]);
    fputc('\n', out);
    for (; *a; a++) {
        struct ddp_coll_cost cost = {0};
        bool exact;
        (*a)->cost(2, p.spec.count, 1, &cost, &exact);
        if (cost.sent_bytes <= 0)
            continue; /* without messages, ranks read each other's memory */
        fprintf(out, "%-12s", (*a)->name);
        for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
            p.spec.ranks = ranks[i];
            fprintf(out, "  %.2f/%.2f",
                    ddp_break_even_predicted(*a, ranks[i], p.spec.count,
                                             ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F32)),
                    ddp_break_even_predicted(*a, ranks[i], p.spec.count,
                                             ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F16)));
        }
        fputc('\n', out);
    }
}

void ddp_explain_break_even(FILE *out)
{
    fputs("The break-even density of a sparse exchange (topk, threshold, oktopk) is the share\n"
          "of values below which it takes less time than a dense one. 0 means that it never\n"
          "does, 1 that it always does. It is given against dense f32 and against fp16. The\n"
          "second is the fairer comparison, because fp16 halves the bytes at almost no cost.\n"
          "\n"
          "predicted   from bytes alone. A dense ring sends 2 (n-1)/n S bytes per rank. To send\n"
          "            every rank's k of N values with their indices to all others takes\n"
          "            8 k (n-1) bytes per rank, so k/N = 1/n against f32 and 1/(2n) against\n"
          "            fp16. Above a density of 1/32 a bitmap is smaller than indices, and k/N\n"
          "            against f32 is about 2/n - 1/32.\n"
          "estimated   from the times of this point, assuming that encode costs the same at\n"
          "            every density, and exchange and decode grow in proportion to it.\n"
          "measured    with --break-even: the exchange is timed at densities from 1e-4 to 1,\n"
          "            and the point where it crosses the dense times is found by bisection.\n"
          "\n",
          out);
    print_densities(out);
    fputs("(against f32/against fp16)\n"
          "\n"
          "If compression does not pay off, the table names the link speed below which it\n"
          "would: the bytes that it saves against a dense ring, divided by the extra time of\n"
          "its arithmetic (encode and decode or, over shared memory, where no data crosses a\n"
          "link, the difference of the two times). Shared memory is so fast that compression\n"
          "seldom pays off there.\n"
          "Sources: Li & Hoefler, Ok-Topk, PPoPP 2022; Agarwal et al., On the Utility of\n"
          "Gradient Compression, MLSys 2022 (it won in 6 of 200 set-ups).\n",
          out);
}
