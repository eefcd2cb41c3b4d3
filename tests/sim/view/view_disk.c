/*
 * view_disk.c - see view_disk.h.
 */
#include "tests/sim/view/view_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/bytes/assert.h"

enum { INODES_MAX = 256, CUTS_MAX = 2048 };

/* What a file of the simulated disk is in the real folder. */
struct inode {
    uint64_t simulated;
    ino_t real;
    struct timespec mtime;
};

struct cut {
    struct sim_disk *disk;
    struct inode inodes[INODES_MAX];
    size_t inode_count;
    char call[256];
};

static struct {
    struct sim_disk *disk;
    struct sim_process *process;
    const struct wal__io *io;
    char root[PATH_MAX];
    bool is_on;
    bool keeps;
    struct view_disk_fault fault;
    bool has_lost_names;
    unsigned calls;
    struct inode inodes[INODES_MAX];
    size_t inode_count;
    struct cut *cuts[CUTS_MAX];
    size_t cut_count;
    /* Of a rename: the directory whose sync makes it durable too. */
    char left[VIEW_DISK_PATH];
    /* Real inodes of files that a power loss left, and those of before. */
    ino_t after[INODES_MAX];
    ino_t before[INODES_MAX];
    size_t translated;
} mirror;

static const char *const names[] = {"mkdir",  "creation", "write",   "sync",      "sync of",
                                    "rename", "link",     "removal", "removal of"};

/* ------------------------------------------------------------- inodes --- */

static void note(const char *path, const struct stat *stat)
{
    struct wal__io_stat found;
    struct inode *inode = mirror.inodes;
    int error;

    if (mirror.io->path_stat(mirror.io->ctx, path, &found, &error) != WAL_OK) {
        return;
    }
    while (inode < mirror.inodes + mirror.inode_count && inode->simulated != found.inode) {
        inode++;
    }
    if (inode == mirror.inodes + mirror.inode_count) {
        WAL__ASSERT(mirror.inode_count < INODES_MAX);
        mirror.inode_count++;
    }
    inode->simulated = found.inode;
    inode->real = stat->st_ino;
    inode->mtime = stat->st_mtim;
}

void view_disk_note(const char *path, int fd)
{
    struct stat stat;

    WAL__ASSERT(fstat(fd, &stat) == 0);
    note(path, &stat);
}

void view_disk_translate(struct stat *stat)
{
    for (size_t i = 0; i < mirror.translated; i++) {
        if (mirror.after[i] == stat->st_ino) {
            stat->st_ino = mirror.before[i];
            return;
        }
    }
}

/* -------------------------------------------------------------- walks --- */

