/*
 * test_retain.c - tests of the choice of sessions by rules of retention (docs/keeping.md).
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "engine/care/retain.h"
#include "tests/lib/test.h"

enum { MAX = 16 };

#define NONE WAL__RETAIN_NONE

/* Newest first; sessions are added by add(). */
struct plan {
    struct wal__retain_rules rules;
    struct wal__retain_session sessions[MAX];
    uint32_t count;
};

static struct plan begin(void)
{
    return (struct plan){.rules = {.older_than_ms = INT64_MIN, .max_bytes = UINT64_MAX}};
}

static struct wal__retain_session *add(struct plan *plan, int64_t updated_ms, uint64_t bytes,
                                       uint32_t parent)
{
    struct wal__retain_session *session = &plan->sessions[plan->count++];

    assert_true(plan->count <= MAX);
    *session = (struct wal__retain_session){
        .updated_ms = updated_ms, .bytes = bytes, .parent = parent, .is_selected = true};
    return session;
}

/* A letter for each session: what its rule is, lower case when it is held. */
static const char *choose(struct plan *plan)
{
    static char text[MAX + 1];
    uint32_t chosen = NONE;
    uint32_t counted = 0;

    assert_ok(
        wal__retain_choose(&wal__heap_libc, &plan->rules, plan->sessions, plan->count, &chosen));
    memset(text, 0, sizeof(text));
    for (uint32_t i = 0; i < plan->count; i++) {
        text[i] = plan->sessions[i].is_held ? 'h' : "-ONB"[plan->sessions[i].rule];
        counted += plan->sessions[i].rule != WAL__RETAIN_STAYS;
    }
    assert_int_equal(chosen, counted);
    return text;
}

static void add_five(struct plan *plan)
{
    for (int64_t i = 5; i > 0; i--) {
        (void)add(plan, i * 100, 10, NONE);
    }
}

TEST(retain__age_chooses_what_is_older)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.rules.older_than_ms = 300;
    assert_string_equal(choose(&plan), "---OO");
    plan.rules.older_than_ms = 100;
    assert_string_equal(choose(&plan), "-----");
    plan.rules.older_than_ms = 501;
    assert_string_equal(choose(&plan), "OOOOO");
}

TEST(retain__number_alone_chooses_all_others)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.rules.has_keep_last = true;
    plan.rules.keep_last = 2;
    assert_string_equal(choose(&plan), "--NNN");
    plan.rules.keep_last = 0;
    assert_string_equal(choose(&plan), "NNNNN");
    plan.rules.keep_last = 9;
    assert_string_equal(choose(&plan), "-----");
}

TEST(retain__number_with_age_keeps_the_newest)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.rules.older_than_ms = 1000;
    plan.rules.has_keep_last = true;
    plan.rules.keep_last = 3;
    assert_string_equal(choose(&plan), "---OO");
    plan.rules.older_than_ms = 100;
    assert_string_equal(choose(&plan), "-----");
}

TEST(retain__bytes_choose_the_oldest)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.rules.max_bytes = 50;
    assert_string_equal(choose(&plan), "-----");
    plan.rules.max_bytes = 49;
    assert_string_equal(choose(&plan), "----B");
    plan.rules.max_bytes = 20;
    assert_string_equal(choose(&plan), "--BBB");
    plan.rules.max_bytes = 0;
    assert_string_equal(choose(&plan), "BBBBB");
    plan.rules.has_keep_last = true;
    plan.rules.keep_last = 1;
    assert_string_equal(choose(&plan), "-BBBB");
}

/* What age chooses does not count as bytes that stay. */
TEST(retain__bytes_count_what_age_leaves)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.rules.older_than_ms = 300;
    plan.rules.max_bytes = 30;
    assert_string_equal(choose(&plan), "---OO");
    plan.rules.max_bytes = 29;
    assert_string_equal(choose(&plan), "--BOO");
}

TEST(retain__protected_and_unselected_stay)
{
    struct plan plan = begin();

    add_five(&plan);
    plan.sessions[4].is_protected = true;
    plan.sessions[3].is_selected = false;
    plan.rules.older_than_ms = 1000;
    assert_string_equal(choose(&plan), "OOO--");
    plan.rules.older_than_ms = INT64_MIN;
    plan.rules.max_bytes = 30; /* of 40: the fourth does not count */
    assert_string_equal(choose(&plan), "--B--");
    plan.rules.max_bytes = 0; /* cannot be reached */
    assert_string_equal(choose(&plan), "BBB--");
    plan.rules.max_bytes = UINT64_MAX;
    plan.rules.has_keep_last = true;
    plan.rules.keep_last = 3; /* the selected ones count */
    assert_string_equal(choose(&plan), "-----");
}

