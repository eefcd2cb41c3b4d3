/*
 * salvage.h - the state of a salvage and its parts: the pass over the log
 * (salvage.c), sessions (salvage_sessions.c), entries (salvage_entries.c),
 * heads, documents and redactions (salvage_state.c), content and checkpoints
 * (salvage_blobs.c), and the report (salvage_report.c).
 *
 * Threads: the main thread.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_SALVAGE_H
#define AGENTWAL_TOOLS_WALCHECK_SALVAGE_H

#include "agentwal.h"
#include "tools/walcheck/pack.h"

/* A session in OUT. */
struct salvage_session {
    uint32_t number;            /* in the damaged store */
    struct wal_session *handle; /* null: it could not be created */
    char *id;
    bool deleted;           /* deleted in OUT too */
    uint64_t last_sequence; /* of its newest entry in OUT */
    char *last_id;          /* id of that entry */
};

/* The SESSION record that was read most recently. */
struct salvage_header {
    uint32_t number; /* of its session; 0: none yet */
    uint8_t *bytes;
    struct wal__session_record record; /* its texts point into bytes */
};

/* A REDACT record. Its redaction entry, if it survives, has the same effect. */
struct salvage_redaction {
    uint32_t owner;  /* number of the target's session */
    uint32_t holder; /* number of the redaction entry's session */
    char *entry;
    char *target;
    char *reason;
};

/* A note of the report: what is missing in OUT or was changed. */
struct salvage_note {
    char *session;
    char *entry;
    char *reason;
};

/* An entry that is in OUT, with the place of its bytes in the damaged store. */
struct salvage_written {
    uint64_t sequence;
    const struct check_segment *segment;
    uint64_t offset;
};

/* An entry that waits for its batch; its slices point into `bytes`. */
struct salvage_pending {
    struct wal_entry entry;
    uint8_t *bytes;
    void *map; /* the payload in the blob stream; null: it is in bytes */
    char *parent;
    uint64_t sequence;
    uint64_t parent_sequence;
    uint64_t lost_parent; /* 0: the parent is unchanged */
    uint64_t offset;
    uint8_t kind;
};

struct salvage {
    struct check_store *store;
    struct wal_store *out;
    const struct check_segment *segment; /* the segment that is being read */
    struct salvage_header header;
    struct salvage_session *sessions;
    size_t session_count;
    size_t session_capacity;
    struct check_lost_record *lost; /* ascending by sequence */
    size_t lost_count;
    size_t lost_capacity;
    struct salvage_written *written; /* ascending by sequence */
    size_t written_count;
    size_t written_capacity;
    struct salvage_pending *pending; /* the batch, of one session */
    size_t pending_count;
    size_t pending_capacity;
    uint64_t pending_size;
    uint32_t pending_session;
    struct cli_file file; /* of `open_segment`, to read parents again */
    const struct check_segment *open_segment;
    struct salvage_redaction *redactions;
    size_t redaction_count;
    size_t redaction_capacity;
    struct salvage_note *notes;
    size_t note_count;
    size_t note_capacity;
    uint64_t sessions_written; /* without those deleted again */
    uint64_t entries_written;
    uint64_t documents_written; /* versions */
    uint64_t blobs_written;
    const char *path; /* of OUT */
    struct check_reader reader;
    struct check_list list;
    /* deleted sessions without a fork that is needed */
    uint64_t sessions_skipped;
    /* not WAL_OK: OUT cannot be written, and the salvage stops */
    enum wal_status failed;
    struct wal_error why; /* the error of `failed` */
};

/* Adds a note to the report; an empty session or entry means none. */
void salvage_note(struct salvage *salvage, const char *session,
                  const char *entry, const char *reason, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a status means that OUT cannot be written, as opposed to a record
 * that OUT refuses. Records the failure of the salvage if so. */
bool salvage_is_fatal(struct salvage *salvage, enum wal_status status,
                      const struct wal_error *error);
/* Notes that an entry, or a fork if the id is empty, has a new parent, or none
 * if `parent` is null. */
void salvage_note_reparented(struct salvage *salvage, const char *session,
                             const char *entry, uint64_t lost_parent,
                             const char *parent);

/* Prints the report. */
void salvage_report(const struct salvage *salvage, const char *out);
void salvage_notes_deinit(struct salvage *salvage);

/* Marks the sessions that are needed: those that are not deleted, and all their
 * fork ancestors. */
void salvage_mark_needed(struct salvage *salvage);
bool salvage_is_skipped(const struct salvage *salvage, uint32_t number);
/* The session in OUT, or null. */
struct salvage_session *salvage_find_session(const struct salvage *salvage,
                                             uint32_t number);
/* The session in OUT; creates it if it is missing. Its handle may be null. */
struct salvage_session *salvage_session(struct salvage *salvage,
                                        uint32_t number);
/* Applies a SESSION record: creates the session or updates it. */
void salvage_header(struct salvage *salvage, uint32_t number,
                    struct wal__span payload);
/* Applies a FORK record. */
void salvage_fork(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload);
void salvage_delete(struct salvage *salvage, uint32_t number);
/* Creates the sessions that are known from an index only, and repeats deletions
 * whose tombstone is lost. */
void salvage_finish_sessions(struct salvage *salvage);
/* Closes all session handles; call it before closing OUT. */
void salvage_close_sessions(struct salvage *salvage);
void salvage_sessions_deinit(struct salvage *salvage);

/* Apply a HEAD record, and a DOC or DOC_DELETE record. */
void salvage_head(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload);
void salvage_doc(struct salvage *salvage, const struct wal__frame *frame,
                 struct wal__span payload);
/* Keeps a REDACT record until it is known whether its entry survives. */
void salvage_add_redaction(struct salvage *salvage,
                           const struct wal__frame *frame,
                           struct wal__span payload);
/* Redacts the kept targets whose redaction entry is lost. */
void salvage_redo_redactions(struct salvage *salvage);

/* The id of the entry with that sequence, or of its nearest ancestor in OUT;
 * *sequence is then the ancestor's. The caller frees the id. Null: a root, or
 * no ancestor is known. */
char *salvage_nearest_ancestor(struct salvage *salvage, uint64_t *sequence);

/* Adds an entry to the batch; a full batch or salvage_flush appends it. */
void salvage_entry(struct salvage *salvage, const struct wal__frame *frame,
                   uint64_t offset, const uint8_t *payload);
void salvage_flush(struct salvage *salvage);
void salvage_entries_deinit(struct salvage *salvage);

/* Copies all readable content; call it before the pass over the log. */
void salvage_blobs(struct salvage *salvage);
/* Maps an entry's payload in the blob stream until salvage_unmap_payload. Null
 * if it cannot be read; *reason then says why. */
void *salvage_map_payload(struct salvage *salvage,
                          const struct wal__entry_record *record,
                          const char **reason);
void salvage_unmap_payload(void *map, uint64_t size);
/* Repeats a document whose key is reserved for the engine. */
void salvage_reserved_doc(struct salvage *salvage,
                          struct salvage_session *session,
                          const struct wal__frame *frame,
                          const struct wal__doc_record *record);
void salvage_contents_deinit(struct salvage *salvage);

#endif
