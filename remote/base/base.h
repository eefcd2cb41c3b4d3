/*
 * base.h - bases: what a store had up to a part, in few large objects, from which a pull begins;
 * and the removal of what they replace (SPEC.md 11.3).
 *
 * Invariant: the segments of a base, applied in order to an empty replica, lead to exactly the
 * position after its part, and have only what was in parts. The newest base that is old enough, and
 * all that came after it, have everything that pulls need.
 *
 * Threads: any, several may collect at the same time; one at a time per source.
 */
#ifndef AGENTWAL_REMOTE_BASE_BASE_H
#define AGENTWAL_REMOTE_BASE_BASE_H

#include "remote/history/fetch.h"
#include "remote/history/history.h"
#include "remote/layout/layout.h"

/* Reads the newest base into an initialised list; *number is 0 when there is none. */
enum wal_status wal__base_read_last(struct wal_remote *remote, const uint8_t uuid[16],
                                    uint64_t *number, struct wal__base_list *list,
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the base of this number. WAL_ENOTFOUND. */
enum wal_status wal__base_read(struct wal_remote *remote, const uint8_t uuid[16], uint64_t number,
                               struct wal__base_list *list, struct wal_error *error) WAL_MUST_USE;

/* The object of the segment at `at` of the list. */
struct wal__store_object wal__base_object(const uint8_t uuid[16], const struct wal__base_list *list,
                                          size_t at);

/* Appends the segments from the rank `first` on, as items of a fetch. */
enum wal_status wal__base_items(const uint8_t uuid[16], const struct wal__base_list *list,
                                size_t first, struct wal__buf *items,
                                struct wal_error *error) WAL_MUST_USE;

/* Reads what a segment of the list says of itself. WAL_ENOTFOUND: it is lost, or only older bases
 * than the newest one name it. */
enum wal_status wal__base_head(struct wal_remote *remote, wal__part_info_fn *info,
                               const uint8_t uuid[16], const struct wal__base_list *list, size_t at,
                               struct wal_part_info *segment, struct wal_error *error) WAL_MUST_USE;

/* The object of the indexes that were made with the segment at `at`, which may be none. False: it
 * is not the first one of its base. */
bool wal__base_index(const uint8_t uuid[16], const struct wal__base_list *list, size_t at,
                     struct wal__store_object *object);

/* Whether the base has the part. */
static inline bool wal__base_has(const struct wal__base_list *list, uint64_t epoch, uint64_t part)
{
    return epoch < list->epoch || (epoch == list->epoch && part <= list->part);
}

enum {
    /* A base is due after this number of parts, however large they are: it has the same bytes, in
     * fewer objects. */
    WAL__BASE_PARTS = 1000,
    WAL__BASE_SEGMENT_SIZE = 64 * 1024 * 1024, /* of a segment, at most */
    WAL__BASE_INDEX_SIZE = 64 * 1024 * 1024    /* of the indexes, at most */
};

/* What a base is made of. */
enum wal__base_kind {
    WAL__BASE_NEXT = 0, /* the one before it, and what came after that */
    WAL__BASE_ANEW,     /* the whole store */
    WAL__BASE_ERASED    /* likewise, and replicas replace what they have */
};

/* The end of a base: a part that was acknowledged, and all before it. */
struct wal__base_end {
    uint64_t epoch;
    uint64_t part; /* 0: none */
    struct wal__position position;
};

/* What a call stored. */
struct wal__base_result {
    uint64_t number; /* of the base; 0: none was made */
    uint64_t segments;
    uint64_t bytes; /* of them */
};

/*
 * Makes a base that leads to the end, if the newest one does not. WAL__BASE_NEXT reuses its
 * segments, but for small ones at its end. Makes none when compaction has replaced what is at the
 * end, or another process makes one. WAL_ECONFLICT: the store has another past. WAL_EREMOTE: it may
 * be repeated.
 */
enum wal_status wal__base_make(struct wal_remote *remote, const struct wal__part_source *source,
                               const uint8_t uuid[16], const struct wal__base_end *end,
                               enum wal__base_kind kind, struct wal__base_result *result,
                               struct wal_error *error) WAL_MUST_USE;

/* Counts the parts after the newest base, until one is due. */
enum wal_status wal__base_count_parts(struct wal_remote *remote, const uint8_t uuid[16],
                                      const struct wal__base_end *end, uint64_t *parts,
                                      struct wal_error *error) WAL_MUST_USE;

/* The age that a base must have: a day, in which pulls end that began before it. */
#define WAL__COLLECT_AGE_MS (INT64_C(24) * 60 * 60 * 1000)

struct wal__collect_result {
    uint64_t parts;    /* removed */
    uint64_t segments; /* likewise */
    uint64_t bases;
    uint64_t indexes;
    uint64_t bundles;
    uint64_t bytes; /* of all objects that were removed but bases */
};

/*
 * Removes the parts that are below the newest base of at least age_ms, and the segments, indexes
 * and bases that only older ones name; and all bundles. Fences, epochs and the last
 * WAL__PART_WINDOW parts remain. After a failure the next call goes on.
 */
enum wal_status wal__collect(struct wal_remote *remote, const uint8_t uuid[16], int64_t now_ms,
                             int64_t age_ms, struct wal__collect_result *result,
                             struct wal_error *error) WAL_MUST_USE;

#endif
