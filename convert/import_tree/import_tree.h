/*
 * import_tree.h - wal_import_file and wal_import_tree with a given heap, and
 * the import of one source that a walk found.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_IMPORT_TREE_H
#define AGENTWAL_CONVERT_IMPORT_TREE_IMPORT_TREE_H

#include <stdbool.h>

#include "agentwal/import.h"
#include "convert/import_tree/tree_walk.h"
#include "engine/base/heap.h"

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
