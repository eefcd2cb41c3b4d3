/*
 * entry_source.c - reads the entries of a stream for a view (entry_source.h).
 *
 * Threads: one thread at a time.
 */
#include "convert/render/entry_source.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum wal_status
wal__entry_source_open(struct wal__entry_source *source,
                       struct wal_session *session,
                       const struct wal_entry_cursor_options *options,
                       bool is_fork, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    /* Ids are in the payload: load all payloads. */
    if (is_fork && options->stream == 0) {
        status = wal__copy_open(&source->copy, session, source->heap,
                                options->flags &
                                    ~(uint32_t)WAL_ENTRY_CURSOR_OUT_OF_LINE,
                                &source->is_copy, error);
    }
    return status != WAL_OK || source->is_copy
               ? status
               : wal_entry_cursor_open(session, options, &source->cursor,
                                       error);
}

void wal__entry_source_close(struct wal__entry_source *source)
{
    wal_entry_cursor_close(source->cursor);
    if (source->is_copy) {
        wal__copy_close(&source->copy);
    }
    wal__heap_free(source->heap, source->payload);
    source->cursor = NULL;
    source->payload = NULL;
    source->is_copy = false;
}

static bool append_payload(void *ctx, const void *data, size_t size)
{
    struct wal__entry_source *source = ctx;

    if (source->capacity - source->size < size) {
        size_t more = 2 * (source->size + size);
        uint8_t *payload =
            wal__heap_resize(source->heap, source->payload, more, 1);
        if (payload == NULL) {
            source->has_failed = true;
            return false;
        }
        source->payload = payload;
        source->capacity = more;
    }
    WAL__ASSERT(size <= source->capacity - source->size);
    memcpy(source->payload + source->size, data, size);
    source->size += size;
    return true;
}

/* Whether an out-of-line payload must be loaded. */
static bool must_load(const struct wal__entry_source *source,
                      const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0 &&
           (source->size_max == 0 || entry->payload_size <= source->size_max);
}

/* Loads the out-of-line payload of a line. */
static enum wal_status load_payload(struct wal__entry_source *source,
                                    struct wal_entry *entry,
                                    struct wal_error *error)
{
    enum wal_status status;

    source->size = 0;
    status = wal__copy_read_payload(&source->copy, source->store, entry,
                                    append_payload, source, error);
    if (status == WAL_OK && source->has_failed) {
        status = WAL_ENOMEM;
    }
    if (status == WAL_OK) {
        entry->payload = (struct wal_slice){source->payload, source->size};
        entry->payload_size = source->size;
        entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
    }
    return status;
}

enum wal_status wal__entry_source_next(struct wal__entry_source *source,
                                       struct wal_entry *entry,
                                       struct wal_error *error)
{
    enum wal_status status;

    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    if (!source->is_copy) {
        return wal_entry_cursor_next(source->cursor, entry, error);
    }
    status = wal__copy_next(&source->copy, entry, error);
    if (status == WAL_OK && must_load(source, entry)) {
        status = load_payload(source, entry, error);
    }
    if (status == WAL_OK && !wal__copy_ids_map_entry(source->ids, source->keep,
                                                     source->dialect, entry)) {
        status = wal__no_memory(error);
    }
    return status;
}
