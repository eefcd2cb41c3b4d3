/*
 * internal.h - what the parts of a comparison share (ledger.h): the store
 * that is read, and what was seen of it so far.
 */
#ifndef AGENTWAL_TESTS_SIM_LEDGER_INTERNAL_H
#define AGENTWAL_TESTS_SIM_LEDGER_INTERNAL_H

#include "tests/sim/ledger/ledger.h"

/* A version of a document, in the order of a session. */
struct ledger_version {
    uint64_t version;
    uint32_t part;
};

struct ledger_check_documents {
    uint32_t count;
    struct ledger_version at[LEDGER_PARTS]; /* ascending */
};

/* A comparison under way. */
struct ledger_checker {
    const struct ledger *ledger;
    struct wal_store *store;
    const struct ledger_look *look; /* null: nobody writes */
    bool refused;                   /* a call of the look failed */
    struct ledger_view *view;
    uint32_t session;
    struct wal_session *handle;
    uint32_t path[LEDGER_ENTRIES]; /* root first */
    uint32_t path_size;
    uint32_t own; /* entries of the session's stream */
    struct ledger_check_documents documents[LEDGER_SESSIONS + 1];
};

/* A call failed: ends the look, or fails. */
void ledger_refuse(struct ledger_checker *checker, enum wal_status status,
                   const struct wal_error *error, const char *what);
/* Whether `main` of the stream was, or may have been, moved by a part whose
 * position is not known: nothing follows then from the entries before. */
bool ledger_is_moved(const struct ledger_checker *checker, uint32_t stream);

/* Every entry of the session in a stream; the session and all of it, when
 * nobody writes. */
void ledger_read_stream(struct ledger_checker *checker, uint32_t stream);
void ledger_read_session(struct ledger_checker *checker);

void ledger_mix(struct ledger_checker *checker, uint64_t value);
void ledger_mix_text(struct ledger_checker *checker, struct wal_slice text);

/* The documents of the session, or of the store when it is LEDGER_NONE: every
 * version, and as they are now. */
void ledger_check_documents(struct ledger_checker *checker);
/* The heads, against those that follow from the entries and parts. */
void ledger_check_heads(struct ledger_checker *checker);
/* The session's fields. */
void ledger_check_update(struct ledger_checker *checker,
                         const struct wal_session_info *info);

/* Moves `main` to where the parts seen before this sequence number moved it;
 * *after becomes the position of the newest of them. */
void ledger_apply_main(struct ledger_checker *checker, uint32_t stream,
                       uint64_t sequence, uint64_t *after, uint32_t *head);

/* Letters that do not repeat for as long as a payload is. */
const char *ledger_pattern(uint32_t seed);

/* Every content is there that was promised, byte for byte. */
void ledger_check_blobs(struct ledger_checker *checker, enum ledger_loss loss);

/* Redactions hide, and nothing else does. */
void ledger_check_redactions(const struct ledger_checker *checker);
/* Whole or not at all; and what was promised. */
void ledger_check_batches(const struct ledger_checker *checker,
                          enum ledger_loss loss);

#endif
