/* Fuzzes the configurations of sweeps: an accepted one makes a bounded number of cells, and each
 * is a known command with options that cannot be mistaken for anything else. */
#include <stdlib.h>
#include <string.h>

#include "run/sweep_plan.h"
#include "fuzz/fuzz.h"

static bool takes_list(void *arg, const char *command, const char *option)
{
    (void)arg;
    return command[0] == 'a' && option[0] == 's';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddp_sweep_plan plan;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_sweep_plan_parse((const char *)data, size, "input", takes_list, NULL, &plan, &err);
    if (rc != 0) {
        if (err.code != rc || !err.text[0])
            abort();
        return 0;
    }
    if (plan.count < 1 || plan.count > DDP_SWEEP_CELLS_MAX || plan.runs < 1)
        abort();
    for (int i = 0; i < plan.count; i++) {
        const struct ddp_sweep_cell *cell = &plan.cells[i];
        if (cell->run < 0 || cell->run >= plan.runs || cell->argc < 1 ||
            cell->argc > DDP_SWEEP_KEYS_MAX + 1 || cell->argv[cell->argc] ||
            cell->argv[0][0] == '-')
            abort();
        for (int k = 1; k < cell->argc; k++)
            if (strncmp(cell->argv[k], "--", 2) != 0 || strchr("-= ", cell->argv[k][2]))
                abort();
    }
    ddp_sweep_plan_release(&plan);
    return 0;
}
