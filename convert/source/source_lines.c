/*
 * source_lines.c - payloads of entries, the lines of imported sessions, and a file compared with
 * them (source_lines.h).
 *
 * A file is compared in windows: short comparisons at rising offsets share one pread.
 *
 * Invariant: a partial line is returned only when no line was imported after the line that it
 * follows.
 */
#include "convert/source/source_lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "engine/base/error.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

/* --- payloads ------------------------------------------------------------- */

#define PIECE_SIZE ((size_t)1 << 20)

static const struct wal__heap *heap_or_libc(const struct wal__heap *heap)
{
    return heap != NULL ? heap : &wal__heap_libc;
}

static bool is_out_of_line(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0;
}

/* A missing blob is damage, since an entry refers to it. */
static enum wal_status open_blob(struct wal_store *store, const struct wal_entry *entry,
                                 struct wal_blob **blob, struct wal_error *error)
{
    enum wal_status status = wal_blob_open(store, entry->payload_digest, blob, error);

    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}

enum wal_status wal__entry_payload_visit(const struct wal__heap *heap, struct wal_store *store,
                                         const struct wal_entry *entry,
                                         wal__entry_payload_fn *visit, void *ctx,
                                         struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    uint64_t got = 1;
    char *piece;

    if (!is_out_of_line(entry)) {
        (void)visit(ctx, entry->payload.data, (size_t)entry->payload.size);
        return WAL_OK;
    }
    status = open_blob(store, entry, &blob, error);
    if (status != WAL_OK) {
        return status;
    }
    heap = heap_or_libc(heap);
    piece = wal__heap_alloc(heap, PIECE_SIZE);
    if (piece == NULL) {
        wal_blob_close(blob);
        return wal__no_memory(error);
    }
    for (uint64_t at = 0; got > 0; at += got) {
        status = wal_blob_read(blob, at, piece, PIECE_SIZE, &got, error);
        if (status != WAL_OK || got == 0 || !visit(ctx, piece, (size_t)got)) {
            break;
        }
    }
    wal__heap_free(heap, piece);
    wal_blob_close(blob);
    return status;
}

static bool discard_piece(void *ctx, const void *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return true;
}

enum wal_status wal__entry_payload_verify(const struct wal__heap *heap, struct wal_store *store,
                                          const struct wal_entry *entry, struct wal_error *error)
{
    return wal__entry_payload_visit(heap, store, entry, discard_piece, NULL, error);
}

enum wal_status wal__entry_payload_load(const struct wal__heap *heap, struct wal_store *store,
                                        struct wal_entry *entry, char **memory,
                                        struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    uint64_t got = 0;
    char *bytes;

    *memory = NULL;
    if (!is_out_of_line(entry)) {
        return WAL_OK;
    }
    status = open_blob(store, entry, &blob, error);
    if (status != WAL_OK) {
        return status;
    }
    heap = heap_or_libc(heap);
    bytes = wal__heap_alloc(heap, (size_t)entry->payload_size + 1);
    status = bytes == NULL ? wal__no_memory(error)
                           : wal_blob_read(blob, 0, bytes, entry->payload_size, &got, error);
    wal_blob_close(blob);
    if (status != WAL_OK) {
        wal__heap_free(heap, bytes);
        return status;
    }
    entry->payload = (struct wal_slice){bytes, got};
    entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
    *memory = bytes;
    return WAL_OK;
}

/* --- comparing a file ---------------------------------------------------- */

#define WINDOW_SIZE ((size_t)128 << 10)

void wal__file_compare_deinit(struct wal__file_compare *window)
{
    wal__heap_free(heap_or_libc(window->heap), window->bytes);
    window->bytes = NULL;
}

/* Moves the window to the offset unless it contains it. Returns false at the end of the file, when
 * reading fails, and without memory. */
static bool move_window(struct wal__file_compare *window, uint64_t offset)
{
    ssize_t got;

    if (offset >= window->offset && offset - window->offset < window->size) {
        return true;
    }
    if (window->bytes == NULL) {
        window->bytes = wal__heap_alloc(heap_or_libc(window->heap), WINDOW_SIZE);
        window->has_failed = window->bytes == NULL;
    }
    if (window->has_failed) {
        return false;
    }
    got = pread(window->fd, window->bytes, WINDOW_SIZE, (off_t)offset);
    window->offset = offset;
    window->size = got > 0 ? (size_t)got : 0;
    window->has_ended = got == 0;
    return got > 0;
}

