/*
 * process.c - counting forks (process.h).
 */
#include "bindings/python/src/core/process.h"

#include <pthread.h>
#include <stdatomic.h>

/* Of the process, and so of all its interpreters. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_watched;
static atomic_uint_least32_t generation;

static void count_child(void)
{
    (void)atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    is_watched = pthread_atfork(NULL, NULL, count_child) == 0;
}

bool process_watch(void)
{
    return pthread_once(&once, watch) == 0 && is_watched;
}

uint32_t process_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
