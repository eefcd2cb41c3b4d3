/*
 * salvage.h - the state of a salvage (agentwal/admin.h), and its parts: the first pass over the log
 * and the content (salvage_plan.c); the second, and the call (salvage.c).
 *
 * The first failure of a salvage is sticky: `failed` holds it, every part stops at it, nothing is
 * reported after it, and the functions that return nothing report through it.
 *
 * Threads: one thread per salvage.
 */
#ifndef AGENTWAL_ENGINE_CARE_SALVAGE_H
#define AGENTWAL_ENGINE_CARE_SALVAGE_H

#include "agentwal/admin.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/care/damaged_store.h"
#include "engine/care/record_copy.h"
#include "engine/store/blob.h"

/* As wal_salvage with valid arguments, none of them NULL but the error, on this heap and this io.
 * *result is unchanged on failure. */
enum wal_status wal__salvage(const char *path, const char *out,
                             const struct wal_salvage_options *options,
                             const struct wal__heap *heap, const struct wal__io *io,
                             struct wal_salvage_result *result,
                             struct wal_error *error) WAL_MUST_USE;

/* A session of the damaged store, and its copy in OUT. */
struct wal__salvage_session {
    uint32_t number; /* in the damaged store */
    bool has_record; /* a SESSION record was read */
    bool from_index; /* its SESSION record is lost; an index had its texts */
    bool is_deleted; /* in the damaged store */
    bool is_needed;  /* it or a fork of it is not deleted */
    bool is_copied;  /* its copy was created, or could not be */
    bool is_removed; /* its copy was deleted again */
    /* The newest SESSION record after the first pass, and the one that was read last in the second.
     * Its texts point into payload, which is of the heap.
     */
    struct wal__session_record record;
    uint8_t *payload;
    uint32_t fork_source;
    uint64_t rewind_sequence;   /* of the newest version of its rewind journal */
    struct wal_session *handle; /* in OUT; NULL: it could not be created */
    char id[WAL_ID_SIZE];       /* in OUT */
};

/* A record that may not be in OUT, with its parent. */
struct wal__salvage_lost {
    uint64_t sequence;
    uint64_t parent;
    uint8_t type;
};

/* An entry that was copied, with its id. */
struct wal__salvage_written {
    uint64_t sequence;
    size_t id; /* offset in written_ids; SIZE_MAX: OUT refused the entry */
};

/* An entry without its content, which compaction erased. */
struct wal__salvage_erased {
    uint64_t sequence;
    uint32_t session;
};

/* A record of the blob stream whose content could not be copied. */
struct wal__salvage_bad_blob {
    const struct wal__damaged_segment *segment;
    uint64_t offset;
    struct wal__frame frame;
    struct wal__digest digest;
    const char *reason;
};

struct wal__salvage {
    const struct wal_salvage_options *options;
    const struct wal__heap *heap;
    /* Its large blocks are files: payloads of the blob stream, ids. */
    const struct wal__heap *large_heap;
    struct wal__spill spill;
    struct wal__damaged_store damaged;
    struct wal_store *out;
    struct wal__blob_store *out_blobs; /* the blob stream of OUT */
    enum wal_status failed;
    struct wal_error why;   /* the error of `failed` */
    struct wal_error error; /* of the last call that writes or reads OUT */
    struct wal_salvage_result result;
    uint64_t done; /* bytes read, for the progress */
    uint64_t total;
    uint64_t reported; /* value of `done` in the last progress call */
    struct wal__salvage_session **sessions;
    uint32_t session_count;
    uint32_t session_capacity;
    struct wal__hashmap session_map; /* hash of the number -> rank */
    struct wal__salvage_lost *lost;
    uint32_t lost_count;
    uint32_t lost_capacity;
    struct wal__hashmap lost_map;         /* hash of the sequence -> rank */
    struct wal__buf scanned;              /* uint64_t: sequences of the segment that the
                                   * first pass reads, ascending */
    struct wal__salvage_written *written; /* ascending by sequence */
    uint32_t written_count;
    uint32_t written_capacity;
    struct wal__buf written_ids; /* each terminated by NUL */
    struct wal__buf erased;      /* struct wal__salvage_erased, ascending */
    uint32_t batch_session;
    struct wal__copy_batch batch; /* its payloads are of large_heap */
    struct wal__blob_put_result put;
    struct wal__buf content; /* of one chunk, decoded */
    struct wal__buf base;    /* of its base chunk */
    struct wal__salvage_bad_blob *bad_blobs;
    uint32_t bad_blob_count;
    uint32_t bad_blob_capacity;
    struct wal__hashmap lost_blobs; /* hashes of lost digests -> 0 */
};

