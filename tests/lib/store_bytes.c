/*
 * store_bytes.c - all bytes that a store holds (store_bytes.h).
 */
#include "tests/lib/store_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/bytes/assert.h"
#include "format/segment/frame.h"
#include "format/segment/record_blob.h"
#include "format/segment/segment_fmt.h"

enum { PATH_SIZE = 4096 };

/* --- a file --------------------------------------------------------------- */

static void visit_block(const char *file, const struct wal__frame *frame, const uint8_t *payload,
                        store_bytes_fn *see, void *ctx)
{
    struct wal__block block;
    uint8_t *records;

    if (wal__block_decode(frame, payload, &block) == WAL__FMT_OK && block.is_compressed) {
        records = malloc(block.raw_size);
        WAL__ASSERT(records != NULL);
        if (wal__block_decompress(&block, records) == WAL__FMT_OK) {
            see(ctx, file, records, block.raw_size);
        }
        free(records);
    }
}

/* Content that is compressed without a base. */
static void visit_chunk(const char *file, const struct wal__frame *frame, const uint8_t *payload,
                        store_bytes_fn *see, void *ctx)
{
    const struct wal__span span = {payload, frame->stored_size};
    const struct wal__span none = {NULL, 0};
    struct wal__chunk_record chunk;
    uint8_t *content;

    if (wal__chunk_record_decode(span, &chunk) == WAL__FMT_OK && chunk.encoding == WAL__CHUNK_LZ4 &&
        chunk.size <= WAL__CHUNK_MAX) {
        content = malloc(chunk.size + 1);
        WAL__ASSERT(content != NULL);
        if (wal__chunk_decode_content(&chunk, none, content)) {
            see(ctx, file, content, chunk.size);
        }
        free(content);
    }
}

void store_bytes_visit(const char *file, const uint8_t *bytes, size_t size, store_bytes_fn *see,
                       void *ctx)
{
    struct wal__segment_header header;

    see(ctx, file, bytes, size);
    if (size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes, &header) != WAL__FMT_OK) {
        return;
    }
    for (size_t at = 0; at + WAL__FRAME_SIZE <= size; at += 8) {
        const uint8_t *payload = bytes + at + WAL__FRAME_SIZE;
        struct wal__frame frame;

        if (wal__frame_decode(bytes + at, size - at, header.salt, at, &frame) != WAL__FMT_OK) {
            continue;
        }
        if (frame.type == WAL__FRAME_BLOCK) {
            visit_block(file, &frame, payload, see, ctx);
        } else if (frame.type == WAL__FRAME_CHUNK) {
            visit_chunk(file, &frame, payload, see, ctx);
        }
        /* The next frame begins where this one ends. */
        at += wal__frame_total_size(frame.stored_size) - 8;
    }
}

static void visit_path(const char *path, store_bytes_fn *see, void *ctx)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    uint8_t *bytes;
    ssize_t size;

    if (fd < 0) {
        return;
    }
    WAL__ASSERT(fstat(fd, &stat) == 0);
    bytes = malloc((size_t)stat.st_size + 1);
    WAL__ASSERT(bytes != NULL);
    size = pread(fd, bytes, (size_t)stat.st_size, 0);
    if (size > 0) {
        store_bytes_visit(path, bytes, (size_t)size, see, ctx);
    }
    free(bytes);
    (void)close(fd);
}

void store_bytes_visit_directory(const char *directory, store_bytes_fn *see, void *ctx)
{
    DIR *opened = opendir(directory);

    WAL__ASSERT(opened != NULL);
    for (struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
        char name[PATH_SIZE];
        struct stat stat;

        (void)snprintf(name, sizeof(name), "%.2000s/%.255s", directory, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            lstat(name, &stat) != 0) {
            continue;
        }
        if (S_ISDIR(stat.st_mode)) {
            store_bytes_visit_directory(name, see, ctx);
        } else if (S_ISREG(stat.st_mode)) {
            visit_path(name, see, ctx);
        }
    }
    (void)closedir(opened);
}

/* --- deleted files -------------------------------------------------------- */

/* Whether the text names a deleted file in the directory. */
static bool is_deleted(const char *text, const char *directory)
{
    const char *found = strstr(text, directory);

    return found != NULL && found[strlen(directory)] == '/' && strstr(found, " (deleted)") != NULL;
}

/* The file of an opened descriptor of a process can be read by its name in /proc. */
static uint32_t visit_open(pid_t process, const char *directory, store_bytes_fn *see, void *ctx)
{
    char path[PATH_SIZE];
    uint32_t count = 0;
    DIR *opened;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)process);
    opened = opendir(path);
    WAL__ASSERT(opened != NULL);
    for (struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
        char target[PATH_SIZE] = "";

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", (int)process, entry->d_name);
        if (readlink(path, target, sizeof(target) - 1) > 0 && is_deleted(target, directory)) {
            count++;
            visit_path(path, see, ctx);
        }
    }
    (void)closedir(opened);
    return count;
}

static void visit_memory(int memory, uint64_t from, uint64_t to, const char *line,
                         store_bytes_fn *see, void *ctx)
{
    size_t size = (size_t)(to - from);
    uint8_t *bytes = malloc(size);
    ssize_t got;

    WAL__ASSERT(bytes != NULL);
    got = pread(memory, bytes, size, (off_t)from);
    if (got > 0) {
        store_bytes_visit(line, bytes, (size_t)got, see, ctx);
    }
    free(bytes);
}

static uint32_t visit_mapped(pid_t process, const char *directory, store_bytes_fn *see, void *ctx)
{
    char line[PATH_SIZE + 128];
    char path[64];
    uint32_t count = 0;
    FILE *maps;
    int memory;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)process);
    maps = fopen(path, "re");
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    WAL__ASSERT(maps != NULL && memory >= 0);
    while (fgets(line, sizeof(line), maps) != NULL) {
        uint64_t from = 0;
        uint64_t to = 0;

        if (is_deleted(line, directory) && sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) == 2) {
            count++;
            visit_memory(memory, from, to, line, see, ctx);
        }
    }
    (void)close(memory);
    (void)fclose(maps);
    return count;
}

uint32_t store_bytes_visit_deleted(pid_t process, const char *directory, store_bytes_fn *see,
                                   void *ctx)
{
    return visit_open(process, directory, see, ctx) + visit_mapped(process, directory, see, ctx);
}
