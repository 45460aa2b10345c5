#include "record/vary.h"

#include <stddef.h>

const char *const ddp_vary_names[] = {"sync", "feedback", "lr", NULL};
