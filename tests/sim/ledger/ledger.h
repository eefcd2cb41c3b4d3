/*
 * ledger.h - the expected content of a store, kept outside it: every batch that was ever submitted,
 * what was promised about it, and a comparison with what the store returns.
 *
 * Nothing here guesses where the log ends. A batch is there or not; what is there must be whole,
 * the bytes that were submitted, in the order of each actor, under the parent that follows from the
 * entries before it; and what was promised must be there.
 *
 * A batch is made of entries and parts: documents, heads, a change of what the session says about
 * itself, its deletion. Every part carries its number in what it writes, so that a visible part can
 * be identified. A part that a later part replaced cannot be: heads and changes go in by calls that
 * wait, so that they take place in the order of their numbers. What moves `main` or removes a head
 * is in a batch with a document, whose version gives its position.
 *
 * Calls of several processes may overlap. Then a batch has the moments at which its call began and
 * ended and from which it is known to be there, on the caller's clock, and a session is read while
 * others write to it: ledger_look.
 *
 * One thread. A comparison that fails prints what ledger_set_context said last.
 */
#ifndef AGENTWAL_TESTS_SIM_LEDGER_LEDGER_H
#define AGENTWAL_TESTS_SIM_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"

enum {
    LEDGER_ENTRIES = 4096,
    LEDGER_BATCHES = 2048,
    LEDGER_PARTS = 1024,
    LEDGER_HEADS_MAX = 3, /* heads of a session; the last is of stream 1 */
    LEDGER_BLOBS = 256,
    LEDGER_SESSIONS = 24,
    LEDGER_STREAMS = 2,
    LEDGER_ACTORS = 3,
    LEDGER_TEXT = 24,
    LEDGER_REASON = 4000, /* bytes that a redaction can have */
    LEDGER_PAYLOAD_MAX = 5 * 1024 * 1024
};

#define LEDGER_NONE UINT32_MAX

/* What the callers know about a batch. */
enum ledger_state {
    LEDGER_OPEN,    /* submitted: it may be there or not */
    LEDGER_REFUSED, /* it must not be there */
    LEDGER_WRITTEN, /* it must be there unless the power was cut */
    LEDGER_DURABLE  /* it must be there */
};

enum ledger_parent {
    LEDGER_PARENT_HEAD, /* under the head, wherever that is */
    LEDGER_PARENT_NONE,
    LEDGER_PARENT_ENTRY
};

enum ledger_kind {
    LEDGER_PLAIN,
    LEDGER_USER, /* a message of the user */
    LEDGER_DELTA,
    LEDGER_COMPACTION, /* refers to the first kept entry */
    LEDGER_BRANCH,     /* refers to an entry of another session */
    LEDGER_REDACTION   /* refers to its target */
};

enum ledger_part_kind {
    LEDGER_PUT_DOC,     /* a document */
    LEDGER_DELETE_DOC,  /* the document that `target`, a part, put */
    LEDGER_MOVE_HEAD,   /* moves the head `key` to the entry `target` */
    LEDGER_REMOVE_HEAD, /* removes it */
    /* moves `main` of stream `key` to `target`, or removes it */
    LEDGER_MOVE_MAIN,
    LEDGER_UPDATE,        /* of metadata, title and cwd */
    LEDGER_DELETE_SESSION /* deletes the session */
};

/* The faults since the acknowledgements. */
enum ledger_loss {
    LEDGER_NO_LOSS,   /* nothing, or processes were killed */
    LEDGER_POWER_LOSS /* the power was cut */
};

struct ledger_entry {
    uint32_t batch;
    uint32_t session;
    uint32_t stream;
    uint32_t flags; /* enum wal_entry_flag */
    enum ledger_kind kind;
    uint32_t target_entry; /* an entry, where the kind says so */
    enum ledger_parent parent_kind;
    uint32_t parent; /* LEDGER_PARENT_ENTRY: an entry */
    uint32_t size;   /* of the payload */
    uint32_t seed;   /* of the payload */
};

struct ledger_part {
    uint32_t batch;
    uint32_t session; /* LEDGER_NONE: the store's */
    enum ledger_part_kind kind;
    uint32_t key;
    uint32_t target;
    uint32_t size; /* LEDGER_PUT_DOC: of the value */
    bool expects;  /* LEDGER_PUT_DOC: the version `version`, 0 for none */
    uint64_t version;
};

