/*
 * remote.h - an open remote, the objects of a store in it, and what remotes ask of this machine:
 * its name, clocks, random numbers.
 *
 * Threads: any; nothing here changes after the remote was opened.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_REMOTE_H
#define AGENTWAL_REMOTE_HISTORY_REMOTE_H

#include "remote/driver/driver.h"
#include "remote/layout/layout.h"

/* Milliseconds that pass while the machine sleeps too, from any start. */
uint64_t wal__machine_now_ms(void);

/* Milliseconds of Unix time. */
int64_t wal__machine_unix_ms(void);

/* The host's name; what is not printable in it becomes '-'. */
void wal__machine_host(char host[WAL__EPOCH_HOST_SIZE]);

/* Fills 16 bytes that no one else has: WAL_OK or WAL_EIO. */

struct wal_remote {
    struct wal__driver *driver;
    const struct wal__heap *heap;
    uint64_t (*now_ms)(void); /* wal__machine_now_ms; a test has another */
    uint32_t readers;         /* threads that read ahead; 0: none */
};

/* WAL_EINVAL unless the remote and another argument were given. */
enum wal_status wal__remote_check_given(const struct wal_remote *remote, bool is_given,
                                        const char *name, struct wal_error *error) WAL_MUST_USE;

bool wal__uuid_is_zero(const uint8_t uuid[16]);

/* Replaces *bytes by the whole object. WAL_ENOTFOUND; WAL_ECORRUPT when it has more than `max`
 * bytes. */
enum wal_status wal__remote_get(struct wal_remote *remote, const char *name, uint64_t max,
                                struct wal__buf *bytes, struct wal_error *error) WAL_MUST_USE;

/*
 * Creates the object, or finds that it is there with the same bytes: WAL_OK. WAL_EEXISTS: with
 * others, which *found holds then. After WAL_EREMOTE the outcome is unknown, and the same call is
 * repeated.
 */
enum wal_status wal__remote_create(struct wal_remote *remote, const char *name,
                                   struct wal_slice bytes, struct wal__buf *found,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether the object is there: a GET, which costs a tenth of a LIST. */
enum wal_status wal__remote_has(struct wal_remote *remote, const struct wal__store_object *object,
                                bool *is_there, struct wal_error *error) WAL_MUST_USE;

/* Finds the object of the kind and, of parts, of the epoch, that has the lowest epoch or number
 * above `after`; *number is 0 when there is none. */
enum wal_status wal__remote_next(struct wal_remote *remote, const struct wal__store_object *object,
                                 uint64_t after, uint64_t *number,
                                 struct wal_error *error) WAL_MUST_USE;

/* The same for the highest one of all. Numbers are without gaps but for those that were removed
 * from the beginning. */
enum wal_status wal__remote_last(struct wal_remote *remote, const struct wal__store_object *object,
                                 uint64_t *number, struct wal_error *error) WAL_MUST_USE;

/* Finds an object of the first store after that of *object, or when its kind is 0 of the first one;
 * object->kind is 0 then when there is none. */
enum wal_status wal__remote_next_store(struct wal_remote *remote, struct wal__store_object *object,
                                       struct wal_error *error) WAL_MUST_USE;

/* The only store that the remote has. WAL_ENOTFOUND, WAL_EINVAL: several. */
enum wal_status wal__remote_find_store(struct wal_remote *remote, uint8_t uuid[16],
                                       struct wal_error *error) WAL_MUST_USE;

/* WAL_EINVAL: the remote replaced the object, which it must not. */
enum wal_status wal__remote_is_no_remote(const char *name, struct wal_error *error);

/* See wal_remote_probe. */
enum wal_status wal__remote_probe(struct wal_remote *remote, struct wal_error *error) WAL_MUST_USE;

#endif
