/*
 * script.h - splits text into pieces for the tokenizer: runs of scripts without
 * spaces between words and of symbols, runs that are no words, and the rest
 * (docs/search.md, Words).
 *
 * Invariant: total over any bytes; the pieces are consecutive and cover the
 * text. Ill-formed UTF-8 is part of the rest.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_SEARCH_TEXT_SCRIPT_H
#define AGENTWAL_SEARCH_TEXT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
bool wal__piece_next(const uint8_t *text, size_t size, size_t at,
                     struct wal__script_piece *piece);

/* Bytes of the well-formed UTF-8 character at `at` and its code point; 0 when
 * it is ill-formed or at the end. */
size_t wal__character(const uint8_t *text, size_t size, size_t at,
                      uint32_t *code_point);

/* Whether it is a character of a script without spaces between words, or a
 * symbol such as an emoji. */
bool wal__is_unspaced(uint32_t code_point);

#endif
