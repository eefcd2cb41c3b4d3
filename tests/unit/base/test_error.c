/*
 * test_error.c - tests of engine/base/error, status and assert.
 */
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "tests/lib/test.h"

enum { untouched = 0xA5 };

static struct wal_error marked(uint32_t struct_size)
{
    struct wal_error error;

    memset(&error, untouched, sizeof(error));
    error.struct_size = struct_size;
    return error;
}

static void assert_untouched(const struct wal_error *error, size_t from)
{
    const uint8_t *bytes = (const uint8_t *)error;

    for (size_t i = from; i < sizeof(*error); i++) {
        assert_int_equal(bytes[i], untouched);
    }
}

TEST(error__every_field_is_filled)
{
    struct wal_error error = marked(sizeof(error));

    assert_int_equal(wal__fail_at(&error, WAL_EIO, 5, "/a/b", 77, "read: %s %d", "bad", 3),
                     WAL_EIO);
    assert_int_equal(error.struct_size, sizeof(error));
    assert_int_equal(error.status, WAL_EIO);
    assert_int_equal(error.sys_errno, 5);
    assert_int_equal(error.holder, 0);
    assert_int_equal(error.offset, 77);
    assert_string_equal(error.file, "/a/b");
    assert_string_equal(error.text, "read: bad 3");
    assert_string_equal(error.actual, "");
}

TEST(error__null_error_and_null_file)
{
    struct wal_error error = marked(sizeof(error));

    assert_int_equal(wal__fail(NULL, WAL_EBUSY, "full"), WAL_EBUSY);
    assert_int_equal(wal__fail(&error, WAL_EBUSY, "full"), WAL_EBUSY);
    assert_string_equal(error.file, "");
    wal__error_copy(NULL, &error);
}

TEST(error__long_texts_are_truncated_and_terminated)
{
    struct wal_error error = marked(sizeof(error));
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)wal__fail_at(&error, WAL_EIO, 0, text, 0, "%s", text);
    assert_int_equal(strlen(error.file), sizeof(error.file) - 1);
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
}

TEST(error__only_whole_fields_within_struct_size)
{
    static const size_t ends[] = {
        offsetof(struct wal_error, status),   offsetof(struct wal_error, sys_errno),
        offsetof(struct wal_error, holder),   offsetof(struct wal_error, expectation),
        offsetof(struct wal_error, reserved), offsetof(struct wal_error, offset),
        offsetof(struct wal_error, file),     offsetof(struct wal_error, text),
        offsetof(struct wal_error, actual),   sizeof(struct wal_error),
    };
    size_t whole = 0;

    for (uint32_t size = 1; size <= sizeof(struct wal_error) + 8; size++) {
        struct wal_error error = marked(size);

        while (whole < 9 && ends[whole + 1] <= size) {
            whole++;
        }
        (void)wal__fail_at(&error, WAL_EIO, 5, "file", 77, "text");
        assert_int_equal(error.struct_size, size);
        assert_untouched(&error, ends[whole]);
        if (whole > 0) {
            assert_int_equal(error.status, WAL_EIO);
        }
        if (whole >= 8) {
            assert_string_equal(error.text, "text");
        }
        if (whole == 9) {
            assert_string_equal(error.actual, "");
        }
    }
}

TEST(error__conflict_has_expectation_and_present_value)
{
    struct wal_error error = marked(sizeof(error));

    assert_int_equal(
        wal__conflict(&error, WAL_EXPECTATION_HEAD, "e-17", "the head is at %s", "e-17"),
        WAL_ECONFLICT);
    assert_int_equal(error.status, WAL_ECONFLICT);
    assert_int_equal(error.expectation, WAL_EXPECTATION_HEAD);
    assert_string_equal(error.actual, "e-17");
    assert_string_equal(error.text, "the head is at e-17");
    assert_int_equal(wal__fail(&error, WAL_EBUSY, "full"), WAL_EBUSY);
    assert_int_equal(error.expectation, WAL_EXPECTATION_NONE);
    assert_int_equal(wal__conflict(NULL, WAL_EXPECTATION_TAIL, "", "tail"), WAL_ECONFLICT);
}

TEST(error__arguments_may_point_into_the_error)
{
    struct wal_error error = marked(sizeof(error));

    (void)wal__fail_at(&error, WAL_EIO, 5, "file", 77, "inner");
    (void)wal__fail_at(&error, WAL_ECORRUPT, 5, error.file, 78, "outer: %s", error.text);
    assert_string_equal(error.file, "file");
    assert_string_equal(error.text, "outer: inner");
}

TEST(error__copy_keeps_the_size_of_its_target)
{
    struct wal_error from = marked(sizeof(from));
    struct wal_error to = marked(offsetof(struct wal_error, file));

    (void)wal__fail_at(&from, WAL_ELOCKED, 11, "file", 77, "text");
    from.holder = 4711;
    wal__error_copy(&to, &from);
    assert_int_equal(to.struct_size, offsetof(struct wal_error, file));
    assert_int_equal(to.status, WAL_ELOCKED);
    assert_int_equal(to.holder, 4711);
    assert_int_equal(to.offset, 77);
    assert_untouched(&to, offsetof(struct wal_error, file));
}

