/* The search for units that are worse than their peers: every kind of fault of 10, 20, 50 % and
 * more among 2 to 64 units, two faults at once, false alarms, and a reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/peers.h"

#define UNITS_MAX 64
#define PASSES    5

/* A simulated cluster. Figures are logarithms of times. */
struct cluster {
    int units;
    double noise;  /* standard deviation of a pass */
    double spikes; /* probability that a pass takes three times as long */
    double spread; /* standard deviation between healthy links */
    double send[UNITS_MAX], receive[UNITS_MAX]; /* slow-down factors, 0: none */
    double link[UNITS_MAX][UNITS_MAX];
};

static struct ddp_rng rng;

static double normal(void)
{
    return ddp_rng_normal(&rng);
}

static double factor(double slow)
{
    return slow > 0 ? slow : 1;
}

/* Measures the cluster and searches for faults. Smallest effect: 5 %. */
static void search(const struct cluster *c, const struct ddp_peer_rule *rule, struct ddp_peers *out)
{
    static double pass[UNITS_MAX * UNITS_MAX][PASSES];
    static struct ddp_peer_value value[UNITS_MAX * UNITS_MAX];
    size_t n = 0;
    for (int a = 0; a < c->units; a++)
        for (int b = 0; b < c->units; b++) {
            if (a == b)
                continue;
            const double slow =
                fmax(fmax(factor(c->send[a]), factor(c->receive[b])), factor(c->link[a][b]));
            const double healthy = c->spread * normal();
            for (int k = 0; k < PASSES; k++)
                pass[n][k] = log(slow) + healthy + c->noise * normal() +
                             (ddp_rng_double(&rng) < c->spikes ? log(3) : 0);
            value[n] = (struct ddp_peer_value){a, b, pass[n]};
            n++;
        }
    assert_int_equal(ddp_peers_search(value, n, c->units, PASSES, rule, out), 0);
}

static const struct ddp_peer_rule usual = {.least = 0.0488, .level = 0.01, .directed = true};

/* Returns whether one finding has this place, and its interval contains the factor. */
static bool found(const struct ddp_peers *p, enum ddp_peer_place place, int from, int to,
                  double slow)
{
    for (int i = 0; i < p->count; i++) {
        const struct ddp_peer_finding *f = &p->finding[i];
        const bool same = (f->from == from && f->to == to) ||
                          (place == DDP_PEER_LINK && f->from == to && f->to == from);
        if (f->place == place && same)
            return f->lower <= log(slow) && f->upper >= log(slow);
    }
    return false;
}

static const int sizes[] = {3, 4, 8, 64};

static void test_healthy(void **state)
{
    (void)state;
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++) {
        const int runs = sizes[i] == 64 ? 10 : 100;
        int alarms[2] = {0}; /* without and with outliers */
        for (int run = 0; run < runs; run++) {
            struct cluster c = {.units = sizes[i], .noise = 0.03, .spread = 0.01};
            struct ddp_peers p;
            c.spikes = run % 2 * 0.05;
            search(&c, &usual, &p);
            alarms[run % 2] += p.count > 0;
        }
        assert_in_range(alarms[0], 0, runs / 100);
        assert_in_range(alarms[1], 0, DDP_MAX(runs / 50, 1));
    }
}

