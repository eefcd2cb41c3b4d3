/*
 * print.c - prints what remotes answered (remote.h).
 */
#include "tools/remote/remote.h"

#include <inttypes.h>

#include "format/bytes/bytes.h"
#include "tools/cli/session.h"

enum {
    ID_WIDTH = 36, /* columns, of a UUID */
    TITLE_WIDTH = 60
};

/* What a store does that is not the writer of its remote. */
#define PUSH_ADVICE                                                           \
    "; to go on here: agentwal remote pull --take-over URL with the "         \
    "directory of this store, or agentwal remote push --take-over if it has " \
    "everything that the remote has"

/* The advice for a status, with what separates it from the sentence. */
static const char *advice(enum wal_status status)
{
    switch ((int)status) {
    case WAL_EFENCED:
        return PUSH_ADVICE;
    case WAL_ENOTSTORE:
        return "; create it, or correct the URL";
    case WAL_ENOSPACE:
        return "; make room and run it again";
    default:
        return "";
    }
}

int remote_report_error(const struct cli *cli, const char *what, enum wal_status status,
                        const struct wal_error *error)
{
    if (status == WAL_OK) {
        return CLI_OK;
    }
    /* A remote that is none; what the command line lacks names no object. */
    if (status == WAL_EINVAL && error->file[0] != '\0') {
        return cli_error(cli, CLI_NEGATIVE, error->file, "%s", error->text);
    }
    return cli_error_status(cli, status, error->file[0] != '\0' ? error->file : what, "%s%s",
                            error->text, advice(status));
}

int remote_report(const struct cli *cli, const char *what, enum wal_status status)
{
    return remote_report_error(cli, what, status, cli->error);
}

static void put_hex(struct wal__json_out *json, const char *key, const uint8_t bytes[16])
{
    char text[33];

    wal__hex_write(bytes, 16, text);
    cli_json_member_text(json, key, cli_slice(text));
}

/* Opens a line with one text. */
static void open_json(struct wal__json_out *json, const char *key, const char *text)
{
    cli_json_begin(json);
    cli_json_member_text(json, key, cli_slice(text));
}

void remote_print_url(const struct cli *cli, const char *what, const char *url)
{
    struct wal__json_out json;

    if (cli->json) {
        open_json(&json, "url", url);
        wal__json_out_close_line(&json);
        return;
    }
    printf("%s ", what);
    cli_print_name(stdout, cli_slice(url));
    printf("\n");
}

int32_t remote_print_store(void *ctx, const uint8_t uuid[16],
                           const struct wal_remote_status *status)
{
    const struct cli *cli = ctx;
    const struct cli_count numbers[] = {
        {"epoch", status->epoch}, {"part", status->part}, {"lastSequence", status->sequence}};
    struct wal__json_out json;
    char time[CLI_TIME_SIZE];
    char id[33];

    wal__hex_write(uuid, 16, id);
    if (cli->json) {
        open_json(&json, "storeId", id);
        cli_json_member_text(&json, "host", cli_slice(status->host));
        cli_json_member_time(&json, "since", status->started_ms);
        cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
        wal__json_out_close_line(&json);
        return 0;
    }
    cli_time_text(status->started_ms, time);
    printf("%s  up to number %" PRIu64 ", written on %s since %s\n", id, status->sequence,
           status->host, time);
    return 0;
}

static void print_session_json(const uint8_t uuid[16], const char *host,
                               const struct wal_session_info *session)
{
    struct wal__json_out json;
    char id[33];

    wal__hex_write(uuid, 16, id);
    open_json(&json, "storeId", id);
    cli_json_member_text(&json, "host", cli_slice(host));
    cli_json_member_text(&json, "sessionId", session->id);
    cli_json_member_text_or_null(&json, "title", session->title);
    cli_json_member_text_or_null(&json, "firstText", session->first_text);
    cli_json_member_text_or_null(&json, "cwd", session->cwd);
    cli_json_member_text_or_null(&json, "projectId", session->project);
    cli_json_member_time(&json, "updated", session->updated_ms);
    if ((session->flags & WAL_SESSION_MOVED) != 0) {
        wal__json_out_member_bool(&json, "moved", true);
    }
    wal__json_out_close_line(&json);
}

int32_t remote_print_session(void *ctx, const uint8_t uuid[16], const char *host,
                             const struct wal_session_info *session)
{
    const struct cli *cli = ctx;
    char updated[CLI_TIME_SIZE];
    char text[CLI_TEXT_MAX];

    if (cli->json) {
        print_session_json(uuid, host, session);
        return cli_output_failed();
    }
    cli_print_cell(session->id, ID_WIDTH);
    cli_time_text(session->updated_ms, updated);
    printf("  %.13s  %s  ", updated, host);
    cli_print_text(stdout, session->cwd, 0, false);
    fputs(session->cwd.size > 0 ? "  " : "", stdout);
    cli_print_text(stdout, cli_session_title(NULL, session, text), TITLE_WIDTH, false);
    fputs((session->flags & WAL_SESSION_MOVED) != 0 ? "  [moved]\n" : "\n", stdout);
    return cli_output_failed();
}

/* Prints "2 parts, 12 kB". */
static void print_counts(uint64_t parts, uint64_t bytes)
{
    char size[SIZE_TEXT];

    size_text(bytes, size);
    printf("%s, %s", cli_counted(parts, "part", "parts"), size);
}

