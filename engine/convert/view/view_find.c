/*
 * view_find.c - finds the view that a file belongs to (SPEC.md 10.6).
 *
 * Threads: any thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/convert/view/view_place.h"
#include "engine/convert/view/view_state.h"

#define PARENT_DIRS_MAX 8 /* parent directories of a file that are searched */

struct view_search {
    const struct wal__view_env *env;
    uint8_t store[16];
    struct wal_view_info place;
    bool is_found;
};

static bool is_state(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

/* Searches all states in the directory for the path below the root. */
static enum wal_status search_state_dir(struct view_search *search,
                                        DIR *state_dir, const char *path,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const struct dirent *entry;

    while (status == WAL_OK && !search->is_found &&
           (entry = readdir(state_dir)) != NULL) {
        if (is_state(entry->d_name)) {
            status = wal__view_state_find(
                search->env, dirfd(state_dir), entry->d_name, search->store,
                path, &search->place, &search->is_found, error);
        }
    }
    return status;
}

static enum wal_status search_directory(struct view_search *search,
                                        const char *name, const char *path,
                                        struct wal_error *error)
{
    enum wal_status status;
    DIR *state_dir = opendir(name);

    if (state_dir == NULL) {
        return WAL_OK;
    }
    status = search_state_dir(search, state_dir, path, error);
    closedir(state_dir);
    return status;
}

/* Searches the states of the root, which is the first `size` bytes of the
 * path. */
static enum wal_status search_root(struct view_search *search, const char *path,
                                   size_t size, struct wal_error *error)
{
    char name[PATH_MAX + sizeof(WAL__VIEW_STATE_DIR) + 1];
    char place[PATH_MAX];
    enum wal_status status;

    snprintf(name, sizeof(name), "%.*s/" WAL__VIEW_STATE_DIR, (int)size, path);
    status = search_directory(search, name, path + size + 1, error);
    snprintf(name, sizeof(name), "%.*s", size > 0 ? (int)size : 1, path);
    if (status == WAL_OK && !search->is_found && wal__view_place(name, place)) {
        status = search_directory(search, place, path + size + 1, error);
    }
    snprintf(search->place.root, sizeof(search->place.root), "%.*s",
             size > 0 ? (int)size : 1, path);
    return status;
}

static enum wal_status find(struct view_search *search, const char *path,
                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t size = strlen(path);

    for (unsigned i = 0; i < PARENT_DIRS_MAX && size > 0 && status == WAL_OK &&
                         !search->is_found;
         i++) {
        do {
            size--;
        } while (path[size] != '/');
        status = search_root(search, path, size, error);
    }
    return status;
}

enum wal_status wal_view_find(struct wal_store *store, struct wal_slice path,
                              struct wal_view_info *place,
                              struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_info);
    const struct wal__view_env env = {.heap = &wal__heap_libc};
    struct view_search search = {.env = &env};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char given[PATH_MAX];
    char real[PATH_MAX];
    enum wal_status status;

    status = wal__struct_check_output(type, place, error);
    if (status != WAL_OK) {
        return status;
    }
    if (store == NULL || path.size == 0 || path.size >= sizeof(given)) {
        return wal__invalid(error, "store must not be NULL, and path must be a "
                                   "valid path");
    }
    memcpy(given, path.data, (size_t)path.size);
    given[path.size] = '\0';
    search.place.struct_size = sizeof(search.place);
    status = wal_store_get_info(store, &info, error);
    if (status != WAL_OK) {
        return status;
    }
    /* A store without an id has no views. */
    if (memcmp(info.uuid, search.store, 16) != 0) {
        memcpy(search.store, info.uuid, sizeof(search.store));
        status = realpath(given, real) != NULL
                     ? find(&search, real, error)
                     : wal__view_fs_fail(error, given);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!search.is_found) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the file belongs to no view of this store");
    }
    wal__struct_store(type, place, &search.place);
    return WAL_OK;
}
