/*
 * test_main.c - the program of the tests of a folder (test.h).
 */
#include "tests/lib/test.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"

/* In the order of registration, which is that of the linker for files. */
static struct test *tests;
static struct test **tests_end = &tests;
static struct test_file *files;

static uint64_t random_state;
static bool is_seeded;

/* The tests that are run; the one that runs is before `next`. */
static const struct test **chosen;
static size_t next;

void test_register(struct test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

void test_register_file(struct test_file *file)
{
    file->next = files;
    files = file;
}

uint64_t test_random(void)
{
    if (!is_seeded) {
        random_state = rng_seed(1);
        is_seeded = true;
    }
    return rng_next(&random_state);
}

static size_t thread_count;

static size_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;

    while (tasks != NULL && readdir(tasks) != NULL) {
        count++;
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return count;
}

/* A store that a test leaves open has threads: no leak is found of what they use. One that was
 * joined is listed for a moment more. */
static void expect_no_more_threads(void)
{
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < 10000 && count_threads() > thread_count; i++) {
        (void)nanosleep(&moment, NULL);
    }
    if (count_threads() > thread_count) {
        fail_msg("the test leaves threads");
    }
}

static int begin_test(void **state)
{
    const CMFixtureFunction set_up = chosen[next++]->unit.setup_func;

    thread_count = count_threads();
    return set_up != NULL ? set_up(state) : 0;
}

static int end_test(void **state)
{
    const CMFixtureFunction tear_down = chosen[next - 1]->unit.teardown_func;

    int failed;

    test_end_since(NULL);
    failed = tear_down != NULL ? tear_down(state) : 0;
    if (!WITH_THREAD_SANITIZER) { /* which starts one itself, at any time */
        expect_no_more_threads();
    }
    return failed;
}

/* Whether `path` is the file `name`.c in some folder. */
static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);

    return strncmp(base, name, length) == 0 && strcmp(base + length, ".c") == 0;
}

/* Whether that is the name of the test, or of it and others: what is before "__". */
static bool is_called(const struct test *test, const char *name)
{
    size_t length = strlen(name);

    return strncmp(test->unit.name, name, length) == 0 &&
           (test->unit.name[length] == '\0' || strncmp(test->unit.name + length, "__", 2) == 0);
}

static bool is_chosen(const struct test *test, const char *path, const char *name)
{
    return strcmp(test->file, path) == 0 && (name == NULL || is_called(test, name));
}

/* Runs the tests of the file, or those with that name. Returns how many failed. */
static int run(const char *path, const char *name)
{
    static const struct test_file none;
    const struct test_file *file = files;
    struct CMUnitTest *units;
    size_t count = 0;
    int failed = 0;

    while (file != NULL && strcmp(file->file, path) != 0) {
        file = file->next;
    }
    if (file == NULL) {
        file = &none;
    }
    for (struct test *test = tests; test != NULL; test = test->next) {
        count += is_chosen(test, path, name);
    }
    is_seeded = false;
    units = calloc(count, sizeof(*units));
    chosen = calloc(count, sizeof(const struct test *));
    if (units == NULL || chosen == NULL) {
        abort();
    }
    count = 0;
    for (struct test *test = tests; test != NULL; test = test->next) {
        if (is_chosen(test, path, name)) {
            chosen[count] = test;
            units[count] = test->unit;
            units[count].setup_func = begin_test;
            units[count++].teardown_func = end_test;
        }
    }
    next = 0;
    if (file->run_before != NULL && name == NULL) {
        failed = file->run_before();
    }
    /* The macro without an underscore counts an array. */
    failed += _cmocka_run_group_tests(path, units, count, file->set_up, file->tear_down);
    free(units);
    free(chosen);
    return failed;
}

/* Whether no test before this one is of its file. */
static bool is_first(const struct test *test)
{
    const struct test *other = tests;

    while (strcmp(other->file, test->file) != 0) {
        other = other->next;
    }
    return other == test;
}

/* What an argument names: a file, also where tests of others begin with its name. */
static int run_named(const char *name)
{
    for (const struct test *test = tests; test != NULL; test = test->next) {
        if (is_named(test->file, name)) {
            return run(test->file, NULL);
        }
    }
    for (const struct test *test = tests; test != NULL; test = test->next) {
        if (is_called(test, name)) {
            return run(test->file, name);
        }
    }
    (void)fprintf(stderr, "no file %s.c and no test of that name\n", name);
    return 1;
}

/* In a separate process: some tests depend on what is once for a process, as a handler of a
 * signal. */
static bool passes(const char *path)
{
    int status = 1;
    pid_t process;

    (void)fflush(NULL);
    process = fork();
    if (process == 0) {
        exit(run(path, NULL) != 0);
    }
    return process > 0 && waitpid(process, &status, 0) == process && status == 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        failed += run_named(argv[i]);
    }
    for (const struct test *test = tests; argc == 1 && test != NULL; test = test->next) {
        if (is_first(test)) {
            failed += !passes(test->file);
        }
    }
    return failed != 0;
}
