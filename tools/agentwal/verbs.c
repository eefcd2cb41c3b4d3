/*
 * verbs.c - the table of the verbs.
 *
 * Invariant: the verbs of a group are adjacent, in the order of the help.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/verbs.h"

#include <string.h>

#include "tools/agentwal/help.h"
#include "tools/agentwal/resume.h"
#include "tools/care/verbs.h"
#include "tools/cli/suggest.h"
#include "tools/convert/verbs.h"
#include "tools/files/verbs.h"
#include "tools/remote/verbs.h"
#include "tools/search/verbs.h"
#include "tools/serve/verbs.h"
#include "tools/sessions/verbs.h"
#include "tools/usage/verbs.h"
#include "tools/view/verbs.h"
#include "tools/walcat/walcat.h"
#include "tools/walcheck/walcheck.h"
#include "tools/watch/verbs.h"

enum {
    NONE = CLI_NO_STORE
};

/* name, group, flags, index of the store, function, help */
static const struct verb verbs[] = {
    {"import", VERB_CONVERT, VERB_ADDS, 1, verb_import, &help_import},
    {"adopt", VERB_CONVERT, VERB_ADDS | VERB_EVERY_DAY, 1, verb_adopt,
     &help_adopt},
    {"export", VERB_CONVERT, 0, 1, verb_export, &help_export},
    {"follow", VERB_CONVERT, 0, 1, verb_follow, &help_follow},
    {"path", VERB_CONVERT, 0, 1, verb_path, &help_path},
    {"dialects", VERB_CONVERT, 0, NONE, verb_dialects, &help_dialects},
    {"list", VERB_READ, VERB_FENCED | VERB_EVERY_DAY, 1, verb_list, &help_list},
    {"show", VERB_READ, 0, 1, verb_show, &help_show},
    {"tree", VERB_READ, VERB_NAMELESS, 0, verb_tree, &help_tree},
    {"cat", VERB_READ, VERB_NAMELESS | VERB_EVERY_DAY, 0, verb_cat, &help_cat},
    {"latest", VERB_READ, 0, 1, verb_latest, &help_latest},
    {"children", VERB_READ, 0, 1, verb_children, &help_children},
    {"projects", VERB_READ, 0, 1, verb_projects, &help_projects},
    {"project", VERB_READ, 0, NONE, verb_project, &help_project},
    {"stats", VERB_READ, 0, 1, verb_stats, &help_stats},
    {"search", VERB_READ, VERB_EVERY_DAY, 1, search_run, &help_search},
    {"usage", VERB_READ, VERB_EVERY_DAY, 1, usage_run, &help_usage},
    {"watch", VERB_READ, VERB_EVERY_DAY, 1, watch_run, &help_watch},
    {"resume", VERB_READ, VERB_EVERY_DAY, 1, agentwal_resume, &help_resume},
    {"serve", VERB_READ, VERB_EVERY_DAY, 1, serve_run, &help_serve},
    {"view", VERB_READ, VERB_NAMELESS, 0, view_run, &help_view},
    {"create", VERB_WRITE, VERB_ADDS | VERB_FENCED, 1, verb_create,
     &help_create},
    {"append", VERB_WRITE, VERB_FENCED, 1, verb_append, &help_append},
    {"fork", VERB_WRITE, VERB_EVERY_DAY, 1, verb_fork, &help_fork},
    {"title", VERB_WRITE, 0, 1, verb_title, &help_title},
    {"head", VERB_WRITE, 0, 1, verb_head, &help_head},
    {"meta", VERB_WRITE, 0, 1, verb_meta, &help_meta},
    {"doc", VERB_WRITE, 0, 2, verb_doc, &help_doc},
    {"compact-session", VERB_WRITE, 0, 1, verb_compact_session,
     &help_compact_session},
    {"redact", VERB_WRITE, 0, 1, verb_redact, &help_redact},
    {"delete", VERB_WRITE, 0, 1, verb_delete, &help_delete},
    {"undelete", VERB_WRITE, 0, 1, verb_undelete, &help_undelete},
    {"pin", VERB_WRITE, 0, 1, verb_pin, &help_pin},
    {"checkpoint", VERB_FILES, 0, 1, verb_checkpoint, &help_checkpoint},
    {"checkpoints", VERB_FILES, 0, 1, verb_checkpoints, &help_checkpoints},
    {"checkpoint-show", VERB_FILES, 0, 1, verb_checkpoint_show,
     &help_checkpoint_show},
    {"checkpoint-diff", VERB_FILES, 0, 1, verb_checkpoint_diff,
     &help_checkpoint_diff},
    {"checkpoint-delete", VERB_FILES, 0, 1, verb_checkpoint_delete,
     &help_checkpoint_delete},
    {"checkpoint-export", VERB_FILES, 0, 1, verb_checkpoint_export,
     &help_checkpoint_export},
    {"checkpoint-import", VERB_FILES, 0, 1, verb_checkpoint_import,
     &help_checkpoint_import},
    {"checkpointing", VERB_FILES, 0, 1, verb_checkpointing,
     &help_checkpointing},
    {"rewind", VERB_FILES, VERB_EVERY_DAY, 1, verb_rewind, &help_rewind},
    {"init", VERB_CARE, VERB_ADDS, 1, verb_init, &help_init},
    {"check", VERB_CARE, VERB_NAMELESS, 0, verb_check, &help_check},
    {"salvage", VERB_CARE, VERB_NAMELESS, 0, verb_salvage, &help_salvage},
    {"migrate", VERB_CARE, 0, 1, verb_migrate, &help_migrate},
    {"accept-damage", VERB_CARE, 0, 1, verb_accept_damage, &help_accept_damage},
    {"gc", VERB_CARE, 0, 1, verb_gc, &help_gc},
    {"backup", VERB_CARE, 0, 1, verb_backup, &help_backup},
    {"bundle", VERB_CARE, 0, 1, verb_bundle, &help_bundle},
    {"merge", VERB_CARE, VERB_ADDS, 1, verb_merge, &help_merge},
    {"index", VERB_CARE, 0, 1, search_run_index, &help_index},
    {"retain", VERB_CARE, 0, 1, verb_retain, &help_retain},
    {"remote", VERB_CARE, 0, 2, remote_run, &help_remote},
    {"restore", VERB_CARE, 0, 1, verb_restore, &help_restore},
    {"help", VERB_CARE, 0, NONE, help_run, &help_help},
};

