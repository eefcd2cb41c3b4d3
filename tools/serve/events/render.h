/*
 * render.h - an item of the log as an event (docs/seeing.md, Events).
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_RENDER_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_RENDER_H

#include <stdio.h>

#include "tools/serve/events/order.h"

struct wal_record_cursor;

/* The owner sets `store` and zeroes the others. */
struct serve_renderer {
    struct wal_store *store;
    struct wal_record_cursor *records;
    /* Of the last record. */
    uint32_t number;
    struct wal_session *session;
    struct wal_entry_cursor *entries;
};

/* Writes the event of an item; nothing when its record is gone, damaged, or not
 * shown. */
void serve_render(struct serve_renderer *renderer,
                  const struct serve_order_item *item, FILE *file);

void serve_renderer_deinit(struct serve_renderer *renderer);

#endif
