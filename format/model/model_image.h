/*
 * model_image.h - images as URLs, the way OpenAI's interfaces have them.
 *
 * Invariant: what is written is read again by wal__model_set_image_url.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_IMAGE_H
#define AGENTWAL_FORMAT_MODEL_MODEL_IMAGE_H

#include "format/json/json_out.h"
#include "format/model/model.h"

/* A member with the image's URL, or with a data: URL of what it holds. */
void wal__model_write_image(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block);

#endif
