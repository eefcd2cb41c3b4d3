/*
 * links.c - resolves the symbolic links among the directories of paths (links.h, SPEC.md 5.13).
 *
 * A path is walked part by part, with the targets of links put in front of what remains. What was
 * walked leads through no link. It is only a name: the call that opens it follows no link either.
 */
#include "engine/files/links.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    LINKS_MAX = 40 /* in a path, as the system has it */
};

struct walk {
    const struct wal__files *files;
    const struct wal__worktree_io *io;
    struct wal__worktree *tree;
    const char *root;
    uint32_t links; /* that were followed */
    size_t size;    /* of what was walked */
    char path[WAL__FILE_PATH_MAX + 1];
    char rest[2 * WAL__FILE_PATH_MAX + 2];
    char plain[WAL__FILE_PATH_MAX + 1]; /* the last directory that was looked at */
};

/* Whether the directory, or one below it, was the last that was looked at. */
static bool is_known(const struct walk *walk)
{
    return memcmp(walk->plain, walk->path, walk->size) == 0 &&
           (walk->plain[walk->size] == '/' || walk->plain[walk->size] == '\0');
}

/* Removes the last part of what was walked; false if there is none. */
static bool step_back(struct walk *walk)
{
    const char *slash = strrchr(walk->path, '/');
    bool has_part = walk->size > 0;

    walk->size = slash == NULL ? 0 : (size_t)(slash - walk->path);
    walk->path[walk->size] = '\0';
    return has_part;
}

/* Moves the next part of the rest to what was walked; "." and ".." change that. */
static bool step(struct walk *walk)
{
    size_t skipped = strspn(walk->rest, "/");
    size_t part = strcspn(walk->rest + skipped, "/");
    size_t end = skipped + part;
    const char *name = walk->rest + skipped;
    bool is_same = part == 0 || (part == 1 && name[0] == '.');
    bool is_back = part == 2 && memcmp(name, "..", 2) == 0;

    if (is_back && !step_back(walk)) {
        return false;
    }
    if (!is_same && !is_back) {
        if (walk->size + 1 + part > WAL__FILE_PATH_MAX) {
            return false;
        }
        if (walk->size > 0) {
            walk->path[walk->size++] = '/';
        }
        memcpy(walk->path + walk->size, name, part);
        walk->size += part;
        walk->path[walk->size] = '\0';
    }
    memmove(walk->rest, walk->rest + end, strlen(walk->rest + end) + 1);
    return true;
}

/* Puts the target of the link that was walked last in front of the rest. */
static bool follow(struct walk *walk)
{
    char target[WAL__FILE_PATH_MAX + 1];
    size_t root_size = walk->root[1] == '\0' ? 0 : strlen(walk->root);
    size_t rest_size = strlen(walk->rest) + 1;
    size_t size = 0;
    int ignored = 0;
    const char *from = target;

    if (++walk->links > LINKS_MAX ||
        walk->io->read_link(walk->io->ctx, walk->tree, walk->path, target, sizeof(target) - 1,
                            &size, &ignored) != WAL_OK) {
        return false;
    }
    target[size] = '\0';
    step_back(walk);
    if (target[0] == '/') {
        if (strncmp(target, walk->root, root_size) != 0 ||
            (target[root_size] != '/' && target[root_size] != '\0')) {
            return false;
        }
        from += root_size;
        walk->size = 0;
        walk->path[0] = '\0';
    }
    size = strlen(from);
    if (size + rest_size > sizeof(walk->rest)) {
        return false;
    }
    memmove(walk->rest + size, walk->rest, rest_size);
    memcpy(walk->rest, from, size);
    return true;
}

/* Looks at the directory that was walked last, and follows it if it is a link. */
static bool pass(struct walk *walk)
{
    struct wal__worktree_stat stat = {0};
    const struct wal__span path = {(const uint8_t *)walk->path, walk->size};
    int ignored = 0;

    if (is_known(walk)) {
        return true;
    }
    if (walk->io->stat(walk->io->ctx, walk->tree, walk->path, &stat, &ignored) != WAL_OK) {
        return false;
    }
    if (stat.kind == WAL__WORKTREE_SYMLINK) {
        bool is_named = walk->links == 0 && wal__files_find(walk->files, path) != NULL;

        return !is_named && follow(walk);
    }
    memcpy(walk->plain, walk->path, walk->size + 1);
    return true;
}

/* Walks a path of the list; false if it stays as it is. */
static bool walk_path(struct walk *walk, struct wal__span path)
{
    WAL__ASSERT(path.size > 0 && path.size <= WAL__FILE_PATH_MAX);
    walk->links = 0;
    walk->size = 0;
    walk->path[0] = '\0';
    memcpy(walk->rest, path.data, path.size);
    walk->rest[path.size] = '\0';
    while (step(walk)) {
        if (walk->rest[0] == '\0') {
            return walk->links > 0 && walk->size > 0;
        }
        if (walk->size > 0 && !pass(walk)) {
            return false;
        }
    }
    return false;
}

/* Makes the list anew from paths, each followed by a NUL, in its order. */
static enum wal_status replace_paths(struct wal__files *files, const struct wal__buf *texts,
                                     const char *root, struct wal_error *error)
{
    struct wal_slice *paths =
        wal__heap_resize(files->heap, NULL, (size_t)files->count, sizeof(paths[0]));
    const char *next = (const char *)texts->data;
    struct wal__files made;
    enum wal_status status;

    if (paths == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        paths[i] = (struct wal_slice){next, strlen(next)};
        next += paths[i].size + 1;
    }
    wal__files_init(&made, files->heap);
    status = wal__files_from_paths(&made, root, paths, files->count, NULL, error);
    wal__heap_free(files->heap, paths);
    if (status == WAL_OK) {
        wal__files_deinit(files);
        *files = made;
    }
    return status;
}

enum wal_status wal__files_resolve_links(struct wal__files *files,
                                         const struct wal__worktree_io *io,
                                         struct wal__worktree *tree, const char *root,
                                         struct wal_error *error)
{
    struct walk walk = {.files = files, .io = io, .tree = tree, .root = root};
    struct wal__buf texts;
    bool has_links = false;
    enum wal_status status = WAL_OK;

    wal__buf_init(&texts, files->heap);
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        const struct wal__file_record *file = &files->items[i];
        bool is_resolved = walk_path(&walk, file->path);

        has_links = has_links || is_resolved;
        status = is_resolved ? wal__buf_append(&texts, walk.path, walk.size + 1)
                             : wal__buf_append(&texts, file->path.data, file->path.size + 1);
        if (status != WAL_OK) {
            wal__no_memory(error);
        }
    }
    if (status == WAL_OK && has_links) {
        status = replace_paths(files, &texts, root, error);
    }
    wal__buf_deinit(&texts);
    return status;
}
