/*
 * file_list.c - encodes and decodes the list of files of a checkpoint (SPEC.md
 * 2.21).
 *
 * Invariant: the decoder accepts a record only if its path is normalised, greater than the previous
 * path, and inside the bytes.
 */
#include "format/index/file_list.h"

#include "format/bytes/bytes.h"

enum {
    LIST_MAGIC = 0,
    LIST_VERSION = LIST_MAGIC + 8,
    LIST_COUNT = LIST_VERSION + 4,
    LIST_BOOT = LIST_COUNT + 4,
    LIST_HEAD = 32
};

WAL__FOLLOWS(LIST_HEAD, LIST_BOOT, WAL__FILE_BOOT_SIZE);

enum {
    FILE_KIND = 0,
    FILE_FLAGS = FILE_KIND + 1,
    FILE_PATH_SIZE = FILE_FLAGS + 1,
    FILE_MODE = FILE_PATH_SIZE + 2,
    FILE_SIZE = FILE_MODE + 4,
    FILE_MTIME = FILE_SIZE + 8,
    FILE_CTIME = FILE_MTIME + 8,
    FILE_INODE = FILE_CTIME + 8,
    FILE_DEVICE = FILE_INODE + 8,
    FILE_DIGEST = FILE_DEVICE + 8,
    FILE_PATH = 80
};

WAL__FOLLOWS(FILE_PATH, FILE_DIGEST, WAL__DIGEST_SIZE);

enum { VERSION = 1, FLAGS = WAL__FILE_RACY | WAL__FILE_FRESH, MODE_MAX = 07777 };

static const uint8_t magic[8] = {'A', 'G', 'W', 'A', 'L', 'F', 'I', 'L'};

size_t wal__file_list_head_size(void)
{
    return LIST_HEAD;
}

size_t wal__file_record_size(const struct wal__file_record *file)
{
    return FILE_PATH + file->path.size;
}

void wal__file_list_encode_head(uint32_t count, const uint8_t boot[WAL__FILE_BOOT_SIZE],
                                uint8_t *out)
{
    WAL__ASSERT(count <= WAL__FILES_MAX);
    memcpy(out + LIST_MAGIC, magic, sizeof(magic));
    wal__put32(out + LIST_VERSION, VERSION);
    wal__put32(out + LIST_COUNT, count);
    memcpy(out + LIST_BOOT, boot, WAL__FILE_BOOT_SIZE);
}

void wal__file_record_encode(const struct wal__file_record *file, uint8_t *out)
{
    WAL__ASSERT(file->kind <= WAL__FILE_SYMLINK);
    WAL__ASSERT(file->mode <= MODE_MAX);
    WAL__ASSERT(file->path.size <= WAL__FILE_PATH_MAX);
    out[FILE_KIND] = file->kind;
    out[FILE_FLAGS] = file->flags;
    wal__put_text_size16(out + FILE_PATH_SIZE, file->path);
    wal__put32(out + FILE_MODE, file->mode);
    wal__put64(out + FILE_SIZE, file->size);
    wal__put64(out + FILE_MTIME, (uint64_t)file->mtime_ns);
    wal__put64(out + FILE_CTIME, (uint64_t)file->ctime_ns);
    wal__put64(out + FILE_INODE, file->inode);
    wal__put64(out + FILE_DEVICE, file->device);
    memcpy(out + FILE_DIGEST, file->digest.bytes, WAL__DIGEST_SIZE);
    wal__put_text(out + FILE_PATH, file->path);
}

enum wal__fmt wal__file_list_decode(struct wal__span bytes, struct wal__file_list *list)
{
    struct wal__file_list read = {0};

    if (bytes.size < LIST_HEAD) {
        return WAL__FMT_SHORT;
    }
    if (memcmp(bytes.data + LIST_MAGIC, magic, sizeof(magic)) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__get32(bytes.data + LIST_VERSION) != VERSION) {
        return WAL__FMT_VERSION;
    }
    read.count = wal__get32(bytes.data + LIST_COUNT);
    read.remaining = read.count;
    memcpy(read.boot, bytes.data + LIST_BOOT, WAL__FILE_BOOT_SIZE);
    read.rest.data = bytes.data + LIST_HEAD;
    read.rest.size = bytes.size - LIST_HEAD;
    /* A path has at least one byte. */
    if (read.count > WAL__FILES_MAX || read.rest.size / (FILE_PATH + 1) < read.count ||
        (read.count == 0 && read.rest.size > 0)) {
        return WAL__FMT_FIELD;
    }
    *list = read;
    return WAL__FMT_OK;
}

/* Whether a record has only a kind and a path, as that of an absent file. */
static bool is_zero(const uint8_t *record)
{
    return record[FILE_FLAGS] == 0 && wal__is_zero(record + FILE_MODE, FILE_PATH - FILE_MODE);
}

enum wal__fmt wal__file_list_next(struct wal__file_list *list, struct wal__file_record *file)
{
    const uint8_t *at = list->rest.data;
    struct wal__file_record read = {0};
    size_t size;

    WAL__ASSERT(list->remaining > 0);
    if (list->rest.size < FILE_PATH) {
        return WAL__FMT_SHORT;
    }
    read.kind = at[FILE_KIND];
    read.flags = at[FILE_FLAGS];
    read.path.data = at + FILE_PATH;
    read.path.size = wal__get16(at + FILE_PATH_SIZE);
    read.mode = wal__get32(at + FILE_MODE);
    read.size = wal__get64(at + FILE_SIZE);
    read.mtime_ns = (int64_t)wal__get64(at + FILE_MTIME);
    read.ctime_ns = (int64_t)wal__get64(at + FILE_CTIME);
    read.inode = wal__get64(at + FILE_INODE);
    read.device = wal__get64(at + FILE_DEVICE);
    memcpy(read.digest.bytes, at + FILE_DIGEST, WAL__DIGEST_SIZE);
    size = wal__file_record_size(&read);
    if (size > list->rest.size) {
        return WAL__FMT_SHORT;
    }
    if (read.kind > WAL__FILE_SYMLINK || (read.flags & ~(uint32_t)FLAGS) != 0 ||
        read.mode > MODE_MAX || (read.kind == WAL__FILE_ABSENT && !is_zero(at)) ||
        !wal__file_path_is_normalized(read.path) ||
        wal__span_compare(read.path, list->last_path) <= 0 ||
        (list->remaining == 1 && size != list->rest.size)) {
        return WAL__FMT_FIELD;
    }
    list->rest.data += size;
    list->rest.size -= size;
    list->last_path = read.path;
    list->remaining--;
    *file = read;
    return WAL__FMT_OK;
}

/* Whether the component is not empty, "." or "..". */
static bool is_normal_component(const uint8_t *part, size_t size)
{
    return size > 2 || (size == 2 && (part[0] != '.' || part[1] != '.')) ||
           (size == 1 && part[0] != '.');
}

bool wal__file_path_is_normalized(struct wal__span path)
{
    size_t begin = 0;

    if (path.size == 0 || path.size > WAL__FILE_PATH_MAX ||
        memchr(path.data, 0, path.size) != NULL) {
        return false;
    }
    while (begin <= path.size) {
        const uint8_t *part = path.data + begin;
        const uint8_t *slash = memchr(part, '/', path.size - begin);
        size_t size = slash == NULL ? path.size - begin : (size_t)(slash - part);

        if (!is_normal_component(part, size)) {
            return false;
        }
        begin += size + 1;
    }
    return true;
}
