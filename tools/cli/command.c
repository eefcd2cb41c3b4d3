/*
 * command.c - the functions that the commands share: opening, reading standard
 * input, and results that several commands print.
 *
 * Threads: the tool has one thread.
 */
#include "tools/cli/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"

int cli_begin(struct cli *cli, int argc, char **argv,
              const struct cli_option *options, int least, int most,
              uint32_t flags, struct wal_store **store)
{
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, least, most);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], flags, store);
    }
    return code;
}

int cli_begin_session(struct cli *cli, int argc, char **argv,
                      const struct cli_option *options, int least, int most,
                      uint32_t flags, struct wal_store **store,
                      struct wal_session **session)
{
    int code = cli_begin(cli, argc, argv, options, least, most, flags, store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, *store, cli->items[2], session);
    return code == CLI_CONTINUE
               ? code
               : cli_close_store(cli, cli->items[1], *store, code);
}

int cli_end_session(const struct cli *cli, struct wal_store *store,
                    struct wal_session *session, int code)
{
    wal_session_close(session);
    return cli_close_store(cli, cli->items[1], store, code);
}

static int resolve_directory(const struct cli *cli, const char *option,
                             const char *option_value, char **directory)
{
    char *path = option_value != NULL ? cli_absolute_path(option_value) : NULL;
    int code = cli_check_size(cli, option, path, CLI_TEXT_MAX);

    if (code == CLI_CONTINUE) {
        *directory = path;
    } else {
        free(path);
    }
    return code;
}

int cli_resolve_cwd(const struct cli *cli, const char *cwd, char **directory)
{
    return resolve_directory(cli, "--cwd", cwd, directory);
}

int cli_resolve_root(const struct cli *cli, const char *option, char **root)
{
    return resolve_directory(cli, "--root", option, root);
}

int cli_check_checkpoint_id(const struct cli *cli, const char *what,
                            const char *id)
{
    if (id != NULL && id[0] == '\0') {
        return cli_error(cli, CLI_USAGE, what, "is empty");
    }
    return cli_check_id(cli, what, id);
}

int cli_report_file(const struct cli *cli, const char *what,
                    enum wal_status status, const struct wal_error *error)
{
    /* The file of a damaged blob is a segment: name the operand instead. */
    bool is_named = error->file[0] != '\0' && status != WAL_ECORRUPT;

    return cli_report(cli, is_named ? error->file : what, status, error);
}

char *cli_read_stdin(const struct cli *cli, size_t most, const char *advice,
                     size_t *size)
{
    char *input = NULL;
    size_t capacity = 0;
    size_t read_size;

    *size = 0;
    do {
        if (*size == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 65536;
            input = cli_realloc(input, capacity);
        }
        read_size = fread(input + *size, 1, capacity - *size, stdin);
        *size += read_size;
    } while (read_size > 0 && *size <= most);
    if (ferror(stdin)) {
        cli_error(cli, CLI_FAILED, "standard input", "%s", strerror(errno));
    } else if (*size > most) {
        cli_error(cli, CLI_FAILED, "standard input", "too large%s", advice);
    } else {
        return input;
    }
    free(input);
    return NULL;
}

int cli_print_done(const struct cli *cli, const char *key, const char *value,
                   const char *sentence)
{
    struct wal__json_out json;

    if (!cli->json) {
        printf("%s ", sentence);
        cli_print_name(stdout, cli_slice(value));
        putchar('\n');
    } else {
        cli_json_init(&json, stdout);
        wal__json_out_open(&json, '{');
        cli_json_member_text(&json, key, cli_slice(value));
        wal__json_out_close_line(&json);
    }
    return CLI_OK;
}

int cli_print_id(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);
    struct wal__json_out json;

    if (status == WAL_OK && cli->json) {
        cli_json_init(&json, stdout);
        wal__json_out_open(&json, '{');
        cli_json_member_text(&json, "sessionId", info.id);
        wal__json_out_close_line(&json);
    } else if (status == WAL_OK) {
        fwrite(info.id.data, 1, (size_t)info.id.size, stdout);
        putchar('\n');
    }
    wal_session_close(session);
    return status == WAL_OK ? CLI_OK
                            : cli_report(cli, cli->items[0], status, &error);
}

static void print_appended_sentence(const struct wal_session_info *info,
                                    const struct wal_append_result *result,
                                    const uint64_t *queued)
{
    uint64_t count = queued != NULL ? *queued : result->appended;

    printf("%s %" PRIu64 " %s to the session ",
           queued != NULL ? "queued" : "appended", count,
           cli_plural(count, "entry", "entries"));
    cli_print_name(stdout, info->id);
    if (result->duplicates > 0) {
        printf("; %" PRIu32 " known", result->duplicates);
    }
    if (result->last_id[0] != '\0') {
        fputs("; the last one is ", stdout);
        cli_print_name(stdout, cli_slice(result->last_id));
    }
    putchar('\n');
    fflush(stdout);
}

void cli_print_appended(const struct cli *cli, struct wal_session *session,
                        const struct wal_append_result *result,
                        const uint64_t *queued)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK) {
        info.id.size = 0;
    }
    if (!cli->json) {
        print_appended_sentence(&info, result, queued);
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", info.id);
    cli_json_member_text_or_null(&json, "lastAppendedEntryId",
                                 cli_slice(result->last_id));
    wal__json_out_member_count(&json, "appendedCount", result->appended);
    wal__json_out_member_count(&json, "duplicateCount", result->duplicates);
    if (queued != NULL) {
        wal__json_out_member_count(&json, "queued", *queued);
    }
    wal__json_out_close_line(&json);
    fflush(stdout);
}

void cli_print_conflict(const struct cli *cli, struct wal_slice expected,
                        struct wal_slice actual)
{
    struct wal__json_out json;

    if (!cli->json) {
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    wal__json_out_member_open(&json, "conflict", '{');
    cli_json_member_text(&json, "expected", expected);
    cli_json_member_text(&json, "actual", actual);
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
    fflush(stdout);
}
