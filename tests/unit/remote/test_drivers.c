/*
 * test_drivers.c - tests of remote/driver: the contract of all drivers (driver_cases.h) and what is
 * special to a directory; URLs; and where a key is found, and that no error has a part of it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver_cases.h"
#include "remote/driver/credentials.h"
#include "remote/driver/driver.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

static char directory[PATH_MAX];

static struct wal_error failure = {.struct_size = sizeof(failure)};

/* PATH below the directory. */
static const char *path_of(const char *path)
{
    static char text[PATH_MAX + 256];

    (void)snprintf(text, sizeof(text), "%s/%s", directory, path);
    return text;
}

static struct wal__driver *open_in(const char *below, const struct wal__heap *heap)
{
    char url[PATH_MAX + 300];
    struct wal__driver *driver = NULL;

    (void)snprintf(url, sizeof(url), "file://%s", path_of(below));
    assert_ok(wal__driver_open(url, heap, &driver, &failure));
    return driver;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool count_each(void *ctx, const char *name, uint64_t size)
{
    (void)name;
    (void)size;
    ++*(int *)ctx;
    return true;
}

static int count_of(struct wal__driver *driver)
{
    int count = 0;

    assert_ok(driver->calls->list(driver, "", "", count_each, &count, &failure));
    return count;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path_of(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

TEST(driver_file__missing_directory_is_no_store)
{
    struct wal__driver *driver = open_in("missing", &wal__heap_libc);
    struct wal__buf bytes;
    uint64_t size = 0;
    int count = 0;

    wal__buf_init(&bytes, &wal__heap_libc);
    assert_int_equal(driver->calls->put_if_absent(driver, "a/b", slice("x"), &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(driver->calls->put(driver, "a", slice("x"), &failure), WAL_ENOTSTORE);
    assert_int_equal(driver->calls->get(driver, "a", 0, 1, &bytes, &failure), WAL_ENOTSTORE);
    assert_int_equal(driver->calls->head(driver, "a", &size, &failure), WAL_ENOTSTORE);
    assert_int_equal(driver->calls->remove(driver, "a", &failure), WAL_ENOTSTORE);
    assert_int_equal(driver->calls->list(driver, "", "", count_each, &count, &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(access(path_of("missing"), F_OK), -1);
    driver->calls->close(driver);
}

TEST(driver_file__leftovers_are_not_objects)
{
    struct wal__driver *driver;

    assert_int_equal(mkdir(path_of("left"), 0700), 0);
    driver = open_in("left", &wal__heap_libc);
    assert_ok(driver->calls->put_if_absent(driver, "a/b", slice("x"), &failure));
    write_file("left/~12.0", "half");
    write_file("left/a/~13.7", "half");
    write_file("left/a name", "foreign");
    assert_int_equal(mkdir(path_of("left/empty"), 0700), 0);
    assert_int_equal(symlink("b", path_of("left/a/link")), 0);
    assert_int_equal(mkfifo(path_of("left/fifo"), 0600), 0);
    assert_int_equal(count_of(driver), 1);
    driver->calls->close(driver);
}

TEST(driver_file__no_temporary_file_remains)
{
    struct wal__driver *driver;
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    assert_int_equal(mkdir(path_of("clean"), 0700), 0);
    driver = open_in("clean", &wal__heap_libc);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(driver->calls->put_if_absent(driver, "a", slice("x"), &failure),
                         i == 0 ? WAL_OK : WAL_EEXISTS);
        assert_ok(driver->calls->put(driver, "b", slice("y"), &failure));
    }
    assert_ok(driver->calls->put(driver, "c/d", slice("y"), &failure));
    assert_int_equal(driver->calls->put(driver, "c", slice("y"), &failure), WAL_EINVAL);
    dir = opendir(path_of("clean"));
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(count, 3);
    driver->calls->close(driver);
}

TEST(driver_file__directory_is_not_an_object)
{
    struct wal__driver *driver;
    uint64_t size = 0;

    assert_int_equal(mkdir(path_of("both"), 0700), 0);
    driver = open_in("both", &wal__heap_libc);
    assert_ok(driver->calls->put(driver, "a/b", slice("x"), &failure));
    assert_int_equal(driver->calls->head(driver, "a", &size, &failure), WAL_ENOTFOUND);
    assert_int_equal(driver->calls->head(driver, "a/b/c", &size, &failure), WAL_ENOTFOUND);
    assert_ok(driver->calls->remove(driver, "a", &failure));
    assert_ok(driver->calls->remove(driver, "a/b/c", &failure));
    assert_int_equal(driver->calls->put_if_absent(driver, "a", slice("x"), &failure), WAL_EINVAL);
    assert_int_equal(driver->calls->put_if_absent(driver, "a/b/c", slice("x"), &failure),
                     WAL_EINVAL);
    assert_ok(driver->calls->head(driver, "a/b", &size, &failure));
    assert_int_equal(count_of(driver), 1);
    driver->calls->close(driver);
}

TEST(driver_file__links_are_not_followed)
{
    struct wal__driver *driver;
    uint64_t size = 0;

    assert_int_equal(mkdir(path_of("linked"), 0700), 0);
    assert_int_equal(mkdir(path_of("outside"), 0700), 0);
    write_file("outside/file", "secret");
    assert_int_equal(symlink("../outside", path_of("linked/dir")), 0);
    assert_int_equal(symlink("../outside/file", path_of("linked/file")), 0);
    driver = open_in("linked", &wal__heap_libc);
    assert_int_equal(driver->calls->head(driver, "dir/file", &size, &failure), WAL_ENOTFOUND);
    assert_int_equal(driver->calls->head(driver, "file", &size, &failure), WAL_ENOTFOUND);
    assert_int_equal(driver->calls->put(driver, "dir/new", slice("x"), &failure), WAL_EINVAL);
    assert_int_equal(access(path_of("outside/new"), F_OK), -1);
    assert_int_equal(count_of(driver), 0);
    driver->calls->close(driver);
}

TEST(driver_file__each_failed_allocation_is_reported)
{
    struct faulty_heap faulty;
    struct wal__driver *driver;
    struct wal__buf bytes;
    int lists = 0;
    int gets = 0;

    faulty_heap_init(&faulty, &wal__heap_libc);
    assert_int_equal(mkdir(path_of("heap"), 0700), 0);
    driver = open_in("heap", &faulty.heap);
    assert_ok(driver->calls->put(driver, "a/b/c", slice("x"), &failure));
    for (enum wal_status status = WAL_ENOMEM; status != WAL_OK; lists++) {
        int count = 0;

        faulty_heap_fail(&faulty, (uint64_t)lists + 1, false);
        status = driver->calls->list(driver, "", "", count_each, &count, &failure);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
    }
    assert_true(lists > 3);
    for (enum wal_status status = WAL_ENOMEM; status != WAL_OK; gets++) {
        wal__buf_init(&bytes, &faulty.heap);
        faulty_heap_fail(&faulty, (uint64_t)gets + 1, false);
        status = driver->calls->get(driver, "a/b/c", 0, 9, &bytes, &failure);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        wal__buf_deinit(&bytes);
    }
    assert_true(gets > 1);
    driver->calls->close(driver);
    assert_int_equal(faulty.live, 0);
}

static int run_cases(void)
{
    char template[] = "remote.XXXXXX";
    char url[PATH_MAX + 16];

    if (mkdtemp(template) == NULL || realpath(template, directory) == NULL) {
        return 1;
    }
    (void)snprintf(url, sizeof(url), "file://%s", directory);
    return driver_cases_run(url);
}

TEST(url__directory)
{
    static const struct {
        const char *url;
        const char *directory;
    } cases[] = {
        {"file:///", "/"},
        {"file:///srv/remote", "/srv/remote"},
        {"file:///srv/remote//", "/srv/remote"},
        {"file:///a%20b/%25/%3f%23", "/a b/%/?#"},
        {"file:///a@b:c", "/a@b:c"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url;

        assert_ok(wal__driver_url_parse(cases[i].url, &url, NULL));
        assert_int_equal(url.kind, WAL__DRIVER_FILE);
        assert_string_equal(url.directory, cases[i].directory);
    }
}

TEST(url__bucket)
{
    static const struct {
        const char *url;
        const char *bucket;
        const char *prefix;
        const char *endpoint;
        const char *region;
    } cases[] = {
        {"s3://abc", "abc", "", "https://s3.us-east-1.amazonaws.com", "us-east-1"},
        {"s3://abc/", "abc", "", "https://s3.us-east-1.amazonaws.com", "us-east-1"},
        {"s3://a.b-c/p/q", "a.b-c", "p/q/", "https://s3.us-east-1.amazonaws.com", "us-east-1"},
        {"s3://abc/p/?region=eu-west-3", "abc", "p/", "https://s3.eu-west-3.amazonaws.com",
         "eu-west-3"},
        {"s3://abc?endpoint=http://127.0.0.1:8000/", "abc", "", "http://127.0.0.1:8000",
         "us-east-1"},
        {"s3://abc/p?region=r&endpoint=https%3A%2F%2F[::1]:7", "abc", "p/", "https://[::1]:7", "r"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url;

        assert_ok(wal__driver_url_parse(cases[i].url, &url, NULL));
        assert_int_equal(url.kind, WAL__DRIVER_S3);
        assert_string_equal(url.bucket, cases[i].bucket);
        assert_string_equal(url.prefix, cases[i].prefix);
        assert_string_equal(url.endpoint, cases[i].endpoint);
        assert_string_equal(url.region, cases[i].region);
    }
}

TEST(url__others_are_refused_and_not_repeated)
{
    static const char *const cases[] = {
        "",
        "/srv/remote",
        "http://hunter2/",
        "S3://abc",
        "file://",
        "file://hunter2/dir",
        "file:hunter2",
        "file:///a?hunter2",
        "file:///a#hunter2",
        "file:///a%",
        "file:///a%2",
        "file:///a%zzhunter2",
        "file:///a%00hunter2",
        "s3://",
        "s3:///hunter2",
        "s3://ab",
        "s3://../x",
        "s3://key:hunter2@abc/p",
        "s3://key:hunter2/more@abc/p",
        "s3://hunter2@abc",
        "s3://hunter 2",
        "s3://abc/p//hunter2",
        "s3://abc/../hunter2",
        "s3://abc/hunter2 ",
        "s3://abc?hunter2",
        "s3://abc?secret=hunter2",
        "s3://abc?region=",
        "s3://abc?region=hunter2/",
        "s3://abc?region=a&region=hunter2",
        "s3://abc?endpoint=ftp://hunter2",
        "s3://abc?endpoint=http://",
        "s3://abc?endpoint=http://u:hunter2@h",
        "s3://abc?endpoint=http://u%3Ahunter2%40h",
        "s3://abc?endpoint=http://h/hunter2",
        "s3://abc?endpoint=http://h?x&region=hunter2",
        "s3://abc?endpoint=http://h%0d%0ahunter2:1",
        "s3://abc?endpoint=http://h&&region=hunter2",
        "s3://abc?id=hunter2",
        "rados://hunter2",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url = {.bucket = "untouched"};
        struct wal_error error = {.struct_size = sizeof(error)};

        if (wal__driver_url_parse(cases[i], &url, &error) != WAL_EINVAL) {
            fail_msg("accepted: %s", cases[i]);
        }
        assert_string_equal(url.bucket, "untouched");
        assert_true(error.text[0] != '\0');
        assert_null(strstr(error.text, "hunter2"));
        assert_null(strstr(error.file, "hunter2"));
    }
}

TEST(url__too_long_parts_are_refused)
{
    static const char *const begins[] = {"file:///", "s3://", "s3://abc/",
                                         "s3://abc?region=", "s3://abc?endpoint=http://"};
    static char text[6000];

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        struct wal__driver_url url;

        memset(text, 'a', sizeof(text) - 1);
        memcpy(text, begins[i], strlen(begins[i]));
        assert_int_equal(wal__driver_url_parse(text, &url, NULL), WAL_EINVAL);
    }
}

#define COMMAND "AGENTWAL_REMOTE_CREDENTIALS_COMMAND"

static struct wal__credentials found;

static int clear_environment(void **state)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_PROFILE",
                                        COMMAND,
                                        "HOME"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
    memset(&found, 0, sizeof(found));
    failure = (struct wal_error){.struct_size = sizeof(failure)};
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static enum wal_status load(void)
{
    return wal__credentials_load(&wal__heap_libc, &found, &failure);
}

static void assert_found(const char *access, const char *secret, const char *token)
{
    failure.text[0] = '\0';
    assert_ok(load());
    assert_string_equal(failure.text, "");
    assert_string_equal(found.access_key, access);
    assert_string_equal(found.secret_key, secret);
    assert_string_equal(found.token, token);
}

/* The text has `part`, and nothing of a secret, all of which have "hush". */
static void assert_refused(const char *part)
{
    assert_int_equal(load(), WAL_EACCESS);
    if (strstr(failure.text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, failure.text);
    }
    assert_null(strstr(failure.text, "hush"));
    assert_null(strstr(failure.file, "hush"));
}

TEST_WITH(credentials__of_the_environment, clear_environment, NULL)
{
    set("AWS_ACCESS_KEY_ID", "key");
    set("AWS_SECRET_ACCESS_KEY", "hush/+=");
    set("AWS_SHARED_CREDENTIALS_FILE", "missing");
    set(COMMAND, "exit 1");
    assert_found("key", "hush/+=", "");
    set("AWS_SESSION_TOKEN", "hush-token");
    assert_found("key", "hush/+=", "hush-token");
    assert_int_equal(found.expires_s, 0);
}

TEST_WITH(credentials__half_of_the_environment, clear_environment, NULL)
{
    set("AWS_SECRET_ACCESS_KEY", "hush");
    assert_refused("AWS_ACCESS_KEY_ID");
    (void)clear_environment(state);
    set("AWS_ACCESS_KEY_ID", "hush");
    set("AWS_SECRET_ACCESS_KEY", "");
    assert_refused("AWS_SECRET_ACCESS_KEY");
}

TEST_WITH(credentials__line_breaks_are_refused, clear_environment, NULL)
{
    char longest[300];

    set("AWS_ACCESS_KEY_ID", "key");
    set("AWS_SECRET_ACCESS_KEY", "hush\r\nX-Header: hush");
    assert_refused("control characters");
    set("AWS_SECRET_ACCESS_KEY", "hush hush");
    assert_refused("blanks");
    memset(longest, 'h', sizeof(longest));
    memcpy(longest + 294, "hush", 5);
    set("AWS_SECRET_ACCESS_KEY", longest);
    assert_refused("too long");
}

TEST_WITH(credentials__of_a_file, clear_environment, NULL)
{
    write_text("file", "# aws_access_key_id = comment\n"
                       "aws_access_key_id = outside\n"
                       "[other]\n"
                       "aws_access_key_id=other\n"
                       "aws_secret_access_key=hush-other\n"
                       "[default]\r\n"
                       "  aws_access_key_id = key \r\n"
                       "\r\n"
                       "; comment\n"
                       "aws_secret_access_key\t=\thush=/+\n"
                       "region = somewhere with blanks\n"
                       "nonsense\n"
                       "[ tokens ]\n"
                       "aws_access_key_id = t\n"
                       "aws_secret_access_key = hush-t\n"
                       "aws_session_token = hush-token");
    set("AWS_SHARED_CREDENTIALS_FILE", "file");
    assert_found("key", "hush=/+", "");
    set("AWS_PROFILE", "other");
    assert_found("other", "hush-other", "");
    set("AWS_PROFILE", "tokens");
    assert_found("t", "hush-t", "hush-token");
}

TEST_WITH(credentials__of_the_home, clear_environment, NULL)
{
    assert_int_equal(mkdir(".aws", 0700), 0);
    write_text(".aws/credentials", "[default]\naws_access_key_id = home\n"
                                   "aws_secret_access_key = hush\n");
    set("HOME", ".");
    assert_found("home", "hush", "");
    set("AWS_SHARED_CREDENTIALS_FILE", "missing");
    assert_refused("write the profile default to missing");
}

TEST_WITH(credentials__file_that_lacks_the_profile, clear_environment, NULL)
{
    write_text("lacks", "[default]\naws_access_key_id = hush\n[b]\n"
                        "aws_secret_access_key = hush\n");
    set("AWS_SHARED_CREDENTIALS_FILE", "lacks");
    assert_refused("the profile default");
    set("AWS_PROFILE", "b");
    assert_refused("the profile b");
    write_text("lacks", "[b]\naws_access_key_id = hush hush\n"
                        "aws_secret_access_key = hush\n");
    assert_refused("blanks");
    assert_string_equal(failure.file, "lacks");
    set("AWS_SHARED_CREDENTIALS_FILE", ".");
    assert_refused("cannot read");
}

TEST_WITH(credentials__of_a_command, clear_environment, NULL)
{
    set("AWS_SHARED_CREDENTIALS_FILE", "missing");
    set(COMMAND, "printf '{\"Version\":1,\"AccessKeyId\":\"key\","
                 "\"SecretAccessKey\":\"hush\\\\/\",\"SessionToken\":\"hush-token\","
                 "\"Expiration\":\"2030-01-02T03:04:05Z\",\"More\":[1]}'");
    assert_found("key", "hush/", "hush-token");
    assert_int_equal(found.expires_s, 1893553445);
    /* It is before a file. */
    write_text("file", "[default]\naws_access_key_id = file\n"
                       "aws_secret_access_key = hush\n");
    set("AWS_SHARED_CREDENTIALS_FILE", "file");
    assert_found("key", "hush/", "hush-token");
    set(COMMAND, "echo '{\"Version\":1,\"AccessKeyId\":\"key\","
                 "\"SecretAccessKey\":\"hush\",\"SessionToken\":null}'; "
                 "test ! -t 0 && ! read x");
    assert_found("key", "hush", "");
    assert_int_equal(found.expires_s, 0);
}

TEST_WITH(credentials__commands_that_fail, clear_environment, NULL)
{
    static const struct {
        const char *command;
        const char *text;
    } cases[] = {
        {"echo hush; exit 3", "failed: exit code 3"},
        {"kill -9 $$", "failed: signal 9"},
        {"echo hush", "Version 1"},
        {"true", "Version 1"},
        {"echo '{\"Version\":2,\"AccessKeyId\":\"hush\","
         "\"SecretAccessKey\":\"hush\"}'",
         "Version 1"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"hush\"}'", "no valid"},
        {"printf %s '{\"Version\":1,\"AccessKeyId\":\"k\","
         "\"SecretAccessKey\":\"hush\\nhush\"}'",
         "no valid"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"k\","
         "\"SecretAccessKey\":17}'",
         "no valid"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"k\","
         "\"SecretAccessKey\":\"hush\",\"Expiration\":\"tomorrow\"}'",
         "no valid"},
        {"cat /dev/zero", "printed too much"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(COMMAND, cases[i].command);
        assert_refused(cases[i].text);
    }
}

TEST_WITH(credentials__command_that_hangs_is_ended, clear_environment, NULL)
{
    struct timespec from;
    struct timespec to;
    struct wal__buf output;

    wal__buf_init(&output, &wal__heap_libc);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(wal__credentials_run("echo hush; sleep 100; true", 200, &output, &failure),
                     WAL_EACCESS);
    assert_int_equal(wal__credentials_run("exec >&-; sleep 100; true", 200, &output, &failure),
                     WAL_EACCESS);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec < 20);
    assert_non_null(strstr(failure.text, "in time"));
    assert_int_equal(output.size, 0);
    wal__buf_deinit(&output);
}

TEST_WITH(credentials__command_without_sigchld, clear_environment, NULL)
{
    struct wal__buf output;

    wal__buf_init(&output, &wal__heap_libc);
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    assert_ok(wal__credentials_run("printf text", 60000, &output, &failure));
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    assert_int_equal(output.size, 4);
    assert_memory_equal(output.data, "text", 4);
    wal__buf_deinit(&output);
}

TEST_WITH(credentials__nothing_anywhere, clear_environment, NULL)
{
    assert_refused("there are no credentials");
    set("HOME", "/nonexistent");
    assert_refused("there are no credentials");
}

TEST_WITH(credentials__wiped, clear_environment, NULL)
{
    static const struct wal__credentials zero;

    set("AWS_ACCESS_KEY_ID", "key");
    set("AWS_SECRET_ACCESS_KEY", "hush");
    assert_ok(load());
    wal__credentials_wipe(&found);
    assert_memory_equal(&found, &zero, sizeof(zero));
}

TEST_FILE(NULL, NULL, run_cases);
