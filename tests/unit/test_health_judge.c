/* The verdict of `ddpbench health` on simulated hosts with noise: each fault, two faults, two
 * hosts, a reference, and the sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "record/health_judge.h"
#include "record/record.h"

#define PASSES    5
#define HOSTS_MAX 64
#define EACH      2 /* ranks of a host */

/* A simulated job of hosts with EACH ranks. Factors and extra latencies are those of a fault. */
struct job {
    int hosts;
    double noise;
    double send[HOSTS_MAX], receive[HOSTS_MAX], compute[HOSTS_MAX * EACH];
    double extra_us[HOSTS_MAX], lost[HOSTS_MAX]; /* lost: fraction of what the host receives */
    int link[2];                                 /* link[0] to link[1] and back: link_us more */
    double link_us, all;                         /* all: factor of every bandwidth */
    int64_t nic[HOSTS_MAX];
};

/* The figures of a job. */
struct sample {
    struct ddp_matrix pass[PASSES];
    struct ddp_health_rank rank[PASSES * HOSTS_MAX * EACH];
    int host[HOSTS_MAX * EACH];
    struct ddp_health_input in;
};

static struct ddp_rng rng;

static double noisy(const struct job *j, double value)
{
    return value * exp(j->noise * ddp_rng_normal(&rng));
}

static double slower(double a, double b)
{
    return fmax(fmax(a, b), 1);
}

static void fill_pass(const struct job *j, struct ddp_matrix *m)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_matrix_init(m, j->hosts, &err), 0);
    m->by_host = true;
    m->bytes = 262144;
    for (int a = 0; a < j->hosts; a++) {
        m->rank[a] = a * EACH;
        for (int b = 0; b < j->hosts; b++) {
            struct ddp_matrix_cell *c = ddp_matrix_cell_of(m, a, b);
            const bool link = j->link_us > 0 && ((a == j->link[0] && b == j->link[1]) ||
                                                 (b == j->link[0] && a == j->link[1]));
            if (a == b)
                continue;
            c->GBps = noisy(j, 1.15 / slower(j->send[a], j->receive[b]) / fmax(j->all, 1));
            c->latency_ns =
                noisy(j, 30e3 + 1e3 * (j->extra_us[a] + j->extra_us[b] + (link ? j->link_us : 0)));
            c->resent_fraction = noisy(j, j->lost[b]);
        }
    }
}

static void make_sample(const struct job *j, struct sample *s)
{
    const int ranks = j->hosts * EACH;
    for (int k = 0; k < PASSES; k++) {
        fill_pass(j, &s->pass[k]);
        for (int r = 0; r < ranks; r++) {
            const double slow = fmax(j->compute[r], 1);
            s->rank[k * ranks + r] = (struct ddp_health_rank){.compute_ms = noisy(j, 70 * slow),
                                                              .copy_GBps = noisy(j, 9),
                                                              .core_percent = 100 / slow};
        }
    }
    for (int r = 0; r < ranks; r++)
        s->host[r] = r / EACH;
    s->in = (struct ddp_health_input){.passes = PASSES,
                                      .pass = s->pass,
                                      .ranks = ranks,
                                      .rank = s->rank,
                                      .host = s->host,
                                      .hosts = j->hosts,
                                      .nic_Mbps = j->nic};
}

static void drop_sample(struct sample *s)
{
    for (int k = 0; k < PASSES; k++)
        ddp_matrix_release(&s->pass[k]);
}

static struct sample sample;

static void set_rule(struct ddp_health *h)
{
    ddp_health_init(h);
    h->level = 0.01;
    h->min_effect = 0.1;
    h->min_latency_us = 20;
    h->must_find = 1;
}

static void judge_with(const struct job *j, const struct ddp_health_reference *reference,
                       struct ddp_health *h)
{
    struct ddp_err err = DDP_ERR_INIT;
    make_sample(j, &sample);
    sample.in.reference = reference;
    set_rule(h);
    assert_int_equal(ddp_health_judge(&sample.in, h, &err), 0);
}

/* Judges the job, and releases everything that the tests do not look at. */
static void judge(const struct job *j, struct ddp_health *h)
{
    judge_with(j, NULL, h);
    drop_sample(&sample);
    free(h->rank);
    h->rank = NULL;
    h->ranks = 0;
}

/* Returns whether the i-th finding has this figure, place and ranks, and its interval contains the
 * factor. */
static bool is(const struct ddp_health *h, int i, enum ddp_health_figure figure,
               enum ddp_peer_place place, int rank, int to, double factor)
{
    const struct ddp_health_finding *f = &h->finding[i];
    return i < h->finding_count && f->figure == figure && f->place == place && f->rank == rank &&
           f->to == to && f->lower <= factor && f->upper >= factor;
}

