/*
 * view_states.h - the states of the views of one root, by the paths of their
 * files.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_STATES_H
#define AGENTWAL_CONVERT_STATE_VIEW_STATES_H

#include "convert/files/view_fs.h"
#include "convert/state/view_state.h"
#include "engine/base/containers.h"

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

/* Creates the states of a directory that were not read yet; NULL: no memory. */
struct wal__view_states *wal__view_states_create(const struct wal__heap *heap,
                                                 const uint8_t store[16],
                                                 const char *name);
void wal__view_states_destroy(struct wal__view_states *states);

/* Finds the view of a path below the root; *found is NULL if there is none. */
enum wal_status wal__view_states_find(struct wal__view_states *states,
                                      const char *path,
                                      const struct wal__view_path **found,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
