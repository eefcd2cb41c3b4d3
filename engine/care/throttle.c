/*
 * throttle.c - a leaky bucket of bytes, and pauses after slow syncs
 * (throttle.h).
 */
#include "engine/care/throttle.h"

#include <string.h>

#include "engine/base/error.h"

enum {
    STEP = 64 * 1024,         /* bytes between two looks at the clock */
    PAUSE_MAX_NS = 100000000, /* after a sync */
    AVERAGE_OF = 8,           /* syncs, about */
    SLOW_FACTOR = 2,
    SLICE_NS = 250000,     /* of work */
    REPORT_NS = 250000000, /* between reports */
    NS_PER_US = 1000,
    US_PER_S = 1000000
};

void wal__throttle_init(struct wal__throttle *throttle,
                        const struct wal__io *io, uint64_t rate)
{
    memset(throttle, 0, sizeof(*throttle));
    throttle->io = io;
    throttle->rate = rate;
}

void wal__throttle_set_progress(struct wal__throttle *throttle,
                                wal__throttle_progress_fn *progress, void *ctx)
{
    throttle->progress = progress;
    throttle->ctx = ctx;
}

void wal__throttle_expect(struct wal__throttle *throttle, uint64_t done,
                          uint64_t total)
{
    throttle->done = done;
    throttle->total = total;
}

enum wal_status wal__throttle_report(struct wal__throttle *throttle,
                                     uint64_t done, uint64_t total,
                                     struct wal_error *error)
{
    wal__throttle_expect(throttle, done, total);
    throttle->reported_ns = throttle->io->monotonic_ns(throttle->io->ctx);
    return throttle->progress == NULL ||
                   throttle->progress(throttle->ctx, done, total)
               ? WAL_OK
               : wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
}

/* Reports the same again when it is time. */
static enum wal_status report_again(struct wal__throttle *throttle,
                                    uint64_t now, struct wal_error *error)
{
    if (throttle->reported_ns == 0) {
        throttle->reported_ns = now;
    }
    return now - throttle->reported_ns < REPORT_NS
               ? WAL_OK
               : wal__throttle_report(throttle, throttle->done, throttle->total,
                                      error);
}

bool wal__throttle_is_limited(const struct wal__throttle *throttle)
{
    return throttle->rate != UINT64_MAX;
}

static void pause_for(struct wal__throttle *throttle, uint64_t ns)
{
    const uint32_t never_woken = 0;
    const struct wal__io *io = throttle->io;

    io->futex_wait(io->ctx, &never_woken, 0, ns);
    throttle->begun_ns = io->monotonic_ns(io->ctx);
}

/* How long the bytes take at the rate; whole microseconds, so that nothing
 * overflows. */
static uint64_t duration_of(uint64_t bytes, uint64_t rate)
{
    uint64_t seconds = bytes / rate;
    uint64_t rest = bytes % rate;
    uint64_t us = rate > UINT64_MAX / US_PER_S ? rest / (rate / US_PER_S)
                                               : (rest * US_PER_S) / rate;

    return (seconds * US_PER_S + us) * NS_PER_US;
}

/* Sleeps, and reports meanwhile. */
static enum wal_status sleep_for(struct wal__throttle *throttle, uint64_t ns,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (ns > 0 && status == WAL_OK) {
        uint64_t part = ns < REPORT_NS ? ns : REPORT_NS;

        pause_for(throttle, part);
        ns -= part;
        status = report_again(throttle, throttle->begun_ns, error);
    }
    return status;
}

enum wal_status wal__throttle_spend(struct wal__throttle *throttle,
                                    uint64_t bytes, struct wal_error *error)
{
    uint64_t now;

    throttle->unpaid += bytes;
    if (throttle->unpaid < STEP) {
        return WAL_OK;
    }
    now = throttle->io->monotonic_ns(throttle->io->ctx);
    if (!wal__throttle_is_limited(throttle)) {
        throttle->unpaid = 0;
        return report_again(throttle, now, error);
    }
    if (throttle->free_ns < now) {
        throttle->free_ns = now;
    }
    throttle->free_ns += duration_of(throttle->unpaid, throttle->rate);
    throttle->unpaid = 0;
    return sleep_for(throttle, throttle->free_ns - now, error);
}

void wal__throttle_count_sync(struct wal__throttle *throttle,
                              uint64_t duration_ns)
{
    bool is_slow = throttle->usual_ns != 0 &&
                   duration_ns / SLOW_FACTOR > throttle->usual_ns;

    if (!wal__throttle_is_limited(throttle)) {
        return;
    }
    if (is_slow) {
        pause_for(throttle,
                  duration_ns < PAUSE_MAX_NS ? duration_ns : PAUSE_MAX_NS);
    }
    throttle->usual_ns = throttle->usual_ns == 0
                             ? duration_ns
                             : throttle->usual_ns -
                                   throttle->usual_ns / AVERAGE_OF +
                                   duration_ns / AVERAGE_OF;
}

void wal__throttle_yield(struct wal__throttle *throttle)
{
    uint64_t now;

    if (!wal__throttle_is_limited(throttle)) {
        return;
    }
    now = throttle->io->monotonic_ns(throttle->io->ctx);
    if (throttle->begun_ns == 0) {
        throttle->begun_ns = now;
    }
    if (now - throttle->begun_ns >= SLICE_NS) {
        /* What took longer was waiting for a device, not work. */
        pause_for(throttle, SLICE_NS);
    }
}
