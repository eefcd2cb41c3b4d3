/*
 * model_content.h - reads the content of a message as current clients write it.
 *
 * Content is a string, or an array of blocks and strings. Blocks have the types
 * of Anthropic's API or of pi: text; thinking, redacted_thinking; tool_use,
 * toolCall; tool_result; image.
 *
 * Invariant: the order is kept; a block of another type is kept unchanged.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_CONTENT_H
#define AGENTWAL_CONVERT_MODEL_MODEL_CONTENT_H

#include "convert/model/model_member.h"

/* Adds the blocks of content. A tool_result becomes a raw block. Increases
 * *fields by the fields that the model cannot represent. False: no memory. */
bool wal__content_read(struct wal__json_token content,
                       struct wal__model_blocks *blocks, uint32_t *fields);

/* Adds the calls of an array in the form of OpenAI's API: {id, function: {name,
 * arguments}}, where arguments is a string with JSON; or {id, name, input or
 * arguments}. False: no memory. */
bool wal__content_read_calls(struct wal__json_token calls,
                             struct wal__model_blocks *blocks);

/* Reads the blocks of a message: its content, then its calls, both of which may
 * be absent. False: no memory. */
bool wal__content_read_item(struct wal__json_token content,
                            struct wal__json_token calls,
                            struct wal__arena *arena,
                            struct wal__model_item *item);

/* The only member of arguments that were not an object when they were written.
 * Returns its value, or else the object. */
#define WAL__WRAPPED_ARGUMENTS "walconvArguments"
struct wal__json_span
wal__content_unwrap_arguments(struct wal__json_span object);

/* The items of a message: results of tools, and the content between them. */
struct wal__content_pieces {
    struct wal__arena *arena;
    struct wal__model_item *items;
    size_t count;
    size_t capacity;
    struct wal__json_span first_call; /* of the first result, or empty */
};

/*
 * Splits the content of a message into one or more items, which are copies of
 * `item` with other content. Each is the parent of the next. All but the last
 * have ids derived from the item's. False: no memory.
 */
bool wal__content_split(struct wal__content_pieces *pieces,
                        const struct wal__model_item *item,
                        struct wal__json_token content);

/* Emits the pieces, the first with `parent`. False: the sink returned false. */
bool wal__content_emit(struct wal__content_pieces *pieces,
                       struct wal__json_span parent,
                       struct wal__model_reader *reader);

#endif
