/*
 * first_text.h - the beginning of the first user message, which names a session without a title
 * (SPEC.md 5.4).
 *
 * The message is the first of these objects that has a string member `role`: the payload itself,
 * its member `message`, its member `payload`. Without one it is the payload if that has the type
 * `user`, and its member `data` if the type is `user.message`; the `input` if it is `turn.prompt`;
 * without a type the `user_input` of `message.payload`. Of duplicate keys the last one counts.
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
 * `content` if that is a string, else of the first element of it or of `parts` that is a string, or
 * a block of type text or input_text; of `parts`, and of a message without a role, also of one
 * without a type that is no thought. Each run of white
 * space and control characters becomes one space. A message with isMeta or isSidechain true is not
 * a user's message. A block that begins with a context that clients inject does not count, nor does
 * a string (SPEC.md 5.4).
 */
bool wal__first_text(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX], size_t *size);

/* The same of a message with isSidechain, of a subagent's session. */
bool wal__first_text_of_subagent(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX],
                                 size_t *size);

/* What a tag says of the text in it, which a client wrote into a user's message. */
enum wal__user_tag {
    WAL__TAG_NONE,      /* no tag of a client */
    WAL__TAG_WORDS,     /* a person's words */
    WAL__TAG_COMMAND,   /* of a person to the client */
    WAL__TAG_ARGUMENTS, /* of the command */
    WAL__TAG_REPEATED,  /* the command once more */
    WAL__TAG_NOTE       /* of the client */
};

/* Reads a tag at the beginning of the characters of a JSON string, of which *inner is what is in
 * it, and removes it from them. In a text that ends with a user_query every other tag is a note. */
enum wal__user_tag wal__user_tag_read(struct wal__json_span *text, struct wal__json_span *inner);

/* Removes white space, escaped or not, from both ends of the characters of a JSON string. */
struct wal__json_span wal__user_trim(struct wal__json_span text);

/* Sets *words to the words of a person in the characters of a JSON string: what is in a tag for
 * them, else what follows notes. False: they are the client's, or a command. */
bool wal__user_words(struct wal__json_span text, struct wal__json_span *words);

/* What made a step that names its source, as `source` and `type` say, which may be empty. */
enum wal__step_author {
    WAL__STEP_UNKNOWN,
    WAL__STEP_PERSON,
    WAL__STEP_MODEL,
    WAL__STEP_TOOL,
    WAL__STEP_CLIENT
};

enum wal__step_author wal__step_author(struct wal__json_span source, struct wal__json_span type);

/* Whether a JSON string begins with a context that clients inject. */
bool wal__first_text_is_injected(struct wal__json_span string);

/* Whether a message with this source, a JSON string, is by the client, a skill or an agent. */
bool wal__first_text_is_client_source(struct wal__json_span string);

#endif
