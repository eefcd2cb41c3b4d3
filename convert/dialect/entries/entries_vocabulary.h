/*
 * entries_vocabulary.h - the vocabulary of session entries.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_ENTRIES_ENTRIES_VOCABULARY_H
#define AGENTWAL_CONVERT_DIALECT_ENTRIES_ENTRIES_VOCABULARY_H

#include "convert/model/vocabulary.h"

/* Kinds of items other than messages, by the type of an entry; the fields are
 * in its payload. */
extern const struct wal__word wal__entries_types[];

/* Stop reasons. */
extern const struct wal__word wal__entries_stops[];

/* Fields of struct wal__model_usage. */
extern const struct wal__field wal__entries_usage[];

#endif
