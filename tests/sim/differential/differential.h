/*
 * differential.h - the engine and the reference take the same operations, and every answer is
 * compared (reference.h). The engine runs on a simulated disk: it is closed and opened again,
 * killed, and loses power.
 *
 * An operation calls the engine first, then the reference with the same arguments and the ids and
 * times that the engine generated. Everything follows from the seed.
 *
 * One thread. A comparison that fails prints seed, step and operation.
 */
#ifndef AGENTWAL_TESTS_SIM_DIFFERENTIAL_DIFFERENTIAL_H
#define AGENTWAL_TESTS_SIM_DIFFERENTIAL_DIFFERENTIAL_H

#include <setjmp.h>

#include "tests/lib/arena_heap.h"
#include "tests/sim/disk/sim.h"
#include "tests/sim/reference/reference.h"

enum {
    DIFFERENTIAL_SESSIONS = 1024, /* numbers in one store, at most */
    DIFFERENTIAL_RECORDS = 65536, /* likewise, where processes share it */
    DIFFERENTIAL_STREAMS = 3,     /* that operations use */
    DIFFERENTIAL_STATUSES = 36,   /* WAL_END to the lowest */
    DIFFERENTIAL_BATCH = 6        /* entries of a batch, at most */
};

struct differential_text;

/* How often things occurred, over all runs. */
struct differential_counts {
    uint64_t statuses[DIFFERENTIAL_STATUSES];
    uint64_t lost;     /* records that losses of power took */
    uint64_t deaths;   /* in the middle of a commit */
    uint64_t survived; /* of these commits, those that are present */
    uint64_t checks;
    uint64_t segments; /* of a store, at most */
    uint64_t records;
    uint64_t rewritten; /* segments, by compactions */
    uint64_t dropped;   /* records */
    uint64_t erased;
    uint64_t dropped_deltas;
    uint64_t failed;            /* compactions */
    uint64_t deaths_compacting; /* in the middle of one */
};

/* Readers that stay open, and what they are to give. */
struct differential_readers {
    struct wal_entry_cursor *cursor;
    uint32_t number; /* of the session that it reads */
    uint32_t flags;
    struct reference_entry *entries;
    uint32_t count;
    uint32_t at;
    uint32_t next;            /* after the entry that is expected */
    uint64_t opened_at;       /* compactions that had begun */
    uint64_t limit;           /* the redactions of the first records count for it */
    uint64_t opened_sequence; /* of the last record when it was opened */
    struct wal_doc_cursor *docs;
    uint64_t docs_opened_at;
    uint32_t doc_number; /* of their session, or REFERENCE_STORE */
    struct reference_doc *expected;
    uint32_t doc_count;
    uint32_t doc_at;
};

struct differential {
    uint64_t seed;
    uint64_t step;
    uint64_t rng_state;
    const char *operation; /* that is under way */
    struct differential_counts *counts;
    const char *root;         /* of the store */
    const struct wal__io *io; /* that the engine gets */
    /* Receives a comparison that fails, and does not return; null: the test ends. */
    void (*fails)(const struct differential *run, const char *text);
    struct sim_disk *disk; /* null: the store is on a real one */
    struct sim_process *process;
    struct arena_heap arena;
    struct wal_store *store;                            /* null: closed */
    struct wal_session *handles[DIFFERENTIAL_SESSIONS]; /* by number */
    struct reference *ref;
    uint32_t schema_version; /* of the opening */
    uint32_t open_flags;
    uint32_t group_align;
    bool is_memory;    /* the store is in memory: it lives once */
    bool is_unsettled; /* a call was under way: the reference lacks it so far */
    bool is_copy;      /* the store is one, all of which is durable */
    bool has_erased;   /* redacted entries may be */
    /* Other processes use the store too: what they redact and drop may take effect later here. */
    bool is_shared;
    bool has_failed;      /* a compaction failed and the power stayed: erasing may be refused */
    uint64_t written;     /* the newest record that this process wrote */
    uint64_t compactions; /* that began, of any process */
    /* Deltas that compaction dropped, and that this process found gone. */
    uint8_t gone[DIFFERENTIAL_RECORDS / 8];
    bool keeps_none; /* of the files in index/, when some are removed */
    struct differential_readers readers;
    jmp_buf death;
    enum wal_status status;
    uint32_t made; /* ids given so far */
    int64_t earliest_ms;
    struct wal_error error;          /* the engine's */
    struct wal_error expected;       /* the reference's */
    struct differential_text *texts; /* of the operation under way */
};

