/*
 * view_import.c - imports lines that another program appended to a view's main file (SPEC.md 10.6).
 *
 * The ids in the file are recovered by converting the session again. The fingerprint of the stable
 * part shows whether the conversion yields the same bytes; ids after that part are known only if
 * the whole file is equal.
 *
 * Lines are appended to the session first; then the state records the whole file as the view's own.
 * After an interruption between the two, the position hash in each entry's meta (JSON key "mark")
 * prevents a second append: the same line at the same position gets the same id and position hash.
 *
 * Invariant: the file is only read.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert/render/converter.h"
#include "convert/render/session_items.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

/* --- ids in the file ----------------------------------------------------- */

struct view_replay {
    struct wal__written_ids *written_ids;
    const char *path;
    bool is_selected;                    /* output goes to the file with the path */
    struct wal__fingerprint fingerprint; /* of the output to that file */
    struct wal__model_table ids;         /* ids recorded so far */
    struct wal__json_span last;
};

static bool select_file(void *ctx, const char *path, enum wal__output_kind kind)
{
    struct view_replay *replay = ctx;

    replay->is_selected = kind == WAL__OUTPUT_LINES && strcmp(path, replay->path) == 0;
    return true;
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct view_replay *replay = ctx;

    if (replay->is_selected) {
        wal__fingerprint_update(&replay->fingerprint, data, size);
    }
    return true;
}

static bool record_id(void *ctx, struct wal__json_span item, struct wal__json_span written,
                      bool is_part)
{
    struct view_replay *replay = ctx;
    struct wal__json_span item_copy = wal__arena_copy(&replay->written_ids->memory.arena, item);
    uint64_t key = wal__model_string_hash(0, written);

    if (item_copy.data == NULL) {
        return false;
    }
    if (is_part) {
        return wal__model_table_put(&replay->written_ids->parts, key, item_copy);
    }
    replay->last = item_copy;
    return wal__model_table_put(&replay->ids, key, item_copy);
}

/* Converts the entries that the view has, and keeps the ids if the bytes are equal. */
static enum wal_status replay_session(struct view_replay *replay, struct wal__converter *convert,
                                      const struct wal_view *view,
                                      const struct wal__saved_file *saved, struct wal_error *error)
{
    const struct wal__entry_limits limits = {
        {view->position.entries[0], view->position.entries[1]}};
    const struct wal__model_id_listener listener = {replay, record_id};
    struct wal__written_ids *written_ids = replay->written_ids;
    /* The head of that flush: the log's may be an entry that the file lacks. */
    struct wal__json_span head =
        wal__json_quote(&written_ids->memory.arena, wal__slice_from_text(view->position.head));
    uint64_t losses[WAL__FEATURE_COUNT];
    bool extends = true;
    enum wal_status status = wal__converter_begin(convert, error);

    convert->output = (struct wal__model_output){replay, select_file, put};
    convert->writer.listener = &listener;
    if (status == WAL_OK) {
        status = wal__converter_append(convert, &limits, head, &extends, error);
    }
    if (status != WAL_OK || !extends ||
        !wal__fingerprint_equal(&replay->fingerprint, &saved->stable)) {
        return status;
    }
    written_ids->items = replay->ids;
    written_ids->last = replay->last;
    written_ids->is_known = true;
    replay->ids = (struct wal__model_table){.arena = &written_ids->memory.arena};
    status = wal__converter_write_trailer(convert, head, convert->snapshot.session.updated, losses,
                                          error);
    if (status == WAL_OK && wal__fingerprint_equal(&replay->fingerprint, &saved->fingerprint)) {
        written_ids->provisional = replay->ids;
        written_ids->last = replay->last;
    }
    return status;
}

/* Converts the session once. `is_linked`: the file names the session that started this one, if
 * there is one. */
