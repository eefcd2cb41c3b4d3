/*
 * line_import.c - parses lines and makes an entry of each; entries are collected in a batch and
 * appended together (line_import.h).
 */
#include "convert/import/line_import.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "convert/import/import.h"
#include "convert/model/model_member.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "format/payload/first_text.h"

/* --- JSON errors --------------------------------------------------------- */

static bool is_valid(const uint8_t *data, size_t size, size_t from)
{
    return from < size && data[from] == '{' &&
           wal__json_validate(data + from, size - from, NULL) == WAL__JSON_OK;
}

/* Describes the result of a scan that failed at `offset`. `is_last`: the text is at the end of the
 * file. */
static const char *json_error_text(struct wal__json_span text, enum wal__json_status status,
                                   size_t offset, bool is_last)
{
    if (status == WAL__JSON_NUL_BYTE) {
        return "holds NUL bytes";
    }
    if (status == WAL__JSON_UTF8) {
        return "invalid UTF-8";
    }
    if (status == WAL__JSON_TRUNCATED) {
        return is_last ? "torn: the file ends inside this line" : "cut short: ends inside a value";
    }
    /* The next line follows a line that was cut, possibly inside a string. */
    if (is_valid(text.data, text.size, offset) ||
        (offset >= 2 && is_valid(text.data, text.size, offset - 2))) {
        return "welded: two values in one line";
    }
    if (status == WAL__JSON_TRAILING) {
        return "bytes after the value";
    }
    return status == WAL__JSON_DEPTH ? "nested too deeply" : "not JSON";
}

/* --- the batch ----------------------------------------------------------- */

static enum wal_status append(struct wal__import_batch *batch, const struct wal_entry *entries,
                              uint32_t count, struct wal_error *error)
{
    struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };
    struct wal_session_change change = {
        .struct_size = sizeof(change),
        .fields = WAL_CHANGE_TITLE,
        .title = wal__slice_from_text(batch->title),
    };
    struct wal_batch request = {
        .struct_size = sizeof(request),
        .entry_count = count,
        .entries = entries,
        .change = batch->has_title ? &change : NULL,
    };
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status = wal_batch_commit(batch->session, &request, &options, &result, error);

    if (status == WAL_OK) {
        batch->appended += result.appended;
        batch->duplicates += result.duplicates;
        batch->has_title = false;
    }
    return status;
}

/* Returns the slot of the id, or the free slot for it. */
static size_t find_slot(const struct wal__import_batch *batch, struct wal_slice id)
{
    size_t slot = (size_t)(wal__id_hash(id.data, (size_t)id.size) % WAL__IMPORT_BATCH_SLOTS);

    for (; batch->slots[slot] != 0; slot = (slot + 1) % WAL__IMPORT_BATCH_SLOTS) {
        if (wal__slice_equal(batch->entries[batch->slots[slot] - 1].id, id)) {
            break;
        }
    }
    return slot;
}

/* Adds an entry and copies its texts. Appends the batch first if the entry does not fit. An entry
 * larger than a batch is appended at once. */
static enum wal_status batch_add(struct wal__import_batch *batch, const struct wal_entry *entry,
                                 struct wal_error *error)
{
    struct wal_entry added = *entry;
    struct wal_slice *const texts[] = {&added.id,        &added.parent_id, &added.type,
                                       &added.timestamp, &added.payload,   &added.meta};
    const size_t text_count = sizeof(texts) / sizeof(texts[0]);
    enum wal_status status;
    uint64_t size = 0;
    size_t slot;

