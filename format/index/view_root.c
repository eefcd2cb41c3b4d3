/*
 * view_root.c - encodes and decodes an entry of the list of roots of views (SPEC.md 10.7).
 *
 * Invariant: the decoder accepts only the bytes that the encoder writes.
 */
#include "format/index/view_root.h"

#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    ROOT_MAGIC = 0,
    ROOT_CRC = ROOT_MAGIC + 8,
    ROOT_DIALECT_SIZE = ROOT_CRC + 4,
    ROOT_PATH_SIZE = ROOT_DIALECT_SIZE + 2,
    ROOT_TEXTS = 16
};

WAL__FOLLOWS(ROOT_TEXTS, ROOT_PATH_SIZE, 2);
static_assert((int)ROOT_TEXTS == (int)WAL__VIEW_ROOT_HEAD, "bytes before the texts");

static const uint8_t magic[8] = {'A', 'G', 'W', 'A', 'L', 'V', 'I', 'W'};

bool wal__view_root_is_valid(const struct wal__view_root *root)
{
    return root->dialect.size > 0 && root->dialect.size <= WAL__VIEW_ROOT_DIALECT_MAX &&
           memchr(root->dialect.data, '\0', root->dialect.size) == NULL && root->path.size > 0 &&
           root->path.size <= WAL__VIEW_ROOT_PATH_MAX && root->path.data[0] == '/' &&
           memchr(root->path.data, '\0', root->path.size) == NULL;
}

/* The checksum covers all bytes after itself. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    return wal__crc32(0, bytes + ROOT_DIALECT_SIZE, size - ROOT_DIALECT_SIZE);
}

size_t wal__view_root_encode(const struct wal__view_root *root, uint8_t *out)
{
    size_t size = ROOT_TEXTS + root->dialect.size + root->path.size;

    WAL__ASSERT(wal__view_root_is_valid(root));
    memcpy(out + ROOT_MAGIC, magic, sizeof(magic));
    wal__put16(out + ROOT_DIALECT_SIZE, (uint16_t)root->dialect.size);
    wal__put16(out + ROOT_PATH_SIZE, (uint16_t)root->path.size);
    memcpy(out + ROOT_TEXTS, root->dialect.data, root->dialect.size);
    memcpy(out + ROOT_TEXTS + root->dialect.size, root->path.data, root->path.size);
    wal__put32(out + ROOT_CRC, checksum(out, size));
    return size;
}

enum wal__fmt wal__view_root_decode(struct wal__span bytes, struct wal__view_root *root)
{
    struct wal__view_root read;

    if (bytes.size < ROOT_TEXTS) {
        return WAL__FMT_SHORT;
    }
    if (memcmp(bytes.data + ROOT_MAGIC, magic, sizeof(magic)) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__get32(bytes.data + ROOT_CRC) != checksum(bytes.data, bytes.size)) {
        return WAL__FMT_HEADER_CRC;
    }
    read.dialect.size = wal__get16(bytes.data + ROOT_DIALECT_SIZE);
    read.path.size = wal__get16(bytes.data + ROOT_PATH_SIZE);
    if (bytes.size != ROOT_TEXTS + read.dialect.size + read.path.size) {
        return WAL__FMT_FIELD;
    }
    read.dialect.data = bytes.data + ROOT_TEXTS;
    read.path.data = read.dialect.data + read.dialect.size;
    if (!wal__view_root_is_valid(&read)) {
        return WAL__FMT_FIELD;
    }
    *root = read;
    return WAL__FMT_OK;
}

void wal__view_root_name(const struct wal__view_root *root, char name[WAL__VIEW_ROOT_NAME + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[WAL__VIEW_ROOT_SIZE_MAX];
    size_t size = wal__view_root_encode(root, bytes);
    uint64_t hash = wal__id_hash(bytes + ROOT_DIALECT_SIZE, size - ROOT_DIALECT_SIZE);

    for (int i = WAL__VIEW_ROOT_NAME - 1; i >= 0; i--) {
        name[i] = digits[hash & 15];
        hash >>= 4;
    }
    name[WAL__VIEW_ROOT_NAME] = '\0';
}

bool wal__view_root_is_name(const char *name)
{
    return strlen(name) == WAL__VIEW_ROOT_NAME &&
           strspn(name, "0123456789abcdef") == WAL__VIEW_ROOT_NAME;
}
