/*
 * branch.h - the index of one session: its own records in log order, cut into
 * runs, each a stretch of consecutive entries of a stream in which each is its
 * predecessor's child. A path to the root is a list of runs, so replay is
 * sequential and costs by runs, not by entries. Built when the session is
 * opened, from postings alone; payloads are not touched.
 *
 * Ordinals number the session's own entries of one stream, from 0, in log
 * order. Entries of other sessions (a fork's past) are named by sequence only.
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_INDEX_BRANCH_H
#define AGENTWAL_ENGINE_INDEX_BRANCH_H

#include "engine/base/buf.h"
#include "format/index/index_fmt.h"

struct wal__branch_entry {
    uint64_t sequence;
    uint64_t position;
    uint32_t run;
    uint8_t kind;
    uint8_t flags;
    uint16_t reserved;
};

/* A slot of the table of ids: whoever looks for an entry learns from it where
 * the record is, so that it is on its way while the rest is looked up. */
struct wal__branch_id_slot {
    uint64_t position;
    uint32_t hash;   /* of id_hash */
    uint32_t number; /* ordinal + 1; 0: free slot */
};

struct wal__run {
    uint32_t first; /* ordinal */
    uint32_t count;
    uint64_t parent; /* sequence of the first entry's parent; 0: root */
    uint64_t depth;  /* of the first entry: own entries above it on its path,
                      * plus inherited_depth when the path enters the fork's
                      * past */
    /* its path ends at a root or at the fork point, so that this is all of its
     * depth */
    bool is_depth_exact;
};

struct wal__stream {
    uint32_t number; /* of the stream, 0 to 255 */
    struct wal__branch_entry *entries;
    uint32_t entry_count;
    uint32_t entry_capacity;
    struct wal__run *runs;
    uint32_t run_count;
    uint32_t run_capacity;
    uint32_t *compactions; /* ordinals of compaction entries, ascending */
    uint32_t compaction_count;
    uint32_t compaction_capacity;
    struct wal__branch_id_slot *ids; /* by hash */
    uint32_t id_capacity;            /* a power of two, or 0 */
    uint64_t head;                   /* sequence of the head `main`; 0: none */
};

struct wal__branch {
    const struct wal__heap *heap;
    uint32_t session;
    struct wal__stream *streams; /* those that occur, in order of occurrence */
    uint32_t stream_count;
    /* FORK: the fork point in another session; sequence 0: none. */
    uint64_t fork_sequence;
    uint32_t fork_stream;
    uint64_t inherited_depth; /* depth that the fork point's child has */
    uint64_t last_sequence;   /* newest record of the session seen */
};

void wal__branch_init(struct wal__branch *branch, const struct wal__heap *heap,
                      uint32_t session);
void wal__branch_deinit(struct wal__branch *branch);

/* The fork point; before any entry is added. Every stream's head starts
 * empty but fork_stream's, whose head is the fork point. */
void wal__branch_set_fork(struct wal__branch *branch, uint64_t sequence,
                          uint32_t stream, uint64_t inherited_depth);

/*
 * Adds the session's next record, in log order. ENTRY: appended to its stream;
 * starts a new run unless its parent is the stream's previous own entry; the
 * head follows WAL__FRAME_MOVES_HEAD. HEAD whose id_hash is that of "main"
 * sets the head of its stream to `parent`. Other types only raise
 * last_sequence. WAL_ECORRUPT when the sequence is not above all before it, or
 * the parent not below the sequence. State is unchanged on failure. A parent
 * that is neither an own entry of the stream, nor 0, nor the fork point is
 * kept as it is (older than the fork point, or lost to damage): depth counts
 * from 0 there.
 */
enum wal_status wal__branch_add(struct wal__branch *branch,
                                const struct wal__posting *posting,
                                uint64_t position) WAL_MUST_USE;

/* The stream, or null when no own entry and no HEAD was added there; holds
 * until the next add. The head of a stream is answered with or without it. */
const struct wal__stream *wal__branch_stream(const struct wal__branch *branch,
                                             uint32_t stream);
uint64_t wal__branch_head(const struct wal__branch *branch, uint32_t stream);

/* An own entry. */
struct wal__branch_hit {
    const struct wal__stream *stream;
    uint64_t position;
    uint32_t ordinal;
};

/* Walks own entries that may have this hash, all that have it among them:
 * *cursor 0 first; false at the end. */
bool wal__branch_find_id(const struct wal__branch *branch, uint64_t id_hash,
                         uint32_t *cursor, struct wal__branch_hit *hit);

/* Own entry with this sequence in the stream; false when there is none. */
bool wal__branch_find_sequence(const struct wal__stream *stream,
                               uint64_t sequence, uint32_t *ordinal);

uint64_t wal__branch_depth(const struct wal__stream *stream, uint32_t ordinal);

/* Whether that is the entry's depth: false where its path goes on above what
 * the branch has, elsewhere than at the fork point, or has lost an entry. */
bool wal__branch_is_depth_exact(const struct wal__stream *stream,
                                uint32_t ordinal);

/* A stretch of own entries on a path. */
struct wal__entry_range {
    uint32_t first;
    uint32_t count;
};

/*
 * The own part of the path from `ordinal` up: stretches from the newest to the
 * oldest, appended to out (a buf of struct wal__entry_range); *rest is the
 * sequence where the path goes on in another session, or 0 at a root.
 */
enum wal_status wal__branch_path(const struct wal__branch *branch,
                                 const struct wal__stream *stream,
                                 uint32_t ordinal, struct wal__buf *out,
                                 uint64_t *continuation) WAL_MUST_USE;

/* The newest compaction entry in the stretch; false, and *ordinal untouched,
 * when there is none. For walking a path's stretches. */
bool wal__branch_find_compaction(const struct wal__stream *stream,
                                 const struct wal__entry_range *range,
                                 uint32_t *ordinal);

#endif