static enum wal_status load_ids(struct wal__written_ids *written_ids, const struct wal_view *view,
                                const char *path, const struct wal__saved_file *saved,
                                bool is_linked, struct wal_error *error)
{
    struct wal__view_files files = {.root = NULL};
    struct wal__converter convert = {.env = &view->env,
                                     .store = view->store,
                                     .session = view->session,
                                     .dialect = view->dialect,
                                     .files = &files};
    struct view_replay replay = {.written_ids = written_ids, .path = path};
    enum wal_status status;

    wal__heap_arena_init(&written_ids->memory, view->env.heap);
    written_ids->parts.arena = &written_ids->memory.arena;
    replay.ids.arena = &written_ids->memory.arena;
    wal__view_files_init(&files, &view->env);
    files.root = view->root;
    status = wal__session_snapshot_read(&convert.snapshot, view->env.heap, view->store,
                                        view->session, error);
    if (status == WAL_OK && (is_linked || convert.snapshot.session.starter.size > 0)) {
        convert.snapshot.session.starter.size *= is_linked ? 1 : 0;
        status = wal__view_find_base(view, &convert.snapshot, view->position.head, error);
        if (status == WAL_OK) {
            status = replay_session(&replay, &convert, view, saved, error);
        }
    }
    wal__converter_deinit(&convert);
    wal__view_files_deinit(&files);
    return status;
}

static void written_ids_deinit(struct wal__written_ids *written_ids)
{
    if (written_ids->memory.heap != NULL) {
        wal__heap_arena_deinit(&written_ids->memory);
    }
    *written_ids = (struct wal__written_ids){.is_known = false};
}

/* Converts the session again, up to the position of the view. `saved` is the saved state of the
 * file with the path. Returns WAL_OK with is_known false when the bytes differ. */
static enum wal_status written_ids_load(struct wal__written_ids *written_ids,
                                        const struct wal_view *view, const char *path,
                                        const struct wal__saved_file *saved,
                                        struct wal_error *error)
{
    enum wal_status status = load_ids(written_ids, view, path, saved, true, error);

    /* A file may be older than links. */
    if (status == WAL_OK && !written_ids->is_known) {
        written_ids_deinit(written_ids);
        status = load_ids(written_ids, view, path, saved, false, error);
    }
    return status;
}

/* The item, a JSON string, that was written with the id; empty: unknown. */
static struct wal__json_span written_ids_find(const struct wal__written_ids *written_ids,
                                              struct wal__json_span written)
{
    struct wal__json_span item = {NULL, 0};
    uint64_t key = wal__model_string_hash(0, written);

    if (!written_ids->is_known || (!wal__model_table_get(&written_ids->provisional, key, &item) &&
                                   !wal__model_table_get(&written_ids->items, key, &item))) {
        return (struct wal__json_span){NULL, 0};
    }
    (void)wal__model_table_get(&written_ids->parts, wal__model_string_hash(0, item), &item);
    return item;
}

/* --- one line ------------------------------------------------------------ */

#define ID_SIZE   255 /* bytes of ids and types */
#define TIME_SIZE 64

/* Decodes a JSON string of 1 to `most` bytes without control characters; empty when it is not
 * one. */
static struct wal_slice decode_text(struct wal__arena *arena, struct wal__json_span string,
                                    size_t most)
{
    return wal__slice_from_text(wal__string_copy(arena, string, most));
}

static struct wal_slice copy_to_import(struct wal__view_importer *importer, struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    span = span.size > 0 ? wal__arena_copy(&importer->import_arena.arena, span) : span;
    return (struct wal_slice){span.data, span.data != NULL ? span.size : 0};
}

/* Records an issue of a line, for wal_view_issue. */
static bool report_issue(struct wal__view_importer *importer, uint64_t offset, const char *reason)
{
    struct wal_view *view = importer->view;

    if (!WAL__HEAP_GROW(view->env.heap, view->issues, view->issue_count, view->issue_capacity)) {
        importer->import_arena.has_failed = true;
        return false;
    }
    view->issues[view->issue_count++] =
        (struct wal__view_issue){.offset = offset, .reason = reason};
    return true;
}

/* --- log ----------------------------------------------------------------- */

/* Finds an entry of the conversation by its id. */
static bool find_entry(const struct wal__view_importer *importer, struct wal_slice id,
                       struct wal_entry *entry)
{
    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    return id.size > 0 && wal_entry_cursor_get(importer->cursor, id, entry, NULL) == WAL_OK;
}

static bool is_log_head(const struct wal__view_importer *importer, const char *id)
{
    struct wal_slice none = {NULL, 0};
    char head[WAL_ID_SIZE] = "";

    return (wal_head_get(importer->view->session, 0, none, head, NULL) != WAL_OK &&
            id[0] == '\0') ||
           (id[0] != '\0' && strcmp(head, id) == 0);
}

