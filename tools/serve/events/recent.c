/*
 * recent.c - the newest events (recent.h).
 */
#include "tools/serve/events/recent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct serve_event *at(const struct serve_recent *recent,
                              uint64_t number)
{
    return (struct serve_event *)(uintptr_t)&recent
        ->items[number % SERVE_RECENT_COUNT];
}

static void drop_oldest(struct serve_recent *recent)
{
    struct serve_event *oldest = at(recent, recent->first);

    recent->after = oldest->sequence;
    recent->bytes -= oldest->size;
    explicit_bzero(oldest->data, oldest->size);
    free(oldest->data);
    oldest->data = NULL;
    recent->first++;
    recent->count--;
}

void serve_recent_add(struct serve_recent *recent, struct serve_event event)
{
    assert(event.sequence > recent->after);
    while (recent->count == SERVE_RECENT_COUNT ||
           (recent->count > 0 &&
            recent->bytes + event.size > SERVE_RECENT_BYTES)) {
        drop_oldest(recent);
    }
    *at(recent, recent->first + recent->count) = event;
    recent->count++;
    recent->bytes += event.size;
}

const struct serve_event *serve_recent_next(const struct serve_recent *recent,
                                            uint64_t position, uint32_t session)
{
    uint64_t low = recent->first;
    uint64_t high = recent->first + recent->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (at(recent, middle)->sequence <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low < recent->first + recent->count) {
        const struct serve_event *event = at(recent, low++);

        if (session == 0 || event->session == session || event->session == 0) {
            return event;
        }
    }
    return NULL;
}

void serve_recent_drop(struct serve_recent *recent, uint64_t upto)
{
    while (recent->count > 0 && at(recent, recent->first)->sequence <= upto) {
        drop_oldest(recent);
    }
}

void serve_recent_deinit(struct serve_recent *recent)
{
    serve_recent_drop(recent, UINT64_MAX);
}
