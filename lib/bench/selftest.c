/* Runs the gates of the self-test; selftest_judge.c judges them. */
#include "bench/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "record/provenance.h"
#include "stats/signflip.h"

void ddp_selftest_facts(const struct ddp_selftest_setup *setup, struct ddp_journal_facts *facts)
{
    const struct ddp_build *build = ddp_build_info();
    struct ddp_noise_machine here;
    uint64_t env = DDP_FNV_INIT; /* only a hash, because the values may be secret */
    ddp_noise_machine_read(&here);
    for (int i = 0; setup->env && setup->env[i]; i++)
        env = ddp_fnv1a(env, setup->env[i], strlen(setup->env[i]) + 1);
    facts->count = 0;
    ddp_journal_fact(facts, "self-test of", "%s", setup->command);
    ddp_journal_fact(facts, "environment", "%016llx", (unsigned long long)env);
    ddp_journal_fact(facts, "--pairs", "%d", setup->gate.pairs);
    ddp_journal_fact(facts, "--seed", "%llu", (unsigned long long)setup->gate.seed);
    ddp_journal_fact(facts, "--inject", "%g %%", setup->effect * 100);
    ddp_journal_fact(facts, "processor", "%s, %d cores", here.cpu, here.cores);
    ddp_journal_fact(facts, "kernel", "%s", here.kernel);
    ddp_journal_fact(facts, "version", "%s", build->version);
    ddp_journal_fact(facts, "commit", "%s", build->commit);
    ddp_journal_fact(facts, "compiler", "%s", here.build);
}

static int keep(struct ddp_selftest *test, const void *payload, size_t bytes, struct ddp_err *err)
{
    struct ddp_noise_gate **gates =
        ddp_realloc_array(test->gates, (size_t)test->count + 1, sizeof(struct ddp_noise_gate *));
    if (gates)
        test->gates = gates;
    struct ddp_noise_gate *copy = gates ? malloc(bytes) : NULL;
    if (!copy)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
    memcpy(copy, payload, bytes);
    test->gates[test->count++] = copy;
    return 0;
}

bool ddp_selftest_injects(int same, int injected, int i)
{
    const int64_t all = (int64_t)same + injected;
    return (i + 1) * (int64_t)injected / all > i * (int64_t)injected / all;
}

static bool is_done(const struct ddp_selftest *test, bool injected, int index)
{
    for (int i = 0; i < test->count; i++)
        if (test->gates[i]->index == index && (test->gates[i]->injected >= 0) == injected)
            return true;
    return false;
}

/* Returns a gate's data as a journal payload, or NULL if there is no memory. Release it with
 * free(). */
static struct ddp_noise_gate *pack(const struct ddp_gate_data *data, int index, int injected)
{
    const struct ddp_noise_gate head = {.index = index,
                                        .injected = injected,
                                        .pairs = data->pairs,
                                        .cells = (int32_t)data->count,
                                        .rerun = data->rerun,
                                        .mixed = data->mixed};
    const size_t pairs = (size_t)data->pairs;
    struct ddp_noise_gate *gate = ddp_calloc(1, ddp_noise_gate_bytes(&head));
    if (!gate)
        return NULL;
    *gate = head;
    double *at = (double *)(void *)(gate + 1);
    for (int side = 0; side < 2; side++, at += data->count * pairs)
        memcpy(at, data->median[side], data->count * pairs * sizeof *at);
    for (int side = 0; side < 2; side++, at += pairs)
        memcpy(at, data->pingpong[side], pairs * sizeof *at);
    for (int side = 0; side < 2; side++, at += pairs)
        memcpy(at, data->memory[side], pairs * sizeof *at);
    memcpy(at, data->id, data->count * sizeof *data->id);
    return gate;
}

/* True if the cells and the number of pairs are those of the first gate. Otherwise the gates cannot
 * be judged together. */
static bool same_cells(const struct ddp_selftest *test, const struct ddp_gate_data *data)
{
    struct ddp_gate_data first;
    if (test->count == 0)
        return true;
    ddp_selftest_data(test->gates[0], &first);
    bool same = first.count == data->count && first.pairs == data->pairs;
    for (size_t c = 0; same && c < data->count; c++)
        same = strcmp(first.id[c], data->id[c]) == 0;
    return same;
}

int ddp_selftest_visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct ddp_selftest *test = arg;
    bool good = entry->kind == DDP_JOURNAL_GATE && test->count < 2 * DDP_SELFTEST_GATES_MAX;
    if (good) {
        DDP_TRY(keep(test, entry->payload, entry->payload_bytes, err));
        struct ddp_noise_gate *gate = test->gates[--test->count];
        struct ddp_gate_data data;
        ddp_selftest_data(gate, &data);
        good = same_cells(test, &data) && !is_done(test, gate->injected >= 0, gate->index);
        if (good)
            test->count++;
        else
            free(gate);
    }
    if (good)
        return 0;
    ddp_fail(err, DDP_EINPUT, "the journal has an entry that no self-test writes: '%s'", entry->id);
    return ddp_hint(err, "use --restart to begin again");
}