/* Determines whether the head follows the lines. */
static void view_import_find_head(struct wal__view_importer *importer)
{
    memcpy(importer->head, importer->view->position.head, sizeof(importer->head));
    importer->is_following = is_log_head(importer, importer->head);
}

/* Moves the head to the line, if it follows the file. */
static void follow_line(struct wal__view_importer *importer, struct wal__imported_line *imported)
{
    if (imported->line.head != WAL__HEAD_MOVE ||
        imported->entry.id.size >= sizeof(importer->head)) {
        return;
    }
    memcpy(importer->head, imported->entry.id.data, (size_t)imported->entry.id.size);
    importer->head[imported->entry.id.size] = '\0';
    if (imported->is_known) {
        /* An import that was cut short may have moved the head to it. */
        importer->is_following |= is_log_head(importer, importer->head);
    } else if (importer->is_following) {
        imported->entry.flags |= WAL_ENTRY_HEAD_MOVE;
    }
}

/* Determines the last entry that the view wrote from the log alone. */
static enum wal_status view_import_find_last(struct wal__view_importer *importer,
                                             struct wal_error *error)
{
    const struct wal__view_position *position = &importer->view->position;
    struct wal_entry_cursor_options options =
        wal__session_items_options(0, position->entries[0] > 0 ? position->entries[0] - 1 : 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (position->entries[0] == 0) {
        return WAL_OK;
    }
    status = wal_entry_cursor_open(importer->view->session, &options, &cursor, error);
    if (status == WAL_OK && wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        importer->last_written = copy_to_import(importer, entry.id);
    }
    wal_entry_cursor_close(cursor);
    return status;
}

/* Loads the ids in the file, when first needed. */
static enum wal_status load_written_ids(struct wal__view_importer *importer,
                                        struct wal_error *error)
{
    struct wal_entry entry;
    struct wal_slice last;
    enum wal_status status;

    if (importer->has_loaded_ids || importer->view->position.is_verbatim) {
        return WAL_OK;
    }
    importer->has_loaded_ids = true;
    status = written_ids_load(&importer->written_ids, importer->view, importer->file->lines.path,
                              &importer->file->lines.saved, error);
    if (status == WAL_OK && importer->written_ids.is_known) {
        last = decode_text(&importer->scratch.arena, importer->written_ids.last, ID_SIZE);
        if (find_entry(importer, last, &entry)) {
            importer->last_written = copy_to_import(importer, last);
        }
    }
    return status;
}

/* --- parents ------------------------------------------------------------- */

static enum wal_status set_parent_to_previous(struct wal__view_importer *importer,
                                              struct wal__imported_line *imported,
                                              struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (importer->previous_id.size == 0) {
        status = load_written_ids(importer, error);
        importer->previous_id = importer->last_written;
    }
    imported->entry.parent_id = importer->previous_id;
    if (imported->entry.parent_id.size == 0) {
        imported->entry.flags |= WAL_ENTRY_ROOT;
    }
    return status;
}

/* Finds the parent that a line names; empty when it is unknown, or when it is no entry but an item
 * of the session's documents: imported->after. */
static enum wal_status find_named_parent(struct wal__view_importer *importer,
                                         struct wal__imported_line *imported,
                                         struct wal_slice *parent, struct wal_error *error)
{
    struct wal__json_span named = imported->line.parent;
    struct wal__arena *scratch = &importer->scratch.arena;
    struct wal__json_span found;
    struct wal_entry entry;
    enum wal_status status;

