/*
 * check.c - the check of a remote (verbs.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/remote/config.h"
#include "tools/remote/open.h"
#include "tools/remote/print.h"
#include "tools/remote/store_id.h"

struct check {
    const struct cli *cli;
    char url[REMOTE_URL_SIZE];
    uint8_t uuid[16];
    bool has_uuid;
    struct wal__json_out json;
    struct wal_remote_check_result result;
};

/* --- what is checked ---------------------------------------------------- */

/* Reads the URL, and the id, of the store in a directory. */
static int read_store(struct check *check, const char *path)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct remote_config config = {.url = ""};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_open_store(check->cli, path, WAL_OPEN_READ_ONLY, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    status = wal_store_get_info(store, &info, &error);
    if (status != WAL_OK) {
        code = remote_report(check->cli, path, status, &error);
    } else {
        memcpy(check->uuid, info.uuid, sizeof(check->uuid));
        check->has_uuid = true;
    }
    if (code == CLI_CONTINUE) {
        code = remote_config_read(check->cli, path, true, &config);
    }
    memcpy(check->url, config.url, sizeof(check->url));
    return cli_close_store(check->cli, path, store, code);
}

static int read_target(struct check *check, const char *target,
                       const char *store_id)
{
    if (store_id != NULL) {
        if (!remote_parse_store_id(store_id, check->uuid)) {
            return cli_error(check->cli, CLI_USAGE, "--store-id",
                             "\"%s\" is not the id of a store", store_id);
        }
        check->has_uuid = true;
    }
    if (strstr(target, "://") == NULL) {
        return store_id == NULL
                   ? read_store(check, target)
                   : cli_error(check->cli, CLI_USAGE, "--store-id",
                               "not allowed: the store has its id");
    }
    if (strlen(target) >= sizeof(check->url)) {
        return cli_error(check->cli, CLI_USAGE, "--remote", "is too long");
    }
    memcpy(check->url, target, strlen(target) + 1);
    return CLI_CONTINUE;
}

/* --- the report --------------------------------------------------------- */

static void begin_report(struct check *check)
{
    if (check->cli->json) {
        cli_json_init(&check->json, stdout);
        wal__json_out_open(&check->json, '{');
        cli_json_member_text(&check->json, "url", cli_slice(check->url));
        wal__json_out_member_open(&check->json, "damage", '[');
    }
}

static int32_t see(void *ctx, const struct wal_error *damage)
{
    struct check *check = ctx;

    if (check->cli->json) {
        wal__json_out_open(&check->json, '{');
        cli_json_member_text(&check->json, "file", cli_slice(damage->file));
        wal__json_out_member_bool(&check->json, "lost",
                                  damage->status == WAL_ENOTFOUND);
        cli_json_member_text(&check->json, "reason", cli_slice(damage->text));
        wal__json_out_close(&check->json, '}');
    } else {
        printf("%s: %s\n", damage->file, damage->text);
    }
    return 0;
}

static void end_json(struct check *check, bool is_complete)
{
    const struct wal_remote_check_result *result = &check->result;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"epochs", result->epochs},     {"bases", result->bases},
        {"segments", result->segments}, {"parts", result->parts},
        {"bytes", result->bytes},       {"lastSequence", result->sequence},
    };

    wal__json_out_close(&check->json, ']');
    if (is_complete) {
        wal__json_out_member_bool(&check->json, "sound", result->damage == 0);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        wal__json_out_member_count(&check->json, numbers[i].key,
                                   numbers[i].value);
    }
    wal__json_out_close_line(&check->json);
}

static void end_text(const struct check *check)
{
    const struct wal_remote_check_result *result = &check->result;
    char size[SIZE_TEXT];

    size_text(result->bytes, size);
    if (result->damage == 0) {
        printf("sound: ");
    } else {
        printf("damaged: %" PRIu64 " %s; ", result->damage,
               cli_plural(result->damage, "object", "objects"));
    }
    printf("%" PRIu64 " %s and %" PRIu64 " %s, %s, up to number %" PRIu64 "\n",
           result->parts, cli_plural(result->parts, "part", "parts"),
           result->segments,
           cli_plural(result->segments, "segment", "segments"), size,
           result->sequence);
}

static int run(struct check *check)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_remote *remote = NULL;
    enum wal_status status;
    bool is_complete;
    int code = remote_open(check->cli, "--remote", check->url, &remote);

    if (code != CLI_CONTINUE) {
        return code;
    }
    begin_report(check);
    status = wal_remote_check(remote, check->has_uuid ? check->uuid : NULL, see,
                              check, &check->result, &error);
    wal_remote_close(remote);
    is_complete = status == WAL_OK ||
                  (status == WAL_ECORRUPT && check->result.damage > 0);
    if (check->cli->json) {
        end_json(check, is_complete);
    } else if (is_complete) {
        end_text(check);
    }
    if (!is_complete) {
        return remote_report(check->cli, check->url, status, &error);
    }
    return status == WAL_OK ? CLI_OK : CLI_NEGATIVE;
}

int remote_check(const struct cli *cli, const char *target,
                 const char *store_id)
{
    struct check check = {.cli = cli,
                          .result = WAL_INIT(wal_remote_check_result)};
    int code = read_target(&check, target, store_id);

    return code == CLI_CONTINUE ? run(&check) : code;
}
