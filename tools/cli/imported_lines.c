/*
 * imported_lines.c - source names, and the lines of imported sessions.
 *
 * Invariant: a partial line is returned only when no line was imported after
 * the line that it follows.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/imported_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "tools/cli/cli.h"
#include "tools/cli/compare.h"

static bool is_utf8(const char *text, size_t size)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + size;

    while (at < end) {
        enum wal__json_status status = wal__json_skip_unescaped(&at, end);
        if (status != WAL__JSON_OK) {
            return false;
        }
        if (at < end) {
            at++; /* a quote, a backslash or a control byte */
        }
    }
    return true;
}

char *cli_source_escape(const char *path)
{
    size_t size = strlen(path);
    bool is_valid = is_utf8(path, size);
    char *text = cli_alloc(3 * size + 1);
    char *out = text;

    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)path[i];
        if (byte == '%' || byte < 0x20 || byte == 0x7F ||
            (byte >= 0x80 && !is_valid)) {
            out += sprintf(out, "%%%02X", byte);
        } else {
            *out++ = (char)byte;
        }
    }
    *out = '\0';
    return text;
}

char *cli_source_text(const char *dialect, uint64_t ordinal, const char *path)
{
    char *escaped = cli_source_escape(path);
    char *text = cli_alloc(strlen(escaped) + strlen(dialect) + 32);

    sprintf(text, "%s %llu %s", dialect, (unsigned long long)ordinal, escaped);
    free(escaped);
    if (strlen(text) > CLI_SOURCE_SIZE_MAX) {
        free(text);
        return NULL;
    }
    return text;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes %XX in place. Returns false for malformed escapes and for %00. */
static bool decode(char *path)
{
    char *out = path;

    for (const char *in = path; *in != '\0'; in++) {
        int high, low;
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        high = hex_digit(in[1]);
        low = high >= 0 ? hex_digit(in[2]) : -1;
        if (low < 0 || high * 16 + low == 0) {
            return false;
        }
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return true;
}

char *cli_source_unescape(struct wal_slice text)
{
    char *path = cli_copy_text(text.data, (size_t)text.size);

    if (!decode(path)) {
        free(path);
        return NULL;
    }
    return path;
}

bool cli_source_parse(struct wal_slice text, struct cli_source *source)
{
    char *copy = cli_copy_text(text.data, text.size);
    char *space = strchr(copy, ' ');
    char *end = NULL;
    bool ok = false;
    unsigned long long ordinal = 0;

    if (space != NULL && (size_t)(space - copy) < sizeof(source->dialect) &&
        space[1] >= '0' && space[1] <= '9') {
        ordinal = strtoull(space + 1, &end, 10);
        ok = *end == ' ' && end[1] != '\0' && decode(end + 1);
    }
    if (ok) {
        *space = '\0';
        snprintf(source->dialect, sizeof(source->dialect), "%s", copy);
        source->ordinal = ordinal;
        source->path = cli_copy_text(end + 1, strlen(end + 1));
    }
    free(copy);
    return ok;
}

void cli_source_deinit(struct cli_source *source)
{
    free(source->path);
    source->path = NULL;
}

static bool meta_is(const struct wal_entry *entry, const char *key,
                    enum wal__json_kind kind)
{
    struct wal__json_token value;

    return entry->meta.size > 0 &&
           wal__json_find(entry->meta.data, entry->meta.size, key, &value) ==
               WAL__JSON_OK &&
           value.kind == kind;
}

bool cli_line_has_newline(const struct wal_entry *entry)
{
    return entry->stream != CLI_PARTIAL_STREAM &&
           !meta_is(entry, "eol", WAL__JSON_FALSE);
}

bool cli_line_is_opaque(const struct wal_entry *entry)
{
    return meta_is(entry, "whole", WAL__JSON_TRUE);
}

bool cli_line_is_from_view(const struct wal_entry *entry)
{
    return meta_is(entry, "view", WAL__JSON_STRING);
}

size_t cli_line_prefix(const struct wal_entry *entry, bool is_open,
                       char bytes[CLI_LINE_PREFIX_SIZE])
{
    struct wal__json_token value;
    size_t size = 0;

    if (!is_open) {
        return 0;
    }
    if (entry->meta.size > 0 &&
        wal__json_find(entry->meta.data, entry->meta.size, "before", &value) ==
            WAL__JSON_OK &&
        wal__json_unescape(value.span, (uint8_t *)bytes, CLI_LINE_PREFIX_SIZE,
                           &size, NULL) == WAL__JSON_OK) {
        return size;
    }
    bytes[0] = '\n';
    return 1;
}

/* The cursor returns every line of the file. Redacted lines are returned too:
 * they keep their position and have no bytes. */
#define LINE_FLAGS                                         \
    (WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | \
     WAL_ENTRY_CURSOR_OUT_OF_LINE)

static enum wal_status open_stream(const struct cli_lines *lines,
                                   uint32_t stream,
                                   struct wal_entry_cursor **cursor,
                                   struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .stream = stream,
        .flags = LINE_FLAGS,
    };

    return wal_entry_cursor_open(lines->session, &options, cursor, error);
}

enum wal_status cli_lines_open(struct cli_lines *lines,
                               struct wal_session *session, uint32_t stream,
                               struct wal_error *error)
{
    enum wal_status status;

    *lines = (struct cli_lines){.session = session, .stream = stream};
    if (stream == 0) {
        status = wal__copy_open(&lines->copy, session, NULL, 0, &lines->is_copy,
                                error);
        if (status != WAL_OK) {
            goto failed;
        }
    }
    status = lines->is_copy ? wal__copy_open_own(&lines->copy, LINE_FLAGS,
                                                 &lines->cursor, error)
                            : open_stream(lines, stream, &lines->cursor, error);
    if (status == WAL_OK) {
        return WAL_OK;
    }
failed:
    cli_lines_close(lines);
    return status;
}

/* Returns true if the entry is the partial line after the last line. */
static bool is_partial_line(const struct cli_lines *lines,
                            const struct wal_entry *entry)
{
    struct wal__json_member members[] = {{.key = "of"}, {.key = "after"}};
    const struct wal__json_span *of = &members[0].value.span;
    char stream[16];
    size_t size = (size_t)sprintf(stream, "%u", lines->stream);

    if (entry->meta.size == 0 ||
        wal__json_members(entry->meta.data, entry->meta.size, members, 2,
                          NULL) != WAL__JSON_OK ||
        of->size != size || memcmp(of->data, stream, size) != 0) {
        return false;
    }
    if (members[1].value.kind != WAL__JSON_STRING) {
        return lines->last_id[0] == '\0';
    }
    return wal__json_string_is(members[1].value.span, lines->last_id);
}

/* Returns the newest partial line, once. */
static enum wal_status next_partial_line(struct cli_lines *lines,
                                         struct wal_entry *entry,
                                         struct wal_error *error)
{
    struct wal_entry found = {.struct_size = sizeof(found)};
    bool is_found = false;
    struct wal_entry candidate;
    enum wal_status status;

    if (lines->partial_lines != NULL) {
        return WAL_END;
    }
    status =
        open_stream(lines, CLI_PARTIAL_STREAM, &lines->partial_lines, error);
    while (status == WAL_OK) {
        candidate = (struct wal_entry){.struct_size = sizeof(candidate)};
        status = wal_entry_cursor_next(lines->partial_lines, &candidate, error);
        if (status == WAL_OK && (candidate.flags & WAL_ENTRY_REDACTED) == 0 &&
            is_partial_line(lines, &candidate)) {
            found = candidate;
            is_found = true;
        }
    }
    if (status == WAL_END && is_found) {
        *entry = found;
        return WAL_OK;
    }
    return status;
}

/* Returns the next entry that is a line of the file. */
static enum wal_status next_line(struct cli_lines *lines,
                                 struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status;

    for (;;) {
        *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
        status = wal_entry_cursor_next(lines->cursor, entry, error);
        if (status == WAL_OK && entry->sequence < lines->copy.first_sequence) {
            continue;
        }
        if (status != WAL_OK || ((entry->flags & WAL_ENTRY_LINE) != 0 &&
                                 !cli_line_is_from_view(entry))) {
            return status;
        }
        lines->native_count++;
    }
}

/* Returns the next line of the shared part of a copy. WAL_END: the session is
 * not a copy, or the shared part has ended. */
static enum wal_status next_copied(struct cli_lines *lines,
                                   struct wal_entry *entry,
                                   struct wal_error *error)
{
    bool is_unshared = false;
    enum wal_status status = WAL_END;

    if (lines->is_copy && !lines->copy.has_ended) {
        status = wal__copy_next(&lines->copy, entry, &is_unshared, error);
    }
    lines->is_shared = status == WAL_OK && !is_unshared;
    if (is_unshared) {
        status = next_line(lines, entry, error);
    }
    return is_unshared && status == WAL_END ? WAL_ECORRUPT : status;
}

enum wal_status cli_lines_next(struct cli_lines *lines, struct wal_entry *entry,
                               struct wal_error *error)
{
    enum wal_status status = next_copied(lines, entry, error);

    if (status == WAL_END && lines->partial_lines == NULL) {
        status = next_line(lines, entry, error);
    }
    if (status == WAL_END) {
        return next_partial_line(lines, entry, error);
    }
    if (status == WAL_OK) {
        snprintf(lines->last_id, sizeof(lines->last_id), "%.*s",
                 (int)entry->id.size, (const char *)entry->id.data);
    }
    return status;
}

void cli_lines_close(struct cli_lines *lines)
{
    wal_entry_cursor_close(lines->cursor);
    wal_entry_cursor_close(lines->partial_lines);
    lines->cursor = NULL;
    lines->partial_lines = NULL;
    if (lines->is_copy) {
        wal__copy_close(&lines->copy);
    }
    lines->is_copy = false;
}

enum wal_status cli_lines_read_payload(struct cli_lines *lines,
                                       struct wal_store *store,
                                       const struct wal_entry *entry,
                                       cli_payload_fn *visit, void *ctx,
                                       struct wal_error *error)
{
    return lines->is_shared && (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0
               ? wal__copy_read_payload(&lines->copy, store, entry, visit, ctx,
                                        error)
               : cli_payload_visit(store, entry, visit, ctx, error);
}

static bool discard_bytes(void *ctx, const void *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return true;
}

enum wal_status cli_lines_check(struct cli_lines *lines,
                                struct wal_store *store,
                                const struct wal_entry *entry,
                                struct wal_error *error)
{
    return lines->is_shared ? cli_lines_read_payload(lines, store, entry,
                                                     discard_bytes, NULL, error)
                            : cli_payload_verify(store, entry, error);
}

/* A position in the compared file. */
struct position {
    struct cli_compare *window;
    uint64_t offset; /* end of the equal bytes */
    bool differs;
};

/* A cli_payload_fn: compares the next bytes of the file with these. */
static bool compare(void *ctx, const void *data, size_t size)
{
    struct position *position = ctx;

    if (position->differs ||
        !cli_compare_bytes(position->window, position->offset, data, size)) {
        position->differs = true;
        return false;
    }
    position->offset += size;
    return true;
}

/* Advances *offset over one line of any content. */
static void skip_line(int fd, uint64_t *offset)
{
    char bytes[4096];
    const char *newline = NULL;
    ssize_t got;

    do {
        got = pread(fd, bytes, sizeof(bytes), (off_t)*offset);
        if (got > 0) {
            newline = memchr(bytes, '\n', (size_t)got);
            *offset += newline != NULL ? (uint64_t)(newline - bytes) + 1
                                       : (uint64_t)got;
        }
    } while (got > 0 && newline == NULL);
}

static bool is_open(const struct cli_match *match)
{
    return match->entries > 0 && !match->has_newline && !match->is_opaque;
}

/* Any line of the file may be the redacted one. It counts as matched, so that
 * an import does not add it again. */
static void match_redacted(struct cli_match *match, int fd,
                           const struct wal_entry *entry)
{
    if (is_open(match)) {
        skip_line(fd, &match->bytes);
        match->lines++;
    }
    skip_line(fd, &match->bytes);
    match->has_newline = true;
    match->lines++;
    match->is_opaque = false;
    match->entries++;
    match->last_id = entry->id;
    match->timestamp = entry->timestamp;
}

static void record_issue(struct cli_match *match, uint64_t offset,
                         uint64_t sequence)
{
    match->issues =
        cli_reserve(match->issues, match->issue_count, &match->issue_capacity,
                    sizeof(match->issues[0]));
    match->issues[match->issue_count++] = (struct cli_line_issue){
        .line = match->lines + 1,
        .offset = offset,
        .sequence = sequence,
    };
}

static void match_line(struct cli_match *match, struct position *position,
                       const struct wal_entry *entry)
{
    match->has_newline = cli_line_has_newline(entry);
    if (match->has_newline) {
        (void)compare(position, "\n", 1);
        match->lines++;
    }
    match->bytes = position->offset;
    match->is_opaque = cli_line_is_opaque(entry);
    match->entries++;
    match->last_id = entry->id;
    match->timestamp = entry->timestamp;
}

static enum wal_status
match_entry(struct cli_lines *lines, struct wal_store *store,
            struct cli_match *match, struct cli_compare *window,
            const struct wal_entry *entry, struct wal_error *error)
{
    struct position position = {.window = window, .offset = match->bytes};
    bool is_partial_line = entry->stream == CLI_PARTIAL_STREAM;
    char before[CLI_LINE_PREFIX_SIZE];
    size_t size = cli_line_prefix(entry, is_open(match), before);
    enum wal_status status;

    (void)compare(&position, before, size);
    if (!is_partial_line && memchr(before, '\n', size) != NULL) {
        match->lines++;
    }
    if (meta_is(entry, "odd", WAL__JSON_TRUE)) {
        record_issue(match, position.offset, entry->sequence);
    }
    status =
        cli_lines_read_payload(lines, store, entry, compare, &position, error);
    if (status != WAL_OK) {
        return status;
    }
    if (is_partial_line) {
        match->partial_size = position.offset - match->bytes;
    } else {
        match_line(match, &position, entry);
    }
    match->is_prefix = !position.differs;
    return WAL_OK;
}

enum wal_status cli_source_match(struct wal_store *store,
                                 struct wal_session *session, uint32_t stream,
                                 int fd, struct cli_match *match,
                                 struct wal_error *error)
{
    struct cli_match found = {.is_prefix = true};
    struct cli_compare window;
    struct cli_lines lines;
    struct wal_entry entry;
    enum wal_status status;

    status = cli_lines_open(&lines, session, stream, error);
    if (status != WAL_OK) {
        return status;
    }
    cli_compare_init(&window, fd);
    while (found.is_prefix &&
           (status = cli_lines_next(&lines, &entry, error)) == WAL_OK) {
        if ((entry.flags & WAL_ENTRY_REDACTED) != 0) {
            match_redacted(&found, fd, &entry);
            continue;
        }
        status = match_entry(&lines, store, &found, &window, &entry, error);
        if (status != WAL_OK) {
            break;
        }
    }
    cli_compare_deinit(&window);
    found.native_count = lines.native_count;
    cli_lines_close(&lines);
    if (status != WAL_OK && status != WAL_END) {
        cli_match_deinit(&found);
        return status;
    }
    *match = found;
    return WAL_OK;
}

void cli_match_deinit(struct cli_match *match)
{
    free(match->issues);
    match->issues = NULL;
}
