/*
 * adopt_line.c - makes an entry of a line that another program wrote behind a
 * view (SPEC.md 10.6).
 *
 * Invariant: the same line at the same place gets the same id and mark.
 *
 * Threads: one thread at a time per view.
 */
#include "view/adopt_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/jsonl/json_value.h"
#include "view/entry.h"

#define ID_SIZE   255 /* of ids and types */
#define TIME_SIZE 64

static bool is_same(struct wal_slice one, struct wal_slice two)
{
    return one.size == two.size &&
           (one.size == 0 || memcmp(one.data, two.data, (size_t)one.size) == 0);
}

/* A JSON string as text of 1 to `most` bytes without control characters; empty
 * where it is none. */
static struct wal_slice text_of(struct wal__arena *arena,
                                struct wal__json_span string, size_t most)
{
    const struct wal_slice none = {NULL, 0};
    uint8_t *text = NULL;
    size_t size = 0;

    if (string.size < 3 || string.size > 6 * most + 2) {
        return none;
    }
    text = wal__arena_take(arena, most);
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

static struct wal_slice kept(struct wal__adopting *adopting,
                             struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    span = span.size > 0 ? wal__arena_copy(&adopting->keep.arena, span) : span;
    return (struct wal_slice){span.data, span.data != NULL ? span.size : 0};
}

/* Remembers what is odd about a line, for who asks. */
static bool report(struct wal__adopting *adopting, uint64_t offset,
                   const char *reason)
{
    struct wal_view *view = adopting->view;
    struct wal__view_odd *odd =
        wal__heap_room(view->env.heap, view->odd, view->odd_count,
                       &view->odd_capacity, sizeof(odd[0]));

    if (odd == NULL) {
        adopting->keep.has_failed = true;
        return false;
    }
    view->odd = odd;
    odd[view->odd_count++] =
        (struct wal__view_odd){.offset = offset, .reason = reason};
    return true;
}

/* ---------------------------------------------------------------- log --- */

/* An entry of the conversation with that id. */
static bool find_entry(const struct wal__adopting *adopting,
                       struct wal_slice id, struct wal_entry *entry)
{
    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    return id.size > 0 &&
           wal_iter_get(adopting->iter, id, entry, NULL) == WAL_OK;
}

enum wal_status wal__adopt_written(struct wal__adopting *adopting,
                                   struct wal_error *error)
{
    const struct wal__position *position = &adopting->view->position;
    struct wal_iter_options options = wal__items_options(
        0, position->entries[0] > 0 ? position->entries[0] - 1 : 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_iter *iter = NULL;
    enum wal_status status;

    options.flags |= WAL_ITER_OUT_OF_LINE;
    if (position->entries[0] == 0) {
        return WAL_OK;
    }
    status = wal_iter_open(adopting->view->session, &options, &iter, error);
    if (status == WAL_OK && wal_iter_next(iter, &entry, NULL) == WAL_OK) {
        adopting->written = kept(adopting, entry.id);
    }
    wal_iter_close(iter);
    return status;
}

/* What the file has under which id, once it is asked for. */
static enum wal_status read_told(struct wal__adopting *adopting,
                                 struct wal_error *error)
{
    struct wal_entry entry;
    struct wal_slice last;
    enum wal_status status;

    if (adopting->is_told || adopting->view->position.is_verbatim) {
        return WAL_OK;
    }
    adopting->is_told = true;
    status = wal__told_read(&adopting->told, adopting->view,
                            adopting->file->lines.path,
                            &adopting->file->lines.left, error);
    if (status == WAL_OK && adopting->told.is_known) {
        last = text_of(&adopting->scratch.arena, adopting->told.last, ID_SIZE);
        if (find_entry(adopting, last, &entry)) {
            adopting->written = kept(adopting, last);
        }
    }
    return status;
}

/* ------------------------------------------------------------- parents --- */

static enum wal_status go_under_last(struct wal__adopting *adopting,
                                     struct wal__taking *taking,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (adopting->before.size == 0) {
        status = read_told(adopting, error);
        adopting->before = adopting->written;
    }
    taking->entry.parent_id = adopting->before;
    if (taking->entry.parent_id.size == 0) {
        taking->entry.flags |= WAL_ENTRY_ROOT;
    }
    return status;
}

/* The entry that a line names; empty where it is not known. */
static enum wal_status find_named(struct wal__adopting *adopting,
                                  const struct wal__taking *taking,
                                  struct wal_slice *parent,
                                  struct wal_error *error)
{
    struct wal__json_span named = taking->line.parent;
    struct wal__arena *scratch = &adopting->scratch.arena;
    struct wal__json_span found;
    struct wal_entry entry;
    enum wal_status status;

