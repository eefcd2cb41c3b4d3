/*
 * old_store.h - a store of format version 0 on a simulated disk, and what it must be before, in the
 * middle of and after its migration (SPEC.md 7.1): what it held, derived from its records alone,
 * and which calls write to it.
 *
 * One thread.
 */
#ifndef AGENTWAL_TESTS_SIM_WORKLOAD_OLD_STORE_H
#define AGENTWAL_TESTS_SIM_WORKLOAD_OLD_STORE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "agentwal/admin.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/sim/disk/sim.h"

#define OLD_ROOT  "/store"
#define OLD_FIRST OLD_ROOT "/log/0000000000000001.seg"

enum {
    OLD_SESSIONS = 3 /* alpha, beta and gamma */
};

/* A process. It stays where it is while it lives. */
struct old_process {
    struct sim_process *process;
    struct arena_heap arena;
    struct faulty_heap heap;
    struct wal_store *store;
    jmp_buf death;
    bool died;
};

/* The content that was read from a store. */
struct old_snapshot {
    uint32_t version;
    int32_t status;
    uint32_t schema[OLD_SESSIONS];
    uint64_t content[OLD_SESSIONS]; /* all but title and schema version */
    uint32_t errors;
};

extern struct wal_error old_error;     /* of the last call */
extern struct old_snapshot old_before; /* the store as it was left */
extern const struct wal_entry old_new_entry;

void old_process_start(struct old_process *machine, struct sim_disk *disk);
void old_process_stop(struct old_process *machine);
enum wal_status old_open(struct old_process *machine);
/* Nothing of it may be left in memory. */
void old_close(struct old_process *machine);
/* The same. */
enum wal_status old_migrate(struct old_process *machine, struct wal_migrate_result *result);

struct wal_slice old_slice(const char *text);
uint32_t old_count_listed(struct wal_store *store);
void old_read(struct wal_store *store, struct old_snapshot *seen);

/* Every call that would write is refused, both versions being named. */
void old_expect_refused(struct wal_store *store);
/* The store opens and holds what it held; it is of the old version and refuses, or of the new one.
 * Which, is answered. */
uint32_t old_expect_old_or_new(struct sim_disk *disk);
/* The same; and it can be migrated, and written to. */
void old_expect_migratable(struct sim_disk *disk);

/* For cmocka: *state is the disk. */
int old_set_up(void **state);
int old_tear_down(void **state);

#endif
