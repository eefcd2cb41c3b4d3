/*
 * transfer.h - the state of a transfer (agentwal/transfer.h) and its parts: the call, the plan and
 * branches (transfer.c); reading and comparing the records of both stores (transfer_records.c);
 * repeating them (transfer_copy.c).
 *
 * The first failure of the whole transfer is sticky: `failed` holds it, and every part stops at it.
 * Threads: one thread per transfer.
 */
#ifndef AGENTWAL_ENGINE_CARE_TRANSFER_H
#define AGENTWAL_ENGINE_CARE_TRANSFER_H

#include <string.h>

#include "agentwal/transfer.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/base/sha256.h"
#include "engine/care/record_copy.h"
#include "engine/session/session.h"
#include "engine/store/blob.h"
#include "format/bytes/assert.h"

/* What the other store has of a session. */
enum wal__transfer_state {
    WAL__TRANSFER_NEW,
    WAL__TRANSFER_INCOMPLETE, /* an earlier transfer was stopped */
    WAL__TRANSFER_PRESENT,    /* a beginning, or all of it */
    WAL__TRANSFER_AHEAD,      /* more entries: it stays as it is */
    WAL__TRANSFER_REFUSED
};

struct wal__transfer_session {
    uint32_t number; /* in `from`, as the others */
    uint32_t rank;   /* of the session in the transfer */
    uint32_t fork_source;
    uint32_t fork_owner;
    bool is_fork;
    bool is_wanted;    /* else only forks of it are */
    bool is_temporary; /* it is deleted when its forks are complete */
    bool is_removed;
    bool is_continued; /* entries are added to a present session */
    uint8_t state;     /* enum wal__transfer_state */
    bool is_complete;
    uint64_t seen;          /* sequence number of `from` that the plan saw it up to */
    uint64_t fork_record;   /* sequence of its FORK record */
    uint64_t fork_point;    /* sequence of an entry; 0: none */
    uint64_t fork_position; /* of the FORK record that names fork_point */
    /* What forks need of a session that is not wanted: the highest sequence of an entry, and the
     * sequence that documents are below. */
    uint64_t entry_limit;
    uint64_t document_limit;
    /* What forks see through it of its sources: the highest fork point (0: none), its owner, and
     * the FORK record that names it. */
    uint64_t through_point;
    uint64_t through_position;
    uint32_t through_owner;
    bool is_lowered;            /* fork_point is what forks see through it */
    uint64_t left;              /* events that were not repeated yet */
    uint64_t entries;           /* that were added */
    uint64_t documents;         /* versions that were added */
    struct wal_session *handle; /* in `to`; NULL: not created */
    struct wal_error *why;      /* of a refusal; heap */
    struct wal_session *trunk;  /* of a branch: the session of this id in `to`;
                                 * NULL: no branch */
    char id[WAL_ID_SIZE];
    char copy_id[WAL_ID_SIZE];      /* in `to`: of a branch another one */
    char branch_point[WAL_ID_SIZE]; /* the last common entry; "": none */
};

/* What `to` has of the entries of a session, compared in log order. */
struct wal__transfer_entries {
    uint64_t common;
    uint64_t missing; /* that it lacks, after the common ones */
    /* The last common one of the conversation: its sequence and position in
     * `to`, and the rank in from_records after it. 0: none. */
    uint64_t last;
    uint64_t last_position;
    size_t next;
    bool has_more;  /* `to` has entries after the common ones */
    bool has_other; /* both have */
};

/* A version with which the document of a branch begins, because the trunk has gone on with it. */
struct wal__transfer_restore {
    uint32_t rank;    /* of the session */
    uint32_t is_hide; /* the branch has none; position is one of `to` */
    uint64_t position;
};

/* A record of a session, as its posting says. */
struct wal__transfer_record {
    uint64_t sequence;
    uint64_t position;
    uint64_t parent;
    uint64_t id_hash;
    uint8_t type;
    uint8_t kind;
    uint8_t stream;
    bool is_present; /* `to` has it, or it is not repeated */
};

/* A record that is to be repeated. */
struct wal__transfer_event {
    uint64_t sequence;
    uint64_t position;
    uint32_t rank; /* of the session */
    uint32_t type;
};

/* A redaction of an entry of a session. */
struct wal__transfer_redaction {
    uint64_t target;   /* sequence of the entry */
    uint64_t position; /* of the REDACT record */
    uint64_t id_hash;  /* of the id of the redaction */
    uint32_t rank;     /* of the session */
    uint32_t reserved;
};

