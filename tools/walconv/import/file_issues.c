/*
 * file_issues.c - issues of the files of an import.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import/file_issues.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void walconv_file_issues_add(struct walconv_file_issues *issues, char *path,
                             uint64_t offset, const char *reason)
{
    issues->items = cli_reserve(issues->items, issues->count, &issues->capacity,
                                sizeof(issues->items[0]));
    issues->items[issues->count++] = (struct walconv_file_issue){
        .path = path,
        .offset = offset,
        .reason = cli_copy_text(reason, strlen(reason))};
}

void walconv_file_issues_write(const struct walconv_file_issues *issues,
                               struct cli_json *json)
{
    cli_json_key(json, "damaged");
    cli_json_open(json, '[');
    for (size_t i = 0; i < issues->count; i++) {
        const struct walconv_file_issue *issue = &issues->items[i];
        cli_json_open(json, '{');
        cli_json_path(json, cli_slice(issue->path));
        if (issue->offset != WALCONV_NO_OFFSET) {
            cli_json_key(json, "offset");
            cli_json_number(json, issue->offset);
        }
        cli_json_key(json, "reason");
        cli_json_text(json, cli_slice(issue->reason));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void walconv_file_issues_print(const struct walconv_file_issues *issues,
                               const struct cli *cli)
{
    for (size_t i = 0; i < issues->count; i++) {
        const struct walconv_file_issue *issue = &issues->items[i];
        if (issue->offset == WALCONV_NO_OFFSET) {
            cli_error(cli, CLI_OK, issue->path, "%s", issue->reason);
        } else {
            cli_error(cli, CLI_OK, issue->path, "byte %" PRIu64 ": %s",
                      issue->offset, issue->reason);
        }
    }
}

void walconv_file_issues_deinit(struct walconv_file_issues *issues)
{
    for (size_t i = 0; i < issues->count; i++) {
        free(issues->items[i].path);
        free(issues->items[i].reason);
    }
    free(issues->items);
    *issues = (struct walconv_file_issues){.items = NULL};
}
