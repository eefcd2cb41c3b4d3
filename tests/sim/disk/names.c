/*
 * names.c - directories of a simulated disk: a table of (directory, name, file), and the changes to
 * it that no sync_directory has settled. Invariant as in internal.h. One thread at a time.
 */
#include "tests/sim/disk/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    WAL__ASSERT(copy != NULL);
    return copy;
}

/* ------------------------------------------------------------- table --- */

static struct sim_name *find_name(const struct sim_disk *disk, const struct sim_file *directory,
                                  const char *text)
{
    for (size_t i = 0; i < disk->name_count; i++) {
        struct sim_name *name = &disk->names[i];

        if (name->directory == directory && strcmp(name->text, text) == 0) {
            return name;
        }
    }
    return NULL;
}

static void remove_name(struct sim_disk *disk, struct sim_name *name)
{
    struct sim_name gone = *name;

    *name = disk->names[--disk->name_count];
    sim__file_release(gone.directory);
    sim__file_release(gone.file);
    free(gone.text);
}

/* Makes the name refer to `file`; null removes the name. */
static void set_name(struct sim_disk *disk, struct sim_file *directory, const char *text,
                     struct sim_file *file)
{
    struct sim_name *name = find_name(disk, directory, text);

    if (name != NULL) {
        remove_name(disk, name);
    }
    if (file == NULL) {
        return;
    }
    disk->names =
        sim__grow(disk->names, &disk->name_capacity, disk->name_count + 1, sizeof(*disk->names));
    disk->names[disk->name_count++] = (struct sim_name){.directory = sim__file_acquire(directory),
                                                        .text = copy_text(text),
                                                        .file = sim__file_acquire(file)};
}

/* ------------------------------------------------------------- paths --- */

/* Where a path leads: the directory and the last name in it; the root has no name. The file is null
 * where there is none. */
struct path_target {
    struct sim_file *directory;
    char text[SIM_PATH_MAX];
    struct sim_file *file;
};

/* Adds a part to a path without slashes at its ends; ".." takes one off. */
static size_t add_part(char *out, size_t size, const char *part, size_t length)
{
    if (length == 0 || (length == 1 && part[0] == '.')) {
        return size;
    }
    if (length == 2 && memcmp(part, "..", 2) == 0) {
        do {
            size -= size > 0 ? 1 : 0;
        } while (size > 0 && out[size] != '/');
        return size;
    }
    if (size > 0) {
        out[size++] = '/';
    }
    memcpy(out + size, part, length);
    return size + length;
}

/* Takes "." and ".." out, which is done by text: there are no links. */
static void normalize(const char *path, char out[SIM_PATH_MAX])
{
    size_t size = 0;

    WAL__ASSERT(strlen(path) < SIM_PATH_MAX - 1);
    while (*path != '\0') {
        size_t length = strcspn(path, "/");

        size = add_part(out, size, path, length);
        path += length + (path[length] == '/' ? 1 : 0);
    }
    out[size] = '\0';
}

static int locate(struct sim_disk *disk, const char *path, struct path_target *path_target)
{
    char whole[SIM_PATH_MAX];
    char *rest = whole;

    normalize(path, whole);
    *path_target = (struct path_target){.file = disk->root};
    while (*rest != '\0') {
        size_t part = strcspn(rest, "/");

        if (path_target->file == NULL) {
            return ENOENT;
        }
        if (!path_target->file->is_directory) {
            return ENOTDIR;
        }
        path_target->directory = path_target->file;
        memcpy(path_target->text, rest, part);
        path_target->text[part] = '\0';
        rest += part + (rest[part] == '/' ? 1 : 0);

        const struct sim_name *name = find_name(disk, path_target->directory, path_target->text);

        path_target->file = name == NULL ? NULL : name->file;
    }
    return 0;
}

int sim__resolve(struct sim_disk *disk, const char *path, struct sim_file **file)
{
    struct path_target path_target;
    int error = locate(disk, path, &path_target);

    if (error == 0 && path_target.file == NULL) {
        error = ENOENT;
    }
    if (error == 0) {
        *file = path_target.file;
    }
    return error;
}

/* ----------------------------------------------------------- changes --- */

