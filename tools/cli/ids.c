/*
 * ids.c - open-addressing hash table, at most half full.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/ids.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"

uint64_t cli_hash(struct wal_slice text)
{
    const uint8_t *data = text.data;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < text.size; i++) {
        hash = (hash ^ data[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Returns the slot of the id, or the free slot for it. */
static struct cli_ids_slot *find_slot(const struct cli_ids *ids,
                                      struct wal_slice id, uint64_t hash)
{
    size_t at = hash & (ids->capacity - 1);
    struct cli_ids_slot *item = &ids->items[at];

    while (item->text != NULL &&
           !(item->hash == hash && item->size == id.size &&
             memcmp(item->text, id.data, id.size) == 0)) {
        at = (at + 1) & (ids->capacity - 1);
        item = &ids->items[at];
    }
    return item;
}

static void grow(struct cli_ids *ids)
{
    struct cli_ids larger = {.count = ids->count};

    larger.capacity = ids->capacity > 0 ? ids->capacity * 2 : 64;
    larger.items = cli_alloc(larger.capacity * sizeof(larger.items[0]));
    for (size_t i = 0; i < ids->capacity; i++) {
        struct cli_ids_slot *item = &ids->items[i];
        struct wal_slice id = {item->text, item->size};
        if (item->text != NULL) {
            *find_slot(&larger, id, item->hash) = *item;
        }
    }
    free(ids->items);
    *ids = larger;
}

uint32_t *cli_ids_find(const struct cli_ids *ids, struct wal_slice id)
{
    struct cli_ids_slot *item;

    if (ids->capacity == 0 || id.size == 0) {
        return NULL;
    }
    item = find_slot(ids, id, cli_hash(id));
    return item->text != NULL ? &item->value : NULL;
}

uint32_t *cli_ids_get_or_add(struct cli_ids *ids, struct wal_slice id)
{
    uint64_t hash = cli_hash(id);
    struct cli_ids_slot *item;

    if (2 * (ids->count + 1) > ids->capacity) {
        grow(ids);
    }
    item = find_slot(ids, id, hash);
    if (item->text == NULL) {
        item->hash = hash;
        item->text = cli_copy_text(id.data, id.size);
        item->size = (uint32_t)id.size;
        item->value = 0;
        ids->count++;
    }
    return &item->value;
}

void cli_ids_deinit(struct cli_ids *ids)
{
    for (size_t i = 0; i < ids->capacity; i++) {
        free(ids->items[i].text);
    }
    free(ids->items);
    *ids = (struct cli_ids){.items = NULL};
}
