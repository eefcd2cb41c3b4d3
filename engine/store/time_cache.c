/*
 * time_cache.c - a sequence lock around the text of a millisecond
 * (time_cache.h).
 *
 * Invariant: a reader that sees a word of a newer text also sees that the
 * version changed. The words are written with release and read with acquire
 * order, so that the version's two changes enclose them.
 */
#include "engine/store/time_cache.h"

#include <assert.h>
#include <string.h>

bool wal__time_cache_get(struct wal__time_cache *cache, uint64_t ms,
                         char out[WAL__TIME_TEXT])
{
    uint64_t words[WAL__TIME_CACHE_WORDS];
    uint64_t version =
        atomic_load_explicit(&cache->version, memory_order_acquire);

    static_assert(sizeof(words) == WAL__TIME_TEXT, "the words are the text");
    if (version % 2 != 0 || version == 0 ||
        atomic_load_explicit(&cache->ms, memory_order_acquire) != ms) {
        return false;
    }
    for (int i = 0; i < WAL__TIME_CACHE_WORDS; i++) {
        words[i] = atomic_load_explicit(&cache->words[i], memory_order_acquire);
    }
    memcpy(out, words, sizeof(words));
    return atomic_load_explicit(&cache->version, memory_order_relaxed) ==
           version;
}

void wal__time_cache_put(struct wal__time_cache *cache, uint64_t ms,
                         const char text[WAL__TIME_TEXT])
{
    uint64_t words[WAL__TIME_CACHE_WORDS];
    uint64_t version =
        atomic_load_explicit(&cache->version, memory_order_relaxed);

    if (version % 2 != 0 || !atomic_compare_exchange_strong_explicit(
                                &cache->version, &version, version + 1,
                                memory_order_acquire, memory_order_relaxed)) {
        return;
    }
    memcpy(words, text, sizeof(words));
    atomic_store_explicit(&cache->ms, ms, memory_order_release);
    for (int i = 0; i < WAL__TIME_CACHE_WORDS; i++) {
        atomic_store_explicit(&cache->words[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&cache->version, version + 2, memory_order_release);
}
