/*
 * record.c - encodes and decodes the payloads of frames (SPEC.md 2.4 to 2.10,
 * 2.14 to 2.17).
 *
 * Invariant: a decoder accepts a payload only if its sizes and counts add up to the payload's size,
 * so the returned spans are inside the payload, and every element below a count is readable.
 */
#include "format/segment/record.h"

#include <stdbool.h>

#include "format/segment/record_blob.h"
#include "format/segment/segment_fmt.h"

/* OPEN (2.4) */

enum {
    OPEN_PREVIOUS_ID = 0,
    OPEN_PREVIOUS_END = OPEN_PREVIOUS_ID + 8,
    OPEN_LAST_SEQUENCE = OPEN_PREVIOUS_END + 8,
    OPEN_CHAIN = OPEN_LAST_SEQUENCE + 8,
    OPEN_DAMAGE_COUNT = OPEN_CHAIN + 4,
    OPEN_EPOCH = OPEN_DAMAGE_COUNT + 4,
    OPEN_DAMAGE = 40
};

enum {
    DAMAGE_OFFSET = 0,
    DAMAGE_RANGE_SIZE = DAMAGE_OFFSET + 8,
    DAMAGE_FIRST_SEQUENCE = DAMAGE_RANGE_SIZE + 8,
    DAMAGE_LAST_SEQUENCE = DAMAGE_FIRST_SEQUENCE + 8,
    DAMAGE_SIZE = 32
};

WAL__FOLLOWS(OPEN_DAMAGE, OPEN_EPOCH, 8);
WAL__FOLLOWS(DAMAGE_SIZE, DAMAGE_LAST_SEQUENCE, 8);

size_t wal__open_record_size(uint32_t damage_count)
{
    return OPEN_DAMAGE + (size_t)damage_count * DAMAGE_SIZE;
}

void wal__open_record_encode(const struct wal__open_record *open, const struct wal__damage *damage,
                             uint8_t *out)
{
    uint8_t *at = out + OPEN_DAMAGE;

    wal__put64(out + OPEN_PREVIOUS_ID, open->previous_id);
    wal__put64(out + OPEN_PREVIOUS_END, open->previous_end);
    wal__put64(out + OPEN_LAST_SEQUENCE, open->last_sequence);
    wal__put32(out + OPEN_CHAIN, open->chain);
    wal__put32(out + OPEN_DAMAGE_COUNT, open->damage_count);
    wal__put64(out + OPEN_EPOCH, open->epoch);
    for (uint32_t i = 0; i < open->damage_count; i++) {
        wal__put64(at + DAMAGE_OFFSET, damage[i].offset);
        wal__put64(at + DAMAGE_RANGE_SIZE, damage[i].size);
        wal__put64(at + DAMAGE_FIRST_SEQUENCE, damage[i].first_sequence);
        wal__put64(at + DAMAGE_LAST_SEQUENCE, damage[i].last_sequence);
        at += DAMAGE_SIZE;
    }
    WAL__ASSERT(at == out + wal__open_record_size(open->damage_count));
}

struct wal__damage wal__open_record_damage(const struct wal__open_record *open, uint32_t index)
{
    const uint8_t *at = open->damage + (size_t)index * DAMAGE_SIZE;
    struct wal__damage damage = {
        .offset = wal__get64(at + DAMAGE_OFFSET),
        .size = wal__get64(at + DAMAGE_RANGE_SIZE),
        .first_sequence = wal__get64(at + DAMAGE_FIRST_SEQUENCE),
        .last_sequence = wal__get64(at + DAMAGE_LAST_SEQUENCE),
    };

    WAL__ASSERT(index < open->damage_count);
    return damage;
}

static bool previous_is_valid(const struct wal__open_record *open)
{
    if (open->previous_id == 0) {
        return open->previous_end == 0;
    }
    return open->previous_end >= WAL__SEGMENT_HEADER_SIZE && open->previous_end <= WAL__SEGMENT_MAX;
}

