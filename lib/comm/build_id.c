#include "comm/build_id.h"

#include "build_facts.h"

const char *ddp_build_commit(void)
{
    return DDP_COMMIT;
}