static struct sim_name_change *add_change(struct sim_disk *disk)
{
    disk->changes = sim__grow(disk->changes, &disk->change_capacity, disk->change_count + 1,
                              sizeof(*disk->changes));

    struct sim_name_change *change = &disk->changes[disk->change_count++];

    *change = (struct sim_name_change){.state = SIM_PENDING, .sequence = disk->sequence};
    return change;
}

static void add_edit(struct sim_name_change *change, const struct path_target *path_target,
                     struct sim_file *after)
{
    change->edits[change->count++] =
        (struct sim_name_edit){.directory = sim__file_acquire(path_target->directory),
                               .text = copy_text(path_target->text),
                               .before = sim__file_acquire(path_target->file),
                               .after = sim__file_acquire(after)};
}

void sim__names_apply(struct sim_disk *disk, const struct sim_name_change *change, bool undo)
{
    for (size_t i = 0; i < change->count; i++) {
        const struct sim_name_edit *edit = &change->edits[i];

        set_name(disk, edit->directory, edit->text, undo ? edit->before : edit->after);
    }
}

static void release_edit(const struct sim_name_edit *edit)
{
    sim__file_release(edit->directory);
    sim__file_release(edit->before);
    sim__file_release(edit->after);
    free(edit->text);
}

/* Drops the oldest changes, which then are as if they had always been. */
void sim__names_drop_oldest(struct sim_disk *disk, size_t count)
{
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < disk->changes[i].count; k++) {
            release_edit(&disk->changes[i].edits[k]);
        }
    }
    disk->change_count -= count;
    memmove(disk->changes, disk->changes + count, disk->change_count * sizeof(*disk->changes));
}

/* A rename between two directories waits for both. */
static void sync_change(struct sim_name_change *change, const struct sim_file *directory)
{
    bool all = true;

    for (size_t i = 0; i < change->count; i++) {
        struct sim_name_edit *edit = &change->edits[i];

        edit->synced = edit->synced || edit->directory == directory;
        all = all && edit->synced;
    }
    if (all && change->state == SIM_PENDING) {
        change->state = SIM_SYNCED;
    }
}

static void sync_changes(struct sim_disk *disk, const struct sim_file *directory)
{
    for (size_t i = 0; i < disk->change_count; i++) {
        sync_change(&disk->changes[i], directory);
    }
}

/* Frees the files that have no name left. */
static void drop_synced(struct sim_disk *disk)
{
    size_t durable = 0;

    while (durable < disk->change_count && disk->changes[durable].state == SIM_SYNCED) {
        durable++;
    }
    sim__names_drop_oldest(disk, durable);
}

void sim__names_sync(struct sim_disk *disk, const struct sim_file *directory)
{
    sync_changes(disk, directory);
    drop_synced(disk);
}

void sim__names_sync_all(struct sim_disk *disk)
{
    for (const struct sim_file *file = disk->files; file != NULL; file = file->next) {
        if (file->is_directory) {
            sync_changes(disk, file);
        }
    }
    drop_synced(disk);
}

static bool touches(const struct sim_name_change *change, const struct sim_file *directory)
{
    for (size_t i = 0; i < change->count; i++) {
        if (change->edits[i].directory == directory) {
            return true;
        }
    }
    return false;
}

/* A sync of the directory that fails. */
void sim__names_fail_sync(struct sim_disk *disk, const struct sim_file *directory)
{
    for (size_t i = 0; i < disk->change_count; i++) {
        struct sim_name_change *change = &disk->changes[i];

        if (change->state == SIM_PENDING && touches(change, directory)) {
            change->state = SIM_LOST;
        }
    }
}

