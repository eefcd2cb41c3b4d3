/*
 * index_fmt.c - encodes and decodes summaries, postings, the segment index and
 * the catalogue, and searches the index of a pack segment (SPEC.md 2.12, 2.13,
 * 2.20).
 *
 * Invariant: every returned span is inside the caller's bytes, and every count is bounded by them,
 * whether or not the checksums match. A layout's offsets ascend and do not overflow.
 */
#include "format/index/index_fmt.h"

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* --- the segment index ---------------------------------------------------- */

enum {
    SUMMARY_NUMBER = 0,
    SUMMARY_FLAGS = SUMMARY_NUMBER + 4,
    SUMMARY_ID_HASH = SUMMARY_FLAGS + 4,
    SUMMARY_SESSION_POSITION = SUMMARY_ID_HASH + 8,
    SUMMARY_FORK_SEQUENCE = SUMMARY_SESSION_POSITION + 8,
    SUMMARY_FORK_OWNER = SUMMARY_FORK_SEQUENCE + 8,
    SUMMARY_DEPTH = SUMMARY_FORK_OWNER + 4,
    SUMMARY_CREATED = SUMMARY_DEPTH + 4,
    SUMMARY_UPDATED = SUMMARY_CREATED + 8,
    SUMMARY_LAST_SEQUENCE = SUMMARY_UPDATED + 8,
    SUMMARY_ENTRIES = SUMMARY_LAST_SEQUENCE + 8,
    SUMMARY_INHERITED = SUMMARY_ENTRIES + 8,
    SUMMARY_BYTES = SUMMARY_INHERITED + 8,
    SUMMARY_HEAD_SEQUENCE = SUMMARY_BYTES + 8,
    SUMMARY_SEGMENT = SUMMARY_HEAD_SEQUENCE + 8,
    SUMMARY_FIRST_POSTING = SUMMARY_SEGMENT + 8,
    SUMMARY_POSTING_COUNT = SUMMARY_FIRST_POSTING + 4,
    SUMMARY_TEXT_OFFSET = SUMMARY_POSTING_COUNT + 4,
    SUMMARY_ID_SIZE = SUMMARY_TEXT_OFFSET + 4,
    SUMMARY_HEAD_SIZE = SUMMARY_ID_SIZE + 1,
    SUMMARY_PARENT_SIZE = SUMMARY_HEAD_SIZE + 1,
    SUMMARY_FIRST_SIZE = SUMMARY_PARENT_SIZE + 1,
    SUMMARY_CWD_SIZE = SUMMARY_FIRST_SIZE + 1,
    SUMMARY_PROJECT_SIZE = SUMMARY_CWD_SIZE + 2,
    SUMMARY_TITLE_SIZE = SUMMARY_PROJECT_SIZE + 2,
    SUMMARY_SOURCE_SIZE = SUMMARY_TITLE_SIZE + 2,
    SUMMARY_FIRST_SEQUENCE = SUMMARY_SOURCE_SIZE + 2,
    SUMMARY_FORK_RECORD = SUMMARY_FIRST_SEQUENCE + 8,
    SUMMARY_FIRST_OWNER = SUMMARY_FORK_RECORD + 8,
    SUMMARY_FORK_SOURCE = SUMMARY_FIRST_OWNER + 4,
    SUMMARY_DOCUMENTS = SUMMARY_FORK_SOURCE + 4,
    SUMMARY_SCHEMA_VERSION = 156
};

WAL__FOLLOWS(SUMMARY_SCHEMA_VERSION, SUMMARY_DOCUMENTS, 4);
WAL__FOLLOWS((int)WAL__SUMMARY_SIZE, (int)SUMMARY_SCHEMA_VERSION, 4);
static_assert((int)WAL__SUMMARY_TEXT_MAX ==
                  3 * WAL__ID_MAX + 4 * WAL__TEXT_MAX + (int)WAL__SUMMARY_FIRST_MAX,
              "three ids, four texts and the first text");

enum {
    POSTING_OFFSET = 0,
    POSTING_TYPE = POSTING_OFFSET + 4,
    POSTING_FLAGS = POSTING_TYPE + 1,
    POSTING_STREAM = POSTING_FLAGS + 1,
    POSTING_KIND = POSTING_STREAM + 1,
    POSTING_SEQUENCE = POSTING_KIND + 1,
    POSTING_PARENT = POSTING_SEQUENCE + 8,
    POSTING_ID_HASH = 24
};

WAL__FOLLOWS(POSTING_ID_HASH, POSTING_PARENT, 8);
WAL__FOLLOWS((int)WAL__POSTING_SIZE, (int)POSTING_ID_HASH, 8);

