/*
 * test_spec_hex.c - the annotated hex examples of SPEC.md: each has the bytes of what its comments
 * say, which other tests of codecs decode again. The frames of OPEN, SESSION, ENTRY and COMMIT are
 * one group.
 */
#include <stddef.h>
#include <stdint.h>

#include <ctype.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cipher.h"
#include "format/bytes/crc32.h"
#include "format/index/file_list.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/keys_fmt.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"

#ifndef AGENTWAL_SOURCE_DIR
#define AGENTWAL_SOURCE_DIR "."
#endif

#define SALT           UINT64_C(0x1122334455667788)
#define CREATED_MS     INT64_C(1767225600000)
#define GROUP_OFFSET   UINT64_C(4096)
#define COMMIT_OFFSET  UINT64_C(4400)
#define GROUP_END      UINT64_C(4512)
#define TRAILER_OFFSET UINT64_C(1048512)

enum { SPEC_SIZE_MAX = 1 << 20, EXAMPLE_SIZE_MAX = 512 };

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

static struct wal__span text(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

static void assert_text(struct wal__span text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

static void assert_example(const char *name, const uint8_t *bytes, size_t size)
{
    struct example example = find_example(name);

    assert_int_equal(example.size, size);
    assert_memory_equal(example.bytes, bytes, size);
}

/* Adds a frame at `offset` to the chain, and compares it with its example. Returns its end. */
static uint64_t assert_frame(const char *name, struct wal__frame frame, const uint8_t *payload,
                             size_t size, uint64_t offset, uint32_t *chain)
{
    uint8_t bytes[EXAMPLE_SIZE_MAX] = {0};
    uint64_t total = wal__frame_total_size((uint32_t)size);

    frame.stored_size = (uint32_t)size;
    frame.raw_size = (uint32_t)size;
    frame.data_crc = wal__crc32(0, payload, size);
    wal__frame_encode(&frame, SALT, offset, bytes);
    memcpy(bytes + WAL__FRAME_SIZE, payload, size);
    assert_example(name, bytes, total);
    *chain = wal__frame_chain_crc(*chain, &frame);
    return offset + total;
}

TEST(spec_hex__manifest_slot)
{
    struct wal__manifest manifest = {
        .version = 1, .generation = 1, .created_ms = CREATED_MS, .group_align = 8};
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];

    memcpy(manifest.uuid, uuid, sizeof(uuid));
    wal__manifest_encode(&manifest, slot);
    assert_example("manifest-slot", slot, 64);
}

TEST(spec_hex__segment_header)
{
    struct wal__segment_header header = {.version = 1,
                                         .id = 1,
                                         .capacity = 1048576,
                                         .salt = SALT,
                                         .class = WAL__CLASS_LOG,
                                         .group_align = 8,
                                         .created_ms = CREATED_MS};
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    memcpy(header.uuid, uuid, sizeof(uuid));
    wal__segment_header_encode(&header, bytes);
    assert_example("segment-header", bytes, 84);
}

TEST(spec_hex__keys)
{
    struct wal__keys_file file = {.generation = 1, .slot_count = 1, .key_count = 1};
    uint8_t bytes[WAL__KEYS_COPY_SIZE];

    memcpy(file.uuid, uuid, sizeof(uuid));
    file.slots[0] = (struct wal__key_slot){.kind = WAL__KEY_SLOT_PASSPHRASE,
                                           .id = 1,
                                           .created_ms = CREATED_MS,
                                           .log2_n = 17,
                                           .r = 8,
                                           .p = 1,
                                           .label = "mine"};
    file.keys[0] =
        (struct wal__data_key){.id = 1, .suite = WAL__SUITE_AES_256_GCM, .created_ms = CREATED_MS};
    (void)wal__keys_encode(&file, bytes);
    assert_example("keys", bytes, 136);
}

/* The frames of a group, which begins a segment. Returns the chain after it. */
static uint32_t assert_group(void)
{
    const struct wal__open_record open = {.epoch = 1};
    const struct wal__session_record session = {.created_ms = CREATED_MS,
                                                .schema_version = 1,
                                                .id = text("s-1"),
                                                .cwd = text("/work"),
                                                .title = text("Demo"),
                                                .metadata = text("{}")};
    const struct wal__entry_record entry = {.id = text("e-1"),
                                            .time = text("2026-01-01T00:00:00Z"),
                                            .payload =
                                                text("{\"role\":\"user\",\"content\":\"hello\"}")};
    struct wal__commit_record commit = {.first_sequence = 1,
                                        .frame_count = 3,
                                        .group_size = COMMIT_OFFSET - GROUP_OFFSET,
                                        .durable_off = 4096,
                                        .epoch = 1,
                                        .clock_ms = CREATED_MS,
                                        .flags = WAL__COMMIT_DURABLE,
                                        .session_count = 1};
    const uint32_t sessions[] = {1};
    uint8_t bytes[EXAMPLE_SIZE_MAX];
    uint64_t at = GROUP_OFFSET;
    uint32_t chain = 0;

    wal__open_record_encode(&open, NULL, bytes);
    at = assert_frame("open-frame", (struct wal__frame){.type = WAL__FRAME_OPEN}, bytes,
                      wal__open_record_size(0), at, &chain);
    wal__session_record_encode(&session, bytes);
    at = assert_frame("session-frame",
                      (struct wal__frame){.type = WAL__FRAME_SESSION,
                                          .flags = WAL__FRAME_FIRST,
                                          .session = 1,
                                          .sequence = 1,
                                          .id_hash = wal__id_hash("s-1", 3)},
                      bytes, wal__session_record_size(&session), at, &chain);
    wal__entry_record_encode(&entry, bytes);
    at = assert_frame("entry-frame",
                      (struct wal__frame){.type = WAL__FRAME_ENTRY,
                                          .flags = WAL__FRAME_LAST | WAL__FRAME_MOVES_HEAD,
                                          .kind = WAL__KIND_MESSAGE,
                                          .session = 1,
                                          .sequence = 2,
                                          .id_hash = wal__id_hash("e-1", 3)},
                      bytes, wal__entry_record_size(&entry), at, &chain);
    assert_true(at == COMMIT_OFFSET);
    commit.chain = chain;
    wal__commit_record_encode(&commit, sessions, bytes);
    at = assert_frame("commit-frame", (struct wal__frame){.type = WAL__FRAME_COMMIT}, bytes,
                      wal__commit_record_size(1), at, &chain);
    assert_true(at == GROUP_END);
    return chain;
}

TEST(spec_hex__frames_are_one_group)
{
    (void)assert_group();
}

TEST(spec_hex__fork_payload)
{
    const struct wal__fork_record fork = {.inherited = 12,
                                          .depth = 1,
                                          .source = 1,
                                          .owner = 1,
                                          .source_id = text("s-1"),
                                          .owner_id = text("s-1"),
                                          .entry_id = text("e-1")};
    uint8_t bytes[EXAMPLE_SIZE_MAX];

    wal__fork_record_encode(&fork, bytes);
    assert_example("fork-payload", bytes, wal__fork_record_size(&fork));
}

TEST(spec_hex__head_payload)
{
    const struct wal__head_record head = {text("main"), text("e-1"), text("rewind")};
    uint8_t bytes[EXAMPLE_SIZE_MAX];

    wal__head_record_encode(&head, bytes);
    assert_example("head-payload", bytes, wal__head_record_size(&head));
}

TEST(spec_hex__doc_payloads)
{
    struct wal__doc_record doc = {CREATED_MS, text("notes/plan"), text("{\"step\":1}")};
    uint8_t bytes[EXAMPLE_SIZE_MAX];

    wal__doc_record_encode(&doc, bytes);
    assert_example("doc-payload", bytes, wal__doc_record_size(&doc));
    doc.value.size = 0;
    wal__doc_record_encode(&doc, bytes);
    assert_example("doc-delete-payload", bytes, wal__doc_record_size(&doc));
}

TEST(spec_hex__redact_payload)
{
    const struct wal__redact_record redact = {1, text("r-1"), text("e-1"), text("secret")};
    uint8_t bytes[EXAMPLE_SIZE_MAX];

    wal__redact_record_encode(&redact, bytes);
    assert_example("redact-payload", bytes, wal__redact_record_size(&redact));
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

TEST(spec_hex__seal_payload)
{
    const struct wal__seal_record seal = {
        .end = GROUP_END, .last_sequence = 2, .chain = assert_group(), .index_offset = GROUP_END};
    uint8_t bytes[WAL__SEAL_SIZE];

    wal__seal_record_encode(&seal, bytes);
    assert_example("seal-payload", bytes, sizeof(bytes));
}

/* Before it is the INDEX frame of one session of two records, whose id, head, cwd, title and first
 * text are those of the examples. */
TEST(spec_hex__trailer)
{
    size_t index_size = wal__index_size(1, 2, strlen("s-1e-1/workDemohello"));
    const struct wal__trailer trailer = {.id = 1,
                                         .seal_offset = GROUP_END +
                                                        wal__frame_total_size((uint32_t)index_size),
                                         .index_offset = GROUP_END,
                                         .end = GROUP_END,
                                         .last_sequence = 2,
                                         .chain = assert_group()};
    uint8_t bytes[WAL__TRAILER_SIZE];

    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
    assert_example("trailer", bytes, sizeof(bytes));
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