    *parent = (struct wal_slice){NULL, 0};
    if (wal__model_table_get(&adopting->taken, wal__model_string_hash(0, named),
                             &found)) {
        *parent = (struct wal_slice){found.data, found.size};
        return WAL_OK;
    }
    *parent = text_of(scratch, named, ID_SIZE);
    if (find_entry(adopting, *parent, &entry) && entry.stream == 0) {
        return WAL_OK;
    }
    status = read_told(adopting, error);
    *parent = text_of(scratch, wal__told_item(&adopting->told, named), ID_SIZE);
    if (!find_entry(adopting, *parent, &entry) || entry.stream != 0) {
        parent->size = 0;
    }
    return status;
}

static enum wal_status set_parent(struct wal__adopting *adopting,
                                  struct wal__taking *taking,
                                  struct wal_error *error)
{
    struct wal_slice named;
    enum wal_status status;

    if (taking->line.link == WAL__LINK_ROOT) {
        taking->entry.flags |= WAL_ENTRY_ROOT;
        return WAL_OK;
    }
    if (taking->line.link != WAL__LINK_NAMED) {
        return go_under_last(adopting, taking, error);
    }
    status = find_named(adopting, taking, &taking->entry.parent_id, error);
    if (status == WAL_OK && taking->entry.parent_id.size == 0) {
        adopting->report.unknown++;
        report(adopting, taking->offset, "its parent is not known");
        taking->is_inexact = true;
        status = read_told(adopting, error);
        taking->entry.parent_id = adopting->written;
        taking->entry.flags |=
            adopting->written.size == 0 ? (uint32_t)WAL_ENTRY_ROOT : 0;
    }
    named = text_of(&adopting->scratch.arena, taking->line.parent, ID_SIZE);
    taking->is_inexact |= !is_same(named, taking->entry.parent_id);
    return status;
}

/* ----------------------------------------------------------------- ids --- */

/* A line at that place behind what the view wrote, whenever it is read. */
static void set_mark(const struct wal__adopting *adopting,
                     struct wal__taking *taking)
{
    const struct wal__digest *base = &adopting->file->lines.left.digest;
    const uint64_t words[] = {base->value, base->part, base->size,
                              taking->offset};
    const struct wal__json_span bytes = {(const uint8_t *)words, sizeof(words)};

