/*
 * backup.h - copies a store while it is written to (docs/keeping.md). The copy is a store, and
 * another call brings it up to date by what is new.
 *
 * Invariant: the copy is at every moment as the last complete backup left it, or as the present one
 * does; a new copy gets its MANIFEST last. While segments that the chain of a stream needs are
 * changed, a guard is its newest segment: its OPEN ends the chain where the last backup did.
 * Removing the guard of the log makes everything valid; what was added to the blob stream before
 * does not matter. Segments that compaction wrote lack what the streams had before, and are shadow
 * segments (SPEC.md 3.11): then MANIFEST with `shadow` is the one step that makes everything valid.
 *
 * One thread per backup.
 */
#ifndef AGENTWAL_ENGINE_CARE_BACKUP_H
#define AGENTWAL_ENGINE_CARE_BACKUP_H

#include "agentwal/admin.h"
#include "engine/store/copy_state.h"
#include "engine/store/core.h"
#include "format/segment/scan.h"

/* The position up to which a log is durable, as far as that is known; 0: it has none. */
uint64_t wal__frozen_end(const struct wal__log *log);

/* The end of a segment that has a successor: where its successor says. One whose successor is
 * damaged, or not the next, ends with its file. */
uint64_t wal__frozen_segment_end(const struct wal__segment *segment,
                                 const struct wal__segment *next);

struct wal__backup_options {
    /* Called after each MiB; false stops with WAL_ECALLBACK. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

enum { WAL__BACKUP_COPY_SIZE = 1024 * 1024 };

/* What is done with a segment. */
enum backup_action {
    BACKUP_KEEP,    /* the copy has it */
    BACKUP_SEAL,    /* all but INDEX, SEAL and trailer */
    BACKUP_EXTEND,  /* its first groups: the rest is written after them */
    BACKUP_COPY,    /* nothing that can be used */
    BACKUP_SHADOW,  /* the same, and compaction wrote it: a shadow segment */
    BACKUP_SHADOWED /* an interrupted backup has written that */
};

/* A segment of the store, as of the moment when the backup began. */
struct backup_source {
    uint64_t id;
    uint64_t salt;
    uint64_t capacity;
    uint64_t end;           /* of the last group to copy */
    bool is_newest;         /* what follows `end` is not of this backup */
    bool is_sealed;         /* and ends at `end` */
    bool is_rewritten;      /* then it is copied whole */
    uint64_t first_id;      /* lowest id that it replaces */
    uint64_t last_sequence; /* of the segments that it replaces */
    enum backup_action action;
    uint64_t from; /* BACKUP_EXTEND */
    bool seals;    /* INDEX, SEAL and trailer are copied at last */
};

/* A stream of the copy, and of the store. */
struct backup_stream {
    const struct wal__log *log; /* of the store; NULL: it has none */
    struct wal__log dest;       /* env, directory and ids only */
    struct wal__backup_stream_state state;
    bool has_state;
    uint64_t last_sequence;  /* at most, after the backup */
    struct wal__buf sources; /* struct backup_source, ascending */
    struct wal__buf ids;     /* uint64_t: of the files of the copy */
    /* uint64_t: of segments of the copy that the store lacks, with records that the newest one has
     * too: the copy was opened for writing. */
    struct wal__buf repeats;
    /* The guard that an interrupted backup left. */
    struct wal__segment *guard; /* NULL: none */
    /* The newest segment of the copy without the guard, where that needs it; it ends at `cut`, with
     * these facts. NULL: none. */
    struct wal__segment *newest;
    uint64_t cut;
    bool is_exact; /* nothing follows the cut */
    struct wal__scan_result facts;
    /* The plan. */
    bool needs_guard;
    bool changes;
    uint64_t removals;
};

struct backup {
    struct wal__core *core;
    const struct wal__backup_options *options;
    struct wal_store_backup_result *result;
    struct wal__env source; /* read-only */
    struct wal__env dest;
    struct wal__env look; /* dest, read-only */
    struct wal__manifest source_manifest;
    struct wal__manifest manifest; /* of the copy */
    bool is_store;                 /* the copy was complete before */
    bool has_shadows;              /* of this backup */
    struct wal__backup_state state;
    struct wal__file *source_lock; /* LOCK of the store; NULL: it has none */
    struct wal__file *dest_lock;
    struct backup_stream streams[WAL__LOG_COUNT];
    uint8_t *bytes; /* WAL__BACKUP_COPY_SIZE */
    uint64_t done;  /* bytes of segments */
    uint64_t total;
};

static inline size_t backup_source_count(const struct backup_stream *stream)
{
    return stream->sources.size / sizeof(struct backup_source);
}

static inline struct backup_source *backup_source_at(const struct backup_stream *stream, size_t i)
{
    return (struct backup_source *)(void *)stream->sources.data + i;
}

/* The newest segment of the store; NULL: there is none. */
static inline struct backup_source *backup_newest_source(const struct backup_stream *stream)
{
    size_t count = backup_source_count(stream);

    return count == 0 ? NULL : backup_source_at(stream, count - 1);
}

/* --- backup_copy.c -------------------------------------------------------- */

/* The segment of the store with this id; NULL: none. */
struct backup_source *wal__backup_find_source(const struct backup_stream *stream, uint64_t id);
/* Finds what is to be copied of both streams. What a writable handle wrote is durable already. */
enum wal_status wal__backup_freeze(struct backup *backup, struct wal_error *error) WAL_MUST_USE;
/* Opens a segment of the store. WAL_EBUSY: it is not there any more. */
enum wal_status wal__backup_open_source(const struct backup *backup,
                                        const struct backup_stream *stream,
                                        const struct backup_source *source,
                                        struct wal__segment **segment,
                                        struct wal_error *error) WAL_MUST_USE;

/* Chooses the id of the guard, for the state. */
void wal__backup_guard_name(struct backup_stream *stream);
/* Removes it, durably: what was written under it is valid from here on. */
enum wal_status wal__backup_guard_remove(struct backup *backup, struct backup_stream *stream,
                                         struct wal_error *error) WAL_MUST_USE;

/* Writes what was planned; the copy is as it was. */
enum wal_status wal__backup_write(struct backup *backup, struct backup_stream *stream,
                                  struct wal_error *error) WAL_MUST_USE;
/* Seals and removes segments, once what was written is valid. */
enum wal_status wal__backup_tidy(struct backup *backup, struct backup_stream *stream,
                                 struct wal_error *error) WAL_MUST_USE;

/* Opens the copy for writing, or creates its directories. Sets `manifest`, `is_store` and `state`.
 * WAL_EEXISTS: another store or other files; WAL_EINVAL: it is inside the store; WAL_ELOCKED. */
enum wal_status wal__backup_open_dest(struct backup *backup, struct wal_error *error) WAL_MUST_USE;
/* Removes the files in index/ that name the end of the copy. */
enum wal_status wal__backup_remove_derived(const struct backup *backup,
                                           struct wal_error *error) WAL_MUST_USE;
/* Frees its lock. */
void wal__backup_close_dest(struct backup *backup);

#endif
