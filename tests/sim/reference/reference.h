/*
 * reference.h - what agentwal.h promises, in the simplest form: a store is the list of all records
 * that were ever written to it, and every answer is found by looking through that list. No other
 * state is kept, so that a loss of power is a cut of the list.
 *
 * The functions are those of agentwal.h with the same structs. A session is its number here. Times
 * are between two readings of the clock. What a call gives back is borrowed and holds until the
 * reference is cut or destroyed; arrays that a call makes are to be freed by the caller.
 *
 * One thread.
 */
#ifndef AGENTWAL_TESTS_SIM_REFERENCE_REFERENCE_H
#define AGENTWAL_TESTS_SIM_REFERENCE_REFERENCE_H

#include <stdbool.h>

#include "agentwal.h"
#include "agentwal/admin.h"
#include "tests/lib/common_heap.h"

struct reference;

/* The number of the store itself, which owns the store's documents. */
#define REFERENCE_STORE UINT32_MAX

enum {
    REFERENCE_LINEAGE_MAX = 256 /* sessions on the way to a root, at most */
};

/* A store that was just made; it has no records. */
struct reference *reference_create(void);
void reference_destroy(struct reference *ref);
/* The store is open with this schema version; 0: it is not checked. */
void reference_set_schema(struct reference *ref, uint32_t version);
/* The next records are written between these times. */
void reference_set_clock(struct reference *ref, int64_t earliest_ms, int64_t latest_ms);
/* The sequence number of the newest record; each record takes one. */
uint64_t reference_last_sequence(const struct reference *ref);
/* While it is in doubt whether the next records are there, nothing counts as durable that is
 * written. */
void reference_set_doubt(struct reference *ref, bool is_in_doubt);
/* Everything written is durable now. */
void reference_sync(struct reference *ref);
/* The newest record that a loss of power cannot take. */
uint64_t reference_durable_sequence(const struct reference *ref);
/* A loss of power left the records up to this one. False, and nothing is changed, when that takes a
 * durable record or leaves a part of an operation.
 */
bool reference_truncate(struct reference *ref, uint64_t last_sequence);
bool reference_is_equal(struct wal_slice a, struct wal_slice b);
/* The string member of a JSON object; false when there is no such member. Free its text with
 * reference_free. */
bool reference_member(struct wal_slice text, const char *name, struct wal_slice *out);
void reference_free(struct wal_slice text);

/* What the reference says about a session; times as they may be, and a copy of the first text. */
struct reference_info {
    struct wal_session_info info;
    char first_text[160];
    uint32_t first_text_size;
    int64_t created_latest_ms; /* info.created_ms is the earliest */
    int64_t updated_latest_ms;
};

/* Forgets the times that were learned, and learns when a session was last active: lists are in the
 * order of times, which are otherwise known only as between two readings of the clock. It is used
 * if it may be right, and until the next write. */
void reference_forget_times(struct reference *ref);
void reference_learn_time(struct reference *ref, uint32_t number, int64_t updated_ms);
/* How many numbers were given so far; the numbers are 1 to this. */
uint32_t reference_session_count(const struct reference *ref);
bool reference_is_deleted(const struct reference *ref, uint32_t number);
/* Whether it is in the trash, and not deleted. */
bool reference_is_trashed(const struct reference *ref, uint32_t number);
enum wal_status reference_session_create(struct reference *ref,
                                         const struct wal_session_options *options,
                                         uint32_t *number, struct wal_error *error);
enum wal_status reference_session_open(const struct reference *ref, struct wal_slice id,
                                       uint32_t *number);
enum wal_status reference_session_status(const struct reference *ref, uint32_t number,
                                         struct reference_info *out);
enum wal_status reference_session_latest(const struct reference *ref, struct wal_slice cwd,
                                         uint32_t *number);
/* made_id: the id that the engine made up, or empty. */
enum wal_status reference_session_open_or_create(struct reference *ref,
                                                 const struct wal_session_options *options,
                                                 struct wal_slice made_id, uint32_t *number,
                                                 int32_t *created, struct wal_error *error);
