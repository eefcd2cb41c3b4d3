/*
 * test_spec_hex.c - the annotated hex examples of SPEC.md: each is decoded, its fields compared
 * with what its comments say, and encoded to the same bytes again. The frames of OPEN, SESSION,
 * ENTRY and COMMIT are also checked to be one group.
 */
#include <stddef.h>
#include <stdint.h>

#include <ctype.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/crc32.h"
#include "format/index/file_list.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"

#ifndef AGENTWAL_SOURCE_DIR
#define AGENTWAL_SOURCE_DIR "."
#endif

#define SALT           UINT64_C(0x1122334455667788)
#define CREATED_MS     INT64_C(1767225600000)
#define GROUP_OFFSET   UINT64_C(4096)
#define SESSION_OFFSET UINT64_C(4184)
#define ENTRY_OFFSET   UINT64_C(4280)
#define COMMIT_OFFSET  UINT64_C(4400)
#define GROUP_END      UINT64_C(4512)
#define TRAILER_OFFSET UINT64_C(1048512)

enum {
    SPEC_SIZE_MAX = 1 << 20,
    EXAMPLE_SIZE_MAX = 512
};

struct example {
    uint8_t bytes[EXAMPLE_SIZE_MAX];
    size_t size;
};

static const uint8_t uuid[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

static char spec[SPEC_SIZE_MAX + 1];

static int read_spec(void **state)
{
    FILE *file = fopen(AGENTWAL_SOURCE_DIR "/SPEC.md", "rb");

    (void)state;
    if (file == NULL) {
        perror(AGENTWAL_SOURCE_DIR "/SPEC.md");
        return -1;
    }
    spec[fread(spec, 1, SPEC_SIZE_MAX, file)] = '\0';
    return fclose(file);
}

/* Reads "OFFSET: xx xx ...  # comment"; the offset must be the number of bytes
 * so far. */
static void read_line(const char *line, struct example *example)
{
    char *at;

    assert_int_equal(strtoul(line, &at, 10), example->size);
    assert_int_equal(*at, ':');
    at++;
    while (at[0] == ' ' && isxdigit((unsigned char)at[1])) {
        char *end;
        unsigned long byte = strtoul(at, &end, 16);

        assert_int_equal(end - at, 3);
        assert_true(example->size < EXAMPLE_SIZE_MAX);
        example->bytes[example->size++] = (uint8_t)byte;
        at = end;
    }
    assert_true(*at == '\n' || strncmp(at, "  # ", 4) == 0);
}

static struct example find_example(const char *name)
{
    struct example example = {.size = 0};
    char fence[64];
    const char *line;

    snprintf(fence, sizeof(fence), "\n```hex %s\n", name);
    line = strstr(spec, fence);
    assert_non_null(line);
    assert_null(strstr(line + 1, fence));
    line += strlen(fence);
    while (strncmp(line, "```", 3) != 0) {
        read_line(line, &example);
        line = strchr(line, '\n');
        assert_non_null(line);
        line++;
    }
    return example;
}

static void assert_text(struct wal__span text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

/* Checks the frame's bytes and gives its payload. */
static struct wal__span decode_frame(const struct example *example, uint64_t offset,
                                     struct wal__frame *frame)
{
    struct wal__span payload = {example->bytes + WAL__FRAME_SIZE, 0};
    uint8_t header[WAL__FRAME_SIZE];
    struct wal__frame again;

    assert_int_equal(wal__frame_decode(example->bytes, example->size, SALT, offset, frame),
                     WAL__FMT_OK);
    assert_true(wal__frame_total_size(frame->stored_size) == example->size);
    assert_int_equal(wal__frame_check_data(frame, payload.data), WAL__FMT_OK);
    again = *frame;
    again.header_crc = 0;
    wal__frame_encode(&again, SALT, offset, header);
    assert_memory_equal(header, example->bytes, sizeof(header));
    payload.size = frame->stored_size;
    assert_int_equal(frame->raw_size, frame->stored_size);
    assert_int_equal(frame->stream, 0);
    return payload;
}

TEST(spec_hex__manifest_slot)
{
    struct example example = find_example("manifest-slot");
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE] = {0};
    uint8_t again[WAL__MANIFEST_SLOT_SIZE];
    struct wal__manifest manifest;

    assert_int_equal(example.size, 64);
    memcpy(slot, example.bytes, example.size);
    assert_int_equal(wal__manifest_decode(slot, &manifest), WAL__FMT_OK);
    assert_int_equal(manifest.version, 1);
    assert_int_equal(manifest.features.compat, 0);
    assert_int_equal(manifest.features.ro_compat, 0);
    assert_int_equal(manifest.features.incompat, 0);
    assert_memory_equal(manifest.uuid, uuid, sizeof(uuid));
    assert_true(manifest.generation == 1);
    assert_true(manifest.created_ms == CREATED_MS);
    assert_int_equal(manifest.group_align, 8);
    wal__manifest_encode(&manifest, again);
    assert_memory_equal(again, slot, sizeof(slot));
}

TEST(spec_hex__segment_header)
{
    struct example example = find_example("segment-header");
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE] = {0};
    uint8_t again[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;

    assert_int_equal(example.size, 84);
    memcpy(bytes, example.bytes, example.size);
    memcpy(bytes + WAL__SEGMENT_HEADER_COPY, example.bytes, example.size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    assert_int_equal(header.version, 1);
    assert_int_equal(header.features.compat, 0);
    assert_int_equal(header.features.ro_compat, 0);
    assert_int_equal(header.features.incompat, 0);
    assert_memory_equal(header.uuid, uuid, sizeof(uuid));
    assert_true(header.id == 1);
    assert_true(header.capacity == 1048576);
    assert_true(header.salt == SALT);
    assert_int_equal(header.class, WAL__CLASS_LOG);
    assert_int_equal(header.group_align, 8);
    assert_true(header.created_ms == CREATED_MS);
    wal__segment_header_encode(&header, again);
    assert_memory_equal(again, bytes, sizeof(bytes));
}

TEST(spec_hex__open_frame)
{
    struct example example = find_example("open-frame");
    struct wal__frame frame;
    struct wal__span payload = decode_frame(&example, GROUP_OFFSET, &frame);
    struct wal__open_record open;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(frame.type, WAL__FRAME_OPEN);
    assert_int_equal(frame.flags, 0);
    assert_int_equal(frame.kind, 0);
    assert_int_equal(frame.session, 0);
    assert_true(frame.sequence == 0);
    assert_true(frame.parent == 0);
    assert_true(frame.id_hash == 0);
    assert_int_equal(wal__open_record_decode(payload, &open), WAL__FMT_OK);
    assert_true(open.previous_id == 0);
    assert_true(open.previous_end == 0);
    assert_true(open.last_sequence == 0);
    assert_int_equal(open.chain, 0);
    assert_int_equal(open.damage_count, 0);
    assert_true(open.epoch == 1);
    wal__open_record_encode(&open, NULL, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__session_frame)
{
    struct example example = find_example("session-frame");
    struct wal__frame frame;
    struct wal__span payload = decode_frame(&example, SESSION_OFFSET, &frame);
    struct wal__session_record session;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(frame.type, WAL__FRAME_SESSION);
    assert_int_equal(frame.flags, WAL__FRAME_FIRST);
    assert_int_equal(frame.kind, 0);
    assert_int_equal(frame.session, 1);
    assert_true(frame.sequence == 1);
    assert_true(frame.parent == 0);
    assert_true(frame.id_hash == wal__id_hash("s-1", 3));
    assert_int_equal(wal__session_record_decode(payload, WAL__FORMAT_VERSION, &session),
                     WAL__FMT_OK);
    assert_true(session.created_ms == CREATED_MS);
    assert_int_equal(session.schema_version, 1);
    assert_int_equal(session.flags, 0);
    assert_text(session.id, "s-1");
    assert_text(session.cwd, "/work");
    assert_text(session.project, "");
    assert_text(session.title, "Demo");
    assert_text(session.parent_id, "");
    assert_text(session.source, "");
    assert_text(session.metadata, "{}");
    assert_int_equal(wal__session_record_size(&session), payload.size);
    wal__session_record_encode(&session, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__entry_frame)
{
    struct example example = find_example("entry-frame");
    struct wal__frame frame;
    struct wal__span payload = decode_frame(&example, ENTRY_OFFSET, &frame);
    struct wal__entry_record entry;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(frame.type, WAL__FRAME_ENTRY);
    assert_int_equal(frame.flags, WAL__FRAME_LAST | WAL__FRAME_MOVES_HEAD);
    assert_int_equal(frame.kind, WAL__KIND_MESSAGE);
    assert_int_equal(frame.session, 1);
    assert_true(frame.sequence == 2);
    assert_true(frame.parent == 0);
    assert_true(frame.id_hash == wal__id_hash("e-1", 3));
    assert_int_equal(wal__entry_record_decode(payload, &entry), WAL__FMT_OK);
    assert_int_equal(entry.form, WAL__ENTRY_FIELDS);
    assert_text(entry.id, "e-1");
    assert_text(entry.type, "");
    assert_text(entry.time, "2026-01-01T00:00:00Z");
    assert_text(entry.run, "");
    assert_text(entry.meta, "");
    assert_text(entry.payload, "{\"role\":\"user\",\"content\":\"hello\"}");
    assert_int_equal(wal__entry_record_size(&entry), payload.size);
    wal__entry_record_encode(&entry, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__fork_payload)
{
    struct example example = find_example("fork-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__fork_record fork;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__fork_record_decode(payload, &fork), WAL__FMT_OK);
    assert_true(fork.inherited == 12);
    assert_int_equal(fork.depth, 1);
    assert_int_equal(fork.source, 1);
    assert_int_equal(fork.owner, 1);
    assert_int_equal(fork.stream, 0);
    assert_text(fork.source_id, "s-1");
    assert_text(fork.owner_id, "s-1");
    assert_text(fork.entry_id, "e-1");
    assert_int_equal(wal__fork_record_size(&fork), payload.size);
    wal__fork_record_encode(&fork, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__head_payload)
{
    struct example example = find_example("head-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__head_record head;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__head_record_decode(payload, &head), WAL__FMT_OK);
    assert_text(head.name, "main");
    assert_text(head.entry_id, "e-1");
    assert_text(head.note, "rewind");
    assert_int_equal(wal__head_record_size(&head), payload.size);
    wal__head_record_encode(&head, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__doc_payload)
{
    struct example example = find_example("doc-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__doc_record doc;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__doc_record_decode(payload, &doc), WAL__FMT_OK);
    assert_true(doc.modified_ms == CREATED_MS);
    assert_text(doc.key, "notes/plan");
    assert_text(doc.value, "{\"step\":1}");
    assert_int_equal(wal__doc_record_size(&doc), payload.size);
    wal__doc_record_encode(&doc, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__doc_delete_payload)
{
    struct example example = find_example("doc-delete-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__doc_record doc;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__doc_record_decode(payload, &doc), WAL__FMT_OK);
    assert_true(doc.modified_ms == CREATED_MS);
    assert_text(doc.key, "notes/plan");
    assert_text(doc.value, "");
    assert_int_equal(wal__doc_record_size(&doc), payload.size);
    wal__doc_record_encode(&doc, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__redact_payload)
{
    struct example example = find_example("redact-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__redact_record redact;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__redact_record_decode(payload, &redact), WAL__FMT_OK);
    assert_int_equal(redact.session, 1);
    assert_text(redact.entry_id, "r-1");
    assert_text(redact.target_id, "e-1");
    assert_text(redact.reason, "secret");
    assert_int_equal(wal__redact_record_size(&redact), payload.size);
    wal__redact_record_encode(&redact, again);
    assert_memory_equal(again, payload.data, payload.size);
}

TEST(spec_hex__session_of_version_0)
{
    struct example example = find_example("session-0-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__session_record session;

    assert_int_equal(wal__session_record_decode(payload, 0, &session), WAL__FMT_OK);
    assert_true(session.created_ms == CREATED_MS);
    assert_int_equal(session.schema_version, 0);
    assert_int_equal(session.flags, 0);
    assert_text(session.id, "s-1");
    assert_text(session.cwd, "/work");
    assert_text(session.project, "");
    assert_text(session.title, "");
    assert_text(session.parent_id, "");
    assert_text(session.source, "");
    assert_text(session.metadata, "{\"title\":\"Demo\"}");
}

TEST(spec_hex__commit_frame)
{
    struct example example = find_example("commit-frame");
    const uint32_t sessions[] = {1};
    struct wal__frame frame;
    struct wal__span payload = decode_frame(&example, COMMIT_OFFSET, &frame);
    struct wal__commit_record commit;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(frame.type, WAL__FRAME_COMMIT);
    assert_int_equal(frame.flags, 0);
    assert_int_equal(frame.kind, 0);
    assert_int_equal(frame.session, 0);
    assert_true(frame.sequence == 0);
    assert_true(frame.parent == 0);
    assert_true(frame.id_hash == 0);
    assert_int_equal(wal__commit_record_decode(payload, &commit), WAL__FMT_OK);
    assert_true(commit.first_sequence == 1);
    assert_int_equal(commit.frame_count, 3);
    assert_int_equal(commit.group_size, COMMIT_OFFSET - GROUP_OFFSET);
    assert_int_equal(commit.durable_off, 4096);
    assert_true(commit.epoch == 1);
    assert_true(commit.clock_ms == CREATED_MS);
    assert_true(commit.pack_durable == 0);
    assert_int_equal(commit.flags, WAL__COMMIT_DURABLE);
    assert_int_equal(commit.session_count, 1);
    assert_int_equal(wal__commit_record_session(&commit, 0), 1);
    wal__commit_record_encode(&commit, sessions, again);
    assert_memory_equal(again, payload.data, payload.size);
}

/* The chain over the adjacent examples of OPEN, SESSION and ENTRY; *offset is where the next frame
 * goes. */
static uint32_t chain_of_group(uint64_t *offset)
{
    static const char *const names[] = {"open-frame", "session-frame", "entry-frame"};
    uint32_t chain = 0;

    *offset = GROUP_OFFSET;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct example example = find_example(names[i]);
        struct wal__frame frame;

        decode_frame(&example, *offset, &frame);
        chain = wal__frame_chain_crc(chain, &frame);
        *offset += example.size;
    }
    return chain;
}

TEST(spec_hex__frames_are_one_group)
{
    struct example example = find_example("commit-frame");
    uint64_t offset;
    uint32_t chain = chain_of_group(&offset);
    struct wal__frame frame;
    struct wal__commit_record commit;

    assert_true(offset == COMMIT_OFFSET);
    assert_int_equal(wal__commit_record_decode(decode_frame(&example, offset, &frame), &commit),
                     WAL__FMT_OK);
    assert_int_equal(commit.chain, chain);
    assert_true(offset + example.size == GROUP_END);
}

/* The chain after the group's COMMIT. */
static uint32_t chain_at_end(void)
{
    struct example example = find_example("commit-frame");
    uint64_t offset;
    uint32_t chain = chain_of_group(&offset);
    struct wal__frame frame;

    decode_frame(&example, offset, &frame);
    return wal__frame_chain_crc(chain, &frame);
}

TEST(spec_hex__seal_payload)
{
    struct example example = find_example("seal-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__seal_record seal;
    uint8_t again[WAL__SEAL_SIZE];

    assert_int_equal(wal__seal_record_decode(payload, &seal), WAL__FMT_OK);
    assert_true(seal.end == GROUP_END);
    assert_true(seal.last_sequence == 2);
    assert_int_equal(seal.chain, chain_at_end());
    assert_true(seal.index_offset == GROUP_END);
    wal__seal_record_encode(&seal, again);
    assert_memory_equal(again, payload.data, payload.size);
}

/* Of the INDEX frame: one session of two records, whose id, head, cwd, title and first text are
 * those of the examples. */
static uint64_t index_span(void)
{
    size_t text_size = strlen("s-1e-1/workDemohello");

    return wal__frame_total_size((uint32_t)wal__index_size(1, 2, text_size));
}

TEST(spec_hex__trailer)
{
    struct example example = find_example("trailer");
    struct wal__trailer trailer;
    uint8_t again[WAL__TRAILER_SIZE];

    assert_int_equal(example.size, WAL__TRAILER_SIZE);
    assert_int_equal(wal__trailer_decode(example.bytes, SALT, TRAILER_OFFSET, &trailer),
                     WAL__FMT_OK);
    assert_true(trailer.id == 1);
    assert_true(trailer.seal_offset == GROUP_END + index_span());
    assert_true(trailer.index_offset == GROUP_END);
    assert_true(trailer.end == GROUP_END);
    assert_true(trailer.last_sequence == 2);
    assert_int_equal(trailer.chain, chain_at_end());
    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, again);
    assert_memory_equal(again, example.bytes, sizeof(again));
}

static void assert_digest(const uint8_t *digest, const void *content, size_t size)
{
    uint8_t expected[WAL__DIGEST_SIZE];

    assert_int_equal(EVP_Digest(content, size, expected, NULL, EVP_sha256(), NULL), 1);
    assert_memory_equal(digest, expected, sizeof(expected));
}

/* The payload of a CHUNK, decoded and encoded again. */
static struct wal__chunk_record read_chunk(const struct example *example)
{
    struct wal__span payload = {example->bytes, example->size};
    struct wal__chunk_record chunk;
    uint8_t again[EXAMPLE_SIZE_MAX];
    size_t head;

    assert_int_equal(wal__chunk_record_decode(payload, &chunk), WAL__FMT_OK);
    assert_int_equal(wal__chunk_record_size(&chunk), payload.size);
    head = wal__chunk_record_encode_head(&chunk, again);
    assert_memory_equal(again, payload.data, head);
    assert_true(chunk.data.data == payload.data + head);
    return chunk;
}

TEST(spec_hex__chunk_payload)
{
    struct example example = find_example("chunk-payload");
    struct wal__chunk_record chunk = read_chunk(&example);

    assert_int_equal(chunk.size, 5);
    assert_int_equal(chunk.encoding, WAL__CHUNK_RAW);
    assert_int_equal(chunk.depth, 0);
    assert_text(chunk.data, "hello");
    assert_digest(chunk.digest.bytes, "hello", 5);
}

TEST(spec_hex__chunk_delta_payload)
{
    static const char base[] = "The quick brown fox jumps over the lazy dog.\n"
                               "The quick brown fox sleeps.\n";
    static const char now[] = "The quick brown fox jumps over the lazy cat.\n"
                              "The quick brown fox sleeps.\n";
    struct example example = find_example("chunk-delta-payload");
    struct wal__chunk_record chunk = read_chunk(&example);
    struct wal__span data = chunk.data;
    struct wal__chunk_block block;
    char content[sizeof(now)] = {0};

    assert_int_equal(chunk.size, strlen(now));
    assert_int_equal(chunk.encoding, WAL__CHUNK_DELTA);
    assert_int_equal(chunk.depth, 1);
    assert_digest(chunk.base.bytes, base, strlen(base));
    assert_int_equal(wal__chunk_block_decode(&data, chunk.size, &block), WAL__FMT_OK);
    assert_int_equal(block.stored_size, 26);
    assert_int_equal(block.window, -16384);
    assert_int_equal(data.size, 0);
    assert_int_equal(LZ4_decompress_safe_usingDict((const char *)block.stored.data, content,
                                                   (int)block.stored_size, (int)chunk.size, base,
                                                   (int)strlen(base)),
                     (int)chunk.size);
    assert_string_equal(content, now);
    assert_digest(chunk.digest.bytes, now, strlen(now));
}

TEST(spec_hex__blob_payload)
{
    static const uint8_t zeros[WAL__CHUNK_MAX + 1];
    struct example example = find_example("blob-payload");
    struct wal__span payload = {example.bytes, example.size};
    struct wal__blob_record blob;
    uint8_t again[EXAMPLE_SIZE_MAX];

    assert_int_equal(wal__blob_record_decode(payload, &blob), WAL__FMT_OK);
    assert_true(blob.size == sizeof(zeros));
    assert_int_equal(blob.chunk_count, 2);
    assert_digest(blob.digest.bytes, zeros, sizeof(zeros));
    assert_digest(blob.chunks, zeros, WAL__CHUNK_MAX);
    assert_digest(blob.chunks + WAL__DIGEST_SIZE, zeros, 1);
    assert_int_equal(wal__blob_record_size(&blob), payload.size);
    wal__blob_record_encode(&blob, again);
    assert_memory_equal(again, payload.data, payload.size);
}

/* The header alone is shown: the fan-out is long. */
TEST(spec_hex__pack_index_header)
{
    static uint8_t bytes[2048];
    struct example example = find_example("pack-index-header");
    struct example chunk = find_example("chunk-payload");
    struct wal__index_header header = {.posting_count = 1,
                                       .id = 1,
                                       .end = 4392,
                                       .first_sequence = 1,
                                       .last_sequence = 1,
                                       .chain = 0x12345678,
                                       .commit_offset = 4280,
                                       .epoch = 1};
    struct wal__span whole = {bytes, (size_t)wal__pack_index_size(1)};
    struct wal__pack_index index;
    struct wal__digest digest;
    uint32_t offset = 0;

    memcpy(header.uuid, uuid, sizeof(uuid));
    memcpy(digest.bytes, chunk.bytes, sizeof(digest.bytes));
    wal__pack_index_put(bytes, 1, 0, &digest, 4184);
    wal__pack_index_finish(&header, bytes);
    assert_int_equal(example.size, WAL__INDEX_HEADER_SIZE);
    assert_memory_equal(example.bytes, bytes, example.size);
    assert_int_equal(wal__pack_index_decode(whole, &index), WAL__FMT_OK);
    assert_true(wal__pack_index_find(&index, &digest, &offset));
    assert_int_equal(offset, 4184);
}

TEST(spec_hex__file_list)
{
    struct example example = find_example("file-list");
    struct wal__span bytes = {example.bytes, example.size};
    struct wal__file_list list;
    struct wal__file_record files[2];
    uint8_t again[EXAMPLE_SIZE_MAX];
    uint8_t *at = again + wal__file_list_head_size();

    assert_int_equal(wal__file_list_decode(bytes, &list), WAL__FMT_OK);
    assert_int_equal(list.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wal__file_list_next(&list, &files[i]), WAL__FMT_OK);
        wal__file_record_encode(&files[i], at);
        at += wal__file_record_size(&files[i]);
    }
    wal__file_list_encode_head(2, list.boot, again);
    assert_int_equal(at - again, example.size);
    assert_memory_equal(again, example.bytes, example.size);
    assert_int_equal(files[0].kind, WAL__FILE_ABSENT);
    assert_text(files[0].path, "gone");
    assert_int_equal(files[1].kind, WAL__FILE_REGULAR);
    assert_int_equal(files[1].flags, WAL__FILE_RACY | WAL__FILE_FRESH);
    assert_int_equal(files[1].mode, 0755);
    assert_int_equal(files[1].size, 10);
    assert_true(files[1].mtime_ns == CREATED_MS * 1000000);
    assert_true(files[1].ctime_ns == CREATED_MS * 1000000 + 1);
    assert_int_equal(files[1].inode, 7);
    assert_int_equal(files[1].device, 2049);
    assert_text(files[1].path, "run.sh");
}

TEST_FILE(read_spec, NULL, NULL);
