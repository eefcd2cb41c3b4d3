/*
 * json_character.h - the characters of a JSON string, one at a time.
 *
 * For strings that the scanner has passed; no buffer is needed, however long
 * they are.
 *
 * Invariant: nothing at or behind `end` is read, and each call that answers
 * true moves on. Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_CHARACTER_H
#define AGENTWAL_FORMAT_JSON_JSON_CHARACTER_H

#include "format/json/json_text.h"

/* Moves `*at`, which is before `end`, over one character, escaped or not.
 * False, and `*code_point` untouched, where `end` cuts it. */
bool wal__json_character_read(const uint8_t **at, const uint8_t *end,
                              uint32_t *code_point);

/* Writes a character as UTF-8 and gives its size, 1 to 4. */
size_t wal__json_character_write(uint32_t code_point, uint8_t out[4]);

/* Whether two strings, with their quotes, stand for the same text. */
bool wal__json_characters_equal(struct wal__json_span a,
                                struct wal__json_span b);

#endif