    for (size_t i = 0; i < text_count; i++) {
        size += texts[i]->size;
    }
    if (batch->count == WAL__IMPORT_BATCH_ENTRIES || batch->size + size > WAL__IMPORT_BATCH_SIZE) {
        status = wal__import_batch_flush(batch, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (size > WAL__IMPORT_BATCH_SIZE) {
        return append(batch, entry, 1, error);
    }
    for (size_t i = 0; i < text_count; i++) {
        struct wal__json_span text = {texts[i]->data, (size_t)texts[i]->size};

        texts[i]->data = text.size > 0 ? wal__arena_copy(&batch->texts.arena, text).data : NULL;
    }
    if (batch->texts.has_failed) {
        return wal__no_memory(error);
    }
    WAL__ASSERT(batch->count < WAL__IMPORT_BATCH_ENTRIES);
    slot = find_slot(batch, added.id);
    batch->entries[batch->count++] = added;
    batch->slots[slot] = (uint16_t)batch->count;
    batch->size += size;
    return WAL_OK;
}

enum wal_status wal__import_batch_flush(struct wal__import_batch *batch, struct wal_error *error)
{
    enum wal_status status =
        batch->count > 0 ? append(batch, batch->entries, batch->count, error) : WAL_OK;

    if (status == WAL_OK && batch->count > 0) {
        wal__heap_arena_reset(&batch->texts);
        batch->count = 0;
        batch->size = 0;
        memset(batch->slots, 0, sizeof(batch->slots));
    }
    return status;
}

/* --- lines --------------------------------------------------------------- */

#define NAME_MAX_SIZE 255 /* bytes of an id or a type */

/* A parsed line. */
struct parsed {
    char id[WAL__LINE_ID_SIZE];
    char parent[WAL__LINE_ID_SIZE];
    char type[WAL__LINE_ID_SIZE];
    uint32_t flags;
    struct wal__import_step step;
    bool has_issue;  /* an issue was reported */
    bool is_closed;  /* only white space can follow in the same line */
    bool is_inexact; /* see "inexact" in source_lines.h */
    bool is_replay;  /* the client wrote an earlier line again */
};

/* Copies an id or a type; truncates it. */
static void set_text(char *to, const char *from)
{
    size_t size = strnlen(from, WAL__LINE_ID_SIZE - 1);

    memcpy(to, from, size);
    to[size] = '\0';
}

static void copy_id(char *to, struct wal_slice id)
{
    size_t size = id.size < WAL__LINE_ID_SIZE ? (size_t)id.size : 0;

    if (size > 0) {
        memcpy(to, id.data, size);
    }
    to[size] = '\0';
}

static void add_issue(struct wal__import_lines *lines, const struct wal__piece *piece,
                      uint64_t offset, const char *reason)
{
    wal__import_add_issue(lines->arena, &lines->issues, lines->name, piece->line, offset, reason);
}

/* The entry that has an id. */
struct id_owner {
    uint32_t stream;
    bool is_earlier; /* it was imported before the current line */
};

static bool find_id_owner(const struct wal__import_lines *lines, const char *id,
                          struct id_owner *id_owner)
{
    const struct wal__import_batch *batch = &lines->batch;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status;

    if (batch->slots[find_slot(batch, wal__slice_from_text(id))] != 0) {
        id_owner->stream = lines->stream;
        id_owner->is_earlier = true;
        return true;
    }
    status = wal_entry_cursor_get(lines->cursor, wal__slice_from_text(id), &entry, NULL);
    id_owner->stream = status == WAL_OK ? entry.stream : lines->stream;
    id_owner->is_earlier = lines->sequence == 0 || status != WAL_OK ||
                           entry.stream != lines->stream || entry.sequence < lines->sequence;
    /* The id of an entry that cannot be read is in use too. */
    return status == WAL_OK || status == WAL_ECORRUPT;
}

static bool is_id_used(const struct wal__import_lines *lines, const char *id)
{
    struct id_owner id_owner;

    return find_id_owner(lines, id, &id_owner) && id_owner.is_earlier;
}

/* Returns true if a line can have this parent. */
static bool is_parent(const struct wal__import_lines *lines, const char *id)
{
    struct id_owner id_owner;

    if (lines->sequence == 0 && strcmp(id, lines->previous_id) == 0) {
        return true;
    }
    return find_id_owner(lines, id, &id_owner) && id_owner.is_earlier &&
           id_owner.stream == lines->stream;
}

/* Makes an unused id from the line's own id, or from its number. */
static void make_unused_id(const struct wal__import_lines *lines, const char *own_id, uint64_t line,
                           char *id)
{
    char file[WAL__FILE_ID_SIZE + 1]; /* what the id begins with */
    char base[WAL__LINE_ID_SIZE];
    bool has_id = own_id[0] != '\0' && !wal__source_names_file(wal__slice_from_text(own_id));

    snprintf(file, sizeof(file), "%s%s", lines->file, lines->file[0] != '\0' ? ":" : "");
    if (has_id && strlen(own_id) + strlen(file) < WAL__LINE_ID_SIZE) {
        set_text(id, file);
        set_text(id + strlen(file), own_id);
        if (!is_id_used(lines, id)) {
            return;
        }
    }
    if (has_id && strlen(own_id) + strlen(file) <= 210) {
        snprintf(base, sizeof(base), "%s%.210s~%" PRIu64, file, own_id, line);
    } else {
        snprintf(base, sizeof(base), "%sline-%" PRIu64, file, line);
    }
    set_text(id, base);
    for (unsigned n = 2; is_id_used(lines, id); n++) {
        snprintf(id, WAL__LINE_ID_SIZE, "%.230s~%u", base, n);
    }
}

static void set_parent(const struct wal__import_lines *lines, struct parsed *parsed,
                       enum wal__line_link link)
{
    if (link == WAL__LINK_PREVIOUS || link == WAL__LINK_MAIN) {
        /* In a dialect that links in turns, the last line on no side chain. */
        const char *previous = lines->turn_id[0] != '\0' ? lines->turn_id : lines->previous_id;

        set_text(parsed->parent, link == WAL__LINK_MAIN ? lines->main_id : previous);
    } else if (link == WAL__LINK_HEAD || link == WAL__LINK_ROOT) {
        parsed->parent[0] = '\0';
    }
    if (link != WAL__LINK_HEAD && parsed->parent[0] == '\0') {
        parsed->flags |= WAL_ENTRY_ROOT;
    }
}

/* The lines of a copy (SPEC.md 5.17) are entries with ids of the original: replaces the id that the
 * parent has in the file by that of its entry. The session's lines are the first ones of the
 * file. */
static bool is_copied_parent(struct wal__import_lines *lines, struct parsed *parsed)
{
    const struct wal__heap *heap = lines->arena->heap;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal__line_reader reader;
    struct wal__source_lines known;
    struct wal__piece piece;
    bool is_found = false;

    if (!lines->match.is_copy || wal__source_lines_open(&known, heap, lines->batch.session,
                                                        lines->stream, NULL, NULL) != WAL_OK) {
        return false;
    }
    wal__line_reader_init(&reader, heap, lines->fd, lines->file_size, false, 0);
    while (!is_found && wal__source_lines_next(&known, &entry, NULL) == WAL_OK &&
           wal__line_reader_next(&reader, &piece) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        struct wal__line_info line;
        char id[WAL__LINE_ID_SIZE];

        is_found =
            wal__line_read(lines->dialect, text.data, text.size, &line, NULL) == WAL__JSON_OK &&
            wal__string_decode(line.id, NAME_MAX_SIZE, id) && strcmp(id, parsed->parent) == 0;
    }
    if (is_found) {
        copy_id(parsed->parent, entry.id);
    }
    wal__line_reader_deinit(&reader);
    wal__source_lines_close(&known);
    return is_found;
}

/* Sets the parent to that of the entry that the line names. Returns false if there is no such entry
 * before the line. */
static bool set_parent_of_named(const struct wal__import_lines *lines,
                                const struct wal__line_info *line, struct parsed *parsed)
{
    const struct wal__import_batch *batch = &lines->batch;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    char named[WAL__LINE_ID_SIZE];
    uint16_t slot;

    parsed->parent[0] = '\0';
    if (!wal__string_decode(line->parent, NAME_MAX_SIZE, named) || !is_parent(lines, named)) {
        return false;
    }
    slot = batch->slots[find_slot(batch, wal__slice_from_text(named))];
    if (slot != 0) {
        entry = batch->entries[slot - 1];
    } else if (wal_entry_cursor_get(lines->cursor, wal__slice_from_text(named), &entry, NULL) !=
               WAL_OK) {
        return false;
    }
    copy_id(parsed->parent, entry.parent_id);
    return true;
}

/* --- turns --------------------------------------------------------------- */

enum {
    TURN_LINES_MAX = 512,    /* lines of a turn between a line and its parent */
    STEP_SIZE_MAX = 16 << 20 /* of a line; a longer one is no step */
};

static void set_step(const struct wal__import_lines *lines, const struct wal__line_info *line,
                     size_t size, struct wal__import_step *step)
{
    step->is_side = line->is_sidechain && lines->probe->has_mainline;
    step->step = size <= STEP_SIZE_MAX ? line->step : WAL__STEP_OTHER;
    step->answer = step->step == WAL__STEP_ANSWER ? wal__model_string_hash(0, line->answer) : 0;
}

/* Sets the step of an entry from its payload. */
static void read_step(const struct wal__import_lines *lines, const struct wal_entry *entry,
                      struct wal__import_step *step)
{
    size_t size = (size_t)entry->payload.size;
    struct wal__json_span text = wal__line_text(entry->payload.data, size);
    struct wal__line_info line;

    step->step = WAL__STEP_OTHER;
    step->answer = 0;
    step->is_stranger = wal__source_meta_is(entry, "stranger", WAL__JSON_TRUE);
    step->is_side = step->is_stranger;
    if (size <= STEP_SIZE_MAX && !step->is_stranger &&
        !wal__source_meta_is(entry, "replay", WAL__JSON_TRUE) &&
        !wal__line_is_blank(text.data, text.size) &&
        wal__line_read(lines->dialect, text.data, text.size, &line, NULL) == WAL__JSON_OK) {
        set_step(lines, &line, size, step);
    }
}

/* Reads an entry of the batch or the session. Its payload is valid until the next call, or in
 * *memory, which the caller frees. */
static bool read_line(const struct wal__import_lines *lines, const char *id,
                      struct wal_entry *entry, char **memory)
{
    const struct wal__import_batch *batch = &lines->batch;
    struct wal_slice name = wal__slice_from_text(id);
    uint16_t slot = batch->slots[find_slot(batch, name)];

    *memory = NULL;
    *entry =
        slot != 0 ? batch->entries[slot - 1] : (struct wal_entry){.struct_size = sizeof(*entry)};
    if (slot != 0) {
        return true;
    }
    return wal_entry_cursor_get(lines->cursor, name, entry, NULL) == WAL_OK &&
           entry->stream == lines->stream && (entry->flags & WAL_ENTRY_REDACTED) == 0;
}

/* Reads the payload too, unless it is too large for a step. */
static bool load_line(const struct wal__import_lines *lines, struct wal_entry *entry, char **memory)
{
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0 && entry->payload_size > STEP_SIZE_MAX) {
        entry->payload.size = 0;
        return true;
    }
    return (entry->flags & WAL_ENTRY_OUT_OF_LINE) == 0 ||
           wal__entry_payload_load(lines->arena->heap, lines->store, entry, memory, NULL) == WAL_OK;
}

/* Finds the step of an entry. */
static bool find_step(const struct wal__import_lines *lines, const char *id,
                      struct wal__import_step *step)
{
    size_t known = lines->step_count < WAL__IMPORT_STEPS ? lines->step_count : WAL__IMPORT_STEPS;
    struct wal_entry entry;
    char *memory;
    bool is_found;

