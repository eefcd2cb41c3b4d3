/*
 * salvage.h - the parts of a salvage: the pass over the log
 * (walcheck_salvage.c), sessions (walcheck_sessions.c), entries
 * (walcheck_rescue.c), heads, documents and redactions (walcheck_state.c),
 * content and checkpoints (walcheck_contents.c), and the report
 * (walcheck_salvaged.c).
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_SALVAGE_H
#define AGENTWAL_TOOLS_WALCHECK_SALVAGE_H

#include "agentwal.h"
#include "tools/walcheck/pack.h"

/* A session in OUT. */
struct salvage_session {
    uint32_t number;            /* in the damaged store */
    struct wal_session *handle; /* null: it could not be made */
    char *id;
    bool deleted;           /* again */
    uint64_t last_sequence; /* of its newest entry in OUT, */
    char *last_id;          /* and its id */
};

/* The SESSION record that was read last. */
struct salvage_header {
    uint32_t number; /* 0: none yet */
    uint8_t *bytes;
    struct wal__session_record record; /* its texts lie in bytes */
};

/* A REDACT record; its redaction entry, when that is left, says the same. */
struct salvage_add_redaction {
    uint32_t owner;  /* number of the target's session, */
    uint32_t holder; /* and of the entry's */
    char *entry;
    char *target;
    char *reason;
};

/* Something that is not in OUT, or not as it was. */
struct salvage_note {
    char *session;
    char *entry;
    char *reason;
};

/* An entry that is in OUT: where its bytes are in the damaged store. */
struct salvage_written {
    uint64_t sequence;
    const struct check_segment *segment;
    uint64_t offset;
};

/* An entry that waits to be appended; its slices point into `bytes`. */
struct salvage_pending {
    struct wal_entry entry;
    uint8_t *bytes;
    void *map; /* a payload out of line; null: it is in bytes */
    char *parent;
    uint64_t sequence;
    uint64_t parent_sequence;
    uint64_t lost_parent; /* 0: the parent is as it was */
    uint64_t offset;
    uint8_t kind;
};

struct salvage {
    struct check_store *store;
    struct wal_store *out;
    const struct check_segment *segment; /* being read */
    struct salvage_header header;
    struct salvage_session *sessions;
    size_t session_count;
    size_t session_capacity;
    struct check_lost_record *lost; /* by sequence */
    size_t lost_count;
    size_t lost_capacity;
    struct salvage_written *seen; /* by sequence */
    size_t seen_count;
    size_t seen_capacity;
    struct salvage_pending *waiting; /* of one session */
    size_t waiting_count;
    size_t waiting_capacity;
    uint64_t waiting_size;
    uint32_t waiting_session;
    struct cli_file file; /* of `open`, for parents */
    const struct check_segment *open;
    struct salvage_add_redaction *redactions;
    size_t redaction_count;
    size_t redaction_capacity;
    struct salvage_note *notes;
    size_t note_count;
    size_t note_capacity;
    uint64_t sessions_written; /* and not deleted again */
    uint64_t entries_written;
    uint64_t documents_written; /* versions */
    uint64_t blobs_written;
    const char *path; /* of OUT */
    struct check_reader reader;
    struct check_list list;
    uint64_t sessions_skipped; /* deleted sessions that nothing stands on */
    enum wal_status failed;    /* OUT cannot be written: all of it is for
                              * nothing, and nothing more is tried; */
    struct wal_error why;      /* then */
};

void salvage_note(struct salvage *salvage, const char *session,
                  const char *entry, const char *reason, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a failure to write to OUT is one of OUT, and not of what was to be
 * written: then the salvage has failed. */
bool salvage_is_fatal(struct salvage *salvage, enum wal_status status,
                      const struct wal_error *error);
/* An entry, or with an empty id a fork, that stands under another one. */
void salvage_note_reparented(struct salvage *salvage, const char *session,
                             const char *entry, uint64_t lost_parent,
                             const char *parent);

void salvage_report(const struct salvage *salvage, const char *out);
void salvage_notes_deinit(struct salvage *salvage);

/* Which sessions are needed: those that are there, and what they stand on. */
void salvage_mark_needed(struct salvage *salvage);
bool salvage_is_skipped(const struct salvage *salvage, uint32_t number);
/* The session in OUT, or null. */
struct salvage_session *salvage_find_session(const struct salvage *salvage,
                                             uint32_t number);
/* The session in OUT, made now when it is not there. */
struct salvage_session *salvage_session(struct salvage *salvage,
                                        uint32_t number);
/* SESSION: makes the session, or changes it. */
void salvage_header(struct salvage *salvage, uint32_t number,
                    struct wal__span payload);
void salvage_fork(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload);
void salvage_delete(struct salvage *salvage, uint32_t number);
/* Sessions without a record that can be read, and lost deletions. */
void salvage_finish_sessions(struct salvage *salvage);
/* Closes all handles, before OUT is closed. */
void salvage_close_sessions(struct salvage *salvage);
void salvage_sessions_deinit(struct salvage *salvage);

void salvage_head(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload);
void salvage_doc(struct salvage *salvage, const struct wal__frame *frame,
                 struct wal__span payload);
/* Keeps a REDACT until it is known whether its entry is left; */
void salvage_add_redaction(struct salvage *salvage,
                           const struct wal__frame *frame,
                           struct wal__span payload);
/* then redacts anew what lost it. */
void salvage_redo_redactions(struct salvage *salvage);

/* The id, to be freed, of the record of that sequence, or of the nearest
 * above it that is in OUT, whose sequence *sequence then is. Null: a root, or
 * nothing is known. */
char *salvage_nearest_ancestor(struct salvage *salvage, uint64_t *sequence);

/* Takes an entry; it is appended when a batch is full, or by a flush. */
void salvage_entry(struct salvage *salvage, const struct wal__frame *frame,
                   uint64_t offset, const uint8_t *payload);
void salvage_flush(struct salvage *salvage);
void salvage_entries_deinit(struct salvage *salvage);

/* All content that can be read; before the pass. */
void salvage_blobs(struct salvage *salvage);
/* The payload of an entry that is content: mapped until salvage_unmap_payload,
 * or null with why it cannot be had. */
void *salvage_map_payload(struct salvage *salvage,
                          const struct wal__entry_record *record,
                          const char **why);
void salvage_unmap_payload(void *map, uint64_t size);
/* A document of the engine's own. */
void salvage_reserved_doc(struct salvage *salvage,
                          struct salvage_session *session,
                          const struct wal__frame *frame,
                          const struct wal__doc_record *record);
void salvage_contents_deinit(struct salvage *salvage);

#endif
