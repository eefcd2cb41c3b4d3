/*
 * features.h - what ranks a row: a function of FTS5, `features(text)`, which
 * returns for each phrase of the expression how often the row has it, weighted
 * by column, as an array of float.
 *
 * Threads: one at a time per connection.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FEATURES_H
#define AGENTWAL_SEARCH_INDEX_FEATURES_H

#include <sqlite3.h>

enum {
    WAL__FEATURES_MAX = 32 /* phrases; the others do not rank */
};

/* Returns a code of SQLite. */
int wal__features_register(sqlite3 *db);

#endif
