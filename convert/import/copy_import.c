/*
 * copy_import.c - finds the session that a file is a copy of, and imports it as
 * a fork of that session.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/copy_import.h"

#include <stdio.h>
#include <string.h>

#include "agentwal/admin.h"
#include "convert/import/copy_walk.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"

#define CHUNK_LINES 1024 /* lines that a damaged chunk loses at most */

/* Bytes that a file must share with the session of the same id if it does not
 * name that session as its origin. */
#define SHARED_BYTES_MIN 4096

#define HEAD_WINDOW 64 /* lines searched for the head */

/* A line that the file shares with the original. */
struct shared {
    uint64_t offset;
    uint64_t line;
    uint64_t bytes; /* shared bytes up to this line */
    uint64_t shared;
    char id[WAL__LINE_ID_SIZE];
};

struct scan {
    struct wal__copy_walk walk;
    struct shared recent[HEAD_WINDOW];
    uint64_t count;
    uint64_t bytes;
};

static void set_id(char *to, struct wal_slice id)
{
    snprintf(to, WAL__LINE_ID_SIZE, "%.*s", (int)id.size,
             id.size > 0 ? (const char *)id.data : "");
}

/* --- finding -------------------------------------------------------------- */

static void record_shared(struct scan *scan)
{
    struct shared *shared = &scan->recent[scan->count++ % HEAD_WINDOW];
    const struct wal__piece *piece = &scan->walk.piece;

    scan->bytes += piece->size + 1;
    shared->offset = piece->offset;
    shared->line = piece->line;
    shared->bytes = scan->bytes;
    shared->shared = scan->count;
    set_id(shared->id, scan->walk.base.id);
}

/* Returns true if the line sets the head when it is the last one. */
static bool moves_head(struct wal__copy_walk *walk, const struct shared *shared)
{
    const struct wal__file_probe *probe = walk->copy->probe;
    struct wal__json_span text;
    struct wal__line_info line;

    wal__line_reader_seek(&walk->reader, shared->offset, shared->line - 1);
    if (wal__line_reader_next(&walk->reader, &walk->piece) <= 0) {
        return false;
    }
    text = wal__line_text(walk->piece.data, walk->piece.size);
    if (probe->dialect->read(text.data, text.size, &line, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    return line.head == WAL__HEAD_MOVE ||
           (!probe->has_mainline && line.is_sidechain);
}

/* Returns the shared line that the head is at. If it is not among the last
 * HEAD_WINDOW lines, returns the last line. */
static const struct shared *find_head(struct scan *scan)
{
    uint64_t first = scan->count > HEAD_WINDOW ? scan->count - HEAD_WINDOW : 0;

    for (uint64_t i = scan->count; i > first; i--) {
        const struct shared *shared = &scan->recent[(i - 1) % HEAD_WINDOW];

        if (moves_head(&scan->walk, shared)) {
            return shared;
        }
    }
    return &scan->recent[(scan->count - 1) % HEAD_WINDOW];
}

/* The fork point is the head, so that the shared lines are the branch, unless
 * many bytes follow the head. */
static void set_fork_point(struct scan *scan, struct wal__copy_import *copy)
{
    const struct shared *point = &scan->recent[(scan->count - 1) % HEAD_WINDOW];
    const struct shared *head = find_head(scan);

    if (point->bytes - head->bytes < SHARED_BYTES_MIN) {
        point = head;
    }
    copy->lines = point->line;
    copy->shared = point->shared;
    copy->shared_bytes = point->bytes;
    strcpy(copy->fork_point, point->id);
    strcpy(copy->head, head->id);
}

/* Finds how many lines at the beginning of the file are a copy of the
 * session's. Sets copy->origin if there are at least `min_bytes` of them, and
 * more than with an earlier origin. */
static enum wal_status scan_origin(struct wal__copy_import *copy,
                                   struct wal_session *session,
                                   uint64_t min_bytes, struct wal_error *error)
{
    const struct wal__heap *heap = copy->arena->heap;
    struct scan *scan = wal__heap_zalloc(heap, sizeof(*scan));
    enum wal_status status;

    if (scan == NULL) {
        return wal__no_memory(error);
    }
    status = wal__copy_walk_begin(&scan->walk, copy, session, error);
    while (status == WAL_OK) {
        status = wal__copy_walk_next(&scan->walk, error);
        if (status == WAL_OK && scan->walk.is_shared) {
            record_shared(scan);
        }
    }
    if (status == WAL_END && scan->count > 0 && scan->bytes >= min_bytes &&
        scan->bytes > copy->shared_bytes) {
        copy->origin = session;
        set_fork_point(scan, copy);
    }
    wal__copy_walk_end(&scan->walk);
    wal__heap_free(heap, scan);
    return status == WAL_END ? WAL_OK : status;
}

/* Returns true if the session was imported from a file of this dialect, and is
 * not `own`. */
static bool is_candidate(struct wal_session *session, struct wal_session *own,
                         const struct wal__dialect *dialect)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_info own_info = {.struct_size = sizeof(own_info)};
    struct wal__source source;
    bool is_match;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        (own != NULL && (wal_session_get_info(own, &own_info, NULL) != WAL_OK ||
                         own_info.number == info.number)) ||
        !wal__source_parse(info.source, &source)) {
        return false;
    }
    is_match = strcmp(source.dialect, dialect->name) == 0 &&
               strstr(source.path, "//") == NULL;
    return is_match;
}

