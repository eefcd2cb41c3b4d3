/*
 * config.c - the file remote.json of a store, and opening a remote by its URL (remote.h).
 */
#include "engine/base/system.h"
#include "tools/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "format/bytes/bytes.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "tools/cli/verbs.h"

static const char file_name[] = "remote.json";

enum { FILE_MAX = 8192 };

void remote_config_init(struct remote_config *config)
{
    wal__system_random(config->writer, sizeof(config->writer));
}

static int open_store_directory(const char *store)
{
    return open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the file of the store. Returns a descriptor, or -1 with errno set. */
static int open_file(const char *store)
{
    int directory = open_store_directory(store);
    int fd;
    int error_number;

    if (directory < 0) {
        return -1;
    }
    fd = openat(directory, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    error_number = errno;
    close(directory);
    errno = error_number;
    return fd;
}

static int report(const struct cli *cli, const char *what, int error_number)
{
    return cli_error(cli, CLI_FAILED, file_name, "%s failed: %s", what, strerror(error_number));
}

/* --- reading ------------------------------------------------------------ */

static bool get_text(const struct wal__json_token *token, char *out, size_t capacity, size_t *size)
{
    bool has_nul = false;

    return token->kind == WAL__JSON_STRING &&
           wal__json_unescape(token->span, (uint8_t *)out, capacity - 1, size, &has_nul) ==
               WAL__JSON_OK &&
           !has_nul;
}

/* Reads `count` bytes in hexadecimal; nothing else may follow. */
static bool parse_hex(const char *text, uint8_t *out, size_t count)
{
    return strlen(text) == 2 * count && wal__hex_read(text, count, out);
}

/* Reads a number and the space after it. Returns what follows, or NULL. */
static char *parse_number(char *text, uint64_t *number)
{
    char *end = NULL;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == ' ' ? end + 1 : NULL;
}

/* Reads "EPOCH PART DIGEST", separated from others by commas. */
static bool parse_marks(char *text, struct remote_config *config)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        struct wal_remote_mark *mark = &config->marks[config->mark_count];
        char *at;

        if (config->mark_count == WAL_REMOTE_MARKS) {
            return false;
        }
        at = parse_number(word, &mark->epoch);
        at = at != NULL ? parse_number(at, &mark->part) : NULL;
        if (at == NULL || !parse_hex(at, mark->digest, sizeof(mark->digest))) {
            return false;
        }
        config->mark_count++;
    }
    return true;
}

static bool parse(const char *text, size_t size, struct remote_config *config)
{
    struct wal__json_member members[] = {
        {.key = "version"}, {.key = "url"}, {.key = "writer"}, {.key = "sent"}, {.key = "fenced"}};
    struct remote_config parsed = {.url = ""};
    char marks[FILE_MAX] = "";
    char writer[33] = "";
    size_t count = 0;
    int64_t version = 0;

    if (wal__json_members(text, size, members, 5, NULL) != WAL__JSON_OK ||
        members[0].value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(members[0].value.span, &version) != WAL__JSON_OK || version != 1 ||
        !get_text(&members[1].value, parsed.url, sizeof(parsed.url), &count)) {
        return false;
    }
    if (!get_text(&members[2].value, writer, sizeof(writer), &count) ||
        !parse_hex(writer, parsed.writer, sizeof(parsed.writer))) {
        return false;
    }
    if (members[3].value.kind != WAL__JSON_NONE &&
        (!get_text(&members[3].value, marks, sizeof(marks), &count) ||
         !parse_marks(marks, &parsed))) {
        return false;
    }
    parsed.is_fenced = members[4].value.kind == WAL__JSON_TRUE;
    *config = parsed;
    return true;
}

/* Reads the file of the store. Returns its size, or -1 with errno set. */
static ssize_t read_file(const char *store, char text[FILE_MAX])
{
    int fd = open_file(store);
    ssize_t size = -1;
    int error_number = errno;

    if (fd >= 0) {
        size = read(fd, text, FILE_MAX);
        error_number = errno;
        close(fd);
    }
    errno = error_number;
    return size;
}

int remote_config_read(const struct cli *cli, const char *store, bool required,
                       struct remote_config *config)
{
    char text[FILE_MAX];
    ssize_t size = read_file(store, text);

    if (size < 0 && errno == ENOENT) {
        return required ? cli_error(cli, CLI_NEGATIVE, store,
                                    "the store has no remote; add one with: "
                                    "agentwal remote add URL")
                        : CLI_NEGATIVE;
    }
    if (size < 0) {
        return report(cli, "reading it", errno);
    }
    if (!parse(text, (size_t)size, config)) {
        return cli_error(cli, CLI_FAILED, file_name,
                         "is damaged, or of a newer agentwal; remove it and add the remote again");
    }
    return CLI_OK;
}

void remote_note_fenced(const struct cli *cli)
{
    const char *store = cli->items[cli->store_at];
    struct remote_config config = {.url = ""};
    char text[FILE_MAX];
    ssize_t size = read_file(store, text);

    /* Where it cannot be read, the verbs of remotes report it. */
    if (size >= 0 && parse(text, (size_t)size, &config) && config.is_fenced) {
        cli_note(cli, store,
                 "another machine has taken this store over: what is appended "
                 "here is not pushed; see: agentwal remote status");
    }
}

/* --- writing ------------------------------------------------------------ */

