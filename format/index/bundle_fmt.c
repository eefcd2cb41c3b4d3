/*
 * bundle_fmt.c - encodes and decodes the header and the table of a bundle (SPEC.md 2.24).
 *
 * Invariant: a decoded row is inside the bundle, and its file no larger than a file of a store can
 * be.
 */
#include "format/index/bundle_fmt.h"

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/keys_fmt.h"
#include "format/segment/segment_fmt.h"

enum {
    HEADER_MAGIC = 0,
    HEADER_VERSION = HEADER_MAGIC + WAL__BUNDLE_MAGIC_SIZE,
    HEADER_SIZE = HEADER_VERSION + 4,
    HEADER_FILES = HEADER_SIZE + 4,
    HEADER_TABLE_CRC = HEADER_FILES + 4,
    HEADER_TOTAL = HEADER_TABLE_CRC + 4,
    HEADER_SESSIONS = HEADER_TOTAL + 8,
    HEADER_CREATED = HEADER_SESSIONS + 8,
    HEADER_RESERVED = HEADER_CREATED + 8,
    HEADER_CRC = 60
};

WAL__FOLLOWS(HEADER_CRC, HEADER_RESERVED, 12);
WAL__FOLLOWS(WAL__BUNDLE_HEADER_SIZE, HEADER_CRC, 4);

enum {
    FILE_CLASS = 0,
    FILE_CRC = FILE_CLASS + 4,
    FILE_ID = FILE_CRC + 4,
    FILE_SIZE = FILE_ID + 8,
    FILE_STORED = 24
};

WAL__FOLLOWS(FILE_STORED, FILE_SIZE, 8);
WAL__FOLLOWS(WAL__BUNDLE_FILE_SIZE, FILE_STORED, 8);

/* The first byte is no text, and the last ones show a conversion of line ends.
 */
static const uint8_t magic[WAL__BUNDLE_MAGIC_SIZE] = {0x8a, 'A', 'W', 'B', 'D', 'L', '\r', '\n'};

bool wal__bundle_is_magic(struct wal__span bytes)
{
    return bytes.size >= sizeof(magic) && memcmp(bytes.data, magic, sizeof(magic)) == 0;
}

static uint64_t table_end(uint32_t file_count)
{
    return WAL__BUNDLE_HEADER_SIZE + (uint64_t)file_count * WAL__BUNDLE_FILE_SIZE;
}

void wal__bundle_encode(const struct wal__bundle *bundle, uint8_t *out)
{
    memset(out, 0, WAL__BUNDLE_HEADER_SIZE);
    memcpy(out + HEADER_MAGIC, magic, sizeof(magic));
    wal__put32(out + HEADER_VERSION, bundle->version);
    wal__put32(out + HEADER_SIZE, WAL__BUNDLE_HEADER_SIZE);
    wal__put32(out + HEADER_FILES, bundle->file_count);
    wal__put32(out + HEADER_TABLE_CRC, bundle->table_crc);
    wal__put64(out + HEADER_TOTAL, bundle->size);
    wal__put64(out + HEADER_SESSIONS, bundle->sessions);
    wal__put64(out + HEADER_CREATED, (uint64_t)bundle->created_ms);
    wal__put32(out + HEADER_CRC, wal__crc32(0, out, HEADER_CRC));
}

enum wal__fmt wal__bundle_decode(struct wal__span bytes, struct wal__bundle *bundle)
{
    static const uint8_t zeros[HEADER_CRC - HEADER_RESERVED] = {0};
    const uint8_t *at = bytes.data;

