/*
 * opencode_id.h - ids of OpenCode's storage.
 *
 * A prefix of four characters, a number of 48 bits in hexadecimal digits, and
 * 14 characters that tell ids of one number apart.
 *
 * Invariant: ids of one prefix are in the order of their numbers.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_ID_H
#define AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_ID_H

#include "format/model/model.h"

#define WAL__OPENCODE_ID_SIZE 32 /* with quotes */

void wal__opencode_id_make(char id[WAL__OPENCODE_ID_SIZE], const char *prefix,
                           uint64_t number, uint64_t hash);

/* Whether the string is an id with that prefix: all characters are such as a
 * file's name may have. */
bool wal__opencode_is_id(struct wal__json_span id, const char *prefix);

/* The number of an id. */
uint64_t wal__opencode_id_number(struct wal__json_span id);

struct wal__json_span
wal__opencode_id_span(const char id[WAL__OPENCODE_ID_SIZE]);

#endif
