/*
 * internal.h - the records of the reference, and the questions that
 * its files ask of them (reference.h).
 */
#ifndef AGENTWAL_TESTS_SIM_REFERENCE_INTERNAL_H
#define AGENTWAL_TESTS_SIM_REFERENCE_INTERNAL_H

#include "format/bytes/assert.h"
#include "tests/sim/reference/reference.h"

enum ref_kind {
    REF_SESSION,  /* a session as it is from now on */
    REF_FORK,     /* after the first REF_SESSION of a fork */
    REF_ENTRY,    /* an entry */
    REF_HEAD,     /* a head was moved, made or removed */
    REF_DOC,      /* a document has a new version, or is deleted */
    REF_REDACT,   /* after the entry that redacts: of the target's session */
    REF_RESTORE,  /* the redactions before it are undone: likewise */
    REF_TOMBSTONE /* the session is deleted */
};

/* The fields of a session. */
struct ref_session {
    struct wal_session_options stored_options; /* texts are copies */
    bool is_fork;
    bool is_trashed;
};

struct ref_record {
    enum ref_kind kind;
    uint32_t session; /* number; REFERENCE_STORE for the store's documents */
    uint32_t stream;
    bool moves_head;  /* REF_ENTRY: the head `main` is here now */
    bool is_delta;    /* REF_ENTRY: provisional */
    bool is_dropped;  /* REF_ENTRY: a delta that compaction dropped */
    bool is_doubtful; /* REF_ENTRY: a delta that compaction may have dropped */
    bool ends;        /* the last record of its operation */
    uint32_t other;   /* REF_FORK: the session it was forked from */
    /* The sequence number of: REF_ENTRY the parent, REF_FORK the fork point, REF_HEAD the entry it
     * points to, REF_REDACT and REF_RESTORE the target; or 0. */
    uint64_t target;
    uint64_t by; /* REF_REDACT: the sequence number of the redaction */
    /* The sequence number of: REF_ENTRY the newest REF_REDACT or REF_RESTORE of it, REF_REDACT and
     * REF_RESTORE the one before it, REF_SESSION the record of the session before; or 0. */
    uint64_t known;
    /* The sequence numbers of the session's records before and after it, or
     * of the store's; or 0. */
    uint64_t previous;
    uint64_t next;
    uint64_t shown; /* is_dropped: a process has it still; see hidings */
    int64_t earliest_ms;
    int64_t latest_ms;
    struct wal_slice user_text; /* REF_ENTRY: of a user's message, or none */
    union {                     /* copies of what the caller gave */
        struct ref_session *session_state;
        struct wal_entry *entry;
        struct wal_head *head;
        struct wal_doc *doc;
        struct wal_slice reason; /* REF_REDACT */
    };
};

/* Sequence numbers of records of a session, or 0: so that the list need not be searched for what is
 * asked for most. */
struct ref_places {
    uint64_t first;   /* REF_SESSION */
    uint64_t current; /* likewise */
    uint64_t tombstone;
    uint64_t oldest; /* of any kind */
    uint64_t newest; /* likewise */
    uint64_t count;  /* of all kinds */
};

/* The record with the sequence number n is records[n - 1]. */
struct reference {
    struct ref_record *records;
    struct ref_places *places; /* by number; at 0 those of the store */
    uint32_t places_count;
    uint32_t session_count; /* sessions have the numbers from 1 to it */
    uint64_t count;
    uint64_t capacity;
    uint64_t durable;   /* the records up to this one are durable */
    bool is_in_doubt;   /* what is written may not be there */
    bool avoids_deltas; /* no delta is picked */
    bool shows_dropped; /* all of them */
    uint64_t hidings;   /* times that all were hidden: ref_record.shown of those
                       * that are shown since is one more */
    uint32_t schema_version;
    int64_t earliest_ms;
    int64_t latest_ms;
    /* The times of sessions as the engine has them, by number; they are used while there are as
     * many records as when they were learned. */
    int64_t *learned;
    uint32_t learned_count;
    uint64_t learned_at;
};

/* reference.c */

/* A new record at the end of the list, zeroed but for these. */
struct ref_record *ref_add(struct reference *ref, enum ref_kind kind, uint32_t session);
/* Ends an operation: commits what it wrote as one unit, or, if it was refused, removes what it
 * wrote after the first `before` records. */
enum wal_status ref_end_operation(struct reference *ref, uint64_t before, bool durable,
                                  enum wal_status status);