static struct job healthy(int hosts)
{
    return (struct job){.hosts = hosts, .noise = 0.02};
}

static const int sizes[] = {3, 4, 8, 64};

static void test_healthy(void **state)
{
    (void)state;
    struct ddp_health h;
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++)
        for (int run = 0; run < (sizes[i] == 64 ? 3 : 40); run++) {
            struct job j = healthy(sizes[i]);
            judge(&j, &h);
            assert_int_equal(h.verdict, DDP_HEALTH_HEALTHY);
            assert_true(h.power[DDP_HEALTH_BANDWIDTH].host_factor < 1.5);
        }
}

static void test_each_fault(void **state)
{
    (void)state;
    struct ddp_health h;
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++) {
        const int last = sizes[i] - 1;
        struct job j = healthy(sizes[i]);
        j.send[1] = 1.5;
        judge(&j, &h);
        assert_int_equal(h.verdict, DDP_HEALTH_DEGRADED);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_SENDING, 2, -1, 1.5));
        j = healthy(sizes[i]);
        j.receive[last] = j.send[last] = 8;
        judge(&j, &h);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_UNIT, 2 * last, -1, 8));
        j = healthy(sizes[i]);
        j.extra_us[1] = 200;
        judge(&j, &h);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_LATENCY, DDP_PEER_UNIT, 2, -1, 230.0 / 30));
        j = healthy(sizes[i]);
        j.link[0] = 1, j.link[1] = last, j.link_us = 200;
        judge(&j, &h);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_LATENCY, DDP_PEER_VALUE, 2, 2 * last, 230.0 / 30));
        j = healthy(sizes[i]);
        j.lost[1] = 0.01;
        judge(&j, &h);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_RESENT, DDP_PEER_RECEIVING, 2, -1, 1));
        j = healthy(sizes[i]);
        j.compute[2] = j.compute[3] = 2;
        judge(&j, &h);
        assert_true(h.finding_count == 1 && is(&h, 0, DDP_HEALTH_COMPUTE, DDP_PEER_UNIT, 2, -1, 2));
        j = healthy(sizes[i]);
        j.compute[3] = 2;
        judge(&j, &h);
        assert_true(h.finding_count == 1 &&
                    is(&h, 0, DDP_HEALTH_COMPUTE, DDP_PEER_VALUE, 3, -1, 2));
    }
}

static void test_two_faults(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(4);
    j.send[0] = j.receive[0] = 4;
    j.compute[6] = j.compute[7] = 1.5;
    judge(&j, &h);
    assert_true(h.finding_count == 2 && is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_UNIT, 0, -1, 4) &&
                is(&h, 1, DDP_HEALTH_COMPUTE, DDP_PEER_UNIT, 6, -1, 1.5));
    /* Loss that comes with less bandwidth is one fault. */
    j = healthy(4);
    j.receive[2] = 3;
    j.lost[2] = 0.02;
    judge(&j, &h);
    assert_true(h.finding_count == 1 && h.finding[0].resent > 1.5 && h.finding[0].resent < 2.5);
}

/* The latency of a rank that waits for the scheduler is not judged. */
static void test_no_core(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(4);
    j.extra_us[1] = 2000;
    j.compute[2] = j.compute[3] = 2; /* the ranks of host 1 have half of a core */
    judge(&j, &h);
    assert_true(h.finding_count == 1 && is(&h, 0, DDP_HEALTH_COMPUTE, DDP_PEER_UNIT, 2, -1, 2));
}

static void test_small_effects(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(4);
    j.send[1] = j.receive[1] = 1.05; /* below min_effect */
    j.extra_us[2] = 5;
    judge(&j, &h);
    assert_int_equal(h.verdict, DDP_HEALTH_HEALTHY);
    j = healthy(4);
    j.noise = 0.8;
    judge(&j, &h);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
    assert_non_null(strstr(h.reason, "bandwidth"));
}

/* Two hosts: only a reference can show that both directions are slow. The speed of the interfaces
 * does not decide. */
static void test_two_hosts(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(2);
    judge(&j, &h);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
    assert_non_null(strstr(h.reason, "--reference"));
    j.nic[0] = j.nic[1] = 10000;
    judge(&j, &h);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
    assert_non_null(strstr(h.reason, "--reference"));
    j.send[0] = 3;
    judge(&j, &h);
    assert_true(h.finding_count == 1 && h.finding[0].either &&
                is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_VALUE, 0, 2, 3));
    j.nic[0] = 1000;
    judge(&j, &h);
    assert_true(h.finding_count == 1 && !h.finding[0].either &&
                is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_SENDING, 0, -1, 3));
    j.nic[0] = 10000;
    j.nic[1] = 1000;
    judge(&j, &h);
    assert_true(is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_RECEIVING, 2, -1, 3));
    j.nic[0] = j.nic[1] = 0;
    j.receive[0] = 3; /* both directions are slow */
    judge(&j, &h);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
}