bool sim_disk_has_lost_names(const struct sim_disk *disk)
{
    for (size_t i = 0; i < disk->change_count; i++) {
        if (disk->changes[i].state == SIM_LOST) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------- calls --- */

int sim__create(struct sim_disk *disk, const char *path, bool is_directory, struct sim_file **file)
{
    struct path_target path_target;
    int error = locate(disk, path, &path_target);

    if (error != 0) {
        return error;
    }
    if (path_target.file != NULL) {
        return EEXIST;
    }

    struct sim_file *made = sim__file_create(disk, is_directory);
    struct sim_name_change *change = add_change(disk);

    add_edit(change, &path_target, made);
    sim__names_apply(disk, change, false);
    sim__file_release(made);
    *file = made;
    return 0;
}

int sim__unlink(struct sim_disk *disk, const char *path)
{
    struct path_target path_target;
    int error = locate(disk, path, &path_target);

    if (error != 0) {
        return error;
    }
    if (path_target.file == NULL) {
        return ENOENT;
    }
    if (path_target.file->is_directory) {
        return EISDIR;
    }

    struct sim_name_change *change = add_change(disk);

    add_edit(change, &path_target, NULL);
    sim__names_apply(disk, change, false);
    return 0;
}

static bool is_empty(const struct sim_disk *disk, const struct sim_file *directory)
{
    for (size_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i].directory == directory) {
            return false;
        }
    }
    return true;
}

int sim__remove_directory(struct sim_disk *disk, const char *path)
{
    struct path_target path_target;
    int error = locate(disk, path, &path_target);

    if (error != 0) {
        return error;
    }
    if (path_target.file == NULL) {
        return ENOENT;
    }
    if (!path_target.file->is_directory) {
        return ENOTDIR;
    }
    if (!is_empty(disk, path_target.file)) {
        return ENOTEMPTY;
    }

    struct sim_name_change *change = add_change(disk);

    add_edit(change, &path_target, NULL);
    sim__names_apply(disk, change, false);
    return 0;
}

/* Whether `inner` is `outer` or is below it. */
bool sim__is_below(const struct sim_disk *disk, const struct sim_file *inner,
                   const struct sim_file *outer)
{
    while (inner != outer && inner != disk->root) {
        size_t i = 0;

        while (i < disk->name_count && disk->names[i].file != inner) {
            i++;
        }
        if (i == disk->name_count) {
            return false;
        }
        inner = disk->names[i].directory;
    }
    return inner == outer;
}

static int check_rename(const struct sim_disk *disk, const struct path_target *from,
                        const struct path_target *to)
{
    if (from->file == NULL) {
        return ENOENT;
    }
    if (from->directory == NULL || to->directory == NULL) {
        return EBUSY; /* the root */
    }
    if (from->file == to->file) {
        return 0;
    }
    if (from->file->is_directory && sim__is_below(disk, to->directory, from->file)) {
        return EINVAL;
    }
    if (to->file == NULL) {
        return 0;
    }
    if (sim__is_below(disk, from->directory, to->file)) {
        return ENOTEMPTY;
    }
    if (to->file->is_directory != from->file->is_directory) {
        return to->file->is_directory ? EISDIR : ENOTDIR;
    }
    return to->file->is_directory && !is_empty(disk, to->file) ? ENOTEMPTY : 0;
}

int sim__rename(struct sim_disk *disk, const char *from, const char *to)
{
    struct path_target old;
    struct path_target new;
    int error = locate(disk, from, &old);

    if (error == 0) {
        error = locate(disk, to, &new);
    }
    if (error == 0) {
        error = check_rename(disk, &old, &new);
    }
    if (error != 0 || old.file == new.file) {
        return error;
    }

    struct sim_name_change *change = add_change(disk);

    add_edit(change, &old, NULL);
    add_edit(change, &new, old.file);
    sim__names_apply(disk, change, false);
    return 0;
}

/* -------------------------------------------------------- power loss --- */

static bool has_name(const struct sim_disk *disk, const struct sim_file *file)
{
    for (size_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i].file == file) {
            return true;
        }
    }
    return file == disk->root;
}

/* One pass over the names whose directory was lost; false: there were none. */
static bool prune(struct sim_disk *disk)
{
    bool found = false;

    for (size_t i = disk->name_count; i-- > 0;) {
        if (!has_name(disk, disk->names[i].directory)) {
            remove_name(disk, &disk->names[i]);
            found = true;
        }
    }
    return found;
}

/* Drops everything in lost directories, at any depth. */
void sim__names_prune(struct sim_disk *disk)
{
    while (prune(disk)) {
    }
}

