/*
 * filter.h - leaves secrets, matches of patterns and paths out of texts.
 */
#ifndef AGENTWAL_TOOLS_VIEW_FILTER_H
#define AGENTWAL_TOOLS_VIEW_FILTER_H

#include "tools/secrets/secrets.h"

/* Zeroed, and view_filter_open called: only secrets. */
struct view_filter {
    struct secrets_filter secrets;
    regex_t *patterns;
    size_t pattern_count;
    bool hides_paths;
    char *cwd;        /* of the session; or NULL */
    char *cwd_name;   /* of it, with '-' for '/', as clients name folders */
    uint64_t matches; /* of patterns */
    uint64_t paths;
};

/* Reads the rules of secrets, of the file too unless it is NULL, and compiles the patterns. Ends
 * the process for what is no rule and no expression. */
void view_filter_open(const struct cli *cli, struct view_filter *filter, const char *rules,
                      const struct cli_values *patterns);

/* A shown_strike_fn; ctx is a struct view_filter. */
struct wal_slice view_filter_strike(void *ctx, struct wal_slice key, struct wal_slice text,
                                    struct cli_texts *texts);

/* The number of places that were left out. */
uint64_t view_filter_count(const struct view_filter *filter);

/* Prints what was left out on standard error. */
void view_filter_report(const struct cli *cli, const struct view_filter *filter);
void view_filter_deinit(struct view_filter *filter);

#endif
