/*
 * keys.c - the verbs init, encrypt and keys: stores that are encrypted, and the keys that open
 * them.
 *
 * Invariant: a recovery code is printed once, on standard output, after the store has it. Nothing
 * else that is secret is printed.
 */
#include "agentwal/keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/care/care.h"
#include "tools/cli/json.h"
#include "tools/cli/key.h"
#include "tools/cli/table.h"
#include "tools/cli/verbs.h"

/* --- an encrypted store ----------------------------------------------------- */

/* What init and encrypt are asked for. */
struct wish {
    bool encrypts;
    bool is_passphrase; /* ask for one, as without any other key */
    bool without_code;
    const char *label;
};

static const struct wal_key *make_key(struct cli *cli, const struct wish *wish)
{
    struct cli_key_options options = cli->key;
    char ignored[CLI_RECOVERY_CODE_SIZE];

    options.is_passphrase = wish->is_passphrase;
    if (options.is_code) {
        cli_fail(cli, CLI_USAGE, "--recovery-code",
                 "not allowed: a recovery code is made in addition to another key");
    }
    return cli_key_make(cli, &options, wish->label, ignored);
}

/* Adds a recovery code to the store, and prints it. */
static void add_code(struct cli *cli, struct wal__json_out *json)
{
    const struct cli_key_options options = {.is_code = true};
    char code[CLI_RECOVERY_CODE_SIZE];
    const struct wal_key *key = cli_key_make(cli, &options, NULL, code);

    cli_check(cli, cli->items[1], wal_store_add_key(cli->store, key, NULL, cli->error));
    if (json != NULL) {
        cli_json_member_text(json, "recoveryCode", cli_slice(code));
        return;
    }
    printf("Recovery code: %s\n", code);
    fflush(stdout);
    cli_note(cli, NULL,
             "write the recovery code down, and keep it apart: it is not shown again. Losing all "
             "keys is losing the store");
}

/* Prints what init and encrypt have done. */
static void print_store(struct cli *cli, const struct wish *wish)
{
    struct wal__json_out json;

    if (!cli->json) {
        if (wish->encrypts && !wish->without_code) {
            add_code(cli, NULL);
        }
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "store", cli_slice(cli->items[1]));
    if (wish->encrypts && !wish->without_code) {
        add_code(cli, &json);
    }
    wal__json_out_close_line(&json);
}

int verb_init(struct cli *cli, int argc, char **argv)
{
    struct wish wish = {.encrypts = false};
    const struct cli_option options[] = {
        {.name = "encrypt", .flag = &wish.encrypts},
        {.name = "passphrase", .flag = &wish.is_passphrase},
        {.name = "no-recovery-code", .flag = &wish.without_code},
        {.name = "label", .value = &wish.label},
        {.name = NULL},
    };

    cli->makes_store = true;
    cli_parse_operands(cli, argc, argv, options, 2, 2);
    if (!wish.encrypts &&
        (wish.is_passphrase || wish.without_code || cli_key_is_given(&cli->key))) {
        cli_fail(cli, CLI_USAGE, "--encrypt", "is needed for a store that has keys");
    }
    if (wish.encrypts && cli_is_missing(cli->items[1])) {
        cli->new_key = make_key(cli, &wish);
    }
    cli_use_store(cli, cli->items[1], WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE);
    /* For people a note says that the store was created. */
    print_store(cli, &wish);
    return CLI_OK;
}

int verb_encrypt(struct cli *cli, int argc, char **argv)
{
    struct wish wish = {.encrypts = true};
    const struct cli_option options[] = {
        {.name = "passphrase", .flag = &wish.is_passphrase},
        {.name = "no-recovery-code", .flag = &wish.without_code},
        {.name = "label", .value = &wish.label},
        {.name = NULL},
    };
    struct wal_store_compact_options compact = WAL_INIT(wal_store_compact_options);
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    struct wal_open_options open;
    enum wal_status status;

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    cli_require_store(cli, cli->items[1]);
    open = cli_open_options(cli, 0);
    open.key = make_key(cli, &wish);
    status = wal_store_encrypt(cli->items[1], &open, cli->error);
    cli_check(cli, cli->items[1], status);
    cli->opened = cli->items[1];
    status = wal_open(cli->items[1], &open, &cli->store, cli->error);
    cli_check(cli, cli->items[1], status);
    print_store(cli, &wish);
    /* All segments are rewritten: what they had is not encrypted. */
    status = wal_store_compact(cli->store, &compact, &result, cli->error);
    cli_check(cli, cli->items[1], status);
    if (result.refused > 0) {
        cli_need(cli, cli_report_error(cli, result.refusal.file, result.refusal.status,
                                       &result.refusal));
    }
    return CLI_OK;
}

/* --- the keys of a store ------------------------------------------------------ */

/* What the commands of the verb keys get. */
struct request {
    struct cli *cli;
    struct cli_key_options added;
    const char *label;
    /* Where the keys are listed. */
    struct wal__json_out json;
    struct table table;
};

