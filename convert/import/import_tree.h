/*
 * import_tree.h - wal_import_file and wal_import_tree with a given heap, the
 * arguments of the calls that walk trees, and the import of one source that a
 * walk found.
 *
 * Threads: any; one at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_TREE_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_TREE_H

#include <stdbool.h>

#include "agentwal/import.h"
#include "convert/import/tree_walk.h"
#include "engine/base/heap.h"

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

/* Arguments are as those of the public calls and are not checked.
 * `is_one_source`: wal_import_file. */
enum wal_status wal__import_paths(struct wal_store *store,
                                  const struct wal_slice *paths, uint32_t count,
                                  bool is_one_source,
                                  const struct wal_import_options *options,
                                  const struct wal__heap *heap,
                                  struct wal_import_result *result,
                                  struct wal_error *error) WAL_MUST_USE;

/* Imports a file that a walk found, and reports it or its failure. */
enum wal_status wal__tree_import_file(struct wal__import *import,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error) WAL_MUST_USE;

/* The same for a session directory. */
enum wal_status
wal__tree_import_directory(struct wal__import *import,
                           const struct wal__tree_source *source,
                           struct wal_error *error) WAL_MUST_USE;

#endif