    for (size_t i = 1; i <= known; i++) {
        const struct wal__import_step *noted =
            &lines->steps[(lines->step_count - i) % WAL__IMPORT_STEPS];
        if (strcmp(noted->id, id) == 0) {
            *step = *noted;
            return true;
        }
    }
    is_found = read_line(lines, id, &entry, &memory);
    if (is_found) {
        copy_id(step->parent, entry.parent_id);
        is_found = load_line(lines, &entry, &memory);
    }
    if (is_found) {
        set_text(step->id, id);
        read_step(lines, &entry, step);
    }
    wal__heap_free(lines->arena->heap, memory);
    return is_found;
}

/* The answer that a line is of, or whose calls it has a result of; or 0. */
static uint64_t answer_of(const struct wal__import_lines *lines, const char *id)
{
    struct wal__import_step at;

    for (unsigned i = 0; i < TURN_LINES_MAX && id[0] != '\0' && find_step(lines, id, &at); i++) {
        if (at.step == WAL__STEP_ANSWER || at.step == WAL__STEP_PROMPT) {
            return at.answer;
        }
        id = at.parent;
    }
    return 0;
}

/* Whether nothing but parts of one answer, of the line's or of its parent's, their results and
 * notes is between the last line and the line's parent. */
static bool is_in_turn(const struct wal__import_lines *lines, const char *last,
                       const struct parsed *parsed)
{
    const char *parent = parsed->parent;
    struct wal__import_step at;
    uint64_t answer = 0;

    set_text(at.parent, last);
    for (unsigned i = 0; i < TURN_LINES_MAX; i++) {
        char id[WAL__LINE_ID_SIZE];

        set_text(id, at.parent);
        if (strcmp(id, parent) == 0) {
            return answer == 0 || answer == parsed->step.answer ||
                   answer == answer_of(lines, parent);
        }
        if (id[0] == '\0' || !find_step(lines, id, &at) || at.step == WAL__STEP_PROMPT ||
            at.is_side != parsed->step.is_side ||
            (answer != 0 && at.answer != 0 && at.answer != answer)) {
            return false;
        }
        answer = at.answer != 0 ? at.answer : answer;
    }
    return false;
}

/* Whether there is nothing but notes before a line that begins the conversation. */
static bool has_notes_alone(const struct wal__import_lines *lines, const struct parsed *parsed)
{
    const char *id = lines->turn_id;
    struct wal__import_step at;
    unsigned count = 0;

    while (!parsed->step.is_side && lines->sequence == 0 && id[0] != '\0' &&
           count < TURN_LINES_MAX && find_step(lines, id, &at) && at.step == WAL__STEP_OTHER) {
        id = at.parent;
        count++;
    }
    return count > 0 && id[0] == '\0';
}

/* Notes the line as the last one. */
static void note_step(struct wal__import_lines *lines, const struct parsed *parsed)
{
    struct wal__import_step *step = &lines->steps[lines->step_count % WAL__IMPORT_STEPS];

    if (!lines->dialect->links_in_turns) {
        return;
    }
    *step = parsed->step;
    set_text(step->id, parsed->id);
    set_text(step->parent, parsed->parent);
    lines->step_count++;
    if (!step->is_side) {
        set_text(lines->turn_id, parsed->id);
    }
}

/* Finds the last line on no side chain of a session that the file continues. */
static enum wal_status find_turn(struct wal__import_lines *lines, struct wal_error *error)
{
    struct wal__source_lines known;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal__import_step step;
    enum wal_status status;

