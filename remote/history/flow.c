/*
 * flow.c - how many bytes of objects are on the way at a time (flow.h).
 */
#include "remote/history/flow.h"

void wal__flow_init(struct wal__flow *flow, uint64_t bytes, uint64_t max)
{
    *flow = (struct wal__flow){.bytes = bytes < max ? bytes : max, .max = max};
}

uint64_t wal__flow_object_size(const struct wal__flow *flow, uint64_t max)
{
    const uint64_t half = flow->bytes / 2;
    const uint64_t size = half < WAL__FLOW_MIN ? WAL__FLOW_MIN : half;

    return size < max ? size : max;
}

bool wal__flow_has_room(const struct wal__flow *flow, uint64_t on_way,
                        uint64_t size)
{
    return on_way == 0 || on_way + size <= flow->bytes;
}

/* Fewer, once for all that were on the way together. */
static void cut(struct wal__flow *flow, uint64_t bytes, uint64_t now_ms)
{
    flow->bytes = bytes < WAL__FLOW_MIN ? WAL__FLOW_MIN : bytes;
    if (flow->bytes > flow->max) {
        flow->bytes = flow->max;
    }
    flow->cut_ms = now_ms;
}

void wal__flow_count(struct wal__flow *flow, uint64_t size, bool failed,
                     uint64_t began_ms, uint64_t ended_ms)
{
    const uint64_t took_ms = ended_ms > began_ms ? ended_ms - began_ms : 0;
    /* A single one may be larger. */
    const uint64_t on_way = size > flow->bytes ? size : flow->bytes;

    if (!failed && took_ms < WAL__FLOW_FAST_MS) {
        flow->bytes += size;
        if (flow->bytes > flow->max) {
            flow->bytes = flow->max;
        }
    } else if (began_ms < flow->cut_ms) {
        return;
    } else if (failed) {
        cut(flow, flow->bytes / 4, ended_ms);
    } else if (took_ms > WAL__FLOW_SLOW_MS) {
        cut(flow, on_way / 1024 * WAL__FLOW_SLOW_MS / took_ms * 1024, ended_ms);
    }
}
