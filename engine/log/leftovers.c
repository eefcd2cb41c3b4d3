/*
 * leftovers.c - removing the segments that attempts left which failed (SPEC.md
 * 3.5). Of the first opener, before other processes use the store.
 *
 * Invariant: a segment of the chain is never removed, nor one with a record
 * that the chain does not hold, nor one that anything names.
 */
#include <string.h>

#include "engine/log/index_file.h"
#include "engine/log/replay.h"
#include "format/bytes/assert.h"
#include "format/segment/repeat.h"

struct removal {
    struct wal__log *log;
    struct wal__scan_result *scratch;
    bool has_removed;
};

/* Returns the segment of the chain that follows the same end as `segment`, or
 * NULL. */
static struct wal__segment *find_successor(const struct wal__log *log,
                                           const struct wal__segment *segment)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    for (uint32_t i = table->count; i > 0; i--) {
        struct wal__segment *other = table->segments[i - 1];

        if (other->has_open &&
            other->open.previous_id == segment->open.previous_id &&
            other->open.previous_end == segment->open.previous_end) {
            return other;
        }
    }
    return NULL;
}

/* Whether something proves that the segment was in the chain: an OPEN that
 * names it, or its file in index/. */
static bool is_named(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    const struct wal__io *io = log->env->io;
    struct wal__io_stat ignored;
    char path[WAL__PATH_MAX];
    int err = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        if (table->segments[i]->open.previous_id == id) {
            return true;
        }
    }
    wal__index_path(log->env, log->log_id, id, path);
    return io->path_stat(io->ctx, path, &ignored, &err) != WAL_ENOTFOUND;
}

static struct wal__repeat_segment scanned(struct wal__segment *segment,
                                          struct wal__segment_reader *reader)
{
    struct wal__repeat_segment scanned = {
        .source = {reader, wal__segment_reader_fetch}};

    wal__segment_reader_init(reader, segment);
    wal__replay_init_start(segment, &scanned.start);
    return scanned;
}

static bool is_leftover(const struct removal *removal,
                        struct wal__segment *segment)
{
    struct wal__segment_reader reader;
    struct wal__segment_reader other_reader;
    struct wal__repeat_segment left = scanned(segment, &reader);
    struct wal__repeat_segment other;
    struct wal__segment *successor =
        segment->has_open ? find_successor(removal->log, segment) : NULL;
    enum wal__repeat repeat;

    if (successor == NULL ||
        wal__segment_reopen_file(successor, NULL) != WAL_OK) {
        repeat = wal__segment_repeats(&left, NULL, removal->scratch);
    } else {
        other = scanned(successor, &other_reader);
        repeat = wal__segment_repeats(&left, &other, removal->scratch);
        wal__segment_reader_deinit(&other_reader);
        if (successor != removal->log->tail_segment) {
            wal__segment_release_file(successor);
        }
    }
    wal__segment_reader_deinit(&reader);
    return repeat != WAL__REPEAT_NO;
}

static void consider(struct removal *removal, uint64_t id)
{
    struct wal__log *log = removal->log;
    const struct wal__io *io = log->env->io;
    struct wal__segment *segment = NULL;
    int ignored = 0;

    if (wal__log_segment(log, id) != NULL || is_named(log, id) ||
        wal__segment_open(log->env, log->directory, id, log->uuid, log->class,
                          &segment, NULL) != WAL_OK) {
        return;
    }
    if (is_leftover(removal, segment) &&
        io->unlink(io->ctx, segment->path, &ignored) == WAL_OK) {
        removal->has_removed = true;
    }
    wal__segment_close(segment);
}

void wal__log_remove_leftovers(struct wal__log *log)
{
    struct removal removal = {.log = log};
    struct wal__buf ids;
    uint64_t id;

    if (!log->has_unlinked || log->tail_segment == NULL ||
        log->env->read_only || atomic_load(&log->shared->poison) != 0) {
        return;
    }
    log->has_unlinked = false;
    WAL__ASSERT(log->control->is_first_opener);
    wal__buf_init(&ids, log->env->heap);
    removal.scratch = wal__heap_alloc(log->env->heap, sizeof(*removal.scratch));
    if (removal.scratch != NULL &&
        wal__log_list_ids(log, &ids, NULL) == WAL_OK) {
        for (size_t at = 0; at < ids.size; at += sizeof(id)) {
            memcpy(&id, ids.data + at, sizeof(id));
            if (id < log->tail_segment->id) {
                consider(&removal, id);
            }
        }
    }
    if (removal.has_removed) {
        (void)!wal__log_sync_directory(log, NULL);
    }
    wal__heap_free(log->env->heap, removal.scratch);
    wal__buf_deinit(&ids);
}