/* Calls `each` for every file and directory, a directory after its content. */
static void walk(void (*each)(void *ctx, const char *path, const char *below,
                              const struct stat *stat),
                 void *ctx)
{
    char *roots[] = {(char *)(uintptr_t)VIEW_DISK, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;

    WAL__ASSERT(tree != NULL);
    while ((entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_F || entry->fts_info == FTS_DP) {
            each(ctx, entry->fts_path, entry->fts_path + sizeof(VIEW_DISK) - 1, entry->fts_statp);
        }
    }
    (void)fts_close(tree);
}

static void note_file(void *ctx, const char *path, const char *below, const struct stat *stat)
{
    (void)ctx;
    (void)path;
    if (S_ISREG(stat->st_mode)) {
        note(below, stat);
    }
}

static void remove_item(void *ctx, const char *path, const char *below, const struct stat *stat)
{
    (void)ctx;
    (void)below;
    (void)stat;
    WAL__ASSERT(remove(path) == 0);
}

/* -------------------------------------------------------------- start --- */

static void keep(const char *call, const char *path)
{
    struct cut *cut = malloc(sizeof(*cut));

    WAL__ASSERT(cut != NULL && mirror.cut_count < CUTS_MAX);
    cut->disk = sim_disk_clone(mirror.disk);
    memcpy(cut->inodes, mirror.inodes, sizeof(cut->inodes));
    cut->inode_count = mirror.inode_count;
    (void)snprintf(cut->call, sizeof(cut->call), "%s %.200s", call, path);
    mirror.cuts[mirror.cut_count++] = cut;
}

void view_disk_start(const struct view_disk_fault *fault, bool keeps)
{
    WAL__ASSERT(mirror.disk == NULL && mirror.cut_count == 0);
    WAL__ASSERT(realpath(VIEW_DISK, mirror.root) != NULL);
    mirror.disk = sim_disk_create(1);
    WAL__ASSERT(sim_disk_load(mirror.disk, "/", VIEW_DISK));
    mirror.process = sim_process_create(mirror.disk);
    mirror.io = sim_process_io(mirror.process);
    mirror.inode_count = 0;
    mirror.translated = 0;
    mirror.calls = 0;
    mirror.keeps = keeps;
    mirror.has_lost_names = false;
    mirror.left[0] = '\0';
    mirror.fault = fault != NULL ? *fault : (struct view_disk_fault){.at = 0};
    walk(note_file, NULL);
    mirror.is_on = true;
}

size_t view_disk_stop(void)
{
    WAL__ASSERT(mirror.is_on);
    mirror.is_on = false;
    keep("the", "end");
    sim_disk_destroy(mirror.disk);
    mirror.disk = NULL;
    return mirror.cut_count;
}

unsigned view_disk_calls(void)
{
    return mirror.calls;
}

bool view_disk_has_lost_names(void)
{
    return mirror.has_lost_names;
}

const char *view_disk_call(size_t index)
{
    WAL__ASSERT(index < mirror.cut_count);
    return mirror.cuts[index]->call;
}

void view_disk_free(void)
{
    for (size_t i = 0; i < mirror.cut_count; i++) {
        sim_disk_destroy(mirror.cuts[i]->disk);
        free(mirror.cuts[i]);
    }
    mirror.cut_count = 0;
    mirror.translated = 0;
    mirror.is_on = false;
    sim_disk_destroy(mirror.disk);
    mirror.disk = NULL;
}

/* --------------------------------------------------------- power loss --- */

struct survivors {
    const struct cut *cut;
    const struct wal__io *io;
};

/* Inodes stay what they were, and times may be newer than the bytes that were lost. */
static void restore_stamp(void *ctx, const char *path, const char *below, const struct stat *stat)
{
    const struct survivors *survivors = ctx;
    const struct cut *cut = survivors->cut;
    struct wal__io_stat found;
    int error;

    if (!S_ISREG(stat->st_mode)) {
        return;
    }
    WAL__ASSERT(survivors->io->path_stat(survivors->io->ctx, below, &found, &error) == WAL_OK);
    for (size_t i = 0; i < cut->inode_count; i++) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, cut->inodes[i].mtime};

        if (cut->inodes[i].simulated == found.inode) {
            WAL__ASSERT(utimensat(AT_FDCWD, path, times, 0) == 0);
            mirror.after[mirror.translated] = stat->st_ino;
            mirror.before[mirror.translated++] = cut->inodes[i].real;
            return;
        }
    }
}

void view_disk_lose(size_t index, const struct sim_power_loss *loss, uint64_t seed)
{
    WAL__ASSERT(!mirror.is_on && index < mirror.cut_count);
    struct sim_disk *disk = sim_disk_clone(mirror.cuts[index]->disk);
    struct sim_process *process;

    if (loss != NULL) {
        sim_disk_power_loss(disk, loss, seed);
    }
    mirror.translated = 0;
    if (access(VIEW_DISK, F_OK) == 0) {
        walk(remove_item, NULL);
    }
    WAL__ASSERT(sim_disk_dump(disk, "/", VIEW_DISK));
    process = sim_process_create(disk);
    walk(restore_stamp,
         &(struct survivors){.cut = mirror.cuts[index], .io = sim_process_io(process)});
    sim_disk_destroy(disk);
}

/* -------------------------------------------------------------- calls --- */

static bool is_below(const char *real, char path[VIEW_DISK_PATH])
{
    size_t size = strlen(mirror.root);

    if (strncmp(real, mirror.root, size) != 0 || (real[size] != '/' && real[size] != '\0')) {
        return false;
    }
    (void)snprintf(path, VIEW_DISK_PATH, "%s", real[size] == '\0' ? "/" : real + size);
    return true;
}

static bool real_path(int fd, char real[PATH_MAX])
{
    char link[64];
    ssize_t size;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    size = readlink(link, real, PATH_MAX - 1);
    if (size <= 0) {
        return false;
    }
    real[size] = '\0';
    return true;
}

bool view_disk_find(int fd, char path[VIEW_DISK_PATH])
{
    char real[PATH_MAX];

    return mirror.is_on && fd > 2 && real_path(fd, real) && is_below(real, path);
}

