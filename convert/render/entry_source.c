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

    if (is_fork && options->stream == 0) {
        status = wal__copy_open(&source->copy, session, source->heap,
                                options->flags & WAL_ENTRY_CURSOR_DURABLE,
                                &source->is_copy, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    /* Ids are in the payload: load all payloads. */
    return source->is_copy
               ? wal__copy_open_own(&source->copy,
                                    options->flags &
                                        ~(uint32_t)WAL_ENTRY_CURSOR_OUT_OF_LINE,
                                    &source->cursor, error)
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

/* The next own entry of the session. */
static enum wal_status next_own(struct wal__entry_source *source,
                                struct wal_entry *entry,
                                struct wal_error *error)
{
    enum wal_status status;

    do {
        *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
        status = wal_entry_cursor_next(source->cursor, entry, error);
    } while (status == WAL_OK && entry->sequence < source->copy.first_sequence);
    if (status != WAL_OK || (entry->flags & WAL_ENTRY_LINE) != 0) {
        source->is_own_line_next = false;
    }
    return status;
}

static enum wal_status next_copy_entry(struct wal__entry_source *source,
                                       struct wal_entry *entry,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_END;
    bool was_own_line_next;

    if (!source->is_own_line_next && !source->copy.has_ended) {
        status = wal__copy_next(&source->copy, entry, &source->is_own_line_next,
                                error);
        if (status == WAL_OK && !source->is_own_line_next) {
            return must_load(source, entry) ? load_payload(source, entry, error)
                                            : WAL_OK;
        }
    }
    if (status != WAL_OK && status != WAL_END) {
        return status;
    }
    was_own_line_next = source->is_own_line_next;
    status = next_own(source, entry, error);
    /* A missing own line is lost alone. */
    return was_own_line_next && status == WAL_END ? WAL_ECORRUPT : status;
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
    status = next_copy_entry(source, entry, error);
    if (status == WAL_OK && !wal__copy_ids_map_entry(source->ids, source->keep,
                                                     source->dialect, entry)) {
        status = wal__no_memory(error);
    }
    return status;
}
