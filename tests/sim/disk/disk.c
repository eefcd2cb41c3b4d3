/*
 * disk.c - the simulated machine as tests hold it: made, copied, filled
 * and looked at from outside. One thread at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/disk/internal.h"

/* ----------------------------------------------------------- machine --- */

struct sim_disk *sim_disk_create(uint64_t seed)
{
    struct sim_disk *disk = calloc(1, sizeof(*disk));

    WAL__ASSERT(disk != NULL);
    disk->random = seed;
    disk->next_inode = 1;
    disk->next_process = 1000;
    disk->monotonic_ns = 1000000000;
    disk->time_granularity_ns = 1;
    disk->populates = true;
    disk->boot_ms = INT64_C(1700000000000);
    sim__random_fill(&disk->random, disk->boot_id, sizeof(disk->boot_id));
    disk->root = sim__file_create(disk, true);
    return disk;
}

void sim_disk_destroy(struct sim_disk *disk)
{
    if (disk == NULL) {
        return;
    }
    while (disk->processes != NULL) {
        sim_process_destroy(disk->processes);
    }
    sim__names_drop_oldest(disk, disk->change_count);
    sim__names_clear(disk);
    sim__file_release(disk->root);
    WAL__ASSERT(disk->files == NULL);
    free(disk->names);
    free(disk->changes);
    free(disk);
}

struct sim_disk *sim_disk_clone(struct sim_disk *disk)
{
    struct sim_disk *copy = malloc(sizeof(*copy));

    WAL__ASSERT(copy != NULL);
    *copy = *disk;
    copy->files = NULL;
    copy->names = NULL;
    copy->name_capacity = 0;
    copy->changes = NULL;
    copy->change_capacity = 0;
    copy->processes = NULL;
    copy->root = sim__file_clone(disk->root, copy);
    sim__names_clone(disk, copy);
    copy->next_inode = disk->next_inode;
    return copy;
}

void sim_disk_set_limit(struct sim_disk *disk, uint64_t size)
{
    disk->limit = size;
}

void sim_disk_set_populates(struct sim_disk *disk, bool populates)
{
    disk->populates = populates;
}

uint64_t sim_disk_used_bytes(const struct sim_disk *disk)
{
    uint64_t used = 0;

    for (const struct sim_file *file = disk->files; file != NULL;
         file = file->next) {
        used += file->allocated - file->punched;
    }
    return used;
}

void sim_disk_set_read_only(struct sim_disk *disk, bool read_only)
{
    disk->read_only = read_only;
}

void sim_disk_advance(struct sim_disk *disk, uint64_t ns)
{
    disk->monotonic_ns += ns;
}

void sim_disk_step_clock(struct sim_disk *disk, int64_t ms)
{
    disk->boot_ms += ms;
}

void sim_disk_on_call(struct sim_disk *disk,
                      void (*call)(void *arg, const struct sim_event *event),
                      void *arg)
{
    disk->on_call = call;
    disk->on_call_arg = arg;
}

/* ------------------------------------------------------------- files --- */

/* The file that must be there. */
static struct sim_file *find_file(struct sim_disk *disk, const char *path)
{
    struct sim_file *file = NULL;
    int error = sim__resolve(disk, path, &file);

    WAL__ASSERT(error == 0 && !file->is_directory);
    return file;
}

bool sim_file_exists(struct sim_disk *disk, const char *path)
{
    struct sim_file *file;

    return sim__resolve(disk, path, &file) == 0;
}

uint64_t sim_file_size(struct sim_disk *disk, const char *path)
{
    return find_file(disk, path)->size;
}

bool sim_file_is_durable(struct sim_disk *disk, const char *path,
                         uint64_t offset, uint64_t size)
{
    struct sim_file *file;

    return sim__resolve(disk, path, &file) == 0 &&
           sim__names_are_durable(disk, path) &&
           sim__file_is_durable(file, offset, size);
}

void sim_file_flip_bit(struct sim_disk *disk, const char *path, uint64_t offset,
                       unsigned bit)
{
    struct sim_file *file = find_file(disk, path);

    WAL__ASSERT(offset < file->size && bit < 8);
    sim__file_flip(file, offset, (uint8_t)(1u << bit));
}