/* One fault of each kind. A fault of 10 % is found where the unit has enough values. */
static void test_one_fault(void **state)
{
    (void)state;
    static const double slow[] = {1.1, 1.2, 1.5, 8};
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++)
        for (size_t f = 0; f < DDP_COUNT_OF(slow); f++) {
            const int runs = sizes[i] == 64 ? 1 : 10;
            int good[4] = {0};
            for (int run = 0; run < runs; run++) {
                struct cluster c = {.units = sizes[i], .noise = 0.01, .spread = 0.002};
                const int a = run % c.units, b = (a + 1) % c.units;
                struct ddp_peers p;
                for (int kind = 0; kind < 4; kind++) {
                    struct cluster faulty = c;
                    static const enum ddp_peer_place places[] = {
                        DDP_PEER_SENDING, DDP_PEER_RECEIVING, DDP_PEER_UNIT, DDP_PEER_LINK};
                    if (kind == 0 || kind == 2)
                        faulty.send[a] = slow[f];
                    if (kind == 1 || kind == 2)
                        faulty.receive[a] = slow[f];
                    if (kind == 3)
                        faulty.link[a][b] = faulty.link[b][a] = slow[f];
                    search(&faulty, &usual, &p);
                    good[kind] +=
                        p.count == 1 && found(&p, places[kind], a, kind == 3 ? b : -1, slow[f]);
                }
            }
            for (int kind = 0; kind < 4; kind++)
                if (good[kind] < (slow[f] < 1.15 ? 0.7 : 0.9) * runs)
                    fail_msg("%d units, %.1f times slower, kind %d: found in %d of %d", sizes[i],
                             slow[f], kind, good[kind], runs);
        }
}

static void test_one_direction(void **state)
{
    (void)state;
    struct cluster c = {.units = 4, .noise = 0.02};
    struct ddp_peers p;
    c.link[1][3] = 2;
    search(&c, &usual, &p);
    assert_int_equal(p.count, 1);
    assert_true(found(&p, DDP_PEER_VALUE, 1, 3, 2));
}

/* Two faults at once, some of which touch most of the values. */
static void test_two_faults(void **state)
{
    (void)state;
    for (size_t i = 1; i < DDP_COUNT_OF(sizes); i++)
        for (int run = 0; run < (sizes[i] == 64 ? 1 : 10); run++) {
            struct cluster c = {.units = sizes[i], .noise = 0.02, .spread = 0.005};
            struct ddp_peers p;
            c.send[1] = c.receive[1] = 4;
            c.send[2] = c.receive[2] = 8;
            search(&c, &usual, &p);
            assert_true(p.count == 2 && found(&p, DDP_PEER_UNIT, 1, -1, 4) &&
                        found(&p, DDP_PEER_UNIT, 2, -1, 8));
            c = (struct cluster){.units = sizes[i], .noise = 0.02};
            c.send[0] = 3;
            c.receive[1] = 2;
            search(&c, &usual, &p);
            assert_true(p.count == 2 && found(&p, DDP_PEER_SENDING, 0, -1, 3) &&
                        found(&p, DDP_PEER_RECEIVING, 1, -1, 2));
            c = (struct cluster){.units = sizes[i], .noise = 0.02};
            c.receive[0] = 3;
            c.link[1][2] = c.link[2][1] = 1.5;
            search(&c, &usual, &p);
            assert_true(p.count == 2 && found(&p, DDP_PEER_RECEIVING, 0, -1, 3) &&
                        found(&p, DDP_PEER_LINK, 1, 2, 1.5));
        }
}

/* A link of a slow unit that is a little slower is no finding of its own. */
static void test_inside(void **state)
{
    (void)state;
    struct cluster c = {.units = 4, .noise = 0.005};
    struct ddp_peers p;
    c.send[3] = c.receive[3] = 2.7;
    c.link[1][3] = c.link[3][1] = 2.8;
    search(&c, &usual, &p);
    assert_true(p.count == 1 && found(&p, DDP_PEER_UNIT, 3, -1, 2.7));
    c.link[1][3] = c.link[3][1] = 4;
    search(&c, &usual, &p);
    assert_true(p.count == 2 && found(&p, DDP_PEER_LINK, 1, 3, 4));
}

/* Two units have no third one to compare with. Only a difference between the directions shows. */
static void test_two_units(void **state)
{
    (void)state;
    struct cluster c = {.units = 2, .noise = 0.02};
    struct ddp_peer_rule rule = usual;
    struct ddp_peers p;
    c.send[0] = c.receive[0] = 4;
    search(&c, &usual, &p);
    assert_int_equal(p.count, 0);
    rule.has_reference = true;
    search(&c, &rule, &p);
    assert_int_equal(p.count, 1);
    assert_true(p.finding[0].lower > log(3));
    c.receive[0] = 1;
    search(&c, &usual, &p);
    assert_true(p.count == 1 && p.finding[0].lower > log(3));
}

