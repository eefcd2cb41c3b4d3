/*
 * git.h - what git says of a repository.
 *
 * Invariant: git is run without a shell, reads the repository and nothing
 * else of this process's repository variables, and ends in bounded time.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_GIT_H
#define AGENTWAL_TOOLS_CLI_GIT_H

#include <stdbool.h>

enum {
    CLI_COMMIT_SIZE = 65 /* bytes of a commit's digits, SHA-256 too, and NUL */
};

/* The least of the root commits of the repository that the absolute directory
 * `top` is the top of. False, with commit as it was, when it has none or git
 * cannot tell. */
bool cli_git_root_commit(const char *top, char commit[CLI_COMMIT_SIZE]);

/* Whether the text is `digits` lower-case hexadecimal digits. */
bool cli_git_is_commit(const char *text, unsigned digits);

#endif
