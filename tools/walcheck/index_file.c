/*
 * index_file.c - the files of index/: reading them, and those without a
 * segment (SPEC.md 2.12).
 *
 * Invariant: a valid index of the log above its tail whose segment is missing
 * proves that records are lost. Any other index without a segment is redundant.
 *
 * Threads: the main thread.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/walcheck/pack.h"

uint8_t *check_index_read(const struct check_store *store, const char *name,
                          uint64_t *size, int *error)
{
    char *path = check_path(store, name);
    struct cli_file file;
    uint8_t *bytes = NULL;

    *error = cli_file_open(&file, path);
    free(path);
    if (*error != 0) {
        return NULL;
    }
    if (file.size == 0) {
        bytes = cli_alloc(1);
    } else if (cli_file_fetch(&file, 0, file.size) != NULL) {
        bytes = cli_alloc((size_t)file.size);
        memcpy(bytes, file.window, (size_t)file.size);
    } else {
        *error = file.error;
    }
    *size = file.size;
    cli_file_close(&file);
    return bytes;
}

void check_index_name(uint64_t id, bool is_pack, char out[CHECK_INDEX_NAME])
{
    snprintf(out, CHECK_INDEX_NAME, "index/%s%016" PRIx64 ".idx",
             is_pack ? "pack-" : "", id);
}

/* Decodes the header of an index; false if the index is not valid. */
static bool read_header(struct wal__span bytes, bool is_pack,
                        struct wal__index_header *header)
{
    struct wal__pack_index pack = {.header = {0}};
    struct wal__index index = {.header = {0}};
    bool valid;

    if (is_pack) {
        valid = wal__pack_index_decode(bytes, &pack) == WAL__FMT_OK;
        *header = pack.header;
    } else {
        valid = wal__index_decode_any(bytes, &index) == WAL__FMT_OK;
        *header = index.header;
    }
    return valid;
}

uint64_t check_index_end(const struct check_store *store, uint64_t id,
                         bool is_pack)
{
    struct wal__index_header header;
    char name[CHECK_INDEX_NAME];
    uint64_t size = 0;
    uint64_t end = 0;
    uint8_t *bytes;
    int error;

    check_index_name(id, is_pack, name);
    bytes = check_index_read(store, name, &size, &error);
    if (bytes != NULL &&
        read_header((struct wal__span){bytes, (size_t)size}, is_pack,
                    &header) &&
        header.id == id && store->reader.uuid_known &&
        memcmp(header.uuid, store->reader.uuid, sizeof(store->reader.uuid)) ==
            0) {
        end = header.end;
    }
    free(bytes);
    return end;
}

/* Reports a missing newest segment by means of its index. */
static void report_missing_segment(struct check_store *store, uint64_t id,
                                   const struct wal__index *index)
{
    struct check_damage *damage;
    struct wal__summary summary;
    char name[CHECK_INDEX_NAME];

    snprintf(name, sizeof(name), "log/%016" PRIx64 ".seg", id);
    damage = check_damage_add(&store->damages, name, 0, index->header.end,
                              "the segment is missing");
    damage->first_sequence = index->header.first_sequence;
    damage->last_sequence = index->header.last_sequence;
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        if (wal__index_summary(index, i, &summary) == WAL__FMT_OK) {
            check_damage_session(damage, summary.number);
            check_model_add_from_index(&store->model, &summary);
        }
    }
    store->records_lost = true;
}

/* Whether a segment's file exists now. */
static bool segment_exists(const struct check_store *store, uint64_t id,
                           bool is_pack)
{
    char name[CHECK_INDEX_NAME];
    char *path;
    bool exists;

    snprintf(name, sizeof(name), "%s/%016" PRIx64 ".seg",
             is_pack ? "pack" : "log", id);
    path = check_path(store, name);
    exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

/* Returns whether the file of a segment has one of the other stream. */
static bool is_foreign(const struct wal__damaged_segment *head)
{
    return head->header_fmt == WAL__FMT_OK &&
           head->header.class !=
               (head->is_pack ? (uint32_t)WAL__CLASS_PACK : WAL__CLASS_LOG);
}

static void check_orphan(struct check_store *store, uint64_t id, bool is_pack)
{
    const struct check_segments *segments =
        is_pack ? &store->pack : &store->log;
    struct wal__index index;
    uint64_t size = 0;
    bool misnamed = false;
    char name[CHECK_INDEX_NAME];
    int error;
    uint8_t *bytes;

    for (size_t i = 0; i < segments->count; i++) {
        const struct wal__damaged_segment *head = segments->items[i]->head;

        if (head->id == id && !is_foreign(head)) {
            return;
        }
        misnamed = misnamed || head->is_misnamed || is_foreign(head);
    }
    check_index_name(id, is_pack, name);
    bytes = check_index_read(store, name, &size, &error);
    if (bytes == NULL && error == ENOENT) {
        return;
    }
    if (!misnamed && segment_exists(store, id, is_pack)) {
        free(bytes); /* both were created after the listing */
        return;
    }
    if (!is_pack && bytes != NULL &&
        (store->log.tail == NULL || id > store->log.tail->head->id) &&
        wal__index_decode_any((struct wal__span){bytes, (size_t)size},
                              &index) == WAL__FMT_OK &&
        memcmp(index.header.uuid, store->reader.uuid,
               sizeof(store->reader.uuid)) == 0) {
        report_missing_segment(store, id, &index);
    } else {
        check_damage_add_note(&store->damages, name, 0, size,
                              "is the index of a segment that does not exist");
    }
    free(bytes);
}

void check_index_orphans(struct check_store *store)
{
    char *path = check_path(store, "index");
    struct dirent *entry;
    int error;
    DIR *directory = cli_directory_open(path, &error);

    free(path);
    if (directory == NULL && error != ENOENT) {
        check_damage_add_redundant(&store->damages, "index", 0, 0,
                                   "the directory cannot be read: %s; it is "
                                   "derived: no record is lost",
                                   cli_file_error(error));
    }
    if (directory == NULL) {
        return; /* the directory is derived and may be missing */
    }
    for (entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        bool is_pack = strncmp(entry->d_name, "pack-", 5) == 0;
        const char *text = entry->d_name + (is_pack ? 5 : 0);
        char *end = NULL;
        uint64_t id = strtoull(text, &end, 16);

        if (strlen(text) == 20 && end == text + 16 &&
            strcmp(end, ".idx") == 0) {
            check_orphan(store, id, is_pack);
        }
    }
    closedir(directory);
}
