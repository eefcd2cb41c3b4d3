/*
 * read.h - reads the answers of all sessions of a store: each record once,
 * however many forks see it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_READ_H
#define AGENTWAL_TOOLS_USAGE_READ_H

#include "tools/terminal/progress.h"
#include "tools/usage/answers.h"

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

#endif
