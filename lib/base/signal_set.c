#include "base/signal_set.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

static bool is_ignored(int signal)
{
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void ddp_signal_set_termination(sigset_t *set)
{
    static const int termination[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < DDP_COUNT_OF(termination); i++) {
        if (!is_ignored(termination[i]))
            sigaddset(set, termination[i]);
    }
}
