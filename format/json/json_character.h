/*
 * json_character.h - the characters of a JSON string, one at a time, without a
 * buffer for the string.
 *
 * Precondition: the scanner has accepted the string.
 *
 * Invariant: nothing at or after `end` is read, and each call that returns true
 * advances. Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_CHARACTER_H
#define AGENTWAL_FORMAT_JSON_JSON_CHARACTER_H

#include "format/json/json_text.h"

/* Decodes the character at `*at`, which is before `end`, escaped or not, and
 * advances past it. If `end` truncates the character, returns false and leaves
 * *code_point untouched. */
bool wal__json_character_read(const uint8_t **at, const uint8_t *end,
                              uint32_t *code_point);

/* Encodes a character as UTF-8 and returns its size, 1 to 4. */
size_t wal__json_character_write(uint32_t code_point, uint8_t out[4]);

/* Whether two JSON strings, with their quotes, decode to the same text. */
bool wal__json_characters_equal(struct wal__json_span a,
                                struct wal__json_span b);

#endif
