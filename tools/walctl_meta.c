/*
 * walctl_meta - the command meta: a session's metadata.
 *
 * Invariant: a merge is applied to what is there when it is written, whoever
 * else writes.
 *
 * Threads: one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/jsonl/json_merge.h"
#include "format/jsonl/json_scan.h"
#include "tools/cli_json.h"
#include "tools/walctl.h"

struct merge {
    struct wal__span patch;
    uint8_t *buffer; /* the metadata as it is to be */
};

static int32_t apply(void *ctx, const struct wal_session_info *now,
                     struct wal_session_change *change)
{
    struct merge *merge = ctx;
    struct wal__span target = {now->metadata.data, (size_t)now->metadata.size};
    size_t capacity = target.size + merge->patch.size;
    size_t size = 0;

    merge->buffer = cli_grow(merge->buffer, capacity);
    enum wal__json_status status =
        wal__json_merge(target, merge->patch, merge->buffer, capacity, &size);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata.data = merge->buffer;
    change->metadata.size = size;
    return (int32_t)status;
}

static int update(const struct cli *cli, struct wal_session *session,
                  const char *patch)
{
    struct wal_slice text = cli_slice(patch);
    struct wal_error error = CLI_ERROR_INIT;
    struct merge merge = {
        .patch = {text.data, (size_t)text.size},
    };
    enum wal_status status = wal_session_update(session, apply, &merge, &error);

    free(merge.buffer);
    return status == WAL_OK ? CLI_GO_ON
                            : cli_fail(cli, cli->items[2], status, &error);
}

static int print(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_status(session, &info, &error);
    struct cli_json json;

    if (status != WAL_OK) {
        return cli_fail(cli, cli->items[2], status, &error);
    }
    cli_json_init(&json, stdout);
    cli_json_raw(&json,
                 info.metadata.size > 0 ? info.metadata : cli_slice("{}"));
    cli_json_line(&json);
    return CLI_DONE;
}

int walctl_meta(struct cli *cli, int argc, char **argv)
{
    const char *patch = NULL;
    const struct cli_option options[] = {
        {.name = "merge", .value = &patch},
        {.name = NULL},
    };
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 3, 3);
    }
    if (code == CLI_GO_ON) {
        code = cli_object(cli, "--merge", patch);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1],
                        patch != NULL ? 0 : WAL_OPEN_READ_ONLY, &store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code == CLI_GO_ON && patch != NULL) {
        code = update(cli, session, patch);
    }
    if (code == CLI_GO_ON) {
        code = print(cli, session);
    }
    wal_session_close(session);
    return cli_close(cli, cli->items[1], store, code);
}