static bool damage_ascends(const struct wal__open_record *open)
{
    for (uint32_t i = 1; i < open->damage_count; i++) {
        if (wal__open_record_damage(open, i - 1).offset >=
            wal__open_record_damage(open, i).offset) {
            return false;
        }
    }
    return true;
}

enum wal__fmt wal__open_record_decode(struct wal__span payload, struct wal__open_record *open)
{
    const uint8_t *at = payload.data;
    struct wal__open_record read;

    if (payload.size < OPEN_DAMAGE) {
        return WAL__FMT_SHORT;
    }
    read.previous_id = wal__get64(at + OPEN_PREVIOUS_ID);
    read.previous_end = wal__get64(at + OPEN_PREVIOUS_END);
    read.last_sequence = wal__get64(at + OPEN_LAST_SEQUENCE);
    read.chain = wal__get32(at + OPEN_CHAIN);
    read.damage_count = wal__get32(at + OPEN_DAMAGE_COUNT);
    read.epoch = wal__get64(at + OPEN_EPOCH);
    read.damage = at + OPEN_DAMAGE;
    if (read.damage_count > WAL__DAMAGE_MAX ||
        wal__open_record_size(read.damage_count) != payload.size) {
        return WAL__FMT_FIELD;
    }
    if (!previous_is_valid(&read) || read.epoch == 0 || !damage_ascends(&read)) {
        return WAL__FMT_FIELD;
    }
    *open = read;
    return WAL__FMT_OK;
}

/* COMMIT (2.9) */

enum {
    COMMIT_FIRST_SEQUENCE = 0,
    COMMIT_FRAME_COUNT = COMMIT_FIRST_SEQUENCE + 8,
    COMMIT_GROUP_SIZE = COMMIT_FRAME_COUNT + 4,
    COMMIT_CHAIN = COMMIT_GROUP_SIZE + 4,
    COMMIT_DURABLE_OFF = COMMIT_CHAIN + 4,
    COMMIT_EPOCH = COMMIT_DURABLE_OFF + 4,
    COMMIT_CLOCK = COMMIT_EPOCH + 8,
    COMMIT_PACK_DURABLE = COMMIT_CLOCK + 8,
    COMMIT_FLAGS = COMMIT_PACK_DURABLE + 8,
    COMMIT_SESSION_COUNT = COMMIT_FLAGS + 4,
    COMMIT_SESSIONS = COMMIT_SESSION_COUNT + 4,
    COMMIT_SESSION_SIZE = 4
};

size_t wal__commit_record_size(uint32_t session_count)
{
    return COMMIT_SESSIONS + (size_t)session_count * COMMIT_SESSION_SIZE;
}

void wal__commit_record_encode(const struct wal__commit_record *commit, const uint32_t *sessions,
                               uint8_t *out)
{
    wal__put64(out + COMMIT_FIRST_SEQUENCE, commit->first_sequence);
    wal__put32(out + COMMIT_FRAME_COUNT, commit->frame_count);
    wal__put32(out + COMMIT_GROUP_SIZE, commit->group_size);
    wal__put32(out + COMMIT_CHAIN, commit->chain);
    wal__put32(out + COMMIT_DURABLE_OFF, commit->durable_off);
    wal__put64(out + COMMIT_EPOCH, commit->epoch);
    wal__put64(out + COMMIT_CLOCK, (uint64_t)commit->clock_ms);
    wal__put64(out + COMMIT_PACK_DURABLE, commit->pack_durable);
    wal__put32(out + COMMIT_FLAGS, commit->flags);
    wal__put32(out + COMMIT_SESSION_COUNT, commit->session_count);
    for (uint32_t i = 0; i < commit->session_count; i++) {
        wal__put32(out + wal__commit_record_size(i), sessions[i]);
    }
}

uint32_t wal__commit_record_session(const struct wal__commit_record *commit, uint32_t index)
{
    WAL__ASSERT(index < commit->session_count);
    return wal__get32(commit->sessions + (size_t)index * COMMIT_SESSION_SIZE);
}

static bool sessions_ascend(const struct wal__commit_record *commit)
{
    for (uint32_t i = 1; i < commit->session_count; i++) {
        if (wal__commit_record_session(commit, i - 1) >= wal__commit_record_session(commit, i)) {
            return false;
        }
    }
    return true;
}

