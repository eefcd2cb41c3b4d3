/*
 * catalogue_fmt.c - the catalogue's header and the layout of its sections
 * (SPEC.md 2.13; declared in index_fmt.h).
 *
 * Invariant: a layout's offsets ascend and do not overflow. Threads: any.
 */
#include <stdbool.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"

enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_SESSION_COUNT = 12,
    AT_TEXT_SIZE = 16,
    AT_POSITION = 24,
    AT_LAST_SEQUENCE = 32,
    AT_CHAIN = 40,
    AT_LAST_SESSION = 44,
    AT_UUID = 48,
    AT_TABLE_CRC = 64,
    AT_HIDDEN_COUNT = 68,
    AT_GENERATION = 72,
    AT_ZERO = 76,
    AT_CRC = 124
};

WAL__FOLLOWS(AT_VERSION, AT_MAGIC, 8);
WAL__FOLLOWS(AT_SESSION_COUNT, AT_VERSION, 4);
WAL__FOLLOWS(AT_TEXT_SIZE, AT_SESSION_COUNT, 4);
WAL__FOLLOWS(AT_POSITION, AT_TEXT_SIZE, 8);
WAL__FOLLOWS(AT_LAST_SEQUENCE, AT_POSITION, 8);
WAL__FOLLOWS(AT_CHAIN, AT_LAST_SEQUENCE, 8);
WAL__FOLLOWS(AT_LAST_SESSION, AT_CHAIN, 4);
WAL__FOLLOWS(AT_UUID, AT_LAST_SESSION, 4);
WAL__FOLLOWS(AT_TABLE_CRC, AT_UUID, 16);
WAL__FOLLOWS(AT_HIDDEN_COUNT, AT_TABLE_CRC, 4);
WAL__FOLLOWS(AT_GENERATION, AT_HIDDEN_COUNT, 4);
WAL__FOLLOWS(AT_ZERO, AT_GENERATION, 4);
WAL__FOLLOWS(AT_CRC, AT_ZERO, 48);
WAL__FOLLOWS((int)WAL__CATALOGUE_HEADER_SIZE, (int)AT_CRC, 4);

enum {
    MAGIC_SIZE = 8,
    UUID_SIZE = 16,
    VERSION_MIN = 2
};

static const uint8_t catalogue_magic[MAGIC_SIZE] = "AGWALCAT";

void wal__catalogue_header_encode(const struct wal__catalogue_header *header,
                                  uint8_t *out)
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

static bool is_zero(const uint8_t *at, size_t size)
{
    uint8_t bits = 0;

    for (size_t i = 0; i < size; i++) {
        bits |= at[i];
    }
    return bits == 0;
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

enum wal__fmt
wal__catalogue_header_decode_any(struct wal__span bytes,
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
    if (!is_zero(at + AT_ZERO, AT_CRC - AT_ZERO) ||
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
    layout->size =
        layout->table + layout->table / WAL__CATALOGUE_PAGE * sizeof(uint32_t);
    WAL__ASSERT(layout->by_id <= layout->by_recent);
    WAL__ASSERT(layout->by_recent <= layout->by_cwd);
    WAL__ASSERT(layout->by_cwd <= layout->texts);
    WAL__ASSERT(layout->texts <= layout->table);
    return WAL__FMT_OK;
}
