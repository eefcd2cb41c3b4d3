/*
 * resume.c - the verb resume, of sessions here and of other machines
 * (resume.h).
 */
#include "tools/agentwal/resume.h"

#include <string.h>

#include "tools/remote/verbs.h"
#include "tools/resume/verbs.h"

static bool is_option(const char *argument, const char *name)
{
    size_t size = strlen(name);

    return strncmp(argument, name, size) == 0 &&
           (argument[size] == '\0' || argument[size] == '=');
}

/* Whether the option is one of remotes. */
static bool is_of_remotes(const char *argument)
{
    static const char *const names[] = {"--remote", "--take-back", "--store-id",
                                        "--take-over"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_option(argument, names[i])) {
            return true;
        }
    }
    return false;
}

int agentwal_resume(struct cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_of_remotes(argv[i])) {
            return remote_resume_run(cli, argc, argv);
        }
    }
    return resume_run(cli, argc, argv);
}
