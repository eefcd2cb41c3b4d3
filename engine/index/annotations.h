/*
 * annotations.h - what an index keeps of one session in addition to the tree of
 * its entries: which of them are deltas, which were redacted and by which
 * record, and where named heads point (SPEC.md 5.6, 5.7). Built from postings
 * alone, like the session's branch.
 *
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_INDEX_ANNOTATIONS_H
#define AGENTWAL_ENGINE_INDEX_ANNOTATIONS_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/index/index_fmt.h"

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
    struct wal__named_head *heads; /* in no order */
    uint32_t head_count;
    uint32_t head_capacity;
};

void wal__annotations_init(struct wal__annotations *annotations,
                           const struct wal__heap *heap);
void wal__annotations_deinit(struct wal__annotations *annotations);

/* Adds the session's next record, in log order. Record types that annotate
 * nothing are ignored. WAL_ENOMEM leaves the state unchanged. */
enum wal_status wal__annotations_add(struct wal__annotations *annotations,
                                     const struct wal__posting *posting,
                                     uint64_t position) WAL_MUST_USE;

bool wal__annotations_is_delta(const struct wal__annotations *annotations,
                               uint64_t sequence);
/* The record that redacted the entry first, or null. */
const struct wal__redaction *
wal__annotations_find_redaction(const struct wal__annotations *annotations,
                                uint64_t sequence);
/* The head as its last record set it; null when that removed it. */
const struct wal__named_head *
wal__annotations_find_head(const struct wal__annotations *annotations,
                           uint32_t stream, uint64_t name_hash);

/* The first sequence at or above this one that is a delta, or was redacted;
 * UINT64_MAX if there is none. */
uint64_t wal__annotations_next_delta(const struct wal__annotations *annotations,
                                     uint64_t sequence);
uint64_t
wal__annotations_next_redacted(const struct wal__annotations *annotations,
                               uint64_t sequence);

#endif
