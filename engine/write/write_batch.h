/*
 * write_batch.h - what one atomic operation on a session was asked for, and how
 * it is decided under the lease (SPEC.md 5.2).
 *
 * The frames of an operation stand in this order: entries, a REDACT for each
 * entry that is a redaction, documents, heads, and the session's record. Each
 * part is encoded in the caller's thread; resolving it gives the frames their
 * parents and sessions, or leaves them out.
 *
 * Invariant: resolving changes nothing but the operation itself.
 */
#ifndef AGENTWAL_ENGINE_WRITE_WRITE_BATCH_H
#define AGENTWAL_ENGINE_WRITE_WRITE_BATCH_H

#include "engine/store/session.h"

enum {
    WAL__BATCH_STREAMS = 256,
    WAL__HEADS_MAX = 4096
};

/* An entry, beyond its frame, which has the same rank. */
struct wal__batch_entry {
    uint64_t id_hash;
    uint32_t flags;         /* enum wal_entry_flag */
    uint32_t parent_offset; /* of the parent's id in `texts` */
    uint8_t parent_size;    /* 0: none given */
    bool has_time;          /* the caller gave the time */
};

/* A REDACT frame and the entry that asks for it. */
struct wal__batch_redact {
    uint32_t frame;
    uint32_t entry;
    bool required; /* its target must be there */
};

struct wal__batch_doc {
    uint32_t frame;
    uint32_t number;   /* of the session, or WAL__STORE_NUMBER */
    uint32_t flags;    /* enum wal_doc_flag */
    uint64_t expected; /* version */
    uint64_t version;  /* out, of what was there already */
};

struct wal__batch_head {
    uint32_t frame;
    uint32_t flags;           /* enum wal_head_flag */
    uint32_t expected_offset; /* of the expected entry's id in `texts` */
    uint8_t expected_size;
};

struct wal__batch {
    struct wal__core *core;
    uint32_t session;
    bool expects_head;
    bool is_migration; /* whatever schema the session has, and what it lost */
    uint16_t expected_size;
    struct wal__batch_entry *entries; /* &inline_entry, or allocated */
    struct wal__batch_entry inline_entry;
    struct wal__batch_redact *redacts;
    struct wal__batch_doc *docs;
    struct wal__batch_head *heads;
    uint32_t entry_count;
    uint32_t redact_count;
    uint32_t doc_count;
    uint32_t head_count;
    /* The session's record. */
    bool has_change;       /* there is a frame for it */
    bool change_prepared;  /* a change was asked for, and compared with */
    uint64_t change_base;  /* the record that was newest then */
    bool conditional;      /* the caller expects a version */
    bool stale_read;       /* out: it is not the newest any more */
    uint32_t change_frame; /* valid when `changes` */
    uint64_t expected_version;
    struct wal__buf texts;    /* ids of parents and expected entries */
    struct wal__hashmap keys; /* hash of a document's key -> its rank */
    struct wal_ticket ticket; /* for who asked for one */
    /* Large: not zeroed. */
    uint8_t expected[WAL__ID_MAX];
    char previous_head[256]; /* an answer: of the last head given */
};

/* The batch as it is decided. */
struct wal__resolver {
    struct wal__core *core;
    struct wal__op *op;
    struct wal__batch *batch;
    struct wal__branch_slot *slot;
    struct wal__hashmap batch_ids; /* id hash -> entry; of larger batches */
    uint64_t *sequences;           /* of each entry, new or found */
    uint64_t sequence;             /* the room for that of a batch of one */
    uint64_t next;
    uint32_t heads_created; /* but `main` */
    uint32_t heads_removed;
    uint64_t
        heads_loaded[WAL__BATCH_STREAMS / 64]; /* a bit for each head known */
    uint64_t heads[WAL__BATCH_STREAMS];
};

#define WAL__NO_ENTRY UINT32_MAX

/* append.c: adds the entries to the operation. */
enum wal_status wal__batch_add_entries(struct wal__op *op,
                                       const struct wal_entry *entries,
                                       uint32_t count,
                                       struct wal_error *error) WAL_MUST_USE;

/* batch.c: an operation for a batch, not submitted. `is_migration` as above. */
enum wal_status wal__batch_create(struct wal_session *session,
                                  const struct wal_batch *batch,
                                  const struct wal_append_options *options,
                                  bool is_migration, struct wal__op **op,
                                  struct wal_error *error) WAL_MUST_USE;

/* An operation with an empty subject and room for so many entries. */
struct wal__op *wal__batch_alloc_op(struct wal__core *core, uint32_t session,
                                    uint32_t entry_count);

/* change.c: the session's record with the change in it, as the operation's
 * last frame; nothing when it changes nothing. */
enum wal_status wal__batch_add_change(struct wal__op *op,
                                      const struct wal_session_change *change,
                                      struct wal_error *error) WAL_MUST_USE;

/* resolve.c: decides under the lease; ctx is the core. */
enum wal_status wal__batch_resolve(void *ctx, struct wal__op *op);

/* Whether the session takes writes of this caller; WAL_ENOTFOUND when it was
 * deleted, WAL_EDAMAGED, WAL_ESCHEMA. */
enum wal_status
wal__session_check_writable(struct wal__core *core, uint32_t number,
                            bool is_migration, struct wal__summary *summary,
                            struct wal_error *error) WAL_MUST_USE;

/* A frame's payload as it stands in the operation. */
struct wal__span wal__batch_payload(const struct wal__op *op, uint32_t frame);

/* An id that is kept in `texts`. */
static inline struct wal__span wal__batch_text(const struct wal__batch *batch,
                                               uint32_t offset, size_t size)
{
    struct wal__span span = {size == 0 ? NULL : batch->texts.data + offset,
                             size};

    return span;
}

/* An earlier entry of the batch with this id, or WAL__NO_ENTRY. */
uint32_t wal__resolver_find_in_batch(const struct wal__resolver *resolver,
                                     struct wal__span id);

/* An entry by its id, among those of the batch before the rank `before` or in
 * what the session sees: its sequence and stream. WAL_ENOTFOUND. */
enum wal_status
wal__resolver_find_entry(struct wal__resolver *resolver, struct wal__span id,
                         uint32_t before,
                         struct wal__entry_location *found) WAL_MUST_USE;

/* The id of the entry with this sequence, terminated; empty for 0 and for one
 * that was lost. Fails where it cannot be read. */
enum wal_status wal__resolver_read_id(struct wal__resolver *resolver,
                                      uint32_t stream, uint64_t sequence,
                                      char out[256]) WAL_MUST_USE;

/* reference.c: what an entry's payload names must be there: checked when its
 * parent is known; and who owns a redaction's target. */
enum wal_status wal__resolve_reference(struct wal__resolver *resolver,
                                       uint32_t entry) WAL_MUST_USE;
enum wal_status
wal__resolve_redacts(struct wal__resolver *resolver) WAL_MUST_USE;

/* resolve_parts.c */
enum wal_status wal__resolve_docs(struct wal__resolver *resolver) WAL_MUST_USE;
enum wal_status wal__resolve_heads(struct wal__resolver *resolver) WAL_MUST_USE;
enum wal_status
wal__resolve_change(struct wal__resolver *resolver) WAL_MUST_USE;

#endif