enum wal_status reference_session_update(struct reference *ref, uint32_t number, wal_update_fn *fn,
                                         void *ctx, struct wal_error *error);
enum wal_status reference_session_migrate(struct reference *ref, uint32_t number, uint32_t to,
                                          wal_update_fn *fn, void *ctx,
                                          struct wal_migrate_result *result,
                                          struct wal_error *error);
enum wal_status reference_session_delete(struct reference *ref, uint32_t number,
                                         struct wal_error *error);
enum wal_status reference_session_trash(struct reference *ref, uint32_t number,
                                        struct wal_error *error);
enum wal_status reference_session_undelete(struct reference *ref, struct wal_slice id,
                                           struct wal_error *error);
/* Deletes what is in the trash. */
void reference_empty_trash(struct reference *ref);
enum wal_status reference_session_fork(struct reference *ref, uint32_t number, struct wal_slice at,
                                       const struct wal_session_options *options, uint32_t *fork,
                                       struct wal_error *error);
/* The sessions of a list; *infos is to be freed. */
enum wal_status reference_list(const struct reference *ref,
                               const struct wal_session_cursor_options *options,
                               struct reference_info **infos, uint32_t *count);
/* Ids in the batch must not be empty: those that the engine made are put in before. A head's and a
 * document's conditions are those of the batch. */
enum wal_status reference_batch(struct reference *ref, uint32_t number,
                                const struct wal_batch *batch,
                                const struct wal_append_options *options,
                                struct wal_append_result *result, struct wal_error *error);
enum wal_status reference_head_move(struct reference *ref, uint32_t number,
                                    const struct wal_head *head, char previous[256],
                                    struct wal_error *error);
enum wal_status reference_doc_put(struct reference *ref, uint32_t number, const struct wal_doc *doc,
                                  uint64_t *version, struct wal_error *error);
enum wal_status reference_doc_delete(struct reference *ref, uint32_t number,
                                     const struct wal_doc *doc, uint64_t *version,
                                     struct wal_error *error);
/* `made` is the entry as the engine made it: its id and payload. */
enum wal_status reference_redact(struct reference *ref, uint32_t number, struct wal_slice target,
                                 struct wal_slice reason, const struct wal_entry *made,
                                 struct wal_append_result *result, struct wal_error *error);
/* Nothing is erased here: the engine may refuse it with WAL_EREDACTED. */
enum wal_status reference_unredact(struct reference *ref, uint32_t number, struct wal_slice id,
                                   struct wal_error *error);
enum wal_status reference_compact(struct reference *ref, uint32_t number,
                                  const struct wal_compact_options *options,
                                  const struct wal_entry *made, uint32_t *fork,
                                  struct wal_append_result *result, struct wal_error *error);
/* The next delta after *sequence that compaction may have dropped, and its session; false: none. */
bool reference_next_droppable(const struct reference *ref, uint64_t *sequence, struct wal_slice *id,
                              uint32_t *number);
/* It dropped it. */
void reference_drop(struct reference *ref, uint64_t sequence);
/* It may have dropped it: no process that has the files which are there now was asked. */
void reference_doubt(struct reference *ref, uint64_t sequence);
/* Whether it dropped the entry, or may have. */
bool reference_is_dropped(const struct reference *ref, uint64_t sequence, bool *is_doubtful);
/* Whether complete reads have an entry that was dropped: those of a process that has the files from
 * before. */
void reference_show(struct reference *ref, uint64_t sequence, bool is_shown);
/* Whether they have all, next to those that are shown. */
void reference_show_dropped(struct reference *ref, bool is_shown);
/* None is shown any more. */
void reference_hide_dropped(struct reference *ref);
/* Whether the session is there and sees the entry. */
bool reference_can_see(const struct reference *ref, uint32_t number, uint64_t sequence);
/* Whether an entry with this id redacted another one. */
bool reference_is_redaction(const struct reference *ref, struct wal_slice id);
/* Whether the record is an entry that a redaction hides. */
bool reference_is_redacted(const struct reference *ref, uint64_t sequence);
/* The texts of a record: of an entry the payload and meta, of a document the value, of a session
 * its title and metadata. True: a compaction that erases leaves none of them in any file, unless
 * another record has the same. */