    if (bytes.size >= sizeof(magic) && !wal__bundle_is_magic(bytes)) {
        return WAL__FMT_MAGIC;
    }
    if (bytes.size < WAL__BUNDLE_HEADER_SIZE) {
        return WAL__FMT_SHORT;
    }
    /* A later version may have another header: nothing after this field is read. */
    bundle->version = wal__get32(at + HEADER_VERSION);
    if (bundle->version > WAL__BUNDLE_VERSION) {
        return WAL__FMT_VERSION;
    }
    if (wal__get32(at + HEADER_CRC) != wal__crc32(0, at, HEADER_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    bundle->file_count = wal__get32(at + HEADER_FILES);
    bundle->table_crc = wal__get32(at + HEADER_TABLE_CRC);
    bundle->size = wal__get64(at + HEADER_TOTAL);
    bundle->sessions = wal__get64(at + HEADER_SESSIONS);
    bundle->created_ms = (int64_t)wal__get64(at + HEADER_CREATED);
    return bundle->version >= 1 && bundle->version <= WAL__BUNDLE_VERSION &&
                   wal__get32(at + HEADER_SIZE) == WAL__BUNDLE_HEADER_SIZE &&
                   memcmp(at + HEADER_RESERVED, zeros, sizeof(zeros)) == 0 &&
                   bundle->file_count > 0 && bundle->file_count <= WAL__BUNDLE_FILES_MAX &&
                   bundle->size >= table_end(bundle->file_count) && bundle->size <= INT64_MAX
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

void wal__bundle_file_encode(const struct wal__bundle_file *file, uint8_t *out)
{
    wal__put32(out + FILE_CLASS, file->file_class);
    wal__put32(out + FILE_CRC, file->crc);
    wal__put64(out + FILE_ID, file->id);
    wal__put64(out + FILE_SIZE, file->size);
    wal__put64(out + FILE_STORED, file->stored);
}

enum wal__fmt wal__bundle_table_decode(const struct wal__bundle *bundle, struct wal__span bytes,
                                       struct wal__bundle_table *table)
{
    uint64_t end = table_end(bundle->file_count);

    if (bytes.size != end - WAL__BUNDLE_HEADER_SIZE) {
        return WAL__FMT_SHORT;
    }
    if (wal__crc32(0, bytes.data, bytes.size) != bundle->table_crc) {
        return WAL__FMT_DATA_CRC;
    }
    *table = (struct wal__bundle_table){
        .rest = bytes,
        .left = bundle->file_count,
        .limit = bundle->size - end,
    };
    return WAL__FMT_OK;
}

/* Whether the sizes are in their ranges. */
static bool has_valid_size(const struct wal__bundle_file *file)
{
    uint64_t max = file->file_class == WAL__BUNDLE_MANIFEST ? (uint64_t)WAL__MANIFEST_SIZE
                   : file->file_class == WAL__BUNDLE_KEYS   ? (uint64_t)WAL__KEYS_SIZE
                                                            : (uint64_t)WAL__SEGMENT_MAX;

    return file->size <= max && file->stored <= file->size;
}

/* Whether the row has a place in the order. */
static bool has_valid_name(const struct wal__bundle_table *table,
                           const struct wal__bundle_file *file)
{
    if (!table->has_last) {
        return file->file_class == WAL__BUNDLE_MANIFEST && file->id == 0;
    }
    if (file->file_class == WAL__BUNDLE_KEYS) {
        return file->id == 0 && table->last_class < WAL__BUNDLE_KEYS;
    }
    if (file->file_class != WAL__BUNDLE_LOG && file->file_class != WAL__BUNDLE_PACK) {
        return false;
    }
    return file->id > 0 && file->id <= UINT64_MAX >> WAL__POSITION_BITS &&
           (file->file_class > table->last_class ||
            (file->file_class == table->last_class && file->id > table->last_id));
}

enum wal__fmt wal__bundle_table_next(struct wal__bundle_table *table, struct wal__bundle_file *file)
{
    const uint8_t *at = table->rest.data;

    WAL__ASSERT(table->left > 0 && table->rest.size >= WAL__BUNDLE_FILE_SIZE);
    file->file_class = wal__get32(at + FILE_CLASS);
    file->crc = wal__get32(at + FILE_CRC);
    file->id = wal__get64(at + FILE_ID);
    file->size = wal__get64(at + FILE_SIZE);
    file->stored = wal__get64(at + FILE_STORED);
    if (!has_valid_size(file) || !has_valid_name(table, file) ||
        file->stored > table->limit - table->stored) {
        return WAL__FMT_FIELD;
    }
    table->rest.data += WAL__BUNDLE_FILE_SIZE;
    table->rest.size -= WAL__BUNDLE_FILE_SIZE;
    table->left--;
    table->stored += file->stored;
    table->last_class = file->file_class;
    table->last_id = file->id;
    table->has_last = true;
    return table->left > 0 || table->stored == table->limit ? WAL__FMT_OK : WAL__FMT_FIELD;
}
