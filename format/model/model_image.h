/*
 * model_image.h - images as URLs, as in OpenAI's APIs.
 *
 * Invariant: wal__model_set_image_url reads what is written.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_IMAGE_H
#define AGENTWAL_FORMAT_MODEL_MODEL_IMAGE_H

#include "format/json/json_out.h"
#include "format/model/model.h"

/* Writes a member with the image's URL, or with its data as a data: URL. */
void wal__model_write_image(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block);

#endif