static enum wal_status try_origin(struct wal__copy_import *copy,
                                  struct wal_session *own, const char *id,
                                  uint64_t min_bytes, struct wal_error *error)
{
    struct wal_session *previous = copy->origin;
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(
        copy->store, wal__slice_from_text(id), &session, error);

    if (status == WAL_OK && is_candidate(session, own, copy->probe->dialect)) {
        status = scan_origin(copy, session, min_bytes, error);
    }
    wal_session_close(copy->origin == session ? previous : session);
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED ? WAL_OK : status;
}

enum wal_status wal__copy_import_find(struct wal__copy_import *copy,
                                      struct wal_session *own,
                                      struct wal_error *error)
{
    const char *id = copy->probe->session;
    struct wal__copy_origins origins = {.count = 0};
    enum wal_status status = WAL_OK;
    size_t named_count;

    if (wal__copy_origins_read(copy->arena, copy->fd, copy->size, &origins) <
        0) {
        status = wal__import_errno(error);
    }
    named_count = origins.count;
    wal__copy_origins_add(copy->arena, &origins, id,
                          id != NULL ? strlen(id) : 0);
    for (size_t i = 0; status == WAL_OK && i < origins.count; i++) {
        status = try_origin(copy, own, origins.ids[i],
                            i < named_count ? 1 : SHARED_BYTES_MIN, error);
    }
    return copy->arena->has_failed && status == WAL_OK ? wal__no_memory(error)
                                                       : status;
}

struct wal__copy_import
wal__copy_import_init(struct wal__heap_arena *arena, struct wal_store *store,
                      int fd, uint64_t size,
                      const struct wal__file_probe *probe)
{
    return (struct wal__copy_import){
        .arena = arena, .store = store, .fd = fd, .size = size, .probe = probe};
}

void wal__copy_import_deinit(struct wal__copy_import *copy)
{
    wal_session_close(copy->origin);
    *copy = wal__copy_import_init(copy->arena, copy->store, copy->fd,
                                  copy->size, copy->probe);
}

/* --- writing -------------------------------------------------------------- */

struct copy_writer {
    struct wal__copy_import *copy;
    struct wal__copy_walk walk;
    struct wal__import_lines own;    /* the lines that are not shared */
    struct wal_entry_cursor *branch; /* the shared entries */
    struct wal_entry next_line;      /* next line of the branch */
    bool has_next_line;
    struct wal__delta_chunk *chunk;
    uint32_t number;
    uint8_t *bytes;
};

/* Chunks, and lines without a time, have the time of the line before. */
static void set_time(struct wal__import_lines *own, struct wal_slice time)
{
    if (time.size > 0 && time.size < sizeof(own->time)) {
        memcpy(own->time, time.data, (size_t)time.size);
        own->time[time.size] = '\0';
    }
}

