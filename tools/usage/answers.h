/*
 * answers.h - the answers of all sessions, each once.
 *
 * Invariant: answers with a key are unique by it. Of those that repeat one, the
 * one with most tokens counts: while an answer is streamed its lines have fewer
 * tokens than at its end. One outside a side chain counts instead of its copies
 * in side chains.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_ANSWERS_H
#define AGENTWAL_TOOLS_USAGE_ANSWERS_H

#include "tools/usage/names.h"
#include "tools/usage/sample.h"

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

#endif
