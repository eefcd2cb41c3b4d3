/*
 * salvage.h - the state of a salvage (agentwal/admin.h) and its parts: OUT and
 * the second pass over the log (salvage.c), the first pass (salvage_plan.c),
 * sessions (salvage_sessions.c), entries (salvage_entries.c), their ancestors
 * (salvage_ancestors.c), heads, documents
 * and redactions (salvage_records.c), content (salvage_blobs.c), checkpoints
 * (salvage_checkpoints.c), and the report (salvage_report.c).
 *
 * The first failure of a salvage is sticky: `failed` holds it, every part stops
 * at it, and the functions that return nothing report through it.
 *
 * Threads: one thread per salvage.
 */
#ifndef AGENTWAL_ENGINE_SALVAGE_SALVAGE_H
#define AGENTWAL_ENGINE_SALVAGE_SALVAGE_H

#include "agentwal/admin.h"
#include "engine/base/hashmap.h"
#include "engine/base/sha256.h"
#include "engine/blob/blob.h"
#include "engine/os/spill.h"
#include "engine/salvage/damaged_store.h"

/* As wal_salvage with valid arguments, none of them NULL but the error, on this
 * heap and this io. *result is unchanged on failure. */
enum wal_status wal__salvage(const char *path, const char *out,
                             const struct wal_salvage_options *options,
                             const struct wal__heap *heap,
                             const struct wal__io *io,
                             struct wal_salvage_result *result,
                             struct wal_error *error) WAL_MUST_USE;

/* A session of the damaged store, and its copy in OUT. */
struct wal__salvage_session {
    uint32_t number;  /* in the damaged store */
    bool has_record;  /* a SESSION record was read */
    bool from_index;  /* its SESSION record is lost; an index had its texts */
    bool is_deleted;  /* in the damaged store */
    bool is_needed;   /* it or a fork of it is not deleted */
    bool is_copied;   /* its copy was created, or could not be */
    bool is_removed;  /* its copy was deleted again */
    uint8_t *payload; /* of the newest SESSION record; heap */
    struct wal__session_record record; /* its texts point into payload */
    uint32_t fork_source;
    uint64_t rewind_sequence; /* of the newest version of its rewind journal */
    struct wal_session *handle; /* in OUT; NULL: it could not be created */
    char id[WAL_ID_SIZE];       /* in OUT */
    char last_id[WAL_ID_SIZE];  /* of its newest entry in OUT */
    uint64_t last_sequence;     /* of that entry */
};

/* The SESSION record that was read most recently. */
struct wal__salvage_header {
    uint32_t number; /* of its session; 0: none yet */
    struct wal__buf bytes;
    struct wal__session_record record; /* its texts point into bytes */
};

/* A REDACT record. Its redaction entry, if it survives, has the same effect. */
struct wal__salvage_redaction {
    uint32_t owner;  /* number of the target's session */
    uint32_t holder; /* number of the redaction entry's session */
    char entry[WAL_ID_SIZE];
    char target[WAL_ID_SIZE];
    uint8_t *reason; /* heap */
    size_t reason_size;
};

/* A record that may not be in OUT, with its parent. */
struct wal__salvage_lost {
    uint64_t sequence;
    uint64_t parent;
    uint8_t type;
};

/* An entry that is in OUT, with the place of its bytes in the damaged store. */
struct wal__salvage_written {
    uint64_t sequence;
    const struct wal__damaged_segment *segment;
    uint64_t offset;
};

/* An entry that waits for its batch; its slices point into `bytes`. */
struct wal__salvage_pending {
    struct wal_entry entry;
    uint8_t *bytes;   /* heap */
    uint8_t *payload; /* from the blob stream, of large_heap; or NULL */
    char parent[WAL_ID_SIZE];
    uint64_t sequence;
    uint64_t parent_sequence;
    uint64_t lost_parent; /* 0: the parent is unchanged */
    uint64_t offset;
    uint8_t kind;
};

/* A record of the blob stream whose content could not be copied. */
struct wal__salvage_bad_blob {
    const struct wal__damaged_segment *segment;
    uint64_t offset;
    uint32_t stored_size;
    uint8_t type;
    struct wal__digest digest;
    const char *reason;
};

