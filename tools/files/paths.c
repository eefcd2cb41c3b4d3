/*
 * paths.c - the file names of a command line.
 *
 * Invariant: the bytes of a name are kept; a relative name only gets the
 * current directory as prefix.
 *
 * Threads: the tool has one thread.
 */
#include "tools/files/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The part of the path that is below the directory; null if it is not below
 * it. */
static const char *path_below(const char *directory, const char *path)
{
    size_t size = strlen(directory);

    if (strcmp(directory, "/") == 0) {
        return path + 1;
    }
    if (strncmp(path, directory, size) != 0) {
        return NULL;
    }
    return path[size] == '/' ? path + size + 1
                             : (path[size] == '\0' ? "" : NULL);
}

void files_paths_init(struct files_paths *names, struct wal_slice root)
{
    char *given = cli_copy_text(root.data, (size_t)root.size);
    char *resolved = root.size > 0 ? realpath(given, NULL) : NULL;
    char current[PATH_MAX];
    const char *below = NULL;

    if (resolved != NULL && getcwd(current, sizeof(current)) != NULL) {
        below = path_below(resolved, current);
    }
    if (below != NULL && below[0] != '\0') {
        names->below = cli_copy_text(below, strlen(below));
    }
    free(resolved);
    free(given);
}

void files_paths_add(struct files_paths *names, const char *name, size_t size)
{
    bool is_joined = names->below != NULL && size > 0 && name[0] != '/';
    size_t front = is_joined ? strlen(names->below) + 1 : 0;
    char *copy = cli_alloc(front + size + 1);

    if (is_joined) {
        memcpy(copy, names->below, front - 1);
        copy[front - 1] = '/';
    }
    memcpy(copy + front, name, size);
    names->items = cli_reserve(names->items, names->count, &names->capacity,
                               sizeof(names->items[0]));
    names->items[names->count++] = (struct wal_slice){copy, front + size};
}

static void read_names(struct files_paths *names, FILE *from, int delimiter)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t line_size;

    while ((line_size = getdelim(&line, &capacity, delimiter, from)) > 0) {
        size_t size = (size_t)line_size;

        if (line[size - 1] == delimiter) {
            size--;
        }
        if (size > 0 || delimiter == '\0') {
            files_paths_add(names, line, size);
        }
    }
    free(line);
}

int files_paths_read(const struct cli *cli, struct files_paths *names,
                     const char *file, bool is_zero_ended)
{
    bool is_input = strcmp(file, "-") == 0;
    FILE *from = is_input ? stdin : fopen(file, "re");
    int number;

    if (from == NULL) {
        return cli_error(cli, CLI_FAILED, file, "%s", strerror(errno));
    }
    errno = 0;
    read_names(names, from, is_zero_ended ? '\0' : '\n');
    number = ferror(from) ? errno : 0;
    if (!is_input) {
        fclose(from);
    }
    return number == 0
               ? CLI_CONTINUE
               : cli_error(cli, CLI_FAILED, is_input ? "standard input" : file,
                           "%s", strerror(number));
}

void files_paths_deinit(struct files_paths *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free((void *)names->items[i].data);
    }
    free(names->items);
    free(names->below);
    *names = (struct files_paths){.items = NULL};
}
