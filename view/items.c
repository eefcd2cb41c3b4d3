/*
 * items.c - a session of a store as items of the neutral model (SPEC.md 10.2).
 *
 * Threads: one thread at a time.
 */
#include "view/items.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/jsonl/json_value.h"
#include "format/jsonl/model_read.h"
#include "view/documents.h"
#include "view/entry.h"
#include "view/source.h"

static bool take(void *ctx, struct wal__model_item *item)
{
    struct wal__items *items = ctx;

    items->given++;
    items->has_stopped |= !items->sink(items->ctx, item);
    return !items->has_stopped;
}

static void begin_reader(struct wal__items *items,
                         struct wal__model_reader *reader,
                         const struct wal__dialect *dialect)
{
    *reader = (struct wal__model_reader){
        .dialect = dialect,
        .keep = &items->keep.arena,
        .scratch = &items->scratch.arena,
        .sink = take,
        .ctx = items,
    };
}

void wal__items_init(struct wal__items *items)
{
    wal__heap_arena_init(&items->keep, items->heap);
    wal__heap_arena_init(&items->scratch, items->heap);
    begin_reader(items, &items->lines, items->dialect);
    begin_reader(items, &items->entries, &wal__dialect_entries);
}

void wal__items_deinit(struct wal__items *items)
{
    wal__heap_arena_deinit(&items->keep);
    wal__heap_arena_deinit(&items->scratch);
}

static bool is_text(struct wal__json_span string, struct wal_slice text)
{
    return string.size > 2 &&
           wal__json_string_equals(string, text.data, (size_t)text.size);
}

/* Whether the line says the id and the parent that the log has. */
static bool is_exact(const struct wal__line *line,
                     const struct wal_entry *entry)
{
    return is_text(line->id, entry->id) &&
           (line->link != WAL__LINK_NAMED ||
            is_text(line->parent, entry->parent_id));
}

static void give_line(struct wal__items *items, struct wal__model_reader *to,
                      struct wal__model_line *line,
                      const struct wal_entry *entry)
{
    enum wal__json_status status;

    line->stream = entry->stream;
    line->id = wal__quoted(&items->scratch.arena, entry->id);
    line->parent = wal__quoted(&items->scratch.arena, entry->parent_id);
    if (line->time.size == 0) {
        line->time = wal__quoted(&items->scratch.arena, entry->timestamp);
    }
    status = to->dialect->reading->line(to, line);
    if (status != WAL__JSON_OK && !items->has_stopped) {
        items->damaged++;
    }
}

/* Of an entry that says nothing: what is under it goes under its parent. */
static void give_gone(struct wal__items *items, const struct wal_entry *entry)
{
    struct wal__model_item gone = {.kind = WAL__MODEL_HEAD,
                                   .stream = entry->stream};

    gone.id = wal__quoted(&items->scratch.arena, entry->id);
    gone.parent = wal__quoted(&items->scratch.arena, entry->parent_id);
    (void)wal__model_give(&items->entries, &gone);
}

static bool drop(void *ctx, struct wal__model_item *item)
{
    (void)ctx;
    (void)item;
    return true;
}

/* Such a reader stands behind the header of a file. */
static void begin_view(struct wal__items *items,
                       struct wal__model_reader *reader,
                       const struct wal__dialect *dialect)
{
    const char *header = dialect->reading->header;
    struct wal__model_line line = {.id = wal__model_literal("\"header\"")};

    begin_reader(items, reader, dialect);
    if (header != NULL) {
        line.text =
            (struct wal__json_span){(const uint8_t *)header, strlen(header)};
        reader->sink = drop;
        (void)dialect->reading->line(reader, &line);
        reader->sink = take;
    }
}

/* The reader of a line; null: of a dialect that is not read. */
static struct wal__model_reader *reader_of(struct wal__items *items,
                                           const struct wal__line_meta *meta)
{
    if (!meta->is_of_view || meta->view == items->dialect) {
        return &items->lines;
    }
    if (meta->view == NULL || meta->view->reading == NULL ||
        meta->view->reading->line == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < WAL__ITEMS_VIEWS; i++) {
        if (items->views[i].dialect == NULL) {
            begin_view(items, &items->views[i], meta->view);
        }
        if (items->views[i].dialect == meta->view) {
            return &items->views[i];
        }
    }
    return NULL;
}

static void read_line(struct wal__items *items, const struct wal_entry *entry)
{
    const struct wal__line_meta meta = wal__entry_meta(entry);
    struct wal__model_reader *reader = reader_of(items, &meta);
    struct wal__model_line line = {.stream = entry->stream};
    struct wal__line read;

    line.text =
        wal__line_text(entry->payload.data, (size_t)entry->payload.size);
    if (wal__line_is_blank(line.text.data, line.text.size)) {
        give_gone(items, entry);
        return;
    }
    if (reader == NULL || reader->dialect->reading->line == NULL ||
        meta.is_whole ||
        reader->dialect->read(line.text.data, line.text.size, &read, NULL) !=
            WAL__JSON_OK) {
        items->damaged++;
        give_gone(items, entry);
        return;
    }
    line.time = read.time;
    line.is_exact = is_exact(&read, entry);
    give_line(items, reader, &line, entry);
}

static void read_entry(struct wal__items *items, const struct wal_entry *entry)
{
    struct wal__model_line line = {.is_exact = true};

    line.text = wal__entry_line(entry, &items->scratch.arena);
    if (line.text.data != NULL) {
        give_line(items, &items->entries, &line, entry);
    }
}

