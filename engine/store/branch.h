/*
 * branch.h - the index of one session's entries, split into runs. A run is a range of consecutive
 * entries of a stream in which each is the child of the one before it. A path to the root is a list
 * of runs, so that replay is sequential and costs by runs, not by entries. Built when the session
 * is opened, from postings alone; payloads are not read.
 *
 * Ordinals number the session's own entries of one stream, from 0, in log order. Entries of other
 * sessions (those before a fork point) are named by sequence only. The caller's lock: one writer,
 * or any readers.
 *
 * The provisional entries of a stream (SPEC.md 5.1, deltas) are a separate stream,
 * WAL__DELTAS_OF(stream), in which each is a run: so they deepen no path, and compaction leaves the
 * ordinals of all other entries as they are.
 */
#ifndef AGENTWAL_ENGINE_STORE_BRANCH_H
#define AGENTWAL_ENGINE_STORE_BRANCH_H

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "format/index/index_fmt.h"

enum { WAL__STREAM_COUNT = 256 };
/* The stream of a stream's provisional entries, and the way back. */
#define WAL__DELTAS_OF(stream)   ((stream) + (uint32_t)WAL__STREAM_COUNT)
#define WAL__STREAM_BASE(stream) ((stream) % (uint32_t)WAL__STREAM_COUNT)

struct wal__branch_entry {
    uint64_t sequence;
    uint64_t position;
    uint32_t run;
    uint8_t kind;
    uint8_t flags;
    uint16_t reserved;
};

struct wal__run {
    uint32_t first; /* ordinal */
    uint32_t count;
    uint64_t parent; /* sequence of the first entry's parent; 0: root */
    uint64_t depth;  /* of the first entry: own entries above it on its path,
                      * plus inherited_depth if the path passes the fork
                      * point */
    /* The path ends at a root or at the fork point: `depth` is the whole depth. */
    bool is_depth_exact;
};

struct wal__stream {
    uint32_t number; /* of the stream, 0 to 255, or WAL__DELTAS_OF it */
    struct wal__branch_entry *entries;
    uint32_t entry_count;
    uint32_t entry_capacity;
    struct wal__run *runs;
    uint32_t run_count;
    uint32_t run_capacity;
    uint32_t *compactions; /* ordinals of compaction entries, ascending */
    uint32_t compaction_count;
    uint32_t compaction_capacity;
    struct wal__id_table ids; /* numbers are ordinals + 1 */
    uint64_t head;            /* sequence of the head `main`; 0: none */
};

struct wal__branch {
    const struct wal__heap *heap;
    uint32_t session;
    struct wal__stream *streams; /* in order of their first record */
    uint32_t stream_count;
    /* FORK: the fork point in another session; sequence 0: none. */
    uint64_t fork_sequence;
    uint32_t fork_stream;
    uint64_t inherited_depth; /* depth of a child of the fork point */
    uint64_t last_sequence;   /* of the newest record added */
    uint32_t expected;        /* entries, by wal__branch_expect */
    bool ids_deferred;        /* by wal__branch_defer_ids */
};

void wal__branch_init(struct wal__branch *branch, const struct wal__heap *heap, uint32_t session);
void wal__branch_deinit(struct wal__branch *branch);

/* Sets the fork point, before any record is added. The head of fork_stream starts at the fork
 * point; the heads of the other streams start empty. */
void wal__branch_set_fork(struct wal__branch *branch, uint64_t sequence, uint32_t stream,
                          uint64_t inherited_depth);

/* Announces about how many entries will be added, before any is: the first stream then gets room
 * for all of them at once. A hint; any count is valid. */
void wal__branch_expect(struct wal__branch *branch, uint64_t entries);

/*
 * Adds the session's next record, in log order. An ENTRY is appended to its stream, one with
 * WAL__FRAME_PROVISIONAL to the deltas of its stream; it starts a new run unless its parent is the
 * stream's previous own entry, and moves the head if it has WAL__FRAME_MOVES_HEAD. A HEAD whose
 * id_hash is that of "main" sets the head of its stream to `parent`. Other types only raise
 * last_sequence. WAL_ECORRUPT when the sequence is not above that of every record before, or the
 * parent is not below the sequence. State is unchanged on failure. A parent that is neither an own
 * entry of the stream, nor 0, nor the fork point (it is older than the fork point, or lost to
 * damage) is stored unchanged; depth counts from 0 there.
 */
enum wal_status wal__branch_add(struct wal__branch *branch, const struct wal__posting *posting,
                                uint64_t position) WAL_MUST_USE;

/* Leaves the ids of entries out until they are added below: a reader that looks up no id does not
 * pay for the table. Before any record is added. */
void wal__branch_defer_ids(struct wal__branch *branch);
/* Adds the id of an entry that was added before: all entries again, in the same order, then end.
 * WAL_ECORRUPT when this is not the next one. */
enum wal_status wal__branch_add_id(struct wal__branch *branch, const struct wal__posting *posting,
                                   uint64_t position) WAL_MUST_USE;
/* From now on entries are added with their ids. WAL_ECORRUPT when some are missing; on failure the
 * caller drops the ids. */
enum wal_status wal__branch_end_ids(struct wal__branch *branch) WAL_MUST_USE;
void wal__branch_drop_ids(struct wal__branch *branch);

