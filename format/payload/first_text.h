/*
 * first_text.h - the beginning of the first user message, which names a session without a title
 * (SPEC.md 5.4).
 *
 * The message is the first of these objects that has a string member `role`: the payload itself,
 * its member `message`, its member `payload`. Of duplicate keys the last one counts.
 *
 * Invariant: a returned text is well-formed UTF-8 of 1 to WAL__FIRST_TEXT_MAX bytes that neither
 * begins nor ends with a space and has no control character. Outputs are untouched otherwise.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_PAYLOAD_FIRST_TEXT_H
#define AGENTWAL_FORMAT_PAYLOAD_FIRST_TEXT_H

#include <stdbool.h>

#include "format/bytes/bytes.h"
#include "format/json/json_text.h"

enum {
    WAL__FIRST_TEXT_MAX = 160,         /* bytes */
    WAL__FIRST_TEXT_SCAN_MAX = 1 << 20 /* bytes of the payload to scan */
};

/*
 * Whether `payload` is a user's message with text. If so, writes the beginning of the text: of
 * `content` if that is a string, else of its first element that is a string or a block of type text
 * or input_text, or the first text in `parts` that is no thought. Each run of white space and
 * control characters becomes one space. A message with isMeta or isSidechain true is not a user's
 * message. A block that begins with a context that clients inject does not count, nor does a string
 * (SPEC.md 5.4).
 */
bool wal__first_text(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX], size_t *size);

/* Whether a JSON string begins with a context that clients inject. */
bool wal__first_text_is_injected(struct wal__json_span string);

#endif
