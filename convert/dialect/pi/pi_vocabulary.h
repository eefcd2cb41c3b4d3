/*
 * pi_vocabulary.h - the vocabulary of pi.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_PI_PI_VOCABULARY_H
#define AGENTWAL_CONVERT_DIALECT_PI_PI_VOCABULARY_H

#include "convert/model/vocabulary.h"

/* Kinds of items, by the type of an entry. */
extern const struct wal__word wal__pi_entries[];

/* Stop reasons; each has a name. */
extern const struct wal__word wal__pi_stops[];

/* Fields of struct wal__model_usage. */
extern const struct wal__field wal__pi_usage[];

#endif
