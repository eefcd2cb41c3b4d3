/*
 * object_json.h - the objects of a remote that are JSON (SPEC.md 11.3): epochs,
 * and the fences among the parts.
 *
 * Invariant: the decoders accept any bytes. Of what they accept every field is
 * within its range; members that they do not know are ignored. Outputs are
 * untouched on failure.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_OBJECT_JSON_H
#define AGENTWAL_REMOTE_LAYOUT_OBJECT_JSON_H

#include <stdbool.h>

#include "agentwal/replica.h"
#include "engine/base/buf.h"
#include "engine/base/sha256.h"
#include "remote/layout/store_object.h"

enum {
    WAL__EPOCH_HOST_SIZE = 65, /* with its NUL */
    WAL__EPOCH_JSON_MAX = 4096,
    WAL__FENCE_JSON_MAX = 128 /* every part is larger */
};

/* The writer of an epoch. */
struct wal__epoch {
    uint8_t writer[16];
    char host[WAL__EPOCH_HOST_SIZE]; /* printable ASCII */
    int64_t started_ms;              /* Unix time, milliseconds */
};

/* Appends the JSON to *out: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__epoch_encode(const struct wal__epoch *epoch,
                                  struct wal__buf *out) WAL_MUST_USE;
/* WAL_ECORRUPT, or WAL_EVERSION; error->file is the name. */
enum wal_status wal__epoch_decode(struct wal_slice bytes, const char *name,
                                  struct wal__epoch *epoch,
                                  struct wal_error *error) WAL_MUST_USE;

/* An object in place of a part, which ends an epoch: `epoch` is the one after
 * it. */
enum wal_status wal__fence_encode(uint64_t epoch,
                                  struct wal__buf *out) WAL_MUST_USE;
/* Sets *epoch; to 0 of a part: what does not begin with a brace.
 * WAL_ECORRUPT. */
enum wal_status wal__fence_decode(struct wal_slice bytes, const char *name,
                                  uint64_t *epoch,
                                  struct wal_error *error) WAL_MUST_USE;

/* A place in each stream of a store: everything before it has been copied. */
struct wal__position {
    struct wal_part_place places[WAL_PART_STREAMS];
};

#endif