enum wal__fmt wal__commit_record_decode(struct wal__span payload, struct wal__commit_record *commit)
{
    const uint8_t *at = payload.data;
    struct wal__commit_record read;

    if (payload.size < COMMIT_SESSIONS) {
        return WAL__FMT_SHORT;
    }
    read.first_sequence = wal__get64(at + COMMIT_FIRST_SEQUENCE);
    read.frame_count = wal__get32(at + COMMIT_FRAME_COUNT);
    read.group_size = wal__get32(at + COMMIT_GROUP_SIZE);
    read.chain = wal__get32(at + COMMIT_CHAIN);
    read.durable_off = wal__get32(at + COMMIT_DURABLE_OFF);
    read.epoch = wal__get64(at + COMMIT_EPOCH);
    read.clock_ms = (int64_t)wal__get64(at + COMMIT_CLOCK);
    read.pack_durable = wal__get64(at + COMMIT_PACK_DURABLE);
    read.flags = wal__get32(at + COMMIT_FLAGS);
    read.session_count = wal__get32(at + COMMIT_SESSION_COUNT);
    read.sessions = at + COMMIT_SESSIONS;
    if (read.session_count > WAL__COMMIT_SESSIONS_MAX ||
        wal__commit_record_size(read.session_count) != payload.size) {
        return WAL__FMT_FIELD;
    }
    if (read.durable_off < WAL__SEGMENT_HEADER_SIZE || read.epoch == 0 ||
        (read.flags & ~(uint32_t)WAL__COMMIT_DURABLE) != 0 || !sessions_ascend(&read)) {
        return WAL__FMT_FIELD;
    }
    *commit = read;
    return WAL__FMT_OK;
}

/* SEAL (2.10) */

enum {
    SEAL_END = 0,
    SEAL_LAST_SEQUENCE = SEAL_END + 8,
    SEAL_CHAIN = SEAL_LAST_SEQUENCE + 8,
    SEAL_ZERO = SEAL_CHAIN + 4,
    SEAL_INDEX_OFFSET = 24
};

WAL__FOLLOWS(SEAL_INDEX_OFFSET, SEAL_ZERO, 4);
WAL__FOLLOWS((int)WAL__SEAL_SIZE, (int)SEAL_INDEX_OFFSET, 8);

void wal__seal_record_encode(const struct wal__seal_record *seal, uint8_t *out)
{
    wal__put64(out + SEAL_END, seal->end);
    wal__put64(out + SEAL_LAST_SEQUENCE, seal->last_sequence);
    wal__put32(out + SEAL_CHAIN, seal->chain);
    wal__put32(out + SEAL_ZERO, 0);
    wal__put64(out + SEAL_INDEX_OFFSET, seal->index_offset);
}

enum wal__fmt wal__seal_record_decode(struct wal__span payload, struct wal__seal_record *seal)
{
    const uint8_t *at = payload.data;
    struct wal__seal_record read;

    if (payload.size < WAL__SEAL_SIZE) {
        return WAL__FMT_SHORT;
    }
    read.end = wal__get64(at + SEAL_END);
    read.last_sequence = wal__get64(at + SEAL_LAST_SEQUENCE);
    read.chain = wal__get32(at + SEAL_CHAIN);
    read.index_offset = wal__get64(at + SEAL_INDEX_OFFSET);
    if (payload.size != WAL__SEAL_SIZE || wal__get32(at + SEAL_ZERO) != 0 ||
        read.index_offset != read.end) {
        return WAL__FMT_FIELD;
    }
    *seal = read;
    return WAL__FMT_OK;
}

/* SESSION (2.5) */