TEST(retain__ancestor_of_what_stays_is_held)
{
    struct plan plan = begin();

    (void)add(&plan, 500, 10, 2);
    (void)add(&plan, 400, 10, NONE);
    (void)add(&plan, 300, 10, 3);
    (void)add(&plan, 200, 10, NONE);
    (void)add(&plan, 100, 10, 3);
    plan.rules.older_than_ms = 450;
    assert_string_equal(choose(&plan), "-OhhO");
    plan.rules.older_than_ms = 550;
    assert_string_equal(choose(&plan), "OOOOO");
    plan.sessions[4].is_protected = true;
    assert_string_equal(choose(&plan), "OOOh-");
}

/* The ancestors are older than what descends from them: when the last one that held them goes, they
 * go next. */
TEST(retain__bytes_choose_ancestors_after_what_holds_them)
{
    struct plan plan = begin();

    (void)add(&plan, 500, 10, NONE);
    (void)add(&plan, 400, 10, NONE);
    (void)add(&plan, 300, 10, 3);
    (void)add(&plan, 200, 10, 4);
    (void)add(&plan, 100, 10, NONE);
    plan.rules.max_bytes = 40;
    assert_string_equal(choose(&plan), "--B--");
    plan.rules.max_bytes = 30;
    assert_string_equal(choose(&plan), "--BB-");
    plan.rules.max_bytes = 20;
    assert_string_equal(choose(&plan), "--BBB");
    plan.rules.max_bytes = 10;
    assert_string_equal(choose(&plan), "-BBBB");
}

TEST(retain__trash_passes_on_what_it_is_held_by)
{
    struct plan plan = begin();

    (void)add(&plan, 500, 10, 1);
    add(&plan, 400, 10, 2)->is_trashed = true;
    (void)add(&plan, 300, 10, NONE);
    plan.rules.older_than_ms = 450;
    assert_string_equal(choose(&plan), "--h");
    plan.rules.older_than_ms = 550;
    assert_string_equal(choose(&plan), "O-O");
    plan.rules.older_than_ms = INT64_MIN;
    plan.rules.max_bytes = 10; /* of 20: what is in the trash does not count */
    assert_string_equal(choose(&plan), "B--");
    plan.rules.max_bytes = 9;
    assert_string_equal(choose(&plan), "B-B");
    plan.rules.max_bytes = UINT64_MAX;
    plan.rules.has_keep_last = true;
    plan.rules.keep_last = 2;
    assert_string_equal(choose(&plan), "---");
}

/* Parent ids may form a circle. */
TEST(retain__circle_of_parents_ends)
{
    struct plan plan = begin();

    (void)add(&plan, 300, 10, 1);
    (void)add(&plan, 200, 10, 2);
    (void)add(&plan, 100, 10, 0);
    plan.rules.older_than_ms = 250;
    assert_string_equal(choose(&plan), "-hh");
    plan.rules.older_than_ms = 350;
    assert_string_equal(choose(&plan), "OOO");
    plan.rules.older_than_ms = INT64_MIN;
    plan.rules.max_bytes = 0;
    assert_string_equal(choose(&plan), "---");
    plan.sessions[0].parent = 0;
    plan.sessions[2].parent = NONE;
    assert_string_equal(choose(&plan), "-BB");
}

TEST(retain__without_a_rule_is_refused)
{
    struct plan plan = begin();
    uint32_t chosen = 77;

    add_five(&plan);
    assert_int_equal(
        wal__retain_choose(&wal__heap_libc, &plan.rules, plan.sessions, plan.count, &chosen),
        WAL_EINVAL);
    assert_int_equal(chosen, 77);
}

static void *fail_resize(void *ctx, void *block, size_t size)
{
    int *left = ctx;

    return size > 0 && (*left)-- <= 0 ? NULL : wal__heap_libc.resize(NULL, block, size);
}

TEST(retain__without_memory_nothing_is_chosen)
{
    for (int i = 0; i < 2; i++) {
        int left = i;
        const struct wal__heap heap = {fail_resize, &left};
        struct plan plan = begin();
        uint32_t chosen = 77;

        add_five(&plan);
        plan.rules.older_than_ms = 1000;
        assert_int_equal(wal__retain_choose(&heap, &plan.rules, plan.sessions, plan.count, &chosen),
                         WAL_ENOMEM);
        assert_int_equal(chosen, 77);
        assert_int_equal(plan.sessions[0].rule, WAL__RETAIN_STAYS);
    }
}

TEST(retain__store_without_sessions)
{
    struct plan plan = begin();

    plan.rules.older_than_ms = 1;
    assert_string_equal(choose(&plan), "");
}
