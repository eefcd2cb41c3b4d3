/*
 * lossy_disk.c - a disk whose cache is lost when the power fails, for a loop device:
 *
 *   lossy_disk IMAGE DIRECTORY
 *
 * Serves DIRECTORY/disk by FUSE, in the foreground: the bytes of IMAGE. What is written is in the
 * cache until a sync, which writes it to IMAGE. A number written to DIRECTORY/cut is the seed of a
 * loss of power: of the blocks that are in the cache some are written to IMAGE, each in one of the
 * states that it had there, and every call fails with EIO from then on.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096 };

/* A write that no sync has followed, of bytes of one block. */
struct pending {
    uint64_t offset;
    uint32_t size;
    uint8_t data[BLOCK];
};

static int image;
static uint64_t image_size;
static struct pending *pending;
static size_t pending_count;
static size_t pending_capacity;
static int is_cut;

static int is_disk(const char *path)
{
    return strcmp(path, "/disk") == 0;
}

static int disk_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
    (void)info;
    memset(st, 0, sizeof(*st));
    st->st_mode = strcmp(path, "/") == 0 ? S_IFDIR | 0700 : S_IFREG | 0600;
    st->st_nlink = 1;
    st->st_size = is_disk(path) ? (off_t)image_size : 0;
    return strcmp(path, "/") == 0 || is_disk(path) || strcmp(path, "/cut") == 0 ? 0 : -ENOENT;
}

static int disk_open(const char *path, struct fuse_file_info *info)
{
    (void)path;
    info->direct_io = 1;
    return 0;
}

static int disk_truncate(const char *path, off_t size, struct fuse_file_info *info)
{
    (void)size;
    (void)info;
    return is_disk(path) ? -EINVAL : 0;
}

static int disk_read(const char *path, char *out, size_t size, off_t offset,
                     struct fuse_file_info *info)
{
    uint64_t begin = (uint64_t)offset;
    ssize_t got;

    (void)path;
    (void)info;
    if (is_cut) {
        return -EIO;
    }
    got = pread(image, out, size, offset);
    if (got < 0) {
        return -errno;
    }
    for (size_t i = 0; i < pending_count; i++) {
        const struct pending *each = &pending[i];
        uint64_t from = each->offset > begin ? each->offset : begin;
        uint64_t end = each->offset + each->size;

        end = end < begin + (uint64_t)got ? end : begin + (uint64_t)got;
        if (from < end) {
            memcpy(out + (from - begin), each->data + (from - each->offset), end - from);
        }
    }
    return (int)got;
}

static int write_image(const struct pending *each)
{
    ssize_t wrote = pwrite(image, each->data, each->size, (off_t)each->offset);

    return wrote == (ssize_t)each->size ? 0 : -EIO;
}

/* Of each write half is in the image. As they are in order a block that was written twice may have
 * the first of both. */
static int cut(uint64_t seed)
{
    for (size_t i = 0; i < pending_count && !is_cut; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (seed >> 63 != 0 && write_image(&pending[i]) != 0) {
            return -EIO;
        }
    }
    is_cut = 1;
    return fsync(image) == 0 ? 0 : -EIO;
}

static int disk_write(const char *path, const char *data, size_t size, off_t offset,
                      struct fuse_file_info *info)
{
    (void)info;
    if (!is_disk(path)) {
        int failure = cut(strtoull(data, NULL, 10));

        return failure != 0 ? failure : (int)size;
    }
    if (is_cut) {
        return -EIO;
    }
    for (size_t done = 0; done < size;) {
        uint64_t at = (uint64_t)offset + done;
        size_t part = BLOCK - at % BLOCK;

        part = part < size - done ? part : size - done;
        if (pending_count == pending_capacity) {
            pending_capacity = 2 * pending_capacity + 1024;
            pending = realloc(pending, pending_capacity * sizeof(*pending));
            if (pending == NULL) {
                abort();
            }
        }
        pending[pending_count] = (struct pending){.offset = at, .size = (uint32_t)part};
        memcpy(pending[pending_count++].data, data + done, part);
        done += part;
    }
    return (int)size;
}

static int disk_fsync(const char *path, int data_only, struct fuse_file_info *info)
{
    (void)path;
    (void)data_only;
    (void)info;
    for (size_t i = 0; i < pending_count && !is_cut; i++) {
        if (write_image(&pending[i]) != 0) {
            return -EIO;
        }
    }
    pending_count = 0;
    return is_cut ? -EIO : 0;
}

static const struct fuse_operations operations = {
    .getattr = disk_getattr,
    .open = disk_open,
    .truncate = disk_truncate,
    .read = disk_read,
    .write = disk_write,
    .fsync = disk_fsync,
};

int main(int argc, char **argv)
{
    char *arguments[] = {argv[0], "-f", "-s", argc > 2 ? argv[2] : NULL, NULL};
    struct stat st;

    if (argc != 3) {
        fprintf(stderr, "usage: lossy_disk IMAGE DIRECTORY\n");
        return 2;
    }
    image = open(argv[1], O_RDWR | O_CLOEXEC);
    if (image < 0 || fstat(image, &st) != 0) {
        perror(argv[1]);
        return 1;
    }
    image_size = (uint64_t)st.st_size;
    return fuse_main(4, arguments, &operations, NULL);
}
