/*
 * utf8.h - checks of text. Any thread.
 */
#ifndef AGENTWAL_NODE_UTF8_H
#define AGENTWAL_NODE_UTF8_H

#include <agentwal.h>
#include <stdbool.h>
#include <uchar.h>

/* Whether every byte is below 128. */
bool utf8_is_ascii(struct wal_slice text);

/* Whether it is UTF-8: no overlong form, no surrogate, nothing above
 * U+10FFFF. */
bool utf8_is_valid(struct wal_slice text);

/* Whether U+FFFD is in it, which a half of a surrogate pair becomes. */
bool utf8_has_replacement(struct wal_slice text);

/* Whether UTF-16 has half a surrogate pair. */
bool utf16_has_half(const char16_t *units, size_t count);

#endif