const struct verb *verb_at(size_t index)
{
    return index < sizeof(verbs) / sizeof(verbs[0]) ? &verbs[index] : NULL;
}

const struct verb *verb_find(const char *name)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

const char *verb_suggest(const char *name)
{
    /* What other programs call it. */
    static const char *const others[][2] = {
        {"ls", "list"},
        {"rm", "delete"},
        {"grep", "search"},
        {"log", "cat"},
        {"diff", "checkpoint-diff"},
        {"rename", "title"},
    };
    struct cli_suggestion suggestion = {.typed = name};
    const struct verb *verb;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(others[i][0], name) == 0) {
            return others[i][1];
        }
    }
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        cli_suggest(&suggestion, verb->name);
    }
    return suggestion.nearest;
}

bool verb_has_command(const char *verb_name, const char *name)
{
    const struct verb *verb = verb_find(verb_name);
    size_t size = strlen(verb_name);

    if (verb == NULL || verb_find(name) != NULL) {
        return false;
    }
    /* The lines of its usage: the verb is before each but the first. */
    for (const char *line = verb->help->usage; line != NULL;
         line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strncmp(line, verb_name, size) == 0 ? size : 0;
        line += *line == ' ';
        if (strcspn(line, " \n") == strlen(name) &&
            strncmp(line, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}
