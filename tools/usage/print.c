/*
 * print.c - prints sums of answers (groups.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/usage/groups.h"

enum {
    COST_SIZE = 64, /* bytes of a text with its terminator */
    NAME_MAX = 40   /* columns that no name is cut below */
};

/* --- JSON --------------------------------------------------------------- */

static void write_number(struct wal__json_out *json, const char *key,
                         uint64_t number)
{
    wal__json_out_member_count(json, key, number);
}

static void write_text(struct wal__json_out *json, const char *key,
                       const char *text)
{
    cli_json_member_text_or_null(json, key,
                                 (struct wal_slice){text, strlen(text)});
}

static void write_cost(struct wal__json_out *json,
                       const struct usage_group *group)
{
    char text[COST_SIZE];

    wal__json_out_key(json, "cost");
    if (group->costed == 0) {
        cli_json_raw(json, (struct wal_slice){"null", 4});
        return;
    }
    snprintf(text, sizeof(text), "%.9g", group->cost);
    cli_json_raw(json, (struct wal_slice){text, strlen(text)});
}

/* Writes what identifies a group. */
static void write_name(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group)
{
    switch (by) {
    case USAGE_BY_DAY:
        write_text(json, "day", group->name);
        break;
    case USAGE_BY_MODEL:
        write_text(json, "model", group->name);
        break;
    case USAGE_BY_CLIENT:
        write_text(json, "client", group->name);
        break;
    case USAGE_BY_PROJECT:
        write_text(json, "projectId", group->session->project);
        write_text(json, "cwd", group->session->cwd);
        break;
    case USAGE_BY_SESSION:
        write_text(json, "sessionId", group->session->id);
        write_text(json, "title", group->session->title);
        write_text(json, "cwd", group->session->cwd);
        break;
    }
}

void usage_group_write(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group)
{
    wal__json_out_open(json, '{');
    write_name(json, by, group);
    write_number(json, "requests", group->requests);
    write_number(json, "inputTokens", group->tokens.input);
    write_number(json, "outputTokens", group->tokens.output);
    write_number(json, "cacheReadTokens", group->tokens.cache_read);
    write_number(json, "cacheWriteTokens", group->tokens.cache_write);
    write_number(json, "reasoningTokens", group->tokens.reasoning);
    write_number(json, "totalTokens", group->tokens.total);
    write_cost(json, group);
    write_number(json, "costed", group->costed);
    wal__json_out_close(json, '}');
}

void usage_groups_write(const struct usage_groups *groups)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    for (size_t i = 0; i < groups->count; i++) {
        usage_group_write(&json, groups->by, &groups->items[i]);
        wal__json_out_newline(&json);
    }
}

/* --- the table ---------------------------------------------------------- */

static const char *label_of(enum usage_by by, const struct usage_group *group)
{
    const char *name = by == USAGE_BY_PROJECT && group->session->cwd[0] != '\0'
                           ? group->session->cwd
                           : group->name;

    return name[0] != '\0' ? name : "-";
}

/* Columns of the names, of which control characters are wider than their
 * bytes. */
static size_t name_width(const struct usage_groups *groups)
{
    size_t width = strlen("PROJECT");

    for (size_t i = 0; i < groups->count; i++) {
        size_t size = strlen(label_of(groups->by, &groups->items[i]));

        width = size > width ? size : width;
    }
    return width < NAME_MAX ? width : NAME_MAX;
}

static void print_row(const char *label, size_t width,
                      const struct usage_group *group)
{
    const struct usage_tokens *tokens = &group->tokens;
    size_t printed =
        cli_print_name(stdout, (struct wal_slice){label, strlen(label)});
    char cost[COST_SIZE] = "-";

    if (group->costed > 0) {
        snprintf(cost, sizeof(cost), "%.4f", group->cost);
    }
    printf("%*s  %8" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "  %14" PRIu64
           "  %12" PRIu64 "  %12" PRIu64 "  %14" PRIu64 "  %10s\n",
           printed < width ? (int)(width - printed) : 0, "", group->requests,
           tokens->input, tokens->output, tokens->cache_read,
           tokens->cache_write, tokens->reasoning, tokens->total, cost);
}

void usage_groups_print(const struct usage_groups *groups)
{
    static const char *const heads[] = {
        [USAGE_BY_DAY] = "DAY",         [USAGE_BY_MODEL] = "MODEL",
        [USAGE_BY_PROJECT] = "PROJECT", [USAGE_BY_CLIENT] = "CLIENT",
        [USAGE_BY_SESSION] = "SESSION",
    };
    size_t width = name_width(groups);

    if (groups->count == 0) {
        return;
    }
    printf("%-*s  %8s  %12s  %12s  %14s  %12s  %12s  %14s  %10s\n", (int)width,
           heads[groups->by], "REQUESTS", "INPUT", "OUTPUT", "CACHE READ",
           "CACHE WRITE", "REASONING", "TOTAL", "COST USD");
    for (size_t i = 0; i < groups->count; i++) {
        print_row(label_of(groups->by, &groups->items[i]), width,
                  &groups->items[i]);
    }
    print_row("TOTAL", width, &groups->total);
}