    if (!lines->dialect->links_in_turns || lines->match.last_id[0] == '\0') {
        return WAL_OK;
    }
    if (!find_step(lines, lines->match.last_id, &step) || !step.is_side) {
        set_text(lines->turn_id, lines->match.last_id);
        return WAL_OK;
    }
    status = wal__source_lines_open(&known, lines->arena->heap, lines->batch.session, lines->stream,
                                    NULL, error);
    while (status == WAL_OK && wal__source_lines_next(&known, &entry, NULL) == WAL_OK) {
        copy_id(step.id, entry.id);
        if (find_step(lines, step.id, &step) && !step.is_side) {
            set_text(lines->turn_id, step.id);
        }
    }
    wal__source_lines_close(&known);
    return status;
}

/* --- lines written again, and lines of other sessions -------------------- */

/* The id of the nearest entry whose line states this id. */
static void find_nearest(const struct wal__import_lines *lines, char id[WAL__LINE_ID_SIZE])
{
    struct wal__json_span nearest;

    if (lines->renamed.count > 0 &&
        wal__model_table_get(&lines->renamed, wal__model_text_hash(id), &nearest)) {
        copy_id(id, (struct wal_slice){nearest.data, nearest.size});
    }
}

/* Notes the entry of a line that states an id which an earlier entry has. */
static void put_nearest(struct wal__import_lines *lines, const char *own_id, const char *id)
{
    struct wal__json_span kept = wal__arena_copy(&lines->arena->arena, wal__model_literal(id));

    lines->renamed.arena = &lines->arena->arena;
    if (kept.data == NULL ||
        !wal__model_table_put(&lines->renamed, wal__model_text_hash(own_id), kept)) {
        lines->arena->has_failed = true;
    }
}

/* Whether the line, whose id is taken, was written before. */
static bool is_replay(const struct wal__import_lines *lines, const char *own_id,
                      struct wal__json_span text)
{
    char id[WAL__LINE_ID_SIZE];
    struct wal_entry entry;
    char *memory = NULL;
    bool is_same = false;