static const char *kind_of(const struct wal_store_key *key)
{
    return key->kind == WAL_KEY_PASSPHRASE ? "passphrase" : "secret";
}

static int32_t write_key(void *ctx, const struct wal_store_key *key)
{
    struct request *request = ctx;
    struct wal__json_out *json = &request->json;

    wal__json_out_open(json, '{');
    wal__json_out_member_count(json, "id", key->id);
    cli_json_member_text(json, "kind", cli_slice(kind_of(key)));
    cli_json_member_text(json, "label", key->label);
    cli_json_member_time(json, "createdAt", key->created_ms);
    wal__json_out_close_line(json);
    return 0;
}

static int32_t put_key(void *ctx, const struct wal_store_key *key)
{
    struct request *request = ctx;

    table_put_count(&request->table, key->id);
    table_put(&request->table, cli_slice(kind_of(key)));
    table_put_age(&request->table, key->created_ms, when_now_ms());
    table_put(&request->table, key->label);
    return 0;
}

static int list_keys(struct request *request)
{
    struct cli *cli = request->cli;
    enum wal_status status;

    cli_check_operands(cli, 2, 3);
    cli_require_store(cli, cli->items[1]);
    cli_json_init(&request->json, stdout);
    table_init(&request->table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_NUMBER("ID"), TABLE_TEXT("KIND", 0), TABLE_TIME("MADE"),
                             TABLE_TEXT("LABEL", 0)));
    status =
        wal_store_list_keys(cli->items[1], cli->json ? write_key : put_key, request, cli->error);
    table_finish(&request->table);
    return cli_report(cli, cli->items[1], status);
}

static int add_key(struct request *request)
{
    struct cli *cli = request->cli;
    char code[CLI_RECOVERY_CODE_SIZE] = "";
    const struct wal_key *key;
    struct wal__json_out json;
    uint32_t id = 0;

    cli_check_operands(cli, 3, 3);
    if (!cli_key_is_given(&request->added)) {
        cli_fail(cli, CLI_USAGE, "--new-key-file",
                 "or another option for the new key is missing (see %s)", cli_help_command(cli));
    }
    cli_use_store(cli, cli->items[1], 0);
    key = cli_key_make(cli, &request->added, request->label, code);
    cli_check(cli, cli->items[1], wal_store_add_key(cli->store, key, &id, cli->error));
    if (!cli->json) {
        printf("added the key %" PRIu32 "\n", id);
        if (code[0] != '\0') {
            printf("Recovery code: %s\n", code);
        }
        return CLI_OK;
    }
    cli_json_begin(&json);
    wal__json_out_member_count(&json, "id", id);
    if (code[0] != '\0') {
        cli_json_member_text(&json, "recoveryCode", cli_slice(code));
    }
    wal__json_out_close_line(&json);
    return CLI_OK;
}

static int remove_key(struct request *request)
{
    struct cli *cli = request->cli;
    uint64_t id = 0;

    cli_check_operands(cli, 4, 4);
    cli_parse_number(cli, "ID", cli->items[3], UINT32_MAX, &id);
    cli_use_store(cli, cli->items[1], 0);
    cli_check(cli, cli->items[3], wal_store_remove_key(cli->store, (uint32_t)id, cli->error));
    return cli_print_done(cli, "removed", cli->items[3], "removed the key");
}

static int rotate_key(struct request *request)
{
    struct cli *cli = request->cli;

    cli_check_operands(cli, 3, 3);
    cli_use_store(cli, cli->items[1], 0);
    cli_check(cli, cli->items[1], wal_store_rotate_key(cli->store, cli->error));
    return cli_print_done(
        cli, "rotated", cli->items[1],
        "what is written from now on has a new data key; agentwal gc encrypts the "
        "rest by it:");
}

int verb_keys(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct request *request);
    } commands[] = {
        {"list", list_keys}, {"add", add_key}, {"remove", remove_key}, {"rotate", rotate_key}};
    static struct request request;
    const struct cli_option options[] = {
        {.name = "new-key-file", .value = &request.added.file},
        {.name = "new-key-command", .value = &request.added.command},
        {.name = "new-key-keyring", .value = &request.added.keyring},
        {.name = "new-passphrase", .flag = &request.added.is_passphrase},
        {.name = "new-passphrase-fd", .value = &request.added.fd},
        {.name = "new-recovery-code", .flag = &request.added.is_code},
        {.name = "label", .value = &request.label},
        {.name = NULL},
    };
    const char *name;

    request.cli = cli;
    cli_parse_operands(cli, argc, argv, options, 2, 4);
    name = cli->count == 2 ? "list" : cli->items[2];
    if (strcmp(name, "add") != 0 && (cli_key_is_given(&request.added) || request.label != NULL)) {
        cli_fail(cli, CLI_USAGE, name, "takes no new key");
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return commands[i].run(&request);
        }
    }
    cli_fail(cli, CLI_USAGE, name, "no such command of keys (see %s)", cli_help_command(cli));
}
