/*
 * claude_answer.c - links the rows of one answer into one chain
 * (claude_answer.h).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/dialect/claude/claude_answer.h"

#include <string.h>

#include "convert/model/model_table.h"
#include "format/bytes/assert.h"

static uint64_t hash_id(struct wal__json_span string)
{
    return wal__model_string_hash(0, string);
}

static struct wal__claude_answer *
find_answer(struct wal__claude_answers *answers, uint64_t serial)
{
    struct wal__claude_answer *answer =
        &answers->answers[serial % WAL__CLAUDE_ANSWER_COUNT];

    return serial != 0 && answer->serial == serial ? answer : NULL;
}

static uint64_t slot_get(const struct wal__claude_answer_slot *slots,
                         uint64_t hash)
{
    const struct wal__claude_answer_slot *slot =
        &slots[hash % WAL__CLAUDE_ANSWER_SLOTS];

    return slot->hash == hash ? slot->serial : 0;
}

static void slot_set(struct wal__claude_answer_slot *slots, uint64_t hash,
                     uint64_t serial)
{
    slots[hash % WAL__CLAUDE_ANSWER_SLOTS] =
        (struct wal__claude_answer_slot){hash, serial};
}

struct wal__json_span
wal__claude_answer_parent(const struct wal__claude_answers *answers,
                          struct wal__json_span parent)
{
    uint64_t serial =
        parent.size > 0 ? slot_get(answers->rows, hash_id(parent)) : 0;
    const struct wal__claude_answer *answer =
        &answers->answers[serial % WAL__CLAUDE_ANSWER_COUNT];

    if (serial == 0 || answer->serial != serial) {
        return parent;
    }
    return (struct wal__json_span){answer->last, answer->size};
}

static void append_row(struct wal__claude_answers *answers,
                       struct wal__claude_answer *answer,
                       struct wal__json_span id)
{
    slot_set(answers->rows, hash_id(id), answer->serial);
    WAL__ASSERT(id.size <= sizeof(answer->last));
    memcpy(answer->last, id.data, id.size);
    answer->size = id.size;
}

void wal__claude_answer_add_row(struct wal__claude_answers *answers,
                                struct wal__json_span id,
                                struct wal__json_span parent,
                                struct wal__json_span message_id)
{
    struct wal__claude_answer *answer;

    if (id.size == 0 || id.size > WAL__CLAUDE_ANSWER_ID_SIZE ||
        message_id.size == 0) {
        return;
    }
    answer = find_answer(answers, parent.size > 0
                                      ? slot_get(answers->rows, hash_id(parent))
                                      : 0);
    if (answer == NULL || answer->message_id != hash_id(message_id)) {
        answers->serial++;
        answer = &answers->answers[answers->serial % WAL__CLAUDE_ANSWER_COUNT];
        answer->serial = answers->serial;
        answer->message_id = hash_id(message_id);
    }
    append_row(answers, answer, id);
}

void wal__claude_answer_add_call(struct wal__claude_answers *answers,
                                 struct wal__json_span id,
                                 struct wal__json_span call)
{
    uint64_t serial = id.size > 0 ? slot_get(answers->rows, hash_id(id)) : 0;

    if (serial != 0 && call.size > 2) {
        slot_set(answers->calls, hash_id(call), serial);
    }
}

void wal__claude_answer_add_result(struct wal__claude_answers *answers,
                                   struct wal__json_span id,
                                   struct wal__json_span parent,
                                   struct wal__json_span call)
{
    uint64_t serial =
        call.size > 2 ? slot_get(answers->calls, hash_id(call)) : 0;
    struct wal__claude_answer *answer = find_answer(answers, serial);

    if (answer != NULL && id.size <= WAL__CLAUDE_ANSWER_ID_SIZE &&
        parent.size > 0 && slot_get(answers->rows, hash_id(parent)) == serial) {
        append_row(answers, answer, id);
    }
}
