/*
 * session_items.c - reads a session as items of the neutral model
 * (session_items.h, SPEC.md 10.2).
 *
 * Threads: one thread at a time.
 */
#include "convert/render/session_items.h"

#include <string.h>

#include "agentwal/blob.h"
#include "convert/model/model_member.h"
#include "convert/render/document_items.h"
#include "convert/render/entry_meta.h"
#include "convert/render/entry_source.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

static bool emit_item(void *ctx, struct wal__model_item *item)
{
    struct wal__session_items *items = ctx;

    items->emitted++;
    if (items->is_in_documents && item->kind != WAL__ITEM_HEADER) {
        items->last_document = wal__arena_copy(&items->keep.arena, item->id);
    }
    items->has_stopped |= !items->sink(items->ctx, item);
    return !items->has_stopped;
}

static void init_reader(struct wal__session_items *items,
                        struct wal__model_reader *reader,
                        const struct wal__dialect *dialect)
{
    *reader = (struct wal__model_reader){
        .dialect = dialect,
        .arena = &items->keep.arena,
        .scratch = &items->scratch.arena,
        .sink = emit_item,
        .dialects = wal__dialect_list(),
        .ctx = items,
    };
}

void wal__session_items_init(struct wal__session_items *items)
{
    wal__heap_arena_init(&items->keep, items->heap);
    wal__heap_arena_init(&items->scratch, items->heap);
    init_reader(items, &items->lines, items->dialect);
    init_reader(items, &items->entries, &wal__dialect_entries);
}

void wal__session_items_deinit(struct wal__session_items *items)
{
    wal__heap_arena_deinit(&items->keep);
    wal__heap_arena_deinit(&items->scratch);
}

static bool is_text(struct wal__json_span string, struct wal_slice text)
{
    return string.size > 2 &&
           wal__json_string_equals(string, text.data, (size_t)text.size);
}

/* The parent of an entry's item. Entries of a session that was imported as
 * documents go on after these, or after the item that they name. */
static struct wal__json_span parent_of(struct wal__session_items *items,
                                       const struct wal_entry *entry)
{
    struct wal__json_span after;

    if (entry->parent_id.size > 0 || items->last_document.size == 0 ||
        entry->stream != 0) {
        return wal__json_quote(&items->scratch.arena, entry->parent_id);
    }
    after = wal__entry_meta(entry).after;
    return after.size > 0 ? after : items->last_document;
}

/* Whether the line has the same id and parent as the entry in the log. */
static bool is_exact(const struct wal__line_info *line,
                     const struct wal_entry *entry)
{
    return is_text(line->id, entry->id) &&
           (line->link != WAL__LINK_EXPLICIT ||
            is_text(line->parent, entry->parent_id));
}

/* Makes the reader active, or none; items that the last one holds back come
 * first. */
static void activate(struct wal__session_items *items,
                     struct wal__model_reader *reader)
{
    const struct wal__dialect_read_ops *ops =
        items->active != NULL ? items->active->dialect->read_ops : NULL;

    if (items->active != reader && ops != NULL && ops->release != NULL &&
        !items->has_stopped && ops->release(items->active) != WAL__JSON_OK &&
        !items->has_stopped) {
        items->damaged++;
    }
    items->active = reader;
}

static void emit_line(struct wal__session_items *items,
                      struct wal__model_reader *to,
                      struct wal__model_line *line,
                      const struct wal_entry *entry)
{
    enum wal__json_status status;

    line->stream = entry->stream;
    line->id = wal__json_quote(&items->scratch.arena, entry->id);
    line->parent = parent_of(items, entry);
    if (line->time.size == 0) {
        line->time = wal__json_quote(&items->scratch.arena, entry->timestamp);
    }
    activate(items, to);
    status = to->dialect->read_ops->line(to, line);
    if (status != WAL__JSON_OK && !items->has_stopped) {
        items->damaged++;
    }
}

/* Emits an item without content, so that children of the entry get its
 * parent. */
static void emit_placeholder(struct wal__session_items *items,
                             const struct wal_entry *entry)
{
    struct wal__model_item placeholder = {.kind = WAL__ITEM_HEAD,
                                          .stream = entry->stream};

    activate(items, NULL);
    placeholder.id = wal__json_quote(&items->scratch.arena, entry->id);
    placeholder.parent = parent_of(items, entry);
    (void)wal__model_emit(&items->entries, &placeholder);
}

static bool discard_item(void *ctx, struct wal__model_item *item)
{
    (void)ctx;
    (void)item;
    return true;
}

