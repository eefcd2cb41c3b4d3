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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/sim/disk/internal.h"

/* ----------------------------------------------------------- machine --- */

static uint64_t worlds;

struct sim_disk *sim_disk_create(uint64_t seed)
{
    struct sim_disk *disk = calloc(1, sizeof(*disk));

    WAL__ASSERT(disk != NULL);
    disk->world = ++worlds;
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
    copy->world = ++worlds;
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

void sim_disk_set_seed(struct sim_disk *disk, uint64_t seed)
{
    disk->random = seed;
    disk->random = sim__random(&disk->random); /* seeds that follow each other are far apart */
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

    for (const struct sim_file *file = disk->files; file != NULL; file = file->next) {
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

void sim_disk_on_call(struct sim_disk *disk, void (*call)(void *arg, const struct sim_event *event),
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

static bool sim__file_is_durable(struct sim_file *file, uint64_t offset, uint64_t size);

bool sim_file_is_durable(struct sim_disk *disk, const char *path, uint64_t offset, uint64_t size)
{
    struct sim_file *file;

    return sim__resolve(disk, path, &file) == 0 && sim__names_are_durable(disk, path) &&
           sim__file_is_durable(file, offset, size);
}

static void sim__file_flip(struct sim_file *file, uint64_t offset, uint8_t mask);

void sim_file_flip_bit(struct sim_disk *disk, const char *path, uint64_t offset, unsigned bit)
{
    struct sim_file *file = find_file(disk, path);

    WAL__ASSERT(offset < file->size && bit < 8);
    sim__file_flip(file, offset, (uint8_t)(1u << bit));
}

void sim_file_add_bad_range(struct sim_disk *disk, const char *path, uint64_t offset, uint64_t size)
{
    struct sim_file *file = find_file(disk, path);

    WAL__ASSERT(file->bad_count < SIM_BAD_MAX);
    file->bad[file->bad_count++] = (struct sim_range){.offset = offset, .size = size};
}

void sim_file_clear_bad_ranges(struct sim_disk *disk, const char *path)
{
    find_file(disk, path)->bad_count = 0;
}

void sim_disk_read_file(struct sim_disk *disk, const char *path, uint8_t **data, size_t *size)
{
    struct sim_file *file = find_file(disk, path);
    uint8_t *copy = malloc((size_t)file->size + 1);

    WAL__ASSERT(copy != NULL);
    memcpy(copy, sim__file_content(file), (size_t)file->size);
    *data = copy;
    *size = (size_t)file->size;
}

/* Makes the directories above the last name of a path, or all of it. */
static void make_directories(struct sim_disk *disk, const char *path, bool whole)
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

/* An empty file of this size in the path's place, its name not yet synced. */
static struct sim_file *replace(struct sim_disk *disk, const char *path, uint64_t size)
{
    struct sim_file *file;

    disk->sequence++;
    make_directories(disk, path, false);
    if (sim__create(disk, path, false, &file) != 0) {
        file = find_file(disk, path);
        sim__file_truncate(file);
    }
    sim__file_resize(file, size, (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE * SIM_PAGE_SIZE);
    return file;
}

void sim_disk_write_file(struct sim_disk *disk, const char *path, const void *data, size_t size)
{
    struct sim_file *file = replace(disk, path, size);
    struct sim_bytes *bytes = sim__bytes_create(size);

    if (size > 0) {
        memcpy(bytes->data, data, size);
    }
    sim__file_write(file, sim__bytes_drop_zeros(bytes), 0, size);
    sim__file_sync(file);
    sim__names_sync_all(disk);
}

/* -------------------------------------------- the real file system --- */

static void sim__bytes_release(struct sim_bytes *bytes);

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
        sim__file_write(file, sim__bytes_drop_zeros(bytes), offset, (uint64_t)got);
        sim__file_sync(file);
        offset += (uint64_t)got;
    }
    sim__file_sync(file);
    return true;
}

static bool load_file(struct sim_disk *disk, const char *path, const char *real_path, uint64_t size)
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
static bool load_entry(struct sim_disk *disk, const char *path, const char *below,
                       const FTSENT *entry)
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
        return load_file(disk, target, entry->fts_accpath, (uint64_t)entry->fts_statp->st_size);
    case FTS_DP:
        return true;
    default:
        errno = entry->fts_errno != 0 ? entry->fts_errno : EINVAL;
        return false;
    }
}

bool sim_disk_load(struct sim_disk *disk, const char *path, const char *real_path)
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
        loaded = load_entry(disk, path, entry->fts_path + strlen(real_path), entry);
    }
    loaded = loaded && walk != NULL;
    if (walk != NULL) {
        (void)fts_close(walk);
    }
    free(root);
    sim__names_sync_all(disk);
    return loaded;
}

