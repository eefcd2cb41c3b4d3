/*
 * make_version_0.c - turns a store of format version 1 into what version 0 would have written: the
 * same frames with SESSION records of the older layout, laid out anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/record.h"
#include "tests/golden/make_golden.h"

/* SESSION as version 0 has it (SPEC.md, Versions): the creation time in seconds, no schema version,
 * the title in the metadata. */
static size_t encode_session_0(const struct wal__session_record *session, uint8_t *out)
{
    char metadata[128];
    int metadata_size = snprintf(metadata, sizeof(metadata), "{\"title\":\"%.*s\",\"golden\":true}",
                                 (int)session->title.size, (const char *)session->title.data);
    const struct wal__span texts[] = {
        session->id,        session->cwd,    session->project,
        session->parent_id, session->source, {(const uint8_t *)metadata, (size_t)metadata_size},
    };
    uint8_t *at = out + 28;

    wal__put64(out, (uint64_t)(session->created_ms / 1000));
    wal__put32(out + 8, session->flags);
    for (size_t i = 0; i < 5; i++) {
        wal__put16(out + 12 + 2 * i, (uint16_t)texts[i].size);
    }
    wal__put16(out + 22, 0);
    wal__put32(out + 24, (uint32_t)metadata_size);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        at = wal__put_text(at, texts[i]);
    }
    return (size_t)(at - out);
}

/* A segment that is written anew. */
struct relay {
    const struct golden_file *from;
    uint8_t *bytes;
    uint64_t at;    /* end of what is written */
    uint64_t group; /* where the group at hand begins */
    uint32_t chain;
    uint64_t *moved; /* of each group's offset before: where it is now */
};

static void relay_payload(struct relay *relay, struct wal__frame *frame, const uint8_t *from,
                          uint8_t *to)
{
    const struct wal__span payload = {from, frame->stored_size};
    struct wal__session_record session;

    memcpy(to, from, frame->stored_size);
    if (frame->type == WAL__FRAME_SESSION) {
        WAL__ASSERT(wal__session_record_decode(payload, 1, &session) == WAL__FMT_OK);
        memset(to, 0, frame->stored_size);
        frame->stored_size = (uint32_t)encode_session_0(&session, to);
    } else if (frame->type == WAL__FRAME_COMMIT) {
        wal__put32(to + 12, (uint32_t)(relay->at - relay->group));
        wal__put32(to + 16, relay->chain);
        wal__put32(to + 20, (uint32_t)relay->moved[wal__get32(from + 20)]);
    }
    frame->raw_size = frame->stored_size;
    frame->data_crc = wal__crc32(0, to, frame->stored_size);
}

static void relay_frames(struct relay *relay, uint64_t salt)
{
    struct wal__frame frame;
    uint64_t at = golden_next_frame(relay->from, HEADER, &frame);

    relay->moved[HEADER] = HEADER;
    while (at != 0) {
        uint64_t next = at + wal__frame_total_size(frame.stored_size);
        uint8_t *to = relay->bytes + relay->at;

        relay_payload(relay, &frame, relay->from->bytes + at + WAL__FRAME_SIZE,
                      to + WAL__FRAME_SIZE);
        wal__frame_encode(&frame, salt, relay->at, to);
        relay->chain = wal__frame_chain_crc(relay->chain, &frame);
        relay->at += wal__frame_total_size(frame.stored_size);
        if (frame.type == WAL__FRAME_COMMIT) {
            relay->group = relay->at;
            relay->moved[next] = relay->at;
        }
        at = golden_next_frame(relay->from, next, &frame);
    }
}

static void lower_segment(struct sim_disk *disk)
{
    struct golden_file old = golden_take(disk, SEG1);
    struct golden_file new = old;
    struct relay relay = {.from = &old, .at = HEADER, .group = HEADER};
    struct wal__segment_header header;

    new.bytes = calloc(1, old.size);
    relay.bytes = new.bytes;
    relay.moved = calloc(old.size, sizeof(*relay.moved));
    WAL__ASSERT(new.bytes != NULL &&relay.moved != NULL);
    golden_header(&old, &header);
    header.version = 0;
    wal__segment_header_encode(&header, new.bytes);
    relay_frames(&relay, header.salt);
    golden_put_back(&new);
    free(relay.moved);
    free(old.bytes);
}

static void lower_manifest(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, ROOT "/MANIFEST");

    for (size_t i = 0; i < 2; i++) {
        uint8_t *slot = file.bytes + i * WAL__MANIFEST_SLOT_SIZE;
        struct wal__manifest manifest;

        if (wal__manifest_decode(slot, &manifest) == WAL__FMT_OK) {
            manifest.version = 0;
            wal__manifest_encode(&manifest, slot);
        }
    }
    golden_put_back(&file);
}

void golden_lower(struct sim_disk *disk)
{
    lower_segment(disk);
    lower_manifest(disk);
}