    *parent = (struct wal_slice){NULL, 0};
    if (wal__model_table_get(&importer->imported_ids, wal__model_string_hash(0, named), &found)) {
        *parent = (struct wal_slice){found.data, found.size};
        return WAL_OK;
    }
    *parent = decode_text(scratch, named, ID_SIZE);
    if (find_entry(importer, *parent, &entry) && entry.stream == 0) {
        return WAL_OK;
    }
    status = load_written_ids(importer, error);
    found = written_ids_find(&importer->written_ids, named);
    *parent = decode_text(scratch, found, ID_SIZE);
    if (!find_entry(importer, *parent, &entry) || entry.stream != 0) {
        if (parent->size > 0 && importer->snapshot.dialect->read_ops->documents != NULL) {
            imported->after = found;
        }
        parent->size = 0;
    }
    return status;
}

/* Sets the parent to that of the entry that the line names, as an import of the file does. */
static enum wal_status set_parent_of_named(struct wal__view_importer *importer,
                                           struct wal__imported_line *imported,
                                           struct wal_error *error)
{
    const struct wal__line_info *line = &imported->line;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_slice named;
    enum wal_status status = find_named_parent(importer, imported, &named, error);

    if (status != WAL_OK) {
        return status;
    }
    if (named.size > 0 && find_entry(importer, named, &entry) && entry.parent_id.size > 0) {
        imported->entry.parent_id = copy_to_import(importer, entry.parent_id);
        return WAL_OK;
    }
    if (named.size == 0 && wal__json_span_equal(line->parent, line->id)) {
        return set_parent_to_previous(importer, imported, error);
    }
    imported->entry.flags |= WAL_ENTRY_ROOT;
    return WAL_OK;
}

static enum wal_status set_parent(struct wal__view_importer *importer,
                                  struct wal__imported_line *imported, struct wal_error *error)
{
    bool is_optional = imported->line.link == WAL__LINK_EXPLICIT_OR_PREVIOUS;
    struct wal_slice named;
    enum wal_status status;

    if (imported->line.link == WAL__LINK_ROOT) {
        imported->entry.flags |= WAL_ENTRY_ROOT;
        return WAL_OK;
    }
    if (imported->line.link == WAL__LINK_BEFORE) {
        return set_parent_of_named(importer, imported, error);
    }
    if (imported->line.link != WAL__LINK_EXPLICIT && !is_optional) {
        return set_parent_to_previous(importer, imported, error);
    }
    status = find_named_parent(importer, imported, &imported->entry.parent_id, error);
    if (status == WAL_OK && is_optional && imported->entry.parent_id.size == 0) {
        imported->after.size = 0;
        return set_parent_to_previous(importer, imported, error);
    }
    if (status == WAL_OK && imported->after.size > 0) {
        imported->entry.flags |= WAL_ENTRY_ROOT;
    } else if (status == WAL_OK && imported->entry.parent_id.size == 0) {
        importer->report.unknown++;
        report_issue(importer, imported->offset, "its parent is not known");
        imported->is_inexact = true;
        status = load_written_ids(importer, error);
        imported->entry.parent_id = importer->last_written;
        imported->entry.flags |= importer->last_written.size == 0 ? (uint32_t)WAL_ENTRY_ROOT : 0;
    }
    named = decode_text(&importer->scratch.arena, imported->line.parent, ID_SIZE);
    imported->is_inexact |= !wal__slice_equal(named, imported->entry.parent_id);
    return status;
}

/* --- ids ----------------------------------------------------------------- */

/* Identifies the line by its offset and the content that the view left. */
static void set_position_hash(const struct wal__view_importer *importer,
                              struct wal__imported_line *imported)
{
    const struct wal__fingerprint *base = &importer->file->lines.saved.fingerprint;
    const uint64_t words[] = {base->value, base->part, base->size, imported->offset};
    const struct wal__json_span bytes = {(const uint8_t *)words, sizeof(words)};

