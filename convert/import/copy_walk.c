/*
 * copy_walk.c - finds the lines that a copy shares with its original.
 *
 * A line is shared when one of the next WAL__COPY_LOOKAHEAD lines of the
 * original has the same content (convert/copy/line_match.h) and the
 * delta fits a chunk.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/copy_walk.h"

#include <string.h>

#include "engine/base/error.h"

#define WINDOW_SIZE ((size_t)1 << 20)

/* Longer lines are not compared field by field. */
#define COMPARE_SIZE_MAX ((uint64_t)256 << 10)

enum wal_status wal__copy_walk_begin(struct wal__copy_walk *walk,
                                     const struct wal__copy_import *copy,
                                     struct wal_session *origin,
                                     struct wal_error *error)
{
    enum wal_status status;

    memset(walk, 0, sizeof(*walk));
    walk->copy = copy;
    wal__line_reader_init(&walk->reader, copy->arena->heap, copy->fd,
                          copy->size, false, 0);
    walk->scratch = wal__heap_zalloc(copy->arena->heap, sizeof(*walk->scratch));
    if (walk->scratch == NULL) {
        return wal__no_memory(error);
    }
    status = wal__source_lines_open(&walk->lines, copy->arena->heap, origin, 0,
                                    error);
    walk->lines.copy.return_originals = true;
    return status;
}

static void close_base(struct wal__copy_walk *walk)
{
    wal_blob_close(walk->blob);
    walk->blob = NULL;
}

void wal__copy_walk_end(struct wal__copy_walk *walk)
{
    close_base(walk);
    wal__source_lines_close(&walk->lines);
    wal__line_reader_deinit(&walk->reader);
    wal__heap_free(walk->copy->arena->heap, walk->scratch);
    wal__heap_free(walk->copy->arena->heap, walk->window);
}

/* Reads lines of the original until the lookahead is full. Skips lines that
 * cannot be shared: damaged and redacted ones, and, if the original is a copy
 * itself, its own lines before the end of its shared part. */