enum {
    INDEX_MAGIC = 0,
    INDEX_VERSION = INDEX_MAGIC + 8,
    INDEX_SESSION_COUNT = INDEX_VERSION + 4,
    INDEX_POSTING_COUNT = INDEX_SESSION_COUNT + 4,
    INDEX_TEXT_SIZE = INDEX_POSTING_COUNT + 4,
    INDEX_ID = INDEX_TEXT_SIZE + 4,
    INDEX_STREAM_END = INDEX_ID + 8,
    INDEX_FIRST_SEQUENCE = INDEX_STREAM_END + 8,
    INDEX_LAST_SEQUENCE = INDEX_FIRST_SEQUENCE + 8,
    INDEX_CHAIN = INDEX_LAST_SEQUENCE + 8,
    INDEX_COMMIT_OFFSET = INDEX_CHAIN + 4,
    INDEX_EPOCH = INDEX_COMMIT_OFFSET + 4,
    INDEX_LAST_SESSION = INDEX_EPOCH + 8,
    INDEX_FLAGS = INDEX_LAST_SESSION + 4,
    INDEX_UUID = INDEX_FLAGS + 4,
    INDEX_ZERO = INDEX_UUID + 16,
    INDEX_BODY_CRC = INDEX_ZERO + 8,
    INDEX_CRC = 108
};

WAL__FOLLOWS(INDEX_CRC, INDEX_BODY_CRC, 4);
WAL__FOLLOWS((int)WAL__INDEX_HEADER_SIZE, (int)INDEX_CRC, 4);

enum {
    MAGIC_SIZE = 8,
    UUID_SIZE = 16,
    VERSION_MIN = 2,
    SUMMARY_FLAGS_KNOWN = WAL__SUMMARY_FORK | WAL__SUMMARY_DAMAGED | WAL__SUMMARY_DELETED |
                          WAL__SUMMARY_ACTIVE | WAL__SUMMARY_STRAIGHT | WAL__SUMMARY_TRASHED |
                          WAL__SUMMARY_MOVED,
    POSTING_COUNT_MAX = WAL__SEGMENT_MAX / WAL__FRAME_SIZE
};

static const uint8_t index_magic[MAGIC_SIZE] = "AGWALIDX";

size_t wal__summary_text_size(const struct wal__summary *summary)
{
    return summary->id.size + summary->head_id.size + summary->parent_id.size + summary->cwd.size +
           summary->project.size + summary->title.size + summary->source.size +
           summary->first_text.size;
}

bool wal__summary_is_valid(const struct wal__summary *summary)
{
    return summary->number > 0 && (summary->flags & ~(uint32_t)SUMMARY_FLAGS_KNOWN) == 0 &&
           summary->id.size >= 1 && summary->id.size <= WAL__ID_MAX &&
           summary->head_id.size <= WAL__ID_MAX && summary->parent_id.size <= WAL__ID_MAX &&
           summary->cwd.size <= WAL__TEXT_MAX && summary->project.size <= WAL__TEXT_MAX &&
           summary->title.size <= WAL__TEXT_MAX && summary->source.size <= WAL__TEXT_MAX &&
           summary->first_text.size <= WAL__SUMMARY_FIRST_MAX;
}

static void put_texts(const struct wal__summary *summary, uint8_t *text)
{
    const uint8_t *begin = text;

    text = wal__put_text(text, summary->id);
    text = wal__put_text(text, summary->head_id);
    text = wal__put_text(text, summary->parent_id);
    text = wal__put_text(text, summary->cwd);
    text = wal__put_text(text, summary->project);
    text = wal__put_text(text, summary->title);
    text = wal__put_text(text, summary->source);
    text = wal__put_text(text, summary->first_text);
    WAL__ASSERT(text == begin + wal__summary_text_size(summary));
}

static void put_text_sizes(const struct wal__summary *summary, uint8_t *out)
{
    wal__put_text_size8(out + SUMMARY_ID_SIZE, summary->id);
    wal__put_text_size8(out + SUMMARY_HEAD_SIZE, summary->head_id);
    wal__put_text_size8(out + SUMMARY_PARENT_SIZE, summary->parent_id);
    wal__put_text_size8(out + SUMMARY_FIRST_SIZE, summary->first_text);
    wal__put_text_size16(out + SUMMARY_CWD_SIZE, summary->cwd);
    wal__put_text_size16(out + SUMMARY_PROJECT_SIZE, summary->project);
    wal__put_text_size16(out + SUMMARY_TITLE_SIZE, summary->title);
    wal__put_text_size16(out + SUMMARY_SOURCE_SIZE, summary->source);
}