    snprintf(imported->position_hash, sizeof(imported->position_hash), "%016" PRIx64,
             wal__model_hash(0, bytes));
}

static void set_id(struct wal__view_importer *importer, struct wal__imported_line *imported)
{
    uint64_t key = wal__model_string_hash(0, imported->line.id);
    struct wal__json_span used;
    struct wal_entry entry;
    char generated[24];
    struct wal__json_span text = {(const uint8_t *)generated, 0};
    const uint32_t gone = WAL_ENTRY_LINE | WAL_ENTRY_REDACTED;
    struct wal__json_token mark;

    imported->entry.id = imported->line_id;
    if (imported->line_id.size > 0 && !wal__model_table_get(&importer->imported_ids, key, &used)) {
        if (!find_entry(importer, imported->line_id, &entry)) {
            return;
        }
        /* A redacted line has no hash any more, and is not imported again. */
        imported->is_known = (entry.flags & gone) == gone ||
                             (wal__json_find(entry.meta.data, (size_t)entry.meta.size, "mark",
                                             &mark) == WAL__JSON_OK &&
                              mark.kind == WAL__JSON_STRING &&
                              wal__json_string_is(mark.span, imported->position_hash));
        if (imported->is_known) {
            return;
        }
    }
    if (imported->line_id.size > 0 && imported->line.link != WAL__LINK_BEFORE) {
        report_issue(importer, imported->offset, "duplicate id; renamed");
    }
    imported->is_inexact |= imported->line.id.size > 0 || imported->line.is_in_conversation;
    text.size = (size_t)snprintf(generated, sizeof(generated), "view-%s", imported->position_hash);
    text = wal__arena_copy(&importer->scratch.arena, text);
    imported->entry.id = (struct wal_slice){text.data, text.data != NULL ? text.size : 0};
    imported->is_known = find_entry(importer, imported->entry.id, &entry);
}

/* Records the id by which later lines of the file refer to this one. */
static void record_ids(struct wal__view_importer *importer,
                       const struct wal__imported_line *imported)
{
    struct wal_slice id = copy_to_import(importer, imported->entry.id);
    struct wal__json_span span = {id.data, (size_t)id.size};
    uint64_t key = wal__model_string_hash(0, imported->line.id);
    struct wal__json_span used;

    importer->previous_id = id;
    if (imported->line_id.size > 0 && !wal__model_table_get(&importer->imported_ids, key, &used) &&
        !wal__model_table_put(&importer->imported_ids, key, span)) {
        importer->import_arena.has_failed = true;
    }
}

/* --- entry --------------------------------------------------------------- */

static void set_meta(struct wal__view_importer *importer, struct wal__imported_line *imported)
{
    char meta[96 + 6 * ID_SIZE + 12];
    struct wal__json_span text = {(const uint8_t *)meta, 0};
    struct wal__json_span after = imported->after;
    bool has_after = after.size > 0 && after.size <= 6 * ID_SIZE + 2;

    text.size = (size_t)snprintf(meta, sizeof(meta), "{\"view\":\"%s\",\"mark\":\"%s\"%s%s%.*s}",
                                 importer->view->dialect->name, imported->position_hash,
                                 imported->is_inexact ? ",\"inexact\":true" : "",
                                 has_after ? ",\"after\":" : "", has_after ? (int)after.size : 0,
                                 has_after ? (const char *)after.data : "");
    text = wal__arena_copy(&importer->scratch.arena, text);
    imported->entry.meta = (struct wal_slice){text.data, text.size};
}

static void set_type_and_time(struct wal__view_importer *importer,
                              struct wal__imported_line *imported)
{
    struct wal__arena *scratch = &importer->scratch.arena;
    struct wal_slice time = decode_text(scratch, imported->line.time, TIME_SIZE);

    imported->entry.type = decode_text(scratch, imported->line.type, ID_SIZE);
    if (imported->entry.type.size == 0) {
        imported->entry.type = wal__slice_from_text(imported->line.is_message ? "message" : "line");
    }
    if (time.size > 0) {
        importer->time = copy_to_import(importer, time);
    }
    imported->entry.timestamp = importer->time;
}

/* Makes an entry from the line; text and offset are set. The entry is valid until `scratch` is
 * reset. */
static enum wal_status view_import_line(struct wal__view_importer *importer,
                                        struct wal__imported_line *imported,
                                        struct wal_error *error)
{
    const struct wal__dialect *dialect = importer->view->dialect;
    struct wal__json_span text = wal__line_text(imported->text.data, imported->text.size);
    enum wal_status status;

