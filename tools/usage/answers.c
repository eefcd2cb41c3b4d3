/*
 * answers.c - the answers of all sessions (answers.h).
 *
 * Invariant: at most half of the slots are taken.
 */
#include "tools/usage/answers.h"

#include <stdlib.h>

#include "tools/cli/cli.h"

static size_t slot_of(const struct usage_answers *answers, uint64_t key)
{
    size_t slot = (size_t)key & (answers->slot_count - 1);

    while (answers->slots[slot] != 0 &&
           answers->items[answers->slots[slot] - 1].key != key) {
        slot = (slot + 1) & (answers->slot_count - 1);
    }
    return slot;
}

static void grow(struct usage_answers *answers)
{
    free(answers->slots);
    answers->slot_count =
        answers->slot_count == 0 ? 256 : answers->slot_count * 2;
    answers->slots = cli_alloc(answers->slot_count * sizeof(answers->slots[0]));
    for (size_t i = 0; i < answers->count; i++) {
        if (answers->items[i].key != 0) {
            answers->slots[slot_of(answers, answers->items[i].key)] = i + 1;
        }
    }
}

static void set_counts(struct usage_answers *answers,
                       struct usage_answer *answer,
                       const struct usage_sample *sample)
{
    answer->tokens = sample->tokens;
    answer->model = usage_names_number(&answers->models, sample->model);
    answer->is_request = sample->is_request;
    if (sample->has_cost) {
        answer->has_cost = true;
        answer->cost = sample->cost;
    }
}

void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample)
{
    struct usage_answer *answer;
    size_t slot = 0;

    if (sample->key != 0) {
        if (answers->keyed_count * 2 >= answers->slot_count) {
            grow(answers);
        }
        slot = slot_of(answers, sample->key);
        if (answers->slots[slot] != 0) {
            answer = &answers->items[answers->slots[slot] - 1];
            if (sample->tokens.output > answer->tokens.output) {
                set_counts(answers, answer, sample);
            }
            return;
        }
    }
    answers->items = cli_reserve(answers->items, answers->count,
                                 &answers->capacity, sizeof(*answer));
    answer = &answers->items[answers->count++];
    *answer = (struct usage_answer){
        .key = sample->key, .time_ms = sample->time_ms, .session = session};
    set_counts(answers, answer, sample);
    if (sample->key != 0) {
        answers->slots[slot] = answers->count;
        answers->keyed_count++;
    }
}

void usage_answers_deinit(struct usage_answers *answers)
{
    free(answers->items);
    free(answers->slots);
    usage_names_deinit(&answers->models);
    *answers = (struct usage_answers){.items = NULL};
}
