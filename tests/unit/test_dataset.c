/* Data sets: a folder of four files is read in each spelling; files that do not match each other
 * are rejected. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/rng.h"
#include "idx_files.h"
#include "model/dataset.h"
#include "names.h"

enum { SIDE = 6, TRAIN = 5, EVAL = 3 };

#define MADE_HASH 0xfd5177efc733d66au

static const struct ddp_dataset_request anywhere = {.dir = NULL};

static void write_images(const char *path, uint32_t count, uint32_t side, int gzip)
{
    uint8_t file[16 + 8 * SIDE * SIDE];
    const uint32_t dims[] = {count, side, side};
    size_t n = idx_header(file, 3, dims);
    for (uint32_t i = 0; i < count * side * side; i++)
        file[n++] = (uint8_t)(i * 7);
    (gzip ? write_gzip : write_plain)(path, file, n);
}

static void write_labels(const char *path, uint32_t count, uint8_t last, int gzip)
{
    uint8_t file[64];
    size_t n = idx_header(file, 1, &count);
    for (uint32_t i = 0; i < count; i++)
        file[n++] = i + 1 == count ? last : (uint8_t)(i % 10);
    (gzip ? write_gzip : write_plain)(path, file, n);
}

/* Writes a folder of four valid files. dot: with names like "train-images.idx3-ubyte". */
static void good_folder(struct folder *f, int dot, int gzip)
{
    static const char *const parts[] = {"train-images%cidx3-ubyte%s", "train-labels%cidx1-ubyte%s",
                                        "t10k-images%cidx3-ubyte%s", "t10k-labels%cidx1-ubyte%s"};
    folder_make(f);
    for (int i = 0; i < 4; i++) {
        char name[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(name, sizeof name, parts[i], dot ? '.' : '-', gzip ? ".gz" : "");
#pragma GCC diagnostic pop
        uint32_t count = i < 2 ? TRAIN : EVAL;
        if (i % 2 == 0)
            write_images(folder_at(f, name), count, SIDE, gzip);
        else
            write_labels(folder_at(f, name), count, 9, gzip);
    }
}

static void expect(const struct folder *f, const char *name, int code, const char *words)
{
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_dataset_request request = {.dir = f->path};
    int rc = ddp_dataset_load(name, &request, &set, &err);
    if (rc != code)
        print_error("got %d (%s)\n", rc, err.text);
    assert_int_equal(rc, code);
    if (!text_names(err.text, words) && !text_names(err.hint, words))
        print_error("'%s' neither in '%s' nor in '%s'\n", words, err.text, err.hint);
    assert_true(text_names(err.text, words) || text_names(err.hint, words));
}

static void loads_every_spelling(void **state)
{
    for (int form = 0; form < 4; form++) {
        struct folder f;
        struct ddp_dataset set;
        struct ddp_err err = DDP_ERR_INIT;
        good_folder(&f, form & 1, form & 2);
        const struct ddp_dataset_request request = {.dir = f.path, .named = true};
        assert_int_equal(ddp_dataset_load("mnist", &request, &set, &err), 0);
        assert_false(set.synthetic);
        assert_string_equal(set.name, "mnist");
        assert_int_equal(set.train.count, TRAIN);
        assert_int_equal(set.eval.count, EVAL);
        assert_int_equal(set.train.height, SIDE);
        assert_int_equal(set.train.width, SIDE);
        assert_int_equal(set.train.channels, 1);
        assert_int_equal(set.train.classes, 10);
        assert_int_equal(set.train.pixels[TRAIN * SIDE * SIDE - 1],
                         (uint8_t)((TRAIN * SIDE * SIDE - 1) * 7));
        assert_int_equal(set.train.labels[1], 1);
        assert_int_equal(set.train.labels[TRAIN - 1], 9);
        ddp_dataset_release(&set);
        ddp_dataset_release(&set); /* releasing twice is allowed */
        folder_remove(&f);
    }
}

static void refuses_what_does_not_fit_together(void **state)
{
    struct folder f;
    good_folder(&f, 0, 0);
    write_labels(folder_at(&f, "train-labels-idx1-ubyte"), TRAIN + 1, 9, 0);
    expect(&f, "mnist", DDP_EINPUT, "train-labels-idx1-ubyte|6|5");
    write_labels(folder_at(&f, "train-labels-idx1-ubyte"), TRAIN, 10, 0);
    expect(&f, "mnist", DDP_EINPUT, "train-labels-idx1-ubyte|9");
    write_labels(folder_at(&f, "train-labels-idx1-ubyte"), TRAIN, 0, 0);
    write_images(folder_at(&f, "t10k-images-idx3-ubyte"), EVAL, SIDE - 2, 0);
    expect(&f, "mnist", DDP_EINPUT, "6 x 6");
    folder_remove(&f);
}

static void names_what_is_missing(void **state)
{
    struct folder f;
    good_folder(&f, 0, 1);
    assert_int_equal(unlink(folder_at(&f, "t10k-labels-idx1-ubyte.gz")), 0);
    expect(&f, "fashion-mnist", DDP_ENOINPUT, "t10k-labels-idx1-ubyte");
    expect(&f, "fashion-mnist", DDP_ENOINPUT, "--data");
    expect(&f, "mnist", DDP_ENOINPUT, "--data");
    expect(&f, "minst", DDP_EUSAGE, "minst");
    folder_remove(&f);
    expect(&f, "mnist", DDP_ENOINPUT, f.path);
    expect(&f, "mnist", DDP_ENOINPUT, f.path);
}

/* A path that is no folder, or files that exist but cannot be opened, must not be reported as "no
 * file". */
static void says_what_is_wrong_with_a_folder(void **state)
{
    struct folder f, file;
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    good_folder(&f, 0, 0);
    snprintf(file.path, sizeof file.path, "%s/plain", f.path);
    write_plain(file.path, "x", 1);
    expect(&file, "mnist", DDP_ENOINPUT, file.path);
    snprintf(file.path, sizeof file.path, "/dev/null");
    expect(&file, "cifar10", DDP_ENOINPUT, file.path);
    snprintf(file.path, sizeof file.path, "%s/loop", f.path);
    assert_int_equal(symlink("loop", file.path), 0);
    expect(&file, "mnist", DDP_ENOINPUT, "symbolic link");
    assert_int_equal(unlink(folder_at(&f, "train-images-idx3-ubyte")), 0);
    assert_int_equal(symlink("train-images-idx3-ubyte", folder_at(&f, "train-images-idx3-ubyte")),
                     0);
    expect(&f, "mnist", DDP_ENOINPUT, "symbolic link");
    /* With a folder of the user's, the hint must not suggest a package. */
    const struct ddp_dataset_request own = {.dir = f.path};
    assert_int_equal(ddp_dataset_load("fashion-mnist", &own, &set, &err), DDP_ENOINPUT);
    assert_null(strstr(err.hint, "dataset-fashion-mnist"));
    folder_remove(&f);
}

/* If a package's gzipped file and an unpacked file exist, the unpacked file is read. */
static void plain_before_packed(void **state)
{
    struct folder f;
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    good_folder(&f, 0, 0);
    write_plain(folder_at(&f, "train-images-idx3-ubyte.gz"), "\x1f\x8b cut", 6);
    const struct ddp_dataset_request own = {.dir = f.path};
    assert_int_equal(ddp_dataset_load("mnist", &own, &set, &err), 0);
    ddp_dataset_release(&set);
    folder_remove(&f);
}

/* A set gets its name from the user or from its hash. Its path and hash are always set. */
static void is_named_only_when_known(void **state)
{
    struct folder f;
    struct ddp_dataset a, b;
    struct ddp_err err = DDP_ERR_INIT;
    good_folder(&f, 0, 0);
    struct ddp_dataset_request own = {.dir = f.path};
    assert_int_equal(ddp_dataset_load("fashion-mnist", &own, &a, &err), 0);
    assert_string_equal(a.name, "custom");
    assert_string_equal(a.path, f.path);
    own.named = true;
    assert_int_equal(ddp_dataset_load("fashion-mnist", &own, &b, &err), 0);
    assert_string_equal(b.name, "fashion-mnist");
    assert_true(a.hash == b.hash && a.hash != 0);
    ddp_dataset_release(&b);
    write_labels(folder_at(&f, "t10k-labels-idx1-ubyte"), EVAL, 8, 0);
    assert_int_equal(ddp_dataset_load("fashion-mnist", &own, &b, &err), 0);
    assert_true(a.hash != b.hash);
    ddp_dataset_release(&a);
    ddp_dataset_release(&b);
    folder_remove(&f);
}

static void the_environment_names_the_folder(void **state)
{
    struct folder f;
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    good_folder(&f, 0, 0);
    setenv("DDPBENCH_DATA_DIR", f.path, 1);
    assert_int_equal(ddp_dataset_load("fashion-mnist", &anywhere, &set, &err), 0);
    assert_int_equal(set.train.count, TRAIN);
    ddp_dataset_release(&set);
    unsetenv("DDPBENCH_DATA_DIR");
    folder_remove(&f);
}

static void reads_the_real_thing(void **state)
{
    const struct ddp_dataset_reader *reader = ddp_dataset_find("fashion-mnist");
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    assert_non_null(reader);
    if (!ddp_dataset_default_dir(reader)) {
        print_message("skip: package %s is not installed\n", reader->package);
        skip();
    }
    assert_int_equal(ddp_dataset_load("fashion-mnist", &anywhere, &set, &err), 0);
    assert_int_equal(set.train.count, 60000);
    assert_int_equal(set.eval.count, 10000);
    size_t of_class[10] = {0};
    for (size_t i = 0; i < set.train.count; i++)
        of_class[set.train.labels[i]]++;
    for (int c = 0; c < 10; c++)
        assert_int_equal(of_class[c], 6000); /* the published number */
    assert_true(set.hash == reader->hash);
    ddp_dataset_release(&set);
    /* The hash gives the set its name in any folder. */
    const struct ddp_dataset_request own = {.dir = ddp_dataset_default_dir(reader)};
    assert_int_equal(ddp_dataset_load("fashion-mnist", &own, &set, &err), 0);
    assert_string_equal(set.name, "fashion-mnist");
    ddp_dataset_release(&set);
}

static const struct ddp_dataset_request made = {
    .channels = 3, .height = 9, .width = 6, .classes = 4, .images = 1000, .seed = 1};
enum { MADE_PIXELS = 3 * 9 * 6 };

/* Computes the class means of the training images, [classes][pixels]. */
static void class_means(const struct ddp_images *set, double *means)
{
    double count[4] = {0};
    memset(means, 0, sizeof *means * 4 * MADE_PIXELS);
    for (size_t i = 0; i < set->count; i++) {
        count[set->labels[i]]++;
        for (size_t p = 0; p < MADE_PIXELS; p++)
            means[set->labels[i] * MADE_PIXELS + p] += set->pixels[i * MADE_PIXELS + p];
    }
    for (size_t i = 0; i < (size_t)4 * MADE_PIXELS; i++)
        means[i] /= count[i / MADE_PIXELS];
}

/* The nearest class mean classifies unseen images, so the set can be learned. A single pixel does
 * not suffice. */
static void made_images_can_be_learned(void **state)
{
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    static double means[4 * MADE_PIXELS];
    size_t hits = 0;
    assert_int_equal(ddp_dataset_load("synthetic", &made, &set, &err), 0);
    assert_string_equal(set.name, "synthetic");
    assert_true(set.synthetic);
    assert_int_equal(set.train.count, 1000);
    assert_int_equal(set.eval.count, 200);
    assert_int_equal(set.eval.channels * set.eval.height * set.eval.width, MADE_PIXELS);
    class_means(&set.train, means);
    for (size_t i = 0; i < set.eval.count; i++) {
        double best = 1e300;
        int at = 0;
        for (int c = 0; c < 4; c++) {
            double distance = 0;
            for (size_t p = 0; p < MADE_PIXELS; p++) {
                double d = set.eval.pixels[i * MADE_PIXELS + p] - means[c * MADE_PIXELS + (int)p];
                distance += d * d;
            }
            at = distance < best ? c : at;
            best = distance < best ? distance : best;
        }
        assert_true(set.eval.labels[i] < 4);
        hits += at == set.eval.labels[i];
    }
    print_message("# nearest mean: %zu of 200\n", hits);
    assert_in_range(hits, 120, 200); /* chance gives 50 */
    ddp_dataset_release(&set);
}

/* The set has the same bytes on every machine: compares with a hash computed on another one. */
static void made_images_follow_the_seed(void **state)
{
    struct ddp_dataset a, b;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_dataset_request other = made;
    assert_int_equal(ddp_dataset_load("synthetic", &made, &a, &err), 0);
    assert_int_equal(ddp_dataset_load("synthetic", &made, &b, &err), 0);
    assert_memory_equal(a.train.pixels, b.train.pixels, 1000 * MADE_PIXELS);
    uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, a.train.pixels, 1000 * MADE_PIXELS);
    hash = ddp_fnv1a(hash, a.eval.labels, 200);
    if (hash != MADE_HASH)
        print_error("hash %016llx\n", (unsigned long long)hash);
    assert_true(hash == MADE_HASH);
    ddp_dataset_release(&b);
    other.seed = 2;
    assert_int_equal(ddp_dataset_load("synthetic", &other, &b, &err), 0);
    assert_memory_not_equal(a.train.pixels, b.train.pixels, 1000 * MADE_PIXELS);
    ddp_dataset_release(&b);
    ddp_dataset_release(&a);
    other.images = (size_t)1 << 40;
    assert_int_equal(ddp_dataset_load("synthetic", &other, &b, &err), DDP_EUSAGE);
    err = DDP_ERR_INIT;
    other = (struct ddp_dataset_request){.images = 5};
    assert_int_equal(ddp_dataset_load("synthetic", &other, &b, &err), DDP_EUSAGE);
}

