/*
 * links.h - the paths of a request that lead through symbolic links, as paths that do not (SPEC.md
 * 5.13). Any thread; one call at a time per list.
 */
#ifndef AGENTWAL_ENGINE_FILES_LINKS_H
#define AGENTWAL_ENGINE_FILES_LINKS_H

#include "engine/base/worktree.h"
#include "engine/files/file_set.h"

/*
 * Resolves the links among the directories of each path; its last part is never followed. A path
 * stays as it is when the first link in it is a file of the list, when a link leads out of the
 * root, and when a directory cannot be looked at: capturing it decides. Calls of the work tree
 * follow no link, so that one that is replaced meanwhile leads nowhere else.
 *
 * The files are as wal__files_from_paths makes them, and are so afterwards: in order, each once.
 */
enum wal_status wal__files_resolve_links(struct wal__files *files,
                                         const struct wal__worktree_io *io,
                                         struct wal__worktree *tree, const char *root,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