/* Without entries and parts it creates the session, or came to nothing. */
struct ledger_batch {
    uint32_t session;
    uint32_t first; /* entry */
    uint32_t count; /* of entries */
    uint32_t first_part;
    uint32_t part_count;
    uint32_t actor;
    uint32_t durability; /* enum wal_durability */
    enum ledger_state state;
    bool is_uncertain; /* queued, and a failure was reported since */
    bool again;        /* submitted more than once: its order is not known */
    bool expects;      /* the tail `expected`, an entry or LEDGER_NONE */
    uint32_t expected;
    /* Of the call; its number where calls do not overlap. */
    uint64_t begin;
    uint64_t end;
    /* From these moments on LEDGER_WRITTEN and LEDGER_DURABLE hold. */
    uint64_t known_since;
    uint64_t durable_since;
};

struct ledger_session {
    uint32_t batch;  /* that creates it */
    uint32_t at;     /* entry it was forked at, or LEDGER_NONE */
    uint32_t source; /* session it was forked from */
    uint32_t drop;   /* part that deletes it, the newest, or LEDGER_NONE */
    bool gone;       /* deleted for ever */
};

/* Content that was put, or was to be. */
struct ledger_blob {
    uint32_t seed;
    uint32_t size;
    uint32_t edit; /* what distinguishes it from others of the seed */
    enum ledger_state state;
    uint8_t digest[WAL_DIGEST_SIZE];
};

struct ledger {
    struct ledger_entry entries[LEDGER_ENTRIES];
    struct ledger_batch batches[LEDGER_BATCHES];
    struct ledger_session sessions[LEDGER_SESSIONS];
    struct ledger_part parts[LEDGER_PARTS];
    struct ledger_blob blobs[LEDGER_BLOBS];
    uint32_t blob_count;
    uint32_t entry_count;
    uint32_t batch_count;
    uint32_t part_count;
    uint32_t session_count;
    bool counts; /* the metadata is a number that the caller compares */
};

/* Whether a part is there, as far as the check can determine. */
enum ledger_visibility {
    LEDGER_UNKNOWN, /* a later part replaced it */
    LEDGER_VISIBLE,
    LEDGER_ABSENT
};

/* The content that a store returned. */
struct ledger_view {
    bool entries[LEDGER_ENTRIES];
    bool sessions[LEDGER_SESSIONS];
    uint32_t parents[LEDGER_ENTRIES];
    uint32_t depths[LEDGER_ENTRIES];
    uint64_t sequences[LEDGER_ENTRIES];
    uint32_t redactions[LEDGER_ENTRIES]; /* that hides it, or LEDGER_NONE */
    bool blobs[LEDGER_BLOBS];
    enum ledger_visibility parts[LEDGER_PARTS];
    uint64_t versions[LEDGER_PARTS]; /* of documents */
    uint32_t heads[LEDGER_SESSIONS][LEDGER_STREAMS];
    uint64_t digest; /* of everything that can be read */
};

/* A session that is read while others write to it. Each call sees what is there when it begins, so
 * that the answers of two calls are not compared. */
struct ledger_look {
    struct wal_session *handle;
    uint32_t session;
    bool durable; /* reads the entries up to the durable end */
    bool lags;    /* what was promised may not be there yet */
    /* lags: for each batch, whether this handle has seen it, or null. What it has seen remains. */
    const bool *seen;
    uint64_t since; /* a moment before the first call */
    /* Whether a call may fail like this, which ends the look; what may not fails the check. */
    bool (*accepts)(void *ctx, enum wal_status status, const struct wal_error *error,
                    const char *what);
    void *ctx;
};

struct ledger_checker;

/* An entry as it is handed to wal_append, and the memory of its slices. */
struct ledger_text {
    char id[LEDGER_TEXT];
    char parent[LEDGER_TEXT];
    char time[LEDGER_TEXT];
    char run[LEDGER_TEXT];
    char meta[LEDGER_TEXT];
    uint8_t *payload; /* to be freed, or null */
};