    if (wal__line_read(dialect, text.data, text.size, &imported->line, NULL) != WAL__JSON_OK) {
        imported->line =
            (struct wal__line_info){.link = WAL__LINK_PREVIOUS, .head = WAL__HEAD_KEEP};
        imported->is_inexact = true;
        importer->report.damaged++;
        report_issue(importer, imported->offset, "is not JSON");
    }
    imported->is_inexact |= text.size != imported->text.size;
    imported->line_id = decode_text(&importer->scratch.arena, imported->line.id, ID_SIZE);
    imported->entry = (struct wal_entry){
        .struct_size = sizeof(imported->entry),
        .flags = WAL_ENTRY_LINE,
        .payload = {imported->text.data, imported->text.size},
    };
    if (imported->line.head == WAL__HEAD_KEEP) {
        imported->entry.flags |= WAL_ENTRY_HEAD_KEEP;
    }
    set_position_hash(importer, imported);
    set_type_and_time(importer, imported);
    set_id(importer, imported);
    status = imported->is_known ? WAL_OK : set_parent(importer, imported, error);
    if (status == WAL_OK) {
        follow_line(importer, imported);
        record_ids(importer, imported);
        set_meta(importer, imported);
    }
    return status;
}

/* --- the import ---------------------------------------------------------- */

#define READ_SIZE  ((size_t)1 << 20)
#define BATCH_SIZE ((size_t)4 << 20)

/* --- lines --------------------------------------------------------------- */

static enum wal_status append_batch(struct wal__view_importer *importer, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status = WAL_OK;

    if (importer->import_arena.has_failed || importer->scratch.has_failed) {
        return wal__no_memory(error);
    }
    if (importer->count > 0) {
        status = wal_append(importer->view->session, importer->entries, importer->count, &options,
                            &result, error);
        importer->report.appended += result.appended;
        importer->report.duplicates += result.duplicates;
    }
    importer->count = 0;
    importer->size = 0;
    wal__heap_arena_reset(&importer->scratch);
    return status;
}

static enum wal_status import_line(struct wal__view_importer *importer, const uint8_t *data,
                                   size_t size, struct wal_error *error)
{
    struct wal__imported_line imported = {.text = {data, size},
                                          .offset = importer->fingerprint.size};
    enum wal_status status = WAL_OK;

    importer->report.lines++;
    if (wal__line_is_blank(data, size)) {
        return WAL_OK;
    }
    if (importer->count == WAL__IMPORT_BATCH_MAX ||
        (importer->count > 0 && importer->size + size > BATCH_SIZE)) {
        status = append_batch(importer, error);
    }
    if (status == WAL_OK) {
        status = view_import_line(importer, &imported, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (imported.is_known) {
        importer->report.duplicates++;
        return WAL_OK;
    }
    WAL__ASSERT(importer->count < WAL__IMPORT_BATCH_MAX);
    importer->entries[importer->count++] = imported.entry;
    importer->size += size;
    return WAL_OK;
}

/* Imports a message of a view that is made of documents. */
static enum wal_status append_message(struct wal__view_importer *importer,
                                      struct wal__json_span line, uint64_t offset,
                                      struct wal_error *error)
{
    enum wal_status status;

    importer->fingerprint.size = offset;
    status = import_line(importer, line.data, line.size, error);
    return status == WAL_OK ? append_batch(importer, error) : status;
}

/* Imports the complete lines in the buffer and keeps the partial line. */
static enum wal_status import_buffer(struct wal__view_importer *importer, size_t *scanned,
                                     struct wal_error *error)
{
    struct wal__buf *buf = &importer->buf;
    const uint8_t *newline;
    enum wal_status status = WAL_OK;
    size_t at = 0;

    while (status == WAL_OK &&
           (newline = memchr(buf->data + *scanned, '\n', buf->size - *scanned)) != NULL) {
        size_t size = (size_t)(newline - buf->data) - at;
        status = import_line(importer, buf->data + at, size, error);
        wal__fingerprint_update(&importer->fingerprint, buf->data + at, size + 1);
        at += size + 1;
        *scanned = at;
    }
    if (status == WAL_OK && at > 0) {
        status = append_batch(importer, error);
    }
    WAL__ASSERT(at <= buf->size);
    memmove(buf->data, buf->data + at, buf->size - at);
    buf->size -= at;
    *scanned = buf->size;
    return status;
}

static enum wal_status import_lines(struct wal__view_importer *importer, struct wal_error *error)
{
    struct wal__buf *buf = &importer->buf;
    uint64_t at = importer->fingerprint.size;
    enum wal_status status = WAL_OK;
    size_t scanned = 0;

    while (status == WAL_OK && at < importer->stamp.size) {
        uint64_t remaining = importer->stamp.size - at;
        size_t want = remaining < READ_SIZE ? (size_t)remaining : READ_SIZE;
        uint8_t *to;
        ssize_t got;
        if (wal__buf_reserve(buf, want, &to) != WAL_OK) {
            return wal__no_memory(error);
        }
        got = pread(importer->fd, to, want, (off_t)at);
        if (got <= 0) {
            return wal__fail_at(error, WAL_ECHANGED, 0, importer->file->lines.path, at,
                                "the file became shorter while it was read; flush the view");
        }
        at += (uint64_t)got;
        buf->size += (size_t)got;
        status = import_buffer(importer, &scanned, error);
    }
    return status == WAL_OK ? wal_sync(importer->view->store, error) : status;
}

/* --- file ---------------------------------------------------------------- */

/* Finds the view's main file in the state. */
static enum wal_status find_file(struct wal__view_importer *importer, struct wal_error *error)
{
    struct wal_view *view = importer->view;
    const char *path;
    enum wal_status status = wal__session_snapshot_read(&importer->snapshot, view->env.heap,
                                                        view->store, view->session, error);

    if (status != WAL_OK) {
        return status;
    }
    path = view->dialect->write_ops->path(&importer->snapshot.session, 0,
                                          &importer->snapshot.memory.arena);
    if (importer->snapshot.memory.has_failed) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; path != NULL && i < view->files.count; i++) {
        struct wal__view_file *file = view->files.items[i];
        /* Not current: the state keeps what `saved` says. */
        file->is_current = false;
        if ((!file->is_document || view->dialect->write_ops->join != NULL) &&
            strcmp(file->lines.path, path) == 0) {
            importer->file = file;
        }
    }
    if (!view->position.is_known || importer->file == NULL || view->dialect->read_ops == NULL ||
        view->dialect->read_ops->line == NULL) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the state of the view has no file of lines; flush the view first");
    }
    return view->position.append_pending
               ? wal__fail_at(error, WAL_EBUSY, 0, importer->file->lines.path, 0,
                              "a flush of the view was interrupted; flush it first")
               : WAL_OK;
}

static enum wal_status open_file(struct wal__view_importer *importer, struct wal_error *error)
{
    struct wal_view *view = importer->view;
    const char *name = NULL;
    int directory = -1;
    enum wal_status status = wal__view_fs_open_parent(
        &view->env, view->root, importer->file->lines.path, false, &directory, &name, error);