    set_text(id, own_id);
    find_nearest(lines, id);
    if (lines->dialect->replay_members != NULL && read_line(lines, id, &entry, &memory) &&
        load_line(lines, &entry, &memory)) {
        is_same = wal__line_is_same(wal__line_text(entry.payload.data, (size_t)entry.payload.size),
                                    text, lines->dialect->replay_members);
    }
    wal__heap_free(lines->arena->heap, memory);
    return is_same;
}

/* Whether the line states another session than the file's, and its parent is not a line of the
 * file's session. */
static bool is_stranger(struct wal__import_lines *lines, const struct wal__piece *piece,
                        const struct wal__line_info *line, const struct parsed *parsed,
                        bool has_parent)
{
    struct wal__import_step above;
    char session[WAL__LINE_ID_SIZE];
    char *reason;

    if (!lines->dialect->links_in_turns || !line->is_in_conversation ||
        line->link != WAL__LINK_EXPLICIT || lines->probe->session == NULL ||
        !wal__string_decode(line->session, NAME_MAX_SIZE, session) ||
        strcmp(session, lines->probe->session) == 0 ||
        (has_parent && !(find_step(lines, parsed->parent, &above) && above.is_stranger))) {
        return false;
    }
    reason = wal__arena_alloc(&lines->arena->arena, sizeof(session) + 32);
    if (reason != NULL) {
        snprintf(reason, sizeof(session) + 32, "is of another session, %s", session);
        add_issue(lines, piece, piece->offset, reason);
    }
    return true;
}

/* --- parents ------------------------------------------------------------- */

static enum wal__line_link find_parent(struct wal__import_lines *lines,
                                       const struct wal__piece *piece,
                                       const struct wal__line_info *line, const char *own_id,
                                       struct parsed *parsed)
{
    bool is_optional = line->link == WAL__LINK_EXPLICIT_OR_PREVIOUS;
    bool is_valid;
    bool is_known;

    if (line->link == WAL__LINK_BEFORE) {
        is_known = set_parent_of_named(lines, line, parsed);
        if (is_known || !wal__json_span_equal(line->parent, line->id)) {
            return line->link;
        }
        parsed->is_inexact = true;
        return WAL__LINK_PREVIOUS;
    }
    if (line->link == WAL__LINK_ROOT && has_notes_alone(lines, parsed)) {
        set_text(parsed->parent, lines->turn_id);
        return WAL__LINK_EXPLICIT;
    }
    if (line->link != WAL__LINK_EXPLICIT && !is_optional) {
        return line->link;
    }
    is_valid = wal__string_decode(line->parent, NAME_MAX_SIZE, parsed->parent);
    is_known = is_valid && is_parent(lines, parsed->parent);
    parsed->step.is_stranger = is_stranger(lines, piece, line, parsed, is_known);
    if (parsed->step.is_stranger) {
        return is_known ? WAL__LINK_EXPLICIT : WAL__LINK_ROOT;
    }
    if (is_known) {
        find_nearest(lines, parsed->parent);
        if (lines->dialect->links_in_turns && lines->sequence == 0 && !is_optional) {
            const char *last = parsed->step.is_side ? lines->previous_id : lines->turn_id;
            if (is_in_turn(lines, last, parsed)) {
                set_text(parsed->parent, last);
            }
        }
        return WAL__LINK_EXPLICIT;
    }
    if (is_optional) {
        return WAL__LINK_PREVIOUS;
    }
    if (!is_valid) {
        add_issue(lines, piece, piece->offset, "its parent id is not valid");
    } else if (is_copied_parent(lines, parsed)) {
        return WAL__LINK_EXPLICIT;
    } else if (strcmp(parsed->parent, own_id) == 0) {
        add_issue(lines, piece, piece->offset, "names itself as its parent");
    } else {
        add_issue(lines, piece, piece->offset, "its parent comes later or not at all");
    }
    parsed->is_inexact = true;
    return WAL__LINK_PREVIOUS;
}

static void update_time(struct wal__import_lines *lines, const struct wal__line_info *line)
{
    char text[sizeof(lines->time)];

    static_assert(sizeof(text) >= WAL__IMPORT_TIME_SIZE, "a time fits");
    if (wal__string_decode(line->time, sizeof(text) - 1, text)) {
        memcpy(lines->time, text, sizeof(text));
    } else if (line->time_ms > 0) {
        wal__import_write_time(line->time_ms, lines->time);
    }
}

static void update_title(struct wal__import_lines *lines, struct wal__json_span title)
{
    char text[WAL__LINE_TITLE_SIZE + 1];

    if (lines->sets_title && wal__string_decode(title, WAL__LINE_TITLE_SIZE, text)) {
        snprintf(lines->batch.title, sizeof(lines->batch.title), "%s", text);
        lines->batch.has_title = true; /* set together with the next append */
    }
}

/* The first prompt of a subagent on a side chain names its session. */
static void update_title_of_subagent(struct wal__import_lines *lines, struct wal__json_span text)
{
    uint8_t title[WAL__FIRST_TEXT_MAX];
    size_t size;

    if (lines->sets_title && !lines->is_titled && lines->probe->is_subagent &&
        !lines->probe->has_mainline && lines->match.entries == 0 && lines->batch.title[0] == '\0' &&
        wal__first_text_of_subagent((struct wal__span){text.data, text.size}, title, &size)) {
        snprintf(lines->batch.title, sizeof(lines->batch.title), "%.*s", (int)size,
                 (const char *)title);
        lines->batch.has_title = true;
    }
}

/* Reports what the client of the dialect does not write. */
static void report_anomalies(struct wal__import_lines *lines, const struct wal__piece *piece,
                             const struct wal__line_info *line)
{
    enum wal__headers headers = lines->dialect->headers;
    bool is_first = piece->line == lines->probe->first;

    if (is_first && lines->missing != NULL) {
        add_issue(lines, piece, piece->offset, lines->missing);
    }
    if (headers != WAL__HEADERS_NONE && is_first && !line->is_header && !line->is_preamble) {
        add_issue(lines, piece, piece->offset, "no header before it");
    } else if (headers == WAL__HEADERS_ONE && !is_first && line->is_header) {
        add_issue(lines, piece, piece->offset, "a second header");
    }
    if (line->has_newer_version) {
        add_issue(lines, piece, piece->offset, "the version is not known");
    }
    if (line->has_duplicate_key) {
        add_issue(lines, piece, piece->offset, "a key occurs twice");
    }
}

/* Sets the id. A line whose id is taken is a replay, or gets another. */
static void set_id(struct wal__import_lines *lines, const struct wal__piece *piece,
                   const char *own_id, struct wal__json_span text, bool replaces,
                   struct parsed *parsed)
{
    struct id_owner id_owner;

