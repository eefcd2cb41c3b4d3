/*
 * credentials.c - finds the key that signs requests (credentials.h). Invariant: memory that had a
 * secret is wiped before it is freed, and no text of an error is made of what was read. Any thread,
 * while no other changes the environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/command.h"
#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "remote/driver/credentials.h"

/* --- the command ---------------------------------------------------------- */

enum { OUTPUT_MAX = 64 * 1024 };

enum wal_status wal__credentials_run(const char *command, uint32_t timeout_ms,
                                     struct wal__buf *output, struct wal_error *error)
{
    enum wal_status status;
    uint8_t *end;
    size_t size = 0;

    if (wal__buf_reserve(output, OUTPUT_MAX, &end) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__command_run("AGENTWAL_REMOTE_CREDENTIALS_COMMAND", command, timeout_ms, end,
                              OUTPUT_MAX, &size, error);
    output->size += status == WAL_OK ? size : 0;
    return status;
}

/* --- finding the key ------------------------------------------------------ */

enum { FILE_MAX = 1024 * 1024, COMMAND_TIMEOUT_MS = 60 * 1000 };

void wal__credentials_wipe(struct wal__credentials *credentials)
{
    wal__system_wipe(credentials, sizeof(*credentials));
}

static void wipe_and_deinit(struct wal__buf *buf)
{
    if (buf->data != NULL) {
        wal__system_wipe(buf->data, buf->capacity);
    }
    wal__buf_deinit(buf);
}

/* Copies a value that a header can have: printable ASCII, without blanks. */
static bool copy_value(char *to, size_t capacity, const char *from, size_t size)
{
    if (size == 0 || size >= capacity) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (from[i] <= ' ' || from[i] > '~') {
            return false;
        }
    }
    memmove(to, from, size); /* from may be to */
    to[size] = '\0';
    return true;
}

/* --- environment ---------------------------------------------------------- */

/* The variable, or NULL when it is unset or empty. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static bool copy_variable(char *to, size_t capacity, const char *value)
{
    return copy_value(to, capacity, value, strlen(value));
}

static enum wal_status load_environment(struct wal__credentials *credentials,
                                        struct wal_error *error)
{
    const char *access = variable("AWS_ACCESS_KEY_ID");
    const char *secret = variable("AWS_SECRET_ACCESS_KEY");
    const char *token = variable("AWS_SESSION_TOKEN");

    if (access == NULL && secret == NULL) {
        return WAL_ENOTFOUND;
    }
    if (access == NULL || secret == NULL) {
        return wal__fail(error, WAL_EACCESS, "%s is set, but %s is not: set both",
                         access == NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                         access == NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
    }
    if (!copy_variable(credentials->access_key, sizeof(credentials->access_key), access) ||
        !copy_variable(credentials->secret_key, sizeof(credentials->secret_key), secret) ||
        (token != NULL && !copy_variable(credentials->token, sizeof(credentials->token), token))) {
        return wal__fail(error, WAL_EACCESS,
                         "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or "
                         "AWS_SESSION_TOKEN is too long, or has blanks or "
                         "control characters");
    }
    return WAL_OK;
}

/* --- file ----------------------------------------------------------------- */

/* A line without blanks around it. */
struct line {
    const char *at;
    size_t size;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct line trim(const char *at, size_t size)
{
    while (size > 0 && is_blank(at[0])) {
        at++;
        size--;
    }
    while (size > 0 && is_blank(at[size - 1])) {
        size--;
    }
    return (struct line){at, size};
}

static bool line_is(struct line line, const char *text)
{
    return line.size == strlen(text) && memcmp(line.at, text, line.size) == 0;
}

/* Whether the line [NAME] names the profile. */
static bool begins_profile(struct line line, const char *profile)
{
    struct line name;

    if (line.size < 2 || line.at[line.size - 1] != ']') {
        return false;
    }
    name = trim(line.at + 1, line.size - 2);
    return line_is(name, profile);
}

/* NAME = VALUE in the profile. false: the value is not valid. */
static bool set_from_line(struct line line, struct wal__credentials *credentials)
{
    const char *equals = memchr(line.at, '=', line.size);
    struct line name;
    struct line value;

    if (equals == NULL) {
        return true;
    }
    name = trim(line.at, (size_t)(equals - line.at));
    value = trim(equals + 1, line.size - (size_t)(equals - line.at) - 1);
    if (line_is(name, "aws_access_key_id")) {
        return copy_value(credentials->access_key, sizeof(credentials->access_key), value.at,
                          value.size);
    }
    if (line_is(name, "aws_secret_access_key")) {
        return copy_value(credentials->secret_key, sizeof(credentials->secret_key), value.at,
                          value.size);
    }
    return !line_is(name, "aws_session_token") ||
           copy_value(credentials->token, sizeof(credentials->token), value.at, value.size);
}

/* WAL_ENOTFOUND when the text of a file lacks the profile or its keys. `where` names the file or
 * command in errors. */
static enum wal_status parse_file(struct wal_slice text, const char *profile, const char *where,
                                  struct wal__credentials *credentials, struct wal_error *error)
{
    struct wal__credentials parsed = {0};
    const char *at = text.data;
    const char *end = at + text.size;
    bool is_in_profile = false;
    bool is_valid = true;
    enum wal_status status = WAL_OK;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline == NULL ? end : newline;
        struct line line = trim(at, (size_t)(line_end - at));