/* The records of a session that is compared, in log order, and the entries of it that are redacted:
 * sequences, ascending. */
struct wal__transfer_records {
    struct wal__buf items; /* struct wal__transfer_record */
    struct wal__buf hidden;
    uint64_t end; /* last sequence number of the log when they were listed */
};

/* The id of the entry that was looked up last. */
struct wal__transfer_id {
    uint64_t sequence; /* 0: none */
    size_t size;
    uint8_t bytes[WAL_ID_SIZE];
};

/* Entries of one session that wait to be appended. */
struct wal__transfer_batch {
    struct wal__transfer_session *session; /* NULL: none */
    struct wal__copy_batch copies;
    size_t parents[WAL__COPY_BATCH]; /* ids in parent_ids; SIZE_MAX: root */
    struct wal__buf parent_ids;      /* each terminated by NUL */
    struct wal__buf remains;         /* payloads of hidden entries */
};

struct wal__transfer {
    struct wal__core *from;
    struct wal__core *to;
    struct wal_store *from_store;
    struct wal_store *to_store;
    const struct wal_transfer_options *options;
    const struct wal__heap *heap;
    const struct wal__heap *large_heap; /* payloads that are blobs */
    struct wal__spill spill;
    enum wal_status failed;
    struct wal_error why;   /* the error of `failed` */
    struct wal_error error; /* of the last call */
    bool was_replaced;      /* compaction replaced segments of `from` */
    uint64_t looked;        /* at `from` (wal__core_look_again) */
    struct wal_transfer_result result;
    struct wal__transfer_session **sessions;
    uint32_t session_count;
    uint32_t session_capacity;
    struct wal__hashmap session_map; /* number -> rank */
    struct wal__buf events;          /* struct wal__transfer_event */
    /* struct wal__transfer_redaction, by target, the first one first. */
    struct wal__buf redactions;
    /* uint32_t: ranks of sessions whose records were repeated, and which stay marked until what was
     * left out is redacted. */
    struct wal__buf waiting;
    struct wal__transfer_records from_records;
    struct wal__transfer_records to_records;
    struct wal__transfer_records trunk_records; /* in `to`, of a branch */
    struct wal__buf restores;                   /* struct wal__transfer_restore */
    struct wal__sha256_alg sha256;
    struct wal__record_buf scratch; /* of records of `from` */
    struct wal__record_buf to_scratch;
    struct wal__transfer_id from_id;
    struct wal__transfer_id to_id;
    struct wal__transfer_batch batch;
    struct wal__buf texts; /* of a session, as `rewrite` made them */
    bool left_out;         /* the last version of a document: a checkpoint */
};

/* Copies an id and terminates it. */
static inline void wal__transfer_copy_id(char out[WAL_ID_SIZE], struct wal__span id)
{
    WAL__ASSERT(id.size < WAL_ID_SIZE);
    if (id.size > 0) {
        memcpy(out, id.data, id.size);
    }
    out[id.size] = '\0';
}

/* --- transfer.c ----------------------------------------------------------- */

/* As wal_store_merge with valid arguments; *result is set in any case.
 * `with_documents`: of the store too. */
enum wal_status wal__transfer_run(struct wal_store *from, struct wal_store *to,
                                  const struct wal_transfer_options *options, bool with_documents,
                                  struct wal_transfer_result *result,
                                  struct wal_error *error) WAL_MUST_USE;

/* Loads the options, with their key to *key, and checks them and the result, both of which may be
 * NULL. */
enum wal_status wal__transfer_load(struct wal_transfer_options *own, struct wal_key *key,
                                   const struct wal_transfer_options *options,
                                   const struct wal_transfer_result *result,
                                   struct wal_error *error) WAL_MUST_USE;

/* --- transfer_records.c --------------------------------------------------- */

/* Records the failure of the transfer unless there is one. */
void wal__transfer_fail(struct wal__transfer *transfer, enum wal_status status);
/* Handles a call on a session that filled transfer->error: a status that ends the transfer fails
 * it, any other refuses the session. True on success. */
bool wal__transfer_try(struct wal__transfer *transfer, struct wal__transfer_session *session,
                       enum wal_status status);
