/*
 * copied_store.h - a store of one session on a simulated disk, whose entries follow from their
 * numbers, so that a copy of it can be judged by their count. Some payloads are stored as content.
 *
 * One thread.
 */
#ifndef AGENTWAL_TESTS_SIM_WORKLOAD_COPIED_STORE_H
#define AGENTWAL_TESTS_SIM_WORKLOAD_COPIED_STORE_H

#include "tests/sim/workload/old_store.h"

/* Opens the store at path, in this process; it must succeed. */
struct wal_store *copied_open(struct old_process *machine, const char *path, uint32_t flags);
/* The session, made when it is not there; or another one. */
struct wal_session *copied_session(struct wal_store *store);
struct wal_session *copied_other_session(struct wal_store *store, const char *id);
/* Appends entry i. */
enum wal_status copied_append(struct wal_session *session, int i, uint32_t durability);

/* A process appends `count` entries to the store at OLD_ROOT, durably. */
void copied_add(struct sim_disk *disk, int *entries, int count);
/* A process compacts it. */
void copied_compact(struct sim_disk *disk);
/* A process erases what was deleted. */
void copied_erase(struct sim_disk *disk);

/* The number of entries of a store, which opens strictly and has the first N ones. */
int copied_count(struct sim_disk *disk, const char *path);
/* The same of another session; -1: there is none. */
int copied_count_other(struct sim_disk *disk, const char *path, const char *id);
int copied_count_in(struct wal_store *store, const char *id);

/* The ways in which copying is cut short: a call kills the process, or fails once or from then on,
 * or the disk is full. */
enum { COPIED_FAULTS = 9 };
extern const struct sim_fault copied_faults[COPIED_FAULTS];

/* Whether a sync of the directories above log/ failed: as for a store itself, what a later loss of
 * power leaves of their names is not promised. Note it by sim_disk_on_call. */
struct copied_sync {
    const char *path; /* of the copy, in the root */
    bool has_failed;
};
void copied_note_sync(void *arg, const struct sim_event *event);

#endif