    if (status == WAL_OK) {
        status = wal__view_fs_open(directory, name, &importer->fd, &importer->stamp, error);
        close(directory);
    }
    return status;
}

/* Checks that the file begins with the content that the view left. */
static enum wal_status check_prefix(struct wal__view_importer *importer, struct wal_error *error)
{
    const struct wal__saved_file *saved = &importer->file->lines.saved;
    uint8_t *to;
    ssize_t got = 1;

    if (wal__buf_reserve(&importer->buf, READ_SIZE, &to) != WAL_OK) {
        return wal__no_memory(error);
    }
    while (got > 0 && importer->fingerprint.size < saved->fingerprint.size) {
        uint64_t more = saved->fingerprint.size - importer->fingerprint.size;
        got = pread(importer->fd, to, more < READ_SIZE ? (size_t)more : READ_SIZE,
                    (off_t)importer->fingerprint.size);
        wal__fingerprint_update(&importer->fingerprint, to, got > 0 ? (size_t)got : 0);
    }
    return wal__fingerprint_equal(&importer->fingerprint, &saved->fingerprint)
               ? WAL_OK
               : wal__fail_at(error, WAL_ECHANGED, 0, importer->file->lines.path, 0,
                              "was not only appended to");
}

/* The head follows the lines of the next import too. */
static void keep_head(struct wal__view_importer *importer)
{
    if (importer->is_following) {
        memcpy(importer->view->position.head, importer->head, sizeof(importer->head));
    }
}

/* Saves the current file as the view's own. */
static enum wal_status save_state(struct wal__view_importer *importer, struct wal_error *error)
{
    struct wal__saved_file *saved = &importer->file->lines.saved;