static bool copy(struct wal__arena *arena, struct wal_slice *slice)
{
    struct wal__json_span span = {slice->data, (size_t)slice->size};

    if (span.size > 0) {
        span = wal__arena_copy(arena, span);
        slice->data = span.data;
    }
    return slice->size == 0 || slice->data != NULL;
}

/* Brings a payload in line that is a blob. */
static enum wal_status bring_in(struct wal__items *items,
                                struct wal_entry *entry)
{
    struct wal_blob *blob = NULL;
    void *data = NULL;
    uint64_t got = 0;
    enum wal_status status =
        wal_blob_open(items->store, entry->payload_digest, &blob, NULL);

    if (status == WAL_OK) {
        data =
            wal__arena_take(&items->scratch.arena, (size_t)entry->payload_size);
        status = data != NULL ? wal_blob_read(blob, 0, data,
                                              entry->payload_size, &got, NULL)
                              : WAL_ENOMEM;
    }
    wal_blob_close(blob);
    entry->payload = (struct wal_slice){data, got};
    return status;
}

/* Whether the payload is there to be read. */
static bool has_payload(struct wal__items *items, struct wal_entry *entry)
{
    enum wal_status status;

    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        /* An iterator may take it back with its next entry. */
        return !items->keeps || copy(&items->scratch.arena, &entry->payload);
    }
    if (items->size_max > 0 && entry->payload_size > items->size_max) {
        return false;
    }
    status = bring_in(items, entry);
    if (status == WAL_ENOMEM) {
        items->status = status;
    } else if (status != WAL_OK) {
        items->unreadable++;
    }
    return status == WAL_OK;
}

static void give_entry(struct wal__items *items, struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        items->redacted++;
        give_gone(items, entry);
    } else if (!has_payload(items, entry)) {
        give_gone(items, entry);
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

struct wal_iter_options wal__items_options(uint32_t stream, uint64_t skip)
{
    return (struct wal_iter_options){
        .struct_size = sizeof(struct wal_iter_options),
        .mode = WAL_ITER_ALL,
        .flags = WAL_ITER_REDACTED | WAL_ITER_DURABLE,
        .stream = stream,
        .skip = skip,
    };
}

static enum wal_status take_stream(struct wal__items *items, uint32_t stream,
                                   uint64_t reach, struct wal_error *error)
{
    struct wal_iter_options options =
        wal__items_options(stream, items->taken[stream]);
    struct wal__source source = {.heap = items->heap,
                                 .store = items->store,
                                 .dialect = items->dialect,
                                 .size_max = items->size_max,
                                 .ids = &items->ids,
                                 .keep = &items->keep.arena};
    enum wal_status status = WAL_OK;

    options.flags |= WAL_ITER_OUT_OF_LINE;
    if (items->taken[stream] < reach) {
        status = wal__source_open(&source, items->session, &options,
                                  items->is_fork, error);
        items->is_copy |= source.is_copy;
    }
    /* A copy may have lines that are on no branch, which nobody counts. */
    while (status == WAL_OK && !items->has_stopped &&
           (source.is_copy || items->taken[stream] < reach)) {
        struct wal_entry entry;
        status = wal__source_next(&source, &entry, error);
        if (status == WAL_OK) {
            items->taken[stream]++;
            give_entry(items, &entry);
            status = items->status;
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            items->taken[stream]++;
            items->unreadable++;
            status = WAL_OK;
        }
    }
    wal__source_close(&source);
    return status == WAL_END ? WAL_OK : status;
}

bool wal__items_head(struct wal__items *items, struct wal__json_span *head)
{
    struct wal__json_span own;

    if (!items->is_copy || head->size == 0) {
        return true;
    }
    own = wal__own_ids_of(&items->ids, *head);
    *head =
        wal__quoted(&items->keep.arena, (struct wal_slice){own.data, own.size});
    return own.size == 0 || head->data != NULL;
}

enum wal_status wal__items_begin(struct wal__items *items,
                                 struct wal_error *error)
{
    return items->dialect->reading->tree != NULL
               ? wal__documents_read(items, error)
               : WAL_OK;
}

enum wal_status wal__items_take(struct wal__items *items,
                                const struct wal__reach *reach,
                                struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < 2 && status == WAL_OK && !items->has_stopped;
         i++) {
        status = take_stream(items, i, reach->entries[i], error);
    }
    return status == WAL_ENOMEM
               ? wal__fail(error, status, 0, NULL, 0, "no memory")
               : status;
}

/* Gives what waited in a reader. */
static void finish_reader(struct wal__items *items,
                          struct wal__model_reader *reader)
{
    const struct wal__dialect *dialect = reader->dialect;

    if (dialect != NULL && dialect->reading->finish != NULL &&
        !items->has_stopped &&
        dialect->reading->finish(reader) != WAL__JSON_OK &&
        !items->has_stopped) {
        items->damaged++;
    }
}

enum wal_status wal__items_finish(struct wal__items *items,
                                  struct wal_error *error)
{
    finish_reader(items, &items->lines);
    finish_reader(items, &items->entries);
    for (size_t i = 0; i < WAL__ITEMS_VIEWS; i++) {
        finish_reader(items, &items->views[i]);
    }
    if (items->keep.has_failed || items->scratch.has_failed) {
        items->status = WAL_ENOMEM;
    }
    return items->status == WAL_OK
               ? WAL_OK
               : wal__fail(error, items->status, 0, NULL, 0, "no memory");
}
