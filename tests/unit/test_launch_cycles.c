/* Starts and kills ranks again and again: nothing accumulates in the parent process. 20 cycles;
 * 1,000 with --full (`make torture`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch_board.h"

#define RANKS 3
/* malloc keeps up to this much; a leak of a few bytes per cycle adds up to more */
#define HEAP_SLACK 4096

static int cycles = 20;

/* Counts the entries of a folder, without those of MPI libraries, which other runs create and
 * remove. */
static int entries(const char *path)
{
    static const char *const foreign[] = {"vader_segment", "mpich", "sm_segment"};
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL; n++) {
        for (int i = 0; i < 3; i++)
            n -= strncmp(e->d_name, foreign[i], strlen(foreign[i])) == 0;
    }
    closedir(dir);
    return n;
}

static int maps(void)
{
    int n = 0;
    char line[512];
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        n++;
    fclose(file);
    return n;
}

/* Everything that could leak. heap: bytes in use, or 0 if a sanitizer manages the heap. */
struct traces {
    int files, threads, names, maps;
    size_t heap;
};

static struct traces look(void)
{
    return (struct traces){
        .files = entries("/proc/self/fd"),
        .threads = entries("/proc/self/task"),
        .names = entries("/dev/shm"),
        .maps = maps(),
        .heap = mallinfo2().uordblks,
    };
}

static int body(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg, struct ddp_err *err)
{
    const struct board *b = arg;
    void *memory;
    DDP_TRY(ddp_comm_alloc(comm, 1u << 20, &memory, err));
    memset(memory, 1, 1u << 20);
    for (int i = 0; b->signal != 0 || i < 50; i++) {
        if (comm->rank == b->victim && i == b->step && b->signal != 0) {
            signal(b->signal, SIG_DFL); /* removes the handlers of cmocka and of sanitizers */
            raise(b->signal);
        }
        DDP_TRY(ddp_comm_barrier(comm, err));
    }
    ddp_comm_free(comm, memory);
    return 0;
}

/* Runs one job that loses a rank and one that does not. */
static void cycle(struct board *b, int i)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err;
    int64_t took;
    *b = (struct board){.victim = i % RANKS, .step = i * 7 % 60, .signal = SIGKILL};
    assert_int_equal(
        launch(RANKS, (struct ranks_job){.body = body, .arg = b}, &outcome, &err, &took), 0);
    assert_int_equal(outcome.code, DDP_ELOST);
    assert_int_equal(outcome.rank, b->victim);
    b->signal = 0;
    assert_int_equal(
        launch(RANKS, (struct ranks_job){.body = body, .arg = b}, &outcome, &err, &took), 0);
    assert_int_equal(outcome.code, 0);
}

static void test_cycles(void **state)
{
    (void)state;
    struct board *b = new_board();
    for (int i = 0; i < 3; i++) { /* creates what is made only once, such as buffers of stdio */
        cycle(b, i);
        (void)look();
    }
    const struct traces before = look();
    const int64_t start = ddp_now_ns();
    for (int i = 0; i < cycles; i++)
        cycle(b, i);
    const struct traces after = look();
    print_message("# %d cycles in %.1f s\n", cycles, (double)(ddp_now_ns() - start) / 1e9);
    assert_int_equal(after.files, before.files);
    assert_int_equal(after.threads, before.threads);
    assert_int_equal(after.names, before.names);
    assert_int_equal(after.maps, before.maps);
    assert_in_range(after.heap, 0, before.heap + HEAP_SLACK);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    munmap(b, sizeof *b);
}

int main(int argc, char **argv)
{
    if (RANKS_TSAN) {
        print_message("1..0 # SKIP ranks as processes say nothing to ThreadSanitizer\n");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        cycles = 1000;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cycles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