/* Initialises a reader as if it had read the header of a file. */
static void init_view_reader(struct wal__session_items *items,
                             struct wal__model_reader *reader,
                             const struct wal__dialect *dialect)
{
    const char *header = dialect->read_ops->header;
    struct wal__model_line line = {.id = wal__model_literal("\"header\"")};

    init_reader(items, reader, dialect);
    if (header != NULL) {
        line.text =
            (struct wal__json_span){(const uint8_t *)header, strlen(header)};
        reader->sink = discard_item;
        (void)dialect->read_ops->line(reader, &line);
        reader->sink = emit_item;
    }
}

/* The reader of a line, or NULL if its dialect cannot be read. */
static struct wal__model_reader *find_reader(struct wal__session_items *items,
                                             const struct wal__line_meta *meta)
{
    if (!meta->is_from_view || meta->view == items->dialect) {
        return &items->lines;
    }
    if (meta->view == NULL || meta->view->read_ops == NULL ||
        meta->view->read_ops->line == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < WAL__ITEMS_VIEW_DIALECTS; i++) {
        if (items->view_readers[i].dialect == NULL) {
            init_view_reader(items, &items->view_readers[i], meta->view);
        }
        if (items->view_readers[i].dialect == meta->view) {
            return &items->view_readers[i];
        }
    }
    return NULL;
}

static void read_line(struct wal__session_items *items,
                      const struct wal_entry *entry)
{
    const struct wal__line_meta meta = wal__entry_meta(entry);
    struct wal__model_reader *reader = find_reader(items, &meta);
    struct wal__model_line line = {.stream = entry->stream};
    struct wal__line_info read;

    line.text =
        wal__line_text(entry->payload.data, (size_t)entry->payload.size);
    if (wal__line_is_blank(line.text.data, line.text.size)) {
        emit_placeholder(items, entry);
        return;
    }
    if (reader == NULL || reader->dialect->read_ops->line == NULL ||
        meta.is_opaque ||
        reader->dialect->read(line.text.data, line.text.size, &read, NULL) !=
            WAL__JSON_OK) {
        items->damaged++;
        emit_placeholder(items, entry);
        return;
    }
    line.time = read.time;
    line.is_exact = is_exact(&read, entry);
    emit_line(items, reader, &line, entry);
}

static void read_entry(struct wal__session_items *items,
                       const struct wal_entry *entry)
{
    struct wal__model_line line = {.is_exact = true};

    line.text = wal__entry_line(entry, &items->scratch.arena);
    if (line.text.data != NULL) {
        emit_line(items, &items->entries, &line, entry);
    }
}

static bool copy_to_arena(struct wal__arena *arena, struct wal_slice *slice)
{
    struct wal__json_span span = {slice->data, (size_t)slice->size};

    if (span.size > 0) {
        span = wal__arena_copy(arena, span);
        slice->data = span.data;
    }
    return slice->size == 0 || slice->data != NULL;
}

/* Loads the blob of an out-of-line payload. */
static enum wal_status load_blob_payload(struct wal__session_items *items,
                                         struct wal_entry *entry)
{
    struct wal_blob *blob = NULL;
    void *data = NULL;
    uint64_t got = 0;
    enum wal_status status =
        wal_blob_open(items->store, entry->payload_digest, &blob, NULL);

    if (status == WAL_OK) {
        data = wal__arena_alloc(&items->scratch.arena,
                                (size_t)entry->payload_size);
        status = data != NULL ? wal_blob_read(blob, 0, data,
                                              entry->payload_size, &got, NULL)
                              : WAL_ENOMEM;
    }
    wal_blob_close(blob);
    entry->payload = (struct wal_slice){data, got};
    return status;
}

/* Loads the payload if necessary; false: it cannot be used. */
static bool has_payload(struct wal__session_items *items,
                        struct wal_entry *entry)
{
    enum wal_status status;

    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        /* The cursor reuses the memory of the payload for its next entry. */
        return !items->retains_items ||
               copy_to_arena(&items->scratch.arena, &entry->payload);
    }
    if (items->size_max > 0 && entry->payload_size > items->size_max) {
        return false;
    }
    status = load_blob_payload(items, entry);
    if (status == WAL_ENOMEM) {
        items->status = status;
    } else if (status != WAL_OK) {
        items->unreadable++;
    }
    return status == WAL_OK;
}

