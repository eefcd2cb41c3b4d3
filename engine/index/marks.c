/*
 * marks.c - deltas, redactions and named heads of one session (marks.h). No
 * section of SPEC.md. Invariant: deltas and redactions ascend, so that both
 * are found by halving. The caller's lock: one writer, or any readers.
 */
#include "engine/index/marks.h"

#include <string.h>

#include "format/crc32.h"
#include "format/frame.h"
#include "format/record.h"

void wal__marks_init(struct wal__marks *marks, const struct wal__heap *heap)
{
    *marks = (struct wal__marks){.heap = heap};
}

void wal__marks_deinit(struct wal__marks *marks)
{
    if (marks->heap == NULL) {
        return;
    }
    wal__heap_free(marks->heap, marks->deltas);
    wal__heap_free(marks->heap, marks->redactions);
    wal__heap_free(marks->heap, marks->heads);
    wal__marks_init(marks, marks->heap);
}

/* Rank of the first delta that is not below the sequence. */
static uint32_t delta_rank(const struct wal__marks *marks, uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = marks->delta_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (marks->deltas[middle] < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Rank of the first redaction whose target is not below the sequence. */
static uint32_t redaction_rank(const struct wal__marks *marks,
                               uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = marks->redaction_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (marks->redactions[middle].target < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum wal_status add_delta(struct wal__marks *marks, uint64_t sequence)
{
    uint64_t *deltas =
        wal__heap_room(marks->heap, marks->deltas, marks->delta_count,
                       &marks->delta_capacity, sizeof(marks->deltas[0]));

    if (deltas == NULL) {
        return WAL_ENOMEM;
    }
    marks->deltas = deltas;
    deltas[marks->delta_count] = sequence;
    marks->delta_count++;
    return WAL_OK;
}

/* The first redaction of an entry is the one that is told. */
static enum wal_status add_redaction(struct wal__marks *marks, uint64_t target,
                                     uint64_t position)
{
    uint32_t at = redaction_rank(marks, target);
    struct wal__redaction *items;

    if (at < marks->redaction_count && marks->redactions[at].target == target) {
        return WAL_OK;
    }
    items =
        wal__heap_room(marks->heap, marks->redactions, marks->redaction_count,
                       &marks->redaction_capacity, sizeof(*items));
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    marks->redactions = items;
    memmove(&items[at + 1], &items[at],
            (marks->redaction_count - at) * sizeof(*items));
    items[at].target = target;
    items[at].position = position;
    marks->redaction_count++;
    return WAL_OK;
}

static struct wal__named_head *find_head(const struct wal__marks *marks,
                                         uint32_t stream, uint64_t name_hash)
{
    for (uint32_t i = 0; i < marks->head_count; i++) {
        if (marks->heads[i].name_hash == name_hash &&
            marks->heads[i].stream == stream) {
            return &marks->heads[i];
        }
    }
    return NULL;
}

/* `main` is there always: its record says why it has no entry. */
static bool is_main(const struct wal__posting *posting)
{
    static const char name[] = "main";

    return posting->id_hash == wal__id_hash(name, sizeof(name) - 1);
}

static enum wal_status set_head(struct wal__marks *marks,
                                const struct wal__posting *posting,
                                uint64_t position)
{
    struct wal__named_head *head =
        find_head(marks, posting->stream, posting->id_hash);

    if (posting->parent == 0 && !is_main(posting)) {
        if (head != NULL) {
            marks->head_count--;
            *head = marks->heads[marks->head_count];
        }
        return WAL_OK;
    }
    if (head == NULL) {
        struct wal__named_head *heads =
            wal__heap_room(marks->heap, marks->heads, marks->head_count,
                           &marks->head_capacity, sizeof(*heads));

        if (heads == NULL) {
            return WAL_ENOMEM;
        }
        marks->heads = heads;
        head = &heads[marks->head_count];
        head->name_hash = posting->id_hash;
        head->stream = posting->stream;
        marks->head_count++;
    }
    head->target = posting->parent;
    head->position = position;
    head->version = posting->sequence;
    return WAL_OK;
}

enum wal_status wal__marks_add(struct wal__marks *marks,
                               const struct wal__posting *posting,
                               uint64_t position)
{
    switch (posting->type) {
    case WAL__FRAME_ENTRY:
        return posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH
                   ? add_delta(marks, posting->sequence)
                   : WAL_OK;
    case WAL__FRAME_REDACT:
        return add_redaction(marks, posting->parent, position);
    case WAL__FRAME_HEAD:
        return set_head(marks, posting, position);
    default:
        return WAL_OK;
    }
}

bool wal__marks_is_delta(const struct wal__marks *marks, uint64_t sequence)
{
    return wal__marks_next_delta(marks, sequence) == sequence;
}

const struct wal__redaction *
wal__marks_redaction(const struct wal__marks *marks, uint64_t sequence)
{
    uint32_t at = redaction_rank(marks, sequence);

    return at < marks->redaction_count &&
                   marks->redactions[at].target == sequence
               ? &marks->redactions[at]
               : NULL;
}

const struct wal__named_head *wal__marks_head(const struct wal__marks *marks,
                                              uint32_t stream,
                                              uint64_t name_hash)
{
    return find_head(marks, stream, name_hash);
}

uint64_t wal__marks_next_delta(const struct wal__marks *marks,
                               uint64_t sequence)
{
    uint32_t at = delta_rank(marks, sequence);

    return at < marks->delta_count ? marks->deltas[at] : UINT64_MAX;
}

uint64_t wal__marks_next_redacted(const struct wal__marks *marks,
                                  uint64_t sequence)
{
    uint32_t at = redaction_rank(marks, sequence);

    return at < marks->redaction_count ? marks->redactions[at].target
                                       : UINT64_MAX;
}
