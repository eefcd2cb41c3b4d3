/*
 * fuzz_record.c - any bytes as the payload of a frame: what is accepted has its texts inside the
 * input and encodes to the same bytes.
 *
 * Input: the frame's type (1 byte), then the payload. Type 130 is SESSION of format version 0,
 * which is only read.
 */
#include <string.h>

#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/record_blob.h"
#include "format/segment/segment_fmt.h"
#include "tests/fuzz/fuzz.h"

enum { SESSION_0 = 128 + WAL__FRAME_SESSION };

static void try_open(struct wal__span payload, uint8_t *again)
{
    struct wal__damage damage[WAL__DAMAGE_MAX];
    struct wal__open_record open;

    if (wal__open_record_decode(payload, &open) != WAL__FMT_OK) {
        return;
    }
    check(open.damage_count <= WAL__DAMAGE_MAX);
    for (uint32_t i = 0; i < open.damage_count; i++) {
        damage[i] = wal__open_record_damage(&open, i);
    }
    check(wal__open_record_size(open.damage_count) == payload.size);
    wal__open_record_encode(&open, damage, again);
    check(memcmp(again, payload.data, payload.size) == 0);
}

static void try_session(struct wal__span payload, uint8_t *again)
{
    struct wal__session_record session;

    if (wal__session_record_decode(payload, WAL__FORMAT_VERSION, &session) == WAL__FMT_OK) {
        check(wal__session_record_size(&session) == payload.size);
        wal__session_record_encode(&session, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

/* The texts follow each other without gaps, up to the payload's end. */
static void try_session_0(struct wal__span payload)
{
    struct wal__session_record session;

    if (wal__session_record_decode(payload, 0, &session) != WAL__FMT_OK) {
        return;
    }
    check(session.schema_version == 0 && session.title.size == 0);
    check(session.created_ms % 1000 == 0);
    check(session.id.data + session.id.size == session.cwd.data);
    check(session.cwd.data + session.cwd.size == session.project.data);
    check(session.project.data + session.project.size == session.parent_id.data);
    check(session.parent_id.data + session.parent_id.size == session.source.data);
    check(session.source.data + session.source.size == session.metadata.data);
    check(session.metadata.data + session.metadata.size == payload.data + payload.size);
}

static void try_entry(struct wal__span payload, uint8_t *again)
{
    struct wal__entry_record entry;

    if (wal__entry_record_decode(payload, &entry) == WAL__FMT_OK) {
        check(wal__entry_record_size(&entry) == payload.size);
        wal__entry_record_encode(&entry, again);
        check(memcmp(again, payload.data, payload.size) == 0);
        check(wal__kind_name(wal__kind_from_name(entry.type)).size <= entry.type.size);
    }
}

static void try_fork(struct wal__span payload, uint8_t *again)
{
    struct wal__fork_record fork;

    if (wal__fork_record_decode(payload, &fork) == WAL__FMT_OK) {
        check(wal__fork_record_size(&fork) == payload.size);
        wal__fork_record_encode(&fork, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

static void try_head(struct wal__span payload, uint8_t *again)
{
    struct wal__head_record head;

    if (wal__head_record_decode(payload, &head) == WAL__FMT_OK) {
        check(wal__head_record_size(&head) == payload.size);
        wal__head_record_encode(&head, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

static void try_doc(struct wal__span payload, uint8_t *again)
{
    struct wal__doc_record doc;

    if (wal__doc_record_decode(payload, &doc) == WAL__FMT_OK) {
        check(wal__doc_record_size(&doc) == payload.size);
        wal__doc_record_encode(&doc, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

static void try_redact(struct wal__span payload, uint8_t *again)
{
    struct wal__redact_record redact;

    if (wal__redact_record_decode(payload, &redact) == WAL__FMT_OK) {
        check(wal__redact_record_size(&redact) == payload.size);
        wal__redact_record_encode(&redact, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

static void try_commit(struct wal__span payload, uint8_t *again)
{
    uint32_t sessions[WAL__COMMIT_SESSIONS_MAX];
    struct wal__commit_record commit;

    if (wal__commit_record_decode(payload, &commit) != WAL__FMT_OK) {
        return;
    }
    check(commit.session_count <= WAL__COMMIT_SESSIONS_MAX);
    for (uint32_t i = 0; i < commit.session_count; i++) {
        sessions[i] = wal__commit_record_session(&commit, i);
    }
    check(wal__commit_record_size(commit.session_count) == payload.size);
    wal__commit_record_encode(&commit, sessions, again);
    check(memcmp(again, payload.data, payload.size) == 0);
}

static void try_seal(struct wal__span payload, uint8_t *again)
{
    struct wal__seal_record seal;

    if (wal__seal_record_decode(payload, &seal) == WAL__FMT_OK) {
        wal__seal_record_encode(&seal, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

/* The blocks of a delta follow each other without gaps in the data. */
static void walk_blocks(const struct wal__chunk_record *chunk)
{
    struct wal__span data = chunk->data;
    uint32_t left = chunk->size;

    while (left > 0) {
        uint32_t part = left < WAL__CHUNK_BLOCK ? left : WAL__CHUNK_BLOCK;
        const uint8_t *at = data.data;
        struct wal__chunk_block block;
        uint8_t head[WAL__CHUNK_BLOCK_HEAD];

        if (wal__chunk_block_decode(&data, part, &block) != WAL__FMT_OK) {
            return;
        }
        check(block.stored.data == at + WAL__CHUNK_BLOCK_HEAD);
        check(block.stored.data + block.stored_size == data.data);
        check(block.stored_size <= part);
        wal__chunk_block_encode_head(&block, head);
        check(memcmp(head, at, sizeof(head)) == 0);
        left -= part;
    }
}

static void try_chunk(struct wal__span payload, uint8_t *again)
{
    struct wal__chunk_record chunk;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK) {
        return;
    }
    check(wal__chunk_record_size(&chunk) == payload.size);
    check(chunk.size <= WAL__CHUNK_MAX);
    check(memcmp(payload.data, again, wal__chunk_record_encode_head(&chunk, again)) == 0);
    if (chunk.encoding == WAL__CHUNK_DELTA) {
        walk_blocks(&chunk);
    }
}

static void try_blob(struct wal__span payload, uint8_t *again)
{
    struct wal__blob_record blob;

    if (wal__blob_record_decode(payload, &blob) == WAL__FMT_OK) {
        check(wal__blob_record_size(&blob) == payload.size);
        wal__blob_record_encode(&blob, again);
        check(memcmp(again, payload.data, payload.size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal__span payload;
    uint8_t *again;

    if (size == 0) {
        return 0;
    }
    payload.data = data + 1;
    payload.size = size - 1;
    again = malloc(size);
    check(again != NULL);
    switch (data[0]) {
    case WAL__FRAME_OPEN:
        try_open(payload, again);
        break;
    case WAL__FRAME_SESSION:
        try_session(payload, again);
        break;
    case WAL__FRAME_ENTRY:
        try_entry(payload, again);
        break;
    case WAL__FRAME_FORK:
        try_fork(payload, again);
        break;
    case WAL__FRAME_HEAD:
        try_head(payload, again);
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        try_doc(payload, again);
        break;
    case WAL__FRAME_REDACT:
        try_redact(payload, again);
        break;
    case WAL__FRAME_CHUNK:
        try_chunk(payload, again);
        break;
    case WAL__FRAME_BLOB:
        try_blob(payload, again);
        break;
    case SESSION_0:
        try_session_0(payload);
        break;
    case WAL__FRAME_COMMIT:
        try_commit(payload, again);
        break;
    case WAL__FRAME_SEAL:
        try_seal(payload, again);
        break;
    default:
        break;
    }
    free(again);
    return 0;
}
