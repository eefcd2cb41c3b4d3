/*
 * walconv_items - a session of a store as items of the neutral model.
 *
 * Invariant: memory does not grow with the session, but for what the dialects
 * keep.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/jsonl/json_value.h"
#include "tools/cli.h"
#include "tools/cli_entry.h"
#include "tools/cli_source.h"

#define LOOK_ENTRIES 64 /* so many are looked at for what a session says */

/* A longer payload may be one that the iterator takes back. */
#define HELD_SIZE ((uint64_t)256 << 10)

struct reading {
    struct walconv_items *items;
    struct walconv_arena keep;
    struct walconv_arena scratch;
    struct wal__model_reader lines;   /* imported */
    struct wal__model_reader entries; /* appended */
    struct wal_entry held;            /* a line that may be replaced */
    char *held_payload;               /* its own, or null */
    bool has_held;
    bool has_stopped;
};

static bool take(void *ctx, struct wal__model_item *item)
{
    struct reading *reading = ctx;

    reading->has_stopped |= !reading->items->sink(reading->items->ctx, item);
    return !reading->has_stopped;
}

static void begin_reader(struct reading *reading,
                         struct wal__model_reader *reader,
                         const struct wal__dialect *dialect)
{
    *reader = (struct wal__model_reader){
        .dialect = dialect,
        .keep = &reading->keep.arena,
        .scratch = &reading->scratch.arena,
        .sink = take,
        .ctx = reading,
    };
}

static struct wal__json_span quoted(struct wal__arena *arena,
                                    struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    return span.size > 0 ? wal__arena_escape(arena, span) : span;
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
    if (!is_text(line->id, entry->id)) {
        return false;
    }
    return line->link == WAL__LINK_NAMED
               ? is_text(line->parent, entry->parent_id)
               : true;
}

static void read_line(struct reading *reading, const struct wal_entry *entry)
{
    struct wal__model_reader *reader = &reading->lines;
    struct wal__arena *arena = &reading->scratch.arena;
    struct wal__model_line line = {.stream = entry->stream};
    struct wal__line read;

    line.text = wal__line_text(entry->payload.data, entry->payload.size);
    if (wal__line_is_blank(line.text.data, line.text.size)) {
        return;
    }
    if (reader->dialect->reading->line == NULL || cli_line_is_whole(entry) ||
        reader->dialect->read(line.text.data, line.text.size, &read, NULL) !=
            WAL__JSON_OK) {
        reading->items->damaged++;
        return;
    }
    line.id = quoted(arena, entry->id);
    line.parent = quoted(arena, entry->parent_id);
    line.time =
        read.time.size > 0 ? read.time : quoted(arena, entry->timestamp);
    line.is_exact = is_exact(&read, entry);
    if (reader->dialect->reading->line(reader, &line) != WAL__JSON_OK &&
        !reading->has_stopped) {
        reading->items->damaged++;
    }
}

/* An entry that was appended, as a line of the dialect `entries`. */
static void read_entry(struct reading *reading, const struct wal_entry *entry)
{
    struct wal__arena *arena = &reading->scratch.arena;
    struct wal__model_line line = {.stream = entry->stream, .is_exact = true};
    struct cli_json json;
    enum wal_status status;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        cli_alloc(SIZE_MAX); /* ends the process */
        return;
    }
    cli_json_init(&json, file);
    /* Its payload is in line, so nothing is read for it. */
    status = cli_entry_write(&json, NULL, entry, NULL);
    fclose(file);
    if (status != WAL_OK) {
        reading->items->unreadable++;
        free(text);
        return;
    }
    line.text = wal__arena_copy(
        arena, (struct wal__json_span){(const uint8_t *)text, size});
    free(text);
    while (line.text.size > 0 && line.text.data[line.text.size - 1] == '\n') {
        line.text.size--;
    }
    line.id = quoted(arena, entry->id);
    line.parent = quoted(arena, entry->parent_id);
    line.time = quoted(arena, entry->timestamp);
    if (reading->entries.dialect->reading->line(&reading->entries, &line) !=
            WAL__JSON_OK &&
        !reading->has_stopped) {
        reading->items->damaged++;
    }
}

