/* Reads the training runs of a result document. Only result_file.c includes this header. */
#ifndef DDP_RECORD_RESULT_RUNS_H
#define DDP_RECORD_RESULT_RUNS_H

#include <cjson/cJSON.h>

#include "record/result_file.h"

/* Fills out->runs, and appends a cell to out->points for the step time of each run that has an
 * epoch. The id of the cell is the name of the run and " step". Its time is the median of the
 * epochs' mean step times. Its interval belongs to this median. The interval is unknown with fewer
 * than six epochs. Skips baseline runs (struct ddp_train_run, baseline). file: the document's name
 * in messages. vary: the keys that names leave out (record/vary.h). */
int ddp_result_read_runs(const cJSON *doc, const char *file, unsigned vary, struct ddp_result *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the character is a letter or a digit. The names of models and the ids of points
 * must begin with such a character. A row of a printed table begins with a name, and GitHub Actions
 * would execute a line that begins with "::" or "##[". */
bool ddp_result_begins_name(char c);

#endif