    make_unused_id(lines, own_id, piece->line, parsed->id);
    if (own_id[0] == '\0' || strcmp(own_id, parsed->id) == 0 || replaces) {
        return;
    }
    /* The streams of one session may contain the same ids. */
    if (find_id_owner(lines, own_id, &id_owner) && id_owner.stream != lines->stream) {
        return;
    }
    parsed->is_replay = is_replay(lines, own_id, text);
    if (!parsed->is_replay) {
        add_issue(lines, piece, piece->offset, "duplicate id; renamed");
        put_nearest(lines, own_id, parsed->id);
    }
}

static void parse_object(struct wal__import_lines *lines, const struct wal__piece *piece,
                         const struct wal__line_info *line, struct wal__json_span text,
                         struct parsed *parsed)
{
    enum wal__line_head head = line->head;
    char own_id[WAL__LINE_ID_SIZE];
    enum wal__line_link link;
    /* A line that replaces another has its id. */
    bool replaces = line->link == WAL__LINK_BEFORE && wal__json_span_equal(line->parent, line->id);

    report_anomalies(lines, piece, line);
    wal__string_decode(line->id, NAME_MAX_SIZE, own_id);
    set_step(lines, line, piece->size, &parsed->step);
    link = find_parent(lines, piece, line, own_id, parsed);
    set_id(lines, piece, own_id, text, replaces, parsed);
    if (parsed->is_replay) {
        parsed->step = (struct wal__import_step){.step = WAL__STEP_OTHER};
        link = WAL__LINK_PREVIOUS;
        head = WAL__HEAD_EXTEND;
    } else if (parsed->step.is_stranger) {
        parsed->step.is_side = true;
        head = WAL__HEAD_KEEP;
    }
    if (!wal__string_decode(line->type, NAME_MAX_SIZE, parsed->type)) {
        set_text(parsed->type, line->is_message ? "message" : "line");
    }
    /* The file of a subagent has side chains only, and some files have no conversation at all: in
     * these, every line is on the active branch. */
    if (!lines->probe->has_mainline && !parsed->is_replay && !parsed->step.is_stranger &&
        (line->is_sidechain || !lines->probe->has_sidechain)) {
        head = WAL__HEAD_MOVE;
    }
    if (lines->keeps_head) {
        head = WAL__HEAD_KEEP;
    }
    if (head != WAL__HEAD_EXTEND) {
        parsed->flags |= head == WAL__HEAD_MOVE ? WAL_ENTRY_HEAD_MOVE : WAL_ENTRY_HEAD_KEEP;
    }
    parsed->is_inexact |= own_id[0] != '\0' ? strcmp(own_id, parsed->id) != 0 && !replaces
                                            : line->is_in_conversation || line->id.size > 0;
    parsed->is_inexact &= !parsed->is_replay;
    set_parent(lines, parsed, link);
    if (lines->sequence == 0) {
        update_time(lines, line);
    }
    if (lines->sequence == 0 && !lines->keeps_head) {
        update_title(lines, line->title);
        update_title_of_subagent(lines, text);
    }
}

/* Returns true if the last non-blank byte ends the JSON value. */
static bool is_closed(struct wal__json_span text)
{
    uint8_t last;

    while (text.size > 0 && wal__line_is_blank(text.data + text.size - 1, 1)) {
        text.size--;
    }
    last = text.size > 0 ? text.data[text.size - 1] : 0;
    return last == '}' || last == ']' || last == '"';
}

static void parse_line(struct wal__import_lines *lines, const struct wal__piece *piece,
                       struct parsed *parsed)
{
    struct wal__json_span text = wal__line_text(piece->data, piece->size);
    bool is_blank = wal__line_is_blank(text.data, text.size);
    enum wal__json_status status = WAL__JSON_OK;
    size_t issue_count = lines->issues.count;
    struct wal__line_info line;
    size_t offset = 0;

    *parsed = (struct parsed){.flags = WAL_ENTRY_LINE};
    if (!is_blank) {
        status = wal__line_read(lines->dialect, text.data, text.size, &line, &offset);
    }
    if (!is_blank && status == WAL__JSON_OK) {
        parse_object(lines, piece, &line, text, parsed);
        parsed->has_issue = lines->issues.count > issue_count;
        parsed->is_closed = is_closed(text);
        /* a byte order mark precedes it */
        parsed->is_inexact |= text.size != piece->size;
        return;
    }
    if (!is_blank) {
        add_issue(lines, piece, piece->offset + (piece->size - text.size) + offset,
                  json_error_text(text, status, offset,
                                  piece->offset + piece->size + 1 >= lines->file_size));
    }
    parsed->has_issue = !is_blank;
    parsed->is_inexact = true;
    make_unused_id(lines, "", piece->line, parsed->id);
    set_text(parsed->type, "line");
    parsed->flags |= WAL_ENTRY_HEAD_KEEP;
    set_parent(lines, parsed, WAL__LINK_PREVIOUS);
}

enum wal_status wal__import_lines_repeat_issues(struct wal__import_lines *lines,
                                                const struct wal__piece *piece, uint64_t sequence,
                                                struct wal_error *error)
{
    struct parsed parsed;