struct wal_slice ref_copy(struct wal_slice text);
struct wal_slice ref_text(const char *text);
bool ref_begins_with(struct wal_slice text, struct wal_slice prefix);
/* Fills the error and answers the status; `actual` as in struct wal_error. */
enum wal_status ref_fail(struct wal_error *error, enum wal_status status, struct wal_slice actual);
/* WAL_ECONFLICT. */
enum wal_status ref_conflict(struct wal_error *error, enum wal_expectation expectation,
                             struct wal_slice actual);
enum wal_status ref_conflict_number(struct wal_error *error, enum wal_expectation expectation,
                                    uint64_t actual);
enum wal_status ref_fail_number(struct wal_error *error, enum wal_status status, uint64_t actual);

/* Limits of SPEC.md that the calls check: WAL_OK, WAL_ETOOBIG, WAL_EINVAL. */
enum wal_status ref_check_text(struct wal_slice text, uint64_t limit);
enum wal_status ref_check_json(struct wal_slice text, uint64_t limit, bool object);

/* The current fields of a session, and their record. */
const struct ref_record *ref_session_current(const struct reference *ref, uint32_t number);
/* The record of the fork that made the session, or null. */
const struct ref_record *ref_fork_of(const struct reference *ref, uint32_t number);
/* The session with this id that is not deleted; 0: none. */
uint32_t ref_find_session(const struct reference *ref, struct wal_slice id);
/* Whether the session takes writes: it is there, and has the schema version that the store was
 * opened with. */
enum wal_status ref_check_writable(const struct reference *ref, uint32_t number,
                                   struct wal_error *error);
/* A change of what the session says: whether it can be made, and making it. */
enum wal_status ref_check_change(const struct reference *ref, uint32_t number,
                                 const struct wal_session_change *change, struct wal_error *error);
void ref_change(struct reference *ref, uint32_t number, const struct wal_session_change *change);
enum wal_status ref_fork(struct reference *ref, uint32_t number, struct wal_slice at,
                         const struct wal_session_options *options, uint32_t *fork,
                         struct wal_error *error);

/* read.c */

/* The entry with this id that the session sees; 0: none. */
uint64_t ref_find_entry(const struct reference *ref, uint32_t number, struct wal_slice id);
/* The same, of entries that others may name: no delta. */
uint64_t ref_find_named(const struct reference *ref, uint32_t number, struct wal_slice id);
struct wal_slice ref_entry_id(const struct reference *ref, uint64_t sequence);
bool ref_is_type(const struct ref_record *record, const char *type);
/* The number of entries above it on the way to its root. */
uint64_t ref_depth(const struct reference *ref, uint64_t sequence);
/* Whether `above` is on the way from `sequence` to its root, or is it. */
bool ref_is_ancestor(const struct reference *ref, uint64_t above, uint64_t sequence);
/* The beginning of a user's message; 0: it is none, or has no text. */
uint32_t ref_user_text(const struct wal_entry *entry, char out[160]);
/* The text of a session's first user message as the list shows it; copied to `out`, its size is
 * answered. Adds WAL_SESSION_NO_TEXT to the flags when it was redacted. */
uint32_t ref_first_text(const struct reference *ref, uint32_t number, char out[160],
                        uint32_t *flags);

/* write.c */

/* The entry that the head points to; 0: none. */
uint64_t ref_head(const struct reference *ref, uint32_t number, uint32_t stream,
                  struct wal_slice name, uint64_t limit);

/* The record with this sequence number; null for 0. */
static inline const struct ref_record *ref_at(const struct reference *ref, uint64_t sequence)
{
    WAL__ASSERT(sequence <= ref->count);
    return sequence == 0 ? NULL : &ref->records[sequence - 1];
}

/* The records of a session, or of the store, from the oldest one on, and from the newest one back:
 * REF_EACH and REF_EACH_BACK of the sequence number i. */
struct ref_places ref_places_of(const struct reference *ref, uint32_t number);
#define REF_EACH(i, ref, number) \
    for (uint64_t i = ref_places_of(ref, number).oldest; (i) != 0; (i) = ref_at(ref, i)->next)
#define REF_EACH_BACK(i, ref, number) \
    for (uint64_t i = ref_places_of(ref, number).newest; (i) != 0; (i) = ref_at(ref, i)->previous)

/* The sequence number of a record of the list. */
static inline uint64_t ref_sequence(const struct reference *ref, const struct ref_record *record)
{
    return (uint64_t)(record - ref->records) + 1;
}

#endif