static int split_sides(const struct ddp_selftest_setup *setup, const char *next,
                       struct ddp_gate_setup *gate, struct ddp_err *err)
{
    gate->side[DDP_BASE] = (struct ddp_gate_side){.text = setup->command, .env = setup->env};
    gate->side[DDP_NEXT] = (struct ddp_gate_side){.text = next, .env = setup->env};
    DDP_TRY(ddp_argv_split(setup->command, &gate->side[DDP_BASE].words, err));
    return ddp_argv_split(next, &gate->side[DDP_NEXT].words, err);
}

/* Writes the command line of the second side to next [bytes]. Adds the delay if cell >= 0. */
static int name_next(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                     int cell, char *next, size_t bytes, struct ddp_err *err)
{
    struct ddp_gate_data first;
    int n;
    if (cell < 0) {
        n = snprintf(next, bytes, "%s", setup->command);
    } else {
        ddp_selftest_data(test->gates[0], &first);
        if (strchr(first.id[cell], '\''))
            return ddp_fail(err, DDP_EUSAGE, "no delay can be injected into '%s'", first.id[cell]);
        n = snprintf(next, bytes, "%s --inject-delay '%g@%s'", setup->command, setup->effect * 100,
                     first.id[cell]);
    }
    return n >= 0 && (size_t)n < bytes ? 0 : ddp_fail(err, DDP_EUSAGE, "the command is too long");
}

static int run_gate(const struct ddp_selftest_setup *setup, bool injected, int index,
                    struct ddp_journal *journal, struct ddp_selftest *test, struct ddp_err *err)
{
    struct ddp_gate_setup gate = setup->gate;
    struct ddp_gate_data data = {.count = 0};
    struct ddp_noise_gate *payload = NULL;
    const int cell = injected ? index % test->gates[0]->cells : -1;
    char next[4096];
    int rc;
    gate.injects = injected;
    gate.seed =
        ddp_mix64(setup->gate.seed ^ ddp_mix64(((uint64_t)injected << 32) | (uint64_t)index));
    DDP_TRY(name_next(setup, test, cell, next, sizeof next, err));
    DDP_TRY_GOTO(split_sides(setup, next, &gate, err), out);
    DDP_TRY_GOTO(ddp_gate_measure(&gate, &data, err), out);
    if (data.unjudged.count > 0) {
        const struct ddp_unjudged *first = &data.unjudged.items[0];
        ddp_fail(err, DDP_EMISMATCH, "a self-test cannot judge '%s', a %s", first->name,
                 ddp_unjudged_kind(first));
        rc = ddp_hint(err, "the command must always measure the same points, and must not train");
        goto out;
    }
    if (!same_cells(test, &data)) {
        ddp_fail(err, DDP_EMISMATCH, "the cells of this gate differ from those of the first");
        rc = ddp_hint(err, "the command of a self-test must always measure the same points");
        goto out;
    }
    payload = pack(&data, index, cell);
    if (!payload) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
        goto out;
    }
    struct ddp_journal_entry entry = {.kind = DDP_JOURNAL_GATE,
                                      .launch = 1,
                                      .cell = index,
                                      .payload = payload,
                                      .payload_bytes = ddp_noise_gate_bytes(payload)};
    snprintf(entry.id, sizeof entry.id, "%s %d", injected ? "injected" : "A/A", index);
    DDP_TRY_GOTO(ddp_journal_append(journal, &entry, err), out);
    rc = keep(test, payload, entry.payload_bytes, err);
out:
    free(payload);
    ddp_gate_release(&data);
    ddp_argv_release(&gate.side[DDP_BASE].words);
    ddp_argv_release(&gate.side[DDP_NEXT].words);
    return rc;
}

int ddp_selftest_run(const struct ddp_selftest_setup *setup, struct ddp_journal *journal,
                     struct ddp_selftest *test, struct ddp_err *err)
{
    const int all = setup->same + setup->injected;
    int index[2] = {0, 0};
    for (int i = 0; i < all; i++) {
        const bool injected = ddp_selftest_injects(setup->same, setup->injected, i);
        const int mine = index[injected]++;
        if (is_done(test, injected, mine))
            continue;
        if (setup->on_gate)
            setup->on_gate(setup->arg, i, all, injected);
        DDP_TRY(run_gate(setup, injected, mine, journal, test, err));
    }
    return 0;
}

void ddp_selftest_release(struct ddp_selftest *test)
{
    for (int i = 0; i < test->count; i++)
        free(test->gates[i]);
    free(test->gates);
    *test = (struct ddp_selftest){.count = 0};
}