static void test_reference(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_health earlier, h;
    struct ddp_matrix median;
    int same[HOSTS_MAX * EACH];
    for (int i = 0; i < HOSTS_MAX * EACH; i++)
        same[i] = i;
    for (int hosts = 2; hosts <= 4; hosts += 2)
        for (int matched = 0; matched < 2; matched++) {
            struct job j = healthy(hosts);
            judge_with(&j, NULL, &earlier);
            assert_int_equal(ddp_health_median(sample.pass, PASSES, &median, &err), 0);
            drop_sample(&sample);
            const struct ddp_health_reference reference = {.matrix = &median,
                                                           .health = &earlier,
                                                           .end = matched ? same : NULL,
                                                           .rank = matched ? same : NULL};
            judge_with(&j, &reference, &h);
            assert_int_equal(h.verdict, DDP_HEALTH_HEALTHY);
            drop_sample(&sample);
            free(h.rank);
            j.all = 2;
            judge_with(&j, &reference, &h);
            assert_int_equal(h.verdict, DDP_HEALTH_DEGRADED);
            assert_true(h.finding_count == 1 && h.finding[0].from_reference);
            if (hosts > 2)
                assert_true(is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_ALL, -1, -1, 2));
            else
                assert_true(h.finding[0].either &&
                            is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_LINK, 0, 2, 2));
            drop_sample(&sample);
            free(h.rank);
            j.all = 1;
            j.compute[0] = j.compute[1] = 2;
            judge_with(&j, &reference, &h); /* a finding among peers is not repeated */
            assert_true(h.finding_count == 1 && !h.finding[0].from_reference);
            drop_sample(&sample);
            free(h.rank);
            ddp_matrix_release(&median);
            free(earlier.rank);
        }
}

/* Judges two hosts, both directions between which have become slower by a factor of 2. by_host: of
 * the reference. */
static void judge_changed(struct job *j, bool by_host, struct ddp_health *h)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_health earlier;
    struct ddp_matrix median;
    const struct ddp_health_reference reference = {.matrix = &median, .health = &earlier};
    judge_with(j, NULL, &earlier);
    assert_int_equal(ddp_health_median(sample.pass, PASSES, &median, &err), 0);
    drop_sample(&sample);
    median.by_host = by_host;
    j->all = 2;
    judge_with(j, &reference, h);
    drop_sample(&sample);
    ddp_matrix_release(&median);
    free(earlier.rank);
    free(h->rank);
}

/* Pairs of hosts are not compared with pairs of ranks. */
static void test_reference_of_ranks(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(2);
    judge_changed(&j, false, &h);
    assert_int_equal(h.finding_count, 0);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
}

/* A change since the reference does not come from the slower interface. */
static void test_reference_and_nic(void **state)
{
    (void)state;
    struct ddp_health h;
    struct job j = healthy(2);
    j.nic[0] = 10000;
    j.nic[1] = 1000;
    judge_changed(&j, true, &h);
    assert_true(h.finding_count == 1 && h.finding[0].either && h.finding[0].from_reference &&
                is(&h, 0, DDP_HEALTH_BANDWIDTH, DDP_PEER_LINK, 0, 2, 2));
}

/* A host without a measured bandwidth is not HEALTHY. */
static void test_unknown_host(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_health h;
    struct job j = healthy(4);
    make_sample(&j, &sample);
    for (int i = 0; i < 4; i++) {
        ddp_matrix_cell_of(&sample.pass[0], i, 3)->GBps = NAN;
        ddp_matrix_cell_of(&sample.pass[0], 3, i)->GBps = NAN;
    }
    set_rule(&h);
    assert_int_equal(ddp_health_judge(&sample.in, &h, &err), 0);
    assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
    assert_non_null(strstr(h.reason, "unknown on a host"));
    drop_sample(&sample);
    free(h.rank);
}

/* Between ranks of one host, speeds may differ, but a rank with a slow processor is found. */
static void test_one_host(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_health h;
    struct job j = healthy(4);
    j.send[1] = j.receive[1] = 3;
    for (int slow = 0; slow < 2; slow++) {
        j.compute[3] = slow ? 1.5 : 1;
        make_sample(&j, &sample);
        for (int k = 0; k < PASSES; k++)
            sample.pass[k].by_host = false;
        memset(sample.host, 0, sizeof sample.host);
        sample.in.hosts = 1;
        set_rule(&h);
        assert_int_equal(ddp_health_judge(&sample.in, &h, &err), 0);
        assert_int_equal(h.verdict, slow ? DDP_HEALTH_DEGRADED : DDP_HEALTH_HEALTHY);
        assert_true(!slow || is(&h, 0, DDP_HEALTH_COMPUTE, DDP_PEER_VALUE, 3, -1, 1.5));
        assert_true(isnan(h.power[DDP_HEALTH_BANDWIDTH].host_factor));
        free(h.rank);
        set_rule(&h);
        h.must_find = 1e-6;
        assert_int_equal(ddp_health_judge(&sample.in, &h, &err), 0);
        assert_true(slow || strstr(h.reason, "a rank would be found only if"));
        drop_sample(&sample);
        free(h.rank);
    }
}

