/*
 * model_reading.h - what the parts of a comparison share (model.h): the store
 * that is read, and what was seen of it so far.
 */
#ifndef WAL_TESTS_SIM_MODEL_READING_H
#define WAL_TESTS_SIM_MODEL_READING_H

#include "tests/sim/model.h"

/* A version of a document, in the order of a session. */
struct reading_version {
    uint64_t version;
    uint32_t part;
};

struct reading_documents {
    uint32_t count;
    struct reading_version at[LEDGER_PARTS]; /* ascending */
};

/* A comparison under way. */
struct reading {
    const struct ledger *ledger;
    struct wal_store *store;
    struct ledger_view *view;
    uint32_t session;
    struct wal_session *handle;
    uint32_t path[LEDGER_ENTRIES]; /* root first */
    uint32_t path_size;
    uint32_t own; /* entries of the session's stream */
    struct reading_documents documents[LEDGER_SESSIONS + 1];
};

void reading_mix(struct reading *reading, uint64_t value);
void reading_mix_text(struct reading *reading, struct wal_slice text);

/* The documents of the session, or of the store when it is LEDGER_NONE: every
 * version, and as they are now. */
void reading_documents(struct reading *reading);
/* The heads, against those that follow from the entries and parts. */
void reading_heads(struct reading *reading);
/* What the session says about itself. */
void reading_change(struct reading *reading,
                    const struct wal_session_info *info);

/* Puts `main` where the parts that were seen to stand before this sequence
 * number put it; *next is the first that is not looked at. */
void reading_move_main(struct reading *reading, uint32_t stream,
                       uint64_t sequence, uint64_t *after, uint32_t *head);

/* Letters that do not repeat for as long as a payload is. model.c */
const char *ledger_letters(uint32_t seed);

/* Every content is there that was promised, byte for byte. */
void reading_blobs(struct reading *reading, enum ledger_loss loss);

/* Redactions hide, and nothing else does. */
void reading_judge_redactions(const struct reading *reading);
/* Whole or not at all; and what was promised. */
void reading_judge_batches(const struct reading *reading,
                           enum ledger_loss loss);

#endif
