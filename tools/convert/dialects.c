/*
 * dialects.c - the verb dialects: what can be imported and exported.
 *
 * Threads: the tools are single-threaded.
 */
#include <string.h>

#include "convert/model/dialect.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

static bool carries(const struct wal__dialect *dialect, unsigned feature)
{
    return dialect->write_ops != NULL &&
           (dialect->write_ops->carries >> feature & 1) != 0;
}

/* Features for losses of no particular dialect are not listed. */
static bool is_feature(unsigned feature)
{
    return feature < WAL__FEATURE_FIELDS || feature == WAL__FEATURE_PARENTS;
}

/* `dialect` is NULL for the source. */
static void write_dialect(const char *name, const char *summary,
                          const struct wal__dialect *dialect)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "name", cli_slice(name));
    wal__json_out_member_bool(&json, "import", dialect != NULL);
    wal__json_out_member_bool(&json, "export",
                              dialect == NULL || dialect->write_ops != NULL);
    cli_json_member_text(&json, "summary", cli_slice(summary));
    wal__json_out_member_open(&json, "carries", '{');
    for (unsigned i = 0; dialect != NULL && i < WAL__FEATURE_COUNT; i++) {
        if (is_feature(i)) {
            cli_json_key_text(
                &json, cli_slice(wal__feature_text((enum wal__feature)i)));
            wal__json_out_literal(&json,
                                  carries(dialect, i) ? "true" : "false");
        }
    }
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_dialect(const struct cli *cli, const char *name,
                          const char *summary,
                          const struct wal__dialect *dialect)
{
    if (cli->json) {
        write_dialect(name, summary, dialect);
        return;
    }
    printf("%-8s  %-6s  %-6s  %s\n", name, dialect != NULL ? "import" : "-",
           dialect == NULL || dialect->write_ops != NULL ? "export" : "-",
           summary);
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
                printf("  %*s", (int)strlen(dialect->name),
                       carries(dialect, f) ? "yes" : "-");
            }
        }
        putchar('\n');
    }
}

int verb_dialects(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {{.name = NULL}};
    const struct wal__dialect *dialect;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 1, 1);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    print_dialect(cli, "source", "the files as they were imported", NULL);
    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        print_dialect(cli, dialect->name, dialect->summary, dialect);
    }
    if (!cli->json) {
        print_features();
    }
    return CLI_OK;
}