    WAL__ASSERT(importer->fingerprint.size >= saved->fingerprint.size);
    keep_head(importer);
    saved->has_old_stamp = false;
    saved->fingerprint = importer->fingerprint;
    saved->stamp = importer->stamp;
    saved->stamp.size = importer->fingerprint.size;
    return wal__view_lock_save_state(&importer->view_lock, &importer->view->position, true, error);
}

/* Imports a view that is made of documents. */
static enum wal_status import_documents(struct wal__view_importer *importer,
                                        struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_DELTAS |
                                                              WAL_ENTRY_CURSOR_REDACTED |
                                                              WAL_ENTRY_CURSOR_OUT_OF_LINE};
    struct wal_view *view = importer->view;
    bool is_changed = false;
    enum wal_status status =
        wal_entry_cursor_open(view->session, &options, &importer->cursor, error);

    if (status == WAL_OK) {
        view_import_find_head(importer);
        status = wal__view_import_documents(importer, append_message, &is_changed, error);
    }
    if (status == WAL_OK && is_changed) {
        status = wal_sync(view->store, error);
    }
    if (status == WAL_OK && is_changed) {
        keep_head(importer);
        status = wal__view_lock_save_state(&importer->view_lock, &view->position, true, error);
    }
    return status;
}

static enum wal_status import_changes(struct wal__view_importer *importer, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_DELTAS |
                                                              WAL_ENTRY_CURSOR_REDACTED |
                                                              WAL_ENTRY_CURSOR_OUT_OF_LINE};
    enum wal_status status = find_file(importer, error);
    const struct wal__saved_file *saved;

    if (status == WAL_OK) {
        status = open_file(importer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (importer->file->is_document) {
        return import_documents(importer, error);
    }
    saved = &importer->file->lines.saved;
    if (wal__saved_file_has_stamp(saved, &importer->stamp)) {
        return WAL_OK;
    }
    status = check_prefix(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal_entry_cursor_open(importer->view->session, &options, &importer->cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    view_import_find_head(importer);
    status = view_import_find_last(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    status = import_lines(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    return importer->fingerprint.size > saved->fingerprint.size ? save_state(importer, error)
                                                                : WAL_OK;
}

static void destroy_importer(struct wal__view_importer *importer)
{
    struct wal_view *view = importer->view;

    written_ids_deinit(&importer->written_ids);
    wal_entry_cursor_close(importer->cursor);
    wal__heap_arena_deinit(&importer->import_arena);
    wal__heap_arena_deinit(&importer->scratch);
    wal__buf_deinit(&importer->buf);
    wal__session_snapshot_deinit(&importer->snapshot);
    if (importer->fd >= 0) {
        close(importer->fd);
    }
    wal__view_lock_release(&importer->view_lock);
    wal__view_invalidate(view);
    wal__heap_free(view->env.heap, importer);
}

static enum wal_status view_import(struct wal_view *view, struct wal_view_import_result *report,
                                   struct wal_error *error)
{
    struct wal__view_importer *importer = wal__heap_zalloc(view->env.heap, sizeof(*importer));
    enum wal_status status;

    if (importer == NULL) {
        return wal__no_memory(error);
    }
    view->issue_count = 0;
    importer->view = view;
    importer->view_lock = (struct wal__view_lock){.view = view, .lock_fd = -1};
    importer->fd = -1;
    importer->report.struct_size = sizeof(importer->report);
    wal__heap_arena_init(&importer->import_arena, view->env.heap);
    wal__heap_arena_init(&importer->scratch, view->env.heap);
    wal__buf_init(&importer->buf, view->env.heap);
    importer->imported_ids.arena = &importer->import_arena.arena;
    status = wal__view_lock_acquire(&importer->view_lock, error);
    if (status == WAL_OK) {
        status = import_changes(importer, error);
    }
    if (status == WAL_OK) {
        *report = importer->report;
    }
    destroy_importer(importer);
    return status;
}

enum wal_status wal_view_import(struct wal_view *view, struct wal_view_import_result *report,
                                struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_import_result);
    struct wal_view_import_result own = WAL_INIT(wal_view_import_result);
    enum wal_status status = wal__view_check_call(view, type, report, error);

    if (status != WAL_OK) {
        return status;
    }
    if (view->root == NULL && !view->is_disabled) {
        return wal__invalid(error, "the view has no root, and so no file");
    }
    if (!view->is_disabled) {
        status = view_import(view, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, report, &own);
    }
    return status;
}
