/*
 * answers.c - the answers of all sessions (answers.h).
 *
 * Invariant: at most half of the slots are taken.
 */
#include "tools/usage/answers.h"

#include <stdlib.h>

#include "tools/cli/cli.h"

static struct usage_slot *slot_of(const struct usage_answers *answers,
                                  uint64_t key)
{
    size_t slot = (size_t)key & (answers->slot_count - 1);

    while (answers->slots[slot].item != 0 && answers->slots[slot].key != key) {
        slot = (slot + 1) & (answers->slot_count - 1);
    }
    return &answers->slots[slot];
}

static void grow(struct usage_answers *answers)
{
    struct usage_slot *old = answers->slots;
    size_t old_count = answers->slot_count;

    answers->slot_count = old_count == 0 ? 256 : old_count * 2;
    answers->slots = cli_alloc(answers->slot_count * sizeof(answers->slots[0]));
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].item != 0) {
            *slot_of(answers, old[i].key) = old[i];
        }
    }
    free(old);
}

/* Makes the key one of the answer, unless it is one of another. */
static void add_key(struct usage_answers *answers, uint64_t key, size_t item)
{
    struct usage_slot *slot;

    if (key == 0) {
        return;
    }
    if ((answers->slot_taken + 1) * 2 > answers->slot_count) {
        grow(answers);
    }
    slot = slot_of(answers, key);
    if (slot->item == 0) {
        *slot = (struct usage_slot){.key = key, .item = item};
        answers->slot_taken++;
    }
}

/* Returns the rank + 1 of the answer with the key; 0: there is none. */
static size_t find(const struct usage_answers *answers, uint64_t key)
{
    return key == 0 || answers->slot_count == 0 ? 0
                                                : slot_of(answers, key)->item;
}

/* Returns the rank + 1 of the answer that the sample repeats; 0: none. */
static size_t find_repeated(const struct usage_answers *answers,
                            const struct usage_sample *sample)
{
    size_t item = find(answers, sample->key);

    if (item == 0) {
        item = find(answers, sample->replay_key);
        if (item != 0 && !sample->is_sidechain &&
            !answers->items[item - 1].is_sidechain) {
            return 0;
        }
    }
    return item;
}

static void set_counts(struct usage_answers *answers,
                       struct usage_answer *answer,
                       const struct usage_sample *sample)
{
    answer->tokens = sample->tokens;
    answer->model = usage_names_number(&answers->models, sample->model);
    answer->is_request = sample->is_request;
    answer->is_sidechain = sample->is_sidechain;
    if (sample->has_cost) {
        answer->has_cost = true;
        answer->cost = sample->cost;
    }
}

static bool is_better(const struct usage_sample *sample,
                      const struct usage_answer *answer)
{
    if (sample->is_sidechain != answer->is_sidechain) {
        return answer->is_sidechain;
    }
    return sample->tokens.total > answer->tokens.total ||
           (sample->tokens.total == answer->tokens.total &&
            sample->tokens.output > answer->tokens.output);
}

void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample)
{
    struct usage_answer *answer;
    size_t item = find_repeated(answers, sample);

    if (item != 0) {
        answer = &answers->items[item - 1];
        if (answer->is_sidechain && !sample->is_sidechain) {
            answer->session = session;
            answer->time_ms = sample->time_ms;
        }
        if (is_better(sample, answer)) {
            set_counts(answers, answer, sample);
        }
        add_key(answers, sample->key, item);
        return;
    }
    answers->items = cli_reserve(answers->items, answers->count,
                                 &answers->capacity, sizeof(*answer));
    answer = &answers->items[answers->count++];
    *answer =
        (struct usage_answer){.time_ms = sample->time_ms, .session = session};
    set_counts(answers, answer, sample);
    add_key(answers, sample->key, answers->count);
    add_key(answers, sample->replay_key, answers->count);
}

void usage_answers_deinit(struct usage_answers *answers)
{
    free(answers->items);
    free(answers->slots);
    usage_names_deinit(&answers->models);
    *answers = (struct usage_answers){.items = NULL};
}
