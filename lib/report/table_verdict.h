/* A verdict as text for people, and as JSON for the document. */
#ifndef DDP_REPORT_TABLE_VERDICT_H
#define DDP_REPORT_TABLE_VERDICT_H

#include "base/json.h"
#include "record/verdict_record.h"
#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a head, a row per cell (for a self-test, the results of its gates) and the outcome. */
void ddp_table_verdict(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                       struct ddp_strbuf *out);
/* Sets obj["verdict"] to an object, or to null if v is NULL. */
void ddp_json_verdict(cJSON *obj, const struct ddp_verdict_record *v);
/* Fills the row of a cell or training run that was not judged. *cell has no figures. `state`
 * becomes a text such as "not judged: cell of base". */
void ddp_unjudged_as_cell(const struct ddp_unjudged *item, struct ddp_verdict_cell *cell,
                          char *state, size_t bytes);
/* Writes, for example, "1.093 (one-sided bounds 1.071 and inf)". */
void ddp_verdict_ratio_text(const struct ddp_cell *cell, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
