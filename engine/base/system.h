/*
 * system.h - what the library and the programs need of an operating system beyond ISO C and
 * POSIX.1-2008: one function per need, in the folder of the system (linux/, darwin/). Nothing else
 * calls a system by what only that system has, which a style test checks.
 *
 * Unless it says otherwise, a function returns like a system call: negative with errno on failure,
 * after EINTR too. What a system lacks fails with ENOTSUP, and the caller takes the portable path.
 * Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_SYSTEM_H
#define AGENTWAL_ENGINE_BASE_SYSTEM_H

#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "engine/base/io.h"

/* --- files -------------------------------------------------------------- */

/* Writes to stable storage what is written to the file, and its size. */
int wal__system_sync(int fd);
/* The same for the names of a directory, or a file and all of its attributes. */
int wal__system_sync_whole(int fd);
/* The same for all that is written on the file system of the descriptor. */
int wal__system_sync_file_system(int fd);
/* Starts to write a part of the file, to its end with size 0; a hint. */
void wal__system_write_back(int fd, uint64_t offset, uint64_t size);

/* Allocates disk space for [0,size), and extends the file to `size` if it is shorter. EOPNOTSUPP:
 * only bytes that are written get space. */
int wal__system_allocate(int fd, uint64_t size);
/* Makes a hole; the size remains. */
int wal__system_punch(int fd, uint64_t offset, uint64_t size);
/* Makes `to`, which is empty, share the blocks of `from`. */
int wal__system_clone(int to, int from);
/* Copies at most `size` bytes from *offset of a file, and advances it, to the end of another, as
 * the file system can do it best. Returns the bytes, 0 at the end of the file. */
ssize_t wal__system_copy(int to, int from, off_t *offset, size_t size);

/* Finds out on what storage the path is: io.h. */
int wal__system_storage(const char *path, enum wal__storage *storage, char *name);
/* Whether what is written in the file can be written again without space. */
bool wal__system_writes_in_place(int fd);
/* Asks for that, of an empty file. */
void wal__system_set_in_place(int fd);

/* Opens a file without a name in the directory; NULL: in memory. Close-on-exec. EOPNOTSUPP: a file
 * whose name is removed at once takes its place (descriptor.h). */
int wal__system_unnamed_file(const char *directory);
/* Opens such a file in memory again, with the flags of open(2), for a separate handle. */
int wal__system_reopen(int fd, int flags);
/* Whether reopen works; else errno, and the path that it lacks. */
bool wal__system_can_reopen(const char **lacks);

/* Times of a file: of its content, and of its content or its attributes. */
int64_t wal__system_modified_ns(const struct stat *stat);
int64_t wal__system_changed_ns(const struct stat *stat);

/* --- maps --------------------------------------------------------------- */

/* Faults in pages of a map from the beginning of one, for reading; for writing too. Fails where an
 * access would raise SIGBUS. */
int wal__system_populate(const void *at, size_t size);
int wal__system_populate_writable(void *at, size_t size);
/* Unmaps whole pages until they are touched again. */
void wal__system_evict(void *at, size_t size);

/* --- work trees --------------------------------------------------------- */

/* Opens the directory `name` as a place to name others from: it needs no permission to read it.
 * Follows a link, or fails with ELOOP or ENOTDIR. */
int wal__system_open_place(int directory, const char *name, bool follows);
/* The same for a path, of which no component is a link or leads above the root. */
int wal__system_open_beneath(int root, const char *path);

/* What stat(2) reports of a name, without following a link, and what keeps it from being
 * replaced. */
struct wal__system_entry {
    mode_t mode;
    uid_t user;
    bool is_immutable;
    bool is_mount_root;
};
int wal__system_stat_entry(int directory, const char *name, struct wal__system_entry *entry);
/* Whether this process may replace files of others in a sticky directory. */
bool wal__system_ignores_sticky(void);

/* --- processes ---------------------------------------------------------- */

/* As the calls of io.h. */
void wal__system_boot_id(uint8_t out[16]);
uint32_t wal__system_process_id(void);
uint64_t wal__system_start_time(uint32_t pid);
uint64_t wal__system_process_namespace(void);
bool wal__system_is_stopped(uint32_t pid);
void wal__system_list_mappers(const char *directory,
                              void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg);
void wal__system_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void wal__system_wake(const uint32_t *word, uint32_t count);

/* --- threads ------------------------------------------------------------ */

/* Names the calling thread; for debuggers. */
void wal__system_name_thread(const char *name);
/* Processors that this process may use; at least 1. */
uint32_t wal__system_processors(void);
/* Whether the calling thread runs before all that are not of a real-time class. */
bool wal__system_is_real_time(void);

