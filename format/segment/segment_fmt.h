/*
 * segment_fmt.h - the store's manifest slot, a segment's header and its trailer (SPEC.md 2.1, 2.2,
 * 2.10). Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_SEGMENT_FMT_H
#define AGENTWAL_FORMAT_SEGMENT_SEGMENT_FMT_H

#include <stdbool.h>

#include "format/bytes/bytes.h"

enum {
    WAL__FORMAT_VERSION = 1, /* of new segments; 0 is readable */
    WAL__MANIFEST_SLOT_SIZE = 4096,
    WAL__MANIFEST_SIZE = 2 * WAL__MANIFEST_SLOT_SIZE,
    WAL__SEGMENT_HEADER_SIZE = 4096, /* of both copies; offset of frames */
    WAL__SEGMENT_HEADER_COPY = 2048, /* offset of the second copy */
    WAL__TRAILER_SIZE = 64,
    WAL__SEGMENT_MIN = 64 * 1024,
    WAL__SEGMENT_MAX = 64 * 1024 * 1024,
    WAL__POSITION_BITS = 27 /* of the offset in a position */
};

/* Feature bits (SPEC.md 7). */
#define WAL__COMPAT_AUDIT         1u /* reserved */
/* A replica (11.2): never among the known ones, so that all open it to read. */
#define WAL__RO_COMPAT_REPLICA    1u
#define WAL__RO_COMPAT_RESTORE    2u
#define WAL__INCOMPAT_REWRITTEN   1u
#define WAL__INCOMPAT_ENCRYPTED   2u
#define WAL__INCOMPAT_TRASH       4u
#define WAL__INCOMPAT_PROVISIONAL 8u
#define WAL__INCOMPAT_MOVED       16u
#define WAL__INCOMPAT_SHADOW      32u /* of MANIFEST alone */
/* Those of ro_compat in one number with those of incompat. */
#define WAL__RO_COMPAT(bits)      ((uint64_t)(bits) << 32)
/* Those that this library implements. */
#define WAL__KNOWN_RO_COMPAT      WAL__RO_COMPAT_RESTORE
#define WAL__KNOWN_INCOMPAT                                                    \
    (WAL__INCOMPAT_REWRITTEN | WAL__INCOMPAT_ENCRYPTED | WAL__INCOMPAT_TRASH | \
     WAL__INCOMPAT_PROVISIONAL | WAL__INCOMPAT_MOVED)

enum wal__segment_class { WAL__CLASS_LOG = 1, WAL__CLASS_PACK = 2 };

/* A position: a segment's id and an offset in it (SPEC.md, introduction). */
static inline uint64_t wal__position(uint64_t segment, uint64_t offset)
{
    return segment << WAL__POSITION_BITS | offset;
}

static inline uint64_t wal__position_segment(uint64_t position)
{
    return position >> WAL__POSITION_BITS;
}

static inline uint64_t wal__position_offset(uint64_t position)
{
    return position & (((uint64_t)1 << WAL__POSITION_BITS) - 1);
}

struct wal__features {
    uint32_t compat;
    uint32_t ro_compat;
    uint32_t incompat;
};

struct wal__manifest {
    uint32_t version;
    struct wal__features features; /* without `shadow` */
    bool has_shadows;              /* has the feature `shadow` (3.11) */
    uint8_t uuid[16];
    uint64_t generation;
    int64_t created_ms;
    uint32_t group_align;
};

/* Writes one slot of WAL__MANIFEST_SLOT_SIZE bytes. */
void wal__manifest_encode(const struct wal__manifest *manifest, uint8_t *out);

/* Decodes one slot of WAL__MANIFEST_SLOT_SIZE bytes. On WAL__FMT_VERSION and WAL__FMT_FEATURES it
 * sets version and features, for the error text. */
enum wal__fmt wal__manifest_decode(const uint8_t *at, struct wal__manifest *manifest);

/* What a rewritten segment replaces (SPEC.md 2.22). */
struct wal__rewrite {
    uint32_t generation; /* 0: the segment is not rewritten */
    uint32_t original_chain;
    uint64_t first_id;
    uint64_t original_end;
    uint64_t last_sequence;
    uint64_t raw_size; /* bytes of the records */
};

struct wal__segment_header {
    uint32_t version;
    struct wal__features features;
    uint8_t uuid[16];
    uint64_t id;
    uint64_t capacity;
    uint64_t salt;
    uint32_t class;
    uint32_t group_align;
    int64_t created_ms;
    struct wal__rewrite rewrite; /* with the feature bit */
    uint32_t key_id;             /* of the data key, with the feature bit; 0: not encrypted */
};

static inline bool wal__segment_is_rewritten(const struct wal__segment_header *header)
{
    return header->rewrite.generation != 0;
}

static inline bool wal__segment_is_encrypted(const struct wal__segment_header *header)
{
    return header->key_id != 0;
}

/* Returns the id of the segment that has a file name with this suffix: ".seg", or ".next" of a
 * shadow segment; 0: none. */
uint64_t wal__segment_parse_name(const char *name, const char *suffix);

/* The salt of the guard of a backup (docs/keeping.md) with this id. */
uint64_t wal__guard_salt(const uint8_t uuid[16], uint64_t id);
/* Whether it is a guard: segments between its predecessor and it are not in the chain. */
bool wal__segment_is_guard(const struct wal__segment_header *header);

/* Writes WAL__SEGMENT_HEADER_SIZE bytes, both copies. */
void wal__segment_header_encode(const struct wal__segment_header *header, uint8_t *out);

/* Decodes WAL__SEGMENT_HEADER_SIZE bytes: the first copy that is valid or of a newer library. If
 * there is none, returns the fault of the first copy, or WAL__FMT_ZERO if both copies are zeros. On
 * WAL__FMT_VERSION and WAL__FMT_FEATURES it sets version and features. */
enum wal__fmt wal__segment_header_decode(const uint8_t *at, struct wal__segment_header *header);

/* Returns the number of valid copies: 0, 1 or 2. */
int wal__segment_header_copies(const uint8_t *at);

struct wal__trailer {
    uint64_t id;
    uint64_t seal_offset;
    uint64_t index_offset;
    uint64_t end;
    uint64_t last_sequence;
    uint32_t chain;
};

/* Both use WAL__TRAILER_SIZE bytes. `offset` is the trailer's in its segment: capacity -
 * WAL__TRAILER_SIZE. */
void wal__trailer_encode(const struct wal__trailer *trailer, uint64_t salt, uint64_t offset,
                         uint8_t *out);
enum wal__fmt wal__trailer_decode(const uint8_t *at, uint64_t salt, uint64_t offset,
                                  struct wal__trailer *trailer);

#endif
