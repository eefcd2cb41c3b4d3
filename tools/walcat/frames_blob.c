/*
 * frames_blob.c - prints the headers of CHUNK and BLOB records (SPEC.md 2.18,
 * 2.19), not their content.
 *
 * Threads: the tool has one thread.
 */
#include "tools/walcat/frames_blob.h"

#include <inttypes.h>

#include "format/segment/record_blob.h"
#include "tools/cli/cli.h"

/* The header of a record of the blob stream. */
struct content {
    char digest[2 * WAL__DIGEST_SIZE + 1];
    char base[2 * WAL__DIGEST_SIZE + 1]; /* empty: none */
    uint64_t size;
    const char *encoding; /* null: a BLOB */
    uint64_t depth;       /* of a BLOB: number of its chunks */
};

static bool decode_content(const struct wal__frame *frame, const uint8_t *bytes,
                           struct content *content)
{
    static const char *const encodings[] = {"raw", "lz4", "delta"};
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;

    *content = (struct content){.size = 0};
    if (bytes == NULL) {
        return false;
    }
    if (frame->type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(payload, &chunk) == WAL__FMT_OK) {
        wal__hex_write(chunk.digest.bytes, WAL__DIGEST_SIZE, content->digest);
        if (chunk.encoding == WAL__CHUNK_DELTA) {
            wal__hex_write(chunk.base.bytes, WAL__DIGEST_SIZE, content->base);
        }
        content->size = chunk.size;
        content->encoding = encodings[chunk.encoding];
        content->depth = chunk.depth;
        return true;
    }
    if (frame->type == WAL__FRAME_BLOB &&
        wal__blob_record_decode(payload, &blob) == WAL__FMT_OK) {
        wal__hex_write(blob.digest.bytes, WAL__DIGEST_SIZE, content->digest);
        content->size = blob.size;
        content->depth = blob.chunk_count;
        return true;
    }
    return false;
}

void walcat_blob_json(struct wal__json_out *json,
                      const struct wal__frame *frame, const uint8_t *payload)
{
    struct content content;

    if (!decode_content(frame, payload, &content)) {
        return;
    }
    cli_json_member_text(json, "digest", cli_slice(content.digest));
    wal__json_out_member_count(json, "contentSize", content.size);
    if (content.encoding != NULL) {
        cli_json_member_text(json, "encoding", cli_slice(content.encoding));
    }
    wal__json_out_member_count(
        json, content.encoding != NULL ? "depth" : "chunkCount", content.depth);
    if (content.base[0] != '\0') {
        cli_json_member_text(json, "base", cli_slice(content.base));
    }
}

void walcat_blob_text(const struct wal__frame *frame, const uint8_t *payload)
{
    struct content content;

    if (!decode_content(frame, payload, &content)) {
        return;
    }
    printf("  sha256 %s  size %" PRIu64, content.digest, content.size);
    if (content.encoding == NULL) {
        printf("  chunks %" PRIu64, content.depth);
    } else {
        printf("  %s  depth %" PRIu64, content.encoding, content.depth);
    }
    if (content.base[0] != '\0') {
        printf("  base %s", content.base);
    }
}