void sim_file_add_bad_range(struct sim_disk *disk, const char *path,
                            uint64_t offset, uint64_t size)
{
    struct sim_file *file = find_file(disk, path);

    WAL__ASSERT(file->bad_count < SIM_BAD_MAX);
    file->bad[file->bad_count++] =
        (struct sim_range){.offset = offset, .size = size};
}

void sim_file_clear_bad_ranges(struct sim_disk *disk, const char *path)
{
    find_file(disk, path)->bad_count = 0;
}

void sim_disk_read_file(struct sim_disk *disk, const char *path, uint8_t **data,
                        size_t *size)
{
    struct sim_file *file = find_file(disk, path);
    uint8_t *copy = malloc((size_t)file->size + 1);

    WAL__ASSERT(copy != NULL);
    memcpy(copy, sim__file_content(file), (size_t)file->size);
    *data = copy;
    *size = (size_t)file->size;
}

/* Makes the directories above the last name of a path, or all of it. */
static void make_directories(struct sim_disk *disk, const char *path,
                             bool whole)
{
    char part[SIM_PATH_MAX];
    struct sim_file *made;
    size_t end = strspn(path, "/");

    while (path[end] != '\0') {
        end += strcspn(path + end, "/");
        if (path[end] == '\0' && !whole) {
            return;
        }
        WAL__ASSERT(end < sizeof(part));
        memcpy(part, path, end);
        part[end] = '\0';
        (void)sim__create(disk, part, true, &made);
        end += strspn(path + end, "/");
    }
}

static void sync_all(struct sim_disk *disk)
{
    for (const struct sim_file *file = disk->files; file != NULL;
         file = file->next) {
        if (file->is_directory) {
            sim__names_sync(disk, file);
        }
    }
}

