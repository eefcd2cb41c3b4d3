/*
 * care.h - what deletes for good and lists the views that keep a copy; and the bytes of each
 * session in the log, as the verbs stats and gc report them.
 */
#ifndef AGENTWAL_TOOLS_CARE_CARE_H
#define AGENTWAL_TOOLS_CARE_CARE_H

#include "agentwal/admin.h"
#include "tools/cli/session.h"

/* Compacts the store so that no file of it holds what was deleted or redacted, but for the trash,
 * and says what that does not reach, `files` too. Lists the views that may hold it, or rewrites
 * them. An exit code. */
int care_erase(const struct cli *cli, bool rewrites_views, const struct cli_texts *files);
/* Adds the client's file of a session that is erased, or has an entry that is, if it is there. */
void care_add_file(struct cli_texts *files, const struct wal_session_info *info);
/* Ends the process for --views without --erase. */
void care_check_views(const struct cli *cli, bool erases, bool rewrites_views);
/* Lists the views that may hold what was deleted or redacted, or with `rewrites` brings them up to
 * date: as text, or as items of an array. An exit code. */
int care_print_views(const struct cli *cli, struct wal_store *store, bool rewrites,
                     struct wal__json_out *json);
/* The same, as text or as {"views"}. */
int care_report_views(const struct cli *cli, struct wal_store *store, bool rewrites);

struct care_session_space {
    char *id; /* empty: the documents of the store */
    bool is_deleted;
    uint64_t own;
    uint64_t shared;
    uint64_t reclaimable;
};

/* A segment that was left as it is. */
struct care_refusal {
    char *file;
    char *why;
};

/* What callbacks of wal_store_compact collect; zeroed it is empty. */
struct care_space {
    struct care_session_space *items;
    size_t count;
    size_t capacity;
    struct care_refusal *refusals;
    size_t refusal_count;
    size_t refusal_capacity;
};

/* Sets the callbacks `refused` and, in a dry run, `session`, and their ctx. */
void care_space_collect(struct care_space *space, struct wal_store_compact_options *options);

/* Writes an array of {"sessionId","deleted","ownBytes","sharedBytes", "reclaimableBytes"}; the
 * documents of the store have sessionId null. */
void care_space_write(const struct care_space *space, struct wal__json_out *json);
/* Prints a table of the 20 sessions that have most, or with reclaimable_only of those with most to
 * give back; nothing when there are none. */
void care_space_print(const struct cli *cli, struct care_space *space, bool reclaimable_only);

/* What is in the trash. */
struct care_trash {
    uint64_t sessions;
    uint64_t bytes; /* of their records, shared ones excluded */
};

/* Counts that of cli->store. Ends the process after an error. */
void care_trash_count(struct care_trash *trash, const struct cli *cli);

#endif