/* As the functions of pthread.h, of a mutex that is held for a moment, and spins for that long; of
 * a lock that a waiting writer gets before new readers; and of a condition that is waited for until
 * a time of the monotonic clock: 0 or ETIMEDOUT. */
void wal__system_mutex_init(pthread_mutex_t *mutex);
void wal__system_rwlock_init(pthread_rwlock_t *lock);
void wal__system_cond_init(pthread_cond_t *cond);
int wal__system_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          const struct timespec *until);

/* --- clocks and random bytes -------------------------------------------- */

enum wal__system_clock {
    WAL__CLOCK_COARSE, /* monotonic, up to a tick late: cheaper than the exact time */
    WAL__CLOCK_FILES,  /* Unix time, by which files get their times */
    WAL__CLOCK_BOOT    /* monotonic, counts while the machine sleeps too */
};
int64_t wal__system_clock_ns(enum wal__system_clock clock);

void wal__system_random(void *data, size_t size);

/* Zeroed memory for secrets: as far as the system allows not swapped, and not in core files; NULL
 * without memory. The caller clears it before it frees it. */
void *wal__system_secret_alloc(size_t size);
void wal__system_secret_free(void *at, size_t size);
/* Reads the key of type "user" with this name in the keyrings of the user or of the session.
 * Returns its size, of which at most `room` bytes are in out; -1 with errno set: ENOTSUP where the
 * system has no keyrings. */
ssize_t wal__system_keyring_read(const char *name, void *out, size_t room);

/* --- descriptors -------------------------------------------------------- */

/* Each is close-on-exec, and does not block. An event is a count, which starts at 0 or 1. Writing
 * to a socket whose other end is closed raises no signal with MSG_NOSIGNAL. */
int wal__system_pipe(int ends[2]);
int wal__system_event(bool is_signalled);
int wal__system_socket(int family);
int wal__system_socket_pair(int ends[2]);
/* A pipe that blocks, for a child's output. */
int wal__system_blocking_pipe(int ends[2]);

/* The user whose process connected to a Unix socket. */
int wal__system_peer_user(int fd, uid_t *user);

/* --- watching folders --------------------------------------------------- */

enum wal__watch_change {
    WAL__WATCH_LOST,  /* of a watch: any folder may have changed */
    WAL__WATCH_NAME,  /* a file of this name was made, written or moved here; "": any file */
    WAL__WATCH_LEFT,  /* a folder of this name was moved away */
    WAL__WATCH_MOVED, /* the folder itself was */
    WAL__WATCH_ENDED  /* the folder is gone, and not watched any more */
};

/* Returns 0, or what ends the reading. */
typedef int wal__system_watch_fn(void *ctx, int64_t folder, enum wal__watch_change change,
                                 const char *name);

/* Opens a descriptor that is readable when a folder has changed. *sees_writes: also when only the
 * content of a file has. */
int wal__system_watch_open(bool *sees_writes);
/* Watches a folder, not those below it. Returns its number, which is higher than those before, but
 * the same if the folder is watched already. A link is ENOTDIR. */
int64_t wal__system_watch_add(int watch, const char *path);
void wal__system_watch_remove(int watch, int64_t folder);
/* Passes on the changes that there are, without waiting. Returns what `each` returned last. */
int wal__system_watch_read(int watch, wal__system_watch_fn *each, void *ctx);

/* --- programs ----------------------------------------------------------- */

/* The path of this program, and what a process is called; empty where that is not known. */
int wal__system_program(char *path, size_t size);
void wal__system_process_name(uint32_t pid, char *name, size_t size);

/* Waits for one of the signals, which are blocked, at most so long. Returns it, or negative. */
int wal__system_wait_signal(const sigset_t *signals, uint64_t timeout_ns);

/* Overwrites secrets, also where the bytes are not read any more. */
void wal__system_wipe(void *data, size_t size);

/* Makes the C library's heap give blocks above this size back when they are freed, and not keep
 * one for each thread. */
void wal__system_limit_heap(size_t returned_size);

/* As fwrite, of a stream that one thread uses; returns whether all was written. */
bool wal__system_put(FILE *file, const void *data, size_t size);
/* Opens a stream whose bytes go to the function, which returns how many it took. */
FILE *wal__system_open_stream(void *ctx,
                              ssize_t (*write)(void *ctx, const char *data, size_t size));

/* As regcomp, in the C locale, where each byte is a character. */
int wal__system_compile(regex_t *out, const char *expression, int flags);

#endif
