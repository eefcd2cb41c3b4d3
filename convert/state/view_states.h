/*
 * view_states.h - the states of the views of one root, by the paths of their
 * files, and the files of all views below roots (SPEC.md 10.4, 10.6).
 *
 * The states of a root are read once. When the directory of the states has
 * changed and a path is not found, those that changed are read again.
 *
 * Invariant: nothing but the views' files remains in a client's folder.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_STATES_H
#define AGENTWAL_CONVERT_STATE_VIEW_STATES_H

#include <limits.h>
#include <stdbool.h>

#include "agentwal/convert.h"
#include "convert/files/view_fs.h"
#include "convert/state/view_state.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"

/* --- the place ----------------------------------------------------------- */

/* Writes the directory of the states of a root, which exists, and returns true
 * if that is not in the root: the root is a client's folder and has no state
 * from before. */
bool wal__view_place(const char *root, char path[PATH_MAX]);

/* --- states of a root ---------------------------------------------------- */

/* A file of a view. */
struct wal__view_path {
    char *path; /* below the root */
    char *session;
    const struct wal__dialect *dialect;
    uint32_t state; /* index of its state */
};

/* A file with the state of a view. */
struct wal__view_state_file {
    char *name;
    struct wal__file_stamp stamp;
    bool is_listed; /* in the present listing */
    bool is_dead;
};

struct wal__view_states {
    struct wal__view_env env;
    uint8_t store[16];
    char *name; /* of the directory */
    struct wal__file_stamp stamp;
    bool exists;
    struct wal__view_path *paths;
    uint32_t path_count;
    uint32_t path_capacity;
    struct wal__view_state_file *states;
    uint32_t state_count;
    uint32_t state_capacity;
    uint32_t dead_count; /* of states */
    struct wal__hashmap by_path;
    struct wal__hashmap by_name;
};

/* --- the view of a file -------------------------------------------------- */

struct wal__view_index {
    const struct wal__heap *heap;
    struct wal_store *store;
    struct wal__view_states **items; /* of each directory */
    uint32_t count;
    uint32_t capacity;
};

void wal__view_index_init(struct wal__view_index *index,
                          struct wal_store *store,
                          const struct wal__heap *heap);
void wal__view_index_deinit(struct wal__view_index *index);

/* Finds the view that a file belongs to. WAL_ENOTFOUND: none. */
enum wal_status wal__view_index_find(struct wal__view_index *index,
                                     struct wal_slice path,
                                     struct wal_view_info *place,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