/* Lets the payload hold for as long as items may point to it. */
static bool keep_payload(struct reading *reading, struct wal_entry *entry)
{
    struct wal__json_span copy = {entry->payload.data,
                                  (size_t)entry->payload.size};

    if (entry->payload.size > HELD_SIZE) {
        copy = wal__arena_copy(&reading->scratch.arena, copy);
    }
    entry->payload.data = copy.data;
    return copy.data != NULL || entry->payload.size == 0;
}

static void give_entry(struct reading *reading, struct wal_entry *entry)
{
    const struct walconv_items *items = reading->items;

    if (!keep_payload(reading, entry)) {
        reading->items->unreadable++;
    } else if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        struct wal__model_item gone = {.kind = WAL__MODEL_HEAD};
        gone.id = quoted(&reading->scratch.arena, entry->id);
        gone.parent = quoted(&reading->scratch.arena, entry->parent_id);
        reading->items->redacted++;
        (void)wal__model_give(&reading->entries, &gone);
    } else if ((entry->flags & WAL_ENTRY_LINE) != 0) {
        read_line(reading, entry);
    } else {
        read_entry(reading, entry);
    }
    if (items->is_idle == NULL || items->is_idle(items->ctx)) {
        walconv_arena_reset(&reading->scratch);
    }
}

static bool replaces(const struct wal_entry *entry)
{
    struct wal__json_token value;

    return entry->meta.size > 0 &&
           wal__json_find(entry->meta.data, entry->meta.size, "replaces",
                          &value) == WAL__JSON_OK;
}

static void hold(struct reading *reading, const struct wal_entry *entry)
{
    free(reading->held_payload);
    reading->held_payload = NULL;
    reading->held = *entry;
    if (entry->payload.size > HELD_SIZE) {
        reading->held_payload =
            cli_copy(entry->payload.data, (size_t)entry->payload.size);
        reading->held.payload.data = reading->held_payload;
    }
}

/* Gives an entry, but one that has no newline only when the next one shows
 * that it is not replaced. */
static void pass_entry(struct reading *reading, struct wal_entry *entry)
{
    if (reading->has_held && !replaces(entry)) {
        give_entry(reading, &reading->held);
    }
    reading->has_held = (entry->flags & WAL_ENTRY_LINE) != 0 &&
                        (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
                        !cli_line_has_newline(entry);
    if (reading->has_held) {
        hold(reading, entry);
    } else {
        give_entry(reading, entry);
    }
}

static void finish_readers(struct reading *reading)
{
    struct wal__model_reader *readers[] = {&reading->lines, &reading->entries};

    for (size_t i = 0; i < 2 && !reading->has_stopped; i++) {
        const struct wal__dialect_reading *from = readers[i]->dialect->reading;
        if (from->finish != NULL && from->finish(readers[i]) != WAL__JSON_OK) {
            reading->items->damaged++;
        }
    }
}

/* ------------------------------------------------------------- tree --- */

struct documents {
    struct reading *reading;
    enum wal_status status;
};

static bool copy_value(struct documents *documents, const struct wal_doc *doc,
                       struct wal__json_span *value)
{
    *value = wal__arena_copy(
        &documents->reading->scratch.arena,
        (struct wal__json_span){doc->value.data, (size_t)doc->value.size});
    if (value->data == NULL) {
        documents->status = WAL_ENOMEM;
    }
    return value->data != NULL;
}

static bool get_document(void *ctx, const char *key,
                         struct wal__json_span *value)
{
    struct documents *documents = ctx;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_docs *docs = NULL;
    enum wal_status status;
    bool is_there = false;

    status =
        wal_docs_open(documents->reading->items->store,
                      documents->reading->items->session, NULL, &docs, NULL);
    if (status == WAL_OK) {
        status = wal_docs_get(docs, cli_slice(key), 0, &doc, NULL);
        is_there = status == WAL_OK && copy_value(documents, &doc, value);
    }
    wal_docs_close(docs);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        documents->status = status;
    }
    return is_there;
}

