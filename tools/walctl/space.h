/*
 * space.h - the bytes of each session in the log, as the commands stats and gc
 * report them.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_SPACE_H
#define AGENTWAL_TOOLS_WALCTL_SPACE_H

#include "agentwal/admin.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

struct walctl_session_space {
    char *id; /* empty: the documents of the store */
    bool is_deleted;
    uint64_t own;
    uint64_t shared;
    uint64_t reclaimable;
};

/* A segment that was left as it is. */
struct walctl_refusal {
    char *file;
    char *why;
};

/* What callbacks of wal_store_compact collect; zeroed it is empty. */
struct walctl_space {
    struct walctl_session_space *items;
    size_t count;
    size_t capacity;
    struct walctl_refusal *refusals;
    size_t refusal_count;
    size_t refusal_capacity;
};

/* Sets the callbacks `refused` and, in a dry run, `session`, and their ctx. */
void walctl_space_collect(struct walctl_space *space,
                          struct wal_store_compact_options *options);
void walctl_space_deinit(struct walctl_space *space);

/* Writes an array of {"sessionId","deleted","ownBytes","sharedBytes",
 * "reclaimableBytes"}; the documents of the store have sessionId null. */
void walctl_space_write(const struct walctl_space *space,
                        struct cli_json *json);
/* Writes an array of {"file","reason"}. */
void walctl_space_write_refusals(const struct walctl_space *space,
                                 struct cli_json *json);
/* Prints a table of the 20 sessions that have most, or with reclaimable_only of
 * those with most to give back; nothing when there are none. */
void walctl_space_print(struct walctl_space *space, bool reclaimable_only);

/* Prints an error for each segment that was left as it is. CLI_OK, or
 * CLI_NEGATIVE when there is one. */
int walctl_space_report(const struct cli *cli,
                        const struct walctl_space *space);

/* What is in the trash. */
struct walctl_trash {
    uint64_t sessions;
    uint64_t bytes; /* of their records, shared ones excluded */
};

enum wal_status walctl_trash_count(struct walctl_trash *trash,
                                   struct wal_store *store,
                                   struct wal_error *error);

#endif
