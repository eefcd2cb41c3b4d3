/*
 * walconv_lines - judges each line and makes an entry of it.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/jsonl/json_value.h"
#include "tools/cli.h"
#include "tools/walconv_tree.h"

#define NAME_MAX_SIZE 255 /* of ids and types */

/* What is made of a line. */
struct judged {
    char id[WALCONV_ID_SIZE];
    char parent[WALCONV_ID_SIZE];
    char type[WALCONV_ID_SIZE];
    uint32_t flags;
};

/* Copies an id or a type. */
static void set(char *to, const char *from)
{
    snprintf(to, WALCONV_ID_SIZE, "%s", from);
}

static void report(struct walconv_lines *lines,
                   const struct walconv_piece *piece, uint64_t offset,
                   const char *reason)
{
    struct walconv_damage *damage;

    lines->damage = cli_room(lines->damage, lines->damage_count,
                             &lines->damage_capacity, sizeof(lines->damage[0]));
    damage = &lines->damage[lines->damage_count++];
    damage->line = piece->line;
    damage->offset = offset;
    damage->reason = reason;
}

/* A JSON string as a name of 1 to 255 bytes; false when it is none. */
static bool read_name(struct wal__json_span string, char *name)
{
    char *text = walconv_text(string, NAME_MAX_SIZE);

    if (text == NULL) {
        return false;
    }
    set(name, text);
    free(text);
    return true;
}

static bool is_valid(const char *data, size_t size, size_t from)
{
    return from < size && data[from] == '{' &&
           wal__json_validate(data + from, size - from, NULL) == WAL__JSON_OK;
}

/* Why a line is not JSON. */
static const char *fault(const struct walconv_lines *lines,
                         const struct walconv_piece *piece,
                         struct wal__json_span text,
                         enum wal__json_status status, size_t offset)
{
    const char *data = (const char *)text.data;

    if (status == WAL__JSON_NUL_BYTE) {
        return "holds NUL bytes";
    }
    if (status == WAL__JSON_UTF8) {
        return "invalid UTF-8";
    }
    if (status == WAL__JSON_TRUNCATED) {
        return piece->offset + piece->size + 1 >= lines->file_size
                   ? "torn: the file ends inside this line"
                   : "cut short: ends inside a value";
    }
    /* A line that was cut, also inside a string, and the next one. */
    if (is_valid(data, text.size, offset) ||
        (offset >= 2 && is_valid(data, text.size, offset - 2))) {
        return "welded: two values in one line";
    }
    if (status == WAL__JSON_TRAILING) {
        return "bytes after the value";
    }
    if (status == WAL__JSON_DEPTH) {
        return "nested too deeply";
    }
    return "not JSON";
}

static bool is_known(const struct walconv_lines *lines,
                     const struct walconv_piece *piece)
{
    uint64_t end = piece->offset + piece->size + (piece->has_newline ? 1 : 0);

    return end <= lines->match.bytes;
}

/* Whether a line above has the id or, for a line that is new, any entry. */
static bool is_taken(const struct walconv_lines *lines, const char *id,
                     bool known)
{
    const uint32_t *value = cli_ids_find(&lines->ids, cli_slice(id));

    return value != NULL && (!known || *value > 0);
}

/* Streams of a session may tell the same in their own words. */
static bool is_of_other_stream(const struct walconv_lines *lines,
                               const char *id)
{
    const uint32_t *value = cli_ids_find(&lines->ids, cli_slice(id));

    return value != NULL && *value == 2;
}

/* Makes an id that is free out of a line's own, or of its number. */
static void make_id(const struct walconv_lines *lines, const char *own,
                    uint64_t line, bool known, char *id)
{
    char base[WALCONV_ID_SIZE];

    snprintf(base, sizeof(base), "line-%" PRIu64, line);
    if (own[0] != '\0') {
        snprintf(id, WALCONV_ID_SIZE, "%s", own);
        if (!is_taken(lines, id, known)) {
            return;
        }
        if (strlen(own) <= 210) {
            snprintf(base, sizeof(base), "%.210s~%" PRIu64, own, line);
        }
    }
    snprintf(id, WALCONV_ID_SIZE, "%s", base);
    for (unsigned n = 2; is_taken(lines, id, known); n++) {
        snprintf(id, WALCONV_ID_SIZE, "%.230s~%u", base, n);
    }
}

static void set_parent(const struct walconv_lines *lines, struct judged *judged,
                       enum wal__line_link link)
{
    if (link == WAL__LINK_BEFORE) {
        set(judged->parent, lines->before);
    } else if (link != WAL__LINK_NAMED) {
        judged->parent[0] = '\0';
    }
    if (link == WAL__LINK_ROOT ||
        (link == WAL__LINK_BEFORE && judged->parent[0] == '\0')) {
        judged->flags |= WAL_ENTRY_ROOT;
    }
}

