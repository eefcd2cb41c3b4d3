/*
 * copy_own.c - opens a cursor over the own entries of a copy, which follow the
 * shared ones (copy.h, SPEC.md 5.17).
 *
 * Threads: one at a time per copy.
 */
#include "convert/copy/copy.h"
#include "convert/copy/copy_internal.h"
#include "format/bytes/assert.h"

/* Whether the entry at the index is shared. */
static enum wal_status is_shared(struct wal__copy *copy, uint32_t flags,
                                 uint64_t index, bool *is_inherited,
                                 struct wal_error *error)
{
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry;
    enum wal_status status =
        wal__copy_open_cursor(copy->session, 0, flags, index, &cursor, error);

    if (status == WAL_OK) {
        do {
            status = wal__copy_next_entry(cursor, &entry, error);
        } while (status == WAL_ECORRUPT || status == WAL_EIO);
    }
    wal_entry_cursor_close(cursor);
    *is_inherited = status == WAL_OK && entry.sequence < copy->first_sequence;
    return status == WAL_END ? WAL_OK : status;
}

/* Counts the shared entries by binary search; damage may hide some of them. */
static enum wal_status count_shared(struct wal__copy *copy, uint32_t flags,
                                    uint64_t *count, struct wal_error *error)
{
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal__copy_open_cursor(copy->session, 0, flags, 0, &cursor, error);
    uint64_t low = 0;
    uint64_t high = status == WAL_OK ? wal_entry_cursor_remaining(cursor) : 0;

    wal_entry_cursor_close(cursor);
    while (status == WAL_OK && low < high) {
        uint64_t middle = low + (high - low) / 2;
        bool is_inherited = false;

        status = is_shared(copy, flags, middle, &is_inherited, error);
        if (is_inherited) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WAL__ASSERT(status != WAL_OK || low == high);
    *count = low;
    return status;
}

enum wal_status wal__copy_open_own(struct wal__copy *copy, uint32_t flags,
                                   struct wal_entry_cursor **cursor,
                                   struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(copy->session, &info, error);
    uint64_t skip = info.inherited > 0 ? info.inherited - 1 : 0;
    struct wal_entry last;

    if (status == WAL_OK) {
        status =
            wal__copy_open_cursor(copy->session, 0, flags, skip, cursor, error);
    }
    if (status != WAL_OK || info.inherited == 0 ||
        (wal__copy_next_entry(*cursor, &last, NULL) == WAL_OK &&
         last.sequence < copy->first_sequence)) {
        return status;
    }
    wal_entry_cursor_close(*cursor);
    *cursor = NULL;
    status = count_shared(copy, flags, &skip, error);
    return status == WAL_OK ? wal__copy_open_cursor(copy->session, 0, flags,
                                                    skip, cursor, error)
                            : status;
}
