/* Makes the command line that the results of a gate show. Values in --base-env and --new-env that
 * may be secret are replaced. */
#include <stdlib.h>
#include <string.h>

#include "gate_selftest.h"
#include "record/provenance.h"

/* Returns `prefix` followed by "K=V,K=V", with *** for every V that may not be shown. The caller
 * frees the text. Returns NULL if memory runs out. */
static char *shown_env(const char *prefix, const struct ddp_string_list *list)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_add(&text, prefix);
    for (int i = 0; i < list->n; i++) {
        char key[DDP_OPT_ITEM_MAX];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(list->v[i], "="), list->v[i]);
        ddp_strbuf_add(&text, i ? "," : "");
        if (ddp_provenance_env_allowed(key))
            ddp_strbuf_add(&text, list->v[i]);
        else
            ddp_strbuf_addf(&text, "%s=***", key);
    }
    if (!text.failed)
        return text.text;
    ddp_strbuf_release(&text);
    return NULL;
}

int ddp_gate_shown_argv(const struct ddp_app *app, const struct ddp_gate_values *v, char **argv,
                        char *made[4], struct ddp_err *err)
{
    static const char *const names[] = {"--base-env", "--new-env"};
    static const char *const assigned[] = {"--base-env=", "--new-env="};
    for (int i = 0; i < app->argc; i++) {
        argv[i] = app->argv[i];
        for (int side = 0; side < 2; side++) {
            const bool after = i > 0 && strcmp(app->argv[i - 1], names[side]) == 0;
            if (!after && strncmp(app->argv[i], assigned[side], strlen(assigned[side])) != 0)
                continue;
            char **arg = &made[side + (after ? 0 : 2)];
            if (!*arg)
                *arg = shown_env(after ? "" : assigned[side], &v->env[side]);
            if (!*arg)
                return ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
            argv[i] = *arg;
        }
    }
    return 0;
}
