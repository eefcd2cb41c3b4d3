/*
 * segment_image.c - a segment built in memory (segment_image.h).
 */
#include "tests/lib/segment_image.h"

#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"

enum { PAYLOAD_MAX = 4096 };

void image_init(struct image *image, uint64_t capacity)
{
    struct wal__segment_header header = {
        .version = WAL__FORMAT_VERSION,
        .uuid = {1, 2, 3},
        .id = 1,
        .capacity = capacity,
        .salt = 0x1122334455667788,
        .class = WAL__CLASS_LOG,
        .group_align = WAL__FRAME_ALIGN,
    };

    *image = (struct image){
        .bytes = calloc(1, (size_t)capacity),
        .capacity = capacity,
        .salt = header.salt,
        .align = WAL__FRAME_ALIGN,
        .end = WAL__SEGMENT_HEADER_SIZE,
        .at = WAL__SEGMENT_HEADER_SIZE,
        .first = 1,
        .durable = WAL__SEGMENT_HEADER_SIZE,
    };
    WAL__ASSERT(image->bytes != NULL);
    wal__segment_header_encode(&header, image->bytes);
}

void image_deinit(struct image *image)
{
    free(image->bytes);
    *image = (struct image){.bytes = NULL};
}

static void put(struct image *image, struct wal__frame *frame, const void *payload)
{
    uint8_t *at = image->bytes + image->at;
    uint64_t span = wal__frame_total_size(frame->stored_size);

    WAL__ASSERT(image->at + span <= image->capacity);
    memset(at, 0, (size_t)span);
    if (frame->stored_size > 0) {
        memcpy(at + WAL__FRAME_SIZE, payload, frame->stored_size);
    }
    frame->raw_size = frame->stored_size;
    frame->data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, frame->stored_size);
    wal__frame_encode(frame, image->salt, image->at, at);
    image->at += span;
}

void image_rewrite(struct image *image, uint64_t last_sequence)
{
    struct wal__segment_header header;

    WAL__ASSERT(wal__segment_header_decode(image->bytes, &header) == WAL__FMT_OK);
    header.group_align = WAL__BLOCK_ALIGN;
    header.features.incompat = WAL__INCOMPAT_REWRITTEN;
    header.rewrite = (struct wal__rewrite){
        .generation = 1,
        .first_id = 1,
        .original_end = WAL__SEGMENT_HEADER_SIZE,
        .last_sequence = last_sequence,
    };
    wal__segment_header_encode(&header, image->bytes);
    image->is_rewritten = true;
    image->align = WAL__BLOCK_ALIGN;
    image->sequence = last_sequence;
    image->first = last_sequence + 1;
}

uint64_t image_frame(struct image *image, uint8_t type, uint32_t session, uint64_t parent,
                     const void *payload, uint32_t size)
{
    uint64_t offset = image->at;
    struct wal__frame frame = {
        .type = type,
        .session = session,
        .parent = parent,
        .stored_size = size,
    };

    if (wal__frame_is_sequenced(type)) {
        frame.sequence = ++image->sequence;
    }
    put(image, &frame, payload);
    image->chain = wal__frame_chain_crc(image->chain, &frame);
    image->frames++;
    return offset;
}

uint64_t image_entry(struct image *image, uint32_t session)
{
    const struct wal__entry_record entry = {
        .id = {(const uint8_t *)"entry", 5},
        .type = {(const uint8_t *)"note", 4},
        .payload = {(const uint8_t *)"{\"text\":\"something to keep\"}", 28},
    };
    uint8_t payload[PAYLOAD_MAX];

    wal__entry_record_encode(&entry, payload);
    image->session = session;
    return image_frame(image, WAL__FRAME_ENTRY, session, 0, payload,
                       (uint32_t)wal__entry_record_size(&entry));
}

uint64_t image_block(struct image *image, uint32_t session, uint64_t first_sequence, uint32_t count,
                     int level)
{
    const struct wal__entry_record entry = {
        .id = {(const uint8_t *)"entry", 5},
        .type = {(const uint8_t *)"note", 4},
        .payload = {(const uint8_t *)"{\"text\":\"something to keep\"}", 28},
    };
    uint32_t size = (uint32_t)wal__entry_record_size(&entry);
    uint64_t total = wal__frame_total_size(size);
    uint8_t *raw = calloc(count, (size_t)total);
    uint8_t *out = calloc(1, wal__block_payload_size((uint32_t)total * count, 0));
    struct wal__frame block = {.session = session};
    uint64_t offset = image->at;
    uint32_t raw_size;

    WAL__ASSERT(raw != NULL && out != NULL && offset % WAL__BLOCK_ALIGN == 0);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = raw + total * i;
        struct wal__frame frame = {
            .type = WAL__FRAME_ENTRY,
            .flags = WAL__FRAME_REWRITTEN,
            .session = session,
            .sequence = first_sequence + i,
            .stored_size = size,
            .raw_size = size,
        };

        wal__entry_record_encode(&entry, at + WAL__FRAME_SIZE);
        frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
        wal__frame_encode(&frame, image->salt, offset + i, at);
    }
    wal__block_encode((struct wal__span){raw, (size_t)total * count}, count, level, 0, &block, out);
    raw_size = block.raw_size;
    put(image, &block, out);
    block.raw_size = raw_size;
    wal__frame_encode(&block, image->salt, offset, image->bytes + offset);
    image->chain = wal__frame_chain_crc(image->chain, &block);
    image->frames++;
    free(raw);
    free(out);
    return offset;
}

