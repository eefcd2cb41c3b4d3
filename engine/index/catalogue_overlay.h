/*
 * catalogue_overlay.h - the summaries that changed since the catalogue's
 * snapshot, in memory: a layer of the catalogue (catalogue.h). A session has at
 * most one slot. A slot holds an encoded summary (SPEC.md 2.12), which takes
 * half the memory of a decoded one.
 *
 * Layers are counted, so that an iterator, or a thread that writes a snapshot,
 * keeps the layers it began with. The caller's lock: one writer or any readers;
 * a frozen layer has no writer, and needs no lock. Retain and release: any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_INDEX_CATALOGUE_OVERLAY_H
#define AGENTWAL_ENGINE_INDEX_CATALOGUE_OVERLAY_H

#include <stdatomic.h>

#include "engine/base/containers.h"
#include "engine/index/catalogue.h"

/* A summary and its texts, with some room in which the head's id may grow: the
 * only text that changes with each append. */
struct wal__overlay_slot {
    uint32_t text_capacity;
    uint8_t summary[WAL__SUMMARY_SIZE];
    uint8_t text[];
};

struct wal__overlay {
    const struct wal__heap *heap;
    _Atomic uint32_t references;
    struct wal__overlay_slot **slots;
    /* The position of each slot's session in lists; number 0: it is hidden.
     * Apart from the slots, so that a list reads consecutive memory. */
    struct wal__list_key *keys;
    uint32_t count;
    uint32_t capacity;
    uint64_t slot_bytes; /* memory of all slots */
    struct wal__hashmap by_number;
    struct wal__hashmap by_id;
};

/* Returns an empty layer with one reference, or NULL without memory. */
struct wal__overlay *wal__overlay_create(const struct wal__heap *heap);
/* NULL is allowed, and returned. */
struct wal__overlay *wal__overlay_retain(struct wal__overlay *overlay);
void wal__overlay_release(struct wal__overlay *overlay);

/* Finds the slot of a session; false, with *slot untouched, when it has none or
 * overlay is NULL. */
bool wal__overlay_find(const struct wal__overlay *overlay, uint32_t number,
                       uint32_t *slot);
/* Finds the slot of the visible session with the id, likewise. */
bool wal__overlay_find_id(const struct wal__overlay *overlay,
                          struct wal__span id, uint64_t hash, uint32_t *slot);

/* Decodes the summary of a slot; its texts are the slot's. */
void wal__overlay_get(const struct wal__overlay *overlay, uint32_t slot,
                      struct wal__summary *summary);

/* Adds or replaces the slot of the summary's session. The summary is valid, and
 * its texts may be those of the slot. WAL_ENOMEM leaves the layer unchanged. */
enum wal_status
wal__overlay_put(struct wal__overlay *overlay,
                 const struct wal__summary *summary) WAL_MUST_USE;

/* The heap memory of the layer in bytes; NULL: 0. */
uint64_t wal__overlay_size(const struct wal__overlay *overlay);

#endif
