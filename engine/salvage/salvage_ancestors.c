/*
 * salvage_ancestors.c - entries of the damaged store by sequence: those that
 * are in OUT and those that are lost, so that an entry whose parent is lost
 * gets its nearest surviving ancestor.
 */
#include <string.h>

#include "engine/salvage/salvage.h"

/* --- lost records --------------------------------------------------------- */

static uint64_t hash_of(uint64_t sequence)
{
    return sequence * UINT64_C(0x9e3779b97f4a7c15);
}

void wal__salvage_add_lost(struct wal__salvage *salvage,
                           const struct wal__salvage_lost *lost)
{
    if (wal__salvage_find_lost(salvage, lost->sequence) != NULL ||
        !wal__salvage_grow(salvage, (void **)&salvage->lost,
                           salvage->lost_count, &salvage->lost_capacity,
                           sizeof(*lost))) {
        return;
    }
    if (wal__hashmap_add(&salvage->lost_map, hash_of(lost->sequence),
                         salvage->lost_count) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->lost[salvage->lost_count++] = *lost;
}

const struct wal__salvage_lost *
wal__salvage_find_lost(const struct wal__salvage *salvage, uint64_t sequence)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&salvage->lost_map, hash_of(sequence), &cursor,
                             &rank)) {
        if (salvage->lost[rank].sequence == sequence) {
            return &salvage->lost[rank];
        }
    }
    return NULL;
}

/* --- entries in OUT ------------------------------------------------------- */

const struct wal__salvage_written *
wal__salvage_find_written(const struct wal__salvage *salvage, uint64_t sequence)
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
                   salvage->written[low].sequence == sequence
               ? &salvage->written[low]
               : NULL;
}

/* Opens the file of an entry for lookups. */
static bool open_lookup(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment)
{
    enum wal_status status;

    if (salvage->lookup_segment == segment) {
        return true;
    }
    wal__damaged_file_close(&salvage->lookup);
    salvage->lookup_segment = NULL;
    status = wal__damaged_file_open(&salvage->lookup, &salvage->damaged.env,
                                    segment->name);
    if (status != WAL_OK) {
        (void)wal__salvage_is_fatal(salvage, status, NULL);
        return false;
    }
    salvage->lookup_segment = segment;
    return true;
}

/* Reads the id of an entry again. */
static bool read_id(struct wal__salvage *salvage,
                    const struct wal__salvage_written *written,
                    char id[WAL_ID_SIZE])
{
    struct wal__damaged_file *file = &salvage->lookup;
    struct wal__span first;
    struct wal__span found;
    struct wal__frame frame;
    const uint8_t *bytes;

    if (!open_lookup(salvage, written->segment)) {
        return false;
    }
    bytes = wal__damaged_file_fetch(file, written->offset, WAL__FRAME_SIZE);
    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - written->offset,
                          written->segment->header.salt, written->offset,
                          &frame) != WAL__FMT_OK) {
        return false;
    }
    first.size = frame.stored_size < WAL__ENTRY_ID_END ? frame.stored_size
                                                       : WAL__ENTRY_ID_END;
    first.data = wal__damaged_file_fetch(
        file, written->offset + WAL__FRAME_SIZE, first.size);
    if (first.data == NULL || !wal__entry_record_id(first, &found)) {
        return false;
    }
    wal__salvage_copy_id(id, (struct wal_slice){found.data, found.size});
    return true;
}

bool wal__salvage_find_ancestor(struct wal__salvage *salvage,
                                uint64_t *sequence, char id[WAL_ID_SIZE])
{
    uint64_t at = *sequence;

    id[0] = '\0';
    while (at != 0) {
        const struct wal__salvage_written *written =
            wal__salvage_find_written(salvage, at);
        const struct wal__salvage_lost *lost;

        if (written != NULL) {
            *sequence = at;
            return read_id(salvage, written, id);
        }
        lost = wal__salvage_find_lost(salvage, at);
        if (lost == NULL || lost->parent >= at) {
            return false;
        }
        at = lost->parent;
    }
    return false;
}

void wal__salvage_count_lost(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->lost_count; i++) {
        const struct wal__salvage_lost *lost = &salvage->lost[i];

        salvage->result.lost_entries +=
            lost->type == WAL__FRAME_ENTRY &&
            wal__salvage_find_written(salvage, lost->sequence) == NULL;
    }
}