static void format_marks(const struct remote_config *config, char *out, size_t capacity)
{
    size_t size = 0;

    out[0] = '\0';
    for (uint64_t i = 0; i < config->mark_count; i++) {
        const struct wal_remote_mark *mark = &config->marks[i];
        char digest[2 * sizeof(mark->digest) + 1];
        int written;

        wal__hex_write(mark->digest, sizeof(mark->digest), digest);
        written = snprintf(out + size, capacity - size, "%s%" PRIu64 " %" PRIu64 " %s",
                           i == 0 ? "" : ",", mark->epoch, mark->part, digest);
        size += written > 0 ? (size_t)written : 0;
    }
}

/* Formats the file. Returns its size, or 0 when the URL is too long or no text. */
static size_t format(const struct remote_config *config, char *text, size_t capacity)
{
    char url[FILE_MAX / 2];
    char writer[33];
    char marks[FILE_MAX / 2];
    size_t size = 0;
    int written;

    wal__hex_write(config->writer, sizeof(config->writer), writer);
    format_marks(config, marks, sizeof(marks));
    if (wal__json_escape((struct wal__json_span){(const uint8_t *)config->url, strlen(config->url)},
                         (uint8_t *)url, sizeof(url), &size) != WAL__JSON_OK) {
        return 0;
    }
    written = snprintf(text, capacity,
                       "{\"version\":1,\"url\":%.*s,\"writer\":\"%s\",\"sent\":\"%s\"%s}\n",
                       (int)size, url, writer, marks, config->is_fenced ? ",\"fenced\":true" : "");
    return written > 0 && (size_t)written < capacity ? (size_t)written : 0;
}

int remote_config_write(const struct cli *cli, const char *store,
                        const struct remote_config *config)
{
    struct cli_atomic_file file;
    char text[FILE_MAX];
    size_t size = format(config, text, sizeof(text));
    int directory;
    int error_number;

    if (size == 0) {
        return cli_error(cli, CLI_USAGE, "URL", "is too long, or not UTF-8");
    }
    directory = open_store_directory(store);
    if (directory < 0) {
        return report(cli, "opening the store", errno);
    }
    error_number = cli_atomic_file_create(&file, directory);
    if (error_number == 0) {
        fwrite(text, 1, size, file.stream);
        error_number = cli_atomic_file_commit(&file, file_name, true, 0);
    }
    close(directory);
    return error_number == 0 ? CLI_OK : report(cli, "writing it", error_number);
}

void remote_config_remove(const struct cli *cli, const char *store)
{
    int directory = open_store_directory(store);

    if (directory < 0) {
        cli_end(cli, report(cli, "opening the store", errno));
    }
    if (unlinkat(directory, file_name, 0) != 0 || wal__system_sync_whole(directory) != 0) {
        cli_end(cli, report(cli, "removing it", errno));
    }
    close(directory);
}

int remote_config_lock(const struct cli *cli, const char *store, bool required, int *lock)
{
    int fd = open_store_directory(store);

    if (fd < 0) {
        return report(cli, "opening the store", errno);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error_number = errno;

        close(fd);
        if (error_number == EWOULDBLOCK && !required) {
            return CLI_NEGATIVE;
        }
        return error_number == EWOULDBLOCK
                   ? cli_error_status(cli, WAL_ELOCKED, store,
                                      "another process is pushing the store; "
                                      "wait for it, or end it")
                   : report(cli, "locking the store", error_number);
    }
    *lock = fd;
    return CLI_OK;
}

/* --- a remote ----------------------------------------------------------- */

enum { SAID_AFTER_MS = 2000 };

int32_t remote_wait(void *ctx, uint64_t waited_ms, const struct wal_error *why)
{
    struct remote_wait *wait = ctx;
    char note[sizeof(why->text) + 64];

    if (waited_ms >= SAID_AFTER_MS && !atomic_flag_test_and_set(&wait->has_said)) {
        (void)snprintf(note, sizeof(note), "%s; trying on",
                       why->text[0] != '\0' ? why->text : "the object store does not answer");
        cli_note(wait->cli, wait->what, note);
    }
    return 0;
}

struct wal_remote *remote_open(const struct cli *cli, const char *what, const char *url)
{
    static struct remote_wait wait; /* outlives all remotes */
    struct wal_remote *remote = NULL;
    enum wal_status status = wal_remote_open(url, &remote, cli->error);

    wait.cli = cli;
    wait.what = what;
    if (status == WAL_OK) {
        status = wal_remote_set_wait(remote, remote_wait, &wait, cli->error);
    }
    cli_need(cli, remote_report(cli, what, status));
    return remote;
}

void remote_copy_url(const struct cli *cli, const char *what, const char *url,
                     char copy[REMOTE_URL_SIZE])
{
    if (strlen(url) >= REMOTE_URL_SIZE) {
        cli_fail(cli, CLI_USAGE, what, "is too long");
    }
    memcpy(copy, url, strlen(url) + 1);
}

/* Reads 32 hexadecimal digits, with or without hyphens. */
static bool parse_store_id(const char *text, uint8_t uuid[16])
{
    size_t count = 0;

    memset(uuid, 0, 16);
    for (; *text != '\0'; text++) {
        const char *digits = "0123456789abcdef";
        const char *found = strchr(digits, *text);

        if (*text == '-' && (count == 8 || count == 12 || count == 16 || count == 20)) {
            continue;
        }
        if (found == NULL || count == 32) {
            return false;
        }
        uuid[count / 2] = (uint8_t)(uuid[count / 2] << 4 | (uint8_t)(found - digits));
        count++;
    }
    return count == 32;
}

void remote_read_store_id(const struct cli *cli, const char *text, uint8_t uuid[16])
{
    if (text != NULL && !parse_store_id(text, uuid)) {
        cli_fail(cli, CLI_USAGE, "--store-id", "\"%s\" is not the id of a store", text);
    }
}