/* Gives one document; false: no more is wanted. */
static bool give_document(struct documents *documents,
                          const struct wal_doc *doc,
                          bool (*each)(void *each_ctx, const char *key,
                                       struct wal__json_span value),
                          void *each_ctx)
{
    struct wal__json_span value;
    bool goes_on = false;
    char *key;

    if (copy_value(documents, doc, &value)) {
        key = cli_copy(doc->key.data, (size_t)doc->key.size);
        goes_on = each(each_ctx, key, value);
        free(key);
    }
    return goes_on;
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    struct documents *documents = ctx;
    struct wal_docs_options options = {.struct_size = sizeof(options),
                                       .prefix = cli_slice(prefix)};
    struct wal_docs *docs = NULL;
    bool goes_on = true;
    enum wal_status status;

    status = wal_docs_open(documents->reading->items->store,
                           documents->reading->items->session, &options, &docs,
                           NULL);
    while (goes_on && status == WAL_OK) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        status = wal_docs_next(docs, &doc, NULL);
        if (status == WAL_ECORRUPT) {
            documents->reading->items->unreadable++;
            status = WAL_OK;
        } else if (status == WAL_OK) {
            goes_on = give_document(documents, &doc, each, each_ctx);
        }
    }
    wal_docs_close(docs);
    if (status != WAL_OK && status != WAL_END) {
        documents->status = status;
    }
    return goes_on && status == WAL_END;
}

/* Gives the items of the session's documents. */
static enum wal_status read_tree(struct reading *reading,
                                 struct wal_error *error)
{
    const struct wal__dialect_reading *from = reading->lines.dialect->reading;
    struct documents documents = {.reading = reading, .status = WAL_OK};
    const struct wal__model_tree tree = {
        .ctx = &documents, .get = get_document, .scan = scan_documents};

    (void)error;
    if (from->tree == NULL) {
        return WAL_OK;
    }
    if (from->tree(&reading->lines, &tree) != WAL__JSON_OK &&
        !reading->has_stopped && documents.status == WAL_OK) {
        return WAL_ENOMEM;
    }
    return documents.status;
}

/* Gives the items of a stream's entries. */
static enum wal_status read_stream(struct reading *reading, uint32_t stream,
                                   struct wal_error *error)
{
    struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ITER_ALL,
        .stream = stream,
        .flags = WAL_ITER_REDACTED,
    };
    struct wal_iter *iter = NULL;
    struct wal_entry entry;
    enum wal_status status;

    status = wal_iter_open(reading->items->session, &options, &iter, error);
    while (status == WAL_OK && !reading->has_stopped) {
        entry = (struct wal_entry){.struct_size = sizeof(entry)};
        status = wal_iter_next(iter, &entry, error);
        if (status == WAL_OK) {
            pass_entry(reading, &entry);
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            reading->items->unreadable++;
            status = WAL_OK;
        }
    }
    if (status == WAL_END && reading->has_held) {
        give_entry(reading, &reading->held);
        reading->has_held = false;
    }
    wal_iter_close(iter);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status walconv_items_read(struct walconv_items *items,
                                   struct wal_error *error)
{
    struct reading reading = {.items = items};
    enum wal_status status;

    walconv_arena_init(&reading.keep);
    walconv_arena_init(&reading.scratch);
    begin_reader(&reading, &reading.lines, items->dialect);
    begin_reader(&reading, &reading.entries, &wal__dialect_entries);
    status = read_tree(&reading, error);
    if (status == WAL_OK) {
        status = read_stream(&reading, 0, error);
    }
    if (status == WAL_OK && !reading.has_stopped &&
        items->dialect->reading->stream != NULL) {
        status = read_stream(&reading, 1, error);
    }
    if (status == WAL_OK && !reading.has_stopped) {
        finish_readers(&reading);
    }
    if (status == WAL_OK && items->end != NULL) {
        (void)items->end(items->ctx);
    }
    free(reading.held_payload);
    walconv_arena_deinit(&reading.keep);
    walconv_arena_deinit(&reading.scratch);
    return status;
}

