/*
 * assert.h - assertions that stay on in release: a broken invariant aborts
 * before it reaches the disk.
 */
#ifndef AGENTWAL_FORMAT_BYTES_ASSERT_H
#define AGENTWAL_FORMAT_BYTES_ASSERT_H

#define WAL__ASSERT(condition) \
    ((condition) ? (void)0 : wal__assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void wal__assert_failed(const char *condition, const char *file,
                                  int line);

#endif
