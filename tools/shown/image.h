/*
 * image.h - images in the content of messages.
 *
 * Invariant: an image of more than SHOWN_IMAGE_MAX bytes is named without its
 * data.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_IMAGE_H
#define AGENTWAL_TOOLS_SHOWN_IMAGE_H

#include "tools/shown/shown.h"

enum {
    SHOWN_IMAGE_MAX = 4 << 20 /* bytes of Base64 */
};

/* Writes a block as a part of kind image; false if it is none. */
bool shown_image(struct shown *shown, struct wal__json_span block);

/* Writes the images in a list of blocks; none for any other value. */
void shown_images(struct shown *shown, const struct wal__json_token *blocks);

#endif