    snprintf(taking->mark, sizeof(taking->mark), "%016" PRIx64,
             wal__model_hash(0, bytes));
}

static bool has_mark(const struct wal_entry *entry, const char *mark)
{
    struct wal__json_token value;

    return wal__json_find(entry->meta.data, (size_t)entry->meta.size, "mark",
                          &value) == WAL__JSON_OK &&
           value.kind == WAL__JSON_STRING &&
           wal__json_string_is(value.span, mark);
}

/* Whether the log has the line under that id. A line that was redacted says
 * nothing of itself any more, and is not taken in again. */
static bool is_there(const struct wal_entry *entry, const char *mark)
{
    const uint32_t gone = WAL_ENTRY_LINE | WAL_ENTRY_REDACTED;

    return (entry->flags & gone) == gone || has_mark(entry, mark);
}

static void set_id(struct wal__adopting *adopting, struct wal__taking *taking)
{
    uint64_t key = wal__model_string_hash(0, taking->line.id);
    struct wal__json_span used;
    struct wal_entry entry;
    char made[24];
    struct wal__json_span text = {(const uint8_t *)made, 0};

    taking->entry.id = taking->own;
    if (taking->own.size > 0 &&
        !wal__model_table_get(&adopting->taken, key, &used)) {
        if (!find_entry(adopting, taking->own, &entry)) {
            return;
        }
        taking->is_known = is_there(&entry, taking->mark);
        if (taking->is_known) {
            return;
        }
    }
    if (taking->own.size > 0) {
        report(adopting, taking->offset,
               "its id is taken; it is kept under another");
    }
    taking->is_inexact |= taking->line.id.size > 0 || taking->line.is_chain;
    text.size = (size_t)snprintf(made, sizeof(made), "view-%s", taking->mark);
    text = wal__arena_copy(&adopting->scratch.arena, text);
    taking->entry.id =
        (struct wal_slice){text.data, text.data != NULL ? text.size : 0};
    taking->is_known = find_entry(adopting, taking->entry.id, &entry);
}

/* What other lines of the file find the line by. */
static void remember(struct wal__adopting *adopting,
                     const struct wal__taking *taking)
{
    struct wal_slice id = kept(adopting, taking->entry.id);
    struct wal__json_span span = {id.data, (size_t)id.size};
    uint64_t key = wal__model_string_hash(0, taking->line.id);
    struct wal__json_span used;

    adopting->before = id;
    if (taking->own.size > 0 &&
        !wal__model_table_get(&adopting->taken, key, &used) &&
        !wal__model_table_put(&adopting->taken, key, span)) {
        adopting->keep.has_failed = true;
    }
}

/* ---------------------------------------------------------------- entry --- */

static void set_meta(struct wal__adopting *adopting, struct wal__taking *taking)
{
    char meta[96];
    struct wal__json_span text = {(const uint8_t *)meta, 0};

    text.size = (size_t)snprintf(meta, sizeof(meta),
                                 "{\"view\":\"%s\",\"mark\":\"%s\"%s}",
                                 adopting->view->dialect->name, taking->mark,
                                 taking->is_inexact ? ",\"inexact\":true" : "");
    text = wal__arena_copy(&adopting->scratch.arena, text);
    taking->entry.meta = (struct wal_slice){text.data, text.size};
}

static void set_type_and_time(struct wal__adopting *adopting,
                              struct wal__taking *taking)
{
    struct wal__arena *scratch = &adopting->scratch.arena;
    struct wal_slice time = text_of(scratch, taking->line.time, TIME_SIZE);

    taking->entry.type = text_of(scratch, taking->line.type, ID_SIZE);
    if (taking->entry.type.size == 0) {
        taking->entry.type =
            wal__slice(taking->line.is_message ? "message" : "line");
    }
    if (time.size > 0) {
        adopting->time = kept(adopting, time);
    }
    taking->entry.timestamp = adopting->time;
}

enum wal_status wal__adopt_judge(struct wal__adopting *adopting,
                                 struct wal__taking *taking,
                                 struct wal_error *error)
{
    const struct wal__dialect *dialect = adopting->view->dialect;
    struct wal__json_span text =
        wal__line_text(taking->text.data, taking->text.size);
    enum wal_status status;

    if (dialect->read(text.data, text.size, &taking->line, NULL) !=
        WAL__JSON_OK) {
        taking->line = (struct wal__line){.link = WAL__LINK_BEFORE,
                                          .head = WAL__HEAD_KEEP};
        taking->is_inexact = true;
        adopting->report.damaged++;
        report(adopting, taking->offset, "is not JSON");
    }
    taking->is_inexact |= text.size != taking->text.size;
    taking->own = text_of(&adopting->scratch.arena, taking->line.id, ID_SIZE);
    taking->entry = (struct wal_entry){
        .struct_size = sizeof(taking->entry),
        .flags = WAL_ENTRY_LINE,
        .payload = {taking->text.data, taking->text.size},
    };
    if (taking->line.head == WAL__HEAD_KEEP) {
        taking->entry.flags |= WAL_ENTRY_HEAD_KEEP;
    }
    set_mark(adopting, taking);
    set_type_and_time(adopting, taking);
    set_id(adopting, taking);
    status = taking->is_known ? WAL_OK : set_parent(adopting, taking, error);
    if (status == WAL_OK) {
        remember(adopting, taking);
        set_meta(adopting, taking);
    }
    return status;
}