void sim__names_clear(struct sim_disk *disk)
{
    while (disk->name_count > 0) {
        remove_name(disk, &disk->names[disk->name_count - 1]);
    }
}

/* ------------------------------------------------------------- clone --- */

static struct sim_file *clone_file(struct sim_file *file, struct sim_disk *disk)
{
    if (file == NULL) {
        return NULL;
    }
    if (file->copy == NULL) {
        file->copy = sim__file_clone(file, disk);
        return file->copy;
    }
    return sim__file_acquire(file->copy);
}

static struct sim_name_edit clone_edit(const struct sim_name_edit *edit, struct sim_disk *disk)
{
    return (struct sim_name_edit){.directory = clone_file(edit->directory, disk),
                                  .text = copy_text(edit->text),
                                  .before = clone_file(edit->before, disk),
                                  .after = clone_file(edit->after, disk),
                                  .synced = edit->synced};
}

/* The names, their changes and every file that they name. */
void sim__names_clone(const struct sim_disk *from, struct sim_disk *to)
{
    from->root->copy = to->root;
    to->names = sim__grow(NULL, &to->name_capacity, from->name_count, sizeof(*to->names));
    to->name_count = from->name_count;
    for (size_t i = 0; i < from->name_count; i++) {
        const struct sim_name *name = &from->names[i];

        to->names[i] = (struct sim_name){.directory = clone_file(name->directory, to),
                                         .text = copy_text(name->text),
                                         .file = clone_file(name->file, to)};
    }
    to->changes = sim__grow(NULL, &to->change_capacity, from->change_count, sizeof(*to->changes));
    to->change_count = from->change_count;
    for (size_t i = 0; i < from->change_count; i++) {
        to->changes[i] = from->changes[i];
        for (size_t k = 0; k < from->changes[i].count; k++) {
            to->changes[i].edits[k] = clone_edit(&from->changes[i].edits[k], to);
        }
    }
    for (struct sim_file *file = from->files; file != NULL; file = file->next) {
        file->copy = NULL;
    }
}

/* -------------------------------------------------------- inspection --- */