bool wal__file_compare_bytes(struct wal__file_compare *window, uint64_t offset, const void *data,
                             size_t size)
{
    const char *bytes = data;

    while (size > 0) {
        size_t at;
        size_t common;

        if (!move_window(window, offset)) {
            return false;
        }
        at = (size_t)(offset - window->offset);
        common = window->size - at < size ? window->size - at : size;
        if (memcmp(window->bytes + at, bytes, common) != 0) {
            return false;
        }
        bytes += common;
        offset += common;
        size -= common;
    }
    return true;
}

/* --- lines --------------------------------------------------------------- */

bool wal__source_meta_is(const struct wal_entry *entry, const char *key, enum wal__json_kind kind)
{
    struct wal__json_token value;

    return entry->meta.size > 0 &&
           wal__json_find(entry->meta.data, entry->meta.size, key, &value) == WAL__JSON_OK &&
           value.kind == kind;
}

bool wal__source_line_has_newline(const struct wal_entry *entry)
{
    return entry->stream != WAL__PARTIAL_STREAM &&
           !wal__source_meta_is(entry, "eol", WAL__JSON_FALSE);
}

bool wal__source_line_is_opaque(const struct wal_entry *entry)
{
    return wal__source_meta_is(entry, "whole", WAL__JSON_TRUE);
}

bool wal__source_line_is_from_view(const struct wal_entry *entry)
{
    return wal__source_meta_is(entry, "view", WAL__JSON_STRING);
}

size_t wal__source_line_prefix(const struct wal_entry *entry, bool is_open,
                               char bytes[WAL__LINE_PREFIX_SIZE])
{
    struct wal__json_token value;
    size_t size = 0;

    if (!is_open) {
        return 0;
    }
    if (entry->meta.size > 0 &&
        wal__json_find(entry->meta.data, entry->meta.size, "before", &value) == WAL__JSON_OK &&
        wal__json_unescape(value.span, (uint8_t *)bytes, WAL__LINE_PREFIX_SIZE, &size, NULL) ==
            WAL__JSON_OK) {
        return size;
    }
    bytes[0] = '\n';
    return 1;
}

/* The cursor returns every line of the file. Redacted lines are returned too: they keep their
 * position and have no bytes. */
#define LINE_FLAGS \
    (WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE)

static enum wal_status open_stream(const struct wal__source_lines *lines, uint32_t stream,
                                   uint64_t skip, struct wal_entry_cursor **cursor,
                                   struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .stream = stream,
        .skip = skip,
        .flags = LINE_FLAGS,
    };

    return wal_entry_cursor_open(lines->session, &options, cursor, error);
}

/* Sets the id that the ids of entries of the session's source name, if they name one. */
static enum wal_status set_own_file(struct wal__source_lines *lines, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__source source;
    enum wal_status status = wal_session_get_info(lines->session, &info, error);

    if (status == WAL_OK && (info.flags & WAL_SESSION_FORK) != 0 &&
        wal__source_parse(info.source, &source)) {
        (void)wal__source_file_id(source.path, lines->file);
    }
    return status;
}

