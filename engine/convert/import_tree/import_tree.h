/*
 * import_tree.h - wal_import_file and wal_import_tree with a given heap, for
 * tests.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_IMPORT_TREE_IMPORT_TREE_H
#define AGENTWAL_ENGINE_CONVERT_IMPORT_TREE_IMPORT_TREE_H

#include <stdbool.h>

#include "agentwal/import.h"
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

#endif
