/*
 * dialects.c - the verb dialects: what can be imported and exported, and the contract of each
 * client (convert/clients/client.h).
 */
#include <stdio.h>
#include <string.h>

#include "convert/clients/client.h"
#include "convert/model/dialect.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

static bool carries(const struct wal__dialect *dialect, unsigned feature)
{
    return dialect->write_ops != NULL && (dialect->write_ops->carries >> feature & 1) != 0;
}

/* Features for losses of no particular dialect are not listed. */
static bool is_feature(unsigned feature)
{
    return feature < WAL__FEATURE_FIELDS || feature == WAL__FEATURE_PARENTS;
}

/* --- clients ------------------------------------------------------------ */

#define NONE "none" /* in place of the dialect of clients that are not read */

static bool is_client_of(const struct wal__client *client, const char *dialect)
{
    return strcmp(client->dialect != NULL ? client->dialect : NONE, dialect) == 0;
}

static void write_text(struct wal__json_out *json, const char *key, const char *text)
{
    cli_json_key_text(json, cli_slice(key));
    cli_json_text_or_null(json, cli_slice(text));
}

static void write_list(struct wal__json_out *json, const char *key, const char *const *list)
{
    wal__json_out_member_open(json, key, '[');
    for (; *list != NULL; list++) {
        cli_json_text(json, cli_slice(*list));
    }
    wal__json_out_close(json, ']');
}

static void write_folders(struct wal__json_out *json, const struct wal__client *client)
{
    wal__json_out_member_open(json, "folders", '[');
    for (size_t i = 0; i < WAL__CLIENT_FOLDERS; i++) {
        const struct wal__client_folder *folder = &client->folders[i];

        if (folder->home != NULL || folder->variable != NULL || folder->setting != NULL) {
            wal__json_out_open(json, '{');
            write_text(json, "home", folder->home);
            write_text(json, "variable", folder->variable);
            write_text(json, "below", folder->below);
            write_text(json, "setting", folder->setting);
            write_text(json, "object", folder->object);
            write_text(json, "root", folder->root);
            wal__json_out_close(json, '}');
        }
    }
    wal__json_out_close(json, ']');
}

/* Writes the contract of a client. */
static void write_client(struct wal__json_out *json, const struct wal__client *client)
{
    wal__json_out_open(json, '{');
    write_text(json, "client", client->name);
    write_text(json, "versions", client->versions);
    write_folders(json, client);
    write_list(json, "roots", client->roots);
    write_list(json, "files", client->files);
    write_list(json, "directories", client->directories);
    write_list(json, "unread", client->unread);
    write_text(json, "advice", client->advice);
    write_text(json, "session", client->session);
    write_text(json, "parent", client->parent);
    write_text(json, "message", client->message);
    write_text(json, "call", client->call);
    write_text(json, "result", client->result);
    write_text(json, "usage", client->usage);
    write_text(json, "compaction", client->compaction);
    write_text(json, "title", client->title);
    write_text(json, "reads", client->reads);
    write_text(json, "writes", client->writes);
    write_text(json, "resume", client->resume);
    write_list(json, "tests", client->tests);
    wal__json_out_close(json, '}');
}

static void print_clients(void)
{
    const struct wal__client *client;

    printf("\n%-20s  %-10s  %s\n", "client", "dialect", "folder");
    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        const char *separator = "  ~/";

        printf("%-20s  %-10s", client->name,
               client->dialect != NULL ? client->dialect : "not read");
        for (size_t f = 0; f < WAL__CLIENT_FOLDERS; f++) {
            if (client->folders[f].home != NULL) {
                printf("%s%s", separator, client->folders[f].home);
                separator = ", ~/";
            }
        }
        putchar('\n');
    }
}

/* --- dialects ----------------------------------------------------------- */

/* `dialect` is NULL for the source, and for clients that are not read. */
static void write_dialect(const char *name, const char *summary, const struct wal__dialect *dialect)
{
    const struct wal__client *client;
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "name", cli_slice(name));
    wal__json_out_member_bool(&json, "import", dialect != NULL);
    wal__json_out_member_bool(
        &json, "export", dialect == NULL ? strcmp(name, NONE) != 0 : dialect->write_ops != NULL);
    cli_json_member_text(&json, "summary", cli_slice(summary));
    wal__json_out_member_open(&json, "carries", '{');
    for (unsigned i = 0; dialect != NULL && i < WAL__FEATURE_COUNT; i++) {
        if (is_feature(i)) {
            cli_json_key_text(&json, cli_slice(wal__feature_text((enum wal__feature)i)));
            wal__json_out_literal(&json, carries(dialect, i) ? "true" : "false");
        }
    }
    wal__json_out_close(&json, '}');
    wal__json_out_member_open(&json, "clients", '[');
    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (is_client_of(client, name)) {
            write_client(&json, client);
        }
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_dialect(const struct cli *cli, const char *name, const char *summary,
                          const struct wal__dialect *dialect)
{
    if (cli->json) {
        write_dialect(name, summary, dialect);
        return;
    }
    printf("%-8s  %-6s  %-6s  %s\n", name, dialect != NULL ? "import" : "-",
           dialect == NULL || dialect->write_ops != NULL ? "export" : "-", summary);
}

/* Prints a table of what each writable dialect can represent. */
static void print_features(void)
{
    const struct wal__dialect *dialect;

    printf("\n%-44s", "carried");
    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL) {
            printf("  %s", dialect->name);
        }
    }
    putchar('\n');
    for (unsigned f = 0; f < WAL__FEATURE_COUNT; f++) {
        if (!is_feature(f)) {
            continue;
        }
        printf("%-44s", wal__feature_text((enum wal__feature)f));
        for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
            if (dialect->write_ops != NULL) {
                printf("  %*s", (int)strlen(dialect->name), carries(dialect, f) ? "yes" : "-");
            }
        }
        putchar('\n');
    }
}

int verb_dialects(struct cli *cli, int argc, char **argv)
{
    const struct wal__dialect *dialect;

    cli_parse_operands(cli, argc, argv, NULL, 1, 1);
    print_dialect(cli, "source", "the files as they were imported", NULL);
    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        print_dialect(cli, dialect->name, dialect->summary, dialect);
    }
    if (cli->json) {
        write_dialect(NONE, "clients that are known and not read", NULL);
    } else {
        print_clients();
        print_features();
    }
    return CLI_OK;
}
