/*
 * time_cache.h - the text of the millisecond that was formatted last, since
 * many entries are made in one (SPEC.md 5.1). Any thread; no locks.
 */
#ifndef AGENTWAL_ENGINE_STORE_TIME_CACHE_H
#define AGENTWAL_ENGINE_STORE_TIME_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/store/input_text.h"

enum {
    WAL__TIME_CACHE_WORDS = WAL__TIME_TEXT / 8
};

/* Empty when all bytes are zero. */
struct wal__time_cache {
    atomic_uint_fast64_t version; /* odd: being replaced */
    atomic_uint_fast64_t ms;      /* since 1970 */
    atomic_uint_fast64_t words[WAL__TIME_CACHE_WORDS];
};

/* False if the text is not of this millisecond; `out` is undefined then. */
bool wal__time_cache_get(struct wal__time_cache *cache, uint64_t ms,
                         char out[WAL__TIME_TEXT]);
/* Does nothing while another thread replaces the text. */
void wal__time_cache_put(struct wal__time_cache *cache, uint64_t ms,
                         const char text[WAL__TIME_TEXT]);

#endif
