/*
 * test_credentials.c - tests of remote/driver/credentials: where a key is
 * found, and that no error has a part of it.
 */
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "remote/driver/credentials.h"
#include "tests/lib/test.h"

#define COMMAND "AGENTWAL_REMOTE_CREDENTIALS_COMMAND"

static struct wal__credentials found;
static struct wal_error failure;

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

static void assert_found(const char *access, const char *secret,
                         const char *token)
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
    set(COMMAND,
        "printf '{\"Version\":1,\"AccessKeyId\":\"key\","
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
        {"cat /dev/zero", "more than credentials"},
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
    assert_int_equal(wal__credentials_run("echo hush; sleep 100; true", 200,
                                          &output, &failure),
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
