/*
 * tokenizer.h - the FTS5 tokenizer `agentwal`: unicode61 for scripts with spaces, pairs of
 * characters for the others (docs/search.md, Words).
 *
 * It splits text into pieces: runs of scripts without spaces between words and of symbols, runs
 * that are no words, and the rest. Invariant: total over any bytes; the pieces are consecutive and
 * cover the text. Ill-formed UTF-8 is part of the rest.
 *
 * Threads: one at a time per connection.
 */
#ifndef AGENTWAL_SEARCH_TEXT_TOKENIZER_H
#define AGENTWAL_SEARCH_TEXT_TOKENIZER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

enum wal__piece_kind {
    WAL__PIECE_REST,
    WAL__PIECE_UNSPACED, /* characters of scripts without spaces,
                             * and symbols such as emoji */
    WAL__PIECE_NOISE     /* Base64 */
};

enum {
    WAL__NOISE_MIN = 200 /* bytes of Base64 that are left out */
};

struct wal__script_piece {
    enum wal__piece_kind kind;
    size_t begin;
    size_t end;
};

/* Sets *piece to the one that begins at `at`; false at the end of the text. */
bool wal__piece_next(const uint8_t *text, size_t size, size_t at, struct wal__script_piece *piece);

/* Bytes of the well-formed UTF-8 character at `at` and its code point; 0 when it is ill-formed or
 * at the end. */
size_t wal__character(const uint8_t *text, size_t size, size_t at, uint32_t *code_point);

/* Whether it is a character of a script without spaces between words, or a symbol such as an
 * emoji. */
bool wal__is_unspaced(uint32_t code_point);

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

/* Receives a word, normalised, and its bytes in the text; is_colocated: at the place of the one
 * before it. False: stop. */
typedef bool wal__token_fn(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                           bool is_colocated);

/* Passes the words of a text to `each`; of a query without the last characters alone. Returns false
 * when `each` stopped it, or without memory. */
bool wal__tokenizer_run(struct wal__tokenizer *tokenizer, const void *text, size_t size,
                        bool is_query, wal__token_fn *each, void *ctx);

#endif
