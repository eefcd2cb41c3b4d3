/*
 * unit_folders.c - watches session directories (unit_folders.h).
 *
 * Threads: one thread at a time per watch.
 */
#include "convert/follow/unit_folders.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 2

static enum wal_status add(struct wal__folder_watch *watch,
                           const struct wal__folder *unit, const char *name,
                           const char *below, struct wal_error *error)
{
    char path[2 * WAL__CLIENT_PATH_SIZE];
    struct wal__folder folder = *unit;

    snprintf(path, sizeof(path), "%s%s%s", unit->path,
             unit->path[0] != '\0' && below[0] != '\0' ? "/" : "", below);
    folder.path = path;
    return wal__folder_watch_add(watch, name, &folder, error);
}

enum wal_status wal__unit_folders_watch(struct wal__folder_watch *watch,
                                        uint32_t argument, const char *name,
                                        const char *path,
                                        const struct wal__place *place,
                                        struct wal_error *error)
{
    const struct wal__folder unit = {.argument = argument,
                                     .path = (char *)(uintptr_t)path,
                                     .place = *place,
                                     .is_part = true,
                                     .unit_size = strlen(path)};
    char *paths[] = {(char *)(uintptr_t)name, NULL};
    FTS *fts = fts_open(
        paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    enum wal_status status = WAL_OK;
    FTSENT *entry;

    while (fts != NULL && status == WAL_OK && (entry = fts_read(fts)) != NULL) {
        const char *below = entry->fts_path + strlen(name);

        if (entry->fts_info != FTS_D) {
            continue;
        }
        below += strspn(below, "/");
        status = add(watch, &unit, entry->fts_path, below, error);
        if (entry->fts_level == DEPTH ||
            (entry->fts_level == 1 && strcmp(entry->fts_name, "part") == 0)) {
            fts_set(fts, entry, FTS_SKIP);
        }
    }
    if (fts != NULL) {
        fts_close(fts);
    }
    return status;
}