/* Sets the context of the next failure message: seeds and loop counters. */
void ledger_set_context(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void ledger_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Called by ledger_fail in the place of cmocka's fail(); it does not return. */
void ledger_on_failure(void (*fn)(void *ctx, const char *text), void *ctx);
/* Copies what was added. */
void ledger_copy(struct ledger *to, const struct ledger *from);
/* Adding; the state of a new batch is LEDGER_OPEN. A session is forked from
 * `source` at the entry `at`, or both are LEDGER_NONE. */
uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor, uint32_t source, uint32_t at);
uint32_t ledger_add_batch(struct ledger *ledger, uint32_t session, uint32_t actor);
uint32_t ledger_add_entry(struct ledger *ledger, uint32_t batch, const struct ledger_entry *entry);
uint32_t ledger_add_part(struct ledger *ledger, uint32_t batch, const struct ledger_part *part);
/* Content of the state LEDGER_OPEN; the same content is one blob. */
uint32_t ledger_add_blob(struct ledger *ledger, uint32_t seed, uint32_t size, uint32_t edit);
/* Its bytes, to be freed. */
uint8_t *ledger_blob_bytes(const struct ledger_blob *blob);
/* Reads it: what the store answers; other content is a failure. */
enum wal_status ledger_read_blob(const struct ledger *ledger, struct wal_store *store,
                                 uint32_t number, struct wal_error *error);
/* The caller's view of an entry; the texts stay in *text. */
void ledger_fill_entry(const struct ledger *ledger, uint32_t entry, struct wal_entry *out,
                       struct ledger_text *text);
void ledger_fill_document(const struct ledger *ledger, uint32_t part, struct wal_doc *out,
                          struct ledger_text *text);
void ledger_fill_head(const struct ledger *ledger, uint32_t part, struct wal_head *out,
                      struct ledger_text *text);
void ledger_fill_change(uint32_t part, struct wal_session_change *out, struct ledger_text *text);
void ledger_free_text(struct ledger_text *text);
void ledger_key(uint32_t key, char out[LEDGER_TEXT]);
void ledger_session_id(uint32_t session, char out[LEDGER_TEXT]);
void ledger_entry_id(uint32_t entry, char out[LEDGER_TEXT]);
struct wal_slice ledger_slice(const char *text);
/* Which entry this is; LEDGER_NONE when its id is none of the ledger's. With
 * `whole`, its content must be that of the entry too. */
uint32_t ledger_identify(const struct ledger *ledger, const struct wal_entry *entry, bool whole);
/* The redaction that a redacted entry names, or LEDGER_NONE. */
uint32_t ledger_find_redaction(const struct ledger *ledger, const struct wal_entry *entry);
/* The entry with this id, or LEDGER_NONE. */
uint32_t ledger_find_entry(const struct ledger *ledger, struct wal_slice id);
/* The part that put this document, that wrote this note of a head, or that changed a session to
 * this; LEDGER_NONE when none did. */
uint32_t ledger_find_document(const struct ledger *ledger, const struct wal_doc *doc);
uint32_t ledger_find_head(const struct ledger *ledger, const struct wal_head *head);
uint32_t ledger_find_update(const struct ledger *ledger, const struct wal_session_info *info);
/* Whether the session may be deleted, or is. */
bool ledger_may_be_deleted(const struct ledger *ledger, uint32_t session);
/* Whether the content of one session may come from the other. */
bool ledger_descends(const struct ledger *ledger, uint32_t session, uint32_t from);
/* Reads everything and compares; *view may be null. */
void ledger_check(const struct ledger *ledger, struct wal_store *store, enum ledger_loss loss,
                  struct ledger_view *view);
/* Compares what indexes and the catalogue count of each session with its records. Not after damage
 * to a rewritten segment, whose index says what was there. counts.c */
void ledger_check_counts(struct wal_store *store);
/* The memory of comparisons, for ledger_look. */
struct ledger_checker *ledger_checker_create(void);
void ledger_checker_destroy(struct ledger_checker *checker);
/* Reads one session and compares; *view is valid until the checker is used again. False: a call
 * failed as it may. */
bool ledger_look(struct ledger_checker *checker, const struct ledger *ledger,
                 struct wal_store *store, const struct ledger_look *look,
                 const struct ledger_view **view);
/* Whether something of the batch was seen. */
bool ledger_is_visible(const struct ledger *ledger, const struct ledger_view *view, uint32_t batch);
/* Documents, heads and metadata of a session, or the documents of the store when it is null, as one
 * number; *errors counts what cannot be read. */
uint64_t ledger_digest_parts(struct wal_store *store, struct wal_session *session,
                             uint32_t *errors);
/* After a recovery by one process: existing records are durable, and missing ones must not
 * reappear. */
void ledger_resolve(struct ledger *ledger, const struct ledger_view *view);

#endif