enum {
    SESSION_CREATED = 0,
    SESSION_SCHEMA_VERSION = SESSION_CREATED + 8,
    SESSION_FLAGS = SESSION_SCHEMA_VERSION + 4,
    SESSION_ID_SIZE = SESSION_FLAGS + 4,
    SESSION_CWD_SIZE = SESSION_ID_SIZE + 2,
    SESSION_PROJECT_SIZE = SESSION_CWD_SIZE + 2,
    SESSION_TITLE_SIZE = SESSION_PROJECT_SIZE + 2,
    SESSION_PARENT_SIZE = SESSION_TITLE_SIZE + 2,
    SESSION_SOURCE_SIZE = SESSION_PARENT_SIZE + 2,
    SESSION_METADATA_SIZE = SESSION_SOURCE_SIZE + 2,
    SESSION_TEXTS = 32
};

WAL__FOLLOWS(SESSION_TEXTS, SESSION_METADATA_SIZE, 4);

size_t wal__session_record_size(const struct wal__session_record *session)
{
    return SESSION_TEXTS + session->id.size + session->cwd.size + session->project.size +
           session->title.size + session->parent_id.size + session->source.size +
           session->metadata.size;
}

void wal__session_record_encode(const struct wal__session_record *session, uint8_t *out)
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
    SESSION_FLAGS_KNOWN =
        WAL__SESSION_RECORD_FORK | WAL__SESSION_RECORD_TRASHED | WAL__SESSION_RECORD_MOVED,
    SESSION_0_FLAGS_KNOWN = WAL__SESSION_RECORD_FORK
};

static bool session_is_valid(const struct wal__session_record *session)
{
    return (session->flags & ~(uint32_t)SESSION_FLAGS_KNOWN) == 0 && session->id.size >= 1 &&
           session->id.size <= WAL__ID_MAX && session->cwd.size <= WAL__TEXT_MAX &&
           session->project.size <= WAL__TEXT_MAX && session->title.size <= WAL__TEXT_MAX &&
           session->parent_id.size <= WAL__ID_MAX && session->source.size <= WAL__TEXT_MAX &&
           session->metadata.size <= WAL__METADATA_MAX;
}

static enum wal__fmt decode_session(struct wal__span payload, struct wal__session_record *session)
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
    SESSION_0_FLAGS = SESSION_0_CREATED + 8,
    SESSION_0_ID_SIZE = SESSION_0_FLAGS + 4,
    SESSION_0_CWD_SIZE = SESSION_0_ID_SIZE + 2,
    SESSION_0_PROJECT_SIZE = SESSION_0_CWD_SIZE + 2,
    SESSION_0_PARENT_SIZE = SESSION_0_PROJECT_SIZE + 2,
    SESSION_0_SOURCE_SIZE = SESSION_0_PARENT_SIZE + 2,
    SESSION_0_ZERO = SESSION_0_SOURCE_SIZE + 2,
    SESSION_0_METADATA_SIZE = SESSION_0_ZERO + 2,
    SESSION_0_TEXTS = 28
};

WAL__FOLLOWS(SESSION_0_TEXTS, SESSION_0_METADATA_SIZE, 4);

enum { MS_PER_SECOND = 1000 };

static bool fits_in_ms(int64_t seconds)
{
    return seconds >= INT64_MIN / MS_PER_SECOND && seconds <= INT64_MAX / MS_PER_SECOND;
}