void wal__summary_encode(const struct wal__summary *summary, uint32_t text_offset, uint8_t *out,
                         uint8_t *text)
{
    WAL__ASSERT(wal__summary_is_valid(summary));
    WAL__ASSERT(wal__summary_text_size(summary) <= UINT32_MAX - text_offset);
    wal__put32(out + SUMMARY_NUMBER, summary->number);
    wal__put32(out + SUMMARY_FLAGS, summary->flags);
    wal__put64(out + SUMMARY_ID_HASH, summary->id_hash);
    wal__put64(out + SUMMARY_SESSION_POSITION, summary->session_position);
    wal__put64(out + SUMMARY_FORK_SEQUENCE, summary->fork_sequence);
    wal__put32(out + SUMMARY_FORK_OWNER, summary->fork_owner);
    wal__put32(out + SUMMARY_DEPTH, summary->depth);
    wal__put64(out + SUMMARY_CREATED, (uint64_t)summary->created_ms);
    wal__put64(out + SUMMARY_UPDATED, (uint64_t)summary->updated_ms);
    wal__put64(out + SUMMARY_LAST_SEQUENCE, summary->last_sequence);
    wal__put64(out + SUMMARY_ENTRIES, summary->entries);
    wal__put64(out + SUMMARY_INHERITED, summary->inherited);
    wal__put64(out + SUMMARY_BYTES, summary->bytes);
    wal__put64(out + SUMMARY_HEAD_SEQUENCE, summary->head_sequence);
    wal__put64(out + SUMMARY_SEGMENT, summary->segment);
    wal__put32(out + SUMMARY_FIRST_POSTING, summary->first_posting);
    wal__put32(out + SUMMARY_POSTING_COUNT, summary->posting_count);
    wal__put32(out + SUMMARY_TEXT_OFFSET, text_offset);
    wal__put64(out + SUMMARY_FIRST_SEQUENCE, summary->first_sequence);
    wal__put64(out + SUMMARY_FORK_RECORD, summary->fork_record);
    wal__put32(out + SUMMARY_FIRST_OWNER, summary->first_owner);
    wal__put32(out + SUMMARY_FORK_SOURCE, summary->fork_source);
    wal__put32(out + SUMMARY_DOCUMENTS, summary->documents);
    wal__put32(out + SUMMARY_SCHEMA_VERSION, summary->schema_version);
    put_text_sizes(summary, out);
    put_texts(summary, text);
}

static void get_numbers(const uint8_t *at, struct wal__summary *summary)
{
    summary->number = wal__get32(at + SUMMARY_NUMBER);
    summary->flags = wal__get32(at + SUMMARY_FLAGS);
    summary->id_hash = wal__get64(at + SUMMARY_ID_HASH);
    summary->session_position = wal__get64(at + SUMMARY_SESSION_POSITION);
    summary->fork_sequence = wal__get64(at + SUMMARY_FORK_SEQUENCE);
    summary->fork_owner = wal__get32(at + SUMMARY_FORK_OWNER);
    summary->depth = wal__get32(at + SUMMARY_DEPTH);
    summary->created_ms = (int64_t)wal__get64(at + SUMMARY_CREATED);
    summary->updated_ms = (int64_t)wal__get64(at + SUMMARY_UPDATED);
    summary->last_sequence = wal__get64(at + SUMMARY_LAST_SEQUENCE);
    summary->entries = wal__get64(at + SUMMARY_ENTRIES);
    summary->inherited = wal__get64(at + SUMMARY_INHERITED);
    summary->bytes = wal__get64(at + SUMMARY_BYTES);
    summary->head_sequence = wal__get64(at + SUMMARY_HEAD_SEQUENCE);
    summary->segment = wal__get64(at + SUMMARY_SEGMENT);
    summary->first_posting = wal__get32(at + SUMMARY_FIRST_POSTING);
    summary->posting_count = wal__get32(at + SUMMARY_POSTING_COUNT);
    summary->first_sequence = wal__get64(at + SUMMARY_FIRST_SEQUENCE);
    summary->fork_record = wal__get64(at + SUMMARY_FORK_RECORD);
    summary->first_owner = wal__get32(at + SUMMARY_FIRST_OWNER);
    summary->fork_source = wal__get32(at + SUMMARY_FORK_SOURCE);
    summary->documents = wal__get32(at + SUMMARY_DOCUMENTS);
    summary->schema_version = wal__get32(at + SUMMARY_SCHEMA_VERSION);
}