static bool names_path(const struct sim_name_change *change, const struct path_target *path_target)
{
    for (size_t i = 0; i < change->count; i++) {
        const struct sim_name_edit *edit = &change->edits[i];

        if (edit->directory == path_target->directory &&
            strcmp(edit->text, path_target->text) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the last word on this name is durable. */
static bool is_name_durable(const struct sim_disk *disk, const struct path_target *path_target)
{
    for (size_t i = disk->change_count; i-- > 0;) {
        if (names_path(&disk->changes[i], path_target)) {
            return disk->changes[i].state == SIM_SYNCED;
        }
    }
    return true;
}

/* Whether the path leads to the same file after any power loss. */
bool sim__names_are_durable(struct sim_disk *disk, const char *path)
{
    char part[SIM_PATH_MAX];
    struct path_target path_target;

    normalize(path, part);
    while (part[0] != '\0') {
        char *slash = strrchr(part, '/');

        if (locate(disk, part, &path_target) != 0 || path_target.file == NULL ||
            !is_name_durable(disk, &path_target)) {
            return false;
        }
        *(slash == NULL ? part : slash) = '\0';
    }
    return true;
}

/* --- tree ----------------------------------------------------------------- */

/*
 * Work trees on a simulated disk as tests hold them: made and compared from outside. What is made
 * here is durable; nothing is counted or traced. Paths are of the disk. A process reaches a tree by
 * the table `tree` of its io: sync_all() settles bytes, sizes and modes of the tree's files and no
 * name, sync_directories() names; a new file's mode, a link's target and an inode come with its
 * name. Modes hold for every process; the owner's bits count. One thread at a time.
 */

/* ------------------------------------------------------------- roots --- */

enum { links_max = 8 };

/* Follows a link at the end, to an absolute path. */
static int find_root(struct sim_disk *disk, const char *path, const char **found)
{
    for (int i = 0; i < links_max; i++) {
        struct sim_file *file = NULL;
        int error = sim__resolve(disk, path, &file);

        if (error != 0) {
            return error;
        }
        if (file->target == NULL) {
            *found = path;
            return file->is_directory ? 0 : ENOTDIR;
        }
        path = file->target;
    }
    return ELOOP;
}

static struct wal__worktree *add_tree(struct sim_process *process, const char *root)
{
    struct wal__worktree *tree = calloc(1, sizeof(*tree));
    int size;

    WAL__ASSERT(tree != NULL);
    size = snprintf(tree->root, sizeof(tree->root), "%s", root);
    WAL__ASSERT(size > 0 && (size_t)size < sizeof(tree->root));
    tree->next = process->trees;
    process->trees = tree;
    return tree;
}

static enum wal_status tree_open_root(void *ctx, const char *path, struct wal__worktree **tree,
                                      int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(process, (struct sim_event){.call = SIM_OPEN, .path = path});
    struct wal__worktree *made = NULL;
    const char *root = NULL;

    if (step.error == 0) {
        step.error = find_root(process->disk, path, &root);
    }
    if (step.error == 0) {
        made = add_tree(process, root);
    }
    if (sim__op_finish(&step, sys_errno) != WAL_OK) {
        return wal__worktree_status(*sys_errno);
    }
    *tree = made;
    return WAL_OK;
}

static void tree_close_root(void *ctx, struct wal__worktree *tree)
{
    struct sim_process *process = ctx;
    struct wal__worktree **link = &process->trees;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_CLOSE, .path = tree->root});
    int ignored;

    (void)sim__op_finish(&step, &ignored);
    /* A dead process's trees stay until it is destroyed. */
    if (process->is_dead) {
        return;
    }
    while (*link != tree) {
        WAL__ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = tree->next;
    free(tree);
}

void sim__trees_free(struct sim_process *process)
{
    while (process->trees != NULL) {
        struct wal__worktree *tree = process->trees;

        process->trees = tree->next;
        free(tree);
    }
}

/* ------------------------------------------------------------- files --- */

static enum wal_status tree_stat(void *ctx, struct wal__worktree *tree, const char *path,
                                 struct wal__worktree_stat *out, int *sys_errno)
{
    struct sim_path_op act;
    struct wal__worktree_stat stat = {.kind = WAL__WORKTREE_ABSENT};
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_PATH_STAT, tree, path);
    if (act.failed_in_parent &&
        (act.step.error == ENOENT || act.step.error == ENOTDIR || act.step.error == ENAMETOOLONG)) {
        act.step.error = 0;
    } else if (act.step.error == 0 && act.at.file != NULL) {
        stat = sim__tree_stat_of(act.at.file);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *out = stat;
    }
    return status;
}

/* 0, or why it cannot be opened to be read. */
static int check_open(const struct sim_file *file)
{
    if (file == NULL) {
        return ENOENT;
    }
    if (file->target != NULL) {
        return ELOOP;
    }
    if (file->is_directory) {
        return EISDIR;
    }
    if ((file->mode & 0400) == 0) {
        return EACCES;
    }
    return file->is_pipe ? ENXIO : 0;
}

static enum wal_status tree_open(void *ctx, struct wal__worktree *tree, const char *path,
                                 struct wal__worktree_file **file, int *sys_errno)
{
    struct sim_path_op act;
    struct wal__file *handle = NULL;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_OPEN, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_open(act.at.file);
    }
    if (act.step.error == 0) {
        handle = sim__handle_add(ctx, act.at.file, act.at.path, false);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *file = (struct wal__worktree_file *)handle;
    }
    return status;
}

static enum wal_status tree_create(void *ctx, struct wal__worktree *tree, const char *path,
                                   uint32_t mode, struct wal__worktree_file **file, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;
    struct wal__file *handle = NULL;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_OPEN, tree, path);
    sim__path_op_create(&act, false, &made);
    if (made != NULL) {
        made->mode = mode & 07777;
        handle = sim__handle_add(ctx, made, act.at.path, true);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *file = (struct wal__worktree_file *)handle;
    }
    return status;
}

static void tree_close(void *ctx, struct wal__worktree_file *file)
{
    sim__io_table.close(ctx, (struct wal__file *)file);
}