static void emit_entry(struct wal__session_items *items,
                       struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        items->redacted++;
        emit_placeholder(items, entry);
    } else if (!has_payload(items, entry)) {
        emit_placeholder(items, entry);
    } else if ((entry->flags & WAL_ENTRY_LINE) != 0) {
        read_line(items, entry);
    } else {
        read_entry(items, entry);
    }
    if (items->keep.has_failed || items->scratch.has_failed) {
        items->status = WAL_ENOMEM;
    }
    if (items->is_idle == NULL || items->is_idle(items->ctx)) {
        wal__heap_arena_reset(&items->scratch);
    }
}

struct wal_entry_cursor_options wal__session_items_options(uint32_t stream,
                                                           uint64_t skip)
{
    return (struct wal_entry_cursor_options){
        .struct_size = sizeof(struct wal_entry_cursor_options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_DURABLE,
        .stream = stream,
        .skip = skip,
    };
}

enum wal_status wal__session_items_count(struct wal_session *session,
                                         uint32_t stream, uint32_t without,
                                         uint64_t *entries,
                                         struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(stream, 0);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags &= ~without;
    status = wal_entry_cursor_open(session, &options, &cursor, error);
    if (status == WAL_OK) {
        *entries = wal_entry_cursor_remaining(cursor);
    }
    wal_entry_cursor_close(cursor);
    return status;
}

static enum wal_status read_stream(struct wal__session_items *items,
                                   uint32_t stream, uint64_t limits,
                                   struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(stream, items->read_counts[stream]);
    struct wal__entry_source source = {.heap = items->heap,
                                       .store = items->store,
                                       .dialect = items->dialect,
                                       .size_max = items->size_max,
                                       .ids = &items->ids,
                                       .keep = &items->keep.arena};
    enum wal_status status = WAL_OK;

    WAL__ASSERT(stream <
                sizeof(items->read_counts) / sizeof(items->read_counts[0]));
    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (items->read_counts[stream] < limits) {
        status = wal__entry_source_open(&source, items->session, &options,
                                        items->is_fork, error);
        items->is_copy |= source.is_copy;
    }
    /* A copy may have lines on no branch, which are not counted. */
    while (status == WAL_OK && !items->has_stopped &&
           (source.is_copy || items->read_counts[stream] < limits)) {
        struct wal_entry entry;
        status = wal__entry_source_next(&source, &entry, error);
        if (status == WAL_OK) {
            items->read_counts[stream]++;
            emit_entry(items, &entry);
            status = items->status;
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            items->read_counts[stream]++;
            items->unreadable++;
            status = WAL_OK;
        }
    }
    wal__entry_source_close(&source);
    return status == WAL_END ? WAL_OK : status;
}

bool wal__session_items_map_head(struct wal__session_items *items,
                                 struct wal__json_span *head)
{
    struct wal__json_span own;

    if (!items->is_copy || head->size == 0) {
        return true;
    }
    own = wal__copy_ids_find(&items->ids, *head);
    *head = wal__json_quote(&items->keep.arena,
                            (struct wal_slice){own.data, own.size});
    return own.size == 0 || head->data != NULL;
}

enum wal_status wal__session_items_begin(struct wal__session_items *items,
                                         struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (items->dialect->read_ops->documents != NULL) {
        items->is_in_documents = true;
        status = wal__document_items_read(items, error);
        items->is_in_documents = false;
    }
    return status;
}

enum wal_status wal__session_items_read(struct wal__session_items *items,
                                        const struct wal__entry_limits *limits,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < 2 && status == WAL_OK && !items->has_stopped;
         i++) {
        status = read_stream(items, i, limits->entries[i], error);
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* Emits the items that wait in a reader. */
static void finish_reader(struct wal__session_items *items,
                          struct wal__model_reader *reader)
{
    const struct wal__dialect *dialect = reader->dialect;

    if (dialect != NULL && dialect->read_ops->finish != NULL &&
        !items->has_stopped &&
        dialect->read_ops->finish(reader) != WAL__JSON_OK &&
        !items->has_stopped) {
        items->damaged++;
    }
}

enum wal_status wal__session_items_finish(struct wal__session_items *items,
                                          struct wal_error *error)
{
    finish_reader(items, &items->lines);
    finish_reader(items, &items->entries);
    for (size_t i = 0; i < WAL__ITEMS_VIEW_DIALECTS; i++) {
        finish_reader(items, &items->view_readers[i]);
    }
    if (items->keep.has_failed || items->scratch.has_failed) {
        items->status = WAL_ENOMEM;
    }
    return items->status == WAL_OK
               ? WAL_OK
               : wal__fail(error, items->status, "no memory");
}
