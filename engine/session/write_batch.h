/*
 * write_batch.h - the contents of one atomic operation on a session, and how it is resolved under
 * the append lock (SPEC.md 5.2).
 *
 * The frames of an operation are in this order: entries, a REDACT for each entry that is a
 * redaction, documents, heads, and the SESSION record. They are encoded in the caller's thread;
 * resolving sets their parents and sessions, or skips them.
 *
 * Invariant: resolving changes nothing but the operation itself.
 */
#ifndef AGENTWAL_ENGINE_SESSION_WRITE_BATCH_H
#define AGENTWAL_ENGINE_SESSION_WRITE_BATCH_H

#include "engine/session/session.h"

enum { WAL__BATCH_STREAMS = 256, WAL__HEADS_MAX = 4096 };

/* What an entry needs in addition to its frame, which has the same rank. */
struct wal__batch_entry {
    uint64_t id_hash;
    uint32_t flags;         /* enum wal_entry_flag */
    uint32_t parent_offset; /* of the parent's id in `texts` */
    uint8_t parent_size;    /* 0: no parent_id */
    bool has_time;          /* the caller set the timestamp */
};

/* A REDACT frame and the entry that it was made for. */
struct wal__batch_redact {
    uint32_t frame;
    uint32_t entry;
    bool required; /* fail when its target is missing */
};

struct wal__batch_doc {
    uint32_t frame;
    uint32_t number;           /* of the session, or WAL__STORE_NUMBER */
    uint32_t flags;            /* enum wal_doc_flag */
    uint64_t expected_version; /* sequence of that record */
    uint64_t version;          /* out: of the document after the operation */
};

struct wal__batch_head {
    uint32_t frame;
    uint32_t flags;           /* enum wal_head_flag */
    uint32_t expected_offset; /* of the expected entry's id in `texts` */
    uint8_t expected_size;
};

enum {
    WAL__ENTRY_UNDONE = 1u << 30 /* of a copy, with the flags of the entry: a
                                  * redaction that hides nothing */
};

/* What a batch is for. */
enum wal__batch_mode {
    WAL__BATCH_PLAIN,
    WAL__BATCH_MIGRATION, /* any schema version, also when damaged */
    WAL__BATCH_COPY       /* of what another store has: references of entries
                           * are not checked, since that store did, documents
                           * keep their modified_ms if it is not 0, and a head
                           * without a note loses the one it has */
};

struct wal__batch {
    struct wal__core *core;
    uint32_t session;
    bool expects_head;
    bool is_migration; /* WAL__BATCH_MIGRATION */
    bool is_copy;      /* WAL__BATCH_COPY */
    uint16_t expected_head_size;
    struct wal__batch_entry *entries; /* &inline_entry, or allocated */
    struct wal__batch_entry inline_entry;
    struct wal__batch_redact *redacts;
    struct wal__batch_doc *docs;
    struct wal__batch_head *heads;
    uint32_t entry_count;
    uint32_t redact_count;
    uint32_t doc_count;
    uint32_t head_count;
    /* The SESSION record. */
    bool has_change;       /* there is a frame for it */
    bool change_prepared;  /* a change was compared with change_base */
    uint64_t change_base;  /* position of the newest SESSION record then */
    bool conditional;      /* the caller expects a version */
    bool stale_read;       /* out: change_base is not the newest any more */
    uint32_t change_frame; /* valid when has_change */
    uint64_t expected_version;
    bool expects_sequence; /* WAL_CHANGE_EXPECT_SEQUENCE */
    uint64_t expected_sequence;
    struct wal__buf texts; /* ids of parents and expected entries */
    /* hash of a document's key -> rank in docs */
    struct wal__hashmap keys;
    struct wal_ticket ticket; /* if the caller asked for one */
    /* Large: not zeroed on creation. */
    uint8_t expected_head[WAL__ID_MAX];
    /* out: target of the last head before the batch */
    char previous_head[256];
};

/* Checks that a batch has parts, and arrays of permitted length for its counts; reads no array. */
enum wal_status wal__batch_check_counts(const struct wal_batch *batch,
                                        struct wal_error *error) WAL_MUST_USE;

/* Creates the operation of a batch, not submitted. */
enum wal_status wal__batch_create(struct wal_session *session, const struct wal_batch *requested,
                                  const struct wal_append_options *options,
                                  enum wal__batch_mode mode, struct wal__op **op,
                                  struct wal_error *error) WAL_MUST_USE;

/* The newest SESSION record of a session. */
struct wal__current_record {
    struct wal__session_record record; /* texts in scratch or the map */
    struct wal__record_buf scratch;
    uint64_t position; /* 0: it was lost, and the record is made anew */
    uint64_t version;  /* sequence */
};

/* Reads it, or makes one from the catalogue when it was lost. current->scratch is initialised.
 * WAL_ENOTFOUND when the session was deleted. Takes the state lock. */
enum wal_status wal__session_read_current(struct wal__core *core, uint32_t number,
                                          struct wal__current_record *current,
                                          struct wal_error *error) WAL_MUST_USE;

/* Resolves the operation under the append lock and the state lock for writing; ctx is the core. */
enum wal_status wal__batch_resolve(void *ctx, struct wal__op *op);

/* Checks that the caller may write to the session: WAL_ENOTFOUND when it was deleted, WAL_ETRASHED,
 * WAL_EDAMAGED, WAL_ESCHEMA. *summary is set on success and for the last three. State lock for
 * reading. */
enum wal_status wal__session_check_writable(struct wal__core *core, uint32_t number,
                                            bool is_migration, struct wal__summary *summary,
                                            struct wal_error *error) WAL_MUST_USE;

/* The same, and WAL_ECLAIMED when the session has moved. State lock for writing. */
enum wal_status wal__session_check_present(struct wal__core *core, uint32_t number,
                                           struct wal_error *error) WAL_MUST_USE;

/* Returns a frame's payload in the operation's bytes; valid until a frame is added. */
struct wal__span wal__batch_payload(const struct wal__op *op, uint32_t frame);

/* Appends the payload of a compaction_summary entry (SPEC.md 5.6). *first_kept borrows from the
 * options. */
enum wal_status wal__payload_build_compaction(const struct wal_compact_options *options,
                                              struct wal__span *first_kept,
                                              struct wal__buf *payload,
                                              struct wal_error *error) WAL_MUST_USE;

/* Appends the payload of a redaction entry (SPEC.md 5.7). */
enum wal_status wal__payload_build_redaction(struct wal_slice target, struct wal_slice reason,
                                             struct wal__buf *payload,
                                             struct wal_error *error) WAL_MUST_USE;

#endif
