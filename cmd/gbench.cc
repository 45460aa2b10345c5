/* The only file that includes Google Benchmark (1.7 or later). */
#include "run/gbench.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <new>

namespace
{

bool out_of_memory;

/* Times one case in wall time, so that all cases can be compared. If the input must be restored
 * before each run, only the runs are timed. */
void run_case(benchmark::State &state, const ddp_gbench_case &c)
{
    using clock = std::chrono::steady_clock;
    if (c.begin(c.arg) != 0) {
        out_of_memory = true;
        state.SkipWithError("out of memory");
        return;
    }
    if (c.restore == nullptr) {
        for (auto _ : state) {
            c.run(c.arg);
            benchmark::ClobberMemory();
        }
    } else {
        for (auto _ : state) {
            c.restore(c.arg);
            const auto start = clock::now();
            c.run(c.arg);
            benchmark::ClobberMemory();
            state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
        }
    }
    const auto runs = static_cast<double>(state.iterations());
    state.SetBytesProcessed(static_cast<int64_t>(runs * c.bytes(c.arg)));
    state.SetItemsProcessed(static_cast<int64_t>(runs * c.items(c.arg)));
    state.SetLabel(c.label);
}

} // namespace

void ddp_gbench_flags(int *argc, char **argv, void (*bad_flag)(void))
{
    benchmark::Initialize(argc, argv, bad_flag);
}

void ddp_gbench_context(const char *key, const char *value)
{
    benchmark::AddCustomContext(key, value);
}

ddp_gbench_end ddp_gbench_run(const ddp_gbench_case *cases, size_t count)
try {
    for (size_t i = 0; i < count; i++) {
        const ddp_gbench_case *c = &cases[i];
        auto *b = benchmark::RegisterBenchmark(
            c->name, [c](benchmark::State &state) { run_case(state, *c); });
        if (c->restore == nullptr)
            b->UseRealTime();
        else
            b->UseManualTime();
    }
    const size_t ran = benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    std::cout.flush();
    if (out_of_memory)
        return DDP_GBENCH_NO_MEMORY;
    if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return DDP_GBENCH_NO_OUTPUT;
    return ran > 0 ? DDP_GBENCH_DONE : DDP_GBENCH_NONE;
} catch (const std::bad_alloc &) {
    return DDP_GBENCH_NO_MEMORY;
}
