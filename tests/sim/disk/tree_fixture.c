/*
 * tree_fixture.c - work trees on a simulated disk made and compared from outside (tree.h). One
 * thread at a time.
 */
#include "tests/sim/disk/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

static struct sim_file *find_file(struct sim_disk *disk, const char *path)
{
    struct sim_file *file = NULL;
    int error = sim__resolve(disk, path, &file);

    WAL__ASSERT(error == 0);
    return file;
}

static void join_path(char out[SIM_PATH_MAX], const char *root, const char *path)
{
    int size = snprintf(out, SIM_PATH_MAX, "%s/%s", root, path);

    WAL__ASSERT(size > 0 && size < SIM_PATH_MAX - 1);
}

/* ------------------------------------------------------------ making --- */

/* The directory and those above it. */
static void make_directories(struct sim_disk *disk, const char *path)
{
    char part[SIM_PATH_MAX];
    struct sim_file *made;

    for (size_t end = 1;; end++) {
        if (path[end] == '/' || path[end] == '\0') {
            memcpy(part, path, end);
            part[end] = '\0';
            (void)sim__create(disk, part, true, &made);
        }
        if (path[end] == '\0') {
            return;
        }
    }
}

static void make_parents(struct sim_disk *disk, const char *path)
{
    char parent[SIM_PATH_MAX];
    const char *slash = strrchr(path, '/');

    WAL__ASSERT(slash != NULL && slash != path);
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    make_directories(disk, parent);
}

/* Null for an entry that is absent. */
static struct sim_file *make_special(struct sim_disk *disk, const char *path,
                                     const struct sim_tree_entry *entry)
{
    struct sim_file *made = NULL;
    int error;

    (void)sim__unlink(disk, path);
    if (entry->kind == WAL__WORKTREE_ABSENT) {
        return NULL;
    }
    error = sim__create(disk, path, false, &made);
    WAL__ASSERT(error == 0);
    if (entry->kind == WAL__WORKTREE_OTHER) {
        made->is_pipe = true;
    } else {
        made->mode = 0777;
        made->target = strdup(entry->content);
        WAL__ASSERT(made->target != NULL);
    }
    return made;
}

static void make_entry(struct sim_disk *disk, const char *path, const struct sim_tree_entry *entry)
{
    const char *content = entry->content == NULL ? "" : entry->content;
    struct sim_file *made = NULL;

    make_parents(disk, path);
    switch (entry->kind) {
    case WAL__WORKTREE_REGULAR:
        if (sim__resolve(disk, path, &made) == 0 && made->target != NULL) {
            (void)sim__unlink(disk, path);
        }
        sim_disk_write_file(disk, path, content, strlen(content));
        made = find_file(disk, path);
        break;
    case WAL__WORKTREE_DIRECTORY:
        make_directories(disk, path);
        made = find_file(disk, path);
        break;
    case WAL__WORKTREE_ABSENT:
    case WAL__WORKTREE_SYMLINK:
    case WAL__WORKTREE_OTHER:
        made = make_special(disk, path, entry);
        break;
    }
    if (made != NULL && entry->mode != 0) {
        sim_tree_set_mode(disk, path, entry->mode);
    }
}

void sim_tree_make(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entries,
                   size_t count)
{
    char path[SIM_PATH_MAX];

    disk->sequence++;
    make_directories(disk, root);
    for (size_t i = 0; i < count; i++) {
        join_path(path, root, entries[i].path);
        make_entry(disk, path, &entries[i]);
    }
    sim__names_sync_all(disk);
}

void sim_tree_set_mode(struct sim_disk *disk, const char *path, uint32_t mode)
{
    struct sim_file *file = find_file(disk, path);

    disk->sequence++;
    sim__file_set_mode(file, mode);
    sim__file_sync(file);
}

void sim_tree_set_immutable(struct sim_disk *disk, const char *path, bool fixed)
{
    find_file(disk, path)->is_immutable = fixed;
}

void sim_disk_set_time_granularity(struct sim_disk *disk, uint64_t ns)
{
    WAL__ASSERT(ns > 0);
    disk->time_granularity_ns = ns;
}

/* --------------------------------------------------------- comparing --- */

bool sim_tree_stat(struct sim_disk *disk, const char *path, struct wal__worktree_stat *out)
{
    struct sim_file *file = NULL;

    if (sim__resolve(disk, path, &file) != 0) {
        return false;
    }
    *out = sim__tree_stat_of(file);
    return true;
}

static bool has_content(struct sim_file *file, const char *content)
{
    if (content == NULL) {
        return true;
    }
    if (file->target != NULL) {
        return strcmp(file->target, content) == 0;
    }
    return file->size == strlen(content) &&
           memcmp(sim__file_content(file), content, (size_t)file->size) == 0;
}

/* Null, or in what way the name is not as it is to be. */
static const char *compare(struct sim_disk *disk, const char *path,
                           const struct sim_tree_entry *entry)
{
    struct wal__worktree_stat stat = {.kind = WAL__WORKTREE_ABSENT};

    (void)sim_tree_stat(disk, path, &stat);
    if (stat.kind != entry->kind) {
        return stat.kind == WAL__WORKTREE_ABSENT ? "is not there" : "is of another kind";
    }
    if (stat.kind == WAL__WORKTREE_ABSENT) {
        return NULL;
    }
    if (entry->mode != 0 && stat.mode != entry->mode) {
        return "has another mode";
    }
    return stat.kind != WAL__WORKTREE_DIRECTORY &&
                   !has_content(find_file(disk, path), entry->content)
               ? "has another content"
               : NULL;
}

bool sim_tree_has(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entry)
{
    char path[SIM_PATH_MAX];

    join_path(path, root, entry->path);
    return compare(disk, path, entry) == NULL;
}

/* Whether the table has the name, or a name below it. */
static bool is_expected(struct sim_disk *disk, const struct sim_name *name, const char *root,
                        const struct sim_tree_entry *entries, size_t count)
{
    char path[SIM_PATH_MAX];
    struct sim_file *file = NULL;

    for (size_t i = 0; i < count; i++) {
        join_path(path, root, entries[i].path);
        if (sim__resolve(disk, path, &file) == 0 &&
            (file == name->file ||
             (name->file->is_directory && sim__is_below(disk, file, name->file)))) {
            return true;
        }
    }
    return false;
}

bool sim_tree_equals(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entries,
                     size_t count, char *why, size_t size)
{
    char path[SIM_PATH_MAX];
    const struct sim_file *top = find_file(disk, root);

    for (size_t i = 0; i < count; i++) {
        join_path(path, root, entries[i].path);

        const char *difference = compare(disk, path, &entries[i]);

        if (difference != NULL) {
            (void)snprintf(why, size, "%s %s", entries[i].path, difference);
            return false;
        }
    }
    for (size_t i = 0; i < disk->name_count; i++) {
        const struct sim_name *name = &disk->names[i];

        if (sim__is_below(disk, name->directory, top) &&
            !is_expected(disk, name, root, entries, count)) {
            (void)snprintf(why, size, "%s should not be there", name->text);
            return false;
        }
    }
    return true;
}
