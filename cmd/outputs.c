#include "outputs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *reporter_name(const void *ctx, int i)
{
    (void)ctx;
    const struct ddp_reporter *const *all = ddp_reporter_all();
    return all[i] ? all[i]->name : NULL;
}

/* Adds the reporter of one --format NAME[=FILE]. */
static int add_format(struct ddp_report_set *set, const char *text, bool color, struct ddp_err *err)
{
    char name[64];
    const char *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - text) : strlen(text)),
             text);
    const struct ddp_reporter *reporter = ddp_reporter_find(name);
    if (!reporter) {
        ddp_fail(err, DDP_EUSAGE, "unknown format '%s' in --format", name);
        return ddp_hint_nearest(err, name, reporter_name, NULL,
                                "`ddpbench list reporters` shows them");
    }
    return ddp_report_add(set, reporter, equals ? equals + 1 : "-", color, err);
}

int ddp_outputs_add(struct ddp_report_set *set, const char *json,
                    const struct ddp_string_list *formats, bool color, struct ddp_err *err)
{
    color &= isatty(STDOUT_FILENO) != 0;
    if (json)
        DDP_TRY(ddp_report_add(set, ddp_reporter_find("json"), json, color, err));
    for (int i = 0; i < formats->n; i++)
        DDP_TRY(add_format(set, formats->v[i], color, err));
    if (formats->n == 0 && !ddp_report_has_stdout(set))
        DDP_TRY(ddp_report_add(set, ddp_reporter_find("table"), "-", color, err));
    return 0;
}
