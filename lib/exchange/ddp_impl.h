/* Inside libddp: what its files share. Nobody else includes this.
 *
 *   ddp_world.c    opening and closing a world, what it says of itself
 *   ddp_run.c      our own launcher
 *   ddp_modules.c  where backend modules lie
 *   ddp_group.c    named groups
 *   ddp_agree.c    one small exchange before each collective, so that it fails on all ranks or none
 *   ddp_stage.c    the buffer arrays are packed into
 *   ddp_coll.c     all_reduce, reduce, bcast; parameters in ddp_param.c
 *   ddp_shards.c   all_gather, reduce_scatter
 *   ddp_bucket.c   the bucketer, on bucket.h */
#ifndef DDP_EXCHANGE_DDP_IMPL_H
#define DDP_EXCHANGE_DDP_IMPL_H

#include "coll/async.h"
#include "comm/launch.h"
#include "comm/watchdog.h"
#include "exchange/ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_GROUP_NAME_MAX 63

/* First in every public function that can fail: err may be NULL there, but not below, where
 * `return ddp_hint(err, ...)` takes the code from it. */
#define DDP_OWN_ERR(err)                                                                           \
    struct ddp_err own_err_ = DDP_ERR_INIT;                                                        \
    err = (err) != NULL ? (err) : &own_err_

/* A buffer that only grows. registered: all members can reach it. */
struct ddp_stage {
    void *data;
    size_t bytes;
    bool registered;
};

/* A rank's word before a collective: what it is about to do, must be equal on all ranks; place: how
 * its arrays lie, may differ, and then they are copied; code: 0, or why it refuses. */
struct ddp_note {
    uint32_t kind; /* enum ddp_note_kind */
    int32_t code;
    uint64_t what, place;
};
enum ddp_note_kind {
    DDP_NOTE_BARRIER,
    DDP_NOTE_GROUP,
    DDP_NOTE_ALLOC,
    DDP_NOTE_ALL_REDUCE,
    DDP_NOTE_REDUCE,
    DDP_NOTE_BCAST,
    DDP_NOTE_ALL_GATHER,
    DDP_NOTE_REDUCE_SCATTER,
    DDP_NOTE_PARAMETERS,
    DDP_NOTE_BUCKETER,
    DDP_NOTE_COUNT
};

/* ranks [n]: of the world. comm: NULL when this rank is not in it; the world's group borrows the
 * world's. notes [n]. async and its watchdog: from the first bucketer on. */
struct ddp_group {
    struct ddp *world;
    struct ddp_group *next;
    char name[DDP_GROUP_NAME_MAX + 1];
    int *ranks, n;
    struct ddp_comm *comm;
    struct ddp_note *notes;
    struct ddp_stage stage;
    struct ddp_async *async;
    struct ddp_watchdog *async_watchdog;
};

struct ddp_parameter {
    char *name;
    struct ddp_array array;
};

/* Whose "one world" a world is. */
enum ddp_slot { DDP_SLOT_NONE, DDP_SLOT_PROCESS, DDP_SLOT_THREAD };

struct ddp {
    struct ddp_comm *comm;
    enum ddp_slot slot;
    bool aborted;
    struct ddp_group *groups; /* in order of creation; the first is the world */
    struct ddp_parameter *parameters;
    int parameter_count;
    struct ddp_bucketer *bucketers;
    struct ddp_watchdog *watchdog;
    void (*on_lost)(void *arg, const char *story);
    void *on_lost_arg;
};

struct ddp_bucketer {
    struct ddp_group *group;
    struct ddp_buckets *buckets;
    void *memory; /* of the buckets; NULL: in place */
    size_t memory_bytes;
    bool registered;
    struct ddp_bucketer *next; /* in ddp.bucketers */
};

/* Options with their defaults filled in. */
struct ddp_settings {
    struct ddp_init_options options;
    struct ddp_comm_options comm;
    char module_dir[4400];
};

/* ddp_world.c. DDP_EUSAGE when an option is illegal. */
int ddp_settings_fill(const struct ddp_init_options *options, struct ddp_settings *out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* A rank has one world. DDP_EUSAGE when the slot is taken. free: for (processes) another. */
int ddp_slot_take(enum ddp_slot slot, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_slot_free(enum ddp_slot slot);
bool ddp_slot_is_taken(void);
/* Opens a world; takes and, when it fails, frees the slot. */
int ddp_open(const struct ddp_backend *backend, const struct ddp_place *place,
             const struct ddp_settings *settings, enum ddp_slot slot, struct ddp **out,
             struct ddp_err *err) DDP_MUST_CHECK;

/* ddp_modules.c: the folder of ddpbench-mpi-*.so. */
void ddp_modules_find(const char *given, char *out, size_t out_bytes);

/* ddp_group.c. The world's own group. */
int ddp_group_add_world(struct ddp *d, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_group_release_all(struct ddp *d);
/* The group a call is for (NULL: the world). DDP_EUSAGE when this rank is not in it, DDP_ELOST when
 * the world was given up. */
int ddp_group_enter(struct ddp *d, struct ddp_group *group, struct ddp_group **out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Its progress thread, started at the first call. Collective over the group. */
int ddp_group_async(struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;

/* ddp_agree.c. Collective over the group. Returns mine->code or that of the first rank that refuses
 * (with its words), DDP_EMISMATCH when ranks call different things, or 0. *same_place: is place
 * equal on all ranks? (NULL is fine) */
int ddp_agree(struct ddp_group *group, const struct ddp_note *mine, bool *same_place,
              struct ddp_err *err) DDP_MUST_CHECK;
/* Mixes a value, arrays' counts and dtypes, a text into a note. */
uint64_t ddp_digest(uint64_t digest, uint64_t value);
uint64_t ddp_digest_arrays(uint64_t digest, const struct ddp_array *arrays, int n);
uint64_t ddp_digest_text(uint64_t digest, const char *text);
/* Where the arrays lie: in which registered memory, and which follow the one before of their dtype.
 */
uint64_t ddp_digest_place(const struct ddp_group *group, uint64_t digest,
                          const struct ddp_array *arrays, int n);
/* DDP_EUSAGE: n < 0, no arrays, an unknown dtype, NULL data, more bytes than memory can have. */
int ddp_check_arrays(const struct ddp_array *arrays, int n, struct ddp_err *err) DDP_MUST_CHECK;

/* ddp_stage.c. At least `bytes`. Collective over the group, equal bytes: fails on all or none. */
int ddp_stage_reserve(struct ddp_group *group, size_t bytes, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_stage_release(struct ddp_group *group);
/* Memory for a group: registered where that can be, else pages of this rank. As above. */
int ddp_group_alloc(struct ddp_group *group, size_t bytes, void **out, bool *registered,
                    struct ddp_err *err) DDP_MUST_CHECK;
void ddp_group_free(struct ddp_group *group, void *ptr, size_t bytes, bool registered);

/* ddp_coll.c. One collective on arrays as lib/coll takes them. */
int ddp_coll_once(struct ddp_group *group, const struct ddp_coll_args *args,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* All-reduce, reduce and bcast of a list. root: of the group. */
int ddp_coll_list(struct ddp *d, enum ddp_note_kind kind, const struct ddp_array *arrays, int n,
                  int root, const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
