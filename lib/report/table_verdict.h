/* A verdict as lines for people, and as the JSON of the document. Private to report_*.c. */
#ifndef DDP_REPORT_TABLE_VERDICT_H
#define DDP_REPORT_TABLE_VERDICT_H

#include "base/json.h"
#include "record/verdict_record.h"
#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Head, a row a cell, the outcome last. */
void ddp_table_verdict(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                       struct ddp_strbuf *out);
/* obj["verdict"]: an object, or null without one (v NULL). */
void ddp_json_verdict(cJSON *obj, const struct ddp_verdict_record *v);
/* What was not judged as a row among the cells: a cell without figures, and "not judged: cell of
 * base". */
void ddp_unjudged_as_cell(const struct ddp_unjudged *item, struct ddp_verdict_cell *cell,
                          char *state, size_t bytes);
/* "1.093 (1.071 to inf)": for one-line messages. */
void ddp_verdict_ratio_text(const struct ddp_cell *cell, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
