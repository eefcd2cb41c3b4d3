/*
 * answers.h - the answers of all sessions, each once.
 *
 * Invariant: answers with a key are unique by it. Of those that repeat one, the
 * one with most output counts: while an answer is streamed its lines have fewer
 * tokens than at its end.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_ANSWERS_H
#define AGENTWAL_TOOLS_USAGE_ANSWERS_H

#include "tools/usage/names.h"
#include "tools/usage/sample.h"

struct usage_answer {
    uint64_t key;
    struct usage_tokens tokens;
    double cost;
    int64_t time_ms;
    uint32_t model;   /* number in `models` */
    uint32_t session; /* rank in the list of sessions */
    bool is_request;
    bool has_cost;
};

/* Zeroed it is empty. */
struct usage_answers {
    struct usage_answer *items;
    size_t count;
    size_t capacity;
    size_t *slots; /* rank + 1 of an item with a key, by it; 0: free */
    size_t slot_count;
    size_t keyed_count;
    struct usage_names models;
};

/* Adds an answer of a session, or replaces the one that it repeats, which keeps
 * its session and time. */
void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample);

void usage_answers_deinit(struct usage_answers *answers);

#endif