void remote_print_following(const struct cli *cli, const char *url)
{
    if (!cli->json) {
        printf("shipping to ");
        cli_print_name(stdout, cli_slice(url));
        printf("; Ctrl-C ends it\n");
        (void)fflush(stdout);
    }
}

void remote_print_push(const struct cli *cli, const char *url,
                       const struct wal_remote_push_result *result)
{
    const struct cli_count numbers[] = {
        {"parts", result->parts}, {"bytes", result->bytes},           {"epoch", result->epoch},
        {"part", result->part},   {"lastSequence", result->sequence},
    };
    struct wal__json_out json;

    if (cli->json) {
        open_json(&json, "url", url);
        cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
        wal__json_out_close_line(&json);
        return;
    }
    if (result->parts == 0) {
        printf("nothing new: the remote has everything up to number %" PRIu64 "\n",
               result->sequence);
        return;
    }
    printf("pushed ");
    print_counts(result->parts, result->bytes);
    printf("; the remote has everything up to number %" PRIu64 "\n", result->sequence);
}

void remote_print_pull(const struct cli *cli, const char *path, bool is_store,
                       const struct wal_remote_pull_result *result)
{
    const struct cli_count numbers[] = {
        {"parts", result->parts}, {"bytes", result->bytes},           {"epoch", result->epoch},
        {"part", result->part},   {"lastSequence", result->sequence},
    };
    struct wal__json_out json;

    if (cli->json) {
        open_json(&json, "path", path);
        put_hex(&json, "storeId", result->uuid);
        cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
        wal__json_out_member_bool(&json, "writable", is_store);
        wal__json_out_close_line(&json);
        return;
    }
    if (result->parts == 0) {
        printf("nothing new");
    } else {
        printf("pulled ");
        print_counts(result->parts, result->bytes);
    }
    printf(": ");
    cli_print_name(stdout, cli_slice(path));
    printf(" has everything up to number %" PRIu64 ", and %s\n", result->sequence,
           is_store ? "is written to from now on" : "can be read");
}

void remote_print_compact(const struct cli *cli, const char *url,
                          const struct wal_remote_compact_result *result)
{
    const struct cli_count numbers[] = {
        {"base", result->base},
        {"segments", result->segments},
        {"bytes", result->bytes},
        {"removedParts", result->removed_parts},
        {"removedSegments", result->removed_segments},
        {"removedBases", result->removed_bases},
        {"removedBytes", result->removed_bytes},
    };
    struct wal__json_out json;
    char size[SIZE_TEXT];

    if (cli->json) {
        open_json(&json, "url", url);
        cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
        wal__json_out_close_line(&json);
        return;
    }
    size_text(result->bytes, size);
    if (result->base == 0) {
        printf("no base was due\n");
    } else {
        printf("base %" PRIu64 ": %s, %s\n", result->base,
               cli_counted(result->segments, "segment", "segments"), size);
    }
    if (result->removed_bytes > 0) {
        size_text(result->removed_bytes, size);
        printf("removed %s and %s, %s\n", cli_counted(result->removed_parts, "part", "parts"),
               cli_counted(result->removed_segments, "segment", "segments"), size);
    }
}

static void print_status_json(const char *url, bool is_writer, bool has_past,
                              const struct wal_remote_status *status)
{
    const struct cli_count numbers[] = {
        {"partEpoch", status->part_epoch},  {"part", status->part},
        {"lastSequence", status->sequence}, {"lagSequences", status->lag_sequences},
        {"lagBytes", status->lag_bytes},
    };
    struct wal__json_out json;

    open_json(&json, "url", url);
    wal__json_out_member_count(&json, "epoch", status->epoch);
    if (status->epoch > 0) {
        put_hex(&json, "writer", status->writer);
        cli_json_member_text(&json, "host", cli_slice(status->host));
        cli_json_member_time(&json, "since", status->started_ms);
    }
    wal__json_out_member_bool(&json, "isWriter", is_writer);
    /* The lag is at the end. */
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]) - (has_past ? 0 : 2));
    wal__json_out_close_line(&json);
}

static void print_lag(bool has_past, const struct wal_remote_status *status)
{
    char size[SIZE_TEXT];

    size_text(status->lag_bytes, size);
    if (!has_past) {
        printf("lag     not known: the store has another past\n");
    } else if (status->lag_sequences == 0) {
        printf("lag     none\n");
    } else {
        printf("lag     %s, %s\n", cli_counted(status->lag_sequences, "record", "records"), size);
    }
}

void remote_print_status(const struct cli *cli, const char *url, bool is_writer, bool has_past,
                         const struct wal_remote_status *status)
{
    char time[CLI_TIME_SIZE];

    if (cli->json) {
        print_status_json(url, is_writer, has_past, status);
        return;
    }
    printf("remote  ");
    cli_print_name(stdout, cli_slice(url));
    printf("\n");
    if (status->epoch == 0) {
        printf("writer  none: nothing was pushed\n");
    } else {
        cli_time_text(status->started_ms, time);
        printf("writer  %s, epoch %" PRIu64 ", on host %s since %s\n",
               is_writer ? "this store" : "another one", status->epoch, status->host, time);
        printf("last    part %" PRIu64 " of epoch %" PRIu64 ", up to number %" PRIu64 "\n",
               status->part, status->part_epoch, status->sequence);
    }
    print_lag(has_past, status);
    if (status->epoch > 0 && !is_writer) {
        cli_note(cli, url,
                 "what is appended here is not pushed: another writer has the "
                 "store" PUSH_ADVICE);
    }
}
