/*
 * help.h - the help of agentwal: the texts of all verbs, and printing them.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_AGENTWAL_HELP_H
#define AGENTWAL_TOOLS_AGENTWAL_HELP_H

#include "tools/agentwal/verbs.h"

/* Prints the verbs by group. */
void help_print_overview(void);

/* Returns the help of a verb, which the caller frees. */
char *help_of_verb(const struct verb *verb);

/* The verb help: prints the overview, the help of the verbs that the operands
 * name, or with --json the whole table. */
int help_run(struct cli *cli, int argc, char **argv);

extern const struct verb_help help_accept_damage;
extern const struct verb_help help_adopt;
extern const struct verb_help help_append;
extern const struct verb_help help_bundle;
extern const struct verb_help help_cat;
extern const struct verb_help help_check;
extern const struct verb_help help_checkpoint;
extern const struct verb_help help_checkpoint_delete;
extern const struct verb_help help_checkpoint_diff;
extern const struct verb_help help_checkpoint_export;
extern const struct verb_help help_checkpoint_import;
extern const struct verb_help help_checkpoint_show;
extern const struct verb_help help_checkpointing;
extern const struct verb_help help_checkpoints;
extern const struct verb_help help_children;
extern const struct verb_help help_compact_session;
extern const struct verb_help help_create;
extern const struct verb_help help_delete;
extern const struct verb_help help_dialects;
extern const struct verb_help help_doc;
extern const struct verb_help help_export;
extern const struct verb_help help_follow;
extern const struct verb_help help_fork;
extern const struct verb_help help_gc;
extern const struct verb_help help_backup;
extern const struct verb_help help_head;
extern const struct verb_help help_help;
extern const struct verb_help help_import;
extern const struct verb_help help_index;
extern const struct verb_help help_init;
extern const struct verb_help help_latest;
extern const struct verb_help help_list;
extern const struct verb_help help_merge;
extern const struct verb_help help_meta;
extern const struct verb_help help_migrate;
extern const struct verb_help help_path;
extern const struct verb_help help_pin;
extern const struct verb_help help_project;
extern const struct verb_help help_projects;
extern const struct verb_help help_redact;
extern const struct verb_help help_remote;
extern const struct verb_help help_restore;
extern const struct verb_help help_retain;
extern const struct verb_help help_rewind;
extern const struct verb_help help_salvage;
extern const struct verb_help help_search;
extern const struct verb_help help_usage;
extern const struct verb_help help_watch;
extern const struct verb_help help_resume;
extern const struct verb_help help_serve;
extern const struct verb_help help_view;
extern const struct verb_help help_show;
extern const struct verb_help help_stats;
extern const struct verb_help help_title;
extern const struct verb_help help_tree;
extern const struct verb_help help_undelete;

#endif