/* With a reference, a change of all values is found, and so is one unit. */
static void test_reference(void **state)
{
    (void)state;
    struct ddp_peer_rule rule = usual;
    struct ddp_peers p;
    rule.has_reference = true;
    rule.reference_scatter = 0.01;
    struct cluster c = {.units = 4, .noise = 0.02};
    search(&c, &rule, &p);
    assert_int_equal(p.count, 0);
    assert_true(p.detectable_unit < 0.2);
    c.send[2] = c.receive[2] = 1.5;
    search(&c, &rule, &p);
    assert_true(p.count == 1 && found(&p, DDP_PEER_UNIT, 2, -1, 1.5));
    for (int u = 0; u < 4; u++)
        c.send[u] = c.receive[u] = 2;
    search(&c, &rule, &p);
    assert_true(p.count == 1 && found(&p, DDP_PEER_ALL, -1, -1, 2));
}

/* Values of single units: ranks of hosts. */
static void test_ranks(void **state)
{
    (void)state;
    const struct ddp_peer_rule rule = {.least = 0.0953, .level = 0.01};
    double pass[8][PASSES];
    struct ddp_peer_value value[8];
    struct ddp_peers p;
    for (int slow = 0; slow < 2; slow++) { /* rank 5, then both ranks of host 2 */
        for (int r = 0; r < 8; r++) {
            for (int k = 0; k < PASSES; k++)
                pass[r][k] = 0.02 * normal() + (r == 5 || (slow && r == 4) ? log(2) : 0);
            value[r] = (struct ddp_peer_value){r / 2, r / 2, pass[r]};
        }
        assert_int_equal(ddp_peers_search(value, 8, 4, PASSES, &rule, &p), 0);
        assert_int_equal(p.count, 1);
        assert_int_equal(p.finding[0].place, slow ? DDP_PEER_UNIT : DDP_PEER_VALUE);
        assert_int_equal(p.finding[0].value, slow ? -1 : 5);
    }
    assert_int_equal(ddp_peers_search(value, 1, 1, PASSES, &rule, &p), 0);
    assert_true(p.count == 0 && isinf(p.detectable_unit));
}

/* Scatter that hides a fault also raises the detectable effect. */
static void test_detectable(void **state)
{
    (void)state;
    struct cluster c = {.units = 4, .noise = 0.01};
    struct ddp_peers quiet, noisy;
    search(&c, &usual, &quiet);
    c.noise = 0.5;
    search(&c, &usual, &noisy);
    assert_true(quiet.detectable_unit < log(1.15));
    assert_true(noisy.detectable_unit > log(2));
}

/* A unit without a value could have any fault, unless the rule says that it is left out. */
static void test_unknown_unit(void **state)
{
    (void)state;
    struct ddp_peer_rule rule = usual;
    double pass[6][PASSES];
    struct ddp_peer_value value[6];
    struct ddp_peers p;
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < PASSES; k++)
            pass[i][k] = 0.01 * normal();
        value[i] = (struct ddp_peer_value){i / 2, (i / 2 + 1 + i % 2) % 3, pass[i]};
    }
    for (int partial = 0; partial < 2; partial++) {
        rule.partial = partial;
        assert_int_equal(ddp_peers_search(value, 6, 4, PASSES, &rule, &p), 0);
        assert_true(partial ? isfinite(p.detectable_unit) : isinf(p.detectable_unit));
        assert_true(isfinite(p.detectable_value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),       cmocka_unit_test(test_one_fault),
        cmocka_unit_test(test_one_direction), cmocka_unit_test(test_two_faults),
        cmocka_unit_test(test_two_units),     cmocka_unit_test(test_reference),
        cmocka_unit_test(test_inside),        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_detectable),    cmocka_unit_test(test_unknown_unit),
    };
    ddp_rng_init(&rng, 1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
