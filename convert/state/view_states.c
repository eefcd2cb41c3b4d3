/*
 * view_states.c - the states of the views of one root, where they are kept, and
 * the view that a file belongs to (view_states.h, SPEC.md 10.6).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/state/view_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client_place.h"
#include "convert/files/view_fs.h"
#include "convert/model/model_table.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/base/struct_size.h"
#include "format/bytes/assert.h"

/* --- the place ----------------------------------------------------------- */

/* Whether the root is a client's folder, and not only below one. */
static bool is_client_folder(const char *root)
{
    struct wal__place place = wal__place_of_argument(root);

    return place.kind == WAL__PLACE_CLIENT && place.base == strlen(root);
}

static bool has_old_state(const char *root)
{
    char name[2 * PATH_MAX];

    snprintf(name, sizeof(name), "%s/" WAL__VIEW_STATE_DIR "/lock", root);
    return access(name, F_OK) == 0;
}

bool wal__view_place(const char *root, char path[PATH_MAX])
{
    const char *base = getenv("XDG_STATE_HOME");
    const char *below = "agentwal/views";
    char resolved[PATH_MAX];
    int used;

    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = ".local/state/agentwal/views";
    }
    if (base == NULL || base[0] != '/' || realpath(root, resolved) == NULL ||
        !is_client_folder(resolved) || has_old_state(resolved)) {
        return false;
    }
    used = snprintf(path, PATH_MAX, "%s/%s/%016" PRIx64, base, below,
                    wal__source_hash(resolved));
    return used > 0 && used < PATH_MAX;
}

/* --- states of a root ---------------------------------------------------- */

#define DEAD_MAX 1024 /* states that are kept though they have changed */

static uint64_t hash_of(const char *text)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)text, strlen(text)});
}

/* Forgets everything that was read. */
static void clear(struct wal__view_states *states)
{
    const struct wal__heap *heap = states->env.heap;

    for (uint32_t i = 0; i < states->path_count; i++) {
        wal__heap_free(heap, states->paths[i].path);
        wal__heap_free(heap, states->paths[i].session);
    }
    for (uint32_t i = 0; i < states->state_count; i++) {
        wal__heap_free(heap, states->states[i].name);
    }
    states->path_count = 0;
    states->state_count = 0;
    states->dead_count = 0;
    wal__hashmap_deinit(&states->by_path);
    wal__hashmap_deinit(&states->by_name);
    wal__hashmap_init(&states->by_path, heap);
    wal__hashmap_init(&states->by_name, heap);
}

static void view_states_destroy(struct wal__view_states *states)
{
    const struct wal__heap *heap;

    if (states == NULL) {
        return;
    }
    heap = states->env.heap;
    clear(states);
    wal__heap_free(heap, states->paths);
    wal__heap_free(heap, states->states);
    wal__heap_free(heap, states->name);
    wal__heap_free(heap, states);
}

/* Creates the states of a directory that were not read yet; NULL: no memory. */
static struct wal__view_states *view_states_create(const struct wal__heap *heap,
                                                   const uint8_t store[16],
                                                   const char *name)
{
    struct wal__view_states *states = wal__heap_zalloc(heap, sizeof(*states));

    if (states == NULL) {
        return NULL;
    }
    states->env.heap = heap;
    memcpy(states->store, store, sizeof(states->store));
    wal__hashmap_init(&states->by_path, heap);
    wal__hashmap_init(&states->by_name, heap);
    states->name = wal__heap_copy_text(heap, name, strlen(name));
    if (states->name == NULL) {
        view_states_destroy(states);
        return NULL;
    }
    return states;
}

/* --- reading ------------------------------------------------------------- */

/* Adds a file of the last state. */
static bool add_path(void *ctx, const char *path,
                     const struct wal_view_info *place)
{
    struct wal__view_states *states = ctx;
    const struct wal__heap *heap = states->env.heap;
    struct wal__view_path *paths =
        wal__heap_grow_array(heap, states->paths, states->path_count,
                             &states->path_capacity, sizeof(paths[0]));
    struct wal__view_path *added;

    if (paths == NULL) {
        return false;
    }
    states->paths = paths;
    added = &paths[states->path_count];
    *added = (struct wal__view_path){
        .path = wal__heap_copy_text(heap, path, strlen(path)),
        .session =
            wal__heap_copy_text(heap, place->session, strlen(place->session)),
        .dialect = wal__dialect_find(place->dialect),
        .state = states->state_count - 1};
    if (added->path == NULL || added->session == NULL ||
        wal__hashmap_add(&states->by_path, hash_of(path), states->path_count) !=
            WAL_OK) {
        wal__heap_free(heap, added->path);
        wal__heap_free(heap, added->session);
        return false;
    }
    states->path_count++;
    return true;
}