static enum wal_status fill_lookahead(struct wal__copy_walk *walk,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (walk->lookahead_count < WAL__COPY_LOOKAHEAD) {
        struct wal_entry *entry = &walk->lookahead[walk->lookahead_count];

        status = wal__source_lines_next(&walk->lines, entry, error);
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            continue;
        }
        if (status != WAL_OK) {
            break;
        }
        if (walk->lines.is_copy && !walk->lines.copy.has_ended &&
            !walk->lines.is_shared) {
            continue;
        }
        if ((entry->flags & WAL_ENTRY_REDACTED) == 0) {
            walk->lookahead_count++;
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

static bool fill_window(struct wal__delta_source *source, uint64_t offset)
{
    struct wal__copy_walk *walk =
        (void *)((char *)source - offsetof(struct wal__copy_walk, source));
    uint64_t got = 0;

    if (wal_blob_read(walk->blob, offset, walk->window, WINDOW_SIZE, &got,
                      NULL) != WAL_OK) {
        return false;
    }
    source->data = walk->window;
    source->at = offset;
    source->size = (size_t)got;
    return true;
}

/* Opens a line of the original for comparison. */
static bool open_base(struct wal__copy_walk *walk, const struct wal_entry *base)
{
    close_base(walk);
    walk->source = (struct wal__delta_source){
        .data = base->payload.data,
        .size = (size_t)base->payload.size,
        .total = base->payload_size,
    };
    if ((base->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        return true;
    }
    if (walk->window == NULL) {
        walk->window = wal__heap_alloc(walk->copy->arena->heap, WINDOW_SIZE);
        walk->has_failed = walk->window == NULL;
    }
    if (walk->has_failed) {
        return false;
    }
    walk->source.fill = fill_window;
    return wal_blob_open(walk->copy->store, base->payload_digest, &walk->blob,
                         NULL) == WAL_OK &&
           fill_window(&walk->source, 0);
}

enum wal__delta_status wal__copy_walk_encode(struct wal__copy_walk *walk,
                                             struct wal__delta_chunk *chunk,
                                             bool is_named)
{
    const struct wal__piece *piece = &walk->piece;

    return wal__delta_encode_line(chunk, (const uint8_t *)piece->data,
                                  piece->size, &walk->source,
                                  is_named ? walk->base.id.data : NULL,
                                  is_named ? (size_t)walk->base.id.size : 0);
}

/* Returns true if the copy's line is a copy of `base`. */
static bool is_copy_of(struct wal__copy_walk *walk,
                       const struct wal_entry *base)
{
    const struct wal__piece *piece = &walk->piece;
    struct wal__delta_chunk *chunk = walk->scratch;
    bool is_long = (base->flags & WAL_ENTRY_OUT_OF_LINE) != 0;

    if (base->sequence <= walk->sequence || wal__source_line_is_opaque(base) ||
        (is_long ? piece->size < COMPARE_SIZE_MAX
                 : !wal__line_matches((const uint8_t *)piece->data, piece->size,
                                      base->payload.data,
                                      (size_t)base->payload.size)) ||
        !open_base(walk, base)) {
        return false;
    }
    chunk->ops_size = 0;
    chunk->text_size = 0;
    chunk->uuid_count = 0;
    chunk->line_count = 0;
    chunk->recent.count = 0;
    return wal__copy_walk_encode(walk, chunk, false) == WAL__DELTA_OK;
}

static void find_base(struct wal__copy_walk *walk)
{
    walk->is_shared = false;
    for (size_t i = 0; i < walk->lookahead_count; i++) {
        if (is_copy_of(walk, &walk->lookahead[i])) {
            walk->base = walk->lookahead[i];
            walk->sequence = walk->base.sequence;
            walk->is_shared = true;
            walk->lookahead_count -= i + 1;
            memmove(walk->lookahead, walk->lookahead + i + 1,
                    walk->lookahead_count * sizeof(walk->lookahead[0]));
            return;
        }
    }
}

/* Returns true if the line names its parent: it and the lines below it start a
 * branch that the original does not have. */
static bool has_named_parent(const struct wal__copy_walk *walk)
{
    const struct wal__piece *piece = &walk->piece;
    struct wal__json_span text = wal__line_text(piece->data, piece->size);
    struct wal__line_info line;

    return walk->copy->probe->dialect->read(text.data, text.size, &line,
                                            NULL) == WAL__JSON_OK &&
           line.link == WAL__LINK_EXPLICIT;
}

/* The header line identifies the file's own session and is never shared. */
static bool is_header(const struct wal__copy_walk *walk)
{
    return walk->nonblank == 1 &&
           walk->copy->probe->dialect != &wal__dialect_claude;
}

enum wal_status wal__copy_walk_next(struct wal__copy_walk *walk,
                                    struct wal_error *error)
{
    int got = wal__line_reader_next(&walk->reader, &walk->piece);
    struct wal__json_span text;
    enum wal_status status;

    if (got < 0) {
        return wal__import_errno(error);
    }
    if (got == 0 || !walk->piece.has_newline) {
        return WAL_END;
    }
    text = wal__line_text(walk->piece.data, walk->piece.size);
    walk->nonblank += wal__line_is_blank(text.data, text.size) ? 0 : 1;
    status = fill_lookahead(walk, error);
    if (status != WAL_OK) {
        return status;
    }
    walk->is_shared = false;
    if (!is_header(walk)) {
        find_base(walk);
    }
    if (walk->has_failed) {
        return wal__no_memory(error);
    }
    walk->own_run = walk->is_shared ? 0 : walk->own_run + 1;
    return walk->is_shared || (walk->own_run <= WAL__COPY_OWN_RUN_MAX &&
                               !has_named_parent(walk))
               ? WAL_OK
               : WAL_END;
}