enum wal_status wal__source_lines_open(struct wal__source_lines *lines,
                                       const struct wal__heap *heap, struct wal_session *session,
                                       uint32_t stream, const char *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    *lines = (struct wal__source_lines){.heap = heap, .session = session, .stream = stream};
    if (file != NULL) {
        snprintf(lines->file, sizeof(lines->file), "%s", file);
    } else {
        status = set_own_file(lines, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (stream == 0) {
        status = wal__copy_open(&lines->copy, session, heap, LINE_FLAGS, &lines->is_copy, error);
    }
    if (status == WAL_OK && !lines->is_copy) {
        status = open_stream(lines, stream, 0, &lines->cursor, error);
    }
    if (status != WAL_OK) {
        wal__source_lines_close(lines);
    }
    return status;
}

/* Returns true if the entry is the partial line after the last line. */
static bool is_partial_line(const struct wal__source_lines *lines, const struct wal_entry *entry)
{
    struct wal__json_member members[] = {{.key = "of"}, {.key = "after"}};
    const struct wal__json_span *of = &members[0].value.span;
    char stream[16];
    size_t size = (size_t)sprintf(stream, "%u", lines->stream);

    if (entry->meta.size == 0 ||
        wal__json_members(entry->meta.data, entry->meta.size, members, 2, NULL) != WAL__JSON_OK ||
        of->size != size || memcmp(of->data, stream, size) != 0) {
        return false;
    }
    if (members[1].value.kind != WAL__JSON_STRING) {
        return lines->last_id[0] == '\0' && lines->file[0] == '\0';
    }
    return wal__json_string_is(members[1].value.span, lines->last_id);
}

/* Returns the newest partial line, once. */
static enum wal_status next_partial_line(struct wal__source_lines *lines, struct wal_entry *entry,
                                         struct wal_error *error)
{
    uint64_t count = 0;
    uint64_t found = 0; /* its number, from 1 */
    enum wal_status status;

    if (lines->partial_lines != NULL) {
        return WAL_END;
    }
    status = open_stream(lines, WAL__PARTIAL_STREAM, 0, &lines->partial_lines, error);
    while (status == WAL_OK) {
        *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
        status = wal_entry_cursor_next(lines->partial_lines, entry, error);
        count++;
        if (status == WAL_OK && (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
            is_partial_line(lines, entry)) {
            found = count;
        }
    }
    if (status != WAL_END || found == 0) {
        return status;
    }
    /* An entry holds until the next one is read: it is read again. */
    wal_entry_cursor_close(lines->partial_lines);
    lines->partial_lines = NULL;
    status = open_stream(lines, WAL__PARTIAL_STREAM, found - 1, &lines->partial_lines, error);
    return status == WAL_OK ? wal_entry_cursor_next(lines->partial_lines, entry, error) : status;
}

/* Whether the entry's id names the file of the lines, or none as they do. */
static bool is_of_file(const struct wal__source_lines *lines, const struct wal_entry *entry)
{
    if (!wal__source_names_file(entry->id)) {
        return lines->file[0] == '\0';
    }
    return memcmp(entry->id.data, lines->file, WAL__FILE_ID_SIZE - 1) == 0;
}

/* Returns the next entry that is a line of the file. */
static enum wal_status next_line(struct wal__source_lines *lines, struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status;

    for (;;) {
        bool is_line;

        *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
        status = lines->is_copy ? wal__copy_next(&lines->copy, entry, error)
                                : wal_entry_cursor_next(lines->cursor, entry, error);
        is_line = (entry->flags & WAL_ENTRY_LINE) != 0 && !wal__source_line_is_from_view(entry);
        if (status != WAL_OK || (is_line && (lines->is_copy || is_of_file(lines, entry)))) {
            return status;
        }
        lines->native_count += is_line ? 0 : 1;
        lines->has_other_files |= is_line;
    }
}

enum wal_status wal__source_lines_next(struct wal__source_lines *lines, struct wal_entry *entry,
                                       struct wal_error *error)
{
    enum wal_status status =
        lines->partial_lines == NULL ? next_line(lines, entry, error) : WAL_END;

    if (status == WAL_END) {
        return next_partial_line(lines, entry, error);
    }
    if (status == WAL_OK) {
        snprintf(lines->last_id, sizeof(lines->last_id), "%.*s", (int)entry->id.size,
                 (const char *)entry->id.data);
    }
    return status;
}

/* Whether the entry is the first line of another file than `own`; then writes its id and its path,
 * which is next to `source` if it is not known. */
static bool is_first_of_file(const struct wal_entry *entry, const char *own, const char *source,
                             char file[WAL__FILE_ID_SIZE], char path[WAL__SOURCE_SIZE_MAX + 1])
{
    static const char first[] = ":line-1";
    const size_t size = WAL__FILE_ID_SIZE - 1;
    const char *slash = strrchr(source, '/');
    char escaped[WAL__STRING_MAX + 1];

    if (!wal__source_names_file(entry->id) || memcmp(entry->id.data, own, size) == 0) {
        return false;
    }
    snprintf(file, WAL__FILE_ID_SIZE, "%.*s", (int)size, (const char *)entry->id.data);
    if (entry->meta.size > 0 &&
        wal__string_member(entry->meta.data, (size_t)entry->meta.size, NULL, "file", escaped) &&
        wal__source_unescape(wal__slice_from_text(escaped), path)) {
        return true;
    }
    snprintf(path, WAL__SOURCE_SIZE_MAX + 1, "%.*s%s.jsonl",
             slash != NULL ? (int)(slash + 1 - source) : 0, source, file);
    return entry->id.size == size + sizeof(first) - 1 &&
           memcmp((const char *)entry->id.data + size, first, sizeof(first) - 1) == 0;
}

enum wal_status wal__source_files_visit(struct wal_session *session, wal__source_file_fn *visit,
                                        void *ctx, struct wal_error *error)
{
    struct wal__source_lines lines = {.session = session};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal__source source = {.path = ""};
    char path[WAL__SOURCE_SIZE_MAX + 1];
    char file[WAL__FILE_ID_SIZE];
    enum wal_status status = set_own_file(&lines, error);
    bool is_own = lines.file[0] == '\0'; /* what follows is not shared */

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    if (status != WAL_OK || !wal__source_parse(info.source, &source)) {
        return status;
    }
    status = open_stream(&lines, 0, 0, &lines.cursor, error);
    while (status == WAL_OK || status == WAL_ECORRUPT || status == WAL_EIO) {
        status = wal_entry_cursor_next(lines.cursor, &entry, error);
        if (status != WAL_OK) {
            continue;
        }
        is_own |= is_of_file(&lines, &entry);
        if (is_own && is_first_of_file(&entry, lines.file, source.path, file, path) &&
            !visit(ctx, file, path)) {
            break;
        }
    }
    wal_entry_cursor_close(lines.cursor);
    return status == WAL_END ? WAL_OK : status;
}

void wal__source_lines_close(struct wal__source_lines *lines)
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

enum wal_status wal__source_lines_read_payload(struct wal__source_lines *lines,
                                               struct wal_store *store,
                                               const struct wal_entry *entry,
                                               wal__entry_payload_fn *visit, void *ctx,
                                               struct wal_error *error)
{
    return lines->copy.is_shared && (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0
               ? wal__copy_read_payload(&lines->copy, store, entry, visit, ctx, error)
               : wal__entry_payload_visit(lines->heap, store, entry, visit, ctx, error);
}

enum wal_status wal__source_lines_check(struct wal__source_lines *lines, struct wal_store *store,
                                        const struct wal_entry *entry, struct wal_error *error)
{
    return wal__source_lines_read_payload(lines, store, entry, discard_piece, NULL, error);
}

/* A position in the compared file. */
struct position {
    struct wal__file_compare *window;
    uint64_t offset; /* end of the equal bytes */
    bool differs;
};

/* A wal__entry_payload_fn: compares the next bytes of the file with these. */
static bool compare(void *ctx, const void *data, size_t size)
{
    struct position *position = ctx;

    if (position->differs ||
        !wal__file_compare_bytes(position->window, position->offset, data, size)) {
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
            *offset += newline != NULL ? (uint64_t)(newline - bytes) + 1 : (uint64_t)got;
        }
    } while (got > 0 && newline == NULL);
}

static bool is_open(const struct wal__source_match *match)
{
    return match->entries > 0 && !match->has_newline && !match->is_opaque;
}

static void copy_text(char *to, size_t size, const struct wal_slice *text)
{
    size_t used = text->size < size ? (size_t)text->size : 0;

    if (used > 0) {
        memcpy(to, text->data, used);
    }
    to[used] = '\0';
}

/* A text that is too long is left out. */
static void set_last(struct wal__source_match *match, const struct wal_entry *entry)
{
    match->entries++;
    copy_text(match->last_id, sizeof(match->last_id), &entry->id);
    copy_text(match->timestamp, sizeof(match->timestamp), &entry->timestamp);
}

/* Any line of the file may be the redacted one. It counts as matched, so that an import does not
 * add it again. */
static void match_redacted(struct wal__source_match *match, int fd, const struct wal_entry *entry)
{
    const size_t piece = sizeof(WAL__PIECE_ID) - 1;
    struct stat stat;

    if (entry->id.size > piece && memcmp(entry->id.data, WAL__PIECE_ID, piece) == 0 &&
        (match->entries == 0 || match->is_opaque) && fstat(fd, &stat) == 0) {
        uint64_t left = (uint64_t)stat.st_size - match->bytes;

        match->bytes += left < WAL__PIECE_SIZE ? left : WAL__PIECE_SIZE;
        match->is_opaque = true;
        match->is_redacted = true;
        set_last(match, entry);
        return;
    }
    if (is_open(match)) {
        skip_line(fd, &match->bytes);
        match->lines++;
    }
    skip_line(fd, &match->bytes);
    match->is_redacted = true;
    match->has_newline = true;
    match->lines++;
    match->is_opaque = false;
    set_last(match, entry);
}

static enum wal_status record_issue(struct wal__source_match *match, uint64_t offset,
                                    uint64_t sequence, struct wal_error *error)
{
    if (!WAL__HEAP_GROW(match->heap, match->issues, match->issue_count, match->issue_capacity)) {
        return wal__no_memory(error);
    }
    match->issues[match->issue_count++] = (struct wal__source_issue){
        .line = match->lines + 1,
        .offset = offset,
        .sequence = sequence,
    };
    return WAL_OK;
}

static void match_line(struct wal__source_match *match, struct position *position,
                       const struct wal_entry *entry)
{
    match->is_redacted = false;
    match->has_newline = wal__source_line_has_newline(entry);
    if (match->has_newline) {
        (void)compare(position, "\n", 1);
        match->lines++;
    }
    match->bytes = position->offset;
    match->is_opaque = wal__source_line_is_opaque(entry);
    set_last(match, entry);
}

static enum wal_status match_entry(struct wal__source_lines *lines, struct wal_store *store,
                                   struct wal__source_match *match,
                                   struct wal__file_compare *window, const struct wal_entry *entry,
                                   struct wal_error *error)
{
    struct position position = {.window = window, .offset = match->bytes};
    bool is_partial_line = entry->stream == WAL__PARTIAL_STREAM;
    char before[WAL__LINE_PREFIX_SIZE];
    size_t size = wal__source_line_prefix(entry, is_open(match), before);
    enum wal_status status = WAL_OK;

    (void)compare(&position, before, size);
    if (!is_partial_line && memchr(before, '\n', size) != NULL) {
        match->lines++;
    }
    if (wal__source_meta_is(entry, "odd", WAL__JSON_TRUE)) {
        status = record_issue(match, position.offset, entry->sequence, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__source_lines_read_payload(lines, store, entry, compare, &position, error);
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

enum wal_status wal__source_compare(const struct wal__heap *heap, struct wal_store *store,
                                    struct wal_session *session, uint32_t stream, const char *file,
                                    int fd, struct wal__source_match *match,
                                    struct wal_error *error)
{
    struct wal__source_match found = {.heap = heap_or_libc(heap), .is_prefix = true};
    struct wal__file_compare window = {.heap = heap, .fd = fd};
    struct wal__source_lines lines;
    struct wal_entry entry;
    enum wal_status status;

    status = wal__source_lines_open(&lines, heap, session, stream, file, error);
    if (status != WAL_OK) {
        return status;
    }
    while (found.is_prefix && (status = wal__source_lines_next(&lines, &entry, error)) == WAL_OK) {
        if ((entry.flags & WAL_ENTRY_REDACTED) != 0) {
            match_redacted(&found, fd, &entry);
            continue;
        }
        status = match_entry(&lines, store, &found, &window, &entry, error);
        if (status != WAL_OK) {
            break;
        }
    }
    if (window.has_failed) {
        status = wal__no_memory(error);
    }
    wal__file_compare_deinit(&window);
    found.is_copy = lines.is_copy;
    found.native_count = lines.native_count;
    found.has_other_files = lines.has_other_files;
    memcpy(found.file, lines.is_copy ? "" : lines.file, lines.is_copy ? 1 : sizeof(found.file));
    found.is_covered = !found.is_prefix && window.has_ended;
    wal__source_lines_close(&lines);
    if (status != WAL_OK && status != WAL_END) {
        wal__source_match_deinit(&found);
        return status;
    }
    *match = found;
    return WAL_OK;
}

void wal__source_match_deinit(struct wal__source_match *match)
{
    if (match->issues != NULL) {
        wal__heap_free(match->heap, match->issues);
    }
    match->issues = NULL;
}
