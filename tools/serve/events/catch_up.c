/*
 * catch_up.c - events for clients that lag (client.h).
 *
 * The parts of the log that were sorted last are kept: clients at about the
 * same position, and the next piece of one, find theirs.
 */
#include <stdlib.h>

#include "tools/serve/events/client.h"

/* Returns a part of the log with what is after the position. Reading lock. */
static struct serve_order *find_order(struct serve_feed *feed,
                                      uint64_t position, uint64_t limit)
{
    struct serve_order *oldest = &feed->orders[0];

    feed->uses++;
    for (size_t i = 0; i < SERVE_ORDERS; i++) {
        struct serve_order *order = &feed->orders[i];

        if (order->after <= position && position < order->upto) {
            order->used = feed->uses;
            return order;
        }
        if (order->used < oldest->used) {
            oldest = order;
        }
    }
    if (serve_order_read(oldest, feed->server->store, position, limit, NULL) !=
        WAL_OK) {
        serve_order_deinit(oldest);
        return NULL;
    }
    oldest->used = feed->uses;
    return oldest;
}

char *serve_catch_up(struct serve_feed *feed, uint32_t session, uint64_t limit,
                     uint64_t *position, size_t *size)
{
    char *data = NULL;
    FILE *file = open_memstream(&data, size);
    uint64_t at = *position;
    struct serve_order *order;

    if (file == NULL) {
        abort();
    }
    pthread_mutex_lock(&feed->reading);
    order = find_order(feed, at, limit);
    for (size_t i = order == NULL ? 0 : serve_order_find(order, at);
         order != NULL && i < order->count &&
         ftell(file) < SERVE_CATCH_UP_BYTES;
         i++) {
        const struct serve_order_item *item = &order->items[i];

        if (item->sequence > limit) {
            break;
        }
        if (session == 0 || item->session == session ||
            item->change == SERVE_REDACTS) {
            serve_render(&feed->renderer, item, file);
        }
        at = item->sequence;
    }
    if (order != NULL && serve_order_find(order, at) == order->count) {
        at = order->upto < limit ? order->upto : limit;
    }
    pthread_mutex_unlock(&feed->reading);
    fclose(file);
    *position = at;
    return data;
}