static enum wal_status tree_file_stat(void *ctx, struct wal__worktree_file *file,
                                      struct wal__worktree_stat *out, int *sys_errno)
{
    const struct wal__file *handle = (struct wal__file *)file;
    struct wal__worktree_stat stat = {0};
    struct sim_op step =
        sim__op_begin(ctx, (struct sim_event){.call = SIM_STAT, .path = handle->path});

    if (step.error == 0) {
        stat = sim__tree_stat_of(handle->file);
    }
    if (sim__op_finish(&step, sys_errno) != WAL_OK) {
        return wal__worktree_status(*sys_errno);
    }
    *out = stat;
    return WAL_OK;
}

static enum wal_status tree_read(void *ctx, struct wal__worktree_file *file, void *data,
                                 size_t size, uint64_t offset, size_t *got, int *sys_errno)
{
    enum wal_status status =
        sim__io_table.pread(ctx, (struct wal__file *)file, data, size, offset, got, sys_errno);

    return status == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static enum wal_status tree_write(void *ctx, struct wal__worktree_file *file, const void *data,
                                  size_t size, uint64_t offset, size_t *put, int *sys_errno)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    enum wal_status status =
        sim__io_table.pwritev(ctx, (struct wal__file *)file, &iov, 1, offset, put, sys_errno);

    return status == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static enum wal_status tree_set_mode(void *ctx, struct wal__worktree_file *file, uint32_t mode,
                                     int *sys_errno)
{
    const struct wal__file *handle = (struct wal__file *)file;
    struct sim_op step =
        sim__op_begin(ctx, (struct sim_event){.call = SIM_SET_MODE, .path = handle->path});

    if (step.error == 0) {
        step.error = sim__check_writable(ctx);
    }
    if (step.error == 0) {
        sim__file_set_mode(handle->file, mode & 07777);
    }
    return sim__op_finish(&step, sys_errno) == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static int64_t tree_now_ns(void *ctx)
{
    const struct sim_process *process = ctx;

    return sim__clock_ns(process->disk);
}

static enum wal_status sim__tree_read_link(void *ctx, struct wal__worktree *tree, const char *path,
                                           void *data, size_t size, size_t *got, int *sys_errno);

static enum wal_status sim__tree_make_link(void *ctx, struct wal__worktree *tree, const char *path,
                                           const char *target, int *sys_errno);

static enum wal_status sim__tree_make_directory(void *ctx, struct wal__worktree *tree,
                                                const char *path, int *sys_errno);

static enum wal_status sim__tree_rename(void *ctx, struct wal__worktree *tree, const char *from,
                                        const char *to, int *sys_errno);

static enum wal_status sim__tree_unlink(void *ctx, struct wal__worktree *tree, const char *path,
                                        int *sys_errno);

static enum wal_status sim__tree_remove_directory(void *ctx, struct wal__worktree *tree,
                                                  const char *path, int *sys_errno);

static enum wal_status sim__tree_list(void *ctx, struct wal__worktree *tree, const char *path,
                                      enum wal_status (*each)(void *arg, const char *name),
                                      void *arg, int *sys_errno);

static enum wal_status sim__tree_may_replace(void *ctx, struct wal__worktree *tree,
                                             const char *path, int *sys_errno);

static enum wal_status sim__tree_sync_all(void *ctx, struct wal__worktree *tree, int *sys_errno);

static enum wal_status sim__tree_sync_directories(void *ctx, struct wal__worktree *tree,
                                                  const char *paths, size_t size, int *sys_errno);

const struct wal__worktree_io sim__tree_table = {
    .open_root = tree_open_root,
    .close_root = tree_close_root,
    .stat = tree_stat,
    .open = tree_open,
    .create = tree_create,
    .close = tree_close,
    .file_stat = tree_file_stat,
    .read = tree_read,
    .write = tree_write,
    .set_mode = tree_set_mode,
    .read_link = sim__tree_read_link,
    .make_link = sim__tree_make_link,
    .rename = sim__tree_rename,
    .unlink = sim__tree_unlink,
    .remove_directory = sim__tree_remove_directory,
    .make_directory = sim__tree_make_directory,
    .list = sim__tree_list,
    .check_replace = sim__tree_may_replace,
    .sync_all = sim__tree_sync_all,
    .sync_directories = sim__tree_sync_directories,
    .now_ns = tree_now_ns,
};

/* --- tree names ----------------------------------------------------------- */

/*
 * The calls of engine/base/worktree.h on names and on all of a tree, over a simulated disk. One
 * thread at a time.
 */

/* ------------------------------------------------------------- names --- */

static enum wal_status sim__tree_read_link(void *ctx, struct wal__worktree *tree, const char *path,
                                           void *data, size_t size, size_t *got, int *sys_errno)
{
    struct sim_path_op act;
    bool is_link;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_READ_LINK, tree, path);
    is_link = act.at.file != NULL && act.at.file->target != NULL;
    if (act.step.error == 0 && act.at.file == NULL) {
        act.step.error = ENOENT;
    } else if (act.step.error == 0 && !is_link) {
        act.step.error = ENXIO;
    } else if (act.step.error == 0 && strlen(act.at.file->target) > size) {
        act.step.error = ENAMETOOLONG;
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *got = strlen(act.at.file->target);
        memcpy(data, act.at.file->target, *got);
    }
    return status;
}

static enum wal_status sim__tree_make_link(void *ctx, struct wal__worktree *tree, const char *path,
                                           const char *target, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;

    sim__path_op_begin(&act, ctx, SIM_MAKE_LINK, tree, path);
    sim__path_op_create(&act, false, &made);
    if (made != NULL) {
        made->mode = 0777;
        made->target = strdup(target);
        WAL__ASSERT(made->target != NULL);
    }
    return sim__path_op_finish(&act, sys_errno);
}

static enum wal_status sim__tree_make_directory(void *ctx, struct wal__worktree *tree,
                                                const char *path, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;

    sim__path_op_begin(&act, ctx, SIM_MAKE_DIRECTORY, tree, path);
    sim__path_op_create(&act, true, &made);
    return sim__path_op_finish(&act, sys_errno);
}

/* A name that is to go. */
static int check_removal(const struct sim_path_op *act)
{
    int error;

    if (act->at.file == NULL) {
        return ENOENT;
    }
    error = sim__check_parent(act->process, act->at.parent);
    return error == 0 && act->at.file->is_immutable ? EPERM : error;
}

static enum wal_status sim__tree_rename(void *ctx, struct wal__worktree *tree, const char *from,
                                        const char *to, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_disk *disk;
    struct sim_path other = {.file = NULL};

    sim__path_op_begin(&act, ctx, SIM_RENAME, tree, from);
    disk = act.process->disk;
    act.step.event.to = to;
    if (act.step.error == 0) {
        act.step.error = sim__path_lookup(disk, tree, to, &other);
        act.failed_in_parent = act.step.error != 0;
    }
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = other.file != NULL && other.file->is_immutable
                             ? EPERM
                             : sim__check_parent(act.process, other.parent);
    }
    if (act.step.error == 0) {
        act.step.error = sim__rename(disk, act.at.path, other.path);
    }
    if (act.step.error == 0) {
        sim__file_update_ctime(act.at.file);
    }
    return sim__path_op_finish(&act, sys_errno);
}

