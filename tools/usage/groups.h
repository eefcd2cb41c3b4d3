/*
 * groups.h - sums of answers by day, model, project, client or session.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_GROUPS_H
#define AGENTWAL_TOOLS_USAGE_GROUPS_H

#include "tools/cli/json.h"
#include "tools/usage/read.h"

enum usage_by {
    USAGE_BY_DAY, /* of the local zone */
    USAGE_BY_MODEL,
    USAGE_BY_PROJECT, /* or directory, of sessions without a project */
    USAGE_BY_CLIENT,
    USAGE_BY_SESSION
};

struct usage_group {
    const char *name; /* empty: unknown. Holds until deinit */
    const struct usage_session *session; /* of its newest answer */
    int64_t time_ms;                     /* of that */
    struct usage_tokens tokens;
    double cost;
    uint64_t requests;
    uint64_t costed; /* requests, and sessions, that state a cost */
};

/* Zeroed it is empty. */
struct usage_groups {
    enum usage_by by;
    struct usage_group *items;
    size_t count;
    size_t capacity;
    struct usage_group total;
    struct usage_names names;
};

/* Adds up the answers from since_ms on and before until_ms; 0: no limit. Orders
 * days by date, and others by their tokens, the most first. */
void usage_groups_fill(struct usage_groups *groups, const struct usage *usage,
                       int64_t since_ms, int64_t until_ms);
void usage_groups_deinit(struct usage_groups *groups);

/* Writes a group as a value. */
void usage_group_write(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group);
/* Finds a group by its name. */
bool usage_by_find(const char *name, enum usage_by *by);
/* Writes a line of JSON for each group. */
void usage_groups_write(const struct usage_groups *groups);
/* Prints a table with a total. */
void usage_groups_print(const struct usage_groups *groups);

#endif
