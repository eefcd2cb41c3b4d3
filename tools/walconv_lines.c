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
#include "tools/walconv_fault.h"
#include "tools/walconv_tree.h"

#define NAME_MAX_SIZE 255 /* of ids and types */

/* What is made of a line. */
struct judged {
    char id[WALCONV_ID_SIZE];
    char parent[WALCONV_ID_SIZE];
    char type[WALCONV_ID_SIZE];
    uint32_t flags;
    bool is_odd;     /* something was said of it */
    bool is_closed;  /* nothing but white space can follow in its line */
    bool is_inexact; /* as its meta has it */
};

/* Copies an id or a type. */
static void set(char *to, const char *from)
{
    size_t size = strnlen(from, WALCONV_ID_SIZE - 1);

    memcpy(to, from, size);
    to[size] = '\0';
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

/* An entry that has an id. */
struct holder {
    uint32_t stream;
    bool is_above; /* it came in before the line that is judged */
};

static bool find_holder(const struct walconv_lines *lines, const char *id,
                        struct holder *holder)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status;

    if (walconv_batch_has(&lines->batch, cli_slice(id))) {
        holder->stream = lines->stream;
        holder->is_above = true;
        return true;
    }
    status = wal_iter_get(lines->iter, cli_slice(id), &entry, NULL);
    holder->stream = status == WAL_OK ? entry.stream : lines->stream;
    holder->is_above = lines->sequence == 0 || status != WAL_OK ||
                       entry.stream != lines->stream ||
                       entry.sequence < lines->sequence;
    /* One that cannot be read is there. */
    return status == WAL_OK || status == WAL_ECORRUPT;
}

static bool is_taken(const struct walconv_lines *lines, const char *id)
{
    struct holder holder;

    return find_holder(lines, id, &holder) && holder.is_above;
}

/* Whether the id is that of an entry which a line can be under. */
static bool is_parent(const struct walconv_lines *lines, const char *id)
{
    struct holder holder;

    if (lines->sequence == 0 && strcmp(id, lines->before) == 0) {
        return true;
    }
    return find_holder(lines, id, &holder) && holder.is_above &&
           holder.stream == lines->stream;
}

/* Streams of a session may tell the same in their own words. */
static bool is_of_other_stream(const struct walconv_lines *lines,
                               const char *id)
{
    struct holder holder;

    return find_holder(lines, id, &holder) && holder.stream != lines->stream;
}

