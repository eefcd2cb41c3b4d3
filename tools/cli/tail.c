/*
 * tail.c - reads the tail of a store (tail.h).
 *
 * The records of one segment up to a known end of the log are collected by number, sorted, and then
 * read one by one, wherever they are by then. A segment that compaction replaces meanwhile is
 * collected anew, before any of its records is returned.
 */
#include "tools/cli/tail.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"

enum {
    PAYLOAD_LIMIT = 256 * 1024,
    REPLACED_MAX = 1000 /* times in a row that compaction replaces a segment */
};

enum wal_status cli_tail_open(struct cli_tail *tail, struct wal_store *store, uint32_t durability,
                              uint64_t after, struct wal_error *error)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    enum wal_status status;

    memset(tail, 0, sizeof(*tail));
    tail->store = store;
    tail->durability = durability;
    options.payload_limit = PAYLOAD_LIMIT;
    status = wal_record_cursor_open(store, &options, &tail->reader, error);
    if (status == WAL_OK) {
        status = wal_store_wait(store, &tail->known, durability, 0, error);
        status = status == WAL_EBUSY ? WAL_OK : status; /* no record yet */
    }
    tail->position = after == CLI_TAIL_END ? tail->known : after;
    if (status != WAL_OK) {
        cli_tail_close(tail);
    }
    return status;
}

static void add_item(void *arg, const struct wal_record *record)
{
    struct cli_tail *tail = arg;

    if (record->sequence > tail->known) {
        return;
    }
    *CLI_ADD(tail) = (struct cli_tail_item){
        .sequence = record->sequence,
        .session_number = record->session_number,
    };
}

enum wal_status cli_tail_read_segment(struct wal_store *store,
                                      const struct wal_segment_info *segment, uint32_t flags,
                                      uint64_t after, uint64_t payload_limit,
                                      void (*visit)(void *arg, const struct wal_record *record),
                                      void *arg, uint64_t *lost, struct wal_error *error)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    enum wal_status status;

    options.flags = flags;
    options.segment = segment->id;
    options.identity = segment->identity;
    options.after_sequence = after;
    options.payload_limit = payload_limit;
    status = wal_record_cursor_open(store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_record_cursor_next(cursor, &record, error);
        if (status == WAL_OK) {
            visit(arg, &record);
        } else if (cli_is_damage(status)) {
            (*lost)++;
            status = WAL_OK;
        }
    }
    wal_record_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status cli_tail_find_segment(struct wal_store *store, uint64_t after, uint64_t *before,
                                      struct wal_segment_info *segment, struct wal_error *error)
{
    struct wal_segment_cursor *cursor = NULL;
    enum wal_status status = wal_segment_cursor_open(store, &cursor, error);

    *before = 0;
    while (status == WAL_OK &&
           (status = wal_segment_cursor_next(cursor, segment, error)) == WAL_OK &&
           segment->last_sequence <= after) {
        *before = segment->last_sequence;
    }
    wal_segment_cursor_close(cursor);
    return status;
}

/* Collects the records of a segment after the position, up to the known end. WAL_ENOTFOUND when the
 * segment was replaced. */
static enum wal_status collect_segment(struct cli_tail *tail,
                                       const struct wal_segment_info *segment,
                                       struct wal_error *error)
{
    struct wal_error lost = CLI_ERROR_INIT;
    enum wal_status status;

    tail->count = 0;
    tail->next = 0;
    tail->lost = 0;
    status = cli_tail_read_segment(tail->store, segment, 0, tail->position, 1, add_item, tail,
                                   &tail->lost, &lost);
    if (tail->lost > 0) {
        tail->lost_error = lost;
    }
    if (status != WAL_OK) {
        tail->count = 0;
        tail->lost = 0;
        if (error != NULL) {
            *error = lost;
        }
        return status;
    }
    if (tail->count > 1) {
        qsort(tail->items, tail->count, sizeof(tail->items[0]), wal__compare_u64);
    }
    tail->covered = segment->last_sequence < tail->known ? segment->last_sequence : tail->known;
    return WAL_OK;
}

/* Collects the records of the next segment that has one; WAL_END without. */
static enum wal_status collect(struct cli_tail *tail, struct wal_error *error)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    enum wal_status status = WAL_OK;
    uint64_t before;
    int replaced = 0;

    while (status == WAL_OK && tail->position < tail->known) {
        status = cli_tail_find_segment(tail->store, tail->position, &before, &segment, error);
        if (status == WAL_OK) {
            status = collect_segment(tail, &segment, error);
        }
        if (status == WAL_ENOTFOUND && replaced++ < REPLACED_MAX) {
            status = WAL_OK;
        } else if (status == WAL_OK && tail->count + tail->lost > 0) {
            return WAL_OK;
        } else if (status == WAL_OK) {
            tail->position = tail->covered;
        }
    }
    /* The newest records may be of kinds that the log lists in no segment. */
    return status == WAL_OK ? WAL_END : status;
}

/* Reads the next item. WAL_ENOTFOUND when it was deleted or redacted since. */
static enum wal_status read_item(struct cli_tail *tail, struct wal_record *record,
                                 struct wal_error *error)
{
    const struct cli_tail_item *item = &tail->items[tail->next];
    enum wal_status status =
        wal_record_cursor_get(tail->reader, item->session_number, item->sequence, record, error);

    status = status == WAL_EREDACTED ? WAL_ENOTFOUND : status;
    if (status == WAL_OK || status == WAL_ENOTFOUND || status == WAL_ECORRUPT) {
        tail->position = item->sequence;
        tail->next++;
    }
    return status;
}

enum wal_status cli_tail_next(struct cli_tail *tail, struct wal_record *record,
                              struct wal_error *error)
{
    enum wal_status status = WAL_ENOTFOUND;

    while (status == WAL_ENOTFOUND) {
        if (tail->lost > 0) {
            tail->lost--;
            if (error != NULL) {
                *error = tail->lost_error;
            }
            return WAL_ECORRUPT;
        }
        if (tail->next < tail->count) {
            status = read_item(tail, record, error);
            continue;
        }
        if (tail->covered > tail->position) {
            tail->position = tail->covered;
        }
        status = collect(tail, error);
        if (status == WAL_OK) {
            status = WAL_ENOTFOUND;
        } else if (status == WAL_ENOTFOUND) {
            return status; /* compaction replaces each segment that is read */
        }
    }
    if (status == WAL_END) {
        /* Ends the slices of the last record: a process that waits must not keep the file that they
         * are in. */
        (void)!wal_record_cursor_next(tail->reader, record, NULL);
    }
    return status;
}

enum wal_status cli_tail_wait(struct cli_tail *tail, int64_t timeout_ms, struct wal_error *error)
{
    return wal_store_wait(tail->store, &tail->known, tail->durability, timeout_ms, error);
}

void cli_tail_close(struct cli_tail *tail)
{
    wal_record_cursor_close(tail->reader);
    free(tail->items);
    memset(tail, 0, sizeof(*tail));
}