/* Checks whether the sentence of the first finding contains `text`. */
static void host_sentence(const struct ddp_record *r, const char *text, bool expected)
{
    char sentence[1200];
    ddp_health_sentence(r, 0, sentence, sizeof sentence);
    assert_int_equal(strstr(sentence, text) != NULL, expected);
}

/* A finding is a sentence with the host, the direction, the interface and the next step. */
static void test_sentence(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    struct ddp_rank_device devices[8] = {{.device = -1}};
    struct job j = healthy(4);
    char text[1200];
    void *message;
    size_t bytes;
    ddp_record_init(&r);
    for (int i = 0; i < 8; i++) {
        snprintf(devices[i].host, sizeof devices[i].host, "%c", 'a' + i / 2);
        struct ddp_host host = {.ranks = 2,
                                .cores = 8,
                                .network.nic.speed_Mbps = 10000,
                                .network.nic.name = "eth0",
                                .memory_bytes = -1};
        snprintf(host.name, sizeof host.name, "%s", devices[i].host);
        if (i == 4)
            host.network.nic.speed_Mbps = 1000;
        if (i % 2 == 0)
            assert_int_equal(ddp_record_add_host(&r, &host, &err), 0);
    }
    assert_int_equal(ddp_record_set_ranks(&r, devices, 8, &err), 0);
    j.send[2] = 8;
    judge_with(&j, NULL, &r.health);
    drop_sample(&sample);
    ddp_health_sentence(&r, 0, text, sizeof text);
    assert_int_equal(strncmp(text, "host c, sending: ", 17), 0);
    assert_non_null(strstr(text, "times slower"));
    assert_non_null(strstr(text, "at 1000 Mbit/s, and the fastest at 10000"));
    assert_non_null(strstr(text, "next: "));
    const int slow = r.health.finding_count++; /* the other rank of the host computes slowly */
    r.health.finding[slow] = (struct ddp_health_finding){
        .figure = DDP_HEALTH_COMPUTE, .rank = 5, .to = -1, .resent = NAN};
    r.health.finding[0].of_host = true;
    r.hosts[2].network.nic.speed_Mbps = 10000; /* a slow NIC would have its own next step */
    host_sentence(&r, "its computation is slow, too", true);
    r.health.finding[slow].rank = 3;
    host_sentence(&r, "its computation is slow, too", false);
    r.health.finding_count--;
    r.hosts[2].network.nic.speed_Mbps = 1000;
    assert_true(ddp_health_difference(&r, 0, text, sizeof text));
    assert_string_equal(text, "host c differs from most hosts in NIC speed in Mbit/s: it has 1000, "
                              "most hosts have 10000");
    assert_false(ddp_health_difference(&r, 1, text, sizeof text));
    r.hosts[3].network.nic.speed_Mbps = 100; /* the other two are no majority of four hosts */
    assert_true(ddp_health_difference(&r, 0, text, sizeof text));
    assert_null(strstr(text, "most hosts"));
    assert_true(ddp_health_difference(&r, 1, text, sizeof text));
    assert_non_null(strstr(text, "host d"));
    struct ddp_health copy;
    assert_int_equal(ddp_health_pack(&r.health, &message, &bytes, &err), 0);
    assert_int_equal(ddp_health_unpack(message, bytes, &copy, &err), 0);
    assert_true(copy.ranks == 8 && copy.finding[0].rank == 4 &&
                copy.rank[7].compute_ms == r.health.rank[7].compute_ms);
    ddp_health_release(&copy);
    assert_int_equal(ddp_health_unpack(message, bytes - 1, &copy, &err), DDP_EINTERNAL);
    ((struct ddp_health *)message)->finding_count = DDP_HEALTH_FINDINGS + 1;
    assert_int_equal(ddp_health_unpack(message, bytes, &copy, &err), DDP_EINTERNAL);
    free(message);
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),           cmocka_unit_test(test_each_fault),
        cmocka_unit_test(test_two_faults),        cmocka_unit_test(test_small_effects),
        cmocka_unit_test(test_two_hosts),         cmocka_unit_test(test_reference),
        cmocka_unit_test(test_no_core),           cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_sentence),          cmocka_unit_test(test_reference_of_ranks),
        cmocka_unit_test(test_reference_and_nic), cmocka_unit_test(test_unknown_host),
    };
    ddp_rng_init(&rng, 1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
