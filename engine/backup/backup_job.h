/*
 * backup_job.h - a backup while it runs: internal to engine/backup. One thread.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_BACKUP_JOB_H
#define AGENTWAL_ENGINE_BACKUP_BACKUP_JOB_H

#include "engine/backup/backup.h"
#include "engine/store/backup_state.h"
#include "format/segment/scan.h"

enum {
    WAL__BACKUP_COPY_SIZE = 1024 * 1024
};

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
    /* uint64_t: of segments of the copy that the store lacks, with records that
     * the newest one has too: the copy was opened for writing. */
    struct wal__buf repeats;
    /* The guard that an interrupted backup left. */
    struct wal__segment *guard; /* NULL: none */
    /* The newest segment of the copy without the guard, where that needs it;
     * it ends at `cut`, with these facts. NULL: none. */
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
    struct wal__backup_result *result;
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

static inline struct backup_source *
backup_source_at(const struct backup_stream *stream, size_t i)
{
    return (struct backup_source *)(void *)stream->sources.data + i;
}

/* The newest segment of the store; NULL: there is none. */
static inline struct backup_source *
backup_newest_source(const struct backup_stream *stream)
{
    size_t count = backup_source_count(stream);

    return count == 0 ? NULL : backup_source_at(stream, count - 1);
}

/* backup_source.c: the segment of the store with this id; NULL: none. */
struct backup_source *
wal__backup_find_source(const struct backup_stream *stream, uint64_t id);
/* What is to be copied, of both streams. Of a writable handle
 * everything is durable already. */
enum wal_status wal__backup_freeze(struct backup *backup,
                                   struct wal_error *error) WAL_MUST_USE;
/* Opens a segment of the store. WAL_EBUSY: it is not there any more. */
enum wal_status wal__backup_open_source(const struct backup *backup,
                                        const struct backup_stream *stream,
                                        const struct backup_source *source,
                                        struct wal__segment **segment,
                                        struct wal_error *error) WAL_MUST_USE;

/* backup_look.c: finds the guard and the newest segment of the copy, and checks
 * that all of it is in the store. Nothing is changed. */
enum wal_status wal__backup_look(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error) WAL_MUST_USE;

/* backup_plan.c: decides what is done with each segment. */
enum wal_status wal__backup_plan(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error) WAL_MUST_USE;

/* backup_guard.c */
/* Chooses the id of the guard, for the state. */
void wal__backup_guard_name(struct backup_stream *stream);
/* Makes a guard the newest segment of the copy, durably. */
enum wal_status wal__backup_guard_install(struct backup *backup,
                                          struct backup_stream *stream,
                                          struct wal_error *error) WAL_MUST_USE;
/* Removes it, durably: what was written under it is valid from here on. */
enum wal_status wal__backup_guard_remove(struct backup *backup,
                                         struct backup_stream *stream,
                                         struct wal_error *error) WAL_MUST_USE;

/* backup_file.c: each is synced, and copies at most up to the end of the last
 * group unless it says so. */
/* Writes the segment anew, and gives it its name, or that of a shadow segment;
 * all of it when `whole`. Until the name is durable the state has doubt about
 * the segment. */
enum wal_status wal__backup_copy_segment(struct backup *backup,
                                         struct backup_stream *stream,
                                         const struct backup_source *source,
                                         bool whole,
                                         struct wal_error *error) WAL_MUST_USE;
/* Writes what follows source->from. */
enum wal_status
wal__backup_extend_segment(struct backup *backup, struct backup_stream *stream,
                           const struct backup_source *source,
                           struct wal_error *error) WAL_MUST_USE;
/* Writes INDEX, SEAL and trailer. */
enum wal_status wal__backup_seal_segment(struct backup *backup,
                                         struct backup_stream *stream,
                                         const struct backup_source *source,
                                         struct wal_error *error) WAL_MUST_USE;
/* Syncs "log", "pack" or "index" of the copy. */
enum wal_status
wal__backup_sync_directory(const struct backup *backup, const char *name,
                           struct wal_error *error) WAL_MUST_USE;

/* backup_stream.c */
/* Writes what was planned; the copy is as it was. */
enum wal_status wal__backup_write(struct backup *backup,
                                  struct backup_stream *stream,
                                  struct wal_error *error) WAL_MUST_USE;
/* Seals and removes segments, once what was written is valid. */
enum wal_status wal__backup_tidy(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
