/*
 * struck.h - a text that is copied without some of its parts, and the number of
 * parts of each kind that were left out.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_VIEW_STRUCK_H
#define AGENTWAL_TOOLS_VIEW_STRUCK_H

#include "tools/cli/entry.h"

/* Kinds of parts, with their names. */
#define VIEW_KIND_LIST(X)                     \
    X(PRIVATE_KEY, "private key")             \
    X(ANTHROPIC, "Anthropic key")             \
    X(OPENAI, "OpenAI key")                   \
    X(GITHUB, "GitHub token")                 \
    X(AWS, "AWS key")                         \
    X(SLACK, "Slack token")                   \
    X(GOOGLE, "Google key")                   \
    X(JWT, "JSON web token")                  \
    X(AUTHORIZATION, "authorization")         \
    X(URL_PASSWORD, "password in a URL")      \
    X(ASSIGNMENT, "value of a secret's name") \
    X(PATTERN, "match of --redact")           \
    X(PATH, "path")

enum view_kind {
#define VIEW_KIND_NAME(name, text) VIEW_##name,
    VIEW_KIND_LIST(VIEW_KIND_NAME)
#undef VIEW_KIND_NAME
    VIEW_KINDS
};

/* Returns the name of a kind. */
const char *view_kind_text(enum view_kind kind);

/* A part of a text. */
struct view_range {
    size_t from;
    size_t end;
};

/* A copy that is being made. The owner zeroes it and sets `counts`. */
struct view_copy {
    char *data;
    size_t size;
    size_t capacity;
    uint64_t *counts; /* of VIEW_KINDS */
};

void view_copy_put(struct view_copy *copy, const void *data, size_t size);

/* Adds "[KIND struck out]" and counts it. */
void view_copy_strike(struct view_copy *copy, enum view_kind kind);

/* Gives the text to `texts`, which owns it then. */
struct wal_slice view_copy_finish(struct view_copy *copy,
                                  struct cli_texts *texts);

#endif
