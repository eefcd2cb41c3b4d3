/*
 * base_list.h - a base (SPEC.md 11.3): the segments, at least one, that lead
 * from nothing to the position after a part.
 *
 *   {"version":1,"created":MS,"epoch":E,"part":N,"segments":["seg/K/ID",...]}
 *
 * With "erased":K before the segments it is base K, or made of that, which was
 * made of a store that had erased something; 0, or absent: of none.
 *
 * Invariant: as in object_json.h.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_BASE_LIST_H
#define AGENTWAL_REMOTE_LAYOUT_BASE_LIST_H

#include "agentwal.h"
#include "engine/base/buf.h"
#include "remote/layout/store_object.h"

enum {
    WAL__BASE_SEGMENTS_MAX = 16384,
    WAL__BASE_JSON_MAX = 1024 * 1024
};

struct wal__base_segment {
    uint64_t number; /* of the base for which it was made */
    uint8_t id[16];
};

/* A zeroed one is empty. Free it with wal__base_list_deinit. */
struct wal__base_list {
    int64_t created_ms; /* Unix time, milliseconds */
    uint64_t epoch;     /* of the part */
    uint64_t part;
    uint64_t erased;          /* the number of a base, or 0 */
    struct wal__buf segments; /* struct wal__base_segment, in order */
};

void wal__base_list_init(struct wal__base_list *list,
                         const struct wal__heap *heap);
void wal__base_list_deinit(struct wal__base_list *list);

size_t wal__base_list_count(const struct wal__base_list *list);
/* Holds until the list changes. */
const struct wal__base_segment *
wal__base_list_at(const struct wal__base_list *list, size_t at);
/* WAL_ENOMEM; WAL_ETOOBIG above WAL__BASE_SEGMENTS_MAX. */
enum wal_status
wal__base_list_add(struct wal__base_list *list,
                   const struct wal__base_segment *segment) WAL_MUST_USE;

/* Appends the JSON to *out: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__base_list_encode(const struct wal__base_list *list,
                                      struct wal__buf *out) WAL_MUST_USE;
/* Fills an initialised list. WAL_ECORRUPT, WAL_EVERSION or WAL_ENOMEM;
 * error->file is the name. */
enum wal_status wal__base_list_decode(struct wal_slice bytes, const char *name,
                                      struct wal__base_list *list,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