bool reference_is_erased(const struct reference *ref, uint64_t sequence, struct wal_slice texts[2]);
/* Whether a search for a text of the record finds it in the session with this number; 0: in any.
 * *text is what an entry or the title of a session says, *id the entry's id; empty: none. */
bool reference_is_found(const struct reference *ref, uint64_t sequence, uint32_t number,
                        struct wal_slice *text, struct wal_slice *id);

/* An entry as it is given to a reader. */
struct reference_entry {
    struct wal_entry entry;
    int64_t earliest_ms; /* its timestamp, when the caller gave none */
    int64_t latest_ms;
    struct wal_slice redacted_by; /* of a redacted one: the redaction */
    struct wal_slice reason;
};

enum wal_status reference_read(const struct reference *ref, uint32_t number,
                               const struct wal_entry_cursor_options *options,
                               struct reference_entry **entries, uint32_t *count);
/* An entry that was given when a reader was opened, with the redactions among the first `limit`
 * records, of its parent those among the first `parent_limit`; false: it is hidden. */
bool reference_refresh(const struct reference *ref, uint64_t sequence, uint32_t flags,
                       uint64_t limit, uint64_t parent_limit, struct reference_entry *out);
/* Gives an entry of a copy the redaction with this id, one of several of it: the first that was
 * taken along counts (docs/machines.md). */
void reference_take_redaction(const struct reference *ref, struct wal_slice id,
                              struct reference_entry *entry);
/* Whether the entry was redacted by a record after the first `since`, and that was undone. */
bool reference_was_redacted(const struct reference *ref, uint64_t sequence, uint64_t since);
/* Whether a reader of that age may give the entry with this parent: the nearest one that is not
 * hidden, but for those that were when it was opened or for a while since; empty: none. */
bool reference_may_be_parent(const struct reference *ref, uint64_t sequence, struct wal_slice id,
                             uint32_t flags, uint64_t since);
/* The next record after *sequence that redacts an entry, or undoes that; false: none. */
bool reference_next_redaction(const struct reference *ref, uint64_t *sequence);
enum wal_status reference_get(const struct reference *ref, uint32_t number, struct wal_slice id,
                              uint32_t flags, struct reference_entry *out);
/* From now on no delta is picked. */
void reference_avoid_deltas(struct reference *ref, bool avoids);
/* An entry that the session sees: the first one from the record `from` on, or around; as it was
 * given when it was appended, under no parent. It is no delta that some process may have, and
 * another one not. False: it sees none. */
bool reference_pick_entry(const struct reference *ref, uint32_t number, uint64_t from,
                          struct wal_entry *out);
/* The same, an entry that another one is under. */
bool reference_pick_parent(const struct reference *ref, uint32_t number, uint64_t from,
                           struct wal_entry *out);
enum wal_status reference_head_get(const struct reference *ref, uint32_t number, uint32_t stream,
                                   struct wal_slice name, struct wal_slice *entry_id);
enum wal_status reference_heads(const struct reference *ref, uint32_t number,
                                struct wal_head **heads, uint32_t *count);

/* A document, and when it was changed. */
struct reference_doc {
    struct wal_doc doc;
    int64_t latest_ms; /* doc.modified_ms is the earliest */
};

enum wal_status reference_docs(const struct reference *ref, uint32_t number,
                               const struct wal_doc_cursor_options *options,
                               struct reference_doc **docs, uint32_t *count);
enum wal_status reference_doc_get(const struct reference *ref, uint32_t number,
                                  struct wal_slice key, uint64_t version,
                                  struct reference_doc *doc);

#endif
