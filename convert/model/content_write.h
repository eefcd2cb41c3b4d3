/*
 * content_write.h - writes the content of messages.
 *
 * Clients write a block as an object of the same members with different names.
 * A form has the names of one client.
 *
 * Invariant: each block becomes one value, in order. wal__content_read and
 * wal__model_set_image_url read what is written.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_CONTENT_WRITE_H
#define AGENTWAL_CONVERT_MODEL_CONTENT_WRITE_H

#include "convert/model/model.h"
#include "format/json/json_out.h"

/* A client's names for blocks. What the client cannot have is NULL. */
struct wal__block_form {
    const char *text;      /* type of a text */
    const char *signature; /* key in thinking; NULL: thinking is a text */
    const char *redacted;  /* type of redacted thinking; NULL: a mark in it */
    const char *call;      /* type of a tool call */
    const char *arguments; /* key in a tool call */
    bool omits_empty;      /* members of a tool call; arguments are any JSON */
    /* Writes the members of an image. */
    void (*image)(struct wal__json_out *out,
                  const struct wal__model_block *block);
};

/* Writes a block as an object; a raw one without white space. */
void wal__content_write_block(struct wal__json_out *out,
                              const struct wal__block_form *form,
                              const struct wal__model_block *block);

/* Writes a member with an array of blocks. */
void wal__content_write_blocks(struct wal__json_out *out, const char *key,
                               const struct wal__block_form *form,
                               const struct wal__model_block *blocks,
                               size_t count);

/* Writes a member with all texts of the blocks as one string. `separator` is
 * between them; with `omits_empty` only between those that are not empty. */
void wal__content_write_texts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks,
                              size_t count, const char *separator,
                              bool omits_empty);

/* Writes the arguments of a call as a member. Clients require an object; other
 * values are wrapped as {"walconvArguments": VALUE}, which
 * wal__content_unwrap_arguments reverses. */
void wal__content_write_arguments(struct wal__json_out *out, const char *key,
                                  struct wal__json_span arguments);

/* Writes a member with an image's URL, or with its data as a data: URL. */
void wal__content_write_url(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block);

#endif
