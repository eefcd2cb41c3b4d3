/*
 * segment_image.h - a segment built in memory, for tests of what reads segments.
 *
 * Sequence numbers, chain and offsets are kept as a writer would; any of the fields may be changed
 * between the calls to build what no writer would.
 */
#ifndef AGENTWAL_TESTS_LIB_SEGMENT_IMAGE_H
#define AGENTWAL_TESTS_LIB_SEGMENT_IMAGE_H

#include <stdbool.h>

#include "format/segment/scan.h"

struct image {
    uint8_t *bytes;
    uint64_t capacity;
    uint64_t salt;
    uint32_t align;
    uint64_t end;      /* of the last group */
    uint64_t at;       /* of the next frame */
    uint64_t sequence; /* last one given */
    uint64_t first;    /* of the group */
    uint32_t chain;
    uint32_t frames;  /* of the group */
    uint64_t durable; /* that the next COMMIT names */
    uint32_t session; /* that the group's COMMIT names */
    bool is_rewritten;
    /* For the source: reads that touch these bytes fail. */
    uint64_t bad_offset;
    uint64_t bad_size;
};

/* A segment with its header and nothing else. */
void image_init(struct image *image, uint64_t capacity);
void image_deinit(struct image *image);

/* Adds a frame; its offset. Types that take a sequence number get the next one. */
uint64_t image_frame(struct image *image, uint8_t type, uint32_t session, uint64_t parent,
                     const void *payload, uint32_t size);
/* Adds an entry whose parent is the record before it, if that is one. */
uint64_t image_entry(struct image *image, uint32_t session);
/* Closes the group; the offset of its COMMIT. */
uint64_t image_commit(struct image *image, bool promised);
/* A group of `entries` entries; the offset of its first frame. */
uint64_t image_group(struct image *image, uint32_t session, uint32_t entries, bool promised);
/* The group that a new segment begins with. */
void image_open(struct image *image);
/* Makes it a rewritten segment, up to that sequence number; before image_open. */
void image_rewrite(struct image *image, uint64_t last_sequence);
/* A BLOCK of `count` entries with ascending sequence numbers; its offset. Level 0: it is not
 * compressed. */
uint64_t image_block(struct image *image, uint32_t session, uint64_t first_sequence, uint32_t count,
                     int level);
/* An empty group that names all before it durable. */
uint64_t image_commit_mark(struct image *image);
/* INDEX, SEAL and trailer. */
void image_seal(struct image *image);

struct wal__scan_source image_source(struct image *image);
struct wal__scan_start image_start(const struct image *image);

#endif
