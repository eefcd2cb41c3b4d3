/*
 * search_files.h - the index files of search in a store's directory, which
 * libagentwal-search makes and the engine only removes (docs/search.md, Files).
 */
#ifndef AGENTWAL_ENGINE_LOG_SEARCH_FILES_H
#define AGENTWAL_ENGINE_LOG_SEARCH_FILES_H

#include "engine/base/env.h"
#include "engine/log/control.h"

/*
 * Removes the index files of segments that log/ does not have, by their salt,
 * and those that are being made. After the segments that replace others are
 * published: then no file of a replaced segment gets a name any more. Stops at
 * the first failure. control: of the store, or NULL. Any thread; no lock.
 */
enum wal_status wal__search_files_sweep(const struct wal__env *env,
                                        const struct wal__control *control,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
