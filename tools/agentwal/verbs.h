/*
 * verbs.h - the verbs of agentwal.
 *
 * One table has all of them; the help, the man page, the completion and the dispatch are made from
 * it. A new verb is a line of the table in verbs.c, its help there, and its function in
 * tools/cli/verbs.h.
 */
#ifndef AGENTWAL_TOOLS_AGENTWAL_VERBS_H
#define AGENTWAL_TOOLS_AGENTWAL_VERBS_H

#include "tools/cli/cli.h"

enum verb_group {
    VERB_CONVERT,
    VERB_READ,
    VERB_WRITE,
    VERB_FILES,
    VERB_CARE,
    VERB_GROUP_COUNT
};

enum {
    /* The verb creates the store that is missing. */
    VERB_ADDS = 1,
    /* Its name is not one of the operands that `run` gets. */
    VERB_NAMELESS = 2,
    /* It says whether another machine has taken the store over. */
    VERB_FENCED = 4,
    /* The overview begins with it. */
    VERB_EVERY_DAY = 8
};

enum {
    VERB_OPTIONS = 14, /* of a verb at most, with the end of the list */
    VERB_EXAMPLES = 4
};

struct verb_option {
    const char *usage; /* "--at ENTRY"; NULL after the last one */
    const char *text;
};

struct verb_example {
    const char *command; /* NULL after the last one */
    const char *text;
};

struct verb_help {
    const char *usage;   /* operands and options, after the verb's name */
    const char *summary; /* one sentence, without its full stop */
    const char *text;    /* more, or NULL */
    struct verb_option options[VERB_OPTIONS];
    struct verb_example examples[VERB_EXAMPLES];
};

struct verb {
    const char *name;
    enum verb_group group;
    unsigned flags;
    int store_at; /* index among the operands that `run` gets */
    int (*run)(struct cli *cli, int argc, char **argv);
    const struct verb_help *help;
};

/* Returns the verb at an index, in the order of the help, or NULL after the last one. */
const struct verb *verb_at(size_t index);

/* Returns the verb of a name, or NULL. */
const struct verb *verb_find(const char *name);

/* Returns the name in the table that is nearest to a mistyped one, or NULL when none is near. */
const char *verb_suggest(const char *name);

/* Whether the name is a command of a verb, as push is of remote. */
bool verb_has_command(const char *verb_name, const char *name);

#endif
