/* Sync strategies: how their names are read. What they do is test_trainer's. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "exchange/sync.h"

static void names_are_read_whole(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "unknown"},
        {"dens", "dense"},
        {"densee", "unknown"},
        {"DENSE", "unknown"},
        {"dense:1", "takes no argument"},
        {"dense:", "takes no argument"},
        {":", "unknown"},
    };
    const struct ddp_sync_class *cls = NULL;
    const char *argument = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    for (int i = 0; ddp_syncs()[i]; i++) {
        if (ddp_syncs()[i]->argument_help)
            continue;
        assert_int_equal(ddp_sync_find(ddp_syncs()[i]->name, &cls, &argument, &err), 0);
        assert_ptr_equal(cls, ddp_syncs()[i]);
        assert_string_equal(argument, "");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct ddp_err)DDP_ERR_INIT;
        assert_int_equal(ddp_sync_find(bad[i].text, &cls, &argument, &err), DDP_EUSAGE);
        assert_true(strstr(err.text, bad[i].words) || strstr(err.hint, bad[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_read_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
