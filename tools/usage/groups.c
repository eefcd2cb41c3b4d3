/*
 * groups.c - sums of answers (groups.h).
 */
#include "tools/usage/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/cli.h"

enum {
    DAY_SIZE = 32 /* bytes of a date with its terminator */
};

/* "2026-11-20"; empty for a time that is unknown. */
static void day_of(int64_t unix_ms, char text[DAY_SIZE])
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;

    text[0] = '\0';
    if (unix_ms != 0 && localtime_r(&seconds, &parts) != NULL &&
        strftime(text, DAY_SIZE, "%Y-%m-%d", &parts) == 0) {
        text[0] = '\0';
    }
}

/* The name of the answer's group; `day` may hold it. */
static const char *name_of(enum usage_by by, const struct usage *usage,
                           const struct usage_answer *answer,
                           char day[DAY_SIZE])
{
    const struct usage_session *session = &usage->sessions[answer->session];

    switch (by) {
    case USAGE_BY_DAY:
        day_of(answer->time_ms, day);
        return day;
    case USAGE_BY_MODEL:
        return usage->answers.models.items[answer->model];
    case USAGE_BY_PROJECT:
        return session->project[0] != '\0' ? session->project : session->cwd;
    case USAGE_BY_CLIENT:
        return session->client;
    case USAGE_BY_SESSION:
        break;
    }
    return session->id;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_answer(struct usage_group *group, const struct usage *usage,
                       const struct usage_answer *answer)
{
    struct usage_tokens *sum = &group->tokens;

    sum->input = add(sum->input, answer->tokens.input);
    sum->output = add(sum->output, answer->tokens.output);
    sum->cache_read = add(sum->cache_read, answer->tokens.cache_read);
    sum->cache_write = add(sum->cache_write, answer->tokens.cache_write);
    sum->reasoning = add(sum->reasoning, answer->tokens.reasoning);
    sum->total = add(sum->total, answer->tokens.total);
    group->requests += answer->is_request ? 1 : 0;
    group->costed += answer->has_cost ? 1 : 0;
    group->cost += answer->cost;
    if (group->session == NULL || answer->time_ms > group->time_ms) {
        group->session = &usage->sessions[answer->session];
        group->time_ms = answer->time_ms;
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct usage_group *one = a;
    const struct usage_group *other = b;

    return strcmp(one->name, other->name);
}

static int compare_tokens(const void *a, const void *b)
{
    const struct usage_group *one = a;
    const struct usage_group *other = b;

    if (one->tokens.total != other->tokens.total) {
        return one->tokens.total < other->tokens.total ? 1 : -1;
    }
    if (one->cost > other->cost || one->cost < other->cost) {
        return one->cost < other->cost ? 1 : -1;
    }
    return compare_names(a, b);
}

/* The group of a name, added if it is new. */
static struct usage_group *find_group(struct usage_groups *groups,
                                      const char *name)
{
    uint32_t number = usage_names_number(&groups->names, name);

    if (number == groups->count) {
        groups->items = cli_reserve(groups->items, groups->count,
                                    &groups->capacity, sizeof(*groups->items));
        groups->items[groups->count++] =
            (struct usage_group){.name = groups->names.items[number]};
    }
    return &groups->items[number];
}

void usage_groups_fill(struct usage_groups *groups, const struct usage *usage,
                       int64_t since_ms, int64_t until_ms)
{
    for (size_t i = 0; i < usage->answers.count; i++) {
        const struct usage_answer *answer = &usage->answers.items[i];
        char day[DAY_SIZE];

        if ((since_ms != 0 && answer->time_ms < since_ms) ||
            (until_ms != 0 && answer->time_ms >= until_ms)) {
            continue;
        }
        add_answer(find_group(groups, name_of(groups->by, usage, answer, day)),
                   usage, answer);
        add_answer(&groups->total, usage, answer);
    }
    if (groups->count > 0) {
        qsort(groups->items, groups->count, sizeof(*groups->items),
              groups->by == USAGE_BY_DAY ? compare_names : compare_tokens);
    }
}

void usage_groups_deinit(struct usage_groups *groups)
{
    free(groups->items);
    usage_names_deinit(&groups->names);
    *groups = (struct usage_groups){.items = NULL};
}

bool usage_by_find(const char *name, enum usage_by *by)
{
    static const char *const names[] = {
        [USAGE_BY_DAY] = "day",         [USAGE_BY_MODEL] = "model",
        [USAGE_BY_PROJECT] = "project", [USAGE_BY_CLIENT] = "client",
        [USAGE_BY_SESSION] = "session",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            *by = (enum usage_by)i;
            return true;
        }
    }
    return false;
}