TEST(error__actual_is_set_and_terminated)
{
    struct wal_error error = marked(sizeof(error));

    (void)wal__fail_at(&error, WAL_ECONFLICT, 0, "file", 0, "the head is at e-17");
    wal__error_set_actual(&error, "e-17, and more", 4);
    assert_string_equal(error.actual, "e-17");
    wal__error_set_actual(&error, error.text + 15, 3);
    assert_string_equal(error.actual, "e-1");
    wal__error_set_actual(&error, NULL, 0);
    assert_string_equal(error.actual, "");
    assert_int_equal(error.status, WAL_ECONFLICT);
    assert_string_equal(error.text, "the head is at e-17");
    wal__error_set_actual(NULL, "e-17", 4);
}

TEST(error__actual_is_truncated)
{
    struct wal_error error = marked(sizeof(error));
    char text[2 * sizeof(error.actual)];

    memset(text, 'x', sizeof(text));
    wal__error_set_actual(&error, text, sizeof(error.actual) - 1);
    assert_int_equal(strlen(error.actual), sizeof(error.actual) - 1);
    wal__error_set_actual(&error, text, sizeof(text));
    assert_int_equal(strlen(error.actual), sizeof(error.actual) - 1);
}

TEST(error__without_struct_size_is_filled)
{
    struct wal_error error = marked(0);

    (void)wal__fail_at(&error, WAL_EIO, 5, "file", 77, "text");
    wal__error_set_actual(&error, "e-17", 4);
    assert_int_equal(error.status, WAL_EIO);
    assert_string_equal(error.text, "text");
    assert_string_equal(error.actual, "e-17");
}

TEST(error__actual_outside_struct_size_is_left_alone)
{
    const uint32_t end =
        (uint32_t)(offsetof(struct wal_error, actual) + sizeof(((struct wal_error *)NULL)->actual));

    for (uint32_t size = 1; size < end; size++) {
        struct wal_error error = marked(size);

        wal__error_set_actual(&error, "e-17", 4);
        assert_int_equal(error.struct_size, size);
        assert_untouched(&error, sizeof(error.struct_size));
    }

    struct wal_error error = marked(end);

    wal__error_set_actual(&error, "e-17", 4);
    assert_string_equal(error.actual, "e-17");
}

TEST(error__a_later_failure_clears_actual)
{
    struct wal_error error = marked(sizeof(error));
    struct wal_error copy = marked(sizeof(copy));

    wal__error_set_actual(&error, "e-17", 4);
    wal__error_copy(&copy, &error);
    assert_string_equal(copy.actual, "e-17");
    (void)wal__fail_at(&error, WAL_EIO, 5, "file", 0, "read");
    assert_string_equal(error.actual, "");
}

TEST(status__every_status_has_its_own_text)
{
    const char *unknown = wal_status_text(WAL_EKEY - 1);

    assert_string_equal(unknown, wal_status_text(WAL_END + 1));
    assert_string_equal(unknown, wal_status_text(INT32_MIN));
    assert_string_equal(unknown, wal_status_text(INT32_MAX));
    for (int32_t a = WAL_EKEY; a <= WAL_END; a++) {
        assert_string_not_equal(wal_status_text(a), unknown);
        for (int32_t b = WAL_EKEY; b < a; b++) {
            assert_string_not_equal(wal_status_text(a), wal_status_text(b));
        }
    }
}

TEST(library_version__is_three_numbers)
{
    const char *at = wal_version();
    int dots = 0;

    assert_true(*at >= '0' && *at <= '9');
    for (; *at != '\0'; at++) {
        dots += *at == '.';
        assert_true(*at == '.' || (*at >= '0' && *at <= '9'));
        assert_false(at[0] == '.' && (at[1] == '.' || at[1] == '\0'));
    }
    assert_int_equal(dots, 2);
}

/* What the child says on stderr before it dies, and how it dies. */
static int run_assertion(int condition, char *said, size_t size)
{
    const struct rlimit no_core = {0};
    int ends[2];
    int how;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        WAL__ASSERT(condition == 1);
        _exit(0);
    }
    (void)close(ends[1]);

    ssize_t got = read(ends[0], said, size - 1);

    (void)close(ends[0]);
    assert_true(got >= 0);
    said[got] = '\0';
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

TEST(assert__broken_invariant_aborts_with_its_text)
{
    char said[512];
    int how = run_assertion(1, said, sizeof(said));

    assert_true(WIFEXITED(how));
    assert_string_equal(said, "");
    how = run_assertion(2, said, sizeof(said));
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGABRT);
    assert_non_null(strstr(said, "condition == 1"));
    assert_non_null(strstr(said, "test_error.c:"));
}
