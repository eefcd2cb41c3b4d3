/*
 * entry.h - an entry as an object of Python: a copy in one block of memory.
 *
 * A copy, and not the map of the log, so that it remains valid when the store
 * is closed, compacted or damaged, and takes no memory but its size.
 */
#ifndef AGENTWAL_PYTHON_ENTRY_ENTRY_H
#define AGENTWAL_PYTHON_ENTRY_ENTRY_H

#include "bindings/python/src/core/module.h"

struct entry_block {
    uint64_t sequence;
    uint64_t depth;
    uint64_t payload_size; /* of the entry; in the block may be none of it */
    uint64_t block_payload_size;
    uint64_t meta_size;
    uint32_t flags;
    uint32_t stream;
    uint16_t id_size;
    uint16_t parent_size;
    uint16_t type_size;
    uint16_t timestamp_size;
    uint16_t run_size;
    uint8_t digest[WAL_DIGEST_SIZE];
    char text[]; /* in this order, meta and payload last */
};

/* Copies an entry; null: no memory. Needs no lock of the interpreter. Free it
 * with free(), or give it to entry_new. */
struct entry_block *entry_block_copy(const struct wal_entry *entry);

/* An object that owns the block, also when this fails. */
PyObject *entry_new(struct module_state *state, struct entry_block *block);

#endif
