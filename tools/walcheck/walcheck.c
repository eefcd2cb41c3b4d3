/*
 * walcheck.c - the command: reads all of a store and reports its damage; with
 * --salvage, builds a sound store from the readable records (SPEC.md 3.4).
 *
 * Invariant: walcheck writes nothing below the store that it reads.
 *
 * Threads: see walcheck.h.
 */
#include <unistd.h>

#include "tools/walcheck/walcheck.h"

static const char help[] =
    "Usage: walcheck [OPTION]... STORE\n"
    "       walcheck [OPTION]... --salvage OUT STORE\n"
    "\n"
    "Reads everything in a store and reports the damage. It needs no write\n"
    "permission, and it works on stores that another process has open or\n"
    "that cannot be opened.\n"
    "\n"
    "  --salvage OUT        build a sound store in OUT, which must not exist,\n"
    "                       from all readable records, and report the rest;\n"
    "                       OUT is removed if it cannot be written\n"
    "  --jobs N             read with N threads (default: one per processor)\n"
    "\n"
    "  With --strict an ambiguous tail is damage.\n";

enum {
    JOBS_MAX = 256
};

static int run(struct cli *cli, int argc, char **argv)
{
    struct check_store store = {
        .cli = cli,
        .format_version = WAL__FORMAT_VERSION,
    };
    const char *salvage = NULL;
    const char *jobs = NULL;
    const struct cli_option options[] = {
        {.name = "salvage", .value = &salvage},
        {.name = "jobs", .value = &jobs},
        {.name = NULL},
    };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = processors > 0 ? (uint64_t)processors : 1;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 1, 1);
    }
    if (code == CLI_CONTINUE && jobs != NULL) {
        code = cli_parse_number(cli, "--jobs", jobs, JOBS_MAX, &count);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    store.jobs = count == 0 ? 1 : (unsigned)count;
    store.jobs = store.jobs > JOBS_MAX ? JOBS_MAX : store.jobs;
    store.path = cli->items[0];
    code = check_store_run(&store);
    if (code == CLI_CONTINUE) {
        code = salvage == NULL ? check_report(&store)
                               : check_salvage(&store, salvage);
    }
    check_store_deinit(&store);
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli = {.tool = "walcheck", .help = help};

    cli_ensure_std_fds();
    return cli_finish(&cli, run(&cli, argc, argv));
}