static void readers_say_what_they_fit(void **state)
{
    static const struct ddp_dataset_request grey28 = {
        .channels = 1, .height = 28, .width = 28, .classes = 10};
    static const struct ddp_dataset_request colour32 = {
        .channels = 3, .height = 32, .width = 32, .classes = 10};
    static const struct ddp_dataset_request two = {
        .channels = 1, .height = 32, .width = 32, .classes = 2};
    static const struct {
        const char *name;
        bool grey28, colour32, two;
    } want[] = {{"fashion-mnist", true, false, false},
                {"mnist", true, false, false},
                {"cifar10", false, true, false},
                {"synthetic", true, true, true}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct ddp_dataset_reader *reader = ddp_dataset_find(want[i].name);
        assert_int_equal(ddp_dataset_fits(reader, &grey28), want[i].grey28);
        assert_int_equal(ddp_dataset_fits(reader, &colour32), want[i].colour32);
        assert_int_equal(ddp_dataset_fits(reader, &two), want[i].two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_every_spelling),
        cmocka_unit_test(refuses_what_does_not_fit_together),
        cmocka_unit_test(names_what_is_missing),
        cmocka_unit_test(says_what_is_wrong_with_a_folder),
        cmocka_unit_test(plain_before_packed),
        cmocka_unit_test(is_named_only_when_known),
        cmocka_unit_test(the_environment_names_the_folder),
        cmocka_unit_test(reads_the_real_thing),
        cmocka_unit_test(made_images_can_be_learned),
        cmocka_unit_test(made_images_follow_the_seed),
        cmocka_unit_test(readers_say_what_they_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
