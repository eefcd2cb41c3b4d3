/*
 * views.c - the list of roots of views (SPEC.md 10.7). It is
 * derived: an entry that is damaged counts as missing.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/index/view_root.h"
#include "tools/walcheck/walcheck.h"

enum {
    NAME_SIZE = sizeof("views/") + WAL__VIEW_ROOT_NAME
};

/* Why the bytes are no entry with this name; null: they are. */
static const char *find_fault(const char *name, struct wal__span bytes)
{
    struct wal__view_root root;
    char expected[WAL__VIEW_ROOT_NAME + 1];
    enum wal__fmt fmt = wal__view_root_decode(bytes, &root);

    if (fmt != WAL__FMT_OK) {
        return wal__fmt_text(fmt);
    }
    wal__view_root_name(&root, expected);
    return strcmp(name, expected) == 0 ? NULL : "it has another entry's name";
}

static void check_entry(struct check_store *store, const char *name)
{
    char file_name[NAME_SIZE];
    char *path;
    struct cli_file file;
    const uint8_t *bytes;
    const char *fault;
    int error;

    snprintf(file_name, sizeof(file_name), "views/%.*s", WAL__VIEW_ROOT_NAME,
             name);
    path = check_path(store, file_name);
    error = cli_file_open(&file, path);
    free(path);
    if (error == ENOENT) {
        return; /* it was removed after the listing */
    }
    if (error != 0) {
        check_damage_add_note(&store->damages, file_name, 0, 0,
                              "the root of views cannot be read: %s",
                              cli_file_error(error));
        return;
    }
    bytes = file.size <= WAL__VIEW_ROOT_SIZE_MAX
                ? cli_file_fetch(&file, 0, file.size)
                : NULL;
    fault =
        bytes == NULL
            ? "it is too large, or cannot be read"
            : find_fault(name, (struct wal__span){bytes, (size_t)file.size});
    if (fault != NULL) {
        check_damage_add_note(&store->damages, file_name, 0, file.size,
                              "the root of views is damaged: %s", fault);
    }
    cli_file_close(&file);
}

void check_views(struct check_store *store)
{
    char *path = check_path(store, "views");
    struct dirent *entry;
    int error;
    DIR *directory = cli_directory_open(path, &error);

    free(path);
    if (directory == NULL && error != ENOENT) {
        check_damage_add_note(&store->damages, "views", 0, 0,
                              "the list of roots of views cannot be read: %s",
                              cli_file_error(error));
    }
    if (directory == NULL) {
        return;
    }
    for (entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        if (wal__view_root_is_name(entry->d_name)) {
            check_entry(store, entry->d_name);
        }
    }
    closedir(directory);
}
