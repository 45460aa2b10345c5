/* Runs blocks as threads and their CUDA threads as fibers, behind cuda_runtime.h. */
#include "cuda_runtime.h"

#include <atomic>
#include <csetjmp>
#include <memory>
#include <mutex>
#include <thread>
#include <ucontext.h>
#include <vector>

namespace emulated
{
thread_local index thread_index, block_index, grid_size;

namespace
{
const size_t STACK_BYTES = 64 << 10;
const unsigned WORKERS = 4; /* blocks at a time; a test of look-back needs more than one */

struct fiber {
    jmp_buf at;
    ucontext_t start;
    std::unique_ptr<char[]> stack;
    bool begun, done;
};

/* The values that a warp's lanes exchange. Those of the exchange before last may be overwritten. */
struct warp {
    uint64_t value[2][32];
    unsigned arrived, meetings;
};

struct block {
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    const std::function<void(void)> *kernel;
    unsigned now, alive, arrived, meetings;
    jmp_buf collector;
};

thread_local block *here;

void enter(void);

/* Resumes fiber i. */
[[noreturn]] void go_on(unsigned i)
{
    fiber &f = here->fibers[i];
    here->now = i;
    thread_index.x = i;
    if (f.begun)
        _longjmp(f.at, 1);
    f.begun = true;
    getcontext(&f.start);
    f.start.uc_stack.ss_sp = f.stack.get();
    f.start.uc_stack.ss_size = STACK_BYTES;
    f.start.uc_link = nullptr;
    makecontext(&f.start, enter, 0);
    setcontext(&f.start);
    __builtin_unreachable();
}

unsigned next_alive(void)
{
    unsigned i = here->now;
    do {
        i = (i + 1) % (unsigned)here->fibers.size();
    } while (here->fibers[i].done);
    return i;
}

void enter(void)
{
    (*here->kernel)();
    here->fibers[here->now].done = true;
    if (--here->alive == 0)
        _longjmp(here->collector, 1);
    go_on(next_alive());
}

/* Lets the other fibers run. Fiber 0 also lets the threads of other blocks run. */
__attribute__((noinline)) void yield(void)
{
    if (here->now == 0)
        std::this_thread::yield();
    if (_setjmp(here->fibers[here->now].at) == 0)
        go_on(next_alive());
}

__attribute__((noinline)) void run_block(block *b)
{
    for (fiber &f : b->fibers)
        f.begun = f.done = false;
    for (warp &w : b->warps)
        w.arrived = w.meetings = 0;
    b->alive = (unsigned)b->fibers.size();
    b->arrived = b->meetings = 0;
    here = b;
    if (_setjmp(b->collector) == 0)
        go_on(0);
}

/* The stacks that no fiber uses. A new stack costs page faults, so launches share them. */
std::vector<std::unique_ptr<char[]>> spare_stacks;
std::mutex spare_mutex;

void take_stacks(block *b)
{
    const std::lock_guard<std::mutex> guard(spare_mutex);
    for (fiber &f : b->fibers) {
        if (spare_stacks.empty()) {
            f.stack.reset(new char[STACK_BYTES]);
        } else {
            f.stack = std::move(spare_stacks.back());
            spare_stacks.pop_back();
        }
    }
}

void return_stacks(block *b)
{
    const std::lock_guard<std::mutex> guard(spare_mutex);
    for (fiber &f : b->fibers)
        spare_stacks.push_back(std::move(f.stack));
}

void work(unsigned grid, unsigned threads, const std::function<void(void)> *kernel,
          std::atomic<unsigned> *next)
{
    block b;
    b.fibers.resize(threads);
    b.warps.resize((threads + 31) / 32);
    b.kernel = kernel;
    take_stacks(&b);
    grid_size.x = grid;
    while ((block_index.x = next->fetch_add(1)) < grid)
        run_block(&b);
    return_stacks(&b);
}
} // namespace

unsigned lane(void)
{
    return here->now % 32;
}

const uint64_t *exchange(uint64_t mine)
{
    warp &w = here->warps[here->now / 32];
    const unsigned meeting = w.meetings;
    w.value[meeting % 2][here->now % 32] = mine;
    if (++w.arrived == 32) {
        w.arrived = 0;
        w.meetings++;
    }
    while (w.meetings == meeting)
        yield();
    return w.value[meeting % 2];
}

void meet_block(void)
{
    const unsigned meeting = here->meetings;
    if (++here->arrived == here->fibers.size()) {
        here->arrived = 0;
        here->meetings++;
    }
    while (here->meetings == meeting)
        yield();
}

void launch(unsigned grid, unsigned threads, size_t, const void *,
            const std::function<void(void)> &kernel)
{
    std::atomic<unsigned> next{0};
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < std::min(grid, WORKERS); i++)
        workers.emplace_back(work, grid, threads, &kernel, &next);
    for (std::thread &t : workers)
        t.join();
}
} // namespace emulated
