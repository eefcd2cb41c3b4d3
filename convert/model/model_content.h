/*
 * model_content.h - reads the content of a message as current clients write it, and writes it.
 *
 * Content is a string, or an array of blocks and strings. Blocks have the types of Anthropic's API
 * or of pi: text; thinking, redacted_thinking; tool_use, toolCall; tool_result; image. Clients
 * write a block as an object of the same members with different names. A form has the names of one
 * client.
 *
 * An object without a type is a part of Google's API: text, which `thought` makes thinking;
 * functionCall; functionResponse, which is a result; inlineData and fileData, which are images.
 *
 * Invariant: the order is kept; a block of another type is kept unchanged. Each block becomes one
 * value, which wal__content_read and wal__model_set_image_url read again.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_CONTENT_H
#define AGENTWAL_CONVERT_MODEL_MODEL_CONTENT_H

#include "convert/model/model.h"
#include "convert/model/model_member.h"
#include "format/json/json_out.h"

/* Adds the blocks of content. A result becomes a raw block. Increases
 * *fields by the fields that the model cannot represent. False: no memory. */
bool wal__content_read(struct wal__json_token content, struct wal__model_blocks *blocks,
                       uint32_t *fields);

/* Token counts of Anthropic's API: fields of struct wal__model_usage. */
extern const struct wal__field wal__usage_fields[];

/* Adds the calls of an array in the form of OpenAI's API: {id, function: {name, arguments}}, where
 * arguments is a string with JSON; or {id, name, input or arguments}. False: no memory. */
bool wal__content_read_calls(struct wal__json_token calls, struct wal__model_blocks *blocks);

/* Reads the blocks of a message: its content, then its calls, both of which may be absent. False:
 * no memory. */
bool wal__content_read_item(struct wal__json_token content, struct wal__json_token calls,
                            struct wal__arena *arena, struct wal__model_item *item);
struct wal__json_span wal__content_unwrap_arguments(struct wal__json_span object);

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
bool wal__content_split(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                        struct wal__json_token content);

/* Adds an item as a piece. False: no memory. */
bool wal__content_add(struct wal__content_pieces *pieces, const struct wal__model_item *item);

/* Makes the pieces, of which there is one at least, the items of one line: the last has its id, the
 * others ids derived from it, and the first its raw text. False: no memory. */
bool wal__content_number(struct wal__content_pieces *pieces, struct wal__json_span id);

/* Emits the pieces, the first with `parent`. False: the sink returned false. */
bool wal__content_emit(struct wal__content_pieces *pieces, struct wal__json_span parent,
                       struct wal__model_reader *reader);

/* A client's names for blocks. What the client cannot have is NULL. */
struct wal__block_form {
    const char *text;      /* type of a text */
    const char *signature; /* key in thinking; NULL: thinking is a text */
    const char *redacted;  /* type of redacted thinking; NULL: a mark in it */
    const char *call;      /* type of a tool call */
    const char *arguments; /* key in a tool call */
    bool omits_empty;      /* members of a tool call; arguments are any JSON */
    /* Writes the members of an image. */
    void (*image)(struct wal__json_out *out, const struct wal__model_block *block);
};

/* Writes a block as an object; a raw one without white space. */
void wal__content_write_block(struct wal__json_out *out, const struct wal__block_form *form,
                              const struct wal__model_block *block);

/* Writes a member with an array of blocks. */
void wal__content_write_blocks(struct wal__json_out *out, const char *key,
                               const struct wal__block_form *form,
                               const struct wal__model_block *blocks, size_t count);

/* Writes a member with an array of blocks as parts of Google's API. */
void wal__content_write_parts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks, size_t count);

/* Writes a result as a functionResponse, with its texts as one, and its images after it. */
void wal__content_write_response(struct wal__json_out *out, const struct wal__model_item *item);

/* Whether a functionResponse has the blocks of the result as they are: a text, or that and an
 * image. */
bool wal__content_is_response(const struct wal__model_item *item);

/* Writes a member with all texts of the blocks as one string. `separator` is between them; with
 * `omits_empty` only between those that are not empty. */
void wal__content_write_texts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks, size_t count,
                              const char *separator, bool omits_empty);

/* Writes the arguments of a call as a member. Clients require an object; other values are wrapped
 * as {"walconvArguments": VALUE}, which wal__content_unwrap_arguments reverses. */
void wal__content_write_arguments(struct wal__json_out *out, const char *key,
                                  struct wal__json_span arguments);

/* Writes a member, or without a key a value, with an image's URL, or its data as a data: URL. */
void wal__content_write_url(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block);

#endif
