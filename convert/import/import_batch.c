/*
 * import_batch.c - collects entries and appends them (import_batch.h).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/import_batch.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static void copy_text(struct wal__import_batch *batch,
                      struct wal__import_span *span, struct wal_slice text)
{
    span->offset = batch->used;
    span->size = (size_t)text.size;
    if (text.size > 0) {
        memcpy(batch->memory + batch->used, text.data, (size_t)text.size);
        batch->used += (size_t)text.size;
    }
}

static enum wal_status reserve(struct wal__import_batch *batch, size_t size,
                               struct wal_error *error)
{
    size_t capacity = batch->capacity > 0 ? batch->capacity : 65536;
    char *memory;

    while (batch->used + size > capacity) {
        capacity *= 2;
    }
    if (capacity == batch->capacity) {
        return WAL_OK;
    }
    memory = wal__heap_resize(batch->heap, batch->memory, capacity, 1);
    if (memory == NULL) {
        return wal__no_memory(error);
    }
    batch->memory = memory;
    batch->capacity = capacity;
    return WAL_OK;
}

static enum wal_status append(struct wal__import_batch *batch,
                              const struct wal_entry *entries, uint32_t count,
                              struct wal_error *error)
{
    struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };
    struct wal_session_change change = {
        .struct_size = sizeof(change),
        .fields = WAL_CHANGE_TITLE,
        .title = wal__slice_from_text(batch->title),
    };
    struct wal_batch request = {
        .struct_size = sizeof(request),
        .entry_count = count,
        .entries = entries,
        .change = batch->has_title ? &change : NULL,
    };
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status =
        wal_batch_commit(batch->session, &request, &options, &result, error);

    if (status == WAL_OK) {
        batch->appended += result.appended;
        batch->duplicates += result.duplicates;
        batch->has_title = false;
    }
    return status;
}

void wal__import_batch_set_title(struct wal__import_batch *batch,
                                 const char *title)
{
    snprintf(batch->title, sizeof(batch->title), "%s", title);
    batch->has_title = true;
}

static struct wal_slice text_at(const struct wal__import_batch *batch,
                                const struct wal__import_span *span)
{
    struct wal_slice text = {batch->memory + span->offset, span->size};

    return text;
}

/* Returns the slot of the id, or the free slot for it. */
static size_t find_slot(const struct wal__import_batch *batch,
                        struct wal_slice id)
{
    size_t slot = (size_t)(wal__id_hash(id.data, (size_t)id.size) %
                           WAL__IMPORT_BATCH_SLOTS);

    for (; batch->slots[slot] != 0;
         slot = (slot + 1) % WAL__IMPORT_BATCH_SLOTS) {
        const struct wal__import_pending *item =
            &batch->items[batch->slots[slot] - 1];
        if (wal__slice_equal(text_at(batch, &item->texts[WAL__IMPORT_ID]),
                             id)) {
            break;
        }
    }
    return slot;
}

bool wal__import_batch_contains(const struct wal__import_batch *batch,
                                struct wal_slice id)
{
    return batch->slots[find_slot(batch, id)] != 0;
}

enum wal_status wal__import_batch_add(struct wal__import_batch *batch,
                                      const struct wal_entry *entry,
                                      struct wal_error *error)
{
    const struct wal_slice texts[WAL__IMPORT_TEXTS] = {
        [WAL__IMPORT_ID] = entry->id,
        [WAL__IMPORT_PARENT] = entry->parent_id,
        [WAL__IMPORT_TYPE] = entry->type,
        [WAL__IMPORT_TIME] = entry->timestamp,
        [WAL__IMPORT_PAYLOAD] = entry->payload,
        [WAL__IMPORT_META] = entry->meta,
    };
    struct wal__import_pending *item;
    enum wal_status status;
    size_t size = 0;
    size_t slot;

    for (size_t i = 0; i < WAL__IMPORT_TEXTS; i++) {
        size += (size_t)texts[i].size;
    }
    if (batch->count == WAL__IMPORT_BATCH_ENTRIES ||
        batch->used + size > WAL__IMPORT_BATCH_SIZE) {
        status = wal__import_batch_flush(batch, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (size > WAL__IMPORT_BATCH_SIZE) {
        return append(batch, entry, 1, error);
    }
    status = reserve(batch, size, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(batch->count < WAL__IMPORT_BATCH_ENTRIES);
    slot = find_slot(batch, entry->id);
    item = &batch->items[batch->count++];
    batch->slots[slot] = (uint16_t)batch->count;
    item->flags = entry->flags;
    item->stream = entry->stream;
    for (size_t i = 0; i < WAL__IMPORT_TEXTS; i++) {
        copy_text(batch, &item->texts[i], texts[i]);
    }
    return WAL_OK;
}

enum wal_status wal__import_batch_flush(struct wal__import_batch *batch,
                                        struct wal_error *error)
{
    struct wal_entry *entries = batch->entries;
    enum wal_status status;

    if (batch->count == 0) {
        return WAL_OK;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const struct wal__import_span *texts = batch->items[i].texts;
        entries[i] = (struct wal_entry){
            .struct_size = sizeof(entries[i]),
            .flags = batch->items[i].flags,
            .stream = batch->items[i].stream,
            .id = text_at(batch, &texts[WAL__IMPORT_ID]),
            .parent_id = text_at(batch, &texts[WAL__IMPORT_PARENT]),
            .type = text_at(batch, &texts[WAL__IMPORT_TYPE]),
            .timestamp = text_at(batch, &texts[WAL__IMPORT_TIME]),
            .payload = text_at(batch, &texts[WAL__IMPORT_PAYLOAD]),
            .meta = text_at(batch, &texts[WAL__IMPORT_META]),
        };
    }
    status = append(batch, entries, (uint32_t)batch->count, error);
    if (status == WAL_OK) {
        batch->count = 0;
        batch->used = 0;
        memset(batch->slots, 0, sizeof(batch->slots));
    }
    return status;
}

void wal__import_batch_deinit(struct wal__import_batch *batch)
{
    if (batch->memory != NULL) {
        wal__heap_free(batch->heap, batch->memory);
    }
    batch->memory = NULL;
}