static enum wal__line_link find_parent(struct walconv_lines *lines,
                                       const struct walconv_piece *piece,
                                       const struct wal__line *line,
                                       const char *own, bool known,
                                       struct judged *judged)
{
    if (line->link != WAL__LINK_NAMED) {
        return line->link;
    }
    if (!read_name(line->parent, judged->parent)) {
        report(lines, piece, piece->offset, "its parent's id is not usable");
    } else if (is_taken(lines, judged->parent, known)) {
        return WAL__LINK_NAMED;
    } else if (strcmp(judged->parent, own) == 0) {
        report(lines, piece, piece->offset, "names itself as its parent");
    } else {
        report(lines, piece, piece->offset,
               "its parent is not before it in the file");
    }
    return WAL__LINK_BEFORE;
}

static void keep_time(struct walconv_lines *lines, struct wal__json_span time)
{
    char *text = walconv_text(time, sizeof(lines->time) - 1);

    if (text != NULL) {
        snprintf(lines->time, sizeof(lines->time), "%s", text);
        free(text);
    }
}

static void judge_object(struct walconv_lines *lines,
                         const struct walconv_piece *piece,
                         const struct wal__line *line, bool known,
                         struct judged *judged)
{
    enum wal__line_head head = line->head;
    char own[WALCONV_ID_SIZE] = "";
    enum wal__line_link link;

    if (!read_name(line->id, own)) {
        own[0] = '\0';
    }
    link = find_parent(lines, piece, line, own, known, judged);
    make_id(lines, own, piece->line, known, judged->id);
    if (own[0] != '\0' && strcmp(own, judged->id) != 0 &&
        !is_of_other_stream(lines, own)) {
        report(lines, piece, piece->offset,
               "its id is taken; it is kept under another");
    }
    if (!read_name(line->type, judged->type)) {
        set(judged->type, line->is_message ? "message" : "line");
    }
    /* The file of a subagent is nothing but a side chain, and some files have
     * no conversation at all: then what there is is the live branch. */
    if (!lines->survey->has_mainline &&
        (line->is_sidechain || !lines->survey->has_sidechain)) {
        head = WAL__HEAD_MOVE;
    }
    if (head != WAL__HEAD_EXTEND) {
        judged->flags |=
            head == WAL__HEAD_MOVE ? WAL_ENTRY_HEAD_MOVE : WAL_ENTRY_HEAD_KEEP;
    }
    set_parent(lines, judged, link);
    keep_time(lines, line->time);
}

static void judge(struct walconv_lines *lines,
                  const struct walconv_piece *piece, struct judged *judged)
{
    struct wal__json_span text = wal__line_text(piece->data, piece->size);
    bool is_blank = wal__line_is_blank(text.data, text.size);
    bool known = is_known(lines, piece);
    enum wal__json_status status = WAL__JSON_OK;
    struct wal__line line;
    size_t offset = 0;

    judged->flags = WAL_ENTRY_LINE;
    judged->parent[0] = '\0';
    if (!is_blank) {
        status = lines->dialect->read(text.data, text.size, &line, &offset);
        if (status == WAL__JSON_OK) {
            judge_object(lines, piece, &line, known, judged);
            return;
        }
        report(lines, piece, piece->offset + (piece->size - text.size) + offset,
               fault(lines, piece, text, status, offset));
    }
    make_id(lines, "", piece->line, known, judged->id);
    set(judged->type, "line");
    judged->flags |= WAL_ENTRY_HEAD_KEEP;
    set_parent(lines, judged, WAL__LINK_BEFORE);
}

static enum wal_status put(struct walconv_lines *lines,
                           const struct walconv_piece *piece,
                           const struct judged *judged, const char *meta,
                           struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = judged->flags,
        .stream = lines->stream,
        .id = cli_slice(judged->id),
        .parent_id = cli_slice(judged->parent),
        .type = cli_slice(judged->type),
        .timestamp = cli_slice(lines->time),
        .payload = {piece->data, piece->size},
        .meta = cli_slice(meta),
    };

    return walconv_batch_put(&lines->batch, &entry, error);
}

/* Makes the line's entry the one before the next line's. */
static void pass(struct walconv_lines *lines, const char *id)
{
    *cli_ids_put(&lines->ids, cli_slice(id)) = 1;
    set(lines->before, id);
}

