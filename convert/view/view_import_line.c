/*
 * view_import_line.c - makes an entry from a line that another program appended
 * to a view (view_import_line.h, SPEC.md 10.6).
 *
 * Invariant: the same line at the same position gets the same id and position
 * hash.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view_import_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert/render/entry_meta.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

#define ID_SIZE   255 /* bytes of ids and types */
#define TIME_SIZE 64

static bool slices_equal(struct wal_slice one, struct wal_slice two)
{
    return one.size == two.size &&
           (one.size == 0 || memcmp(one.data, two.data, (size_t)one.size) == 0);
}

/* Decodes a JSON string of 1 to `most` bytes without control characters; empty
 * when it is not one. */
static struct wal_slice decode_text(struct wal__arena *arena,
                                    struct wal__json_span string, size_t most)
{
    const struct wal_slice none = {NULL, 0};
    uint8_t *text = NULL;
    size_t size = 0;

    if (string.size < 3 || string.size > 6 * most + 2) {
        return none;
    }
    text = wal__arena_alloc(arena, most);
    if (text == NULL ||
        wal__json_unescape(string, text, most, &size, NULL) != WAL__JSON_OK) {
        return none;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] == 0x7F) {
            return none;
        }
    }
    return (struct wal_slice){text, size};
}

static struct wal_slice copy_to_import(struct wal__view_importer *importer,
                                       struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    span = span.size > 0 ? wal__arena_copy(&importer->import_arena.arena, span)
                         : span;
    return (struct wal_slice){span.data, span.data != NULL ? span.size : 0};
}

/* Records an issue of a line, for wal_view_issue. */
static bool report_issue(struct wal__view_importer *importer, uint64_t offset,
                         const char *reason)
{
    struct wal_view *view = importer->view;
    struct wal__view_issue *issues =
        wal__heap_grow_array(view->env.heap, view->issues, view->issue_count,
                             &view->issue_capacity, sizeof(issues[0]));

    if (issues == NULL) {
        importer->import_arena.has_failed = true;
        return false;
    }
    view->issues = issues;
    WAL__ASSERT(view->issue_count < view->issue_capacity);
    issues[view->issue_count++] =
        (struct wal__view_issue){.offset = offset, .reason = reason};
    return true;
}

/* ---------------------------------------------------------------- log --- */

/* Finds an entry of the conversation by its id. */
static bool find_entry(const struct wal__view_importer *importer,
                       struct wal_slice id, struct wal_entry *entry)
{
    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    return id.size > 0 &&
           wal_entry_cursor_get(importer->cursor, id, entry, NULL) == WAL_OK;
}

static bool is_log_head(const struct wal__view_importer *importer,
                        const char *id)
{
    struct wal_slice none = {NULL, 0};
    char head[WAL_ID_SIZE] = "";

    return (wal_head_get(importer->view->session, 0, none, head, NULL) !=
                WAL_OK &&
            id[0] == '\0') ||
           (id[0] != '\0' && strcmp(head, id) == 0);
}

void wal__view_import_find_head(struct wal__view_importer *importer)
{
    memcpy(importer->head, importer->view->position.head,
           sizeof(importer->head));
    importer->is_following = is_log_head(importer, importer->head);
}

/* Moves the head to the line, if it follows the file. */
static void follow_line(struct wal__view_importer *importer,
                        struct wal__imported_line *imported)
{
    if (imported->line.head != WAL__HEAD_MOVE ||
        imported->entry.id.size >= sizeof(importer->head)) {
        return;
    }
    memcpy(importer->head, imported->entry.id.data,
           (size_t)imported->entry.id.size);
    importer->head[imported->entry.id.size] = '\0';
    if (imported->is_known) {
        /* An import that was cut short may have moved the head to it. */
        importer->is_following |= is_log_head(importer, importer->head);
    } else if (importer->is_following) {
        imported->entry.flags |= WAL_ENTRY_HEAD_MOVE;
    }
}