struct wal__salvage {
    const struct wal_salvage_options *options;
    const struct wal__heap *heap;
    const struct wal__heap *large_heap; /* for payloads of the blob stream */
    struct wal__spill spill;
    const char *path; /* of OUT */
    struct wal__damaged_store damaged;
    struct wal_store *out;
    enum wal_status failed;
    struct wal_error why; /* the error of `failed` */
    struct wal_salvage_result result;
    uint64_t done; /* bytes read, for the progress */
    uint64_t total;
    uint64_t reported; /* value of `done` in the last progress call */
    struct wal__salvage_session **sessions; /* by number */
    uint32_t session_count;
    uint32_t session_capacity;
    struct wal__salvage_lost *lost;
    uint32_t lost_count;
    uint32_t lost_capacity;
    struct wal__hashmap lost_map; /* hash of the sequence -> rank */
    struct wal__buf scanned;      /* uint64_t: sequences of the segment that the
                              * first pass reads, ascending */
    struct wal__salvage_written *written; /* ascending by sequence */
    uint32_t written_count;
    uint32_t written_capacity;
    struct wal__salvage_pending *pending; /* the batch, of one session */
    uint32_t pending_count;
    uint32_t pending_capacity;
    uint64_t pending_size;
    uint32_t pending_session;
    struct wal__salvage_header header;
    struct wal__damaged_file lookup; /* of lookup_segment: reads ids again */
    const struct wal__damaged_segment *lookup_segment;
    struct wal__salvage_redaction *redactions;
    uint32_t redaction_count;
    uint32_t redaction_capacity;
    struct wal__sha256_alg sha256_alg;
    struct wal__blob_put_result put;
    struct wal__buf content; /* of one chunk, decoded */
    struct wal__buf base;    /* of its base chunk */
    struct wal__salvage_bad_blob *bad_blobs;
    uint32_t bad_blob_count;
    uint32_t bad_blob_capacity;
    struct wal__buf lost_blobs; /* uint64_t: hashes of lost digests */
};

/* --- salvage_report.c ----------------------------------------------------- */

/* Records a failure of the salvage unless there is one; *error may be NULL. */
void wal__salvage_fail(struct wal__salvage *salvage, enum wal_status status,
                       const struct wal_error *error);
/* Whether a status means that OUT cannot be written, as opposed to a record
 * that OUT refuses. Records the failure of the salvage if so. */
bool wal__salvage_is_fatal(struct wal__salvage *salvage, enum wal_status status,
                           const struct wal_error *error);
/* Reports something that is missing in OUT or was changed. An empty session or
 * entry means none. */
void wal__salvage_report(struct wal__salvage *salvage,
                         enum wal_salvage_kind kind, const char *session,
                         const char *entry, const char *reason, ...)
    __attribute__((format(printf, 5, 6)));
/* Reports that an entry, or a fork if the id is empty, has a new parent, or
 * none if it is empty. */
void wal__salvage_report_reparented(struct wal__salvage *salvage,
                                    const char *session, const char *entry,
                                    uint64_t lost_parent, const char *parent);
/* Reports a record of the damaged store that cannot be read. */
void wal__salvage_report_frame(struct wal__salvage *salvage,
                               enum wal_salvage_kind kind,
                               const struct wal__damaged_segment *segment,
                               const struct wal__frame *frame, uint64_t offset,
                               const char *reason);
/* Counts a loss and passes it to the caller. */
void wal__salvage_send_report(struct wal__salvage *salvage,
                              const struct wal_salvage_report *report);
/* A struct wal__damaged_visitor's progress. */
enum wal_status wal__salvage_progress(void *ctx, uint64_t size);
/* Returns the text of an error, or of the status if it has none. */
const char *wal__salvage_error_text(enum wal_status status,
                                    const struct wal_error *error);
/* Copies an id and terminates it. */
void wal__salvage_copy_id(char out[WAL_ID_SIZE], struct wal_slice id);
struct wal_slice wal__salvage_text(const char *text);
/* As wal__heap_grow_array; fails the salvage when memory is exhausted, and
 * returns false then. */
bool wal__salvage_grow(struct wal__salvage *salvage, void **items,
                       uint32_t count, uint32_t *capacity, size_t size);

/* --- salvage_plan.c ------------------------------------------------------- */

/* Reads the log once: which sessions it has and which of them are needed, and
 * which records are lost. */
void wal__salvage_plan(struct wal__salvage *salvage);
/* Reports the damaged ranges that were found since rank `from`. */
void wal__salvage_report_damage(struct wal__salvage *salvage, uint32_t from);
/* The session, or NULL. */
struct wal__salvage_session *
wal__salvage_find_session(const struct wal__salvage *salvage, uint32_t number);
/* The session; added if it is missing. NULL: the salvage failed. */
struct wal__salvage_session *
wal__salvage_get_session(struct wal__salvage *salvage, uint32_t number);
/* Decodes a SESSION payload in the layout of the segment's format version. */
bool wal__salvage_decode_session(const struct wal__damaged_segment *segment,
                                 struct wal__span payload,
                                 struct wal__session_record *record);