static enum wal_status sim__tree_unlink(void *ctx, struct wal__worktree *tree, const char *path,
                                        int *sys_errno)
{
    struct sim_path_op act;

    sim__path_op_begin(&act, ctx, SIM_UNLINK, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = sim__unlink(act.process->disk, act.at.path);
    }
    return sim__path_op_finish(&act, sys_errno);
}

static enum wal_status sim__tree_remove_directory(void *ctx, struct wal__worktree *tree,
                                                  const char *path, int *sys_errno)
{
    struct sim_path_op act;

    sim__path_op_begin(&act, ctx, SIM_UNLINK, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = sim__remove_directory(act.process->disk, act.at.path);
    }
    return sim__path_op_finish(&act, sys_errno);
}

static enum wal_status sim__tree_list(void *ctx, struct wal__worktree *tree, const char *path,
                                      enum wal_status (*each)(void *arg, const char *name),
                                      void *arg, int *sys_errno)
{
    char whole[SIM_PATH_MAX];
    int size = snprintf(whole, sizeof(whole), "%s/%s", tree->root, path);
    enum wal_status status;

    WAL__ASSERT(size > 0 && (size_t)size < sizeof(whole));
    status = sim__io_table.list(ctx, whole, each, arg, sys_errno);
    return status == WAL_OK || *sys_errno == 0 ? status : wal__worktree_status(*sys_errno);
}

