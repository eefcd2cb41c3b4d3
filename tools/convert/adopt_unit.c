/*
 * adopt_unit.c - writes and removes the systemd user unit (adopt_unit.h).
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/adopt_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/json.h"

#define UNIT  "agentwal-import.service"
#define WANTS "default.target.wants"

extern char **environ;

/* ---------------------------------------------------------------- paths --- */

static char *join(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 2;
    char *path = cli_alloc(size);

    snprintf(path, size, "%s/%s", a, b);
    return path;
}

static char *units_folder(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");

    if (base != NULL && base[0] == '/') {
        return join(base, "systemd/user");
    }
    base = getenv("HOME");
    return base != NULL && base[0] == '/' ? join(base, ".config/systemd/user")
                                          : NULL;
}

/* Returns the path of the unit's file; the caller frees it. NULL: neither
 * XDG_CONFIG_HOME nor HOME is set. */
static char *adopt_unit_path(void)
{
    char *folder = units_folder();
    char *path = folder != NULL ? join(folder, UNIT) : NULL;

    free(folder);
    return path;
}

/* Creates a folder and those above it. */
static void make_folders(const char *path)
{
    char *copy = cli_copy_text(path, strlen(path));

    for (char *at = copy + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(copy, 0755);
            *at = '/';
        }
    }
    (void)mkdir(copy, 0755);
    free(copy);
}

/* -------------------------------------------------------------- content --- */

/* Writes a text as one quoted word of a unit. In a command systemd expands $,
 * in Environment= it does not. Returns false if the text has control
 * characters. */
static bool put_word(FILE *file, const char *text, bool is_command)
{
    putc('"', file);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 127) {
            return false;
        }
        if (*text == '"' || *text == '\\') {
            putc('\\', file);
        } else if (*text == '%' || (*text == '$' && is_command)) {
            putc(*text, file);
        }
        putc(*text, file);
    }
    putc('"', file);
    return true;
}

/* Passes on the variables that name clients' folders. */
static bool put_environment(FILE *file)
{
    static const char *const names[] = {"CLAUDE_CONFIG_DIR", "CODEX_HOME",
                                        "PI_CODING_AGENT_DIR", "XDG_DATA_HOME"};
    bool is_valid = true;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        char *assignment;

        if (value == NULL || value[0] != '/') {
            continue;
        }
        assignment = cli_alloc(strlen(names[i]) + strlen(value) + 2);
        sprintf(assignment, "%s=%s", names[i], value);
        fputs("Environment=", file);
        is_valid = put_word(file, assignment, false) && is_valid;
        putc('\n', file);
        free(assignment);
    }
    return is_valid;
}

/* Writes the unit; returns false if a path cannot be written in one. */
static bool put_unit(FILE *file, const char *program, const char *store,
                     const struct wal_import_client *clients, size_t count)
{
    bool is_valid = true;

    fputs("[Unit]\n"
          "Description=Import the sessions of AI agents into agentwal\n"
          "\n"
          "[Service]\n"
          "Nice=10\n"
          "Restart=on-failure\n"
          "RestartSec=10\n",
          file);
    is_valid = put_environment(file);
    fputs("ExecStart=", file);
    is_valid = put_word(file, program, true) && is_valid;
    fputs(" --store ", file);
    is_valid = put_word(file, store, true) && is_valid;
    fputs(" import --follow", file);
    for (size_t i = 0; i < count; i++) {
        putc(' ', file);
        is_valid = put_word(file, clients[i].folder, true) && is_valid;
    }
    fputs("\n"
          "\n"
          "[Install]\n"
          "WantedBy=default.target\n",
          file);
    return is_valid;
}

/* Writes the file next to its final name, and renames it. Returns 0 or an errno
 * value; EINVAL: a path has control characters. */
