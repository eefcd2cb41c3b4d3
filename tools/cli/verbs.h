/*
 * verbs.h - the functions of the verbs of agentwal, by folder.
 *
 * A verb gets the whole command line without the program's name: its first operand is its own name,
 * unless it is VERB_NAMELESS, the next one the store. It returns the exit code. Where the build
 * found no SQLite, libcurl or libmicrohttpd, the verbs of search, remotes and serve print how to
 * get it.
 */
#ifndef AGENTWAL_TOOLS_CLI_VERBS_H
#define AGENTWAL_TOOLS_CLI_VERBS_H

#include "tools/cli/cli.h"

typedef int verb_run(struct cli *cli, int argc, char **argv);

/* care */
verb_run verb_init, verb_encrypt, verb_keys, verb_stats, verb_migrate, verb_accept_damage, verb_gc,
    verb_backup, verb_bundle, verb_merge, verb_retain, verb_restore, verb_secrets;
/* sessions */
verb_run verb_create, verb_append, verb_list, verb_latest, verb_show, verb_children, verb_fork,
    verb_delete, verb_undelete, verb_pin, verb_meta, verb_title, verb_head, verb_doc,
    verb_compact_session, verb_redact, verb_projects, verb_project;
/* convert */
verb_run verb_import, verb_adopt, verb_export, verb_path, verb_follow, verb_dialects;
/* files */
verb_run verb_checkpoint, verb_checkpoints, verb_checkpoint_show, verb_checkpoint_diff,
    verb_checkpoint_delete, verb_checkpoint_export, verb_checkpoint_import, verb_checkpointing,
    verb_rewind;
/* remote */
verb_run remote_run, remote_resume_run;
/* Says it where the last push of the store that a verb had found that another writer has taken
 * over. */
void remote_note_fenced(const struct cli *cli);
/* Reads everything that a remote has of a store, and reports the damage. The target is the URL of
 * the remote, or the directory of a store that has one; store_id may be null. Returns the exit
 * code. */
int remote_check(const struct cli *cli, const char *target, const char *store_id);
/* search */
verb_run search_run, search_run_index;
/* resume */
verb_run resume_run;
/* view */
verb_run view_run;
/* usage */
verb_run usage_run;
/* watch */
verb_run watch_run;
/* serve */
verb_run serve_run;
/* walcat */
verb_run verb_cat, verb_tree;
/* walcheck */
verb_run verb_check, verb_salvage;
/* agentwal */
verb_run help_run, agentwal_resume;

#endif
