/*
 * verbs.h - the verb remote of agentwal, resume with a remote, and the check of
 * a remote. Where the build found no libcurl, they print how to get it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_VERBS_H
#define AGENTWAL_TOOLS_REMOTE_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the command, the store, and those of the command. Returns
 * the exit code. */
int remote_run(struct cli *cli, int argc, char **argv);

/* Says it where the last push of the store that a verb had found that another
 * writer has taken over. */
void remote_note_fenced(const struct cli *cli);

/* Reads everything that a remote has of a store, and reports the damage. The
 * target is the URL of the remote, or the directory of a store that has one;
 * store_id may be null. Returns the exit code. */
int remote_check(const struct cli *cli, const char *target,
                 const char *store_id);

/* The verb resume with --remote or --take-back: the operands are the store and
 * the session. Returns the exit code. */
int remote_resume_run(struct cli *cli, int argc, char **argv);

#endif
