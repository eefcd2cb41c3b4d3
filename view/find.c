/*
 * find.c - whose view a file is (SPEC.md 10.6).
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
#include "view/state.h"

#define LEVELS 8 /* directories above a file that are looked at */

struct finding {
    const struct wal__view_env *env;
    uint8_t store[16];
    struct wal_view_place place;
    bool is_found;
};

static bool is_state(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

/* Looks for the path below the root in all states there. */
static enum wal_status look_in(struct finding *finding, DIR *folder,
                               const char *path, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const struct dirent *entry;

    while (status == WAL_OK && !finding->is_found &&
           (entry = readdir(folder)) != NULL) {
        if (is_state(entry->d_name)) {
            status = wal__state_find(finding->env, dirfd(folder), entry->d_name,
                                     finding->store, path, &finding->place,
                                     &finding->is_found, error);
        }
    }
    return status;
}

/* `size` bytes of the path are the root. */
static enum wal_status look_below(struct finding *finding, const char *path,
                                  size_t size, struct wal_error *error)
{
    char name[PATH_MAX + sizeof(WAL__VIEW_FOLDER) + 1];
    enum wal_status status;
    DIR *folder;

    snprintf(name, sizeof(name), "%.*s/" WAL__VIEW_FOLDER, (int)size, path);
    folder = opendir(name);
    if (folder == NULL) {
        return WAL_OK;
    }
    status = look_in(finding, folder, path + size + 1, error);
    closedir(folder);
    snprintf(finding->place.root, sizeof(finding->place.root), "%.*s",
             size > 0 ? (int)size : 1, path);
    return status;
}

static enum wal_status find(struct finding *finding, const char *path,
                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t size = strlen(path);

    for (unsigned i = 0;
         i < LEVELS && size > 0 && status == WAL_OK && !finding->is_found;
         i++) {
        do {
            size--;
        } while (path[size] != '/');
        status = look_below(finding, path, size, error);
    }
    return status;
}

enum wal_status wal_view_find(struct wal_store *store, struct wal_slice path,
                              struct wal_view_place *place,
                              struct wal_error *error)
{
    const struct wal__view_env env = {.heap = &wal__heap_libc};
    struct finding finding = {.env = &env};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char given[PATH_MAX];
    char real[PATH_MAX];
    enum wal_status status;

    if (store == NULL || place == NULL || path.size == 0 ||
        path.size >= sizeof(given) || place->struct_size != sizeof(*place)) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "no store, no path, or no place of this version");
    }
    memcpy(given, path.data, (size_t)path.size);
    given[path.size] = '\0';
    finding.place.struct_size = sizeof(finding.place);
    status = wal_store_status(store, &info, error);
    /* A store without an id has no views. */
    if (status == WAL_OK && memcmp(info.uuid, finding.store, 16) != 0) {
        memcpy(finding.store, info.uuid, sizeof(finding.store));
        status = realpath(given, real) != NULL ? find(&finding, real, error)
                                               : wal__place_fail(error, given);
    }
    if (status == WAL_OK && !finding.is_found) {
        return wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                         "the file is of no view of this store");
    }
    if (status == WAL_OK) {
        *place = finding.place;
    }
    return status;
}
