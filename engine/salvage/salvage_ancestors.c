/*
 * salvage_ancestors.c - entries of the damaged store by sequence: those that
 * are in OUT and those that are lost, so that an entry whose parent is lost
 * gets its nearest surviving ancestor.
 */
#include "engine/salvage/salvage.h"

/* --- lost records --------------------------------------------------------- */

static const struct wal__salvage_lost *
find_lost(const struct wal__salvage *salvage, uint64_t sequence)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&salvage->lost_map, wal__salvage_hash(sequence),
                             &cursor, &rank)) {
        if (salvage->lost[rank].sequence == sequence) {
            return &salvage->lost[rank];
        }
    }
    return NULL;
}

void wal__salvage_add_lost(struct wal__salvage *salvage, uint64_t sequence,
                           uint64_t parent, uint8_t type)
{
    if (find_lost(salvage, sequence) != NULL ||
        !wal__salvage_grow(salvage, (void **)&salvage->lost,
                           salvage->lost_count, &salvage->lost_capacity,
                           sizeof(*salvage->lost))) {
        return;
    }
    if (wal__hashmap_add(&salvage->lost_map, wal__salvage_hash(sequence),
                         salvage->lost_count) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->lost[salvage->lost_count++] =
        (struct wal__salvage_lost){sequence, parent, type};
}

/* --- entries in OUT ------------------------------------------------------- */

static struct wal__salvage_written *
find_written(const struct wal__salvage *salvage, uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = salvage->written_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (salvage->written[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < salvage->written_count &&
                   salvage->written[low].sequence == sequence &&
                   salvage->written[low].id != SIZE_MAX
               ? &salvage->written[low]
               : NULL;
}

void wal__salvage_add_written(struct wal__salvage *salvage, uint64_t sequence,
                              struct wal__span id)
{
    size_t at = salvage->written_ids.size;

    if (!wal__salvage_grow(salvage, (void **)&salvage->written,
                           salvage->written_count, &salvage->written_capacity,
                           sizeof(*salvage->written))) {
        return;
    }
    if (wal__buf_append(&salvage->written_ids, id.data, id.size) != WAL_OK ||
        wal__buf_append(&salvage->written_ids, "", 1) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->written[salvage->written_count++] =
        (struct wal__salvage_written){sequence, at};
}

void wal__salvage_remove_written(struct wal__salvage *salvage,
                                 uint64_t sequence, uint64_t parent)
{
    struct wal__salvage_written *written = find_written(salvage, sequence);

    if (written != NULL) {
        written->id = SIZE_MAX;
    }
    wal__salvage_add_lost(salvage, sequence, parent, WAL__FRAME_ENTRY);
}

const char *wal__salvage_find_ancestor(const struct wal__salvage *salvage,
                                       uint64_t *sequence)
{
    uint64_t at = *sequence;

    while (at != 0) {
        const struct wal__salvage_written *written = find_written(salvage, at);
        const struct wal__salvage_lost *lost = NULL;

        if (written != NULL) {
            *sequence = at;
            return (const char *)salvage->written_ids.data + written->id;
        }
        lost = find_lost(salvage, at);
        if (lost == NULL || lost->parent >= at) {
            return "";
        }
        at = lost->parent;
    }
    return "";
}

void wal__salvage_count_lost(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->lost_count; i++) {
        const struct wal__salvage_lost *lost = &salvage->lost[i];

        salvage->result.lost_entries +=
            lost->type == WAL__FRAME_ENTRY &&
            find_written(salvage, lost->sequence) == NULL;
    }
}

void wal__salvage_ancestors_deinit(struct wal__salvage *salvage)
{
    wal__heap_free(salvage->heap, salvage->lost);
    wal__hashmap_deinit(&salvage->lost_map);
    wal__heap_free(salvage->heap, salvage->written);
    wal__buf_deinit(&salvage->written_ids);
}
