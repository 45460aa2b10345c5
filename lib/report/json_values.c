/* Values of the JSON document. */
#include "report/json_values.h"

#include <math.h>

#define NS_PER_US 1e3

void ddp_json_us(cJSON *obj, const char *key, double ns)
{
    ddp_json_num(obj, key, ns / NS_PER_US);
}

void ddp_json_pair(cJSON *obj, const char *key, double lo, double hi)
{
    if (!isfinite(lo) || !isfinite(hi)) {
        ddp_json_null(obj, key);
        return;
    }
    cJSON *pair = ddp_json_arr(obj, key);
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(lo));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(hi));
}
