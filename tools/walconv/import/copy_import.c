/*
 * copy_import.c - finds out what a file is a copy of, and writes it down.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv/import/copy_import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "tools/cli/cli.h"
#include "tools/walconv/import/copy_walk.h"

#define CHUNK_LINES 1024 /* what is lost with a chunk that is damaged */

/* What a file must share with the session that has its id, which it does not
 * name as what it is a copy of. */
#define SHARED_BYTES_MIN 4096

#define HEAD_WINDOW 64 /* lines among which the head is looked for */

/* A line that is shared. */
struct shared {
    uint64_t offset;
    uint64_t line;
    uint64_t bytes; /* shared up to here */
    uint64_t shared;
    char id[WALCONV_ID_SIZE];
};

struct scan {
    struct walconv_walk walk;
    struct shared recent[HEAD_WINDOW];
    uint64_t count;
    uint64_t bytes;
};

static void set(char *to, struct wal_slice id)
{
    snprintf(to, WALCONV_ID_SIZE, "%.*s", (int)id.size,
             id.size > 0 ? (const char *)id.data : "");
}

/* --- finding -------------------------------------------------------------- */

static void record_shared(struct scan *scan)
{
    struct shared *shared = &scan->recent[scan->count++ % HEAD_WINDOW];
    const struct walconv_piece *piece = &scan->walk.piece;

    scan->bytes += piece->size + 1;
    shared->offset = piece->offset;
    shared->line = piece->line;
    shared->bytes = scan->bytes;
    shared->shared = scan->count;
    set(shared->id, scan->walk.base.id);
}

/* Whether the head is at this line, when it is the last. */
static bool moves_head(struct walconv_walk *walk, const struct shared *shared)
{
    const struct walconv_file_probe *probe = walk->copy->probe;
    struct wal__json_span text;
    struct wal__line_info line;

    walconv_reader_seek(&walk->reader, shared->offset, shared->line - 1);
    if (walconv_reader_next(&walk->reader, &walk->piece) <= 0) {
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

/* Where the head is after the lines that are shared; far behind, it is taken
 * for the last line. */
static const struct shared *find_head(struct scan *scan)
{
    uint64_t least = scan->count > HEAD_WINDOW ? scan->count - HEAD_WINDOW : 0;

    for (uint64_t i = scan->count; i > least; i--) {
        const struct shared *shared = &scan->recent[(i - 1) % HEAD_WINDOW];

        if (moves_head(&scan->walk, shared)) {
            return shared;
        }
    }
    return &scan->recent[(scan->count - 1) % HEAD_WINDOW];
}

/* The fork point is where the head is, so that the branch is what is shared,
 * unless there is much behind it. */
static void set_fork_point(struct scan *scan, struct walconv_copy *copy)
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

/* How far the file is a copy of this session's. */
static enum wal_status scan_origin(struct walconv_copy *copy,
                                   struct wal_session *session, uint64_t least,
                                   struct wal_error *error)
{
    struct scan *scan = cli_alloc(sizeof(*scan));
    enum wal_status status;

    memset(scan, 0, sizeof(*scan));
    status = walconv_walk_begin(&scan->walk, copy, session, error);
    while (status == WAL_OK) {
        status = walconv_walk_next(&scan->walk, error);
        if (status == WAL_OK && scan->walk.is_shared) {
            record_shared(scan);
        }
    }
    if (status == WAL_END && scan->count > 0 && scan->bytes >= least &&
        scan->bytes > copy->shared_bytes) {
        copy->origin = session;
        set_fork_point(scan, copy);
    }
    walconv_walk_end(&scan->walk);
    free(scan);
    return status == WAL_END ? WAL_OK : status;
}

/* Whether the session is of a file of this dialect, and not `own`. */
static bool is_candidate(struct wal_session *session, struct wal_session *own,
                         const struct wal__dialect *dialect)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_info mine = {.struct_size = sizeof(mine)};
    struct cli_source source;
    bool may;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        (own != NULL && (wal_session_get_info(own, &mine, NULL) != WAL_OK ||
                         mine.number == info.number)) ||
        !cli_source_parse(info.source, &source)) {
        return false;
    }
    may = strcmp(source.dialect, dialect->name) == 0 &&
          strstr(source.path, "//") == NULL;
    cli_source_deinit(&source);
    return may;
}

