/*
 * view_find.c - finds the view that a file belongs to (SPEC.md 10.6).
 *
 * Threads: any thread.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/state/view_index.h"
#include "convert/state/view_place.h"
#include "convert/state/view_states.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

#define PARENT_DIRS_MAX 8 /* parent directories of a file that are searched */

struct view_search {
    struct wal__view_index *index;
    uint8_t store[16];
    struct wal_view_info place;
    bool is_found;
};

void wal__view_index_init(struct wal__view_index *index,
                          struct wal_store *store, const struct wal__heap *heap)
{
    *index = (struct wal__view_index){.heap = heap, .store = store};
}

void wal__view_index_deinit(struct wal__view_index *index)
{
    for (uint32_t i = 0; i < index->count; i++) {
        wal__view_states_destroy(index->items[i]);
    }
    wal__heap_free(index->heap, index->items);
    *index = (struct wal__view_index){.heap = index->heap};
}

/* Returns the states of a directory; NULL: no memory. */
static struct wal__view_states *states_of(struct view_search *search,
                                          const char *name)
{
    struct wal__view_index *index = search->index;
    struct wal__view_states **items;

    for (uint32_t i = 0; i < index->count; i++) {
        if (strcmp(index->items[i]->name, name) == 0) {
            return index->items[i];
        }
    }
    items = wal__heap_grow_array(index->heap, index->items, index->count,
                                 &index->capacity, sizeof(items[0]));
    if (items == NULL) {
        return NULL;
    }
    index->items = items;
    items[index->count] =
        wal__view_states_create(index->heap, search->store, name);
    return items[index->count] != NULL ? items[index->count++] : NULL;
}

static enum wal_status search_directory(struct view_search *search,
                                        const char *name, const char *path,
                                        struct wal_error *error)
{
    const struct wal__view_path *found = NULL;
    struct wal__view_states *states;
    enum wal_status status;

    if (access(name, F_OK) != 0) {
        return WAL_OK;
    }
    states = states_of(search, name);
    if (states == NULL) {
        return wal__no_memory(error);
    }
    status = wal__view_states_find(states, path, &found, error);
    if (status == WAL_OK && found != NULL && found->dialect != NULL) {
        snprintf(search->place.session, sizeof(search->place.session), "%s",
                 found->session);
        snprintf(search->place.dialect, sizeof(search->place.dialect), "%s",
                 found->dialect->name);
        search->is_found = true;
    }
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

enum wal_status wal__view_index_find(struct wal__view_index *index,
                                     struct wal_slice path,
                                     struct wal_view_info *place,
                                     struct wal_error *error)
{
    struct view_search search = {.index = index};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char given[PATH_MAX];
    char real[PATH_MAX];
    enum wal_status status;

    if (path.size == 0 || path.size >= sizeof(given)) {
        return wal__invalid(error, "path must be a valid path");
    }
    memcpy(given, path.data, (size_t)path.size);
    given[path.size] = '\0';
    search.place.struct_size = sizeof(search.place);
    status = wal_store_get_info(index->store, &info, error);
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
    if (status == WAL_OK && !search.is_found) {
        status = wal__fail(error, WAL_ENOTFOUND,
                           "the file belongs to no view of this store");
    }
    if (status == WAL_OK) {
        *place = search.place;
    }
    return status;
}

enum wal_status wal_view_find(struct wal_store *store, struct wal_slice path,
                              struct wal_view_info *place,
                              struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_info);
    struct wal_view_info found = {.struct_size = sizeof(found)};
    struct wal__view_index index;
    enum wal_status status;

    status = wal__struct_check_output(type, place, error);
    if (status != WAL_OK) {
        return status;
    }
    if (store == NULL) {
        return wal__invalid(error, "store must not be NULL, and path must be a "
                                   "valid path");
    }
    wal__view_index_init(&index, store, &wal__heap_libc);
    status = wal__view_index_find(&index, path, &found, error);
    wal__view_index_deinit(&index);
    if (status == WAL_OK) {
        wal__struct_store(type, place, &found);
    }
    return status;
}