/* An empty file of this size in the path's place, its name not yet synced. */
static struct sim_file *replace(struct sim_disk *disk, const char *path,
                                uint64_t size)
{
    struct sim_file *file;

    disk->sequence++;
    make_directories(disk, path, false);
    if (sim__create(disk, path, false, &file) != 0) {
        file = find_file(disk, path);
        sim__file_truncate(file);
    }
    sim__file_resize(
        file, size, (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE * SIM_PAGE_SIZE);
    return file;
}

void sim_disk_write_file(struct sim_disk *disk, const char *path,
                         const void *data, size_t size)
{
    struct sim_file *file = replace(disk, path, size);
    struct sim_bytes *bytes = sim__bytes_create(size);

    if (size > 0) {
        memcpy(bytes->data, data, size);
    }
    sim__file_write(file, sim__bytes_drop_zeros(bytes), 0, size);
    sim__file_sync(file);
    sync_all(disk);
}

/* -------------------------------------------- the real file system --- */

static bool load_content(struct sim_file *file, int fd)
{
    uint64_t offset = 0;

    while (offset < file->size) {
        struct sim_bytes *bytes = sim__bytes_create(1 << 16);
        ssize_t got = pread(fd, bytes->data, bytes->size, (off_t)offset);

        if (got <= 0 || offset + (uint64_t)got > file->size) {
            sim__bytes_release(bytes);
            errno = got < 0 ? errno : EIO;
            return false;
        }
        bytes->size = (size_t)got;
        sim__file_write(file, sim__bytes_drop_zeros(bytes), offset,
                        (uint64_t)got);
        sim__file_sync(file);
        offset += (uint64_t)got;
    }
    sim__file_sync(file);
    return true;
}

static bool load_file(struct sim_disk *disk, const char *path,
                      const char *real_path, uint64_t size)
{
    int fd = open(real_path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }

    bool loaded = load_content(replace(disk, path, size), fd);
    int error = errno;

    (void)close(fd);
    errno = error;
    return loaded;
}

/* One entry of a walk through the real directory. */
static bool load_entry(struct sim_disk *disk, const char *path,
                       const char *below, const FTSENT *entry)
{
    char target[SIM_PATH_MAX];
    int size = snprintf(target, sizeof(target), "%s/%s", path, below);

    if (size < 0 || (size_t)size >= sizeof(target)) {
        errno = ENAMETOOLONG;
        return false;
    }
    switch (entry->fts_info) {
    case FTS_D:
        make_directories(disk, target, true);
        return true;
    case FTS_F:
        return load_file(disk, target, entry->fts_accpath,
                         (uint64_t)entry->fts_statp->st_size);
    case FTS_DP:
        return true;
    default:
        errno = entry->fts_errno != 0 ? entry->fts_errno : EINVAL;
        return false;
    }
}

bool sim_disk_load(struct sim_disk *disk, const char *path,
                   const char *real_path)
{
    char *root = strdup(real_path);
    char *roots[] = {root, NULL};
    bool loaded = true;

    WAL__ASSERT(root != NULL);

    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

    while (loaded && walk != NULL) {
        const FTSENT *entry = fts_read(walk);

        if (entry == NULL) {
            break;
        }
        loaded =
            load_entry(disk, path, entry->fts_path + strlen(real_path), entry);
    }
    loaded = loaded && walk != NULL;
    if (walk != NULL) {
        (void)fts_close(walk);
    }
    free(root);
    sync_all(disk);
    return loaded;
}

static bool dump_content(const struct sim_file *file, int fd)
{
    uint64_t page = sim__file_next_touched(file, 0);

    while (page < file->pages && page * SIM_PAGE_SIZE < file->size) {
        uint64_t offset = page * SIM_PAGE_SIZE;
        uint64_t left = file->size - offset;
        size_t size = left < SIM_PAGE_SIZE ? (size_t)left : SIM_PAGE_SIZE;
        ssize_t put = pwrite(fd, file->content + offset, size, (off_t)offset);

        if (put != (ssize_t)size) {
            errno = put < 0 ? errno : EIO;
            return false;
        }
        page = sim__file_next_touched(file, page + 1);
    }
    return ftruncate(fd, (off_t)file->size) == 0;
}

static bool dump_file(const struct sim_file *file, const char *real_path)
{
    int fd = open(real_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return false;
    }

    bool dumped = dump_content(file, fd);
    int error = errno;

    (void)close(fd);
    errno = error;
    return dumped;
}

/* A directory still to be dumped, and where to. */
struct dump_item {
    const struct sim_file *directory;
    char real_path[SIM_PATH_MAX];
};

static bool dump_directory(const struct sim_disk *disk,
                           const struct dump_item *dump_item,
                           struct dump_item *stack, size_t *count)
{
    if (mkdir(dump_item->real_path, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    for (size_t i = 0; i < disk->name_count; i++) {
        const struct sim_name *name = &disk->names[i];
        struct dump_item *inner = &stack[*count];

        if (name->directory != dump_item->directory) {
            continue;
        }

        int size = snprintf(inner->real_path, sizeof(inner->real_path), "%s/%s",
                            dump_item->real_path, name->text);

        if (size < 0 || (size_t)size >= sizeof(inner->real_path)) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (name->file->target != NULL) {
            if (symlink(name->file->target, inner->real_path) != 0) {
                return false;
            }
        } else if (name->file->is_directory) {
            inner->directory = name->file;
            (*count)++;
        } else if (!dump_file(name->file, inner->real_path)) {
            return false;
        }
    }
    return true;
}

bool sim_disk_dump(struct sim_disk *disk, const char *path,
                   const char *real_path)
{
    /* Each directory is on the stack once. */
    struct dump_item *stack = calloc(disk->name_count + 2, sizeof(*stack));
    struct sim_file *root;
    size_t count = 0;
    bool dumped = strlen(real_path) < SIM_PATH_MAX;
    int error = sim__resolve(disk, path, &root);

    WAL__ASSERT(stack != NULL && error == 0 && root->is_directory);
    if (dumped) {
        stack[count].directory = root;
        memcpy(stack[count++].real_path, real_path, strlen(real_path) + 1);
    }
    while (dumped && count > 0) {
        struct dump_item dump_item = stack[--count];

        dumped = dump_directory(disk, &dump_item, stack, &count);
    }
    free(stack);
    return dumped;
}
