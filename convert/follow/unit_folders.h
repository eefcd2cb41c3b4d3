/*
 * unit_folders.h - the folders of a session directory that are watched.
 *
 * Threads: one thread at a time per watch.
 */
#ifndef AGENTWAL_CONVERT_FOLLOW_UNIT_FOLDERS_H
#define AGENTWAL_CONVERT_FOLLOW_UNIT_FOLDERS_H

#include "convert/follow/folder_watch.h"

/*
 * Watches a session directory at `path` below the argument, and the folders in
 * it that a client changes with every message: two levels, without OpenCode's
 * folders of parts, of which there is one per message; the message's own file
 * changes when it is complete. `place` is that of the folder around it.
 */
enum wal_status wal__unit_folders_watch(struct wal__folder_watch *watch,
                                        uint32_t argument, const char *name,
                                        const char *path,
                                        const struct wal__place *place,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
