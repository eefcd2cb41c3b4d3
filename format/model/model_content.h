/*
 * model_content.h - the content of a message as clients of today write it.
 *
 * Content is a string, or an array of blocks and strings. Blocks have the names
 * of Anthropic's interface, or of pi's: text; thinking, redacted_thinking;
 * tool_use, toolCall; tool_result; image.
 *
 * Invariant: order stays; a block of another kind stays as it is.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_CONTENT_H
#define AGENTWAL_FORMAT_MODEL_MODEL_CONTENT_H

#include "format/json/json_out.h"
#include "format/model/model_member.h"

/* Adds the blocks of content that has no results; one that it has stays as it
 * is. *fields grows by what the model has no place for. False: no memory. */
bool wal__content_read(struct wal__json_token content,
                       struct wal__model_blocks *blocks, uint32_t *fields);

/* Adds the calls of an array as OpenAI's interface has them: {id, function:
 * {name, arguments}}, arguments a string with JSON in it; or {id, name, input
 * or arguments}. False: no memory. */
bool wal__content_read_calls(struct wal__json_token calls,
                             struct wal__model_blocks *blocks);

/* The arguments of a call as a member: an object as clients want it, which for
 * others is {"walconvArguments": VALUE}; and what is in such an object. */
void wal__content_write_arguments(struct wal__json_out *out, const char *key,
                                  struct wal__json_span arguments);
struct wal__json_span
wal__content_unwrap_arguments(struct wal__json_span object);

/* The members of blocks, in an object that is open: of thinking, its signature
 * under a key; of a call of a tool, of that type, its arguments under a key. */
void wal__content_write_thinking(struct wal__json_out *out,
                                 const struct wal__model_block *block,
                                 const char *signature);
void wal__content_write_call(struct wal__json_out *out,
                             const struct wal__model_block *block,
                             const char *type, const char *arguments);

/* The items of a message: results of tools, and what stands between them. */
struct wal__content_pieces {
    struct wal__arena *arena;
    struct wal__model_item *items;
    size_t count;
    size_t capacity;
    struct wal__json_span first_call; /* of the first result, or empty */
};

/*
 * Splits the content of a message into items, at least one, all like `item`
 * but for what they hold. Each goes under the one before it; all but the last
 * have ids made of the item's. False: no memory.
 */
bool wal__content_split(struct wal__content_pieces *pieces,
                        const struct wal__model_item *item,
                        struct wal__json_token content);

/* Gives the pieces, the first under `parent`. False: the sink wants no more. */
bool wal__content_emit(struct wal__content_pieces *pieces,
                       struct wal__json_span parent,
                       struct wal__model_reader *reader);

#endif
