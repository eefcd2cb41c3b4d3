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

/* Every entry of the session in a stream; the session and all of it, when nobody writes. */
void ledger_read_stream(struct ledger_checker *checker, uint32_t stream);
void ledger_read_session(struct ledger_checker *checker);

void ledger_mix(struct ledger_checker *checker, uint64_t value);

/* The documents of the session, or of the store when it is LEDGER_NONE: every version, and as they
 * are now. */
void ledger_check_documents(struct ledger_checker *checker);
/* The heads, against those that follow from the entries and parts. */
void ledger_check_heads(struct ledger_checker *checker);

#endif