void wal__salvage_plan_deinit(struct wal__salvage *salvage);

/* --- salvage_ancestors.c -------------------------------------------------- */

/* Adds a record that may not be in OUT, and finds one by its sequence. */
void wal__salvage_add_lost(struct wal__salvage *salvage,
                           const struct wal__salvage_lost *lost);
const struct wal__salvage_lost *
wal__salvage_find_lost(const struct wal__salvage *salvage, uint64_t sequence);
/* Returns the entry of OUT with that sequence, or NULL. */
const struct wal__salvage_written *
wal__salvage_find_written(const struct wal__salvage *salvage,
                          uint64_t sequence);
/* Finds the id of the entry with that sequence, or of its nearest ancestor in
 * OUT; *sequence is then the ancestor's. False, and an empty id: a root, or no
 * ancestor is known. */
bool wal__salvage_find_ancestor(struct wal__salvage *salvage,
                                uint64_t *sequence, char id[WAL_ID_SIZE]);
/* Counts the lost entries. */
void wal__salvage_count_lost(struct wal__salvage *salvage);

/* --- salvage_sessions.c --------------------------------------------------- */

/* The session with its copy in OUT, which is created if it is missing; its
 * handle may be NULL. NULL: the salvage failed. */
struct wal__salvage_session *
wal__salvage_open_session(struct wal__salvage *salvage, uint32_t number);
/* Applies a SESSION record: creates the session or updates it. */
void wal__salvage_header(struct wal__salvage *salvage,
                         const struct wal__damaged_segment *segment,
                         uint32_t number, struct wal__span payload);
/* Applies a FORK record. */
void wal__salvage_fork(struct wal__salvage *salvage,
                       const struct wal__frame *frame,
                       struct wal__span payload);
void wal__salvage_delete(struct wal__salvage *salvage, uint32_t number);
/* Creates the sessions that are known from an index only, and repeats deletions
 * whose tombstone is lost. */
void wal__salvage_finish_sessions(struct wal__salvage *salvage);
/* Closes all session handles; call it before closing OUT. */
void wal__salvage_close_sessions(struct wal__salvage *salvage);

/* --- salvage_records.c ---------------------------------------------------- */

/* Apply a HEAD record, and a DOC or DOC_DELETE record. */
void wal__salvage_head(struct wal__salvage *salvage,
                       const struct wal__frame *frame,
                       struct wal__span payload);
void wal__salvage_doc(struct wal__salvage *salvage,
                      const struct wal__frame *frame, struct wal__span payload);
/* Keeps a REDACT record until it is known whether its entry survives. */
void wal__salvage_add_redaction(struct wal__salvage *salvage,
                                const struct wal__frame *frame,
                                struct wal__span payload);
/* Redacts the kept targets whose redaction entry is lost. */
void wal__salvage_redo_redactions(struct wal__salvage *salvage);

/* --- salvage_entries.c ---------------------------------------------------- */

/* Adds an entry to the batch; a full batch or wal__salvage_flush appends it. */
void wal__salvage_entry(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment,
                        const struct wal__frame *frame, uint64_t offset,
                        const uint8_t *payload);
void wal__salvage_flush(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment);
void wal__salvage_entries_deinit(struct wal__salvage *salvage);

/* --- salvage_blobs.c ------------------------------------------------------ */

/* Copies all readable content; call it between the passes over the log. */
void wal__salvage_blobs(struct wal__salvage *salvage);
/* The blob stream of OUT. */
struct wal__blob_store *
wal__salvage_out_blobs(const struct wal__salvage *salvage);
/* Why the record of content could not be copied; NULL: no such record was
 * read. */
const char *wal__salvage_find_bad_blob(const struct wal__salvage *salvage,
                                       const struct wal__digest *digest);
/* Why content that a record of the log refers to cannot be read; NULL: it is in
 * OUT with that size. */
const char *wal__salvage_check_content(struct wal__salvage *salvage,
                                       const struct wal__digest *digest,
                                       uint64_t size);
/* Reads an entry's payload from the blob stream of OUT into memory of
 * large_heap. NULL if it is lost; *reason is then why. */
uint8_t *wal__salvage_load_payload(struct wal__salvage *salvage,
                                   const struct wal__entry_record *record,
                                   const char **reason);
void wal__salvage_blobs_deinit(struct wal__salvage *salvage);

/* --- salvage_checkpoints.c ------------------------------------------------ */

/* Repeats a document whose key is reserved for the engine. */
void wal__salvage_reserved_doc(struct wal__salvage *salvage,
                               struct wal__salvage_session *session,
                               const struct wal__frame *frame,
                               const struct wal__doc_record *record);

#endif
