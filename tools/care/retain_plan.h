/*
 * retain_plan.h - the sessions of a store and what the rules of the command
 * retain choose of them (docs/keeping.md).
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_CARE_RETAIN_PLAN_H
#define AGENTWAL_TOOLS_CARE_RETAIN_PLAN_H

#include "engine/care/retain.h"
#include "tools/cli/cli.h"

/* Why a session stays that the rules apply to, or was not moved. */
enum retain_reason {
    RETAIN_NONE = 0,
    RETAIN_CLAIMED,
    RETAIN_PINNED,
    RETAIN_CHANGED, /* since it was chosen */
    RETAIN_GONE,    /* since then: it is in the trash, or deleted */
    RETAIN_REFUSED  /* by the archive */
};

struct retain_item {
    char *id;
    char *title; /* or the first text */
    uint32_t number;
    uint64_t entries;
    uint64_t last_sequence;
    enum retain_reason reason;
};

/* The items and sessions of a rank belong together; newest first, and at the
 * end those in the trash. Zeroed: none. */
struct retain_plan {
    struct retain_item *items;
    struct wal__retain_session *sessions;
    size_t count;
    size_t capacity[2];
    uint32_t selected; /* that the rules apply to */
    uint32_t chosen;
};

/* Reads the sessions and chooses. project: the rules apply to it only; NULL: to
 * all. Returns CLI_CONTINUE, or an exit code after a message. */
int retain_plan_read(struct retain_plan *plan, const struct cli *cli,
                     struct wal_store *store,
                     const struct wal__retain_rules *rules,
                     const char *project);

/* Copies the chosen sessions to the store in a directory, which is made when it
 * is not there. One that it refuses gets the reason, after a message. Returns
 * CLI_CONTINUE, or an exit code after a message. */
int retain_plan_archive(struct retain_plan *plan, const struct cli *cli,
                        struct wal_store *store, const char *directory);

/* Moves a chosen session to the trash, unless it has changed since it was read:
 * then its reason is set. */
enum wal_status retain_plan_move(struct retain_item *item,
                                 struct wal_store *store,
                                 struct wal_error *error);
void retain_plan_deinit(struct retain_plan *plan);

#endif