enum wal_status wal__view_import_find_last(struct wal__view_importer *importer,
                                           struct wal_error *error)
{
    const struct wal__view_position *position = &importer->view->position;
    struct wal_entry_cursor_options options = wal__session_items_options(
        0, position->entries[0] > 0 ? position->entries[0] - 1 : 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (position->entries[0] == 0) {
        return WAL_OK;
    }
    status = wal_entry_cursor_open(importer->view->session, &options, &cursor,
                                   error);
    if (status == WAL_OK &&
        wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
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
    status = wal__written_ids_load(&importer->written_ids, importer->view,
                                   importer->file->lines.path,
                                   &importer->file->lines.saved, error);
    if (status == WAL_OK && importer->written_ids.is_known) {
        last = decode_text(&importer->scratch.arena, importer->written_ids.last,
                           ID_SIZE);
        if (find_entry(importer, last, &entry)) {
            importer->last_written = copy_to_import(importer, last);
        }
    }
    return status;
}

/* ------------------------------------------------------------ parents --- */

static enum wal_status
set_parent_to_previous(struct wal__view_importer *importer,
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

/* Finds the parent that a line names; empty when it is unknown, or when it is
 * no entry but an item of the session's documents: imported->after. */
static enum wal_status find_named_parent(struct wal__view_importer *importer,
                                         struct wal__imported_line *imported,
                                         struct wal_slice *parent,
                                         struct wal_error *error)
{
    struct wal__json_span named = imported->line.parent;
    struct wal__arena *scratch = &importer->scratch.arena;
    struct wal__json_span found;
    struct wal_entry entry;
    enum wal_status status;

    *parent = (struct wal_slice){NULL, 0};
    if (wal__model_table_get(&importer->imported_ids,
                             wal__model_string_hash(0, named), &found)) {
        *parent = (struct wal_slice){found.data, found.size};
        return WAL_OK;
    }
    *parent = decode_text(scratch, named, ID_SIZE);
    if (find_entry(importer, *parent, &entry) && entry.stream == 0) {
        return WAL_OK;
    }
    status = load_written_ids(importer, error);
    found = wal__written_ids_find(&importer->written_ids, named);
    *parent = decode_text(scratch, found, ID_SIZE);
    if (!find_entry(importer, *parent, &entry) || entry.stream != 0) {
        if (parent->size > 0 &&
            importer->snapshot.dialect->read_ops->documents != NULL) {
            imported->after = found;
        }
        parent->size = 0;
    }
    return status;
}

static enum wal_status set_parent(struct wal__view_importer *importer,
                                  struct wal__imported_line *imported,
                                  struct wal_error *error)
{
    struct wal_slice named;
    enum wal_status status;

    if (imported->line.link == WAL__LINK_ROOT) {
        imported->entry.flags |= WAL_ENTRY_ROOT;
        return WAL_OK;
    }
    if (imported->line.link != WAL__LINK_EXPLICIT) {
        return set_parent_to_previous(importer, imported, error);
    }
    status = find_named_parent(importer, imported, &imported->entry.parent_id,
                               error);
    if (status == WAL_OK && imported->after.size > 0) {
        imported->entry.flags |= WAL_ENTRY_ROOT;
    } else if (status == WAL_OK && imported->entry.parent_id.size == 0) {
        importer->report.unknown++;
        report_issue(importer, imported->offset, "its parent is not known");
        imported->is_inexact = true;
        status = load_written_ids(importer, error);
        imported->entry.parent_id = importer->last_written;
        imported->entry.flags |=
            importer->last_written.size == 0 ? (uint32_t)WAL_ENTRY_ROOT : 0;
    }
    named =
        decode_text(&importer->scratch.arena, imported->line.parent, ID_SIZE);
    imported->is_inexact |= !slices_equal(named, imported->entry.parent_id);
    return status;
}

/* ---------------------------------------------------------------- ids --- */

/* Identifies the line by its offset and the content that the view left. */
static void set_position_hash(const struct wal__view_importer *importer,
                              struct wal__imported_line *imported)
{
    const struct wal__fingerprint *base =
        &importer->file->lines.saved.fingerprint;
    const uint64_t words[] = {base->value, base->part, base->size,
                              imported->offset};
    const struct wal__json_span bytes = {(const uint8_t *)words, sizeof(words)};

    snprintf(imported->position_hash, sizeof(imported->position_hash),
             "%016" PRIx64, wal__model_hash(0, bytes));
}

static bool has_position_hash(const struct wal_entry *entry,
                              const char *position_hash)
{
    struct wal__json_token value;

    return wal__json_find(entry->meta.data, (size_t)entry->meta.size, "mark",
                          &value) == WAL__JSON_OK &&
           value.kind == WAL__JSON_STRING &&
           wal__json_string_is(value.span, position_hash);
}

/* Whether the entry is this line. A redacted line has no hash any more, and is
 * not imported again. */
static bool is_in_log(const struct wal_entry *entry, const char *position_hash)
{
    const uint32_t gone = WAL_ENTRY_LINE | WAL_ENTRY_REDACTED;

    return (entry->flags & gone) == gone ||
           has_position_hash(entry, position_hash);
}

static void set_id(struct wal__view_importer *importer,
                   struct wal__imported_line *imported)
{
    uint64_t key = wal__model_string_hash(0, imported->line.id);
    struct wal__json_span used;
    struct wal_entry entry;
    char generated[24];
    struct wal__json_span text = {(const uint8_t *)generated, 0};

    imported->entry.id = imported->line_id;
    if (imported->line_id.size > 0 &&
        !wal__model_table_get(&importer->imported_ids, key, &used)) {
        if (!find_entry(importer, imported->line_id, &entry)) {
            return;
        }
        imported->is_known = is_in_log(&entry, imported->position_hash);
        if (imported->is_known) {
            return;
        }
    }
    if (imported->line_id.size > 0) {
        report_issue(importer, imported->offset,
                     "its id is taken; it is kept under another");
    }
    imported->is_inexact |=
        imported->line.id.size > 0 || imported->line.is_in_conversation;
    text.size = (size_t)snprintf(generated, sizeof(generated), "view-%s",
                                 imported->position_hash);
    text = wal__arena_copy(&importer->scratch.arena, text);
    imported->entry.id =
        (struct wal_slice){text.data, text.data != NULL ? text.size : 0};
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
    if (imported->line_id.size > 0 &&
        !wal__model_table_get(&importer->imported_ids, key, &used) &&
        !wal__model_table_put(&importer->imported_ids, key, span)) {
        importer->import_arena.has_failed = true;
    }
}

/* -------------------------------------------------------------- entry --- */

static void set_meta(struct wal__view_importer *importer,
                     struct wal__imported_line *imported)
{
    char meta[96 + 6 * ID_SIZE + 12];
    struct wal__json_span text = {(const uint8_t *)meta, 0};
    struct wal__json_span after = imported->after;
    bool has_after = after.size > 0 && after.size <= 6 * ID_SIZE + 2;

    text.size = (size_t)snprintf(
        meta, sizeof(meta), "{\"view\":\"%s\",\"mark\":\"%s\"%s%s%.*s}",
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
    struct wal_slice time =
        decode_text(scratch, imported->line.time, TIME_SIZE);

    imported->entry.type = decode_text(scratch, imported->line.type, ID_SIZE);
    if (imported->entry.type.size == 0) {
        imported->entry.type = wal__slice_from_text(
            imported->line.is_message ? "message" : "line");
    }
    if (time.size > 0) {
        importer->time = copy_to_import(importer, time);
    }
    imported->entry.timestamp = importer->time;
}

enum wal_status wal__view_import_line(struct wal__view_importer *importer,
                                      struct wal__imported_line *imported,
                                      struct wal_error *error)
{
    const struct wal__dialect *dialect = importer->view->dialect;
    struct wal__json_span text =
        wal__line_text(imported->text.data, imported->text.size);
    enum wal_status status;

    if (dialect->read(text.data, text.size, &imported->line, NULL) !=
        WAL__JSON_OK) {
        imported->line = (struct wal__line_info){.link = WAL__LINK_PREVIOUS,
                                                 .head = WAL__HEAD_KEEP};
        imported->is_inexact = true;
        importer->report.damaged++;
        report_issue(importer, imported->offset, "is not JSON");
    }
    imported->is_inexact |= text.size != imported->text.size;
    imported->line_id =
        decode_text(&importer->scratch.arena, imported->line.id, ID_SIZE);
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
    status =
        imported->is_known ? WAL_OK : set_parent(importer, imported, error);
    if (status == WAL_OK) {
        follow_line(importer, imported);
        record_ids(importer, imported);
        set_meta(importer, imported);
    }
    return status;
}
