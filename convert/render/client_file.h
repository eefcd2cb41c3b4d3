/*
 * client_file.h - the path that a client gave the file of an imported session.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_RENDER_CLIENT_FILE_H
#define AGENTWAL_CONVERT_RENDER_CLIENT_FILE_H

#include "agentwal.h"
#include "convert/model/dialect.h"
#include "format/json/arena.h"

/*
 * Returns the path below the client's folder, terminated by NUL, in the arena:
 * of a session with this id and source, whose lines have the given dialect.
 * Returns an empty span when the source does not have it, or is the second one
 * of its path.
 */
struct wal__json_span wal__client_file(const struct wal__dialect *dialect,
                                       struct wal_slice id,
                                       struct wal_slice source,
                                       struct wal__arena *arena);

#endif