static void get_texts(const uint8_t *at, const uint8_t *text, struct wal__summary *summary)
{
    /* Copied because mapped bytes may change between two reads. */
    uint8_t sizes[SUMMARY_FIRST_SEQUENCE - SUMMARY_ID_SIZE];
    const uint8_t *wide = sizes + (SUMMARY_CWD_SIZE - SUMMARY_ID_SIZE);

    memcpy(sizes, at + SUMMARY_ID_SIZE, sizeof(sizes));
    summary->id = wal__get_text(&text, sizes[0]);
    summary->head_id = wal__get_text(&text, sizes[1]);
    summary->parent_id = wal__get_text(&text, sizes[2]);
    summary->cwd = wal__get_text(&text, wal__get16(wide));
    summary->project = wal__get_text(&text, wal__get16(wide + 2));
    summary->title = wal__get_text(&text, wal__get16(wide + 4));
    summary->source = wal__get_text(&text, wal__get16(wide + 6));
    summary->first_text = wal__get_text(&text, sizes[3]);
}

enum wal__fmt wal__summary_decode(const uint8_t *at, struct wal__span texts,
                                  struct wal__summary *summary)
{
    uint32_t offset = wal__get32(at + SUMMARY_TEXT_OFFSET);

    if (offset >= texts.size) {
        return WAL__FMT_FIELD;
    }
    get_numbers(at, summary);
    get_texts(at, texts.data + offset, summary);
    return wal__summary_text_size(summary) <= texts.size - offset && wal__summary_is_valid(summary)
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

uint32_t wal__summary_number(const uint8_t *at)
{
    return wal__get32(at + SUMMARY_NUMBER);
}

uint32_t wal__summary_flags(const uint8_t *at)
{
    return wal__get32(at + SUMMARY_FLAGS);
}

uint64_t wal__summary_id_hash(const uint8_t *at)
{
    return wal__get64(at + SUMMARY_ID_HASH);
}

uint32_t wal__summary_text_offset(const uint8_t *at)
{
    return wal__get32(at + SUMMARY_TEXT_OFFSET);
}

void wal__posting_encode(const struct wal__posting *posting, uint8_t *out)
{
    wal__put32(out + POSTING_OFFSET, posting->offset);
    out[POSTING_TYPE] = posting->type;
    out[POSTING_FLAGS] = posting->flags;
    out[POSTING_STREAM] = posting->stream;
    out[POSTING_KIND] = posting->kind;
    wal__put64(out + POSTING_SEQUENCE, posting->sequence);
    wal__put64(out + POSTING_PARENT, posting->parent);
    wal__put64(out + POSTING_ID_HASH, posting->id_hash);
}

void wal__posting_decode(const uint8_t *at, struct wal__posting *posting)
{
    posting->offset = wal__get32(at + POSTING_OFFSET);
    posting->type = at[POSTING_TYPE];
    posting->flags = at[POSTING_FLAGS];
    posting->stream = at[POSTING_STREAM];
    posting->kind = at[POSTING_KIND];
    posting->sequence = wal__get64(at + POSTING_SEQUENCE);
    posting->parent = wal__get64(at + POSTING_PARENT);
    posting->id_hash = wal__get64(at + POSTING_ID_HASH);
}

uint64_t wal__index_size(uint32_t session_count, uint32_t posting_count, uint64_t text_size)
{
    return WAL__INDEX_HEADER_SIZE + (uint64_t)session_count * WAL__SUMMARY_SIZE +
           (uint64_t)posting_count * WAL__POSTING_SIZE + text_size;
}

static uint64_t index_size(const struct wal__index_header *header)
{
    return wal__index_size(header->session_count, header->posting_count, header->text_size);
}

/* Writes what the indexes of all segments have in their headers, and the checksums; the rest of the
 * index, of `size` bytes, is in place. */
static void finish_index(const struct wal__index_header *header, size_t size, uint8_t *out)
{
    WAL__ASSERT(header->commit_offset < header->end);
    wal__put64(out + INDEX_ID, header->id);
    wal__put64(out + INDEX_STREAM_END, header->end);
    wal__put64(out + INDEX_FIRST_SEQUENCE, header->first_sequence);
    wal__put64(out + INDEX_LAST_SEQUENCE, header->last_sequence);
    wal__put32(out + INDEX_CHAIN, header->chain);
    wal__put32(out + INDEX_COMMIT_OFFSET, header->commit_offset);
    wal__put64(out + INDEX_EPOCH, header->epoch);
    memcpy(out + INDEX_UUID, header->uuid, UUID_SIZE);
    wal__put32(out + INDEX_BODY_CRC,
               wal__crc32(0, out + WAL__INDEX_HEADER_SIZE, size - WAL__INDEX_HEADER_SIZE));
    wal__put32(out + INDEX_CRC, wal__crc32(0, out, INDEX_CRC));
}

void wal__index_finish(const struct wal__index_header *header, uint8_t *out)
{
    WAL__ASSERT(header->posting_count <= POSTING_COUNT_MAX);
    memset(out, 0, WAL__INDEX_HEADER_SIZE);
    memcpy(out + INDEX_MAGIC, index_magic, MAGIC_SIZE);
    wal__put32(out + INDEX_VERSION, WAL__INDEX_VERSION);
    wal__put32(out + INDEX_SESSION_COUNT, header->session_count);
    wal__put32(out + INDEX_POSTING_COUNT, header->posting_count);
    wal__put32(out + INDEX_TEXT_SIZE, header->text_size);
    wal__put32(out + INDEX_LAST_SESSION, header->last_session);
    finish_index(header, (size_t)index_size(header), out);
}

/* Checks magic and checksum of the header of an index, and reads what those of all segments have;
 * `at` has WAL__INDEX_HEADER_SIZE bytes. */
static enum wal__fmt begin_index(const uint8_t *at, const uint8_t magic[MAGIC_SIZE],
                                 struct wal__index_header *header)
{
    if (memcmp(at + INDEX_MAGIC, magic, MAGIC_SIZE) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__crc32(0, at, INDEX_CRC) != wal__get32(at + INDEX_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    *header = (struct wal__index_header){.version = wal__get32(at + INDEX_VERSION),
                                         .id = wal__get64(at + INDEX_ID),
                                         .end = wal__get64(at + INDEX_STREAM_END),
                                         .first_sequence = wal__get64(at + INDEX_FIRST_SEQUENCE),
                                         .last_sequence = wal__get64(at + INDEX_LAST_SEQUENCE),
                                         .chain = wal__get32(at + INDEX_CHAIN),
                                         .commit_offset = wal__get32(at + INDEX_COMMIT_OFFSET),
                                         .epoch = wal__get64(at + INDEX_EPOCH)};
    memcpy(header->uuid, at + INDEX_UUID, UUID_SIZE);
    return WAL__FMT_OK;
}

static enum wal__fmt decode_index_header(const uint8_t *at, struct wal__index_header *header)
{
    enum wal__fmt fmt = begin_index(at, index_magic, header);

    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    header->session_count = wal__get32(at + INDEX_SESSION_COUNT);
    header->posting_count = wal__get32(at + INDEX_POSTING_COUNT);
    header->text_size = wal__get32(at + INDEX_TEXT_SIZE);
    header->last_session = wal__get32(at + INDEX_LAST_SESSION);
    if (header->version < VERSION_MIN || header->version > WAL__INDEX_VERSION) {
        return WAL__FMT_VERSION;
    }
    if (wal__get32(at + INDEX_FLAGS) != 0 || wal__get64(at + INDEX_ZERO) != 0 ||
        header->posting_count > POSTING_COUNT_MAX || header->commit_offset >= header->end) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

enum wal__fmt wal__index_decode(struct wal__span bytes, struct wal__index *index)
{
    struct wal__index read;
    enum wal__fmt fmt = wal__index_decode_any(bytes, &read);

    if (fmt == WAL__FMT_OK && read.header.version < WAL__INDEX_VERSION_USED) {
        fmt = WAL__FMT_VERSION;
    }
    if (fmt == WAL__FMT_OK) {
        *index = read;
    }
    return fmt;
}

enum wal__fmt wal__index_decode_any(struct wal__span bytes, struct wal__index *index)
{
    uint8_t copy[WAL__INDEX_HEADER_SIZE];
    struct wal__index read;
    enum wal__fmt fmt;

    if (bytes.size < WAL__INDEX_HEADER_SIZE) {
        return WAL__FMT_SHORT;
    }
    memcpy(copy, bytes.data, sizeof(copy));
    fmt = decode_index_header(copy, &read.header);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (index_size(&read.header) != bytes.size) {
        return bytes.size < index_size(&read.header) ? WAL__FMT_SHORT : WAL__FMT_FIELD;
    }
    read.summaries = bytes.data + WAL__INDEX_HEADER_SIZE;
    if (wal__crc32(0, read.summaries, bytes.size - WAL__INDEX_HEADER_SIZE) !=
        wal__get32(copy + INDEX_BODY_CRC)) {
        return WAL__FMT_DATA_CRC;
    }
    read.postings = read.summaries + (size_t)read.header.session_count * WAL__SUMMARY_SIZE;
    read.texts.data = read.postings + (size_t)read.header.posting_count * WAL__POSTING_SIZE;
    read.texts.size = read.header.text_size;
    WAL__ASSERT(read.texts.data + read.texts.size == bytes.data + bytes.size);
    *index = read;
    return WAL__FMT_OK;
}

void wal__index_posting(const struct wal__index *index, uint32_t rank, struct wal__posting *posting)
{
    WAL__ASSERT(rank < index->header.posting_count);
    wal__posting_decode(index->postings + (size_t)rank * WAL__POSTING_SIZE, posting);
}

enum wal__fmt wal__index_summary(const struct wal__index *index, uint32_t rank,
                                 struct wal__summary *summary)
{
    enum wal__fmt fmt;

    if (rank >= index->header.session_count) {
        return WAL__FMT_FIELD;
    }
    fmt = wal__summary_decode(index->summaries + (size_t)rank * WAL__SUMMARY_SIZE, index->texts,
                              summary);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    return (uint64_t)summary->first_posting + summary->posting_count <= index->header.posting_count
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

enum wal__fmt wal__index_find(const struct wal__index *index, uint32_t number,
                              struct wal__summary *summary)
{
    uint32_t low = 0;
    uint32_t high = index->header.session_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t found = wal__summary_number(index->summaries + (size_t)middle * WAL__SUMMARY_SIZE);

        WAL__ASSERT(low <= middle && middle < high);
        if (found == number) {
            return wal__index_summary(index, middle, summary);
        }
        if (found < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return WAL__FMT_ZERO;
}

/* --- the catalogue -------------------------------------------------------- */

enum {
    AT_MAGIC = 0,
    AT_VERSION = AT_MAGIC + 8,
    AT_SESSION_COUNT = AT_VERSION + 4,
    AT_TEXT_SIZE = AT_SESSION_COUNT + 4,
    AT_POSITION = AT_TEXT_SIZE + 8,
    AT_LAST_SEQUENCE = AT_POSITION + 8,
    AT_CHAIN = AT_LAST_SEQUENCE + 8,
    AT_LAST_SESSION = AT_CHAIN + 4,
    AT_UUID = AT_LAST_SESSION + 4,
    AT_TABLE_CRC = AT_UUID + 16,
    AT_HIDDEN_COUNT = AT_TABLE_CRC + 4,
    AT_GENERATION = AT_HIDDEN_COUNT + 4,
    AT_ZERO = AT_GENERATION + 4,
    AT_CRC = 124
};

WAL__FOLLOWS(AT_CRC, AT_ZERO, 48);
WAL__FOLLOWS((int)WAL__CATALOGUE_HEADER_SIZE, (int)AT_CRC, 4);

static const uint8_t catalogue_magic[MAGIC_SIZE] = "AGWALCAT";

void wal__catalogue_header_encode(const struct wal__catalogue_header *header, uint8_t *out)
{
    WAL__ASSERT(header->hidden_count <= header->session_count);
    memset(out, 0, WAL__CATALOGUE_HEADER_SIZE);
    memcpy(out + AT_MAGIC, catalogue_magic, MAGIC_SIZE);
    wal__put32(out + AT_VERSION, WAL__CATALOGUE_VERSION);
    wal__put32(out + AT_SESSION_COUNT, header->session_count);
    wal__put64(out + AT_TEXT_SIZE, header->text_size);
    wal__put64(out + AT_POSITION, header->position);
    wal__put64(out + AT_LAST_SEQUENCE, header->last_sequence);
    wal__put32(out + AT_CHAIN, header->chain);
    wal__put32(out + AT_LAST_SESSION, header->last_session);
    memcpy(out + AT_UUID, header->uuid, UUID_SIZE);
    wal__put32(out + AT_TABLE_CRC, header->table_crc);
    wal__put32(out + AT_HIDDEN_COUNT, header->hidden_count);
    wal__put32(out + AT_GENERATION, header->generation);
    wal__put32(out + AT_CRC, wal__crc32(0, out, AT_CRC));
}

enum wal__fmt wal__catalogue_header_decode(struct wal__span bytes,
                                           struct wal__catalogue_header *header)
{
    struct wal__catalogue_header read;
    enum wal__fmt fmt = wal__catalogue_header_decode_any(bytes, &read);

    if (fmt == WAL__FMT_OK && read.version < WAL__INDEX_VERSION_USED) {
        fmt = WAL__FMT_VERSION;
    }
    if (fmt == WAL__FMT_OK) {
        *header = read;
    }
    return fmt;
}

enum wal__fmt wal__catalogue_header_decode_any(struct wal__span bytes,
                                               struct wal__catalogue_header *header)
{
    uint32_t version;
    uint8_t at[WAL__CATALOGUE_HEADER_SIZE];

    if (bytes.size < sizeof(at)) {
        return WAL__FMT_SHORT;
    }
    /* Copied because mapped bytes may change between two reads. */
    memcpy(at, bytes.data, sizeof(at));
    if (memcmp(at + AT_MAGIC, catalogue_magic, MAGIC_SIZE) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__crc32(0, at, AT_CRC) != wal__get32(at + AT_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    version = wal__get32(at + AT_VERSION);
    if (version < VERSION_MIN || version > WAL__CATALOGUE_VERSION) {
        return WAL__FMT_VERSION;
    }
    if (!wal__is_zero(at + AT_ZERO, AT_CRC - AT_ZERO) ||
        wal__get32(at + AT_HIDDEN_COUNT) > wal__get32(at + AT_SESSION_COUNT)) {
        return WAL__FMT_FIELD;
    }
    header->version = version;
    header->session_count = wal__get32(at + AT_SESSION_COUNT);
    header->text_size = wal__get64(at + AT_TEXT_SIZE);
    header->position = wal__get64(at + AT_POSITION);
    header->last_sequence = wal__get64(at + AT_LAST_SEQUENCE);
    header->chain = wal__get32(at + AT_CHAIN);
    header->last_session = wal__get32(at + AT_LAST_SESSION);
    memcpy(header->uuid, at + AT_UUID, UUID_SIZE);
    header->table_crc = wal__get32(at + AT_TABLE_CRC);
    header->hidden_count = wal__get32(at + AT_HIDDEN_COUNT);
    header->generation = wal__get32(at + AT_GENERATION);
    return WAL__FMT_OK;
}

/* Returns the offset of the section after one of `size` bytes. */
static uint64_t section_after(uint64_t offset, uint64_t size)
{
    uint64_t mask = WAL__CATALOGUE_PAGE - 1;

    return (offset + size + mask) & ~mask;
}

enum wal__fmt wal__catalogue_layout(const struct wal__catalogue_header *header,
                                    struct wal__catalogue_layout *layout)
{
    uint64_t count = header->session_count;
    uint64_t ranks = count * sizeof(uint32_t);

    /* A summary's text offset has 32 bits. */
    if (header->text_size > UINT32_MAX) {
        return WAL__FMT_FIELD;
    }
    layout->summaries = WAL__CATALOGUE_PAGE;
    layout->by_id = section_after(layout->summaries, count * WAL__SUMMARY_SIZE);
    layout->by_recent = section_after(layout->by_id, ranks);
    layout->by_cwd = section_after(layout->by_recent, ranks);
    layout->texts = section_after(layout->by_cwd, ranks);
    layout->table = section_after(layout->texts, header->text_size);
    layout->size = layout->table + layout->table / WAL__CATALOGUE_PAGE * sizeof(uint32_t);
    WAL__ASSERT(layout->by_id <= layout->by_recent);
    WAL__ASSERT(layout->by_recent <= layout->by_cwd);
    WAL__ASSERT(layout->by_cwd <= layout->texts);
    WAL__ASSERT(layout->texts <= layout->table);
    return WAL__FMT_OK;
}

/* --- the index of a pack segment ------------------------------------------ */

/* The header is that of a segment index (2.12) with the count of digests in place of its counts. */
enum {
    PACK_COUNT = INDEX_SESSION_COUNT,
    PACK_ZERO = PACK_COUNT + 4,
    FAN_OUT_SIZE = WAL__PACK_FAN_OUT * 4,
    ENTRY_SIZE = WAL__DIGEST_SIZE + 4,
    PACK_INDEX_VERSION = 1
};

WAL__FOLLOWS((int)INDEX_ID, (int)PACK_ZERO, 8);

static const uint8_t pack_magic[MAGIC_SIZE] = "AGWALPIX";

uint64_t wal__pack_index_size(uint32_t count)
{
    return WAL__INDEX_HEADER_SIZE + FAN_OUT_SIZE + (uint64_t)count * ENTRY_SIZE;
}

void wal__pack_index_put(uint8_t *out, uint32_t count, uint32_t rank,
                         const struct wal__digest *digest, uint32_t offset)
{
    uint8_t *digests = out + WAL__INDEX_HEADER_SIZE + FAN_OUT_SIZE;
    uint8_t *offsets = digests + (size_t)count * WAL__DIGEST_SIZE;

    WAL__ASSERT(rank < count);
    WAL__ASSERT(rank == 0 || memcmp(digests + (size_t)(rank - 1) * WAL__DIGEST_SIZE, digest->bytes,
                                    WAL__DIGEST_SIZE) <= 0);
    memcpy(digests + (size_t)rank * WAL__DIGEST_SIZE, digest->bytes, WAL__DIGEST_SIZE);
    wal__put32(offsets + (size_t)rank * 4, offset);
}

static void encode_fan_out(uint8_t *out, uint32_t count)
{
    const uint8_t *digests = out + WAL__INDEX_HEADER_SIZE + FAN_OUT_SIZE;
    uint32_t rank = 0;

    for (uint32_t byte = 0; byte < WAL__PACK_FAN_OUT; byte++) {
        while (rank < count && digests[(size_t)rank * WAL__DIGEST_SIZE] <= byte) {
            rank++;
        }
        wal__put32(out + WAL__INDEX_HEADER_SIZE + (size_t)byte * 4, rank);
    }
    WAL__ASSERT(rank == count);
}

void wal__pack_index_finish(const struct wal__index_header *header, uint8_t *out)
{
    encode_fan_out(out, header->posting_count);
    memset(out, 0, WAL__INDEX_HEADER_SIZE);
    memcpy(out + INDEX_MAGIC, pack_magic, MAGIC_SIZE);
    wal__put32(out + INDEX_VERSION, PACK_INDEX_VERSION);
    wal__put32(out + PACK_COUNT, header->posting_count);
    finish_index(header, (size_t)wal__pack_index_size(header->posting_count), out);
}

static enum wal__fmt decode_pack_header(const uint8_t *at, struct wal__index_header *header)
{
    enum wal__fmt fmt = begin_index(at, pack_magic, header);

    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (header->version != PACK_INDEX_VERSION) {
        return WAL__FMT_VERSION;
    }
    header->posting_count = wal__get32(at + PACK_COUNT);
    if (wal__get64(at + PACK_ZERO) != 0 || wal__get32(at + INDEX_LAST_SESSION) != 0 ||
        wal__get32(at + INDEX_FLAGS) != 0 || wal__get64(at + INDEX_ZERO) != 0 ||
        header->commit_offset >= header->end) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

static uint32_t fan_out(const struct wal__pack_index *index, uint32_t byte)
{
    return wal__get32(index->fan_out + (size_t)byte * 4);
}

/* Whether the fan-out ascends up to the count. */
static bool fan_out_is_valid(const struct wal__pack_index *index)
{
    uint32_t previous = 0;

    for (uint32_t byte = 0; byte < WAL__PACK_FAN_OUT; byte++) {
        uint32_t rank = fan_out(index, byte);

        if (rank < previous) {
            return false;
        }
        previous = rank;
    }
    return previous == index->header.posting_count;
}

enum wal__fmt wal__pack_index_decode(struct wal__span bytes, struct wal__pack_index *index)
{
    uint8_t copy[WAL__INDEX_HEADER_SIZE];
    struct wal__pack_index read;
    enum wal__fmt fmt;
    uint64_t size;

    if (bytes.size < WAL__INDEX_HEADER_SIZE) {
        return WAL__FMT_SHORT;
    }
    memcpy(copy, bytes.data, sizeof(copy));
    fmt = decode_pack_header(copy, &read.header);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    size = wal__pack_index_size(read.header.posting_count);
    if (bytes.size != size) {
        return bytes.size < size ? WAL__FMT_SHORT : WAL__FMT_FIELD;
    }
    if (wal__crc32(0, bytes.data + WAL__INDEX_HEADER_SIZE, bytes.size - WAL__INDEX_HEADER_SIZE) !=
        wal__get32(copy + INDEX_BODY_CRC)) {
        return WAL__FMT_DATA_CRC;
    }
    read.fan_out = bytes.data + WAL__INDEX_HEADER_SIZE;
    read.digests = read.fan_out + FAN_OUT_SIZE;
    read.offsets = read.digests + (size_t)read.header.posting_count * WAL__DIGEST_SIZE;
    WAL__ASSERT(read.offsets + (size_t)read.header.posting_count * 4 == bytes.data + bytes.size);
    if (!fan_out_is_valid(&read)) {
        return WAL__FMT_FIELD;
    }
    *index = read;
    return WAL__FMT_OK;
}

bool wal__pack_index_find(const struct wal__pack_index *index, const struct wal__digest *digest,
                          uint32_t *offset)
{
    uint8_t first = digest->bytes[0];
    uint32_t begin = first == 0 ? 0 : fan_out(index, (uint32_t)first - 1);
    uint32_t low = begin;
    uint32_t high = fan_out(index, first);

    /* Find the end of the digests that are not greater. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memcmp(index->digests + (size_t)middle * WAL__DIGEST_SIZE, digest->bytes,
                   WAL__DIGEST_SIZE) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == begin || memcmp(index->digests + (size_t)(low - 1) * WAL__DIGEST_SIZE, digest->bytes,
                               WAL__DIGEST_SIZE) != 0) {
        return false;
    }
    *offset = wal__get32(index->offsets + (size_t)(low - 1) * 4);
    return true;
}