static int check_replace(const struct sim_path_op *act)
{
    int error = sim__check_parent(act->process, act->at.parent);

    if (error == 0 && (act->at.parent->mode & 0400) == 0) {
        error = EACCES;
    }
    if (error != 0 || act->at.file == NULL) {
        return error;
    }
    if (act->at.file->is_directory) {
        return EISDIR;
    }
    if (act->at.file->is_pipe) {
        return ENXIO;
    }
    return act->at.file->is_immutable ? EPERM : 0;
}

static enum wal_status sim__tree_may_replace(void *ctx, struct wal__worktree *tree,
                                             const char *path, int *sys_errno)
{
    struct sim_path_op act;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_MAY_REPLACE, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_replace(&act);
    }
    status = sim__path_op_finish(&act, sys_errno);
    return status != WAL_OK && *sys_errno == ENOTDIR ? WAL_ENOTFILE : status;
}

/* ----------------------------------------------------------- syncing --- */

/* Syncs the tree alone: other files of the disk stay as durable as before. */
static void sync_tree(struct sim_disk *disk, const struct sim_file *root,
                      const struct sim_fault *fault)
{
    for (size_t i = 0; i < disk->name_count; i++) {
        struct sim_name *name = &disk->names[i];

        if (name->file->is_directory || !sim__is_below(disk, name->directory, root)) {
            continue;
        }
        if (fault == NULL) {
            sim__file_sync(name->file);
        } else {
            sim__file_fail_sync(name->file, fault->partial);
        }
    }
}

static enum wal_status sim__tree_sync_all(void *ctx, struct wal__worktree *tree, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_SYNC_ALL, .path = tree->root});
    struct sim_file *root = NULL;

    if (!process->is_dead && !(step.error != 0 && sim__op_kills(&step)) &&
        sim__resolve(process->disk, tree->root, &root) == 0) {
        sync_tree(process->disk, root, step.error == 0 ? NULL : step.fault);
    }
    return sim__op_finish(&step, sys_errno) == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static enum wal_status sync_directory(void *ctx, struct wal__worktree *tree, const char *path,
                                      int *sys_errno)
{
    struct sim_path_op act;
    struct sim_disk *disk;
    struct sim_file *directory = NULL;
    /* Of the root: of its name, as a part that is looked for. */
    const char *name = path[0] == '\0' ? "root" : path;

    sim__path_op_begin(&act, ctx, SIM_SYNC_DIRECTORY, tree, name);
    disk = act.process->disk;
    if (path[0] == '\0') {
        directory = act.at.parent;
    } else if (act.step.error == 0) {
        act.step.error = sim__path_open_root(disk, act.at.path, &directory);
        act.failed_in_parent = act.step.error != 0;
    }
    if (act.step.error == 0 && (directory->mode & 0400) == 0) {
        act.step.error = EACCES;
    }
    if (act.step.error == 0) {
        sim__names_sync(disk, directory);
    } else if (act.step.fault != NULL && !sim__op_kills(&act.step) &&
               (directory != NULL || sim__path_open_root(disk, act.at.path, &directory) == 0)) {
        sim__names_fail_sync(disk, directory);
    }
    return sim__path_op_finish(&act, sys_errno);
}

/* One after the other, each a step of the process. */
static enum wal_status sim__tree_sync_directories(void *ctx, struct wal__worktree *tree,
                                                  const char *paths, size_t size, int *sys_errno)
{
    enum wal_status result = WAL_OK;
    int result_errno = 0;

    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        int error = 0;
        enum wal_status status = sync_directory(ctx, tree, paths + at, &error);

        if (status != WAL_OK) {
            result = status;
            result_errno = error;
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND && status != WAL_ENOTFILE &&
            status != WAL_EOUTSIDE) {
            break;
        }
    }
    if (result != WAL_OK) {
        *sys_errno = result_errno;
    }
    return result;
}
