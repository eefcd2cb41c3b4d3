/*
 * names.c - texts with numbers (names.h).
 *
 * Invariant: at most half of the slots are taken.
 */
#include "tools/usage/names.h"

#include <stdlib.h>
#include <string.h>

#include "convert/model/model_table.h"
#include "tools/cli/cli.h"

static size_t slot_of(const struct usage_names *names, const char *text)
{
    const struct wal__json_span bytes = {(const uint8_t *)text, strlen(text)};
    size_t slot = (size_t)wal__model_hash(0, bytes) & (names->slot_count - 1);

    while (names->slots[slot] != 0 &&
           strcmp(names->items[names->slots[slot] - 1], text) != 0) {
        slot = (slot + 1) & (names->slot_count - 1);
    }
    return slot;
}

static void grow(struct usage_names *names)
{
    free(names->slots);
    names->slot_count = names->slot_count == 0 ? 64 : names->slot_count * 2;
    names->slots = cli_alloc(names->slot_count * sizeof(names->slots[0]));
    for (size_t i = 0; i < names->count; i++) {
        names->slots[slot_of(names, names->items[i])] = (uint32_t)i + 1;
    }
}

uint32_t usage_names_number(struct usage_names *names, const char *text)
{
    size_t slot;

    if (names->count * 2 >= names->slot_count) {
        grow(names);
    }
    slot = slot_of(names, text);
    if (names->slots[slot] == 0) {
        names->items = cli_reserve(names->items, names->count, &names->capacity,
                                   sizeof(names->items[0]));
        names->items[names->count++] = cli_copy_text(text, strlen(text));
        names->slots[slot] = (uint32_t)names->count;
    }
    return names->slots[slot] - 1;
}

void usage_names_deinit(struct usage_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
    free(names->slots);
    *names = (struct usage_names){.items = NULL};
}