const struct wal__dialect *
walconv_items_dialect(const struct wal_session_info *info)
{
    const struct wal__dialect *dialect = NULL;
    struct cli_source source;

    if (cli_source_parse(info->source, &source)) {
        dialect = wal__dialect_find(source.dialect);
        cli_source_deinit(&source);
    }
    return dialect != NULL && dialect->reading != NULL ? dialect
                                                       : &wal__dialect_entries;
}

/* ------------------------------------------------------------ session --- */

struct look {
    struct wal__arena *keep;
    struct wal__model_session *known;
    unsigned count;
};

static void keep_field(struct look *look, struct wal__json_span *field,
                       struct wal__json_span found)
{
    if (field->size == 0 && found.size > 0) {
        *field = wal__arena_copy(look->keep, found);
    }
}

static bool look_at(void *ctx, struct wal__model_item *item)
{
    struct look *look = ctx;
    struct wal__model_session *known = look->known;
    const struct wal__model_session *found = item->session;

    if (item->kind == WAL__MODEL_HEADER && found != NULL) {
        keep_field(look, &known->provider, found->provider);
        keep_field(look, &known->model, found->model);
        keep_field(look, &known->cwd, found->cwd);
        keep_field(look, &known->time, found->time);
        keep_field(look, &known->title, found->title);
        keep_field(look, &known->parent, found->parent);
        keep_field(look, &known->thinking_level, found->thinking_level);
        keep_field(look, &known->agent, found->agent);
        keep_field(look, &known->exit_reason, found->exit_reason);
        keep_field(look, &known->raw, found->raw);
        known->dialect = found->dialect;
    }
    keep_field(look, &known->provider, item->provider);
    keep_field(look, &known->model, item->model);
    return ++look->count < LOOK_ENTRIES &&
           (known->model.size == 0 || known->cwd.size == 0 || look->count < 2);
}

static void set_created(const struct wal_session_info *info,
                        struct wal__arena *keep,
                        struct wal__model_session *known)
{
    struct wal__json_token created;
    char text[32];

    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size,
                       "created", &created) == WAL__JSON_OK &&
        created.kind == WAL__JSON_STRING) {
        known->time = wal__arena_copy(keep, created.span);
        return;
    }
    cli_time_text(info->created_ms, text, sizeof(text));
    known->time = quoted(keep, cli_slice(text));
}

enum wal_status
walconv_items_session(struct wal_store *store, struct wal_session *session,
                      struct wal__arena *keep, struct wal__model_session *known,
                      struct wal__json_span *head, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct look look = {.keep = keep, .known = known};
    struct walconv_items items = {
        .store = store, .session = session, .sink = look_at, .ctx = &look};
    enum wal_status status = wal_session_status(session, &info, error);
    char text[32];

    if (status != WAL_OK) {
        return status;
    }
    *known = (struct wal__model_session){
        .id = quoted(keep, info.id),
        .cwd = quoted(keep, info.cwd),
        .title = quoted(keep, info.title),
        .parent = quoted(keep, info.parent_id),
        .project = quoted(keep, info.project),
    };
    known->metadata = wal__arena_copy(
        keep, (struct wal__json_span){info.metadata.data,
                                      (size_t)info.metadata.size});
    cli_time_text(info.updated_ms, text, sizeof(text));
    known->updated = quoted(keep, cli_slice(text));
    *head = quoted(keep, info.head);
    items.dialect = walconv_items_dialect(&info);
    set_created(&info, keep, known);
    return walconv_items_read(&items, error);
}
