/*
 * tokenizer.h - the FTS5 tokenizer `agentwal`: unicode61 for scripts with
 * spaces, pairs of characters for the others (docs/search.md, Words).
 *
 * Threads: one at a time per connection.
 */
#ifndef AGENTWAL_SEARCH_TEXT_TOKENIZER_H
#define AGENTWAL_SEARCH_TEXT_TOKENIZER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

enum {
    WAL__TOKEN_MAX = 64 /* bytes of a word; longer ones are left out */
};

/* Returns the interface of FTS5 of a connection; NULL: SQLite lacks it. */
fts5_api *wal__tokenizer_api(sqlite3 *db);

/* Makes the tokenizer known to a connection. Returns a code of SQLite. */
int wal__tokenizer_register(sqlite3 *db);

struct wal__tokenizer;

/* A tokenizer outside of a table. WAL_ENOMEM. */
enum wal_status wal__tokenizer_open(struct wal__tokenizer **tokenizer);
void wal__tokenizer_close(struct wal__tokenizer *tokenizer);

/* Receives a word, normalised, and its bytes in the text; is_colocated: at the
 * place of the one before it. False: stop. */
typedef bool wal__token_fn(void *ctx, const char *token, size_t size,
                           size_t begin, size_t end, bool is_colocated);

/* Passes the words of a text to `each`; of a query without the last characters
 * alone. Returns false when `each` stopped it, or without memory. */
bool wal__tokenizer_run(struct wal__tokenizer *tokenizer, const void *text,
                        size_t size, bool is_query, wal__token_fn *each,
                        void *ctx);

#endif
