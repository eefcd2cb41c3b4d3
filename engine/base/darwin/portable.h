/*
 * portable.h - what takes the place of calls that macOS lacks, in terms of POSIX: the tests run it
 * on other systems too. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_DARWIN_PORTABLE_H
#define AGENTWAL_ENGINE_BASE_DARWIN_PORTABLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/io.h"

/* Makes a descriptor close-on-exec, and if asked non-blocking. Negative with errno. */
int wal__portable_set_flags(int fd, bool blocks);
/* The same for both ends of a pipe or a pair; result is that of the call that made them. Closes
 * them on failure. */
int wal__portable_set_ends(int ends[2], bool blocks, int result);

/* Looks at the word every millisecond, more often at first. */
void wal__portable_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Looks every 10 ms which of the signals, which are blocked, is pending. */
int wal__portable_wait_signal(const sigset_t *signals, uint64_t timeout_ns);

/* Returns whether the time has not come yet, and how long it is until then. */
bool wal__portable_left(const struct timespec *until, struct timespec *left);

/* What a file system of this name is. One that is local may still be FUSE, or another machine's. */
enum wal__storage wal__portable_storage(const char *name, bool is_local);

#endif
