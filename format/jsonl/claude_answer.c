/*
 * claude_answer: the rows of one answer of a model, and the results of its
 * calls, as one chain.
 *
 * Threads: one thread at a time per struct.
 */
#include "format/jsonl/claude_answer.h"

#include <string.h>

#include "format/jsonl/model_table.h"

static uint64_t hash_of(struct wal__json_span string)
{
    return wal__model_string_hash(0, string);
}

static struct wal__answer *answer_of(struct wal__answers *answers,
                                     uint64_t serial)
{
    struct wal__answer *answer = &answers->answers[serial % WAL__ANSWER_COUNT];

    return serial != 0 && answer->serial == serial ? answer : NULL;
}

static uint64_t slot_get(const struct wal__answer_slot *slots, uint64_t hash)
{
    const struct wal__answer_slot *slot = &slots[hash % WAL__ANSWER_SLOTS];

    return slot->hash == hash ? slot->serial : 0;
}

static void slot_set(struct wal__answer_slot *slots, uint64_t hash,
                     uint64_t serial)
{
    slots[hash % WAL__ANSWER_SLOTS] = (struct wal__answer_slot){hash, serial};
}

struct wal__json_span wal__answer_parent(const struct wal__answers *answers,
                                         struct wal__json_span parent)
{
    uint64_t serial =
        parent.size > 0 ? slot_get(answers->rows, hash_of(parent)) : 0;
    const struct wal__answer *answer =
        &answers->answers[serial % WAL__ANSWER_COUNT];

    if (serial == 0 || answer->serial != serial) {
        return parent;
    }
    return (struct wal__json_span){answer->last, answer->size};
}

static void join(struct wal__answers *answers, struct wal__answer *answer,
                 struct wal__json_span id)
{
    slot_set(answers->rows, hash_of(id), answer->serial);
    memcpy(answer->last, id.data, id.size);
    answer->size = id.size;
}

void wal__answer_row(struct wal__answers *answers, struct wal__json_span id,
                     struct wal__json_span parent, struct wal__json_span group)
{
    struct wal__answer *answer;

    if (id.size == 0 || id.size > WAL__ANSWER_ID_SIZE || group.size == 0) {
        return;
    }
    answer = answer_of(answers, parent.size > 0
                                    ? slot_get(answers->rows, hash_of(parent))
                                    : 0);
    if (answer == NULL || answer->group != hash_of(group)) {
        answers->serial++;
        answer = &answers->answers[answers->serial % WAL__ANSWER_COUNT];
        answer->serial = answers->serial;
        answer->group = hash_of(group);
    }
    join(answers, answer, id);
}

void wal__answer_call(struct wal__answers *answers, struct wal__json_span id,
                      struct wal__json_span call)
{
    uint64_t serial = id.size > 0 ? slot_get(answers->rows, hash_of(id)) : 0;

    if (serial != 0 && call.size > 2) {
        slot_set(answers->calls, hash_of(call), serial);
    }
}

void wal__answer_result(struct wal__answers *answers, struct wal__json_span id,
                        struct wal__json_span parent,
                        struct wal__json_span call)
{
    uint64_t serial =
        call.size > 2 ? slot_get(answers->calls, hash_of(call)) : 0;
    struct wal__answer *answer = answer_of(answers, serial);

    if (answer != NULL && id.size <= WAL__ANSWER_ID_SIZE && parent.size > 0 &&
        slot_get(answers->rows, hash_of(parent)) == serial) {
        join(answers, answer, id);
    }
}