static int write_unit(const char *path, const char *store,
                      const struct wal_import_client *clients, size_t count)
{
    char program[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *temporary = cli_alloc(strlen(path) + 8);
    FILE *file;
    int number = 0;

    if (size < 0) {
        number = errno;
        free(temporary);
        return number;
    }
    program[size] = '\0';
    sprintf(temporary, "%s.tmp", path);
    file = fopen(temporary, "we");
    if (file == NULL) {
        number = errno;
    } else {
        number = put_unit(file, program, store, clients, count) ? 0 : EINVAL;
        if (fclose(file) != 0 && number == 0) {
            number = errno;
        }
        if (number == 0 && rename(temporary, path) != 0) {
            number = errno;
        }
        if (number != 0) {
            (void)unlink(temporary);
        }
    }
    free(temporary);
    return number;
}

/* ------------------------------------------------------------ systemctl --- */

/* Runs systemctl --user with up to two words. Returns true if it succeeded. */
static bool run_systemctl(const char *first, const char *second)
{
    char *arguments[] = {(char *)"systemctl", (char *)"--user",
                         (char *)(uintptr_t)first, (char *)(uintptr_t)second,
                         NULL};
    posix_spawn_file_actions_t actions;
    bool is_started = false;
    pid_t child = 0;
    int result = 0;

    fflush(stdout);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                         O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                         O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                         O_WRONLY, 0) == 0) {
        is_started = posix_spawnp(&child, "systemctl", &actions, NULL,
                                  arguments, environ) == 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    while (is_started && waitpid(child, &result, 0) < 0) {
        is_started = errno == EINTR;
    }
    return is_started && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

/* Enables the unit as systemctl does, without systemd. Returns 0 or an errno
 * value. */
static int enable(const char *folder)
{
    char *wants = join(folder, WANTS);
    char *link = join(wants, UNIT);
    int number = 0;

    make_folders(wants);
    if ((unlink(link) != 0 && errno != ENOENT) ||
        symlink("../" UNIT, link) != 0) {
        number = errno;
    }
    free(link);
    free(wants);
    return number;
}

/* ------------------------------------------------------------ interface --- */

int adopt_unit_install(const struct cli *cli, const char *store,
                       const struct wal_import_client *clients, size_t count)
{
    char *folder = units_folder();
    char *path = adopt_unit_path();
    int number = ENOENT;

    if (path != NULL) {
        make_folders(folder);
        number = write_unit(path, store, clients, count);
        number = number == 0 ? enable(folder) : number;
    }
    if (number != 0) {
        (void)cli_error(cli, CLI_OK, path != NULL ? path : "HOME", "%s",
                        number == EINVAL
                            ? "a path has control characters, which a unit "
                              "cannot name"
                            : strerror(number));
    } else {
        fputs("installed ", stdout);
        cli_print_name(stdout, cli_slice(path));
        putchar('\n');
        if (run_systemctl("daemon-reload", NULL) &&
            run_systemctl("restart", UNIT)) {
            puts("started " UNIT);
        } else {
            cli_error(cli, CLI_OK, UNIT,
                      "could not be started: systemd does not answer; it "
                      "starts at the next login, or with: systemctl --user "
                      "start " UNIT);
        }
    }
    free(path);
    free(folder);
    return number == 0 ? CLI_OK : CLI_FAILED;
}

int adopt_unit_uninstall(const struct cli *cli)
{
    char *folder = units_folder();
    char *path = adopt_unit_path();
    char *link = folder != NULL ? join(folder, WANTS "/" UNIT) : NULL;
    int code = CLI_OK;

    if (path == NULL || access(path, F_OK) != 0) {
        puts("no unit is installed");
    } else {
        (void)run_systemctl("stop", UNIT);
        if ((unlink(link) != 0 && errno != ENOENT) || unlink(path) != 0) {
            code = cli_error(cli, CLI_FAILED, path, "%s", strerror(errno));
        } else {
            (void)run_systemctl("daemon-reload", NULL);
            fputs("removed ", stdout);
            cli_print_name(stdout, cli_slice(path));
            putchar('\n');
        }
    }
    free(link);
    free(path);
    free(folder);
    return code;
}
