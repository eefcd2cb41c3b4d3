/*
 * changes.c - prints states and changes of files.
 *
 * Threads: the tool has one thread.
 */
#include "tools/files/changes.h"

#include <inttypes.h>

#include "tools/cli/cli.h"

const char *files_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [WAL_FILE_ABSENT] = "absent",
        [WAL_FILE_REGULAR] = "file",
        [WAL_FILE_SYMLINK] = "symlink",
    };

    return kind <= WAL_FILE_SYMLINK ? names[kind] : "unknown";
}

void files_json_mode(struct wal__json_out *json, uint32_t mode)
{
    char text[16];

    snprintf(text, sizeof(text), "%04" PRIo32, mode);
    cli_json_text(json, cli_slice(text));
}

static void write_state(struct wal__json_out *json, const char *key,
                        const char *mode_key, uint32_t kind, uint32_t mode)
{
    cli_json_member_text(json, key, cli_slice(files_kind_name(kind)));
    if (kind == WAL_FILE_REGULAR) {
        wal__json_out_key(json, mode_key);
        files_json_mode(json, mode);
    }
}

void files_json_change(struct wal__json_out *json,
                       const struct wal_file_change *change)
{
    wal__json_out_open(json, '{');
    cli_json_path(json, change->path);
    write_state(json, "before", "modeBefore", change->kind_before,
                change->mode_before);
    write_state(json, "after", "modeAfter", change->kind_after,
                change->mode_after);
    wal__json_out_member_count(json, "insertions", change->insertions);
    wal__json_out_member_count(json, "deletions", change->deletions);
    wal__json_out_member_bool(json, "binary",
                              (change->flags & WAL_FILE_CHANGE_BINARY) != 0);
    wal__json_out_close(json, '}');
}

void files_print_change(const struct wal_file_change *change)
{
    if ((change->flags & WAL_FILE_CHANGE_BINARY) != 0) {
        printf("%8s %8s  ", "-", "-");
    } else {
        printf("%8" PRIu64 " %8" PRIu64 "  ", change->insertions,
               change->deletions);
    }
    cli_print_name(stdout, change->path);
    if (change->kind_before != change->kind_after) {
        printf("  (%s to %s)", files_kind_name(change->kind_before),
               files_kind_name(change->kind_after));
    } else if ((change->flags & WAL_FILE_CHANGE_MODE) != 0) {
        printf("  (mode %04" PRIo32 " to %04" PRIo32 ")", change->mode_before,
               change->mode_after);
    }
    putchar('\n');
}

void files_print_totals(const struct wal_file_changes_info *info)
{
    printf("%" PRIu64 " %s, +%" PRIu64 " -%" PRIu64, info->files,
           cli_plural(info->files, "file", "files"), info->insertions,
           info->deletions);
}

void files_json_totals(struct wal__json_out *json,
                       const struct wal_file_changes_info *info)
{
    wal__json_out_open(json, '{');
    wal__json_out_member_count(json, "additions", info->insertions);
    wal__json_out_member_count(json, "deletions", info->deletions);
    wal__json_out_member_count(json, "files", info->files);
    wal__json_out_close(json, '}');
}
