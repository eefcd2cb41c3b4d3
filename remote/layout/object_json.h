/*
 * object_json.h - the objects of a remote that are JSON (SPEC.md 11.3): epochs,
 * bases, and the marks among the parts.
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
#include "engine/base/digest.h"
#include "remote/layout/store_object.h"

enum {
    WAL__EPOCH_HOST_SIZE = 65, /* with its NUL */
    WAL__EPOCH_JSON_MAX = 4096,
    WAL__MARK_JSON_MAX = 256,
    WAL__BASE_SEGMENTS_MAX = 262144,
    WAL__BASE_JSON_MAX = 96 * 1024 * 1024
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

enum wal__mark_kind {
    WAL__MARK_NONE = 0, /* the object is a part */
    WAL__MARK_FENCE,    /* the epoch ends: `number` is the epoch after it */
    WAL__MARK_BASE      /* the base `number` counts, from here */
};

/* An object in place of a part. */
struct wal__mark {
    enum wal__mark_kind kind;
    uint64_t number; /* from 1 */
};

enum wal_status wal__mark_encode(const struct wal__mark *mark,
                                 struct wal__buf *out) WAL_MUST_USE;
/* Of a part, mark->kind is WAL__MARK_NONE: what does not begin with a brace.
 * WAL_ECORRUPT. */
enum wal_status wal__mark_decode(struct wal_slice bytes, const char *name,
                                 struct wal__mark *mark,
                                 struct wal_error *error) WAL_MUST_USE;

/* A place in each stream of a store: everything before it has been copied. */
struct wal__position {
    struct wal_part_place places[WAL_PART_STREAMS];
};

/* A segment that a base lists. */
struct wal__base_segment {
    uint32_t stream;
    uint64_t segment;
    uint64_t identity;
    uint64_t size;
    struct wal__digest digest;
};

/* What a new replica is made of: these segments in this order, then the parts
 * from part `part` of the epoch, which is the mark of this base. */
struct wal__base {
    uint64_t number; /* of the base: k */
    uint64_t epoch;
    uint64_t part;
    struct wal__position position; /* after the segments */
    uint32_t count;
    uint32_t capacity;
    struct wal__base_segment *segments;
};

enum wal_status wal__base_encode(const struct wal__base *base,
                                 struct wal__buf *out) WAL_MUST_USE;
/* WAL_ECORRUPT, WAL_EVERSION, WAL_ENOMEM. Free it with wal__base_deinit. */
enum wal_status wal__base_decode(struct wal_slice bytes, const char *name,
                                 const struct wal__heap *heap,
                                 struct wal__base *base,
                                 struct wal_error *error) WAL_MUST_USE;
/* Appends a segment: WAL_OK, WAL_ENOMEM or WAL_ETOOBIG. */
enum wal_status
wal__base_add(struct wal__base *base, const struct wal__heap *heap,
              const struct wal__base_segment *segment) WAL_MUST_USE;
/* A zeroed one may be deinited. */
void wal__base_deinit(struct wal__base *base, const struct wal__heap *heap);

#endif
