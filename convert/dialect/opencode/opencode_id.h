/*
 * opencode_id.h - ids of OpenCode's storage.
 *
 * A prefix of four characters, a number of 48 bits in hexadecimal digits, and
 * 14 characters that distinguish ids with the same number.
 *
 * Invariant: ids with the same prefix sort by their numbers.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_ID_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_ID_H

#include "convert/model/model.h"

#define WAL__OPENCODE_ID_SIZE 32 /* with quotes */

/* Writes an id, with quotes. `prefix` has four characters. */
void wal__opencode_id_make(char id[WAL__OPENCODE_ID_SIZE], const char *prefix,
                           uint64_t number, uint64_t hash);

/* Whether the string is an id with that prefix; then all of its characters are
 * allowed in file names. */
bool wal__opencode_is_id(struct wal__json_span id, const char *prefix);

/* Returns the number of a valid id. */
uint64_t wal__opencode_id_number(struct wal__json_span id);

/* Returns the id as a span, with quotes. */
struct wal__json_span
wal__opencode_id_span(const char id[WAL__OPENCODE_ID_SIZE]);

#endif
