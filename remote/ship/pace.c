/*
 * pace.c - how often a shipper may send (pace.h).
 */
#include "remote/ship/pace.h"

void wal__pace_init(struct wal__pace *pace, uint32_t per_second)
{
    *pace = (struct wal__pace){.interval_ns = UINT64_C(1000000000) / per_second,
                               .burst_ns = UINT64_C(250000000)};
}

uint64_t wal__pace_due_ns(const struct wal__pace *pace, bool is_waiting)
{
    uint64_t due =
        pace->next_ns > pace->burst_ns ? pace->next_ns - pace->burst_ns : 0;
    uint64_t later = pace->sent_ns + pace->interval_ns;

    return is_waiting && later > due ? later : due;
}

void wal__pace_count(struct wal__pace *pace, uint64_t now_ns)
{
    pace->next_ns =
        (now_ns > pace->next_ns ? now_ns : pace->next_ns) + pace->interval_ns;
    pace->sent_ns = now_ns;
}
