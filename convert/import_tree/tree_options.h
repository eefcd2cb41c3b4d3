/*
 * tree_options.h - the arguments of the calls that walk trees.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_TREE_OPTIONS_H
#define AGENTWAL_CONVERT_IMPORT_TREE_TREE_OPTIONS_H

#include "convert/import_tree/tree_walk.h"

/* Refuses paths and flags that are not valid. */
enum wal_status
wal__tree_check_arguments(const struct wal_slice *paths, uint32_t count,
                          const struct wal_import_options *options,
                          struct wal_error *error) WAL_MUST_USE;

/* Initialises an import without options, zeroed by the caller. */
void wal__tree_init_import(struct wal__import *import, struct wal_store *store,
                           const struct wal__heap *heap);

/* Sets the options of the walk and its import; options may be NULL. */
enum wal_status wal__tree_set_options(struct wal__tree_walk *walk,
                                      const struct wal_import_options *options,
                                      struct wal_error *error) WAL_MUST_USE;

/* Copies a path to the arena for the whole call; NULL: no memory. */
char *wal__tree_argument(struct wal__import *import, struct wal_slice path);

#endif
