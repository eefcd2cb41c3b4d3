/*
 * walk.c - visits the files below a path (walk.h). A folder is listed when it is entered, as a
 * whole, so that no descriptor stays open.
 */
#include "convert/import/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A folder that is visited, or the path of the walk: one of its names is the present entry. */
struct wal__walk_level {
    struct wal__walk_level *above;
    struct wal__walk_entry entry;
    size_t path_size;      /* of the folder, with a '/' at its end */
    struct wal__buf bytes; /* the names */
    char **names;          /* in their order */
    size_t count;
    size_t next;
};

static void leave(struct wal__walk *walk)
{
    struct wal__walk_level *level = walk->level;

    walk->level = level->above;
    wal__buf_deinit(&level->bytes);
    wal__heap_free(walk->heap, level->names);
    wal__heap_free(walk->heap, level);
}

void wal__walk_deinit(struct wal__walk *walk)
{
    while (walk->level != NULL) {
        leave(walk);
    }
    wal__buf_deinit(&walk->path);
}

/* Adds a level whose entries are below the present one. */
static struct wal__walk_level *enter(struct wal__walk *walk)
{
    struct wal__walk_level *level = wal__heap_zalloc(walk->heap, sizeof(*level));

    if (level != NULL) {
        wal__buf_init(&level->bytes, walk->heap);
        level->above = walk->level;
        if (level->above != NULL) {
            level->entry.parent = &level->above->entry;
            level->entry.depth = level->above->entry.depth + 1;
        }
        walk->level = level;
    }
    return level;
}

/* --- listing ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(const struct wal__walk *walk, const struct dirent *file)
{
    return strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0 &&
           (!walk->folders_only || file->d_type == DT_DIR || file->d_type == DT_UNKNOWN);
}

/* Sorts the names that the level has the bytes of. */
static enum wal_status sort_names(struct wal__walk *walk, struct wal__walk_level *level)
{
    char *name = (char *)level->bytes.data;

    level->names = wal__heap_resize(walk->heap, NULL, level->count + 1, sizeof(*level->names));
    if (level->names == NULL) {
        return WAL_ENOMEM;
    }
    for (size_t i = 0; i < level->count; i++) {
        level->names[i] = name;
        name += strlen(name) + 1;
    }
    qsort(level->names, level->count, sizeof(*level->names), by_name);
    return WAL_OK;
}

/* Lists the present entry, a folder. *error is errno where it cannot be read; there is then no
 * level below it. */
static enum wal_status list(struct wal__walk *walk, int *error)
{
    DIR *folder = opendir((const char *)walk->path.data);
    struct wal__walk_level *level;
    const struct dirent *file;
    enum wal_status status = WAL_OK;

    if (folder == NULL) {
        *error = errno;
        return *error == ENOMEM ? WAL_ENOMEM : WAL_OK;
    }
    level = enter(walk);
    if (level == NULL) {
        status = WAL_ENOMEM;
    }
    while (status == WAL_OK && (errno = 0, file = readdir(folder)) != NULL) {
        if (is_listed(walk, file)) {
            status = wal__buf_append(&level->bytes, file->d_name, strlen(file->d_name) + 1);
            level->count++;
        }
    }
    *error = status == WAL_OK ? errno : 0;
    (void)closedir(folder);
    if (status == WAL_OK && *error != 0) {
        leave(walk);
    } else if (status == WAL_OK) {
        /* The path of the folder, then a '/' unless it has one, instead of the NUL. */
        level->path_size = walk->path.size - 1;
        if (level->path_size == 0 || walk->path.data[level->path_size - 1] != '/') {
            walk->path.data[level->path_size++] = '/';
        }
        status = sort_names(walk, level);
    }
    return status;
}

/* --- entries ------------------------------------------------------------- */

/* A folder that is one of those around it. */
static bool contains_itself(const struct wal__walk_entry *entry)
{
    for (const struct wal__walk_entry *above = entry->parent; above != NULL;
         above = above->parent) {
        if (above->stat.st_dev == entry->stat.st_dev && above->stat.st_ino == entry->stat.st_ino) {
            return true;
        }
    }
    return false;
}

/* Looks the present entry up; as what a link leads to if `follows`. */
static struct wal__walk_entry *look_up(struct wal__walk *walk, bool follows)
{
    struct wal__walk_entry *entry = &walk->level->entry;
    const char *path = (const char *)walk->path.data;
    const char *slash = strrchr(path, '/');
    int result = follows ? stat(path, &entry->stat) : -1;

    /* An argument that leads nowhere is a link. */
    if (!follows || (result != 0 && entry->depth == 0)) {
        result = lstat(path, &entry->stat);
    }
    entry->error = result == 0 ? 0 : errno;
    entry->path = path;
    entry->name = slash != NULL && (slash != path || slash[1] != '\0') ? slash + 1 : path;
    entry->number = 0;
    entry->is_skipped = false;
    entry->is_followed = false;
    entry->kind = result != 0                                               ? WAL__WALK_UNREADABLE
                  : S_ISREG(entry->stat.st_mode)                            ? WAL__WALK_FILE
                  : S_ISLNK(entry->stat.st_mode)                            ? WAL__WALK_LINK
                  : !S_ISDIR(entry->stat.st_mode) || contains_itself(entry) ? WAL__WALK_OTHER
                                                                            : WAL__WALK_FOLDER;
    return entry;
}

/* Goes on to the first name of the present level that was not visited, or of one above. */
static enum wal_status advance(struct wal__walk *walk, struct wal__walk_entry **entry)
{
    struct wal__walk_level *level;
    enum wal_status status;

    while (walk->level != NULL && walk->level->next == walk->level->count) {
        leave(walk);
    }
    level = walk->level;
    if (level == NULL) {
        return WAL_OK;
    }
    walk->path.size = level->path_size;
    status = wal__buf_append(&walk->path, level->names[level->next],
                             strlen(level->names[level->next]) + 1);
    if (status == WAL_OK) {
        level->next++;
        *entry = look_up(walk, false);
    }
    return status;
}

enum wal_status wal__walk_next(struct wal__walk *walk, struct wal__walk_entry **entry)
{
    struct wal__walk_entry *last = walk->level != NULL ? &walk->level->entry : NULL;
    enum wal_status status = WAL_OK;

    *entry = NULL;
    if (!walk->is_begun) {
        walk->is_begun = true;
        wal__buf_init(&walk->path, walk->heap);
        status = wal__buf_append(&walk->path, walk->argument, strlen(walk->argument) + 1);
        if (status != WAL_OK || enter(walk) == NULL) {
            return WAL_ENOMEM;
        }
        *entry = look_up(walk, walk->follows);
        return WAL_OK;
    }
    if (last != NULL && last->kind == WAL__WALK_LINK && last->is_followed) {
        *entry = look_up(walk, true);
        return WAL_OK;
    }
    if (last != NULL && last->kind == WAL__WALK_FOLDER && !last->is_skipped) {
        status = list(walk, &last->error);
        if (status == WAL_OK && last->error != 0) {
            last->kind = WAL__WALK_UNREADABLE;
            *entry = last;
            return WAL_OK;
        }
    }
    return status == WAL_OK ? advance(walk, entry) : status;
}