    lines->sequence = sequence;
    parse_line(lines, piece, &parsed);
    lines->sequence = 0;
    return lines->arena->has_failed ? wal__no_memory(error) : WAL_OK;
}

static enum wal_status add_entry(struct wal__import_lines *lines, const struct wal__piece *piece,
                                 const struct parsed *parsed, const char *meta,
                                 struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = parsed->flags,
        .stream = lines->stream,
        .id = wal__slice_from_text(parsed->id),
        .parent_id = wal__slice_from_text(parsed->parent),
        .type = wal__slice_from_text(parsed->type),
        .timestamp = wal__slice_from_text(lines->time),
        .payload = {piece->data, piece->size},
        .meta = wal__slice_from_text(meta),
    };

    if (lines->arena->has_failed) {
        return wal__no_memory(error);
    }
    set_text(lines->previous_id, parsed->id);
    if ((parsed->flags & WAL_ENTRY_HEAD_MOVE) != 0) {
        set_text(lines->main_id, parsed->id);
    }
    note_step(lines, parsed);
    return batch_add(&lines->batch, &entry, error);
}

static struct wal_slice rest_slice(const struct wal__import_lines *lines)
{
    return (struct wal_slice){lines->rest, lines->rest_size};
}

static enum wal_status add_line(struct wal__import_lines *lines, const struct wal__piece *piece,
                                const struct parsed *parsed, struct wal_error *error)
{
    enum wal_status status;
    char members[96];
    char meta[98] = "";
    char *rest_meta = NULL;

    snprintf(members, sizeof(members), "%s%s%s%s", piece->has_newline ? "" : ",\"eol\":false",
             parsed->has_issue ? ",\"odd\":true" : "",
             parsed->is_inexact ? ",\"inexact\":true" : "",
             parsed->is_replay          ? ",\"replay\":true"
             : parsed->step.is_stranger ? ",\"stranger\":true"
                                        : "");
    if (lines->has_rest && (lines->rest_size != 1 || lines->rest[0] != '\n')) {
        rest_meta = wal__string_object(&lines->arena->arena, "before", rest_slice(lines), members);
    } else if (lines->path != NULL && piece->line == 1) {
        rest_meta = wal__string_object(&lines->arena->arena, "file",
                                       wal__slice_from_text(lines->path), members);
    } else if (members[0] != '\0') {
        snprintf(meta, sizeof(meta), "{%s}", members + 1);
    }
    status = add_entry(lines, piece, parsed, rest_meta != NULL ? rest_meta : meta, error);
    lines->is_open = !piece->has_newline;
    lines->has_rest = false;
    lines->rest_size = 0;
    return status;
}

/* The meta of a partial line; NULL: no memory. */
static char *partial_line_meta(struct wal__import_lines *lines)
{
    size_t size = 7 * WAL__LINE_PREFIX_SIZE;
    struct wal__arena *arena = &lines->arena->arena;
    char *after = wal__string_object(arena, "after", wal__slice_from_text(lines->previous_id), "");
    char *before = wal__string_object(arena, "before", rest_slice(lines), "");
    char *meta = wal__arena_alloc(arena, size);
    int after_size;
    int before_size;

    if (after == NULL || before == NULL || meta == NULL) {
        return NULL;
    }
    /* Insert the members of the objects without their braces. */
    after_size = lines->previous_id[0] != '\0' ? (int)strlen(after) - 2 : 0;
    before_size = lines->is_open ? (int)strlen(before) - 2 : 0;
    snprintf(meta, size, "{\"of\":%" PRIu32 "%s%.*s%s%.*s}", lines->stream,
             after_size > 0 ? "," : "", after_size, after + 1, before_size > 0 ? "," : "",
             before_size, before + 1);
    return meta;
}

/* Adds the partial line at the end of the file, unless the session has it. */
static enum wal_status add_partial_line(struct wal__import_lines *lines,
                                        const struct wal__piece *piece, struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WAL__PARTIAL_STREAM,
        .type = wal__slice_from_text(WAL_TYPE_MESSAGE_DELTA_BATCH),
        .timestamp = wal__slice_from_text(lines->time),
        .payload = {piece->data, piece->size},
    };
    uint64_t known_size = lines->match.bytes + lines->match.partial_size;
    char id[WAL__LINE_ID_SIZE];
    char base[64];
    enum wal_status status;
    char *meta;

    if (lines->batch.appended == 0 && lines->batch.count == 0 && lines->match.partial_size > 0 &&
        known_size == lines->file_size) {
        return WAL_OK;
    }
    snprintf(base, sizeof(base), "tail-%" PRIu32 "-%" PRIu64 "-%zu", lines->stream, piece->line,
             piece->size);
    make_unused_id(lines, base, piece->line, id);
    meta = partial_line_meta(lines);
    if (meta == NULL || lines->arena->has_failed) {
        return wal__no_memory(error);
    }
    entry.id = wal__slice_from_text(id);
    entry.meta = wal__slice_from_text(meta);
    status = batch_add(&lines->batch, &entry, error);
    lines->has_partial_line = true;
    return status;
}

