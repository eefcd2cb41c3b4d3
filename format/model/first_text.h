/*
 * first_text.h - what a session is called by until it has a title, the
 * beginning of a user's message (SPEC.md 5.4).
 *
 * A message is an object with a string member `role`: the payload itself, or
 * its member `message`, or its member `payload`, the first of them that has
 * one. Of members of one name the last one counts.
 *
 * Invariant: a text that is given is well-formed UTF-8 of 1 to
 * WAL__FIRST_TEXT_MAX bytes that neither begins nor ends with a space and has
 * no control character. Outputs are untouched otherwise.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_FIRST_TEXT_H
#define AGENTWAL_FORMAT_MODEL_FIRST_TEXT_H

#include <stdbool.h>

#include "format/bytes/fmt.h"

enum {
    WAL__FIRST_TEXT_MAX = 160, /* bytes */
    WAL__FIRST_TEXT_SCAN_MAX =
        1 << 20 /* bytes of the payload that are looked at */
};

/*
 * Whether `payload` is a user's message with text, and the beginning of it:
 * of `content` when that is a string, else of its first item that is a string
 * or a block of type text or input_text. White space and control characters
 * become one space. What an agent tells itself (isMeta or isSidechain is true)
 * is no user's message, and neither is anything but JSON.
 */
bool wal__first_text(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX],
                     size_t *size);

#endif