static struct wal__view_state_file *
find_state(const struct wal__view_states *states, const char *name)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (
        wal__hashmap_find(&states->by_name, hash_of(name), &cursor, &index)) {
        if (!states->states[index].is_dead &&
            strcmp(states->states[index].name, name) == 0) {
            return &states->states[index];
        }
    }
    return NULL;
}

/* Adds a state file and reads it. */
static enum wal_status read_state(struct wal__view_states *states,
                                  int directory, const char *name,
                                  const struct wal__file_stamp *stamp,
                                  struct wal_error *error)
{
    const struct wal__heap *heap = states->env.heap;
    struct wal__view_state_file *files =
        wal__heap_grow_array(heap, states->states, states->state_count,
                             &states->state_capacity, sizeof(files[0]));
    struct wal__view_state_file *file;

    if (files == NULL) {
        return wal__no_memory(error);
    }
    states->states = files;
    file = &files[states->state_count];
    *file = (struct wal__view_state_file){
        .name = wal__heap_copy_text(heap, name, strlen(name)),
        .stamp = *stamp,
        .is_listed = true};
    if (file->name == NULL || wal__hashmap_add(&states->by_name, hash_of(name),
                                               states->state_count) != WAL_OK) {
        wal__heap_free(heap, file->name);
        return wal__no_memory(error);
    }
    states->state_count++;
    return wal__view_state_list(&states->env, directory, name, states->store,
                                add_path, states, error);
}

static bool is_state(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

static struct wal__file_stamp stamp_of(const struct stat *stat)
{
    return (struct wal__file_stamp){
        .size = (uint64_t)stat->st_size,
        .mtime_ns =
            (int64_t)stat->st_mtim.tv_sec * 1000000000 + stat->st_mtim.tv_nsec,
        .inode = (uint64_t)stat->st_ino};
}

/* Reads the states that are new or have changed. */
static enum wal_status read_changed(struct wal__view_states *states, DIR *dir,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const struct dirent *entry;

    while (status == WAL_OK && (entry = readdir(dir)) != NULL) {
        struct wal__view_state_file *known;
        struct wal__file_stamp stamp;
        struct stat stat;
        if (!is_state(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) !=
                0) {
            continue;
        }
        stamp = stamp_of(&stat);
        known = find_state(states, entry->d_name);
        if (known != NULL && wal__file_stamp_equal(&known->stamp, &stamp)) {
            known->is_listed = true;
            continue;
        }
        status = read_state(states, dirfd(dir), entry->d_name, &stamp, error);
    }
    return status;
}

/* Brings what was read up to the directory. */
static enum wal_status update(struct wal__view_states *states, DIR *dir,
                              struct wal_error *error)
{
    enum wal_status status;

    if (states->dead_count > DEAD_MAX) {
        clear(states);
    }
    for (uint32_t i = 0; i < states->state_count; i++) {
        states->states[i].is_listed = false;
    }
    status = read_changed(states, dir, error);
    for (uint32_t i = 0; i < states->state_count; i++) {
        struct wal__view_state_file *file = &states->states[i];
        if (!file->is_listed && !file->is_dead) {
            file->is_dead = true;
            states->dead_count++;
        }
    }
    if (status != WAL_OK) {
        clear(states);
    }
    return status;
}

/* --- finding ------------------------------------------------------------- */

static const struct wal__view_path *
find_path(const struct wal__view_states *states, const char *path)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (
        wal__hashmap_find(&states->by_path, hash_of(path), &cursor, &index)) {
        const struct wal__view_path *found = &states->paths[index];
        WAL__ASSERT(found->state < states->state_count);
        if (!states->states[found->state].is_dead &&
            strcmp(found->path, path) == 0) {
            return found;
        }
    }
    return NULL;
}

/* Finds the view of a path below the root; *found is NULL if there is none. */
static enum wal_status view_states_find(struct wal__view_states *states,
                                        const char *path,
                                        const struct wal__view_path **found,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__file_stamp stamp;
    struct stat stat_now;
    DIR *dir;

    *found = find_path(states, path);
    if (*found != NULL) {
        return WAL_OK;
    }
    if (stat(states->name, &stat_now) != 0) {
        return WAL_OK;
    }
    stamp = stamp_of(&stat_now);
    if (states->exists && wal__file_stamp_equal(&stamp, &states->stamp)) {
        return WAL_OK;
    }
    dir = opendir(states->name);
    if (dir == NULL) {
        return WAL_OK;
    }
    status = update(states, dir, error);
    closedir(dir);
    states->exists = status == WAL_OK;
    states->stamp = stamp;
    if (status == WAL_OK) {
        *found = find_path(states, path);
    }
    return status;
}

/* --- the view of a file -------------------------------------------------- */

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
        view_states_destroy(index->items[i]);
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
    items[index->count] = view_states_create(index->heap, search->store, name);
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
    status = view_states_find(states, path, &found, error);
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
