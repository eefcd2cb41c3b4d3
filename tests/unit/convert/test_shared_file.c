/*
 * test_shared_file.c - files that views share with a client: if the client makes the file at the
 * same time, and if a process dies at any step, no byte of another program changes and the line
 * gets in.
 */
#include "convert/files/view_fs.h"
#include "tests/lib/kit/store_kit.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"

#define LINE  "{\"id\":\"s\",\"name\":\"One\",\"at\":2}\n"
#define SAME  "{\"id\":\"s\",\"name\":\"One\",\"at\":1}\n"
#define OTHER "{\"id\":\"s\",\"name\":\"Two\",\"at\":1}\n"

/* Makes the file if there is none, or dies, before the step `at` of a call. */
struct step {
    unsigned at;
    unsigned count;
    const char *text; /* of the file to make; or NULL: die */
    bool has_made;
};

/* Returns false if there is a file. */
static bool write_file(const char *text)
{
    int fd = open("index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0) {
        WAL__ASSERT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
    }
    return fd >= 0;
}

static const char *read_file(void)
{
    static char text[1024];
    int fd = open("index", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    assert_true(size >= 0);
    close(fd);
    text[size] = '\0';
    return text;
}

static size_t hook(void *ctx, size_t size)
{
    struct step *step = ctx;

    if (step->count++ != step->at) {
        return size;
    }
    if (step->text == NULL && size >= 2) {
        step->at++; /* writes a part, and dies at the next step */
        return size / 2;
    }
    if (step->text == NULL) {
        _exit(1);
    }
    step->has_made = write_file(step->text);
    return size;
}

static enum wal_status add(const char *line, struct step *step, bool is_line)
{
    const struct wal__view_env env = {
        .heap = &wal__heap_libc, .fault_hook = step != NULL ? hook : NULL, .ctx = step};
    int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct wal__shared_file file = {.env = &env,
                                          .root = ".",
                                          .path = "index",
                                          .temporary_dir = directory,
                                          .temporary = "temporary",
                                          .data = line,
                                          .size = strlen(line)};
    enum wal_status status =
        is_line ? wal__shared_file_add_line(&file, NULL) : wal__shared_file_create(&file, NULL);

    close(directory);
    return status;
}

static unsigned count_lines(const char *line)
{
    unsigned count = 0;
    const char *text = read_file();

    while ((text = strstr(text, line)) != NULL) {
        count++;
        text += strlen(line);
    }
    return count;
}

KIT_TEST(shared_file__document_that_exists_is_kept)
{
    assert_ok(add("{}", NULL, false));
    assert_string_equal(read_file(), "{}");
    assert_ok(add("{\"id\":1}", NULL, false));
    assert_string_equal(read_file(), "{}");
    assert_int_not_equal(access("temporary", F_OK), 0);
}

/* A flush that dies between linking and removing leaves two names of a file. */
KIT_TEST(shared_file__left_link_is_not_truncated)
{
    for (unsigned is_line = 0; is_line < 2; is_line++) {
        assert_true(write_file(OTHER));
        assert_int_equal(rename("index", "theirs"), 0);
        assert_int_equal(link("theirs", "temporary"), 0);
        assert_ok(add(LINE, NULL, is_line));
        assert_string_equal(read_file(), LINE);
        assert_int_not_equal(access("temporary", F_OK), 0);
        assert_int_equal(rename("theirs", "index"), 0);
        assert_string_equal(read_file(), OTHER);
        assert_int_equal(unlink("index"), 0);
    }
}

KIT_TEST(shared_file__line_is_added_once)
{
    assert_true(write_file(OTHER));
    assert_ok(add(LINE, NULL, true));
    assert_string_equal(read_file(), OTHER LINE);
    assert_ok(add(SAME, NULL, true));
    assert_string_equal(read_file(), OTHER LINE);
}

KIT_TEST(shared_file__unterminated_line_is_ended)
{
    assert_true(write_file("{\"id\":"));
    assert_ok(add(LINE, NULL, true));
    assert_string_equal(read_file(), "{\"id\":\n" LINE);
}

/* The client makes the file while the view does. */
KIT_TEST(shared_file__file_made_meanwhile_is_kept)
{
    unsigned made = 0;

    for (unsigned is_line = 0; is_line < 2; is_line++) {
        bool is_over = false;
        for (unsigned at = 0; !is_over; at++) {
            struct step step = {.at = at, .text = OTHER};
            assert_ok(add(LINE, &step, is_line));
            is_over = step.count <= at;
            made += step.has_made;
            assert_int_equal(count_lines(OTHER), step.has_made);
            assert_int_equal(count_lines(LINE), is_line || !step.has_made);
            assert_int_not_equal(access("temporary", F_OK), 0);
            assert_int_equal(unlink("index"), 0);
        }
    }
    assert_true(made >= 8);
}

KIT_TEST(shared_file__death_at_each_step_loses_nothing)
{
    unsigned deaths = 0;
    bool has_died = true;

    for (unsigned at = 0; has_died; at++) {
        for (unsigned exists = 0; exists < 2; exists++) {
            int status = 0;
            pid_t child;
            (void)unlink("index");
            assert_true(!exists || write_file(OTHER));
            child = kit_start_process();
            if (child == 0) {
                struct step step = {.at = at};
                _exit(add(LINE, &step, true) == WAL_OK ? 0 : 2);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
            has_died = WEXITSTATUS(status) == 1;
            deaths += has_died;
            (void)unlink("temporary"); /* as the view's next flush does */
            assert_ok(add(LINE, NULL, true));
            /* A line that only lacked its newline is there twice: the client takes the last one. */
            assert_in_range(count_lines(LINE), 1, has_died ? 2 : 1);
            assert_int_equal(count_lines(OTHER), exists);
        }
    }
    assert_true(deaths >= 6);
}