static enum wal_status try_origin(struct walconv_copy *copy,
                                  struct wal_session *own, const char *id,
                                  uint64_t least, struct wal_error *error)
{
    struct wal_session *before = copy->origin;
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(copy->store, cli_slice(id), &session, error);

    if (status == WAL_OK && is_candidate(session, own, copy->probe->dialect)) {
        status = scan_origin(copy, session, least, error);
    }
    wal_session_close(copy->origin == session ? before : session);
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status walconv_copy_errno(struct wal_error *error)
{
    error->status = WAL_EIO;
    error->sys_errno = errno;
    snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
    return WAL_EIO;
}

enum wal_status walconv_copy_find(struct walconv_copy *copy,
                                  struct wal_session *own,
                                  struct wal_error *error)
{
    const char *id = copy->probe->session;
    struct walconv_origins origins = {.count = 0};
    enum wal_status status = WAL_OK;
    size_t named;

    if (walconv_origins_read(copy->fd, copy->size, &origins) < 0) {
        status = walconv_copy_errno(error);
    }
    named = origins.count;
    walconv_origins_add(&origins, id, id != NULL ? strlen(id) : 0);
    for (size_t i = 0; status == WAL_OK && i < origins.count; i++) {
        status = try_origin(copy, own, origins.ids[i],
                            i < named ? 1 : SHARED_BYTES_MIN, error);
    }
    walconv_origins_deinit(&origins);
    return status;
}

struct walconv_copy walconv_copy_init(struct wal_store *store, int fd,
                                      uint64_t size,
                                      const struct walconv_file_probe *probe)
{
    return (struct walconv_copy){
        .store = store, .fd = fd, .size = size, .probe = probe};
}

void walconv_copy_deinit(struct walconv_copy *copy)
{
    wal_session_close(copy->origin);
    *copy = walconv_copy_init(copy->store, copy->fd, copy->size, copy->probe);
}

/* --- writing -------------------------------------------------------------- */

struct writing {
    struct walconv_copy *copy;
    struct walconv_walk walk;
    struct walconv_lines own;        /* takes lines of the copy's own */
    struct wal_entry_cursor *branch; /* what is shared */
    struct wal_entry next;           /* the next line there */
    bool has_next;
    struct wal__delta_chunk *chunk;
    uint32_t number;
    uint8_t *bytes;
};

/* Appends the chunk. */
static enum wal_status append_chunk(struct writing *writing, bool is_last,
                                    struct wal_error *error)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WAL__COPY_STREAM,
        .type = cli_slice(WAL__COPY_TYPE),
    };
    struct wal_entry found = {.struct_size = sizeof(found)};
    char id[64];
    size_t size = 0;
    enum wal_status status = wal__copy_chunk_encode(
        writing->chunk, writing->number, is_last, writing->bytes, &size);

    if (status != WAL_OK) {
        return status;
    }
    snprintf(id, sizeof(id), "copy-%u", writing->number);
    for (unsigned n = 2;
         wal_entry_cursor_get(writing->own.iter, cli_slice(id), &found, NULL) !=
             WAL_ENOTFOUND ||
         walconv_batch_contains(&writing->own.batch, cli_slice(id));
         n++) {
        snprintf(id, sizeof(id), "copy-%u~%u", writing->number, n);
    }
    entry.id = cli_slice(id);
    entry.payload = (struct wal_slice){writing->bytes, size};
    writing->number++;
    memset(writing->chunk, 0, sizeof(*writing->chunk));
    return walconv_batch_add(&writing->own.batch, &entry, error);
}

/* Whether the shared line is the next one on the branch, which goes on behind
 * it. */
static bool is_next(struct writing *writing)
{
    uint64_t sequence = writing->walk.base.sequence;
    bool is_first = true;

    for (;;) {
        while (!writing->has_next) {
            writing->next =
                (struct wal_entry){.struct_size = sizeof(writing->next)};
            enum wal_status status =
                wal_entry_cursor_next(writing->branch, &writing->next, NULL);
            if (status == WAL_END) {
                return false;
            }
            writing->has_next =
                status == WAL_OK && (writing->next.flags & WAL_ENTRY_LINE) != 0;
        }
        if (writing->next.sequence > sequence) {
            return false;
        }
        writing->has_next = false;
        if (writing->next.sequence == sequence) {
            return is_first;
        }
        is_first = false;
    }
}

static enum wal_status write_own(struct writing *writing,
                                 struct wal_error *error)
{
    enum wal_status status =
        walconv_lines_add(&writing->own, &writing->walk.piece, error);

    if (status == WAL_OK &&
        wal__delta_encode_added(writing->chunk) != WAL__DELTA_OK) {
        status = append_chunk(writing, false, error);
        (void)wal__delta_encode_added(writing->chunk);
    }
    writing->copy->own++;
    return status;
}

