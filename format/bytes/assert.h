/*
 * assert.h - assertions that stay on in release: a broken invariant aborts before it reaches the
 * disk.
 *
 * The condition must not depend on bytes that were read from a file or on arguments of the public
 * API: those are errors. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_BYTES_ASSERT_H
#define AGENTWAL_FORMAT_BYTES_ASSERT_H

#define WAL__ASSERT(condition) \
    ((condition) ? (void)0 : wal__assert_failed(#condition, __FILE__, __LINE__))

/* Prints the condition and its place to stderr, then aborts. Defined in engine/base/error.c. */
__attribute__((noreturn)) void wal__assert_failed(const char *condition, const char *file,
                                                  int line);

#endif