bool wal__line_is_rest(const struct wal__piece *piece)
{
    return piece->size < WAL__LINE_PREFIX_SIZE && wal__line_is_blank(piece->data, piece->size);
}

/* Handles the rest of a line that became an entry before its newline. */
static enum wal_status set_rest(struct wal__import_lines *lines, const struct wal__piece *piece,
                                struct wal_error *error)
{
    if (!piece->has_newline) {
        return add_partial_line(lines, piece, error);
    }
    memcpy(lines->rest, piece->data, piece->size);
    lines->rest[piece->size] = '\n';
    lines->rest_size = piece->size + 1;
    lines->has_rest = true;
    return WAL_OK;
}

enum wal_status wal__import_lines_add(struct wal__import_lines *lines,
                                      const struct wal__piece *piece, struct wal_error *error)
{
    struct parsed parsed;

    if (lines->is_open && !lines->has_rest) {
        if (wal__line_is_rest(piece)) {
            return set_rest(lines, piece, error);
        }
        /* Other text follows the entry in its line: it becomes a line. */
        lines->has_rest = true;
        lines->rest_size = 0;
    }
    parse_line(lines, piece, &parsed);
    if (piece->has_newline || parsed.is_closed) {
        return add_line(lines, piece, &parsed, error);
    }
    return add_partial_line(lines, piece, error);
}

enum wal_status wal__import_lines_finish(struct wal__import_lines *lines, struct wal_error *error)
{
    const struct wal__piece nothing = {.data = ""};

    if (!lines->has_rest || lines->has_partial_line) {
        return WAL_OK;
    }
    return add_partial_line(lines, &nothing, error);
}

enum wal_status wal__import_lines_check_opaque(struct wal__import_lines *lines, const char *data,
                                               size_t size, struct wal_error *error)
{
    struct wal__piece piece = {.data = data, .size = size, .line = 1};
    struct wal__json_span text = wal__line_text(data, size);
    enum wal__json_status status;
    size_t offset = 0;

    if (text.size == 0 || (text.data[0] != '{' && text.data[0] != '[' && text.data[0] != 0)) {
        return WAL_OK;
    }
    status = wal__json_validate(text.data, text.size, &offset);
    if (status == WAL__JSON_OK) {
        return WAL_OK;
    }
    for (size_t i = 0; i < offset; i++) {
        piece.line += text.data[i] == '\n' ? 1 : 0;
    }
    add_issue(lines, &piece, size - text.size + offset,
              json_error_text(text, status, offset, true));
    return lines->arena->has_failed ? wal__no_memory(error) : WAL_OK;
}

enum wal_status wal__import_lines_add_opaque(struct wal__import_lines *lines,
                                             const struct wal__piece *piece,
                                             struct wal_error *error)
{
    struct parsed parsed = {.flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_MOVE};
    char base[64];

    snprintf(base, sizeof(base), WAL__PIECE_ID "%" PRIu64, lines->match.entries + piece->line);
    make_unused_id(lines, base, piece->line, parsed.id);
    set_text(parsed.type, "line");
    set_parent(lines, &parsed, WAL__LINK_PREVIOUS);
    return add_entry(lines, piece, &parsed, "{\"eol\":false,\"whole\":true}", error);
}

/* Finds the last line of the session that moves the head: side chains follow the line that they
 * begin at. */
static void find_main(struct wal__import_lines *lines)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal__line_info line;

    set_text(lines->main_id, lines->previous_id);
    while (lines->main_id[0] != '\0' &&
           wal_entry_cursor_get(lines->cursor, wal__slice_from_text(lines->main_id), &entry,
                                NULL) == WAL_OK) {
        struct wal__json_span text = wal__line_text(entry.payload.data, (size_t)entry.payload.size);

        if (wal__line_read(lines->dialect, text.data, text.size, &line, NULL) == WAL__JSON_OK &&
            line.head != WAL__HEAD_KEEP) {
            return;
        }
        copy_id(lines->main_id, entry.parent_id);
    }
}

enum wal_status wal__import_lines_begin(struct wal__import_lines *lines,
                                        struct wal_session *session, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .stream = lines->stream,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    enum wal_status status;

    wal__heap_arena_init(&lines->batch.texts, lines->arena->heap);
    lines->batch.session = session;
    lines->is_open =
        lines->match.entries > 0 && !lines->match.has_newline && !lines->match.is_opaque;
    lines->known_lines = lines->match.is_opaque ? 0 : lines->match.lines + (lines->is_open ? 1 : 0);
    if (lines->match.entries > 0) {
        memcpy(lines->file, lines->match.file, sizeof(lines->file));
    }
    set_text(lines->previous_id, lines->match.entries > 0 ? lines->match.last_id : lines->base);
    status = wal__import_first_time(session, wal__slice_from_text(lines->match.timestamp),
                                    lines->probe->created, lines->time, error);
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &lines->cursor, error);
    }
    if (status == WAL_OK && !lines->match.is_opaque) {
        find_main(lines);
    }
    return status == WAL_OK ? find_turn(lines, error) : status;
}

void wal__import_lines_deinit(struct wal__import_lines *lines)
{
    wal_entry_cursor_close(lines->cursor);
    if (lines->batch.texts.heap != NULL) {
        wal__heap_arena_deinit(&lines->batch.texts);
    }
    wal__source_match_deinit(&lines->match);
}
