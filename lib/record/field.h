/* Tables of the members of a struct. The JSON documents, the CSV columns and the lines of the
 * journal are made from these tables. The readers of documents and journals check values against
 * these tables.
 *
 * A document shows a value at its path, with the unit that the path names. The journal stores a
 * member under its own name, in the member's own unit. */
#ifndef DDP_RECORD_FIELD_H
#define DDP_RECORD_FIELD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_field_kind {
    DDP_FIELD_TEXT,       /* char[]. "" means missing. It must not contain <>&|`"'. */
    DDP_FIELD_PATH,       /* Like TEXT, but with any characters, as in a file name. */
    DDP_FIELD_BORROWED,   /* const char *. NULL and "" mean missing. After reading, it points to the
                           * text of the document, which the reader makes printable. */
    DDP_FIELD_BOOL,       /* bool */
    DDP_FIELD_ENUM,       /* An enum from `least` to `most`, or a bool with two names. */
    DDP_FIELD_COUNT,      /* An integer of 4 or 8 bytes. -1 means missing. */
    DDP_FIELD_HASH,       /* uint64_t, shown as "fnv1a64:<16 hex digits>". */
    DDP_FIELD_NUMBER,     /* double. NaN means missing. */
    DDP_FIELD_TIME,       /* double in ns, shown in us. */
    DDP_FIELD_RANGE,      /* Two doubles: the ends of an interval. */
    DDP_FIELD_TIME_RANGE, /* Like RANGE, in ns, shown in us. */
    DDP_FIELD_OBJECT,     /* No value. The object at `path` is null if the field does not apply. A
                           * row may have a member, which is a double. If the member is NaN, the
                           * object is null, too. */
    DDP_FIELD_LIST,       /* No value. The caller fills the array at `path`. */
    DDP_FIELD_SET         /* unsigned: a set of bits. choices[i] is the name of bit i. A reader
                           * ignores other names, which a newer version may have added. */
};

#define DDP_FIELD_TEXT_BYTES 2048 /* Room for a text. No member is longer. */

struct ddp_field {
    const char *name;     /* Key of the member in the journal. NULL: the journal lacks it. */
    size_t offset, bytes; /* The member. bytes 0: the row has no member. */
    enum ddp_field_kind kind;
    const char *path; /* Path in a document, for example "time_us.median". NULL: not shown. */
    /* Column in CSV. A RANGE names two columns, separated by a comma. NULL: none. */
    const char *column;
    int64_t least; /* Smallest value of a COUNT or ENUM. -1: the COUNT may be missing. */
    /* Largest value of a COUNT or ENUM, or largest bit of a SET. For a COUNT, 0 means 2^53 (8
     * bytes) or 2^31 - 1 (4 bytes). */
    int64_t most;
    int64_t from;                        /* A COUNT below `from` is shown as missing. */
    bool (*applies)(const void *object); /* Returns whether there is a value. NULL: always. */
    const char *const *choices;          /* Names of an ENUM's values, or of a SET's bits. */
    /* Writes a derived text to out [DDP_FIELD_TEXT_BYTES]. */
    void (*text)(const void *object, char *out);
    double (*number)(const void *object); /* Derived value, or the lower end of a RANGE. */
    double (*upper)(const void *object);  /* Derived upper end of a RANGE. */
};

/* The table of a struct, in the order of its document. */
struct ddp_fields {
    const struct ddp_field *field;
    size_t count;
};

/* Sets `name`, `offset` and `bytes` of a row, for the member `member` of struct `type`. */
#define DDP_FIELD_AT(type, member)                                                                 \
    .name = #member, .offset = offsetof(struct type, member),                                      \
    .bytes = sizeof(((struct type *)0)->member)

/* Like DDP_FIELD_AT, for a member that documents show and the journal does not store. */
#define DDP_FIELD_SHOWN(type, member)                                                              \
    .name = NULL, .offset = offsetof(struct type, member),                                         \
    .bytes = sizeof(((struct type *)0)->member)

/* The value of a field, as a document shows it. */
struct ddp_field_value {
    /* For a TEXT, PATH, BORROWED, ENUM or HASH. "": missing. For a SET: the names of its bits,
     * separated by blanks. */
    char text[DDP_FIELD_TEXT_BYTES];
    /* For a COUNT, BOOL, SET, OBJECT or LIST. -1: missing, or the field does not apply. */
    int64_t count;
    double number[2]; /* For the other kinds. NaN: missing. */
};
void ddp_field_get(const struct ddp_field *field, const void *object, struct ddp_field_value *out);

/* Sets every number to NaN, every count that may be missing to -1, and every BORROWED text to "".
 */
void ddp_fields_init(const struct ddp_fields *fields, void *object);
/* Makes every TEXT and PATH printable (base/strbuf.h). */
void ddp_fields_printable(const struct ddp_fields *fields, void *object);
/* Adds to `out` the values that a document shows. */
void ddp_fields_show(const struct ddp_fields *fields, const void *object, cJSON *out);
/* Sets out[key] to the value that a document shows at `path`, which must be in the table. */
void ddp_fields_show_one(const struct ddp_fields *fields, const char *path, const void *object,
                         const char *key, cJSON *out);
/* Adds every member that has a name to `out`, for the journal. */
void ddp_fields_store(const struct ddp_fields *fields, const void *object, cJSON *out);
/* Reads the members from a list of items, which begins with `first`. The items must have exactly
 * the keys that ddp_fields_store writes, in the same order. Sets *rest to the item after the last
 * member. Makes texts printable. Returns NULL, or the name of the first member that is missing or
 * not valid. */
const char *ddp_fields_load(const struct ddp_fields *fields, const cJSON *first, void *object,
                            const cJSON **rest);
/* Reads the value at `path` of a document into its member. Returns NULL on success. Otherwise
 * returns a text that says what is wrong with the value. */
const char *ddp_fields_read(const struct ddp_fields *fields, const cJSON *doc, const char *path,
                            void *object);
/* Reads all members that the document has. A member that is missing or null in the document keeps
 * its value. Returns NULL on success. Otherwise sets *path to the path of a wrong value, and
 * returns a text that says what is wrong with it. */
const char *ddp_fields_read_all(const struct ddp_fields *fields, const cJSON *doc, void *object,
                                const char **path);
/* Like ddp_fields_read_all, but a member whose value is not valid keeps its value, too.
 * Exception: any string is accepted for a TEXT or PATH. It is made printable, and cut off if it is
 * too long. */
void ddp_fields_read_valid(const struct ddp_fields *fields, const cJSON *doc, void *object);
/* Returns the field with this path, or NULL. */
const struct ddp_field *ddp_fields_find(const struct ddp_fields *fields, const char *path);
/* Returns the value at a path such as "time_us.median", or NULL. */
const cJSON *ddp_field_item(const cJSON *doc, const char *path);

#ifdef __cplusplus
}
#endif
#endif