bool view_disk_find_at(int directory, const char *name, char path[VIEW_DISK_PATH])
{
    char above[PATH_MAX] = "";
    char real[2 * PATH_MAX];

    if (!mirror.is_on) {
        return false;
    }
    if (name[0] != '/' && directory == AT_FDCWD) {
        WAL__ASSERT(getcwd(above, sizeof(above)) != NULL);
    } else if (name[0] != '/' && !real_path(directory, above)) {
        return false;
    }
    (void)snprintf(real, sizeof(real), "%s%s%s", above, name[0] == '/' ? "" : "/", name);
    return is_below(real, path);
}

/* A sync that fails: the bytes or names are never durable. */
static void lose_sync(enum view_disk_change change, const char *path)
{
    const struct sim_fault fault = {.call =
                                        change == VIEW_DISK_SYNC ? SIM_SYNC : SIM_SYNC_DIRECTORY,
                                    .effect = SIM_FAIL,
                                    .sys_errno = mirror.fault.sys_errno};

    mirror.has_lost_names |= change == VIEW_DISK_SYNC_DIRECTORY;
    sim_process_add_fault(mirror.process, &fault);
    view_disk_repeat(change, path, NULL);
    sim_process_clear_faults(mirror.process);
}

int view_disk_before(enum view_disk_change change, const char *path, size_t *size)
{
    if (mirror.keeps) {
        keep(names[change], path);
    }
    if (++mirror.calls != mirror.fault.at) {
        return 0;
    }
    if (size != NULL && *size > 1) {
        *size /= 2;
        mirror.fault.at++;
        return 0;
    }
    if (change == VIEW_DISK_SYNC || change == VIEW_DISK_SYNC_DIRECTORY) {
        lose_sync(change, path);
    }
    return mirror.fault.sys_errno;
}

static struct wal__file *open_file(const char *path, int flags)
{
    struct wal__file *file = NULL;
    int error = 0;

    if (mirror.io->open(mirror.io->ctx, path, WAL__IO_WRITE | flags, &file, &error) != WAL_OK) {
        (void)fprintf(stderr, "view_disk: %s: %s\n", path, strerror(error));
        abort();
    }
    return file;
}

/* File systems that can make a rename durable do so as a whole, by a sync of the directory where
 * the file is now. */
static void sync_directory(const char *path)
{
    void *ctx = mirror.io->ctx;
    int error;

    (void)mirror.io->sync_directory(ctx, path, &error);
    if (mirror.left[0] != '\0') {
        (void)mirror.io->sync_directory(ctx, mirror.left, &error);
    }
    mirror.left[0] = '\0';
}

static void rename_file(const char *path, const char *to)
{
    size_t size = (size_t)(strrchr(path, '/') - path);
    int error;

    WAL__ASSERT(mirror.io->rename(mirror.io->ctx, path, to, &error) == WAL_OK);
    (void)snprintf(mirror.left, sizeof(mirror.left), "%.*s", size > 0 ? (int)size : 1, path);
}

void view_disk_repeat(enum view_disk_change change, const char *path, const char *to)
{
    void *ctx = mirror.io->ctx;
    struct wal__file *file;
    int error;

    switch (change) {
    case VIEW_DISK_MAKE_DIRECTORY:
        WAL__ASSERT(mirror.io->make_directory(ctx, path, &error) == WAL_OK);
        break;
    case VIEW_DISK_CREATE:
        file = open_file(path, WAL__IO_CREATE | WAL__IO_TRUNCATE);
        mirror.io->close(ctx, file);
        break;
    case VIEW_DISK_SYNC:
        file = open_file(path, 0);
        (void)mirror.io->sync(ctx, file, &error);
        mirror.io->close(ctx, file);
        break;
    case VIEW_DISK_SYNC_DIRECTORY:
        sync_directory(path);
        break;
    case VIEW_DISK_RENAME:
    case VIEW_DISK_LINK: /* and its other name, which is removed next */
        rename_file(path, to);
        break;
    case VIEW_DISK_REMOVE:
        (void)mirror.io->unlink(ctx, path, &error);
        break;
    case VIEW_DISK_REMOVE_DIRECTORY:
        (void)mirror.io->remove_directory(ctx, path, &error);
        break;
    case VIEW_DISK_WRITE:
        abort();
    }
}

void view_disk_repeat_write(const char *path, int fd, const void *data, size_t size)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct wal__file *file = open_file(path, 0);
    off_t end = lseek(fd, 0, SEEK_CUR);
    int error;

    WAL__ASSERT(end >= (off_t)size);
    WAL__ASSERT(wal__io_write_full(mirror.io, file, &part, 1, (uint64_t)end - size, &error) ==
                WAL_OK);
    mirror.io->close(mirror.io->ctx, file);
    view_disk_note(path, fd);
}
