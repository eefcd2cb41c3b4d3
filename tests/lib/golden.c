/*
 * golden.c - compact files of stores (golden.h).
 *
 * Wrong use, and files that are none, abort.
 */
#include "tests/lib/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

enum { SECTOR = SIM_SECTOR_SIZE, NAMES_MAX = 64, NAME_SIZE = 256, RAW = 0, FILL = 1 };

static const char magic[] = "AGWALGLD";

struct names {
    char names[NAMES_MAX][NAME_SIZE];
    uint32_t count;
    const char *folder;
};

/* --- saving --------------------------------------------------------------- */

static void put(FILE *file, const void *bytes, size_t size)
{
    WAL__ASSERT(size == 0 || fwrite(bytes, size, 1, file) == 1);
}

static void put_number(FILE *file, uint64_t number, size_t size)
{
    uint8_t bytes[8];

    wal__put64(bytes, number);
    put(file, bytes, size);
}

static enum wal_status take_name(void *arg, const char *name)
{
    struct names *names = arg;

    if (strcmp(name, "LOCK") == 0 || strcmp(name, "log") == 0 || strcmp(name, "index") == 0 ||
        strcmp(name, "pack") == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(names->count < NAMES_MAX);
    snprintf(names->names[names->count++], NAME_SIZE, "%s%s", names->folder, name);
    return WAL_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list(struct sim_disk *disk, const char *root, struct names *names)
{
    static const char *const folders[] = {"", "log/", "index/", "pack/"};
    struct sim_process *process = sim_process_create(disk);
    const struct wal__io *io = sim_process_io(process);
    char path[NAME_SIZE];
    int err = 0;

    for (size_t i = 0; i < 4; i++) {
        size_t size;

        names->folder = folders[i];
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        size = strlen(path);
        path[size - 1] = '\0';
        (void)!io->list(io->ctx, path, take_name, names, &err);
    }
    sim_process_destroy(process);
    qsort(names->names, names->count, NAME_SIZE, compare);
}

static bool is_filled(const uint8_t *sector, uint8_t with)
{
    for (size_t i = 0; i < SECTOR; i++) {
        if (sector[i] != with) {
            return false;
        }
    }
    return true;
}

/* How many sectors from `at` on belong to one piece, and of which kind. */
static uint32_t measure(const uint8_t *bytes, size_t at, size_t size, int *kind)
{
    uint32_t count = 0;

    *kind = is_filled(bytes + at, bytes[at]) ? FILL : RAW;
    while (at < size) {
        bool filled = is_filled(bytes + at, bytes[at]);

        if (*kind == FILL ? !filled || bytes[at] != bytes[at - (size_t)count * SECTOR] : filled) {
            break;
        }
        count++;
        at += SECTOR;
    }
    return count;
}

static void save_pieces(FILE *file, const uint8_t *bytes, size_t size)
{
    long count_at = ftell(file);
    uint32_t pieces = 0;
    size_t at = 0;

    put_number(file, 0, 4);
    while (at < size) {
        int kind;
        uint32_t count = measure(bytes, at, size, &kind);

        if (kind == RAW || bytes[at] != 0) {
            put_number(file, at, 8);
            put_number(file, count, 4);
            put_number(file, (uint64_t)kind, 1);
            put(file, bytes + at, kind == RAW ? (size_t)count * SECTOR : 1);
            pieces++;
        }
        at += (size_t)count * SECTOR;
    }
    WAL__ASSERT(fseek(file, count_at, SEEK_SET) == 0);
    put_number(file, pieces, 4);
    WAL__ASSERT(fseek(file, 0, SEEK_END) == 0);
}

static void save_file(FILE *file, struct sim_disk *disk, const char *root, const char *name)
{
    char path[NAME_SIZE * 2];
    uint8_t *padded;
    uint8_t *bytes;
    size_t size;
    size_t whole;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    sim_disk_read_file(disk, path, &bytes, &size);
    whole = (size + SECTOR - 1) / SECTOR * SECTOR;
    padded = calloc(1, whole + 1);
    WAL__ASSERT(padded != NULL);
    memcpy(padded, bytes, size);
    put_number(file, strlen(name), 2);
    put(file, name, strlen(name));
    put_number(file, size, 8);
    save_pieces(file, padded, whole);
    free(padded);
    free(bytes);
}

void golden_save(struct sim_disk *disk, const char *root, const char *path)
{
    struct names *names = calloc(1, sizeof(*names));
    FILE *file = fopen(path, "wb");

    WAL__ASSERT(names != NULL && file != NULL);
    list(disk, root, names);
    put(file, magic, 8);
    put_number(file, names->count, 4);
    for (uint32_t i = 0; i < names->count; i++) {
        save_file(file, disk, root, names->names[i]);
    }
    WAL__ASSERT(fclose(file) == 0);
    free(names);
}

/* --- loading -------------------------------------------------------------- */

static void get(FILE *file, void *bytes, size_t size)
{
    WAL__ASSERT(size == 0 || fread(bytes, size, 1, file) == 1);
}

static uint64_t get_number(FILE *file, size_t size)
{
    uint8_t bytes[8] = {0};

    get(file, bytes, size);
    return wal__get64(bytes);
}

static void load_piece(FILE *file, uint8_t *bytes, size_t whole)
{
    uint64_t offset = get_number(file, 8);
    uint64_t size = get_number(file, 4) * SECTOR;
    uint8_t fill;

    if (get_number(file, 1) == RAW) {
        WAL__ASSERT(offset <= whole && size <= whole - offset);
        get(file, bytes + offset, (size_t)size);
        return;
    }
    WAL__ASSERT(offset <= whole && size <= whole - offset);
    get(file, &fill, 1);
    memset(bytes + offset, fill, (size_t)size);
}

static void load_file(FILE *file, struct sim_disk *disk, const char *root)
{
    size_t name_size = (size_t)get_number(file, 2);
    char path[NAME_SIZE * 2];
    char name[NAME_SIZE];
    uint32_t pieces;
    uint8_t *bytes;
    size_t whole;
    size_t size;

    WAL__ASSERT(name_size < sizeof(name));
    get(file, name, name_size);
    name[name_size] = '\0';
    size = (size_t)get_number(file, 8);
    whole = (size + SECTOR - 1) / SECTOR * SECTOR;
    bytes = calloc(1, whole + 1);
    WAL__ASSERT(bytes != NULL && size <= SIM_FILE_MAX);
    pieces = (uint32_t)get_number(file, 4);
    for (uint32_t i = 0; i < pieces; i++) {
        load_piece(file, bytes, whole);
    }
    snprintf(path, sizeof(path), "%s/%s", root, name);
    sim_disk_write_file(disk, path, bytes, size);
    free(bytes);
}

void golden_load(struct sim_disk *disk, const char *root, const char *path)
{
    FILE *file = fopen(path, "rb");
    char mark[8];
    uint32_t count;

    WAL__ASSERT(file != NULL);
    get(file, mark, sizeof(mark));
    WAL__ASSERT(memcmp(mark, magic, sizeof(mark)) == 0);
    count = (uint32_t)get_number(file, 4);
    for (uint32_t i = 0; i < count; i++) {
        load_file(file, disk, root);
    }
    WAL__ASSERT(fclose(file) == 0);
}