void wal__transfer_refuse(struct wal__transfer *transfer, struct wal__transfer_session *session,
                          enum wal_status status, const char *reason, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns whether the session and the transfer go on. */
bool wal__transfer_goes_on(const struct wal__transfer *transfer,
                           const struct wal__transfer_session *session);
/* Fails the transfer after a callback that asked for it. */
void wal__transfer_check_answer(struct wal__transfer *transfer, int32_t answer,
                                const char *function);

/* The hash of a session's number in session_map. */
static inline uint64_t wal__transfer_hash(uint32_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}
struct wal__transfer_session *wal__transfer_find(const struct wal__transfer *transfer,
                                                 uint32_t number);
/* Reads the summary of a session; without its texts. */
enum wal_status wal__transfer_read_numbers(struct wal__transfer *transfer, struct wal__core *core,
                                           uint32_t number,
                                           struct wal__summary *summary) WAL_MUST_USE;
/* Replaces *records by those of a session. */
enum wal_status wal__transfer_collect(struct wal__core *core, uint32_t number,
                                      struct wal__transfer_records *records,
                                      struct wal_error *error) WAL_MUST_USE;
/* Returns whether an entry of `from` is redacted there. After the plan. */
bool wal__transfer_is_hidden(const struct wal__transfer *transfer, uint64_t sequence);
/* Reads a REDACT record of `from`; *record points into to_scratch or a map. */
enum wal_status wal__transfer_read_redact(struct wal__transfer *transfer, uint64_t position,
                                          struct wal__redact_record *record) WAL_MUST_USE;
/* Returns whether a document is not taken along: an unfinished rewind, and where the session has
 * moved to. */
bool wal__transfer_is_local(uint64_t key_hash);
/* Opens the session of that id in `to`; WAL_ENOTFOUND. */
enum wal_status wal__transfer_open(struct wal__transfer *transfer, const char *id,
                                   struct wal_session **session) WAL_MUST_USE;
/* Looks up the id of an entry that the session sees. */
enum wal_status wal__transfer_read_id(struct wal__core *core, uint32_t number, uint32_t stream,
                                      uint64_t sequence, struct wal__record_buf *scratch,
                                      struct wal__transfer_id *id,
                                      struct wal_error *error) WAL_MUST_USE;
/* Reads an ENTRY; *record points into scratch or a map. */
enum wal_status wal__transfer_read_entry(struct wal__core *core, uint64_t position,
                                         struct wal__record_buf *scratch, struct wal__frame *frame,
                                         struct wal__entry_record *record,
                                         struct wal_error *error) WAL_MUST_USE;
/* Reads a DOC or DOC_DELETE. */
enum wal_status wal__transfer_read_doc(struct wal__core *core, uint64_t position,
                                       struct wal__record_buf *scratch, struct wal__frame *frame,
                                       struct wal__doc_record *record,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns the FORK record of from_records or to_records, or NULL. */
const struct wal__transfer_record *
wal__transfer_find_fork(const struct wal__transfer_records *records);
/* Reads a FORK record; *record points into scratch or a map. */
enum wal_status wal__transfer_read_fork(struct wal__core *core, uint64_t position,
                                        struct wal__record_buf *scratch,
                                        struct wal__fork_record *record,
                                        struct wal_error *error) WAL_MUST_USE;
/* What a session of `to` is that an earlier transfer did not complete. */
enum wal__transfer_mark {
    WAL__TRANSFER_UNMARKED,
    WAL__TRANSFER_MARKED,       /* it is to be completed */
    WAL__TRANSFER_MARKED_SOURCE /* it is to be deleted */
};
/* Sets *same: the session and that of its id in `to` have the same fork point, or none. Where
 * fork_point is lowered, the one in `to` has to see it, if there is any. */
enum wal_status wal__transfer_compare_forks(struct wal__transfer *transfer,
                                            const struct wal__transfer_session *session,
                                            bool *same) WAL_MUST_USE;
/* Marks the entries of from_records, from the rank `first` on, that to_records has, those of
 * session->handle. */
enum wal_status wal__transfer_compare_entries(struct wal__transfer *transfer,
                                              const struct wal__transfer_session *session,
                                              size_t first,
                                              struct wal__transfer_entries *found) WAL_MUST_USE;
enum wal_status wal__transfer_read_mark(struct wal__transfer *transfer, struct wal_session *session,
                                        enum wal__transfer_mark *mark) WAL_MUST_USE;
struct wal_slice wal__transfer_mark_text(enum wal__transfer_mark mark);

enum {
    WAL__TRANSFER_BRANCHES = 1000 /* of one session and name */
};

/* Returns whether sessions that both went on with become branches. */
bool wal__transfer_keeps_both(const struct wal__transfer *transfer);
/* The id of the branch of a session that has this number, from 1. */
void wal__transfer_branch_id(const struct wal__transfer *transfer, struct wal__span id,
                             uint32_t number, char out[WAL_ID_SIZE]);

/* A version of a document. */
struct wal__transfer_version {
    uint64_t key_hash;
    uint64_t record; /* rank of its record */
    struct wal__digest digest;
    bool is_deletion;
    bool is_erased; /* the same: a deletion before a deletion (SPEC.md 3.9) */
};
/* Appends the versions of the records of `core`, sorted by key and then by age. Local ones are left
 * out. */
enum wal_status wal__transfer_list_versions(struct wal__transfer *transfer, struct wal__core *core,
                                            const struct wal__transfer_records *records,
                                            struct wal__buf *out,
                                            struct wal_error *error) WAL_MUST_USE;
/* Returns whether two versions are the same; one that is erased may be any. */
bool wal__transfer_same_version(const struct wal__transfer_version *a,
                                const struct wal__transfer_version *b);
/* The end of the versions that have the key of the one at `at`. */
size_t wal__transfer_key_end(const struct wal__transfer_version *items, size_t count, size_t at);
/* Counts the versions of one key, from oldest to newest, that `to` has of those of `from`, or is
 * ahead of; SIZE_MAX: they differ. */
size_t wal__transfer_count_present(const struct wal__transfer_version *from, size_t from_count,
                                   const struct wal__transfer_version *to, size_t to_count);

/* What to do about a document that was changed on both sides. */
enum wal__transfer_difference {
    WAL__TRANSFER_REFUSE, /* WAL_EEXISTS */
    WAL__TRANSFER_REPORT, /* report it and leave it */
    WAL__TRANSFER_REPEAT  /* repeat all its versions */
};
/* Compares the versions of documents in from_records with those in to_records, key by key, and sets
 * is_present of the former. */
enum wal_status wal__transfer_compare_versions(struct wal__transfer *transfer,
                                               enum wal__transfer_difference difference,
                                               struct wal_error *error) WAL_MUST_USE;

/* Copies what the document of a checkpoint refers to, durably. */
enum wal_status wal__transfer_checkpoint(struct wal__transfer *transfer, struct wal__span id,
                                         struct wal__span value) WAL_MUST_USE;
/* Reads a payload that is a blob into memory of large_heap. */
enum wal_status wal__transfer_payload(struct wal__transfer *transfer,
                                      const struct wal__entry_record *record,
                                      uint8_t **payload) WAL_MUST_USE;

/* --- transfer_copy.c ------------------------------------------------------ */

/*
 * Compares the versions of documents in from_records with what a branch sees: those of
 * trunk_records below `limit`, then those of to_records. Sets is_present, and adds to the restores
 * of the branch. WAL_EEXISTS: a document was changed in the branch and in `from`, unless `repeats`.
 */
enum wal_status wal__transfer_compare_branch_versions(struct wal__transfer *transfer,
                                                      const struct wal__transfer_session *session,
                                                      uint64_t limit, bool repeats) WAL_MUST_USE;
/* Makes the documents of a branch begin as the common ones were. */
void wal__transfer_restore_branch(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session);

/* Creates the session in `to`, as a fork if it is one; its source is there. */
void wal__transfer_create(struct wal__transfer *transfer, struct wal__transfer_session *session);
/* Completes a session whose last record was repeated: entries that wait, heads, texts. */
void wal__transfer_complete(struct wal__transfer *transfer, struct wal__transfer_session *session);
/* Redacts again what is redacted in `from` and visible in a session of `to`. */
void wal__transfer_redact(struct wal__transfer *transfer, struct wal__transfer_session *session);
/* Deletes a temporary session. */
void wal__transfer_remove(struct wal__transfer *transfer, struct wal__transfer_session *session);
void wal__transfer_close_sessions(struct wal__transfer *transfer);

/* Adds an entry to the batch. */
void wal__transfer_entry(struct wal__transfer *transfer, struct wal__transfer_session *session,
                         uint64_t position);
/* Appends the batch. */
void wal__transfer_flush(struct wal__transfer *transfer);

/* Repeats a version of a document; session NULL: of the store. */
void wal__transfer_document(struct wal__transfer *transfer, struct wal__transfer_session *session,
                            uint64_t position);
/* Repeats the documents of the store. */
void wal__transfer_store_documents(struct wal__transfer *transfer);

/* --- bundle.c ------------------------------------------------------------- */

/* Where the temporary store of a bundle is made that is read, unless the caller names a directory:
 * TMPDIR, or /tmp. */
const char *wal__bundle_default_place(void);

/* Removes what processes that were killed left of bundles in a directory of the real system. */
void wal__bundle_sweep(const char *place);

#endif
