/* Training runs in a sweep. Reads each data set once for all runs, and estimates time and memory.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sweep.h"
#include "train_options.h"

#define START_S    0.1
#define FLOP_PER_S 2e10 /* matrix products on an older core */

extern const struct ddp_cmd ddp_cmd_train;

static const struct ddp_sweep_data *find_data(const struct ddp_sweep_values *v,
                                              const struct ddp_dataset_reader *reader,
                                              const struct ddp_dataset_request *r)
{
    for (int i = 0; i < v->data_count; i++) {
        const struct ddp_dataset_request *have = &v->data[i].request;
        bool same_dir =
            (!r->dir && !have->dir) || (r->dir && have->dir && strcmp(r->dir, have->dir) == 0);
        if (v->data[i].reader == reader && same_dir && have->channels == r->channels &&
            have->height == r->height && have->width == r->width && have->classes == r->classes &&
            have->images == r->images && have->seed == r->seed)
            return &v->data[i];
    }
    return NULL;
}

void ddp_sweep_lend_data(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                         void *values)
{
    struct ddp_train_values *train = values;
    struct ddp_dataset_request request;
    if (item->cmd != &ddp_cmd_train)
        return;
    const struct ddp_dataset_reader *reader = ddp_train_values_data(train, &request);
    const struct ddp_sweep_data *data = find_data(v, reader, &request);
    if (data)
        train->data = data->set;
    train->model_device = item->model_device;
}

void ddp_sweep_keep_device(struct ddp_sweep_item *item, const void *values)
{
    if (item->cmd == &ddp_cmd_train)
        item->model_device = ((const struct ddp_train_values *)values)->model_device;
}

int ddp_sweep_load_data(struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_sweep_open *open, struct ddp_err *err)
{
    struct ddp_train_values *train = open->values;
    struct ddp_dataset_request request;
    if (item->cmd != &ddp_cmd_train)
        return 0;
    const struct ddp_dataset_reader *reader = ddp_train_values_data(train, &request);
    if (!find_data(v, reader, &request)) {
        struct ddp_sweep_data *more =
            ddp_realloc_array(v->data, (size_t)v->data_count + 1, sizeof *more);
        if (!more)
            return ddp_fail(err, DDP_ENOMEM, "no memory for a data set");
        v->data = more;
        struct ddp_sweep_data *data = &more[v->data_count];
        *data = (struct ddp_sweep_data){.reader = reader, .request = request};
        DDP_TRY(ddp_dataset_load(reader->name, &request, &data->set, err));
        v->data_count++;
    }
    ddp_sweep_lend_data(v, item, train);
    return 0;
}

void ddp_sweep_return_data(const struct ddp_sweep_item *item, void *values)
{
    if (item->cmd == &ddp_cmd_train)
        ((struct ddp_train_values *)values)->data = (struct ddp_dataset){.name = ""};
}

static double guess_training(const struct ddp_train_values *v, int job, int ranks)
{
    struct ddp_train_options o;
    ddp_train_values_options(v, job, 0, &o);
    const double images = (double)v->data.train.count, batch = ddp_train_batch(&o, ranks) * ranks;
    double steps = o.epochs * ceil(images / DDP_MAX(batch, 1));
    if (o.max_steps > 0)
        steps = fmin(steps, (double)o.max_steps);
    /* Evaluation runs once per epoch. Its forward pass is about a third of the work of a step. */
    const double images_processed = steps * batch + o.epochs * (double)v->data.eval.count / 3;
    return START_S + images_processed * o.model->flops_per_image(o.model) / ranks / FLOP_PER_S;
}

void ddp_sweep_estimate_training(const struct ddp_sweep_item *item, const void *values, int local,
                                 double *seconds, uint64_t *bytes)
{
    const struct ddp_train_values *v = values;
    *seconds = 0;
    *bytes = 0;
    for (int job = 0; job < v->job_count; job++) {
        struct ddp_train_options o;
        ddp_train_values_options(v, job, 0, &o);
        *seconds += guess_training(v, job, item->ranks) * v->seeds.n;
        uint64_t each =
            ddp_train_heap_bytes(&o, item->ranks) + ddp_train_private_bytes(&o, item->ranks);
        *bytes = DDP_MAX(*bytes, each * (uint64_t)local);
    }
}