/* Makes an id that is free out of a line's own, or of its number. */
static void make_id(const struct walconv_lines *lines, const char *own,
                    uint64_t line, char *id)
{
    char base[WALCONV_ID_SIZE];

    if (own[0] != '\0') {
        set(id, own);
        if (!is_taken(lines, id)) {
            return;
        }
    }
    if (own[0] != '\0' && strlen(own) <= 210) {
        snprintf(base, sizeof(base), "%.210s~%" PRIu64, own, line);
    } else {
        snprintf(base, sizeof(base), "line-%" PRIu64, line);
    }
    set(id, base);
    for (unsigned n = 2; is_taken(lines, id); n++) {
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

/* Whether the parent is a line that is shared, and has another id there. */
static bool is_shared_parent(struct walconv_lines *lines, struct judged *judged)
{
    const char *id = lines->store == NULL
                         ? NULL
                         : walconv_names_find(&lines->names, lines->store,
                                              lines->batch.session,
                                              lines->dialect, judged->parent);

    if (id != NULL) {
        set(judged->parent, id);
    }
    return id != NULL;
}

static enum wal__line_link find_parent(struct walconv_lines *lines,
                                       const struct walconv_piece *piece,
                                       const struct wal__line *line,
                                       const char *own, struct judged *judged)
{
    if (line->link != WAL__LINK_NAMED) {
        return line->link;
    }
    if (!walconv_name(line->parent, NAME_MAX_SIZE, judged->parent)) {
        report(lines, piece, piece->offset, "its parent's id is not usable");
    } else if (is_parent(lines, judged->parent) ||
               is_shared_parent(lines, judged)) {
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
    char text[sizeof(lines->time)];

    if (walconv_name(time, sizeof(text) - 1, text)) {
        memcpy(lines->time, text, sizeof(text));
    }
}

static void keep_title(struct walconv_lines *lines, struct wal__json_span title)
{
    char *text =
        lines->gives_title ? walconv_text(title, WALCONV_TITLE_SIZE) : NULL;

    if (text != NULL) {
        walconv_batch_title(&lines->batch, text);
    }
    free(text);
}

/* What a line has that its client did not write there. */
static void report_odd(struct walconv_lines *lines,
                       const struct walconv_piece *piece,
                       const struct wal__line *line)
{
    enum wal__headers headers = lines->dialect->headers;
    bool is_first = piece->line == lines->survey->first;

    if (headers != WAL__HEADERS_NONE && is_first && !line->is_header) {
        report(lines, piece, piece->offset, "no header stands before it");
    } else if (headers == WAL__HEADERS_ONE && !is_first && line->is_header) {
        report(lines, piece, piece->offset, "another header");
    }
    if (line->is_newer) {
        report(lines, piece, piece->offset, "of a version that is not known");
    }
    if (line->has_twice) {
        report(lines, piece, piece->offset, "a key stands there twice");
    }
}

static void judge_object(struct walconv_lines *lines,
                         const struct walconv_piece *piece,
                         const struct wal__line *line, struct judged *judged)
{
    enum wal__line_head head = line->head;
    char own[WALCONV_ID_SIZE];
    enum wal__line_link link;

    report_odd(lines, piece, line);
    walconv_name(line->id, NAME_MAX_SIZE, own);
    link = find_parent(lines, piece, line, own, judged);
    make_id(lines, own, piece->line, judged->id);
    if (own[0] != '\0' && strcmp(own, judged->id) != 0 &&
        !is_of_other_stream(lines, own)) {
        report(lines, piece, piece->offset,
               "its id is taken; it is kept under another");
    }
    if (!walconv_name(line->type, NAME_MAX_SIZE, judged->type)) {
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
    judged->is_inexact = own[0] != '\0' ? strcmp(own, judged->id) != 0
                                        : line->is_chain || line->id.size > 0;
    judged->is_inexact |= link != line->link;
    set_parent(lines, judged, link);
    if (lines->sequence == 0) {
        keep_time(lines, line->time);
        keep_title(lines, line->title);
    }
}

/* Whether the JSON that the line is ends with its last byte. */
static bool is_closed(struct wal__json_span text)
{
    uint8_t last;

    while (text.size > 0 && wal__line_is_blank(text.data + text.size - 1, 1)) {
        text.size--;
    }
    last = text.size > 0 ? text.data[text.size - 1] : 0;
    return last == '}' || last == ']' || last == '"';
}

static void judge(struct walconv_lines *lines,
                  const struct walconv_piece *piece, struct judged *judged)
{
    struct wal__json_span text = wal__line_text(piece->data, piece->size);
    bool is_blank = wal__line_is_blank(text.data, text.size);
    enum wal__json_status status = WAL__JSON_OK;
    size_t said = lines->damage_count;
    struct wal__line line;
    size_t offset = 0;

    *judged = (struct judged){.flags = WAL_ENTRY_LINE, .is_inexact = true};
    if (!is_blank) {
        status = lines->dialect->read(text.data, text.size, &line, &offset);
    }
    if (!is_blank && status == WAL__JSON_OK) {
        judge_object(lines, piece, &line, judged);
        judged->is_odd = lines->damage_count > said;
        judged->is_closed = is_closed(text);
        judged->is_inexact |= text.size != piece->size; /* a mark before it */
        return;
    }
    if (!is_blank) {
        report(
            lines, piece, piece->offset + (piece->size - text.size) + offset,
            walconv_fault(text, status, offset,
                          piece->offset + piece->size + 1 >= lines->file_size));
    }
    judged->is_odd = !is_blank;
    make_id(lines, "", piece->line, judged->id);
    set(judged->type, "line");
    judged->flags |= WAL_ENTRY_HEAD_KEEP;
    set_parent(lines, judged, WAL__LINK_BEFORE);
}

void walconv_lines_repeat(struct walconv_lines *lines,
                          const struct walconv_piece *piece, uint64_t sequence)
{
    struct judged judged;

    lines->sequence = sequence;
    judge(lines, piece, &judged);
    lines->sequence = 0;
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

    set(lines->before, judged->id);
    return walconv_batch_put(&lines->batch, &entry, error);
}

/* Whether the meta has to say what stands before the line. */
static bool is_rest_said(const struct walconv_lines *lines)
{
    return lines->has_rest && (lines->rest_size != 1 || lines->rest[0] != '\n');
}

static struct wal_slice rest_of(const struct walconv_lines *lines)
{
    return (struct wal_slice){lines->rest, lines->rest_size};
}

static enum wal_status put_line(struct walconv_lines *lines,
                                const struct walconv_piece *piece,
                                const struct judged *judged,
                                struct wal_error *error)
{
    enum wal_status status;
    char more[64];
    char meta[66] = "";
    char *said = NULL;

    snprintf(more, sizeof(more), "%s%s%s",
             piece->has_newline ? "" : ",\"eol\":false",
             judged->is_odd ? ",\"odd\":true" : "",
             judged->is_inexact ? ",\"inexact\":true" : "");
    if (is_rest_said(lines)) {
        said = walconv_object("before", rest_of(lines), more);
    } else if (more[0] != '\0') {
        snprintf(meta, sizeof(meta), "{%s}", more + 1);
    }
    status = put(lines, piece, judged, said != NULL ? said : meta, error);
    free(said);
    lines->is_open = !piece->has_newline;
    lines->has_rest = false;
    lines->rest_size = 0;
    return status;
}

/* The meta of a tail; to be freed. */
static char *tail_meta(const struct walconv_lines *lines)
{
    size_t size = 7 * CLI_BEFORE_SIZE;
    char *after = walconv_object("after", cli_slice(lines->before), "");
    char *before = walconv_object("before", rest_of(lines), "");
    char *meta = cli_alloc(size);
    int at = snprintf(meta, size, "{\"of\":%" PRIu32, lines->stream);

    /* Of an object that was made, the members. */
    if (lines->before[0] != '\0') {
        at += snprintf(meta + at, size - (size_t)at, ",%.*s",
                       (int)strlen(after) - 2, after + 1);
    }
    if (lines->is_open) {
        at += snprintf(meta + at, size - (size_t)at, ",%.*s",
                       (int)strlen(before) - 2, before + 1);
    }
    snprintf(meta + at, size - (size_t)at, "}");
    free(after);
    free(before);
    return meta;
}

/* Keeps what stands behind the last line, unless the session has it. */
static enum wal_status put_tail(struct walconv_lines *lines,
                                const struct walconv_piece *piece,
                                struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = CLI_TAILS,
        .type = cli_slice(wal_entry_type_name(WAL_TYPE_MESSAGE_DELTA_BATCH)),
        .timestamp = cli_slice(lines->time),
        .payload = {piece->data, piece->size},
    };
    uint64_t known = lines->match.bytes + lines->match.tail_size;
    char id[WALCONV_ID_SIZE];
    char base[64];
    enum wal_status status;
    char *meta;

    if (lines->batch.appended == 0 && lines->batch.count == 0 &&
        lines->match.tail_size > 0 && known == lines->file_size) {
        return WAL_OK;
    }
    snprintf(base, sizeof(base), "tail-%" PRIu32 "-%" PRIu64 "-%zu",
             lines->stream, piece->line, piece->size);
    make_id(lines, base, piece->line, id);
    meta = tail_meta(lines);
    entry.id = cli_slice(id);
    entry.meta = cli_slice(meta);
    status = walconv_batch_put(&lines->batch, &entry, error);
    free(meta);
    lines->has_tail = true;
    return status;
}

bool walconv_is_rest(const struct walconv_piece *piece)
{
    return piece->size < CLI_BEFORE_SIZE &&
           wal__line_is_blank(piece->data, piece->size);
}

/* The rest of a line that was an entry before it had a newline. */
static enum wal_status take_rest(struct walconv_lines *lines,
                                 const struct walconv_piece *piece,
                                 struct wal_error *error)
{
    if (!piece->has_newline) {
        return put_tail(lines, piece, error);
    }
    memcpy(lines->rest, piece->data, piece->size);
    lines->rest[piece->size] = '\n';
    lines->rest_size = piece->size + 1;
    lines->has_rest = true;
    return WAL_OK;
}

enum wal_status walconv_lines_take(struct walconv_lines *lines,
                                   const struct walconv_piece *piece,
                                   struct wal_error *error)
{
    struct judged judged;

    if (lines->is_open && !lines->has_rest) {
        if (walconv_is_rest(piece)) {
            return take_rest(lines, piece, error);
        }
        /* It goes on otherwise: that is a line for itself. */
        lines->has_rest = true;
        lines->rest_size = 0;
    }
    judge(lines, piece, &judged);
    if (piece->has_newline || judged.is_closed) {
        return put_line(lines, piece, &judged, error);
    }
    return put_tail(lines, piece, error);
}

enum wal_status walconv_lines_finish(struct walconv_lines *lines,
                                     struct wal_error *error)
{
    const struct walconv_piece nothing = {.data = ""};

    if (!lines->has_rest || lines->has_tail) {
        return WAL_OK;
    }
    return put_tail(lines, &nothing, error);
}

void walconv_lines_judge_whole(struct walconv_lines *lines, const char *data,
                               size_t size)
{
    struct walconv_piece piece = {.data = data, .size = size, .line = 1};
    struct wal__json_span text = wal__line_text(data, size);
    enum wal__json_status status;
    size_t offset = 0;

    if (text.size == 0 ||
        (text.data[0] != '{' && text.data[0] != '[' && text.data[0] != 0)) {
        return;
    }
    status = wal__json_validate(text.data, text.size, &offset);
    if (status == WAL__JSON_OK) {
        return;
    }
    for (size_t i = 0; i < offset; i++) {
        piece.line += text.data[i] == '\n' ? 1 : 0;
    }
    report(lines, &piece, size - text.size + offset,
           walconv_fault(text, status, offset, true));
}

enum wal_status walconv_lines_take_whole(struct walconv_lines *lines,
                                         const struct walconv_piece *piece,
                                         struct wal_error *error)
{
    struct judged judged = {.flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_MOVE};
    char base[64];

    snprintf(base, sizeof(base), "piece-%" PRIu64,
             lines->match.entries + piece->line);
    make_id(lines, base, piece->line, judged.id);
    set(judged.type, "line");
    set_parent(lines, &judged, WAL__LINK_BEFORE);
    return put(lines, piece, &judged, "{\"eol\":false,\"whole\":true}", error);
}

enum wal_status walconv_lines_begin(struct walconv_lines *lines,
                                    struct wal_session *session,
                                    struct wal_error *error)
{
    const struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .stream = lines->stream,
        .flags = WAL_ITER_DELTAS | WAL_ITER_REDACTED | WAL_ITER_OUT_OF_LINE,
    };
    struct wal_slice time = lines->match.timestamp;
    struct wal_slice last = lines->match.last_id;

    lines->batch.session = session;
    lines->is_open = lines->match.entries > 0 && !lines->match.has_newline &&
                     !lines->match.is_whole;
    lines->known = lines->match.is_whole
                       ? 0
                       : lines->match.lines + (lines->is_open ? 1 : 0);
    snprintf(lines->before, sizeof(lines->before), "%.*s", (int)last.size,
             last.size > 0 ? (const char *)last.data : "");
    if (time.size < sizeof(lines->time) && time.size > 0) {
        memcpy(lines->time, time.data, (size_t)time.size);
        lines->time[time.size] = '\0';
    }
    return wal_iter_open(session, &options, &lines->iter, error);
}

void walconv_lines_deinit(struct walconv_lines *lines)
{
    wal_iter_close(lines->iter);
    walconv_batch_deinit(&lines->batch);
    cli_match_deinit(&lines->match);
    walconv_names_free(lines->names);
    free(lines->damage);
}
