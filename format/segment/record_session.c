/*
 * record_session.c - encodes and decodes the payloads of SESSION, FORK and HEAD
 * (SPEC.md 2.5, 2.7, 2.8), and decodes SESSION of version 0 (2.17).
 *
 * Invariant: a decoder accepts a payload only if its sizes add up to the
 * payload's size, so the returned spans are inside the payload. Threads: any.
 */
#include "format/segment/record.h"

#include <stdbool.h>

#include "format/bytes/bytes.h"
#include "format/segment/record_text.h"

/* SESSION (2.5) */

enum {
    SESSION_CREATED = 0,
    SESSION_SCHEMA_VERSION = 8,
    SESSION_FLAGS = 12,
    SESSION_ID_SIZE = 16,
    SESSION_CWD_SIZE = 18,
    SESSION_PROJECT_SIZE = 20,
    SESSION_TITLE_SIZE = 22,
    SESSION_PARENT_SIZE = 24,
    SESSION_SOURCE_SIZE = 26,
    SESSION_METADATA_SIZE = 28,
    SESSION_TEXTS = 32
};

WAL__FOLLOWS(SESSION_SCHEMA_VERSION, SESSION_CREATED, 8);
WAL__FOLLOWS(SESSION_FLAGS, SESSION_SCHEMA_VERSION, 4);
WAL__FOLLOWS(SESSION_ID_SIZE, SESSION_FLAGS, 4);
WAL__FOLLOWS(SESSION_CWD_SIZE, SESSION_ID_SIZE, 2);
WAL__FOLLOWS(SESSION_PROJECT_SIZE, SESSION_CWD_SIZE, 2);
WAL__FOLLOWS(SESSION_TITLE_SIZE, SESSION_PROJECT_SIZE, 2);
WAL__FOLLOWS(SESSION_PARENT_SIZE, SESSION_TITLE_SIZE, 2);
WAL__FOLLOWS(SESSION_SOURCE_SIZE, SESSION_PARENT_SIZE, 2);
WAL__FOLLOWS(SESSION_METADATA_SIZE, SESSION_SOURCE_SIZE, 2);
WAL__FOLLOWS(SESSION_TEXTS, SESSION_METADATA_SIZE, 4);

size_t wal__session_record_size(const struct wal__session_record *session)
{
    return SESSION_TEXTS + session->id.size + session->cwd.size +
           session->project.size + session->title.size +
           session->parent_id.size + session->source.size +
           session->metadata.size;
}

void wal__session_record_encode(const struct wal__session_record *session,
                                uint8_t *out)
{
    uint8_t *at = out + SESSION_TEXTS;

    wal__put64(out + SESSION_CREATED, (uint64_t)session->created_ms);
    wal__put32(out + SESSION_SCHEMA_VERSION, session->schema_version);
    wal__put32(out + SESSION_FLAGS, session->flags);
    wal__put_text_size16(out + SESSION_ID_SIZE, session->id);
    wal__put_text_size16(out + SESSION_CWD_SIZE, session->cwd);
    wal__put_text_size16(out + SESSION_PROJECT_SIZE, session->project);
    wal__put_text_size16(out + SESSION_TITLE_SIZE, session->title);
    wal__put_text_size16(out + SESSION_PARENT_SIZE, session->parent_id);
    wal__put_text_size16(out + SESSION_SOURCE_SIZE, session->source);
    wal__put_text_size32(out + SESSION_METADATA_SIZE, session->metadata);
    at = wal__put_text(at, session->id);
    at = wal__put_text(at, session->cwd);
    at = wal__put_text(at, session->project);
    at = wal__put_text(at, session->title);
    at = wal__put_text(at, session->parent_id);
    at = wal__put_text(at, session->source);
    at = wal__put_text(at, session->metadata);
    WAL__ASSERT(at == out + wal__session_record_size(session));
}

enum {
    SESSION_FLAGS_KNOWN = WAL__SESSION_RECORD_FORK |
                          WAL__SESSION_RECORD_TRASHED |
                          WAL__SESSION_RECORD_MOVED,
    SESSION_0_FLAGS_KNOWN = WAL__SESSION_RECORD_FORK
};

