/*
 * view_states.c - the states of the views of one root (view_states.h).
 *
 * Threads: one thread at a time.
 */
#include "convert/state/view_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/model_table.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"

#define DEAD_MAX 1024 /* states that are kept though they have changed */

static uint64_t hash_of(const char *text)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)text, strlen(text)});
}

struct wal__view_states *wal__view_states_create(const struct wal__heap *heap,
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
        wal__view_states_destroy(states);
        return NULL;
    }
    return states;
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

void wal__view_states_destroy(struct wal__view_states *states)
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

/* ------------------------------------------------------------- reading --- */

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

/* ------------------------------------------------------------- finding --- */

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

enum wal_status wal__view_states_find(struct wal__view_states *states,
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
