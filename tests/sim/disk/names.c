/*
 * names.c - directories of a simulated disk: a table of (directory, name,
 * file), and the changes to it that no sync_directory has settled. Invariant
 * as in sim_internal.h. One thread at a time.
 */
#include <errno.h>
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

static struct sim_name *find_name(const struct sim_disk *disk,
                                  const struct sim_file *directory,
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
static void set_name(struct sim_disk *disk, struct sim_file *directory,
                     const char *text, struct sim_file *file)
{
    struct sim_name *name = find_name(disk, directory, text);

    if (name != NULL) {
        remove_name(disk, name);
    }
    if (file == NULL) {
        return;
    }
    disk->names = sim__grow(disk->names, &disk->name_capacity,
                            disk->name_count + 1, sizeof(*disk->names));
    disk->names[disk->name_count++] =
        (struct sim_name){.directory = sim__file_acquire(directory),
                          .text = copy_text(text),
                          .file = sim__file_acquire(file)};
}

/* ------------------------------------------------------------- paths --- */

/* Where a path leads: the directory and the last name in it; the root has no
 * name. The file is null where there is none. */
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

static int locate(struct sim_disk *disk, const char *path,
                  struct path_target *path_target)
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

        const struct sim_name *name =
            find_name(disk, path_target->directory, path_target->text);

        path_target->file = name == NULL ? NULL : name->file;
    }
    return 0;
}

int sim__resolve(struct sim_disk *disk, const char *path,
                 struct sim_file **file)
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
    disk->changes = sim__grow(disk->changes, &disk->change_capacity,
                              disk->change_count + 1, sizeof(*disk->changes));

    struct sim_name_change *change = &disk->changes[disk->change_count++];

    *change = (struct sim_name_change){.state = SIM_PENDING,
                                       .sequence = disk->sequence};
    return change;
}

static void add_edit(struct sim_name_change *change,
                     const struct path_target *path_target,
                     struct sim_file *after)
{
    change->edits[change->count++] = (struct sim_name_edit){
        .directory = sim__file_acquire(path_target->directory),
        .text = copy_text(path_target->text),
        .before = sim__file_acquire(path_target->file),
        .after = sim__file_acquire(after)};
}

void sim__names_apply(struct sim_disk *disk,
                      const struct sim_name_change *change, bool undo)
{
    for (size_t i = 0; i < change->count; i++) {
        const struct sim_name_edit *edit = &change->edits[i];

        set_name(disk, edit->directory, edit->text,
                 undo ? edit->before : edit->after);
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
    memmove(disk->changes, disk->changes + count,
            disk->change_count * sizeof(*disk->changes));
}

/* A rename between two directories waits for both. */
static void sync_change(struct sim_name_change *change,
                        const struct sim_file *directory)
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

void sim__names_sync(struct sim_disk *disk, const struct sim_file *directory)
{
    size_t durable = 0;

    for (size_t i = 0; i < disk->change_count; i++) {
        sync_change(&disk->changes[i], directory);
        if (durable == i && disk->changes[i].state == SIM_SYNCED) {
            durable++;
        }
    }
    sim__names_drop_oldest(disk, durable);
}

static bool touches(const struct sim_name_change *change,
                    const struct sim_file *directory)
{
    for (size_t i = 0; i < change->count; i++) {
        if (change->edits[i].directory == directory) {
            return true;
        }
    }
    return false;
}

/* A sync of the directory that fails. */
void sim__names_fail_sync(struct sim_disk *disk,
                          const struct sim_file *directory)
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

int sim__create(struct sim_disk *disk, const char *path, bool is_directory,
                struct sim_file **file)
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

static bool is_empty(const struct sim_disk *disk,
                     const struct sim_file *directory)
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

static int check_rename(const struct sim_disk *disk,
                        const struct path_target *from,
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
    if (from->file->is_directory &&
        sim__is_below(disk, to->directory, from->file)) {
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

static struct sim_name_edit clone_edit(const struct sim_name_edit *edit,
                                       struct sim_disk *disk)
{
    return (struct sim_name_edit){.directory =
                                      clone_file(edit->directory, disk),
                                  .text = copy_text(edit->text),
                                  .before = clone_file(edit->before, disk),
                                  .after = clone_file(edit->after, disk),
                                  .synced = edit->synced};
}

/* The names, their changes and every file that they name. */
void sim__names_clone(const struct sim_disk *from, struct sim_disk *to)
{
    from->root->copy = to->root;
    to->names = sim__grow(NULL, &to->name_capacity, from->name_count,
                          sizeof(*to->names));
    to->name_count = from->name_count;
    for (size_t i = 0; i < from->name_count; i++) {
        const struct sim_name *name = &from->names[i];

        to->names[i] =
            (struct sim_name){.directory = clone_file(name->directory, to),
                              .text = copy_text(name->text),
                              .file = clone_file(name->file, to)};
    }
    to->changes = sim__grow(NULL, &to->change_capacity, from->change_count,
                            sizeof(*to->changes));
    to->change_count = from->change_count;
    for (size_t i = 0; i < from->change_count; i++) {
        to->changes[i] = from->changes[i];
        for (size_t k = 0; k < from->changes[i].count; k++) {
            to->changes[i].edits[k] =
                clone_edit(&from->changes[i].edits[k], to);
        }
    }
    for (struct sim_file *file = from->files; file != NULL; file = file->next) {
        file->copy = NULL;
    }
}

/* -------------------------------------------------------- inspection --- */

static bool names_path(const struct sim_name_change *change,
                       const struct path_target *path_target)
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
static bool is_name_durable(const struct sim_disk *disk,
                            const struct path_target *path_target)
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
