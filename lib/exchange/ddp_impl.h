/* Internal declarations that the files of libddp share.
 *
 *   ddp_world.c    opens and closes a world; queries; runs ranks under our own launcher
 *   ddp_group.c    named groups; before a collective, compares the calls of all ranks
 *   ddp_coll.c     the collectives, registered parameters, and the pack buffer
 *   ddp_bucket.c   the bucketer, built on bucket.h
 *   ddp_sync.c     the sync strategies, built on sync.h */
#ifndef DDP_EXCHANGE_DDP_IMPL_H
#define DDP_EXCHANGE_DDP_IMPL_H

#include "coll/async.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "exchange/ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_GROUP_NAME_MAX 63

/* First statement of every public function that can fail, or of the internal function to which the
 * public function passes err. Replaces a NULL err by the address of a local struct, because
 * internal functions use `return ddp_hint(err, ...)`, which reads the code from err. */
#define DDP_OWN_ERR(err)                                                                           \
    struct ddp_err own_err_ = DDP_ERR_INIT;                                                        \
    err = (err) != NULL ? (err) : &own_err_

/* Memory into which a group packs arrays that cannot be reduced in place (ddp_coll.c). The memory
 * grows and never shrinks. */
struct ddp_pack_buffer {
    void *data;
    size_t bytes;
    bool registered; /* True if all members can access the memory. */
};

/* A rank's description of the collective that it is about to start. The ranks compare their notes.
 */
struct ddp_note {
    uint32_t kind; /* enum ddp_note_kind */
    /* 0, or the code with which this rank rejects its arguments. */
    int32_t code;
    /* call: digest of the sizes, types and options, which must be equal on all ranks. position:
     * digest of the positions of the arrays. If `position` differs between ranks, the arrays are
     * packed. */
    uint64_t call, position;
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
    DDP_NOTE_STRATEGY,
    DDP_NOTE_COUNT
};

/* A named group of ranks. */
struct ddp_group {
    struct ddp *world;
    struct ddp_group *next;
    char name[DDP_GROUP_NAME_MAX + 1];
    /* World ranks of the members, [n]. */
    int *ranks, n;
    /* NULL if this rank is not a member. The group "world" borrows the communicator of the world.
     */
    struct ddp_comm *comm;
    /* Notes of all members, [n]. */
    struct ddp_note *notes;
    struct ddp_pack_buffer pack;
    /* The progress thread starts with the first bucketer. Its watchdog exists only with backend
     * mpi. */
    struct ddp_async *async;
    struct ddp_watchdog *async_watchdog;
};

struct ddp_parameter {
    char *name;
    struct ddp_array array;
};

/* Scope in which a world must be the only one: the process, or one thread of ddp_run's thread mode.
 */
enum ddp_slot { DDP_SLOT_NONE, DDP_SLOT_PROCESS, DDP_SLOT_THREAD };

struct ddp {
    struct ddp_comm *comm;
    enum ddp_slot slot;
    bool aborted;
    struct ddp_group *groups; /* In order of creation. The first is the world. */
    struct ddp_parameter *parameters;
    int parameter_count;
    struct ddp_bucketer *bucketers;
    struct ddp_strategy *strategies;
    struct ddp_watchdog *watchdog;
    void (*on_lost)(void *arg, const char *report);
    void *on_lost_arg;
};

/* Options with the defaults filled in. */
struct ddp_settings {
    struct ddp_init_options options;
    struct ddp_comm_options comm;
    char module_dir[4400];
};

/* ddp_world.c. Checks the options and the environment, and fills in defaults. Returns DDP_EUSAGE if
 * an option or a DDPBENCH_* variable is illegal. */
int ddp_settings_fill(const struct ddp_init_options *options, struct ddp_settings *out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Opens a world and takes the slot. On failure, the slot is as before the call. */
int ddp_open(const struct ddp_backend *backend, const struct ddp_rank_info *rank_info,
             const struct ddp_settings *settings, enum ddp_slot slot, struct ddp **out,
             struct ddp_err *err) DDP_MUST_CHECK;

/* ddp_group.c. Adds the group "world". */
int ddp_group_add_world(struct ddp *d, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_group_release_all(struct ddp *d);
/* Resolves the group of a call (NULL: the world). Returns DDP_EUSAGE if this rank is not a member
 * and DDP_ELOST after ddp_abort. */
int ddp_group_enter(struct ddp *d, struct ddp_group *group, struct ddp_group **out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Starts the group's progress thread on the first call. Collective over the group. */
int ddp_group_async(struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;

/* Compares the notes of all ranks. Collective over the group. If a rank rejects its arguments,
 * returns the code and message of the first such rank. Returns DDP_EMISMATCH if the functions or
 * their arguments differ between ranks, and the error of the communicator if the comparison itself
 * fails. Otherwise returns 0. Sets *same_position to whether `position` is equal on all ranks.
 * same_position may be NULL. */
int ddp_agree(struct ddp_group *group, const struct ddp_note *mine, bool *same_position,
              struct ddp_err *err) DDP_MUST_CHECK;
/* Add a value, the counts and dtypes of arrays, or a text to a digest. Return the new digest. */
uint64_t ddp_digest(uint64_t digest, uint64_t value);
uint64_t ddp_digest_arrays(uint64_t digest, const struct ddp_array *arrays, int n);
uint64_t ddp_digest_text(uint64_t digest, const char *text);
/* Adds the positions of the arrays to a digest: their offsets in registered memory, and whether
 * each begins where the previous array of the same dtype ends. */
uint64_t ddp_digest_position(const struct ddp_group *group, uint64_t digest,
                             const struct ddp_array *arrays, int n);
/* Returns DDP_EUSAGE if n is negative, arrays is NULL with n above 0, a dtype is unknown, data is
 * NULL with a count above 0, or the total size exceeds the address space. */
int ddp_check_arrays(const struct ddp_array *arrays, int n, struct ddp_err *err) DDP_MUST_CHECK;

/* Returns true if the arrays follow each other in memory without a gap. Empty arrays are ignored.
 */
bool ddp_arrays_adjacent(const struct ddp_array *arrays, int n);

/* ddp_coll.c. Allocates memory for a group: registered memory if the group is the world and enough
 * is left, otherwise private pages. Collective. Fails on all ranks or on none. */
int ddp_group_alloc(struct ddp_group *group, size_t bytes, void **out, bool *registered,
                    struct ddp_err *err) DDP_MUST_CHECK;
void ddp_group_free(struct ddp_group *group, void *ptr, size_t bytes, bool registered);
void ddp_pack_release(struct ddp_group *group);

#ifdef __cplusplus
}
#endif
#endif
