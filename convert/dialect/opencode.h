/*
 * opencode.h - ids of OpenCode's storage.
 *
 * A prefix of four characters, a number of 48 bits in hexadecimal digits, and 14 characters that
 * distinguish ids with the same number.
 *
 * Invariant: ids with the same prefix sort by their numbers.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_H

#include "convert/model/model.h"

#define WAL__OPENCODE_ID_SIZE 32 /* with quotes */

/* Whether the string is an id with that prefix; then all of its characters are allowed in file
 * names. */
bool wal__opencode_is_id(struct wal__json_span id, const char *prefix);

/* Whether a tool's part of that status has the call's result. */
bool wal__opencode_has_result(struct wal__json_span status);

#endif