/* --- salvage_plan.c ------------------------------------------------------- */

/* Records a failure of the salvage unless there is one; *error may be NULL. */
void wal__salvage_fail(struct wal__salvage *salvage, enum wal_status status,
                       const struct wal_error *error);
/* Returns whether a call that filled salvage->error succeeded. A fatal status fails the salvage. */
bool wal__salvage_try(struct wal__salvage *salvage, enum wal_status status);
/* Reports something that is missing in OUT or was changed. An empty session or entry means none. */
void wal__salvage_report(struct wal__salvage *salvage, enum wal_salvage_kind kind,
                         const char *session, const char *entry, const char *reason, ...)
    __attribute__((format(printf, 5, 6)));
/* As wal__salvage_try; also reports a refusal: the reason, then the text of salvage->error. */
bool wal__salvage_check(struct wal__salvage *salvage, enum wal_status status,
                        enum wal_salvage_kind kind, const char *session, const char *entry,
                        const char *reason, ...) __attribute__((format(printf, 6, 7)));
/* Reports that an entry, or a fork if the id is empty, has a new parent, or none if it is empty. */
void wal__salvage_report_reparented(struct wal__salvage *salvage, const char *session,
                                    const char *entry, uint64_t lost_parent, const char *parent);
/* Counts and sends a report. */
void wal__salvage_send_report(struct wal__salvage *salvage,
                              const struct wal_salvage_report *report);
/* The progress function of a struct wal__damaged_visitor. */
enum wal_status wal__salvage_progress(void *ctx, uint64_t size);

/* Reads the log once: which sessions it has and which of them are needed, and which records are
 * lost. */
void wal__salvage_plan(struct wal__salvage *salvage);
/* Reports the damaged ranges that were found since rank `from`. */
void wal__salvage_report_damage(struct wal__salvage *salvage, uint32_t from);
/* Returns the session, or NULL. */
struct wal__salvage_session *wal__salvage_find_session(const struct wal__salvage *salvage,
                                                       uint32_t number);
/* Returns the session; added if it is missing. NULL: the salvage failed. */
struct wal__salvage_session *wal__salvage_get_session(struct wal__salvage *salvage,
                                                      uint32_t number);
/* Decodes a SESSION payload in the layout of the segment's format version, and keeps it in place of
 * the session's record. False, without a change: it is not well-formed, or has another id than the
 * session; or the salvage failed. */
bool wal__salvage_keep_session(struct wal__salvage *salvage,
                               const struct wal__damaged_segment *segment,
                               struct wal__salvage_session *session, struct wal__span payload);
void wal__salvage_plan_deinit(struct wal__salvage *salvage);

/* Adds an entry that is about to be appended. */
void wal__salvage_add_written(struct wal__salvage *salvage, uint64_t sequence, struct wal__span id);
/* Records that OUT refused an entry: its children get its parent. */
void wal__salvage_remove_written(struct wal__salvage *salvage, uint64_t sequence, uint64_t parent);
/* Returns the id of the entry with that sequence, or of its nearest ancestor in OUT, until the next
 * addition; *sequence is then the ancestor's. "": a root, or no ancestor is known. */
const char *wal__salvage_find_ancestor(const struct wal__salvage *salvage, uint64_t *sequence);
/* Counts the lost entries. */
void wal__salvage_count_lost(struct wal__salvage *salvage);
void wal__salvage_ancestors_deinit(struct wal__salvage *salvage);

/* Copies all readable content; call it between the passes over the log. */
void wal__salvage_blobs(struct wal__salvage *salvage);
/* Why the content of a digest is not in OUT. */
const char *wal__salvage_blob_fault(const struct wal__salvage *salvage,
                                    const struct wal__digest *digest);
/* Why content that a record of the log refers to cannot be read; NULL: it is in OUT with that
 * size. */
const char *wal__salvage_check_content(struct wal__salvage *salvage,
                                       const struct wal__digest *digest, uint64_t size);
void wal__salvage_blobs_deinit(struct wal__salvage *salvage);

#endif
