// Measures Gloo over TCP for peers.py. The ranks are child processes on the loopback interface.
// Each iteration calls gloo::barrier, reads the clock, runs the operation, reads the clock, and
// calls gloo::barrier again before the buffers are rewritten. Its time is that of the slowest rank.
// Elements are f32; all-reduce and broadcast run in place.
//
// usage: gloo_loop COLLECTIVE ALGORITHM RANKS ITERS WARMUP SIZE...
// Prints one line per size: SIZE, the mean time of each rank, and the times of all iterations, in
// us.
// COLLECTIVE: allreduce (ALGORITHM ring, bcube or hd), all-gather, broadcast, all-to-all (default).
// SIZE: the bytes of the full buffer, as in ddpbench.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace
{

const size_t join_from_bytes = 64 << 10; // DDP_ITERATIONS_JOIN_BYTES

struct Job {
    std::string collective, algorithm;
    int ranks = 0, iters = 0, warmup = 0;
    std::vector<size_t> sizes;
};

// Creates the operation on this rank's buffers; called once per size.
std::function<void()> make_operation(const Job &job, const std::shared_ptr<gloo::Context> &context,
                                     std::vector<float> &a, std::vector<float> &b)
{
    const size_t part = a.size() / job.ranks;
    if (job.collective == "allreduce" && job.algorithm == "hd") {
        auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
            context, std::vector<float *>{a.data()}, static_cast<int>(a.size()));
        return [algorithm] { algorithm->run(); };
    }
    if (job.collective == "allreduce")
        return [&job, context, &a] {
            gloo::AllreduceOptions o(context);
            o.setAlgorithm(job.algorithm == "ring" ? gloo::AllreduceOptions::Algorithm::RING
                                                   : gloo::AllreduceOptions::Algorithm::BCUBE);
            o.setOutput(a.data(), a.size());
            o.setReduceFunction([](void *c, const void *x, const void *y, size_t n) {
                gloo::sum<float>(c, x, y, n);
            });
            gloo::allreduce(o);
        };
    if (job.collective == "broadcast")
        return [context, &a] {
            gloo::BroadcastOptions o(context);
            o.setRoot(0);
            o.setOutput(a.data(), a.size());
            gloo::broadcast(o);
        };
    if (job.collective == "all-gather")
        return [context, &a, &b, part, &job] {
            gloo::AllgatherOptions o(context);
            o.setInput(a.data(), part);
            o.setOutput(b.data(), part * job.ranks);
            gloo::allgather(o);
        };
    if (job.collective == "all-to-all")
        return [context, &a, &b, part, &job] {
            gloo::AlltoallOptions o(context);
            o.setInput(a.data(), part * job.ranks);
            o.setOutput(b.data(), part * job.ranks);
            gloo::alltoall(o);
        };
    return nullptr;
}

// times: [sizes][ranks][iters], shared with the parent.
void run_rank(const Job &job, int rank, const std::string &folder, double *times)
{
    gloo::transport::tcp::attr attr;
    attr.iface = "lo";
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, job.ranks);
    context->connectFullMesh(store, device);
    for (size_t s = 0; s < job.sizes.size(); s++) {
        const size_t count = std::max<size_t>(job.sizes[s] / sizeof(float), job.ranks);
        std::vector<float> a(count, 1), b(count, 1), kept(count, 1);
        auto operation = make_operation(job, context, a, b);
        double *mine = times + (s * job.ranks + rank) * job.iters;
        for (int i = -job.warmup; i < job.iters; i++) {
            memcpy(a.data(), kept.data(), count * sizeof(float));
            gloo::BarrierOptions barrier(context);
            gloo::barrier(barrier);
            const auto begin = std::chrono::steady_clock::now();
            operation();
            const std::chrono::duration<double, std::micro> took =
                std::chrono::steady_clock::now() - begin;
            if (i >= 0)
                mine[i] = took.count();
            if (count * sizeof(float) >= join_from_bytes)
                gloo::barrier(barrier);
        }
    }
}

void print_size(const Job &job, const double *times, size_t s)
{
    const double *first = times + s * job.ranks * job.iters;
    printf("%zu", job.sizes[s]);
    for (int r = 0; r < job.ranks; r++) {
        const double *mine = first + static_cast<size_t>(r) * job.iters;
        printf(" %.4f", std::accumulate(mine, mine + job.iters, 0.0) / job.iters);
    }
    for (int i = 0; i < job.iters; i++) {
        double slowest = 0;
        for (int r = 0; r < job.ranks; r++)
            slowest = std::max(slowest, first[r * job.iters + i]);
        printf(" %.3f", slowest);
    }
    printf("\n");
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "usage: gloo_loop COLLECTIVE ALGORITHM RANKS ITERS WARMUP SIZE...\n");
        return 64;
    }
    Job job;
    job.collective = argv[1];
    job.algorithm = argv[2];
    job.ranks = static_cast<int>(strtol(argv[3], nullptr, 10));
    job.iters = static_cast<int>(strtol(argv[4], nullptr, 10));
    job.warmup = static_cast<int>(strtol(argv[5], nullptr, 10));
    for (int i = 6; i < argc; i++)
        job.sizes.push_back(strtoull(argv[i], nullptr, 10));
    const size_t bytes = sizeof(double) * job.sizes.size() * job.ranks * job.iters;
    void *times = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *tmp = getenv("TMPDIR");
    std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/gloo_loop.XXXXXX";
    if (times == MAP_FAILED || mkdtemp(folder.data()) == nullptr) {
        perror("gloo_loop");
        return 71;
    }
    for (int r = 0; r < job.ranks; r++)
        if (fork() == 0) {
            try {
                run_rank(job, r, folder, static_cast<double *>(times));
            } catch (const std::exception &e) {
                fprintf(stderr, "gloo_loop: %s\n", e.what());
                _exit(1);
            }
            _exit(0);
        }
    bool good = true;
    for (int r = 0, status; r < job.ranks; r++)
        good = wait(&status) > 0 && status == 0 && good;
    const std::string clean = "rm -rf '" + folder + "'";
    if (system(clean.c_str()) != 0)
        fprintf(stderr, "gloo_loop: %s stays\n", folder.c_str());
    for (size_t s = 0; good && s < job.sizes.size(); s++)
        print_size(job, static_cast<const double *>(times), s);
    return good ? 0 : 1;
}
