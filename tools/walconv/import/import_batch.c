/*
 * import_batch.c - collect entries and append them in batches.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import/import_batch.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/ids.h"

static void copy_text(struct walconv_batch *batch,
                      struct walconv_text_span *span, struct wal_slice text)
{
    span->offset = batch->used;
    span->size = (size_t)text.size;
    if (text.size > 0) {
        memcpy(batch->memory + batch->used, text.data, (size_t)text.size);
        batch->used += (size_t)text.size;
    }
}

static void reserve(struct walconv_batch *batch, size_t size)
{
    if (batch->used + size <= batch->capacity) {
        return;
    }
    batch->capacity = batch->capacity > 0 ? batch->capacity : 65536;
    while (batch->used + size > batch->capacity) {
        batch->capacity *= 2;
    }
    batch->memory = cli_realloc(batch->memory, batch->capacity);
}

static enum wal_status append(struct walconv_batch *batch,
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
        .title = cli_slice(batch->title),
    };
    struct wal_batch request = {
        .struct_size = sizeof(request),
        .entry_count = count,
        .entries = entries,
        .change = batch->title != NULL ? &change : NULL,
    };
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status =
        wal_batch_commit(batch->session, &request, &options, &result, error);

    if (status == WAL_OK) {
        batch->appended += result.appended;
        batch->duplicates += result.duplicates;
        free(batch->title);
        batch->title = NULL;
    }
    return status;
}

void walconv_batch_set_title(struct walconv_batch *batch, const char *title)
{
    free(batch->title);
    batch->title = cli_copy_text(title, strlen(title));
}

static struct wal_slice text_at(const struct walconv_batch *batch,
                                const struct walconv_text_span *span)
{
    struct wal_slice text = {batch->memory + span->offset, span->size};

    return text;
}

/* Returns the slot of the id, or the free slot for it. */
static size_t find_slot(const struct walconv_batch *batch, struct wal_slice id)
{
    size_t slot = cli_hash(id) % WALCONV_BATCH_SLOTS;

    for (; batch->slots[slot] != 0; slot = (slot + 1) % WALCONV_BATCH_SLOTS) {
        const struct walconv_pending *item =
            &batch->items[batch->slots[slot] - 1];
        if (cli_slice_equal(text_at(batch, &item->texts[BATCH_ID]), id)) {
            break;
        }
    }
    return slot;
}

bool walconv_batch_contains(const struct walconv_batch *batch,
                            struct wal_slice id)
{
    return batch->slots[find_slot(batch, id)] != 0;
}

enum wal_status walconv_batch_add(struct walconv_batch *batch,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    const struct wal_slice texts[BATCH_TEXTS] = {
        [BATCH_ID] = entry->id,           [BATCH_PARENT] = entry->parent_id,
        [BATCH_TYPE] = entry->type,       [BATCH_TIME] = entry->timestamp,
        [BATCH_PAYLOAD] = entry->payload, [BATCH_META] = entry->meta,
    };
    struct walconv_pending *item;
    enum wal_status status;
    size_t size = 0;
    size_t slot;

    for (size_t i = 0; i < BATCH_TEXTS; i++) {
        size += (size_t)texts[i].size;
    }
    if (batch->count == WALCONV_BATCH_ENTRIES ||
        batch->used + size > WALCONV_BATCH_SIZE) {
        status = walconv_batch_flush(batch, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (size > WALCONV_BATCH_SIZE) {
        return append(batch, entry, 1, error);
    }
    reserve(batch, size);
    slot = find_slot(batch, entry->id);
    item = &batch->items[batch->count++];
    batch->slots[slot] = (uint16_t)batch->count;
    item->flags = entry->flags;
    item->stream = entry->stream;
    for (size_t i = 0; i < BATCH_TEXTS; i++) {
        copy_text(batch, &item->texts[i], texts[i]);
    }
    return WAL_OK;
}

enum wal_status walconv_batch_flush(struct walconv_batch *batch,
                                    struct wal_error *error)
{
    struct wal_entry *entries = batch->entries;
    enum wal_status status;

    if (batch->count == 0) {
        return WAL_OK;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const struct walconv_text_span *texts = batch->items[i].texts;
        entries[i] = (struct wal_entry){
            .struct_size = sizeof(entries[i]),
            .flags = batch->items[i].flags,
            .stream = batch->items[i].stream,
            .id = text_at(batch, &texts[BATCH_ID]),
            .parent_id = text_at(batch, &texts[BATCH_PARENT]),
            .type = text_at(batch, &texts[BATCH_TYPE]),
            .timestamp = text_at(batch, &texts[BATCH_TIME]),
            .payload = text_at(batch, &texts[BATCH_PAYLOAD]),
            .meta = text_at(batch, &texts[BATCH_META]),
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

void walconv_batch_deinit(struct walconv_batch *batch)
{
    free(batch->memory);
    free(batch->title);
    batch->memory = NULL;
    batch->title = NULL;
}
