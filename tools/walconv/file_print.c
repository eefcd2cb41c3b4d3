/*
 * file_print.c - print the result of importing a file.
 *
 * Threads: the tools are single-threaded.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/json.h"
#include "tools/walconv/import/file_import.h"

static void write_damage(struct cli_json *json,
                         const struct walconv_lines *lines)
{
    cli_json_key(json, "damaged");
    cli_json_open(json, '[');
    for (size_t i = 0; i < lines->issue_count; i++) {
        cli_json_open(json, '{');
        cli_json_key(json, "line");
        cli_json_number(json, lines->issues[i].line);
        cli_json_key(json, "offset");
        cli_json_number(json, lines->issues[i].offset);
        cli_json_key(json, "reason");
        cli_json_text(json, cli_slice(lines->issues[i].reason));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

/* Lines that became entries; a partial line does not count. */
static uint64_t appended_lines(const struct walconv_file *file)
{
    return file->lines.batch.appended + file->copy.own -
           (file->lines.has_partial_line ? 1 : 0);
}

/* Lines that the session had before. */
static uint64_t known_lines(const struct walconv_file *file)
{
    return file->lines.known_lines + file->lines.batch.duplicates -
           file->copy.shared - file->copy.own;
}

static void write_json(const struct walconv_file *file, struct wal_slice id)
{
    const struct walconv_lines *lines = &file->lines;
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(file->name));
    cli_json_key(&json, "dialect");
    cli_json_text(&json, cli_slice(file->probe.dialect->name));
    cli_json_key(&json, "sessionId");
    cli_json_text(&json, id);
    cli_json_key(&json, "lines");
    cli_json_number(&json, file->count);
    cli_json_key(&json, "appended");
    cli_json_number(&json, appended_lines(file));
    cli_json_key(&json, "shared");
    cli_json_number(&json, file->copy.shared);
    cli_json_key(&json, "duplicates");
    cli_json_number(&json, known_lines(file));
    write_damage(&json, lines);
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void print_text(const struct walconv_file *file, struct wal_slice id)
{
    const struct walconv_lines *lines = &file->lines;
    const struct cli *cli = file->import->cli;
    char position[64];

    cli_print_name(stdout, cli_slice(file->name));
    printf(": %s session ", file->probe.dialect->name);
    cli_print_name(stdout, id);
    printf(", %" PRIu64 " %s, %" PRIu64 " appended, ", file->count,
           cli_plural(file->count, "line", "lines"), appended_lines(file));
    if (file->copy.shared > 0) {
        printf("%" PRIu64 " shared, ", file->copy.shared);
    }
    printf("%" PRIu64 " known\n", known_lines(file));
    for (size_t i = 0; i < lines->issue_count; i++) {
        const struct walconv_line_issue *issue = &lines->issues[i];
        snprintf(position, sizeof(position), "line %" PRIu64 ", byte %" PRIu64,
                 issue->line, issue->offset);
        cli_error(cli, CLI_OK, file->name, "%s: %s", position, issue->reason);
    }
}

void walconv_file_print(const struct walconv_file *file)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    progress_clear(file->import->progress);
    if (wal_session_get_info(file->session, &info, NULL) != WAL_OK) {
        info.id.size = 0;
    }
    if (file->import->cli->json) {
        write_json(file, info.id);
    } else {
        print_text(file, info.id);
    }
}