static enum wal__fmt decode_session_0(struct wal__span payload, struct wal__session_record *session)
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
        (read.flags & ~(uint32_t)SESSION_0_FLAGS_KNOWN) != 0 || !session_is_valid(&read) ||
        size != payload.size) {
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

enum wal__fmt wal__session_record_decode(struct wal__span payload, uint32_t version,
                                         struct wal__session_record *session)
{
    return version == 0 ? decode_session_0(payload, session) : decode_session(payload, session);
}

/* FORK (2.7) */

enum {
    FORK_INHERITED = 0,
    FORK_DEPTH = FORK_INHERITED + 8,
    FORK_SOURCE = FORK_DEPTH + 4,
    FORK_OWNER = FORK_SOURCE + 4,
    FORK_SOURCE_SIZE = FORK_OWNER + 4,
    FORK_OWNER_SIZE = FORK_SOURCE_SIZE + 1,
    FORK_ENTRY_SIZE = FORK_OWNER_SIZE + 1,
    FORK_STREAM = FORK_ENTRY_SIZE + 1,
    FORK_TEXTS = 24
};

WAL__FOLLOWS(FORK_TEXTS, FORK_STREAM, 1);

size_t wal__fork_record_size(const struct wal__fork_record *fork)
{
    return FORK_TEXTS + fork->source_id.size + fork->owner_id.size + fork->entry_id.size;
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

enum wal__fmt wal__fork_record_decode(struct wal__span payload, struct wal__fork_record *fork)
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
    HEAD_ENTRY_SIZE = HEAD_NAME_SIZE + 1,
    HEAD_NOTE_SIZE = HEAD_ENTRY_SIZE + 1,
    HEAD_ZERO = HEAD_NOTE_SIZE + 2,
    HEAD_TEXTS = 8
};

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

enum wal__fmt wal__head_record_decode(struct wal__span payload, struct wal__head_record *head)
{
    const uint8_t *at = payload.data;
    struct wal__head_record read = {0};

    if (payload.size < HEAD_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.name.size = at[HEAD_NAME_SIZE];
    read.entry_id.size = at[HEAD_ENTRY_SIZE];
    read.note.size = wal__get16(at + HEAD_NOTE_SIZE);
    if (read.name.size == 0 || read.note.size > WAL__TEXT_MAX || wal__get32(at + HEAD_ZERO) != 0 ||
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

/* ENTRY (2.6) */

enum {
    ENTRY_FORM = 0,
    ENTRY_ID_SIZE = ENTRY_FORM + 1,
    ENTRY_TYPE_SIZE = ENTRY_ID_SIZE + 1,
    ENTRY_TIME_SIZE = ENTRY_TYPE_SIZE + 1,
    ENTRY_RUN_SIZE = ENTRY_TIME_SIZE + 1,
    ENTRY_ZERO = ENTRY_RUN_SIZE + 1,
    ENTRY_META_SIZE = ENTRY_ZERO + 3,
    ENTRY_PAYLOAD_SIZE = ENTRY_META_SIZE + 4,
    ENTRY_TEXTS = 16
};

/* Fields before the excerpt of a payload stored as a blob. */
enum { OUT_DIGEST = 0, OUT_SIZE = OUT_DIGEST + 32, OUT_EXCERPT = 40 };

enum {
    FORM_OUT_OF_LINE = 2, /* combined with enum wal__entry_form */
    FORM_ERASED = 4,
    FORM_MAX = WAL__ENTRY_LINE | FORM_ERASED
};

WAL__FOLLOWS(ENTRY_TEXTS, ENTRY_PAYLOAD_SIZE, 4);
WAL__FOLLOWS(WAL__ENTRY_ID_END, ENTRY_TEXTS, UINT8_MAX);
WAL__FOLLOWS(OUT_EXCERPT, OUT_SIZE, 8);

/* Size of the fields before the payload or its excerpt. */
static size_t out_of_line_size(const struct wal__entry_record *entry)
{
    return entry->digest != NULL ? OUT_EXCERPT : 0;
}

size_t wal__entry_record_size(const struct wal__entry_record *entry)
{
    return ENTRY_TEXTS + entry->id.size + entry->type.size + entry->time.size + entry->run.size +
           entry->meta.size + out_of_line_size(entry) + entry->payload.size;
}

void wal__entry_record_encode(const struct wal__entry_record *entry, uint8_t *out)
{
    uint8_t *at = out + ENTRY_TEXTS;

    WAL__ASSERT(entry->form <= WAL__ENTRY_LINE);
    WAL__ASSERT(!entry->is_erased || (entry->digest == NULL && entry->meta.size == 0 &&
                                      entry->payload.size <= WAL__ERASED_PAYLOAD_MAX));
    out[ENTRY_FORM] = (uint8_t)(entry->form | (entry->digest != NULL ? FORM_OUT_OF_LINE : 0) |
                                (entry->is_erased ? FORM_ERASED : 0));
    wal__put_text_size8(out + ENTRY_ID_SIZE, entry->id);
    wal__put_text_size8(out + ENTRY_TYPE_SIZE, entry->type);
    wal__put_text_size8(out + ENTRY_TIME_SIZE, entry->time);
    wal__put_text_size8(out + ENTRY_RUN_SIZE, entry->run);
    memset(out + ENTRY_ZERO, 0, ENTRY_META_SIZE - ENTRY_ZERO);
    wal__put_text_size32(out + ENTRY_META_SIZE, entry->meta);
    wal__put32(out + ENTRY_PAYLOAD_SIZE, (uint32_t)(out_of_line_size(entry) + entry->payload.size));
    at = wal__put_text(at, entry->id);
    at = wal__put_text(at, entry->type);
    at = wal__put_text(at, entry->time);
    at = wal__put_text(at, entry->run);
    at = wal__put_text(at, entry->meta);
    if (entry->digest != NULL) {
        memcpy(at + OUT_DIGEST, entry->digest, OUT_SIZE - OUT_DIGEST);
        wal__put64(at + OUT_SIZE, entry->payload_size);
        at += OUT_EXCERPT;
    }
    at = wal__put_text(at, entry->payload);
    WAL__ASSERT(at == out + wal__entry_record_size(entry));
}

/* Whether `payload` is a digest, a size in its range and an excerpt. */
static bool is_out_of_line(struct wal__span payload)
{
    uint64_t size;

    if (payload.size < OUT_EXCERPT || payload.size > OUT_EXCERPT + WAL__EXCERPT_MAX) {
        return false;
    }
    size = wal__get64(payload.data + OUT_SIZE);
    return size > WAL__PAYLOAD_INLINE_MAX && size <= WAL__PAYLOAD_BLOB_MAX;
}

static void decode_payload(struct wal__span payload, bool out_of_line,
                           struct wal__entry_record *entry)
{
    entry->payload = payload;
    entry->digest = NULL;
    entry->payload_size = payload.size;
    if (out_of_line) {
        WAL__ASSERT(payload.size >= OUT_EXCERPT);
        entry->digest = payload.data + OUT_DIGEST;
        entry->payload_size = wal__get64(payload.data + OUT_SIZE);
        entry->payload.data += OUT_EXCERPT;
        entry->payload.size -= OUT_EXCERPT;
    }
}

/* Replay decodes every entry: one load for the small sizes, one test for the ranges, one for the
 * sum. */
enum wal__fmt wal__entry_record_decode(struct wal__span payload, struct wal__entry_record *entry)
{
    const uint8_t *at = payload.data;
    uint64_t small;
    uint64_t sum;
    uint32_t id_size, type_size, time_size, run_size, meta_size, payload_size;
    struct wal__span content;
    bool out_of_line;

    if (payload.size < ENTRY_TEXTS) {
        return WAL__FMT_SHORT;
    }
    small = wal__get64(at);
    id_size = (uint8_t)(small >> (8 * ENTRY_ID_SIZE));
    type_size = (uint8_t)(small >> (8 * ENTRY_TYPE_SIZE));
    time_size = (uint8_t)(small >> (8 * ENTRY_TIME_SIZE));
    run_size = (uint8_t)(small >> (8 * ENTRY_RUN_SIZE));
    meta_size = wal__get32(at + ENTRY_META_SIZE);
    payload_size = wal__get32(at + ENTRY_PAYLOAD_SIZE);
    sum = (uint64_t)ENTRY_TEXTS + id_size + type_size + time_size + run_size + meta_size +
          payload_size;
    if (((uint8_t)small > FORM_MAX) | (id_size == 0) | (time_size > WAL__TIME_MAX) |
        (small >> (8 * ENTRY_ZERO) != 0) | (payload_size > WAL__PAYLOAD_MAX) |
        (sum != payload.size)) {
        return WAL__FMT_FIELD;
    }
    content.data = at + payload.size - payload_size;
    content.size = payload_size;
    out_of_line = ((uint8_t)small & FORM_OUT_OF_LINE) != 0;
    entry->is_erased = ((uint8_t)small & FORM_ERASED) != 0;
    if ((out_of_line && !is_out_of_line(content)) ||
        (entry->is_erased && (meta_size != 0 || payload_size > WAL__ERASED_PAYLOAD_MAX))) {
        return WAL__FMT_FIELD;
    }
    at += ENTRY_TEXTS;
    entry->form = (uint8_t)small & WAL__ENTRY_LINE;
    entry->id = wal__get_text(&at, id_size);
    entry->type = wal__get_text(&at, type_size);
    entry->time = wal__get_text(&at, time_size);
    entry->run = wal__get_text(&at, run_size);
    entry->meta = wal__get_text(&at, meta_size);
    WAL__ASSERT(at == content.data);
    decode_payload(content, out_of_line, entry);
    return WAL__FMT_OK;
}

bool wal__entry_record_same_payload(const struct wal__entry_record *a,
                                    const struct wal__entry_record *b)
{
    if (a->digest == NULL || b->digest == NULL) {
        return a->digest == b->digest && wal__span_equal(a->payload, b->payload);
    }
    return a->payload_size == b->payload_size &&
           memcmp(a->digest, b->digest, WAL__DIGEST_SIZE) == 0;
}

void wal__entry_record_erase(struct wal__entry_record *entry)
{
    entry->is_erased = true;
    entry->digest = NULL;
    entry->meta.size = 0;
    entry->payload.size = 0;
    entry->payload_size = 0;
}

bool wal__entry_record_is_erased(struct wal__span first)
{
    return first.size > ENTRY_FORM && (first.data[ENTRY_FORM] & FORM_ERASED);
}

bool wal__entry_record_is_blob(struct wal__span first)
{
    return first.size > ENTRY_FORM && (first.data[ENTRY_FORM] & FORM_OUT_OF_LINE) != 0;
}

bool wal__entry_record_id(struct wal__span first, struct wal__span *id)
{
    size_t size;

    if (first.size < ENTRY_TEXTS) {
        return false;
    }
    size = first.data[ENTRY_ID_SIZE];
    if (size == 0 || size > first.size - ENTRY_TEXTS) {
        return false;
    }
    id->data = first.data + ENTRY_TEXTS;
    id->size = size;
    return true;
}

/* Indexed by code. */
static const char *const kind_names[] = {
    "",
    "message",
    "session_header",
    "message_delta_batch",
    "model_change",
    "thinking_level_change",
    "runtime_init",
    "system_prompt_override",
    "compaction_summary",
    "branch_summary",
    "redaction",
    "custom",
    "compaction",
};

enum { KIND_COUNT = sizeof(kind_names) / sizeof(kind_names[0]) };

static_assert(KIND_COUNT == WAL__KIND_COMPACTION + 1, "SPEC.md 2.6, Kinds");

uint8_t wal__kind_from_name(struct wal__span type)
{
    for (unsigned kind = 1; kind < KIND_COUNT; kind++) {
        if (strlen(kind_names[kind]) == type.size &&
            memcmp(kind_names[kind], type.data, type.size) == 0) {
            return (uint8_t)kind;
        }
    }
    return WAL__KIND_NAMED;
}

struct wal__span wal__kind_name(uint8_t kind)
{
    const char *name = kind_names[kind < KIND_COUNT ? kind : WAL__KIND_NAMED];
    struct wal__span span = {(const uint8_t *)name, strlen(name)};

    return span;
}

/* DOC and DOC_DELETE (2.14) */

enum {
    DOC_MODIFIED = 0,
    DOC_KEY_SIZE = DOC_MODIFIED + 8,
    DOC_ZERO = DOC_KEY_SIZE + 2,
    DOC_VALUE_SIZE = DOC_ZERO + 2,
    DOC_TEXTS = 16
};

WAL__FOLLOWS(DOC_TEXTS, DOC_VALUE_SIZE, 4);

size_t wal__doc_record_size(const struct wal__doc_record *doc)
{
    return DOC_TEXTS + doc->key.size + doc->value.size;
}

void wal__doc_record_encode(const struct wal__doc_record *doc, uint8_t *out)
{
    uint8_t *at = out + DOC_TEXTS;

    wal__put64(out + DOC_MODIFIED, (uint64_t)doc->modified_ms);
    wal__put_text_size16(out + DOC_KEY_SIZE, doc->key);
    wal__put16(out + DOC_ZERO, 0);
    wal__put_text_size32(out + DOC_VALUE_SIZE, doc->value);
    at = wal__put_text(at, doc->key);
    at = wal__put_text(at, doc->value);
    WAL__ASSERT(at == out + wal__doc_record_size(doc));
}

enum wal__fmt wal__doc_record_decode(struct wal__span payload, struct wal__doc_record *doc)
{
    const uint8_t *at = payload.data;
    struct wal__doc_record read = {0};

    if (payload.size < DOC_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.modified_ms = (int64_t)wal__get64(at + DOC_MODIFIED);
    read.key.size = wal__get16(at + DOC_KEY_SIZE);
    read.value.size = wal__get32(at + DOC_VALUE_SIZE);
    if (read.key.size == 0 || read.key.size > WAL__KEY_MAX || wal__get16(at + DOC_ZERO) != 0 ||
        read.value.size > WAL__PAYLOAD_MAX || wal__doc_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += DOC_TEXTS;
    read.key = wal__get_text(&at, read.key.size);
    read.value = wal__get_text(&at, read.value.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *doc = read;
    return WAL__FMT_OK;
}

bool wal__doc_record_key(struct wal__span first, struct wal__span *key)
{
    size_t size;

    if (first.size < DOC_TEXTS) {
        return false;
    }
    size = wal__get16(first.data + DOC_KEY_SIZE);
    if (size == 0 || size > WAL__KEY_MAX || size > first.size - DOC_TEXTS) {
        return false;
    }
    key->data = first.data + DOC_TEXTS;
    key->size = size;
    return true;
}

/* REDACT (2.15) */

enum {
    REDACT_ENTRY_SIZE = 0,
    REDACT_TARGET_SIZE = REDACT_ENTRY_SIZE + 1,
    REDACT_REASON_SIZE = REDACT_TARGET_SIZE + 1,
    REDACT_SESSION = REDACT_REASON_SIZE + 2,
    REDACT_TEXTS = 8
};

WAL__FOLLOWS(REDACT_TEXTS, REDACT_SESSION, 4);

size_t wal__redact_record_size(const struct wal__redact_record *redact)
{
    return REDACT_TEXTS + redact->entry_id.size + redact->target_id.size + redact->reason.size;
}

void wal__redact_record_encode(const struct wal__redact_record *redact, uint8_t *out)
{
    uint8_t *at = out + REDACT_TEXTS;

    wal__put_text_size8(out + REDACT_ENTRY_SIZE, redact->entry_id);
    wal__put_text_size8(out + REDACT_TARGET_SIZE, redact->target_id);
    wal__put_text_size16(out + REDACT_REASON_SIZE, redact->reason);
    wal__put32(out + REDACT_SESSION, redact->session);
    at = wal__put_text(at, redact->entry_id);
    at = wal__put_text(at, redact->target_id);
    at = wal__put_text(at, redact->reason);
    WAL__ASSERT(at == out + wal__redact_record_size(redact));
}

enum wal__fmt wal__redact_record_decode(struct wal__span payload, struct wal__redact_record *redact)
{
    const uint8_t *at = payload.data;
    struct wal__redact_record read = {0};

    if (payload.size < REDACT_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.entry_id.size = at[REDACT_ENTRY_SIZE];
    read.target_id.size = at[REDACT_TARGET_SIZE];
    read.reason.size = wal__get16(at + REDACT_REASON_SIZE);
    read.session = wal__get32(at + REDACT_SESSION);
    if (read.entry_id.size == 0 || read.target_id.size == 0 || read.reason.size > WAL__TEXT_MAX ||
        read.session == 0 || wal__redact_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += REDACT_TEXTS;
    read.entry_id = wal__get_text(&at, read.entry_id.size);
    read.target_id = wal__get_text(&at, read.target_id.size);
    read.reason = wal__get_text(&at, read.reason.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *redact = read;
    return WAL__FMT_OK;
}
