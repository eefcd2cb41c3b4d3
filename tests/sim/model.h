/*
 * model.h - what a store must hold, told without it: every batch that was ever
 * submitted, what was promised about it, and a comparison with what the store
 * says.
 *
 * Nothing here guesses where the log ends. A batch is there or not; what is
 * there must be whole, the bytes that were submitted, in the order of each
 * actor, under the parent that follows from what stands before it; and what
 * was promised must be there.
 *
 * One thread. A comparison that fails prints what ledger_say said last.
 */
#ifndef WAL_TESTS_SIM_MODEL_H
#define WAL_TESTS_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"

enum {
    LEDGER_ENTRIES = 4096,
    LEDGER_BATCHES = 2048,
    LEDGER_SESSIONS = 24,
    LEDGER_STREAMS = 2,
    LEDGER_ACTORS = 2,
    LEDGER_TEXT = 24,
    LEDGER_PAYLOAD_MAX = 5 * 1024 * 1024
};

#define LEDGER_NONE UINT32_MAX

/* What is known about a batch, from outside. */
enum ledger_state {
    LEDGER_OPEN,    /* submitted: it may be there or not */
    LEDGER_REFUSED, /* it must not be there */
    LEDGER_WRITTEN, /* it must be there unless the power was cut */
    LEDGER_DURABLE  /* it must be there */
};

enum ledger_parent {
    LEDGER_HEAD, /* under the head, wherever that is */
    LEDGER_ROOT,
    LEDGER_NAMED
};

/* What happened since the promises were made. */
enum ledger_loss {
    LEDGER_KEPT, /* nothing, or processes were killed */
    LEDGER_POWER /* the power was cut */
};

struct ledger_entry {
    uint32_t batch;
    uint32_t session;
    uint32_t stream;
    uint32_t flags; /* enum wal_entry_flag */
    enum ledger_parent parent_kind;
    uint32_t parent; /* LEDGER_NAMED: an entry */
    uint32_t size;   /* of the payload */
    uint32_t seed;   /* of the payload */
};

struct ledger_batch {
    uint32_t session;
    uint32_t first; /* entry */
    uint32_t count; /* of entries; 0: it creates the session */
    uint32_t actor;
    uint32_t durability; /* enum wal_durability */
    enum ledger_state state;
    bool doubtful; /* queued, and a failure was reported since */
    bool again;    /* submitted more than once: its order is not known */
};

struct ledger_session {
    uint32_t batch; /* that creates it */
    uint32_t at;    /* entry it was forked at, or LEDGER_NONE */
};

struct ledger {
    struct ledger_entry entries[LEDGER_ENTRIES];
    struct ledger_batch batches[LEDGER_BATCHES];
    struct ledger_session sessions[LEDGER_SESSIONS];
    uint32_t entry_count;
    uint32_t batch_count;
    uint32_t session_count;
};

/* What a store was seen to hold. */
struct ledger_view {
    bool entries[LEDGER_ENTRIES];
    bool sessions[LEDGER_SESSIONS];
    uint32_t parents[LEDGER_ENTRIES];
    uint32_t depths[LEDGER_ENTRIES];
    uint32_t heads[LEDGER_SESSIONS][LEDGER_STREAMS];
    uint64_t digest; /* of everything that can be read */
};

/* An entry as it is handed to wal_append, and the room behind its slices. */
struct ledger_text {
    char id[LEDGER_TEXT];
    char parent[LEDGER_TEXT];
    char run[LEDGER_TEXT];
    char meta[LEDGER_TEXT];
    uint8_t *payload; /* to be freed, or null */
};

/* What the next failure prints first: seeds and the place in a loop. */
void ledger_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void ledger_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Adding; the state of a new batch is LEDGER_OPEN. */
uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor, uint32_t at);
uint32_t ledger_add_batch(struct ledger *ledger, uint32_t session,
                          uint32_t actor);
uint32_t ledger_add_entry(struct ledger *ledger, uint32_t batch,
                          const struct ledger_entry *entry);

/* The caller's view of an entry; the texts stay in *text. */
void ledger_fill_entry(const struct ledger *ledger, uint32_t entry,
                       struct wal_entry *out, struct ledger_text *text);
void ledger_free_text(struct ledger_text *text);
void ledger_session_id(uint32_t session, char out[LEDGER_TEXT]);
void ledger_entry_id(uint32_t entry, char out[LEDGER_TEXT]);
struct wal_slice ledger_slice(const char *text);

/* Which entry this is; LEDGER_NONE when its id is none of the ledger's. With
 * `whole`, its content must be that of the entry too. */
uint32_t ledger_identify(const struct ledger *ledger,
                         const struct wal_entry *entry, bool whole);
/* The entry with this id, or LEDGER_NONE. */
uint32_t ledger_entry_of(const struct ledger *ledger, struct wal_slice id);

/* Reads everything and compares; *view may be null. */
void ledger_check(const struct ledger *ledger, struct wal_store *store,
                  enum ledger_loss loss, struct ledger_view *view);

/* After a recovery that nobody else took part in: what is there is durable,
 * what is not there must never come back. */
void ledger_settle(struct ledger *ledger, const struct ledger_view *view);

#endif
