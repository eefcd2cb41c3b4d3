/*
 * canaries.c - looks in all files of the store, as they are and decompressed,
 * for texts that were erased (model.h).
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/segment/block.h"
#include "format/segment/record_blob.h"
#include "format/segment/segment_fmt.h"
#include "tests/model/model.h"

/* A canary of the reference. */
struct canary {
    uint32_t number;
    bool is_erased;
    uint64_t sequence; /* of a record that has it */
};

struct search {
    struct differential *run;
    struct canary *canaries; /* by number; those that live first */
    size_t count;
    size_t capacity;
    size_t erased;
    const char *file; /* that is searched */
};

static int compare(const void *a, const void *b)
{
    const struct canary *left = a;
    const struct canary *right = b;

    if (left->number != right->number) {
        return left->number < right->number ? -1 : 1;
    }
    return (int)left->is_erased - (int)right->is_erased;
}

/* The canaries of all records. */
static void collect(struct search *search)
{
    const struct reference *ref = search->run->ref;
    uint64_t count = reference_last_sequence(ref);
    size_t kept = 0;

    for (uint64_t sequence = 1; sequence <= count; sequence++) {
        struct wal_slice texts[2];
        bool is_erased = reference_is_erased(ref, sequence, texts);

        for (int i = 0; i < 2; i++) {
            uint32_t number;

            while (texts[i].size > 0 &&
                   differential_next_canary(&texts[i], &number)) {
                if (search->count == search->capacity) {
                    search->capacity = search->capacity * 2 + 64;
                    search->canaries =
                        realloc(search->canaries,
                                search->capacity * sizeof(struct canary));
                    WAL__ASSERT(search->canaries != NULL);
                }
                search->canaries[search->count++] =
                    (struct canary){number, is_erased, sequence};
            }
        }
    }
    if (search->count == 0) {
        return;
    }
    qsort(search->canaries, search->count, sizeof(struct canary), compare);
    for (size_t i = 0; i < search->count; i++) {
        if (kept == 0 ||
            search->canaries[kept - 1].number != search->canaries[i].number) {
            search->canaries[kept++] = search->canaries[i];
            search->erased += search->canaries[i].is_erased;
        }
    }
    search->count = kept;
}

static void search_bytes(struct search *search, const void *bytes, size_t size)
{
    struct wal_slice left = {bytes, size};
    uint32_t number;

    while (differential_next_canary(&left, &number)) {
        const struct canary key = {.number = number};
        const struct canary *found = NULL;
        size_t low = 0;
        size_t high = search->count;

        while (low < high) {
            size_t middle = (low + high) / 2;

            found = &search->canaries[middle];
            if (found->number == key.number) {
                break;
            }
            low = found->number < key.number ? middle + 1 : low;
            high = found->number < key.number ? high : middle;
        }
        if (low < high && found->is_erased) {
            differential_fail(search->run,
                              "%s has canary %08u of record %" PRIu64
                              ", which was erased",
                              search->file, number, found->sequence);
        }
    }
}

static void search_block(struct search *search, const struct wal__frame *frame,
                         const uint8_t *payload)
{
    struct wal__block block;
    uint8_t *records;

    if (wal__block_decode(frame, payload, &block) == WAL__FMT_OK &&
        block.is_compressed) {
        records = malloc(block.raw_size);
        WAL__ASSERT(records != NULL);
        if (wal__block_decompress(&block, records) == WAL__FMT_OK) {
            search_bytes(search, records, block.raw_size);
        }
        free(records);
    }
}

/* Content that is compressed without a base. */
static void search_chunk(struct search *search, const struct wal__frame *frame,
                         const uint8_t *payload)
{
    struct wal__span span = {payload, frame->stored_size};
    struct wal__chunk_record chunk;
    uint8_t *content;

    if (wal__chunk_record_decode(span, &chunk) == WAL__FMT_OK &&
        chunk.encoding == WAL__CHUNK_LZ4 && chunk.size <= WAL__CHUNK_MAX) {
        const struct wal__span none = {NULL, 0};

        content = malloc(chunk.size + 1);
        WAL__ASSERT(content != NULL);
        if (wal__chunk_decode_content(&chunk, none, content)) {
            search_bytes(search, content, chunk.size);
        }
        free(content);
    }
}

static void search_frames(struct search *search, const uint8_t *bytes,
                          size_t size)
{
    struct wal__segment_header header;

    if (size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes, &header) != WAL__FMT_OK) {
        return;
    }
    for (size_t at = 0; at + WAL__FRAME_SIZE <= size; at += 8) {
        const uint8_t *payload = bytes + at + WAL__FRAME_SIZE;
        struct wal__frame frame;

        if (wal__frame_decode(bytes + at, size - at, header.salt, at, &frame) !=
            WAL__FMT_OK) {
            continue;
        }
        if (frame.type == WAL__FRAME_BLOCK) {
            search_block(search, &frame, payload);
        } else if (frame.type == WAL__FRAME_CHUNK) {
            search_chunk(search, &frame, payload);
        }
        /* The next frame begins where this one ends. */
        at += wal__frame_total_size(frame.stored_size) - 8;
    }
}

static void search_file(struct search *search, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    uint8_t *bytes;
    ssize_t size;

    if (fd < 0) {
        return; /* another process removed it */
    }
    WAL__ASSERT(fstat(fd, &stat) == 0);
    bytes = malloc((size_t)stat.st_size + 1);
    WAL__ASSERT(bytes != NULL);
    size = pread(fd, bytes, (size_t)stat.st_size, 0);
    search->file = path;
    if (size > 0) {
        search_bytes(search, bytes, (size_t)size);
        search_frames(search, bytes, (size_t)size);
    }
    free(bytes);
    (void)close(fd);
}

static void search_directory(struct search *search, const char *path)
{
    DIR *directory = opendir(path);

    WAL__ASSERT(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char name[MODEL_PATH * 2];
        struct stat stat;

        (void)snprintf(name, sizeof(name), "%.250s/%.250s", path,
                       entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0 || lstat(name, &stat) != 0) {
            continue;
        }
        if (S_ISDIR(stat.st_mode)) {
            search_directory(search, name);
        } else if (S_ISREG(stat.st_mode)) {
            search_file(search, name);
        }
    }
    (void)closedir(directory);
}

void model_search(struct model *model, struct differential *run)
{
    struct search search = {.run = run};

    run->operation = "search for what was erased";
    collect(&search);
    search_directory(&search, run->root);
    model->tally.erasures++;
    model->tally.canaries += search.erased;
    free(search.canaries);
}