        at = newline == NULL ? end : newline + 1;
        if (line.size > 0 && line.at[0] == '[') {
            is_in_profile = begins_profile(line, profile);
        } else if (is_in_profile && line.size > 0 && line.at[0] != '#' && line.at[0] != ';') {
            is_valid &= set_from_line(line, &parsed);
        }
    }
    if (!is_valid) {
        status = wal__fail_at(error, WAL_EACCESS, 0, where, 0,
                              "a key of the profile %s is empty, too long, or "
                              "has blanks or control characters",
                              profile);
    } else if (parsed.access_key[0] == '\0' || parsed.secret_key[0] == '\0') {
        status = wal__fail_at(error, WAL_ENOTFOUND, 0, where, 0,
                              "the file has no profile %s with "
                              "aws_access_key_id and aws_secret_access_key",
                              profile);
    } else {
        *credentials = parsed;
    }
    wal__credentials_wipe(&parsed);
    return status;
}

/* Appends the file, which may be at most FILE_MAX bytes: the buffer is not moved, so that no copy
 * of a secret remains. */
static enum wal_status read_file(const char *path, struct wal__buf *text, struct wal_error *error)
{
    ssize_t got = 1;
    uint8_t *end;
    int fd;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    fd = wal__descriptor_above_stdio(fd);
    if (fd < 0) {
        return wal__fail_at(error,
                            errno == ENOENT || errno == ENOTDIR ? WAL_ENOTFOUND : WAL_EACCESS,
                            errno, path, 0, "cannot open the credentials: %s", strerror(errno));
    }
    if (wal__buf_reserve(text, FILE_MAX, &end) != WAL_OK) {
        (void)close(fd);
        return wal__no_memory(error);
    }
    while (got > 0 && text->size < FILE_MAX) {
        WAL__RETRY_EINTR(got, read(fd, end + text->size, FILE_MAX - text->size));
        text->size += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    return got == 0 ? WAL_OK
                    : wal__fail_at(error, WAL_EACCESS, got < 0 ? errno : EFBIG, path, 0,
                                   "cannot read the credentials");
}

static enum wal_status load_file(const struct wal__heap *heap, struct wal__credentials *credentials,
                                 struct wal_error *error)
{
    const char *named = variable("AWS_SHARED_CREDENTIALS_FILE");
    const char *profile = variable("AWS_PROFILE");
    const char *home = variable("HOME");
    char path[4096];
    struct wal__buf text;
    enum wal_status status;

    if (named == NULL && home == NULL) {
        return WAL_ENOTFOUND;
    }
    if (snprintf(path, sizeof(path), "%s%s", named == NULL ? home : named,
                 named == NULL ? "/.aws/credentials" : "") >= (int)sizeof(path)) {
        return wal__fail(error, WAL_EACCESS, "the path of the credentials is too long");
    }
    wal__buf_init(&text, heap);
    status = read_file(path, &text, error);
    if (status == WAL_OK) {
        status = parse_file((struct wal_slice){text.data, text.size},
                            profile == NULL ? "default" : profile, path, credentials, error);
    }
    wipe_and_deinit(&text);
    return status;
}

/* --- command -------------------------------------------------------------- */

/* Decodes a member that is a text; an absent one is empty. */
static bool copy_member(const struct wal__json_member *member, char *to, size_t capacity,
                        bool is_required)
{
    size_t size = 0;
    bool has_nul = false;

    if (member->value.kind == WAL__JSON_NONE ||
        (member->value.kind == WAL__JSON_NULL && !is_required)) {
        return !is_required;
    }
    return member->value.kind == WAL__JSON_STRING &&
           wal__json_unescape(member->value.span, (uint8_t *)to, capacity - 1, &size, &has_nul) ==
               WAL__JSON_OK &&
           copy_value(to, capacity, to, size);
}

/* Reads 2026-01-31T12:00:00Z, with or without a fraction, or with +00:00. */
static bool read_time(const char *text, int64_t *seconds)
{
    struct tm time = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &time);