/* The newline that a line lacked which is whole otherwise. */
static enum wal_status put_newline(struct walconv_lines *lines,
                                   const struct walconv_piece *piece,
                                   struct wal_error *error)
{
    struct judged judged = {.flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_KEEP};
    struct walconv_piece rest = *piece;
    char base[64];

    rest.data += rest.size;
    rest.size = 0;
    snprintf(base, sizeof(base), "line-%" PRIu64 "~2", piece->line);
    make_id(lines, base, piece->line, false, judged.id);
    set(judged.type, "line");
    set_parent(lines, &judged, WAL__LINK_BEFORE);
    *cli_ids_put(&lines->ids, cli_slice(judged.id)) = 1;
    return put(lines, &rest, &judged, NULL, error);
}

/* A piece that begins in what the session has and ends behind it. */
static enum wal_status take_grown(struct walconv_lines *lines,
                                  const struct walconv_piece *piece,
                                  struct wal_error *error)
{
    size_t had = (size_t)(lines->match.bytes - piece->offset);
    struct judged judged;
    enum wal_status status;
    char *meta;

    if (had == piece->size) {
        snprintf(lines->before, sizeof(lines->before), "%.*s",
                 (int)lines->match.last_id.size,
                 (const char *)lines->match.last_id.data);
        return put_newline(lines, piece, error);
    }
    judge(lines, piece, &judged);
    meta = walconv_object("replaces", lines->match.line_id,
                          piece->has_newline ? "" : ",\"eol\":false");
    status = put(lines, piece, &judged, meta, error);
    free(meta);
    pass(lines, judged.id);
    return status;
}

/* Where the session's entries end, its last one goes before the next line. */
static void cross(struct walconv_lines *lines,
                  const struct walconv_piece *piece)
{
    struct wal_slice id = lines->match.last_id;

    if (lines->match.entries == 0 || piece->offset > lines->match.bytes) {
        return;
    }
    if (piece->offset < lines->match.bytes) {
        id = lines->match.before_id;
    }
    snprintf(lines->before, sizeof(lines->before), "%.*s", (int)id.size,
             id.size > 0 ? (const char *)id.data : "");
}

enum wal_status walconv_lines_take(struct walconv_lines *lines,
                                   const struct walconv_piece *piece,
                                   struct wal_error *error)
{
    bool known = is_known(lines, piece);
    struct judged judged;
    enum wal_status status = WAL_OK;

    lines->known += known ? 1 : 0;
    if (!known) {
        cross(lines, piece);
        if (piece->offset < lines->match.bytes) {
            return take_grown(lines, piece, error);
        }
    }
    judge(lines, piece, &judged);
    if (!known) {
        status = put(lines, piece, &judged,
                     piece->has_newline ? NULL : "{\"eol\":false}", error);
    }
    pass(lines, judged.id);
    return status;
}

enum wal_status walconv_lines_take_whole(struct walconv_lines *lines,
                                         const struct walconv_piece *piece,
                                         struct wal_error *error)
{
    struct judged judged = {.flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_MOVE};
    enum wal_status status;
    char base[64];

    cross(lines, piece);
    snprintf(base, sizeof(base), "piece-%" PRIu64,
             lines->match.entries + piece->line);
    make_id(lines, base, piece->line, false, judged.id);
    set(judged.type, "line");
    set_parent(lines, &judged, WAL__LINK_BEFORE);
    status =
        put(lines, piece, &judged, "{\"eol\":false,\"whole\":true}", error);
    pass(lines, judged.id);
    return status;
}

static enum wal_status load_stream(struct walconv_lines *lines,
                                   struct wal_session *session, uint32_t stream,
                                   struct wal_error *error)
{
    struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ITER_ALL,
        .stream = stream,
        .flags = WAL_ITER_DELTAS | WAL_ITER_OUT_OF_LINE,
    };
    struct wal_iter *iter = NULL;
    struct wal_entry entry;
    enum wal_status status;

    status = wal_iter_open(session, &options, &iter, error);
    while (status == WAL_OK) {
        entry = (struct wal_entry){.struct_size = sizeof(entry)};
        status = wal_iter_next(iter, &entry, error);
        if (status == WAL_OK) {
            *cli_ids_put(&lines->ids, entry.id) =
                stream == lines->stream ? 0 : 2;
        }
    }
    wal_iter_close(iter);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status walconv_lines_load(struct walconv_lines *lines,
                                   struct wal_session *session,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < WALCONV_STREAMS && status == WAL_OK; i++) {
        status = load_stream(lines, session, walconv_streams[i], error);
    }
    return status;
}

void walconv_lines_deinit(struct walconv_lines *lines)
{
    walconv_batch_deinit(&lines->batch);
    cli_ids_deinit(&lines->ids);
    free(lines->damage);
}