/* The stream, or null if no own entry and no HEAD was added to it; valid until the next add.
 * wal__branch_head needs no stream to exist. */
const struct wal__stream *wal__branch_stream(const struct wal__branch *branch, uint32_t stream);
uint64_t wal__branch_head(const struct wal__branch *branch, uint32_t stream);

/* An own entry. */
struct wal__branch_hit {
    const struct wal__stream *stream;
    uint64_t position;
    uint32_t ordinal;
};

/* Iterates own entries that may have this id hash; all that have it are among them. The ids are not
 * deferred. Set *cursor to 0 first; false at the end. */
bool wal__branch_find_id(const struct wal__branch *branch, uint64_t id_hash, uint32_t *cursor,
                         struct wal__branch_hit *hit);

/* The first ordinal of [at, end) whose sequence is at least this one, or end. */
uint32_t wal__branch_lower_bound(const struct wal__stream *stream, uint32_t at, uint32_t end,
                                 uint64_t sequence);

/* Finds the own entry with this sequence; false, with *ordinal untouched, if the stream has
 * none. */
bool wal__branch_find_sequence(const struct wal__stream *stream, uint64_t sequence,
                               uint32_t *ordinal);

/* The sequence of an own entry's parent; 0: it is a root. */
uint64_t wal__branch_parent(const struct wal__stream *stream, uint32_t ordinal);

/* The same as wal__branch_find_sequence, by the position of its record. */
bool wal__branch_find_position(const struct wal__stream *stream, uint64_t position,
                               uint32_t *ordinal);

uint64_t wal__branch_depth(const struct wal__stream *stream, uint32_t ordinal);

/* Whether wal__branch_depth is the entry's whole depth. False if its path leaves the branch
 * elsewhere than at the fork point, or has lost an entry. */
bool wal__branch_is_depth_exact(const struct wal__stream *stream, uint32_t ordinal);

/* Own entries with consecutive ordinals on a path. */
struct wal__entry_range {
    uint32_t first;
    uint32_t count;
};

/*
 * The own part of the path from `ordinal` towards the root: ranges from the
 * newest to the oldest, appended to out (a buf of struct wal__entry_range).
 * *continuation is the sequence at which the path continues in another session,
 * or 0 at a root. WAL_ENOMEM leaves out unchanged.
 */
enum wal_status wal__branch_path(const struct wal__branch *branch, const struct wal__stream *stream,
                                 uint32_t ordinal, struct wal__buf *out,
                                 uint64_t *continuation) WAL_MUST_USE;

/* Finds the newest compaction entry in the range; false, with *ordinal untouched, if there is
 * none. */
bool wal__branch_find_compaction(const struct wal__stream *stream,
                                 const struct wal__entry_range *range, uint32_t *ordinal);

/* --- annotations -------------------------------------------------------- */

/*
 * What is kept of one session in addition to the tree of its entries: which of them are deltas,
 * which are redacted and by which record, and where named heads point (SPEC.md 5.6, 5.7). Built
 * from postings alone, too.
 */

struct wal__redaction {
    uint64_t target;   /* sequence of the entry */
    uint64_t position; /* of the REDACT record */
};

/* A head that a HEAD record set; `main` only if a HEAD record set it. */
struct wal__named_head {
    uint64_t name_hash;
    uint64_t target;   /* sequence of the entry; 0: `main` without an entry */
    uint64_t position; /* of the HEAD record */
    uint64_t version;  /* its sequence */
    uint32_t stream;
};

struct wal__annotations {
    const struct wal__heap *heap;
    uint64_t *deltas; /* sequences, ascending, of those that are not
                       * provisional */
    uint32_t delta_count;
    uint32_t delta_capacity;
    struct wal__redaction *redactions; /* ascending by target, each once */
    uint32_t redaction_count;
    uint32_t redaction_capacity;
    uint32_t restored_count;       /* RESTORE records */
    struct wal__named_head *heads; /* in no order */
    uint32_t head_count;
    uint32_t head_capacity;
};

void wal__annotations_init(struct wal__annotations *annotations, const struct wal__heap *heap);
void wal__annotations_deinit(struct wal__annotations *annotations);

/* Adds the session's next record, in log order. Record types that annotate nothing are ignored.
 * WAL_ENOMEM leaves the state unchanged. */
enum wal_status wal__annotations_add(struct wal__annotations *annotations,
                                     const struct wal__posting *posting,
                                     uint64_t position) WAL_MUST_USE;

bool wal__annotations_is_delta(const struct wal__annotations *annotations, uint64_t sequence);
/* The record that redacts the entry, the first one that was not undone; or null. */
const struct wal__redaction *
wal__annotations_find_redaction(const struct wal__annotations *annotations, uint64_t sequence);
/* The head as its last record set it; null when that removed it. */
const struct wal__named_head *wal__annotations_find_head(const struct wal__annotations *annotations,
                                                         uint32_t stream, uint64_t name_hash);

/* The first sequence at or above this one that is a delta, or was redacted; UINT64_MAX if there is
 * none. */
uint64_t wal__annotations_next_delta(const struct wal__annotations *annotations, uint64_t sequence);
uint64_t wal__annotations_next_redacted(const struct wal__annotations *annotations,
                                        uint64_t sequence);

#endif
