/*
 * poison.c - poisoning a log (SPEC.md 4.2).
 *
 * Invariant: the first cause remains until the log is healed. Any thread.
 */
#include "engine/log/control.h"
#include "format/bytes/assert.h"

uint64_t wal__control_encode_poison(enum wal__poison_kind kind, uint32_t detail)
{
    return (uint64_t)kind << 32 | detail;
}

void wal__control_poison(struct wal__control_log *shared,
                         enum wal__poison_kind kind, uint32_t detail)
{
    uint64_t none = 0;

    WAL__ASSERT(kind != WAL__POISON_NONE);
    (void)atomic_compare_exchange_strong(
        &shared->poison, &none, wal__control_encode_poison(kind, detail));
}