/* Whether the session, or what will be written to it, has the id. */
static enum wal_status is_id_taken(struct copy_writer *writer, const char *id,
                                   bool *is_taken, struct wal_error *error)
{
    struct wal_entry found = {.struct_size = sizeof(found)};
    struct wal_slice slice = wal__slice_from_text(id);
    enum wal_status status =
        wal_entry_cursor_get(writer->own.cursor, slice, &found, error);

    *is_taken = status == WAL_OK || status == WAL_EREDACTED ||
                wal__import_batch_contains(&writer->own.batch, slice);
    return status == WAL_ENOTFOUND || status == WAL_EREDACTED ? WAL_OK : status;
}

/* Appends the chunk and starts a new one. */
static enum wal_status append_chunk(struct copy_writer *writer, bool is_last,
                                    struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WAL__COPY_STREAM,
        .type = wal__slice_from_text(WAL__COPY_TYPE),
        .timestamp = wal__slice_from_text(writer->own.time),
    };
    char id[64];
    size_t size = 0;
    bool is_taken = true;
    enum wal_status status = wal__copy_chunk_encode(
        writer->chunk, writer->number, is_last, writer->bytes, &size);

    snprintf(id, sizeof(id), "copy-%u", writer->number);
    for (unsigned n = 2; status == WAL_OK && is_taken; n++) {
        status = is_id_taken(writer, id, &is_taken, error);
        if (is_taken) {
            snprintf(id, sizeof(id), "copy-%u~%u", writer->number, n);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    entry.id = wal__slice_from_text(id);
    entry.payload = (struct wal_slice){writer->bytes, size};
    writer->number++;
    memset(writer->chunk, 0, sizeof(*writer->chunk));
    return wal__import_batch_add(&writer->own.batch, &entry, error);
}

/* Returns true if the shared line is the next one of the branch. Advances the
 * branch past it. */
static bool advance_branch(struct copy_writer *writer)
{
    uint64_t sequence = writer->walk.base.sequence;
    bool is_first = true;

    for (;;) {
        while (!writer->has_next_line) {
            writer->next_line =
                (struct wal_entry){.struct_size = sizeof(writer->next_line)};
            enum wal_status status =
                wal_entry_cursor_next(writer->branch, &writer->next_line, NULL);
            if (status != WAL_OK && status != WAL_ECORRUPT &&
                status != WAL_EIO) {
                return false;
            }
            writer->has_next_line =
                status == WAL_OK &&
                (writer->next_line.flags & WAL_ENTRY_LINE) != 0;
        }
        if (writer->next_line.sequence > sequence) {
            return false;
        }
        writer->has_next_line = false;
        if (writer->next_line.sequence == sequence) {
            return is_first;
        }
        is_first = false;
    }
}

static enum wal_status write_own(struct copy_writer *writer,
                                 struct wal_error *error)
{
    enum wal_status status =
        wal__import_lines_add(&writer->own, &writer->walk.piece, error);

    if (status == WAL_OK &&
        wal__delta_encode_added(writer->chunk) != WAL__DELTA_OK) {
        status = append_chunk(writer, false, error);
        (void)wal__delta_encode_added(writer->chunk);
    }
    writer->copy->own++;
    return status;
}

static enum wal_status write_shared(struct copy_writer *writer,
                                    struct wal_error *error)
{
    bool is_named = !advance_branch(writer);
    enum wal__delta_status delta_status = WAL__DELTA_FULL;
    enum wal_status status = WAL_OK;

    if (writer->chunk->line_count < CHUNK_LINES) {
        delta_status =
            wal__copy_walk_encode(&writer->walk, writer->chunk,
                                  is_named || writer->chunk->line_count == 0);
    }
    if (delta_status == WAL__DELTA_FULL) {
        status = append_chunk(writer, false, error);
        delta_status =
            wal__copy_walk_encode(&writer->walk, writer->chunk, true);
    }
    if (status != WAL_OK) {
        return status;
    }
    /* wal__copy_walk_next encoded the line: the file or the original
     * changed. */
    if (delta_status != WAL__DELTA_OK) {
        return WAL_ECONFLICT;
    }
    set_id(writer->own.previous_id, writer->walk.base.id);
    set_time(&writer->own, writer->walk.base.timestamp);
    return WAL_OK;
}

static enum wal_status write_lines(struct copy_writer *writer,
                                   struct wal_error *error)
{
    uint64_t lines = writer->copy->lines;
    /* Readers tell own lines from shared ones by the first chunk. */
    enum wal_status status = append_chunk(writer, false, error);

    if (status != WAL_OK) {
        return status;
    }
    while (writer->walk.reader.line < lines) {
        status = wal__copy_walk_next(&writer->walk, error);
        if (status != WAL_OK) {
            return status;
        }
        status = writer->walk.is_shared ? write_shared(writer, error)
                                        : write_own(writer, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = append_chunk(writer, true, error);
    return status == WAL_OK ? wal__import_batch_flush(&writer->own.batch, error)
                            : status;
}

/* Own lines among the shared ones may have moved the head. */
static enum wal_status set_head(struct wal_session *session,
                                const char *entry_id, struct wal_error *error)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .entry_id = wal__slice_from_text(entry_id)};
    char current[256] = "";
    enum wal_status status =
        wal_head_get(session, 0, head.name, current, error);

    if ((status == WAL_OK || status == WAL_ENOTFOUND) &&
        strcmp(current, entry_id) != 0) {
        status = wal_head_move(session, &head, NULL, error);
    }
    return status;
}

static enum wal_status write_copy(struct wal__copy_import *copy,
                                  struct wal_session *session,
                                  struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    const struct wal__heap *heap = copy->arena->heap;
    struct copy_writer *writer = wal__heap_zalloc(heap, sizeof(*writer));
    enum wal_status status;

    if (writer == NULL) {
        return wal__no_memory(error);
    }
    writer->copy = copy;
    writer->own.arena = copy->arena;
    writer->own.dialect = copy->probe->dialect;
    writer->own.probe = copy->probe;
    writer->own.file_size = copy->size;
    writer->bytes = wal__heap_alloc(heap, WAL__COPY_CHUNK_MAX);
    writer->chunk = wal__heap_zalloc(heap, sizeof(*writer->chunk));
    if (writer->bytes == NULL || writer->chunk == NULL) {
        status = wal__no_memory(error);
        goto done;
    }
    status = wal_entry_cursor_open(session, &options, &writer->branch, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__import_lines_begin(&writer->own, session, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__copy_walk_begin(&writer->walk, copy, copy->origin, error);
    if (status == WAL_OK) {
        status = write_lines(writer, error);
    }
    wal__copy_walk_end(&writer->walk);
    if (status == WAL_OK) {
        status = set_head(session, copy->head, error);
    }
done:
    copy->appended = writer->own.batch.appended;
    wal_entry_cursor_close(writer->branch);
    wal__import_lines_deinit(&writer->own);
    wal__heap_free(heap, writer->chunk);
    wal__heap_free(heap, writer->bytes);
    wal__heap_free(heap, writer);
    return status;
}

enum wal_status wal__copy_import_write(struct wal__copy_import *copy,
                                       struct wal_session *session,
                                       struct wal__source_match *match,
                                       bool *must_delete,
                                       struct wal_error *error)
{
    /* A concurrent import of the same file leaves a claimed session alone. */
    enum wal_status claim_status = wal_session_claim(session, error);
    enum wal_status status = claim_status == WAL_ECLAIMED
                                 ? claim_status
                                 : write_copy(copy, session, error);

    if (claim_status == WAL_OK) {
        claim_status = wal_session_unclaim(session, NULL);
    }
    if (status == WAL_OK) {
        status = wal__source_compare(copy->arena->heap, copy->store, session, 0,
                                     copy->fd, match, error);
        *must_delete = status == WAL_OK &&
                       (!match->is_prefix || match->lines != copy->lines);
    }
    /* The file or the original changed meanwhile, or is damaged. */
    if (status == WAL_END || status == WAL_ECONFLICT ||
        status == WAL_ECORRUPT) {
        *must_delete = true;
        return WAL_OK;
    }
    return status;
}