static uint64_t sim__file_next_touched(const struct sim_file *file, uint64_t page);

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

static bool dump_directory(const struct sim_disk *disk, const struct dump_item *dump_item,
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

bool sim_disk_dump(struct sim_disk *disk, const char *path, const char *real_path)
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

/* --- inode ---------------------------------------------------------------- */

/*
 * Modes and times of one simulated file. Invariant: a time is a tick of the disk's clock, no
 * earlier than the tick before the change. One thread at a time.
 */

enum { tick_ns = 4000000 };

/* The clock, from which files get their times. */
int64_t sim__clock_ns(const struct sim_disk *disk)
{
    int64_t now = disk->boot_ms * 1000000 + (int64_t)disk->monotonic_ns;

    return now - now % tick_ns;
}

void sim__file_update_ctime(struct sim_file *file)
{
    int64_t now = sim__clock_ns(file->disk);

    file->ctime_ns = now - now % (int64_t)file->disk->time_granularity_ns;
}

static void sim__file_update_mtime(struct sim_file *file)
{
    sim__file_update_ctime(file);
    file->mtime_ns = file->ctime_ns;
}

static struct sim_change *sim__file_add_change(struct sim_file *file, enum sim_change_kind kind);

void sim__file_set_mode(struct sim_file *file, uint32_t mode)
{
    struct sim_change *change = sim__file_add_change(file, SIM_MODE);

    change->old_mode = file->mode;
    change->new_mode = mode;
    file->mode = mode;
    sim__file_update_ctime(file);
}

/* Copies everything but the content to a clone. */
static void sim__file_copy_inode(const struct sim_file *from, struct sim_file *to)
{
    to->inode = from->inode;
    to->is_pipe = from->is_pipe;
    to->is_immutable = from->is_immutable;
    to->mode = from->mode;
    to->mtime_ns = from->mtime_ns;
    to->ctime_ns = from->ctime_ns;
    to->durable_mtime_ns = from->durable_mtime_ns;
    to->durable_ctime_ns = from->durable_ctime_ns;
    if (from->target != NULL) {
        to->target = strdup(from->target);
        WAL__ASSERT(to->target != NULL);
    }
}

struct wal__worktree_stat sim__tree_stat_of(const struct sim_file *file)
{
    struct wal__worktree_stat stat = {
        .kind = WAL__WORKTREE_REGULAR,
        .mode = file->mode,
        .size = file->size,
        .mtime_ns = file->mtime_ns,
        .ctime_ns = file->ctime_ns,
        .inode = file->inode,
        .device = 1,
    };

    if (file->is_directory) {
        stat.kind = WAL__WORKTREE_DIRECTORY;
    } else if (file->is_pipe) {
        stat.kind = WAL__WORKTREE_OTHER;
    } else if (file->target != NULL) {
        stat.kind = WAL__WORKTREE_SYMLINK;
        stat.size = strlen(file->target);
    }
    return stat;
}

/* --- file ----------------------------------------------------------------- */

/*
 * Content, changes and locks of one simulated file; the invariant is that of internal.h. One
 * thread at a time.
 */

/* Room for `count` items of this size, in doubling steps; new ones are not set. */
void *sim__grow(void *at, size_t *capacity, size_t count, size_t item_size)
{
    if (count <= *capacity) {
        return at;
    }
    *capacity = count * 2;
    at = realloc(at, *capacity * item_size);
    WAL__ASSERT(at != NULL);
    return at;
}

/* ------------------------------------------------------------ chance --- */

uint64_t sim__random(uint64_t *state)
{
    return rng_next(state);
}

void sim__random_fill(uint64_t *state, void *data, size_t size)
{
    uint8_t *at = data;

    while (size > 0) {
        uint64_t value = sim__random(state);
        size_t part = size < sizeof(value) ? size : sizeof(value);

        memcpy(at, &value, part);
        at += part;
        size -= part;
    }
}

/* ------------------------------------------------------------- bytes --- */

static bool is_zero(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

struct sim_bytes *sim__bytes_create(size_t size)
{
    struct sim_bytes *bytes = malloc(sizeof(*bytes) + size);

    WAL__ASSERT(bytes != NULL);
    bytes->refs = 1;
    bytes->size = size;
    return bytes;
}

/* Gives up bytes that are all zeros; null then. */
struct sim_bytes *sim__bytes_drop_zeros(struct sim_bytes *bytes)
{
    if (bytes != NULL && is_zero(bytes->data, bytes->size)) {
        sim__bytes_release(bytes);
        return NULL;
    }
    return bytes;
}

static struct sim_bytes *sim__bytes_share(struct sim_bytes *bytes)
{
    if (bytes != NULL) {
        bytes->refs++;
    }
    return bytes;
}

static void sim__bytes_release(struct sim_bytes *bytes)
{
    if (bytes != NULL && --bytes->refs == 0) {
        free(bytes);
    }
}

static struct sim_bytes *bytes_copy(const uint8_t *data, uint64_t size)
{
    if (is_zero(data, (size_t)size)) {
        return NULL;
    }

    struct sim_bytes *bytes = sim__bytes_create((size_t)size);

    memcpy(bytes->data, data, (size_t)size);
    return bytes;
}

/* ---------------------------------------------------------- lifetime --- */

struct sim_file *sim__file_create(struct sim_disk *disk, bool is_directory)
{
    struct sim_file *file = calloc(1, sizeof(*file));

    WAL__ASSERT(file != NULL);
    file->disk = disk;
    file->refs = 1;
    file->inode = disk->next_inode++;
    file->is_directory = is_directory;
    file->mode = is_directory ? 0755 : 0644;
    sim__file_update_mtime(file);
    file->durable_mtime_ns = file->mtime_ns;
    file->durable_ctime_ns = file->ctime_ns;
    file->next = disk->files;
    if (file->next != NULL) {
        file->next->previous = file;
    }
    disk->files = file;
    return file;
}

struct sim_file *sim__file_acquire(struct sim_file *file)
{
    if (file != NULL) {
        file->refs++;
    }
    return file;
}

void sim__file_release(struct sim_file *file)
{
    if (file == NULL || --file->refs > 0) {
        return;
    }
    if (file->previous != NULL) {
        file->previous->next = file->next;
    } else {
        file->disk->files = file->next;
    }
    if (file->next != NULL) {
        file->next->previous = file->previous;
    }
    sim__file_drop_oldest(file, file->change_count);
    if (file->content != NULL) {
        (void)munmap(file->content, SIM_FILE_MAX);
    }
    free(file->target);
    free(file->touched);
    free(file->changes);
    free(file->shadow);
    free(file->locks);
    free(file);
}

static void clone_content(const struct sim_file *from, struct sim_file *to)
{
    uint64_t page = sim__file_next_touched(from, 0);

    while (page < from->pages) {
        uint64_t offset = page * SIM_PAGE_SIZE;

        sim__file_store(to, offset, from->content + offset, SIM_PAGE_SIZE);
        page = sim__file_next_touched(from, page + 1);
    }
}

static void clone_changes(const struct sim_file *from, struct sim_file *to)
{
    to->changes = sim__grow(NULL, &to->change_capacity, from->change_count, sizeof(*to->changes));
    to->change_count = from->change_count;
    for (size_t i = 0; i < from->change_count; i++) {
        to->changes[i] = from->changes[i];
        (void)sim__bytes_share(to->changes[i].before);
        (void)sim__bytes_share(to->changes[i].after);
    }
}

/* The file on another disk, with its inode and without locks and maps. */
struct sim_file *sim__file_clone(struct sim_file *file, struct sim_disk *disk)
{
    struct sim_file *copy = sim__file_create(disk, file->is_directory);

    sim__file_collect_map_writes(file);
    sim__file_copy_inode(file, copy);
    copy->size = file->size;
    copy->allocated = file->allocated;
    copy->punched = file->punched;
    memcpy(copy->bad, file->bad, sizeof(copy->bad));
    copy->bad_count = file->bad_count;
    clone_content(file, copy);
    clone_changes(file, copy);
    return copy;
}

/* ----------------------------------------------------------- content --- */

uint8_t *sim__file_content(struct sim_file *file)
{
    if (file->content != NULL) {
        return file->content;
    }
    file->content = mmap(NULL, SIM_FILE_MAX, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WAL__ASSERT(file->content != MAP_FAILED);
#ifdef MADV_NOHUGEPAGE
    /* A huge page would be cleared for each file's first byte. */
    (void)madvise(file->content, SIM_FILE_MAX, MADV_NOHUGEPAGE);
#endif
    file->touched = calloc(SIM_PAGES / 64, sizeof(*file->touched));
    WAL__ASSERT(file->touched != NULL);
    return file->content;
}

/* The first touched page from `page` on, or one from file->pages on. */
static uint64_t sim__file_next_touched(const struct sim_file *file, uint64_t page)
{
    while (page < file->pages) {
        uint64_t bits = file->touched[page / 64] >> (page % 64);

        if (bits != 0) {
            return page + (uint64_t)__builtin_ctzll(bits);
        }
        page += 64 - page % 64;
    }
    return page;
}

static bool is_range_touched(const struct sim_file *file, uint64_t offset, uint64_t size)
{
    uint64_t end = (offset + size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE;
    uint64_t page = sim__file_next_touched(file, offset / SIM_PAGE_SIZE);

    return page < end && page < file->pages;
}

static void mark_pages(struct sim_file *file, uint64_t offset, uint64_t size)
{
    uint64_t end = (offset + size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE;

    for (uint64_t page = offset / SIM_PAGE_SIZE; page < end; page++) {
        file->touched[page / 64] |= UINT64_C(1) << (page % 64);
    }
    file->pages = file->pages < end ? end : file->pages;
}

/* Untouched pages stay so: they take no memory. */
static void clear(struct sim_file *file, uint64_t offset, uint64_t end)
{
    uint64_t page = sim__file_next_touched(file, offset / SIM_PAGE_SIZE);

    while (page < file->pages && page * SIM_PAGE_SIZE < end) {
        uint64_t from = page * SIM_PAGE_SIZE;
        uint64_t to = from + SIM_PAGE_SIZE;

        from = from > offset ? from : offset;
        to = to < end ? to : end;
        memset(file->content + from, 0, (size_t)(to - from));
        page = sim__file_next_touched(file, page + 1);
    }
}

/* Puts bytes into the content, null: zeros. No change is noted. */
void sim__file_store(struct sim_file *file, uint64_t offset, const uint8_t *data, uint64_t size)
{
    WAL__ASSERT(offset <= SIM_FILE_MAX && size <= SIM_FILE_MAX - offset);
    if (data == NULL) {
        clear(file, offset, offset + size);
    } else if (size > 0) {
        memcpy(sim__file_content(file) + offset, data, (size_t)size);
        mark_pages(file, offset, size);
    }
}

/* ----------------------------------------------------------- changes --- */

static struct sim_change *sim__file_add_change(struct sim_file *file, enum sim_change_kind kind)
{
    file->changes = sim__grow(file->changes, &file->change_capacity, file->change_count + 1,
                              sizeof(*file->changes));

    struct sim_change *change = &file->changes[file->change_count++];

    *change = (struct sim_change){.kind = kind,
                                  .state = SIM_PENDING,
                                  .sequence = file->disk->sequence,
                                  .old_size = file->size,
                                  .new_size = file->size,
                                  .old_allocated = file->allocated,
                                  .new_allocated = file->allocated};
    return change;
}

static struct sim_bytes *copy_range(const struct sim_file *file, uint64_t offset, uint64_t size)
{
    return is_range_touched(file, offset, size) ? bytes_copy(file->content + offset, size) : NULL;
}

static void refresh_shadow(struct sim_file *file)
{
    if (file->shadow_size > 0) {
        memcpy(file->shadow, file->content, (size_t)file->shadow_size);
    }
}

/* Takes `data`; null: zeros. The file is long enough already. */
void sim__file_write(struct sim_file *file, struct sim_bytes *data, uint64_t offset, uint64_t size)
{
    WAL__ASSERT(offset + size <= file->size);
    sim__file_collect_map_writes(file);

    struct sim_change *change = sim__file_add_change(file, SIM_WRITE);

    change->offset = offset;
    change->size = size;
    change->before = copy_range(file, offset, size);
    change->after = data;
    sim__file_store(file, offset, data == NULL ? NULL : data->data, size);
    sim__file_update_mtime(file);
    refresh_shadow(file);
}

void sim__file_resize(struct sim_file *file, uint64_t size, uint64_t allocated)
{
    if (size == file->size && allocated == file->allocated) {
        return;
    }

    struct sim_change *change = sim__file_add_change(file, SIM_SIZE);

    change->new_size = size;
    change->new_allocated = allocated;
    sim__file_update_mtime(file);
    file->size = size;
    file->allocated = allocated;
}

void sim__file_truncate(struct sim_file *file)
{
    sim__file_collect_map_writes(file);

    struct sim_change *change = sim__file_add_change(file, SIM_TRUNCATE);

    change->size = file->pages * SIM_PAGE_SIZE;
    change->before = copy_range(file, 0, change->size);
    change->new_size = 0;
    change->new_allocated = 0;
    sim__file_store(file, 0, NULL, change->size);
    file->size = 0;
    file->allocated = 0;
    file->punched = 0;
    sim__file_update_mtime(file);
    refresh_shadow(file);
}

/* From now on stores to [0,size) may happen at any time. */
void sim__file_track_map(struct sim_file *file, uint64_t size)
{
    if (size <= file->shadow_size) {
        return;
    }
    sim__file_collect_map_writes(file);
    free(file->shadow);
    file->shadow = malloc((size_t)size);
    WAL__ASSERT(file->shadow != NULL);
    file->shadow_size = size;
    mark_pages(file, 0, size);
    refresh_shadow(file);
}

/* Notes what was stored to [at, end), which is in one sector, as a write of the bytes from the
 * first to the last that differ: a write by a call leaves the others of a sector too. */
static void collect_sector(struct sim_file *file, uint64_t at, uint64_t end)
{
    while (at < end && file->shadow[at] == file->content[at]) {
        at++;
    }
    while (at < end && file->shadow[end - 1] == file->content[end - 1]) {
        end--;
    }
    if (at == end) {
        return;
    }

    struct sim_change *change = sim__file_add_change(file, SIM_WRITE);

    change->offset = at;
    change->size = end - at;
    change->before = bytes_copy(file->shadow + at, change->size);
    change->after = bytes_copy(file->content + at, change->size);
}

/* Notes what was stored through writable maps as writes of sectors. */
void sim__file_collect_map_writes(struct sim_file *file)
{
    for (uint64_t at = 0; at < file->shadow_size; at += SIM_SECTOR_SIZE) {
        uint64_t left = file->shadow_size - at;
        uint64_t size = left < SIM_SECTOR_SIZE ? left : SIM_SECTOR_SIZE;

        if (memcmp(file->shadow + at, file->content + at, (size_t)size) != 0) {
            collect_sector(file, at, at + size);
        }
    }
    refresh_shadow(file);
}

/* Drops the oldest changes, which then are as if they had always been. */
void sim__file_drop_oldest(struct sim_file *file, size_t count)
{
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sim__bytes_release(file->changes[i].before);
        sim__bytes_release(file->changes[i].after);
    }
    file->change_count -= count;
    memmove(file->changes, file->changes + count, file->change_count * sizeof(*file->changes));
}

void sim__file_sync(struct sim_file *file)
{
    size_t durable = 0;

    sim__file_collect_map_writes(file);
    file->durable_mtime_ns = file->mtime_ns;
    file->durable_ctime_ns = file->ctime_ns;
    for (size_t i = 0; i < file->change_count; i++) {
        struct sim_change *change = &file->changes[i];

        if (change->state == SIM_PENDING) {
            change->state = SIM_SYNCED;
        }
        if (durable == i && change->state == SIM_SYNCED) {
            durable++;
        }
    }
    sim__file_drop_oldest(file, durable);
}

/* A sync that fails. Sizes stay pending: the next one takes them along. */
void sim__file_fail_sync(struct sim_file *file, bool partial)
{
    sim__file_collect_map_writes(file);
    for (size_t i = 0; i < file->change_count; i++) {
        struct sim_change *change = &file->changes[i];

        if (change->kind == SIM_WRITE && change->state == SIM_PENDING) {
            change->state = SIM_LOST;
            change->partial = partial;
        }
    }
}

/* -------------------------------------------------------- inspection --- */

static bool covers(const struct sim_change *change, uint64_t offset)
{
    return offset >= change->offset && offset - change->offset < change->size;
}

/* Whether a lost byte was written again and synced: the last word counts. */
static bool is_byte_durable(const struct sim_file *file, uint64_t offset)
{
    for (size_t i = file->change_count; i-- > 0;) {
        const struct sim_change *change = &file->changes[i];

        if (change->kind == SIM_WRITE && covers(change, offset)) {
            return change->state == SIM_SYNCED;
        }
    }
    return true;
}

/* Whether what a change did to [offset,end) is durable. */
static bool is_change_durable(const struct sim_file *file, const struct sim_change *change,
                              uint64_t offset, uint64_t end)
{
    uint64_t at = change->offset > offset ? change->offset : offset;

    if (change->kind != SIM_WRITE) {
        return change->kind == SIM_MODE || change->state == SIM_SYNCED ||
               (change->kind == SIM_SIZE && change->old_size >= end);
    }
    while (at < end && covers(change, at)) {
        if (!is_byte_durable(file, at++)) {
            return false;
        }
    }
    return true;
}

static bool sim__file_is_durable(struct sim_file *file, uint64_t offset, uint64_t size)
{
    uint64_t end = offset + size;
    bool durable = end <= file->size;

    sim__file_collect_map_writes(file);
    for (size_t i = 0; durable && i < file->change_count; i++) {
        durable = is_change_durable(file, &file->changes[i], offset, end);
    }
    return durable;
}

static void flip_bytes(struct sim_bytes **bytes, uint64_t size, uint64_t at, uint8_t mask)
{
    struct sim_bytes *own = sim__bytes_create((size_t)size);

    if (*bytes == NULL) {
        memset(own->data, 0, (size_t)size);
    } else {
        memcpy(own->data, (*bytes)->data, (size_t)size);
    }
    own->data[at] ^= mask;
    sim__bytes_release(*bytes);
    *bytes = own;
}

/* Damage at rest: whatever lands later, the byte is not what was written. */
static void sim__file_flip(struct sim_file *file, uint64_t offset, uint8_t mask)
{
    sim__file_collect_map_writes(file);
    for (size_t i = 0; i < file->change_count; i++) {
        struct sim_change *change = &file->changes[i];

        if (change->kind == SIM_WRITE && covers(change, offset)) {
            flip_bytes(&change->before, change->size, offset - change->offset, mask);
            flip_bytes(&change->after, change->size, offset - change->offset, mask);
        }
    }

    uint8_t byte = sim__file_content(file)[offset] ^ mask;

    sim__file_store(file, offset, &byte, 1);
    refresh_shadow(file);
}

/* ------------------------------------------------------------- locks --- */

static void drop_lock(struct sim_file *file, size_t at)
{
    file->locks[at] = file->locks[--file->lock_count];
}

/* errno, or 0; EAGAIN when another handle is in the way. */
int sim__file_lock(struct sim_file *file, const struct wal__file *owner, uint64_t offset,
                   enum wal__io_lock mode)
{
    bool exclusive = mode == WAL__IO_LOCK_EXCLUSIVE || mode == WAL__IO_LOCK_TEST;
    size_t own = file->lock_count;

    for (size_t i = 0; i < file->lock_count; i++) {
        const struct sim_lock *lock = &file->locks[i];

        if (lock->offset != offset) {
            continue;
        }
        if (lock->owner == owner) {
            own = i;
        } else if (mode != WAL__IO_LOCK_NONE && (exclusive || lock->exclusive)) {
            return EAGAIN;
        }
    }
    if (mode == WAL__IO_LOCK_TEST) {
        return 0;
    }
    if (own < file->lock_count) {
        drop_lock(file, own);
    }
    if (mode != WAL__IO_LOCK_NONE) {
        file->locks = sim__grow(file->locks, &file->lock_capacity, file->lock_count + 1,
                                sizeof(*file->locks));
        file->locks[file->lock_count++] =
            (struct sim_lock){.owner = owner, .offset = offset, .exclusive = exclusive};
    }
    return 0;
}

void sim__file_unlock_all(struct sim_file *file, const struct wal__file *owner)
{
    for (size_t i = file->lock_count; i-- > 0;) {
        if (file->locks[i].owner == owner) {
            drop_lock(file, i);
        }
    }
}
