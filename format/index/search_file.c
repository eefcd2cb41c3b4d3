/*
 * search_file.c - the header of an index file of search (search_file.h).
 */
#include "format/index/search_file.h"

#include <assert.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

static const char magic[8] = {'A', 'G', 'W', 'A', 'L', 'F', 'T', 'S'};

enum {
    VERSION = 8,
    KIND = 12,
    ID = 16,
    IDENTITY = 24,
    LAST_SEQUENCE = 32,
    TIME_MIN = 40,
    TIME_MAX = 48,
    TEXT_SIZE = 56,
    ROWS = 64,
    PAGE_COUNT = 68,
    TABLE_CRC = 72,
    CRC = 76
};

static_assert(CRC + 4 == WAL__SEARCH_FILE_HEADER, "the header ends with crc");

static const char suffix[] = ".fts";
static const char deep_suffix[] = ".deep.fts";
static const char temporary[] = ".new-"; /* then digits */

enum {
    NAME_DIGITS = 16,
    PAGES_MAX = 1 << 20 /* 4 GiB */
};

void wal__search_file_encode(const struct wal__search_file *file, uint8_t *out)
{
    memcpy(out, magic, sizeof(magic));
    wal__put32(out + VERSION, WAL__SEARCH_FILE_VERSION);
    wal__put32(out + KIND, file->kind);
    wal__put64(out + ID, file->id);
    wal__put64(out + IDENTITY, file->identity);
    wal__put64(out + LAST_SEQUENCE, file->last_sequence);
    wal__put64(out + TIME_MIN, (uint64_t)file->time_min);
    wal__put64(out + TIME_MAX, (uint64_t)file->time_max);
    wal__put64(out + TEXT_SIZE, file->text_size);
    wal__put32(out + ROWS, file->rows);
    wal__put32(out + PAGE_COUNT, file->page_count);
    wal__put32(out + TABLE_CRC, file->table_crc);
    wal__put32(out + CRC, wal__crc32(0, out, CRC));
}

enum wal__fmt wal__search_file_decode(struct wal__span bytes, struct wal__search_file *file)
{
    const uint8_t *at = bytes.data;
    struct wal__search_file decoded;

    if (bytes.size < WAL__SEARCH_FILE_HEADER) {
        return WAL__FMT_SHORT;
    }
    if (memcmp(at, magic, sizeof(magic)) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__get32(at + CRC) != wal__crc32(0, at, CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    decoded.version = wal__get32(at + VERSION);
    decoded.kind = wal__get32(at + KIND);
    decoded.id = wal__get64(at + ID);
    decoded.identity = wal__get64(at + IDENTITY);
    decoded.last_sequence = wal__get64(at + LAST_SEQUENCE);
    decoded.time_min = (int64_t)wal__get64(at + TIME_MIN);
    decoded.time_max = (int64_t)wal__get64(at + TIME_MAX);
    decoded.text_size = wal__get64(at + TEXT_SIZE);
    decoded.rows = wal__get32(at + ROWS);
    decoded.page_count = wal__get32(at + PAGE_COUNT);
    decoded.table_crc = wal__get32(at + TABLE_CRC);
    if (decoded.version != WAL__SEARCH_FILE_VERSION) {
        return WAL__FMT_VERSION;
    }
    if ((decoded.kind != WAL__SEARCH_TEXT && decoded.kind != WAL__SEARCH_DEEP) ||
        decoded.page_count == 0 || decoded.page_count > PAGES_MAX) {
        return WAL__FMT_FIELD;
    }
    *file = decoded;
    return WAL__FMT_OK;
}

uint64_t wal__search_file_pages(const struct wal__search_file *file)
{
    return WAL__SEARCH_FILE_PAGE +
           wal__align_up((uint64_t)file->page_count * 4, WAL__SEARCH_FILE_PAGE);
}

void wal__search_file_name(uint64_t id, enum wal__search_kind kind,
                           char name[WAL__SEARCH_FILE_NAME])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < NAME_DIGITS; i++) {
        name[i] = digits[id >> (4 * (NAME_DIGITS - 1 - i)) & 15];
    }
    if (kind == WAL__SEARCH_DEEP) {
        memcpy(name + NAME_DIGITS, deep_suffix, sizeof(deep_suffix));
    } else {
        memcpy(name + NAME_DIGITS, suffix, sizeof(suffix));
    }
}

/* Reads 16 lower-case hexadecimal digits. */
static bool read_digits(const char *text, uint64_t *number)
{
    uint64_t value = 0;

    for (int i = 0; i < NAME_DIGITS; i++) {
        char c = text[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *number = value;
    return true;
}

/* Returns what follows a prefix, or NULL. */
static const char *skip(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);

    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

bool wal__search_file_is_name(const char *name, uint64_t *id, enum wal__search_kind *kind,
                              bool *is_temporary)
{
    uint64_t segment;
    uint64_t ignored;
    const char *rest;
    bool is_deep;

    if (!read_digits(name, &segment)) {
        return false;
    }
    rest = skip(name + NAME_DIGITS, deep_suffix);
    is_deep = rest != NULL;
    rest = is_deep ? rest : skip(name + NAME_DIGITS, suffix);
    if (rest == NULL) {
        return false;
    }
    *is_temporary = *rest != '\0';
    if (*is_temporary) {
        rest = skip(rest, temporary);
        if (rest == NULL || !read_digits(rest, &ignored) || rest[NAME_DIGITS] != '\0') {
            return false;
        }
    }
    *id = segment;
    *kind = is_deep ? WAL__SEARCH_DEEP : WAL__SEARCH_TEXT;
    return true;
}