static bool session_is_valid(const struct wal__session_record *session)
{
    return (session->flags & ~(uint32_t)SESSION_FLAGS_KNOWN) == 0 &&
           session->id.size >= 1 && session->id.size <= WAL__ID_MAX &&
           session->cwd.size <= WAL__TEXT_MAX &&
           session->project.size <= WAL__TEXT_MAX &&
           session->title.size <= WAL__TEXT_MAX &&
           session->parent_id.size <= WAL__ID_MAX &&
           session->source.size <= WAL__TEXT_MAX &&
           session->metadata.size <= WAL__METADATA_MAX;
}

static enum wal__fmt decode_session(struct wal__span payload,
                                    struct wal__session_record *session)
{
    const uint8_t *at = payload.data;
    struct wal__session_record read = {0};

    if (payload.size < SESSION_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.created_ms = (int64_t)wal__get64(at + SESSION_CREATED);
    read.schema_version = wal__get32(at + SESSION_SCHEMA_VERSION);
    read.flags = wal__get32(at + SESSION_FLAGS);
    read.id.size = wal__get16(at + SESSION_ID_SIZE);
    read.cwd.size = wal__get16(at + SESSION_CWD_SIZE);
    read.project.size = wal__get16(at + SESSION_PROJECT_SIZE);
    read.title.size = wal__get16(at + SESSION_TITLE_SIZE);
    read.parent_id.size = wal__get16(at + SESSION_PARENT_SIZE);
    read.source.size = wal__get16(at + SESSION_SOURCE_SIZE);
    read.metadata.size = wal__get32(at + SESSION_METADATA_SIZE);
    if (read.schema_version == 0 || !session_is_valid(&read) ||
        wal__session_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += SESSION_TEXTS;
    read.id = wal__get_text(&at, read.id.size);
    read.cwd = wal__get_text(&at, read.cwd.size);
    read.project = wal__get_text(&at, read.project.size);
    read.title = wal__get_text(&at, read.title.size);
    read.parent_id = wal__get_text(&at, read.parent_id.size);
    read.source = wal__get_text(&at, read.source.size);
    read.metadata = wal__get_text(&at, read.metadata.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *session = read;
    return WAL__FMT_OK;
}

/* SESSION of version 0 (2.17) */

enum {
    SESSION_0_CREATED = 0,
    SESSION_0_FLAGS = 8,
    SESSION_0_ID_SIZE = 12,
    SESSION_0_CWD_SIZE = 14,
    SESSION_0_PROJECT_SIZE = 16,
    SESSION_0_PARENT_SIZE = 18,
    SESSION_0_SOURCE_SIZE = 20,
    SESSION_0_ZERO = 22,
    SESSION_0_METADATA_SIZE = 24,
    SESSION_0_TEXTS = 28
};

WAL__FOLLOWS(SESSION_0_FLAGS, SESSION_0_CREATED, 8);
WAL__FOLLOWS(SESSION_0_ID_SIZE, SESSION_0_FLAGS, 4);
WAL__FOLLOWS(SESSION_0_CWD_SIZE, SESSION_0_ID_SIZE, 2);
WAL__FOLLOWS(SESSION_0_PROJECT_SIZE, SESSION_0_CWD_SIZE, 2);
WAL__FOLLOWS(SESSION_0_PARENT_SIZE, SESSION_0_PROJECT_SIZE, 2);
WAL__FOLLOWS(SESSION_0_SOURCE_SIZE, SESSION_0_PARENT_SIZE, 2);
WAL__FOLLOWS(SESSION_0_ZERO, SESSION_0_SOURCE_SIZE, 2);
WAL__FOLLOWS(SESSION_0_METADATA_SIZE, SESSION_0_ZERO, 2);
WAL__FOLLOWS(SESSION_0_TEXTS, SESSION_0_METADATA_SIZE, 4);

enum {
    MS_PER_SECOND = 1000
};

static bool fits_in_ms(int64_t seconds)
{
    return seconds >= INT64_MIN / MS_PER_SECOND &&
           seconds <= INT64_MAX / MS_PER_SECOND;
}

static enum wal__fmt decode_session_0(struct wal__span payload,
                                      struct wal__session_record *session)
{
    const uint8_t *at = payload.data;
    struct wal__session_record read = {0};
    int64_t created;
    size_t size;

    if (payload.size < SESSION_0_TEXTS) {
        return WAL__FMT_SHORT;
    }
    created = (int64_t)wal__get64(at + SESSION_0_CREATED);
    read.flags = wal__get32(at + SESSION_0_FLAGS);
    read.id.size = wal__get16(at + SESSION_0_ID_SIZE);
    read.cwd.size = wal__get16(at + SESSION_0_CWD_SIZE);
    read.project.size = wal__get16(at + SESSION_0_PROJECT_SIZE);
    read.parent_id.size = wal__get16(at + SESSION_0_PARENT_SIZE);
    read.source.size = wal__get16(at + SESSION_0_SOURCE_SIZE);
    read.metadata.size = wal__get32(at + SESSION_0_METADATA_SIZE);
    size = wal__session_record_size(&read) - SESSION_TEXTS + SESSION_0_TEXTS;
    if (wal__get16(at + SESSION_0_ZERO) != 0 || !fits_in_ms(created) ||
        (read.flags & ~(uint32_t)SESSION_0_FLAGS_KNOWN) != 0 ||
        !session_is_valid(&read) || size != payload.size) {
        return WAL__FMT_FIELD;
    }
    read.created_ms = created * MS_PER_SECOND;
    at += SESSION_0_TEXTS;
    read.id = wal__get_text(&at, read.id.size);
    read.cwd = wal__get_text(&at, read.cwd.size);
    read.project = wal__get_text(&at, read.project.size);
    read.title = wal__get_text(&at, 0);
    read.parent_id = wal__get_text(&at, read.parent_id.size);
    read.source = wal__get_text(&at, read.source.size);
    read.metadata = wal__get_text(&at, read.metadata.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *session = read;
    return WAL__FMT_OK;
}

enum wal__fmt wal__session_record_decode(struct wal__span payload,
                                         uint32_t version,
                                         struct wal__session_record *session)
{
    return version == 0 ? decode_session_0(payload, session)
                        : decode_session(payload, session);
}

/* FORK (2.7) */

enum {
    FORK_INHERITED = 0,
    FORK_DEPTH = 8,
    FORK_SOURCE = 12,
    FORK_OWNER = 16,
    FORK_SOURCE_SIZE = 20,
    FORK_OWNER_SIZE = 21,
    FORK_ENTRY_SIZE = 22,
    FORK_STREAM = 23,
    FORK_TEXTS = 24
};

WAL__FOLLOWS(FORK_DEPTH, FORK_INHERITED, 8);
WAL__FOLLOWS(FORK_SOURCE, FORK_DEPTH, 4);
WAL__FOLLOWS(FORK_OWNER, FORK_SOURCE, 4);
WAL__FOLLOWS(FORK_SOURCE_SIZE, FORK_OWNER, 4);
WAL__FOLLOWS(FORK_OWNER_SIZE, FORK_SOURCE_SIZE, 1);
WAL__FOLLOWS(FORK_ENTRY_SIZE, FORK_OWNER_SIZE, 1);
WAL__FOLLOWS(FORK_STREAM, FORK_ENTRY_SIZE, 1);
WAL__FOLLOWS(FORK_TEXTS, FORK_STREAM, 1);

size_t wal__fork_record_size(const struct wal__fork_record *fork)
{
    return FORK_TEXTS + fork->source_id.size + fork->owner_id.size +
           fork->entry_id.size;
}

void wal__fork_record_encode(const struct wal__fork_record *fork, uint8_t *out)
{
    uint8_t *at = out + FORK_TEXTS;

    wal__put64(out + FORK_INHERITED, fork->inherited);
    wal__put32(out + FORK_DEPTH, fork->depth);
    wal__put32(out + FORK_SOURCE, fork->source);
    wal__put32(out + FORK_OWNER, fork->owner);
    wal__put_text_size8(out + FORK_SOURCE_SIZE, fork->source_id);
    wal__put_text_size8(out + FORK_OWNER_SIZE, fork->owner_id);
    wal__put_text_size8(out + FORK_ENTRY_SIZE, fork->entry_id);
    out[FORK_STREAM] = fork->stream;
    at = wal__put_text(at, fork->source_id);
    at = wal__put_text(at, fork->owner_id);
    at = wal__put_text(at, fork->entry_id);
    WAL__ASSERT(at == out + wal__fork_record_size(fork));
}

enum wal__fmt wal__fork_record_decode(struct wal__span payload,
                                      struct wal__fork_record *fork)
{
    const uint8_t *at = payload.data;
    struct wal__fork_record read = {0};

    if (payload.size < FORK_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.inherited = wal__get64(at + FORK_INHERITED);
    read.depth = wal__get32(at + FORK_DEPTH);
    read.source = wal__get32(at + FORK_SOURCE);
    read.owner = wal__get32(at + FORK_OWNER);
    read.stream = at[FORK_STREAM];
    read.source_id.size = at[FORK_SOURCE_SIZE];
    read.owner_id.size = at[FORK_OWNER_SIZE];
    read.entry_id.size = at[FORK_ENTRY_SIZE];
    if (read.depth > WAL__LINEAGE_MAX || read.source == 0 || read.owner == 0 ||
        read.source_id.size == 0 || read.owner_id.size == 0 ||
        wal__fork_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += FORK_TEXTS;
    read.source_id = wal__get_text(&at, read.source_id.size);
    read.owner_id = wal__get_text(&at, read.owner_id.size);
    read.entry_id = wal__get_text(&at, read.entry_id.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *fork = read;
    return WAL__FMT_OK;
}

/* HEAD (2.8) */

enum {
    HEAD_NAME_SIZE = 0,
    HEAD_ENTRY_SIZE = 1,
    HEAD_NOTE_SIZE = 2,
    HEAD_ZERO = 4,
    HEAD_TEXTS = 8
};

WAL__FOLLOWS(HEAD_ENTRY_SIZE, HEAD_NAME_SIZE, 1);
WAL__FOLLOWS(HEAD_NOTE_SIZE, HEAD_ENTRY_SIZE, 1);
WAL__FOLLOWS(HEAD_ZERO, HEAD_NOTE_SIZE, 2);
WAL__FOLLOWS(HEAD_TEXTS, HEAD_ZERO, 4);

size_t wal__head_record_size(const struct wal__head_record *head)
{
    return HEAD_TEXTS + head->name.size + head->entry_id.size + head->note.size;
}

void wal__head_record_encode(const struct wal__head_record *head, uint8_t *out)
{
    uint8_t *at = out + HEAD_TEXTS;

    wal__put_text_size8(out + HEAD_NAME_SIZE, head->name);
    wal__put_text_size8(out + HEAD_ENTRY_SIZE, head->entry_id);
    wal__put_text_size16(out + HEAD_NOTE_SIZE, head->note);
    wal__put32(out + HEAD_ZERO, 0);
    at = wal__put_text(at, head->name);
    at = wal__put_text(at, head->entry_id);
    at = wal__put_text(at, head->note);
    WAL__ASSERT(at == out + wal__head_record_size(head));
}

enum wal__fmt wal__head_record_decode(struct wal__span payload,
                                      struct wal__head_record *head)
{
    const uint8_t *at = payload.data;
    struct wal__head_record read = {0};

    if (payload.size < HEAD_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.name.size = at[HEAD_NAME_SIZE];
    read.entry_id.size = at[HEAD_ENTRY_SIZE];
    read.note.size = wal__get16(at + HEAD_NOTE_SIZE);
    if (read.name.size == 0 || read.note.size > WAL__TEXT_MAX ||
        wal__get32(at + HEAD_ZERO) != 0 ||
        wal__head_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += HEAD_TEXTS;
    read.name = wal__get_text(&at, read.name.size);
    read.entry_id = wal__get_text(&at, read.entry_id.size);
    read.note = wal__get_text(&at, read.note.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *head = read;
    return WAL__FMT_OK;
}
