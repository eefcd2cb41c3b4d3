/*
 * git.h - root commits of a git repository.
 *
 * Invariant: git runs without a shell, without the repository variables of this
 * process, reads the given repository only, and ends in bounded time.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_PROJECT_GIT_H
#define AGENTWAL_TOOLS_PROJECT_GIT_H

#include <stdbool.h>

enum {
    CLI_COMMIT_SIZE = 65 /* hexadecimal digits of a SHA-256, and NUL */
};

/* Finds the smallest root commit of the repository whose top is the absolute
 * directory `top`. Returns false, with `commit` unchanged, when there is none
 * or git fails. */
bool cli_git_root_commit(const char *top, char commit[CLI_COMMIT_SIZE]);

/* Returns true if the text is `digits` lower-case hexadecimal digits. */
bool cli_git_is_commit(const char *text, unsigned digits);

#endif
