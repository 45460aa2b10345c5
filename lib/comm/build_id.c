#include "comm/build_id.h"

#include "build_facts.h"

const char *ddp_build_commit(void)
{
    return DDP_COMMIT;
}

const char *ddp_build_version(void)
{
    return DDP_VERSION;
}

const char *ddp_build_flags(void)
{
    return DDP_FAULTS ? DDP_COMPILER " " DDP_CFLAGS " FAULTS=1" : DDP_COMPILER " " DDP_CFLAGS;
}