/* An operation, and how often it is taken. */
struct differential_operation {
    const char *name;
    void (*run)(struct differential *run);
    uint32_t weight;
};

extern const struct differential_operation differential_operations[];

extern const uint32_t differential_operation_count;

/* A new store on a new disk, or in memory, open. */
void differential_init(struct differential *run, uint64_t seed, bool is_memory,
                       struct differential_counts *counts);
/* Closes, opens and compares once more, and frees everything. */
void differential_deinit(struct differential *run);
void differential_open(struct differential *run, uint32_t flags);
void differential_close(struct differential *run);
void differential_kill(struct differential *run);
/* What the operations below begin and end with: the clock, the errors, the texts. */
void differential_begin(struct differential *run, const char *operation);
void differential_end(struct differential *run);
/* The engine was called: the reference is, next. */
void differential_enter_reference(struct differential *run);
_Noreturn void differential_fail(const struct differential *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Both answers; and what `actual` says, where that is promised. True: both are WAL_OK. */
bool differential_compare_status(struct differential *run, enum wal_status engine,
                                 enum wal_status reference);
/* A session's handle; null when there is none to be had: it is deleted or in the trash. */
struct wal_session *differential_handle(struct differential *run, uint32_t number);
/* Takes a handle that the engine gave for a session. */
void differential_set_handle(struct differential *run, uint32_t number,
                             struct wal_session *session);
/* A session; now and then one that is deleted or in the trash, with a handle that is left. 0: there
 * is none. */
uint32_t differential_session(struct differential *run);
uint32_t differential_random(struct differential *run, uint32_t sides);
/* True with a probability of 1 / `in`. */
bool differential_one_in(struct differential *run, uint32_t in);
struct wal_slice differential_text(struct differential *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct wal_slice differential_slice(const char *text);
/* `size` bytes that are no text at all. */
struct wal_slice differential_random_bytes(struct differential *run, uint32_t size, int byte);
void differential_free_texts(struct differential *run);
struct wal_slice differential_json(struct differential *run);
/* An entry that can be appended: new, whatever its type. */
void differential_entry(struct differential *run, uint32_t number, struct wal_entry *entry);
void differential_redaction_entry(struct differential *run, struct wal_slice id,
                                  struct wal_entry *entry);
struct wal_slice differential_entry_id(struct differential *run, uint32_t number);
void differential_head(struct differential *run, uint32_t number, struct wal_head *head);
void differential_doc(struct differential *run, uint32_t number, bool is_store,
                      struct wal_doc *doc);
struct wal_slice differential_key(struct differential *run);
void differential_change(struct differential *run, uint32_t number,
                         struct wal_session_change *change);
/* The number in a text that says `canary`, after *text, which is moved past it; false: there is
 * none. Each has its own. */
bool differential_next_canary(struct wal_slice *text, uint32_t *number);
void differential_session_options(struct differential *run, struct wal_session_options *options);
void differential_check_entry(struct differential *run, const struct wal_entry *engine,
                              const struct reference_entry *wanted);
void differential_check_doc(struct differential *run, const struct wal_doc *engine,
                            const struct reference_doc *wanted, bool keys);
void differential_check_session(struct differential *run, uint32_t number);
void differential_check_get(struct differential *run, uint32_t number, struct wal_slice id,
                            uint32_t flags);
/* Lets the reference learn from the engine's list when each session was last active. */
void differential_learn_times(struct differential *run);
void differential_check_heads(struct differential *run, uint32_t number);
void differential_check_docs(struct differential *run, uint32_t number,
                             const struct wal_doc_cursor_options *options);
void differential_check_doc_get(struct differential *run, uint32_t number, struct wal_slice key,
                                uint64_t version);
/* Everything that can be asked. */
void differential_check_all(struct differential *run);
/* The same, but that entries are read in one way, chosen for each stream. */
void differential_check_sample(struct differential *run);
void differential_check_slice(struct differential *run, const char *what, struct wal_slice engine,
                              struct wal_slice reference);
void differential_check_number(struct differential *run, const char *what, uint64_t engine,
                               uint64_t reference);
void differential_open_session(struct differential *run);
void differential_latest(struct differential *run);
/* generate.c */
void differential_redact(struct differential *run);
void differential_unredact(struct differential *run);
void differential_compact(struct differential *run);
void differential_get_head(struct differential *run);
/* check.c */
void differential_iterate(struct differential *run);
void differential_get(struct differential *run);
void differential_list(struct differential *run);
void differential_get_doc(struct differential *run);
void differential_scan_docs(struct differential *run);
void differential_check(struct differential *run);

void differential_step_iter(struct differential *run);
/* Closes those of deleted sessions that a compaction began after: what it left of them was read to
 * the end. */
void differential_close_deleted(struct differential *run);
void differential_step_docs(struct differential *run);
void differential_close_iter(struct differential *run);
void differential_close_docs(struct differential *run);
/* Closes what is held; of a process that is dead, forgets it. */
void differential_close_readers(struct differential *run, bool dead);
/* differential.c */
void differential_crash_writing(struct differential *run);
void differential_lose_unsynced(struct differential *run);
/* Compacts with these options, or with some of its choice, and learns which deltas are gone. */
void differential_compact_once(struct differential *run,
                               const struct wal_store_compact_options *options);
struct wal_store_compact_options differential_compaction(struct differential *run);
/* Whether a compaction with these options may leave segments. */
bool differential_may_refuse(const struct wal_store_compact_options *options);
void differential_compact_store(struct differential *run);
void differential_fail_compaction(struct differential *run);
void differential_lose_indexes(struct differential *run);
/* Learns which deltas are gone, of those that may be. `is_doubtful`: this process may have the
 * files from before the compaction. */
void differential_learn_dropped(struct differential *run, bool is_doubtful);
/* apply.c */
void differential_sync(struct differential *run);
void differential_commit_mark(struct differential *run);
void differential_reopen(struct differential *run);
void differential_crash(struct differential *run);
void differential_lose_power(struct differential *run);
void differential_read_only(struct differential *run);

/* --- a batch that is given to both sides (differential.h) ----------------- */

/* A batch and the arrays that it refers to. */
struct differential_request {
    uint32_t number;
    struct wal_session *session;
    struct wal_entry entries[DIFFERENTIAL_BATCH];
    struct wal_doc docs[DIFFERENTIAL_BATCH];
    struct wal_head heads[2];
    struct wal_session_change change;
    struct wal_batch batch;
    struct wal_append_options options;
};

/* A session, and nothing yet; false: there is no session. */
bool differential_request_init(struct differential *run, struct differential_request *given);
/* The same, for this session; 0: there is none. */
bool differential_request_begin(struct differential *run, uint32_t number,
                                struct differential_request *given);
/* Entries that can be appended. */
void differential_fill_entries(struct differential *run, struct differential_request *given);
/* Documents, heads and a change. */
void differential_fill_parts(struct differential *run, struct differential_request *given);
/* The tail as it is, as what is expected. */
void differential_expect_tail(struct differential *run, struct differential_request *given);
/* Hands the batch to the engine, in one of the ways that there are. */
enum wal_status differential_submit(struct differential *run, struct differential_request *given,
                                    struct wal_append_result *result);
/* Both sides take the batch. */
void differential_commit(struct differential *run, struct differential_request *given);
void differential_compare_result(struct differential *run, const struct wal_append_result *result,
                                 const struct wal_append_result *wanted);

#endif