uint64_t image_commit(struct image *image, bool promised)
{
    uint64_t offset = image->at;
    const struct wal__commit_record commit = {
        .first_sequence = image->first,
        .frame_count = image->frames,
        .group_size = (uint32_t)(image->at - image->end),
        .chain = image->chain,
        .durable_off = (uint32_t)image->durable,
        .epoch = 1,
        .clock_ms = 1767225600000,
        .flags = promised ? (uint32_t)WAL__COMMIT_DURABLE : 0,
        .session_count = image->session == 0 ? 0 : 1,
    };
    struct wal__frame frame = {
        .type = WAL__FRAME_COMMIT,
        .stored_size = (uint32_t)wal__commit_record_size(commit.session_count),
    };
    uint8_t payload[PAYLOAD_MAX];

    wal__commit_record_encode(&commit, &image->session, payload);
    put(image, &frame, payload);
    image->chain = wal__frame_chain_crc(image->chain, &frame);
    image->at = (image->at + image->align - 1) / image->align * image->align;
    image->end = image->at;
    image->first = image->sequence + 1;
    image->frames = 0;
    image->session = 0;
    return offset;
}

uint64_t image_group(struct image *image, uint32_t session, uint32_t entries, bool promised)
{
    uint64_t offset = image->at;

    for (uint32_t i = 0; i < entries; i++) {
        image_entry(image, session);
    }
    image_commit(image, promised);
    return offset;
}

void image_open(struct image *image)
{
    const struct wal__open_record open = {.epoch = 1};
    uint8_t payload[PAYLOAD_MAX];

    wal__open_record_encode(&open, NULL, payload);
    image_frame(image, WAL__FRAME_OPEN, 0, 0, payload, (uint32_t)wal__open_record_size(0));
    image_commit(image, false);
}

uint64_t image_commit_mark(struct image *image)
{
    image->durable = image->end;
    return image_commit(image, false);
}

void image_seal(struct image *image)
{
    struct wal__index_header header = {
        .id = 1,
        .end = image->end,
        .first_sequence = 1,
        .last_sequence = image->sequence,
        .chain = image->chain,
    };
    struct wal__seal_record seal = {
        .end = image->end,
        .last_sequence = image->sequence,
        .chain = image->chain,
        .index_offset = image->end,
    };
    struct wal__trailer trailer = {
        .id = 1,
        .index_offset = image->end,
        .end = image->end,
        .last_sequence = image->sequence,
        .chain = image->chain,
    };
    struct wal__frame frame = {
        .type = WAL__FRAME_INDEX,
        .stored_size = WAL__INDEX_HEADER_SIZE,
    };
    uint64_t last = image->capacity - WAL__TRAILER_SIZE;
    uint8_t payload[PAYLOAD_MAX] = {0};

    wal__index_finish(&header, payload);
    put(image, &frame, payload);
    trailer.seal_offset = image->at;
    frame = (struct wal__frame){.type = WAL__FRAME_SEAL, .stored_size = WAL__SEAL_SIZE};
    wal__seal_record_encode(&seal, payload);
    put(image, &frame, payload);
    wal__trailer_encode(&trailer, image->salt, last, image->bytes + last);
}

static const uint8_t *fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const struct image *image = ctx;

    WAL__ASSERT(offset <= image->capacity && size <= image->capacity - offset);
    if (image->bad_size > 0 && offset < image->bad_offset + image->bad_size &&
        image->bad_offset < offset + size) {
        return NULL;
    }
    return image->bytes + offset;
}

struct wal__scan_source image_source(struct image *image)
{
    return (struct wal__scan_source){image, fetch};
}

struct wal__scan_start image_start(const struct image *image)
{
    return (struct wal__scan_start){
        .salt = image->salt,
        .capacity = image->capacity,
        .group_align = image->align,
        .offset = WAL__SEGMENT_HEADER_SIZE,
        .last_sequence = image->is_rewritten ? image->sequence : 0,
        .is_rewritten = image->is_rewritten,
    };
}
