/*
 * annotations.c - deltas, redactions and named heads of one session
 * (annotations.h). No section of SPEC.md. Invariant: deltas and redactions
 * ascend, so that both are found by binary search. The caller's lock: one
 * writer, or any readers.
 */
#include "engine/index/annotations.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

void wal__annotations_init(struct wal__annotations *annotations,
                           const struct wal__heap *heap)
{
    *annotations = (struct wal__annotations){.heap = heap};
}

void wal__annotations_deinit(struct wal__annotations *annotations)
{
    if (annotations->heap == NULL) {
        return;
    }
    wal__heap_free(annotations->heap, annotations->deltas);
    wal__heap_free(annotations->heap, annotations->redactions);
    wal__heap_free(annotations->heap, annotations->heads);
    wal__annotations_init(annotations, annotations->heap);
}

/* The rank of the first delta at or above the sequence. */
static uint32_t delta_lower_bound(const struct wal__annotations *annotations,
                                  uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = annotations->delta_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (annotations->deltas[middle] < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WAL__ASSERT(low == annotations->delta_count ||
                annotations->deltas[low] >= sequence);
    return low;
}

/* The rank of the first redaction whose target is at or above the sequence. */
static uint32_t
redaction_lower_bound(const struct wal__annotations *annotations,
                      uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = annotations->redaction_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (annotations->redactions[middle].target < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WAL__ASSERT(low == annotations->redaction_count ||
                annotations->redactions[low].target >= sequence);
    return low;
}

static enum wal_status add_delta(struct wal__annotations *annotations,
                                 uint64_t sequence)
{
    uint64_t *deltas = wal__heap_grow_array(
        annotations->heap, annotations->deltas, annotations->delta_count,
        &annotations->delta_capacity, sizeof(annotations->deltas[0]));

    if (deltas == NULL) {
        return WAL_ENOMEM;
    }
    annotations->deltas = deltas;
    WAL__ASSERT(annotations->delta_count < annotations->delta_capacity);

    deltas[annotations->delta_count] = sequence;
    annotations->delta_count++;
    return WAL_OK;
}

/* Keeps the first redaction of an entry. */
static enum wal_status add_redaction(struct wal__annotations *annotations,
                                     uint64_t target, uint64_t position)
{
    uint32_t rank = redaction_lower_bound(annotations, target);
    struct wal__redaction *items;

    if (rank < annotations->redaction_count &&
        annotations->redactions[rank].target == target) {
        return WAL_OK;
    }
    items =
        wal__heap_grow_array(annotations->heap, annotations->redactions,
                             annotations->redaction_count,
                             &annotations->redaction_capacity, sizeof(*items));
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    annotations->redactions = items;
    WAL__ASSERT(annotations->redaction_count < annotations->redaction_capacity);
    memmove(&items[rank + 1], &items[rank],
            (annotations->redaction_count - rank) * sizeof(*items));
    items[rank].target = target;
    items[rank].position = position;
    annotations->redaction_count++;
    WAL__ASSERT(rank == 0 || items[rank - 1].target < target);
    return WAL_OK;
}

static struct wal__named_head *
find_head(const struct wal__annotations *annotations, uint32_t stream,
          uint64_t name_hash)
{
    for (uint32_t i = 0; i < annotations->head_count; i++) {
        if (annotations->heads[i].name_hash == name_hash &&
            annotations->heads[i].stream == stream) {
            return &annotations->heads[i];
        }
    }
    return NULL;
}

/* `main` is kept without an entry too: its version is that of the record. */
static bool is_main(const struct wal__posting *posting)
{
    static const char name[] = "main";

    return posting->id_hash == wal__id_hash(name, sizeof(name) - 1);
}

static enum wal_status set_head(struct wal__annotations *annotations,
                                const struct wal__posting *posting,
                                uint64_t position)
{
    struct wal__named_head *head =
        find_head(annotations, posting->stream, posting->id_hash);

    if (posting->parent == 0 && !is_main(posting)) {
        if (head != NULL) {
            WAL__ASSERT(annotations->head_count > 0);
            annotations->head_count--;
            *head = annotations->heads[annotations->head_count];
        }
        return WAL_OK;
    }
    if (head == NULL) {
        struct wal__named_head *heads = wal__heap_grow_array(
            annotations->heap, annotations->heads, annotations->head_count,
            &annotations->head_capacity, sizeof(*heads));

        if (heads == NULL) {
            return WAL_ENOMEM;
        }
        annotations->heads = heads;
        WAL__ASSERT(annotations->head_count < annotations->head_capacity);
        head = &heads[annotations->head_count];
        head->name_hash = posting->id_hash;
        head->stream = posting->stream;

        annotations->head_count++;
    }

    head->target = posting->parent;
    head->position = position;
    head->version = posting->sequence;
    return WAL_OK;
}

enum wal_status wal__annotations_add(struct wal__annotations *annotations,
                                     const struct wal__posting *posting,
                                     uint64_t position)
{
    switch (posting->type) {
    case WAL__FRAME_ENTRY:
        return posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
                       (posting->flags & WAL__FRAME_PROVISIONAL) == 0
                   ? add_delta(annotations, posting->sequence)
                   : WAL_OK;
    case WAL__FRAME_REDACT:
        return add_redaction(annotations, posting->parent, position);
    case WAL__FRAME_HEAD:
        return set_head(annotations, posting, position);
    default:
        return WAL_OK;
    }
}

bool wal__annotations_is_delta(const struct wal__annotations *annotations,
                               uint64_t sequence)
{
    return wal__annotations_next_delta(annotations, sequence) == sequence;
}

const struct wal__redaction *
wal__annotations_find_redaction(const struct wal__annotations *annotations,
                                uint64_t sequence)
{
    uint32_t rank = redaction_lower_bound(annotations, sequence);

    return rank < annotations->redaction_count &&
                   annotations->redactions[rank].target == sequence
               ? &annotations->redactions[rank]
               : NULL;
}

const struct wal__named_head *
wal__annotations_find_head(const struct wal__annotations *annotations,
                           uint32_t stream, uint64_t name_hash)
{
    return find_head(annotations, stream, name_hash);
}

uint64_t wal__annotations_next_delta(const struct wal__annotations *annotations,
                                     uint64_t sequence)
{
    uint32_t rank = delta_lower_bound(annotations, sequence);

    return rank < annotations->delta_count ? annotations->deltas[rank]
                                           : UINT64_MAX;
}

uint64_t
wal__annotations_next_redacted(const struct wal__annotations *annotations,
                               uint64_t sequence)
{
    uint32_t rank = redaction_lower_bound(annotations, sequence);

    return rank < annotations->redaction_count
               ? annotations->redactions[rank].target
               : UINT64_MAX;
}