static enum wal_status write_shared(struct writing *writing,
                                    struct wal_error *error)
{
    bool is_named = !is_next(writing);
    enum wal__delta_status delta_status = WAL__DELTA_FULL;
    enum wal_status status = WAL_OK;

    if (writing->chunk->line_count < CHUNK_LINES) {
        delta_status =
            walconv_walk_encode(&writing->walk, writing->chunk,
                                is_named || writing->chunk->line_count == 0);
    }
    if (delta_status == WAL__DELTA_FULL) {
        status = append_chunk(writing, false, error);
        delta_status =
            walconv_walk_encode(&writing->walk, writing->chunk, true);
    }
    if (status != WAL_OK) {
        return status;
    }
    /* It did fit when it was looked at. */
    if (delta_status != WAL__DELTA_OK) {
        return WAL_ECONFLICT;
    }
    set(writing->own.previous_id, writing->walk.base.id);
    return WAL_OK;
}

static enum wal_status write_lines(struct writing *writing,
                                   struct wal_error *error)
{
    uint64_t lines = writing->copy->lines;
    /* The first chunk tells what is own from what is shared. */
    enum wal_status status = append_chunk(writing, false, error);

    while (status == WAL_OK && writing->walk.reader.line < lines) {
        status = walconv_walk_next(&writing->walk, error);
        if (status == WAL_OK) {
            status = writing->walk.is_shared ? write_shared(writing, error)
                                             : write_own(writing, error);
        }
    }
    if (status == WAL_OK) {
        status = append_chunk(writing, true, error);
    }
    if (status == WAL_OK) {
        status = walconv_batch_flush(&writing->own.batch, error);
    }
    return status;
}

/* Own lines that stand before the end of what is shared may have moved the
 * head. */
static enum wal_status set_head(struct wal_session *session, const char *at,
                                struct wal_error *error)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .entry_id = cli_slice(at)};
    char now[256] = "";
    enum wal_status status = wal_head_get(session, 0, head.name, now, error);

    if ((status == WAL_OK || status == WAL_ENOTFOUND) && strcmp(now, at) != 0) {
        status = wal_head_move(session, &head, NULL, error);
    }
    return status;
}

static enum wal_status write_copy(struct walconv_copy *copy,
                                  struct wal_session *session,
                                  struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    struct writing *writing = cli_alloc(sizeof(*writing));
    enum wal_status status;

    memset(writing, 0, sizeof(*writing));
    writing->copy = copy;
    writing->own.dialect = copy->probe->dialect;
    writing->own.probe = copy->probe;
    writing->own.file_size = copy->size;
    writing->bytes = cli_alloc(WAL__COPY_CHUNK_MAX);
    writing->chunk = cli_alloc(sizeof(*writing->chunk));
    memset(writing->chunk, 0, sizeof(*writing->chunk));
    status = wal_entry_cursor_open(session, &options, &writing->branch, error);
    if (status == WAL_OK) {
        status = walconv_lines_begin(&writing->own, session, error);
    }
    if (status == WAL_OK) {
        status = walconv_walk_begin(&writing->walk, copy, copy->origin, error);
        if (status == WAL_OK) {
            status = write_lines(writing, error);
        }
        walconv_walk_end(&writing->walk);
    }
    if (status == WAL_OK) {
        status = set_head(session, copy->head, error);
    }
    wal_entry_cursor_close(writing->branch);
    walconv_lines_deinit(&writing->own);
    free(writing->chunk);
    free(writing->bytes);
    free(writing);
    return status;
}

enum wal_status walconv_copy_write(struct walconv_copy *copy,
                                   struct wal_session *session,
                                   struct cli_match *match, bool *must_delete,
                                   struct wal_error *error)
{
    /* Who finds the session meanwhile leaves it alone. */
    enum wal_status claimed = wal_session_claim(session, error);
    enum wal_status status =
        claimed == WAL_ECLAIMED ? claimed : write_copy(copy, session, error);

    if (claimed == WAL_OK) {
        claimed = wal_session_unclaim(session, NULL);
    }
    if (status == WAL_OK) {
        status =
            cli_source_match(copy->store, session, 0, copy->fd, match, error);
        *must_delete = status == WAL_OK &&
                       (!match->is_prefix || match->lines != copy->lines);
    }
    /* The file or the original changed meanwhile, or cannot be read. */
    if (status == WAL_END || status == WAL_ECONFLICT ||
        status == WAL_ECORRUPT) {
        *must_delete = true;
        return WAL_OK;
    }
    return status;
}
