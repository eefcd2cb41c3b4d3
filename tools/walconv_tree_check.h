/*
 * walconv_tree_check.h - whether the files of a tree agree with their names.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_TREE_CHECK_H
#define AGENTWAL_TOOLS_WALCONV_TREE_CHECK_H

#include "tools/walconv_damage.h"
#include "tools/walconv_tree.h"

/* Adds what is odd in a file of JSON: ids that are not those in its path. */
void walconv_tree_check(const struct walconv_tree *tree,
                        const struct wal__dialect *dialect,
                        const struct walconv_tree_file *file,
                        struct wal_slice json, struct walconv_damages *damages);

/* Adds what a session's directory lacks. */
void walconv_tree_check_directory(const struct walconv_tree *tree,
                                  const struct wal__dialect *dialect,
                                  struct walconv_damages *damages);

#endif