    if (end == NULL) {
        return false;
    }
    if (*end == '.') {
        end++;
        end += strspn(end, "0123456789");
    }
    if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0) {
        return false;
    }
    *seconds = timegm(&time);
    return *seconds > 0;
}

static enum wal_status parse_json(struct wal_slice text, struct wal__credentials *credentials,
                                  struct wal_error *error)
{
    struct wal__credentials parsed = {0};
    char expiration[64] = "";
    int64_t version = 0;
    struct wal__json_member members[] = {
        {.key = "Version"},      {.key = "AccessKeyId"}, {.key = "SecretAccessKey"},
        {.key = "SessionToken"}, {.key = "Expiration"},
    };
    enum wal_status status = WAL_OK;

    if (wal__json_members(text.data, text.size, members, 5, NULL) != WAL__JSON_OK ||
        members[0].value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(members[0].value.span, &version) != WAL__JSON_OK || version != 1) {
        status = wal__fail(error, WAL_EACCESS,
                           "AGENTWAL_REMOTE_CREDENTIALS_COMMAND did not print "
                           "a JSON object with Version 1");
    } else if (!copy_member(&members[1], parsed.access_key, sizeof(parsed.access_key), true) ||
               !copy_member(&members[2], parsed.secret_key, sizeof(parsed.secret_key), true) ||
               !copy_member(&members[3], parsed.token, sizeof(parsed.token), false) ||
               !copy_member(&members[4], expiration, sizeof(expiration), false) ||
               (expiration[0] != '\0' && !read_time(expiration, &parsed.expires_s))) {
        status = wal__fail(error, WAL_EACCESS,
                           "AGENTWAL_REMOTE_CREDENTIALS_COMMAND printed no "
                           "valid AccessKeyId, SecretAccessKey, SessionToken "
                           "or Expiration");
    } else {
        *credentials = parsed;
    }
    wal__credentials_wipe(&parsed);
    return status;
}

static enum wal_status load_command(const struct wal__heap *heap,
                                    struct wal__credentials *credentials, struct wal_error *error)
{
    const char *command = variable("AGENTWAL_REMOTE_CREDENTIALS_COMMAND");
    struct wal__buf output;
    enum wal_status status;

    if (command == NULL) {
        return WAL_ENOTFOUND;
    }
    wal__buf_init(&output, heap);
    status = wal__credentials_run(command, COMMAND_TIMEOUT_MS, &output, error);
    if (status == WAL_OK) {
        status = parse_json((struct wal_slice){output.data, output.size}, credentials, error);
    }
    wipe_and_deinit(&output);
    return status;
}

enum wal_status wal__credentials_load(const struct wal__heap *heap,
                                      struct wal__credentials *credentials, struct wal_error *error)
{
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct wal__credentials loaded = {0};
    enum wal_status status = load_environment(&loaded, &detail);

    if (status == WAL_ENOTFOUND) {
        status = load_command(heap, &loaded, &detail);
    }
    if (status == WAL_ENOTFOUND) {
        status = load_file(heap, &loaded, &detail);
    }
    if (status == WAL_ENOTFOUND) {
        const char *profile = variable("AWS_PROFILE");
        const char *file = variable("AWS_SHARED_CREDENTIALS_FILE");

        status = wal__fail(&detail, WAL_EACCESS,
                           "there are no credentials: set AWS_ACCESS_KEY_ID and "
                           "AWS_SECRET_ACCESS_KEY, or write the profile %s to "
                           "%s, or set AGENTWAL_REMOTE_CREDENTIALS_COMMAND",
                           profile == NULL ? "default" : profile,
                           file == NULL ? "~/.aws/credentials" : file);
    }
    if (status == WAL_OK) {
        *credentials = loaded;
    } else {
        wal__error_copy(error, &detail);
    }
    wal__credentials_wipe(&loaded);
    return status;
}
