/*
 * retain.c - chooses the sessions that rules of retention let go (retain.h).
 *
 * A session holds its parent while it stays, or while it is held itself. The rules of age and
 * number choose first; what a session that stays descends from is taken back. Then the oldest ones
 * that nothing holds go until the rest is small enough.
 */
#include "engine/care/retain.h"

struct choice {
    const struct wal__retain_rules *rules;
    struct wal__retain_session *sessions;
    uint32_t count;
    uint32_t *holders; /* of each: sessions under it that hold it */
    bool *is_newest;   /* of each: it is one of keep_last */
    uint64_t bytes;    /* of the selected ones that stay */
};

static bool stays(const struct wal__retain_session *session)
{
    return !session->is_trashed && session->rule == WAL__RETAIN_STAYS;
}

static void mark_newest(struct choice *choice)
{
    uint64_t left = choice->rules->has_keep_last ? choice->rules->keep_last : 0;

    for (uint32_t i = 0; i < choice->count && left > 0; i++) {
        const struct wal__retain_session *session = &choice->sessions[i];

        if (session->is_selected && !session->is_trashed) {
            choice->is_newest[i] = true;
            left--;
        }
    }
}

static bool may_go(const struct choice *choice, uint32_t rank)
{
    const struct wal__retain_session *session = &choice->sessions[rank];

    return session->is_selected && !session->is_protected && !session->is_trashed &&
           !choice->is_newest[rank];
}

/* By age; or by number, when that is the only rule. */
static void choose_alone(struct choice *choice)
{
    const struct wal__retain_rules *rules = choice->rules;
    bool has_other = rules->older_than_ms != INT64_MIN || rules->max_bytes != UINT64_MAX;

    for (uint32_t i = 0; i < choice->count; i++) {
        struct wal__retain_session *session = &choice->sessions[i];

        session->rule = WAL__RETAIN_STAYS;
        session->is_held = false;
        if (!may_go(choice, i)) {
            continue;
        }
        if (session->updated_ms < rules->older_than_ms) {
            session->rule = WAL__RETAIN_OLD;
        } else if (rules->has_keep_last && !has_other) {
            session->rule = WAL__RETAIN_BEYOND;
        }
    }
}

/* Counts for each session those under it that stay or are held. Walks up from each one that stays
 * until a walk before was there. */
static void count_holders(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        uint32_t at = choice->sessions[i].parent;

        if (!stays(&choice->sessions[i])) {
            continue;
        }
        while (at != WAL__RETAIN_NONE && choice->holders[at]++ == 0 &&
               !stays(&choice->sessions[at])) {
            at = choice->sessions[at].parent;
        }
    }
}

/* What is held stays: from then on it holds its parent as before. */
static void take_back(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        struct wal__retain_session *session = &choice->sessions[i];

        if (choice->holders[i] > 0 && session->rule != WAL__RETAIN_STAYS) {
            session->rule = WAL__RETAIN_STAYS;
            session->is_held = true;
        }
        if (session->is_selected && stays(session)) {
            choice->bytes += session->bytes;
        }
    }
}

static bool is_over(const struct choice *choice)
{
    return choice->bytes > choice->rules->max_bytes;
}

/* The session does not hold its parent any more. Returns the nearest session above it that stays,
 * or NONE. */
static uint32_t release(struct choice *choice, uint32_t rank)
{
    uint32_t at = choice->sessions[rank].parent;

    while (at != WAL__RETAIN_NONE) {
        choice->holders[at]--;
        if (choice->holders[at] > 0 || stays(&choice->sessions[at])) {
            return at;
        }
        at = choice->sessions[at].parent;
    }
    return WAL__RETAIN_NONE;
}

/* Oldest first. What a session was the last one to hold is older, and follows it at once. */
static void choose_by_bytes(struct choice *choice)
{
    for (uint32_t i = choice->count; i > 0 && is_over(choice); i--) {
        uint32_t at = i - 1;

        while (at != WAL__RETAIN_NONE && is_over(choice) && at >= i - 1 && may_go(choice, at) &&
               choice->holders[at] == 0 && choice->sessions[at].rule == WAL__RETAIN_STAYS) {
            choice->sessions[at].rule = WAL__RETAIN_BYTES;
            choice->sessions[at].is_held = false;
            choice->bytes -= choice->sessions[at].bytes;
            at = release(choice, at);
        }
    }
}

enum wal_status wal__retain_choose(const struct wal__heap *heap,
                                   const struct wal__retain_rules *rules,
                                   struct wal__retain_session *sessions, uint32_t count,
                                   uint32_t *chosen)
{
    struct choice choice = {.rules = rules, .sessions = sessions, .count = count};
    enum wal_status status = WAL_ENOMEM;
    uint32_t number = 0;

    if (!rules->has_keep_last && rules->older_than_ms == INT64_MIN &&
        rules->max_bytes == UINT64_MAX) {
        return WAL_EINVAL;
    }
    choice.holders = wal__heap_zalloc(heap, ((size_t)count + 1) * sizeof(*choice.holders));
    choice.is_newest = wal__heap_zalloc(heap, ((size_t)count + 1) * sizeof(*choice.is_newest));
    if (choice.holders != NULL && choice.is_newest != NULL) {
        mark_newest(&choice);
        choose_alone(&choice);
        count_holders(&choice);
        take_back(&choice);
        choose_by_bytes(&choice);
        for (uint32_t i = 0; i < count; i++) {
            number += sessions[i].rule != WAL__RETAIN_STAYS;
        }
        *chosen = number;
        status = WAL_OK;
    }
    wal__heap_free(heap, choice.holders);
    wal__heap_free(heap, choice.is_newest);
    return status;
}
