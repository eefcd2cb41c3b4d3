/*
 * filter.h - leaves secrets, matches of patterns and paths out of texts.
 */
#ifndef AGENTWAL_TOOLS_VIEW_FILTER_H
#define AGENTWAL_TOOLS_VIEW_FILTER_H

#include <regex.h>

#include "tools/cli/json.h"

/* Kinds of parts, with their names. */
#define VIEW_KIND_LIST(X)                       \
    X(PRIVATE_KEY, "private key")               \
    X(ANTHROPIC, "Anthropic key")               \
    X(OPENAI, "OpenAI key")                     \
    X(GITHUB, "GitHub token")                   \
    X(AWS, "AWS key")                           \
    X(SLACK, "Slack token")                     \
    X(GOOGLE, "Google key")                     \
    X(JWT, "JSON web token")                    \
    X(AUTHORIZATION, "authorization")           \
    X(URL_PASSWORD, "password in a URL")        \
    X(ASSIGNMENT, "value of a secret variable") \
    X(PATTERN, "match of --redact")             \
    X(PATH, "path")

enum view_kind {
#define VIEW_KIND_NAME(name, text) VIEW_##name,
    VIEW_KIND_LIST(VIEW_KIND_NAME)
#undef VIEW_KIND_NAME
        VIEW_KINDS
};

/* Zeroed: only secrets. */
struct view_filter {
    regex_t *patterns;
    size_t pattern_count;
    bool hides_paths;
    char *cwd;      /* of the session; or NULL */
    char *cwd_name; /* of it, with '-' for '/', as clients name folders */
    uint64_t counts[VIEW_KINDS];
};

/* Compiles the patterns. Ends the process for one that is no expression. */
void view_filter_compile(const struct cli *cli, struct view_filter *filter,
                         const struct cli_values *patterns);

/* A shown_strike_fn; ctx is a struct view_filter. */
struct wal_slice view_filter_strike(void *ctx, struct wal_slice key, struct wal_slice text,
                                    struct cli_texts *texts);

/* Prints what was left out on standard error. */
void view_filter_report(const struct cli *cli, const struct view_filter *filter);
void view_filter_deinit(struct view_filter *filter);

#endif
