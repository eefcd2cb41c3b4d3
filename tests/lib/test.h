/*
 * test.h - tests that register themselves.
 *
 * A file of tests has no main and no table. TEST(name) { ... } defines a test and adds it to those
 * of its file, in their order in the file. The files of a folder are one program (test_main.c),
 * which runs the files and the tests that it is given by name, or all:
 *
 *     unit_store test_store_open test_close__refuses_others test_close
 *
 * A test fails by the assertions of cmocka. Its parameter is `state`, what the set-up left there.
 */
#ifndef AGENTWAL_TESTS_LIB_TEST_H
#define AGENTWAL_TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The call succeeds; WAL_OK is that of agentwal.h. */
#define assert_ok(call) assert_int_equal(call, WAL_OK)

struct test {
    const char *file;
    struct CMUnitTest unit;
    struct test *next;
};

/* What surrounds the tests of a file, once. */
struct test_file {
    const char *file;
    CMFixtureFunction set_up; /* or null, as the others */
    CMFixtureFunction tear_down;
    int (*run_before)(void); /* tests that no macro can define; returns how
                              * many failed */
    struct test_file *next;
};

/* Both keep the struct, which is static. */
void test_register(struct test *test);
void test_register_file(struct test_file *file);

/* A random number. The first one in a file follows from AGENTWAL_SEED, or 1, and prints that. One
 * thread. */
uint64_t test_random(void);

/* Calls end(arg) when the test ends, before its tear-down, the last one first. Any thread. */
typedef void test_end_fn(void *arg);
void test_at_end(test_end_fn *end, void *arg);
/* Not any more, if it was to be called; returns arg. Any thread. */
void *test_forget(const void *arg);
/* Zeroes, which are freed when the test ends. */
void *test_memory(size_t size);
/* The bytes of a file with a zero after them, as test_memory. */
char *test_file(const char *path, size_t *size);
/* For a test that does much: ends what was to end with the test since the mark. */
const void *test_mark(void);
void test_end_since(const void *mark);

/* Each test begins with set_up and ends with tear_down, or null. */
#define TEST_WITH(name, set_up, tear_down)                                          \
    static void test_##name(void **state);                                          \
    __attribute__((constructor)) static void register_##name(void)                  \
    {                                                                               \
        static struct test test = {                                                 \
            __FILE__, {"test_" #name, test_##name, set_up, tear_down, NULL}, NULL}; \
        test_register(&test);                                                       \
    }                                                                               \
    static void test_##name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* At most once in a file. */
#define TEST_FILE(set_up, tear_down, run_before)                                        \
    __attribute__((constructor)) static void register_file(void)                        \
    {                                                                                   \
        static struct test_file file = {__FILE__, set_up, tear_down, run_before, NULL}; \
        test_register_file(&file);                                                      \
    }                                                                                   \
    _Static_assert(1, "")

#endif
