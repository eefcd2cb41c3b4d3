/*
 * usage.h - the answers of a store, and sums of their tokens and costs.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_USAGE_H
#define AGENTWAL_TOOLS_USAGE_USAGE_H

#include "tools/cli/json.h"
#include "tools/terminal/terminal.h"
#include "tools/usage/sample.h"

/* Texts with numbers: models, days, projects. Equal texts have the same number.
 * Zeroed it is empty. */
struct usage_names {
    char **items;
    size_t count;
    size_t capacity;
    uint32_t *slots; /* number + 1, by hash; 0: free */
    size_t slot_count;
};

/* --- the answers of all sessions, each once ------------------------------- */

/*
 * Invariant: answers with a key are unique by it. Of those that repeat one, the
 * one with most tokens counts: while an answer is streamed its lines have fewer
 * tokens than at its end. One outside a side chain counts instead of its copies
 * in side chains.
 */

struct usage_answer {
    struct usage_tokens tokens;
    double cost;
    int64_t time_ms;
    uint32_t model;   /* number in `models` */
    uint32_t session; /* rank in the list of sessions */
    bool is_sidechain;
    bool is_request;
    bool has_cost;
};

/* A key of an answer. */
struct usage_slot {
    uint64_t key;
    size_t item; /* rank + 1 of the answer; 0: free */
};

/* Zeroed it is empty. */
struct usage_answers {
    struct usage_answer *items;
    size_t count;
    size_t capacity;
    struct usage_slot *slots;
    size_t slot_count;
    size_t slot_taken;
    struct usage_names models;
};

/* Adds an answer of a session, or replaces the one that it repeats, which keeps
 * its session and time unless it is of a side chain only. */
void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample);
void usage_answers_deinit(struct usage_answers *answers);

/* --- the answers of a store: each record once, however many forks see it - */

/* A session. Texts are empty where it has none. */
struct usage_session {
    uint32_t number;
    char *id;
    char *title;
    char *cwd;
    char *project;
    char *client; /* name of the dialect it was imported from, or agentwal */
    struct usage_codex *codex; /* or NULL */
};

/* Zeroed it is empty. */
struct usage {
    struct usage_session *sessions; /* ascending by number */
    size_t session_count;
    size_t session_capacity;
    struct usage_answers answers;
    uint64_t damaged; /* records that could not be read */
    struct progress *progress;
};

enum wal_status usage_read(struct usage *usage, struct wal_store *store,
                           struct wal_error *error);
void usage_deinit(struct usage *usage);

/* --- sums of answers by day, model, project, client or session ------------ */

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

#endif
