/*
 * base.h - bases: what a store had up to a part, in few large objects, from
 * which a pull begins (SPEC.md 11.3).
 *
 * Invariant: the segments of a base, applied in order to an empty replica, lead
 * to exactly the position after its part, and have only what was in parts.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_BASE_BASE_H
#define AGENTWAL_REMOTE_BASE_BASE_H

#include "remote/history/fetch.h"
#include "remote/history/history.h"
#include "remote/layout/layout.h"

/* Reads the newest base into an initialised list; *number is 0 when there is
 * none. */
enum wal_status wal__base_read_last(struct wal_remote *remote,
                                    const uint8_t uuid[16], uint64_t *number,
                                    struct wal__base_list *list,
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the base of this number. WAL_ENOTFOUND. */
enum wal_status wal__base_read(struct wal_remote *remote,
                               const uint8_t uuid[16], uint64_t number,
                               struct wal__base_list *list,
                               struct wal_error *error) WAL_MUST_USE;

/* The object of the segment at `at` of the list. */
struct wal__store_object wal__base_object(const uint8_t uuid[16],
                                          const struct wal__base_list *list,
                                          size_t at);

/* Appends the segments from the rank `first` on, as items of a fetch. */
enum wal_status wal__base_items(const uint8_t uuid[16],
                                const struct wal__base_list *list, size_t first,
                                struct wal__buf *items,
                                struct wal_error *error) WAL_MUST_USE;

/* Reads what a segment of the list says of itself. WAL_ENOTFOUND: it is lost,
 * or only older bases than the newest one name it. */
enum wal_status wal__base_head(struct wal_remote *remote,
                               wal__part_info_fn *info, const uint8_t uuid[16],
                               const struct wal__base_list *list, size_t at,
                               struct wal_part_info *segment,
                               struct wal_error *error) WAL_MUST_USE;

/* Whether the base has the part. */
static inline bool wal__base_has(const struct wal__base_list *list,
                                 uint64_t epoch, uint64_t part)
{
    return epoch < list->epoch || (epoch == list->epoch && part <= list->part);
}

#endif
