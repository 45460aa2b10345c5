/* The list of registered parameters, which one call all-reduces. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exchange/ddp_impl.h"

int ddp_add_parameter(struct ddp *d, const char *name, struct ddp_array array, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    if (name == NULL || name[0] == '\0')
        return ddp_fail(err, DDP_EUSAGE, "the parameter name is empty");
    for (int i = 0; i < d->parameter_count; i++)
        if (strcmp(d->parameters[i].name, name) == 0)
            return ddp_fail(err, DDP_EUSAGE, "parameter '%.200s' already exists", name);
    DDP_TRY(ddp_check_arrays(&array, 1, err));
    struct ddp_parameter *grown =
        ddp_realloc_array(d->parameters, (size_t)d->parameter_count + 1, sizeof *d->parameters);
    if (grown != NULL)
        d->parameters = grown;
    char *copy = strdup(name);
    if (grown == NULL || copy == NULL) {
        free(copy);
        return ddp_fail(err, DDP_ENOMEM, "no memory for parameter '%.200s'", name);
    }
    d->parameters[d->parameter_count++] = (struct ddp_parameter){.name = copy, .array = array};
    return 0;
}

void ddp_clear_parameters(struct ddp *d)
{
    for (int i = 0; i < d->parameter_count; i++)
        free(d->parameters[i].name);
    free(d->parameters);
    d->parameters = NULL;
    d->parameter_count = 0;
}

int ddp_all_reduce_parameters(struct ddp *d, const struct ddp_call *call, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct ddp_array *arrays = ddp_calloc((size_t)d->parameter_count, sizeof *arrays);
    if (arrays == NULL) {
        /* Without an abort the other ranks would wait for this one. */
        ddp_abort(d, DDP_ENOMEM);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a list of %d arrays", d->parameter_count);
    }
    for (int i = 0; i < d->parameter_count; i++)
        arrays[i] = d->parameters[i].array;
    int rc = ddp_coll_list(d, DDP_NOTE_PARAMETERS, arrays, d->parameter_count, 0, call, err);
    free(arrays);
    return rc;
}
