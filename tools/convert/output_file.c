/*
 * output_file.c - directories and files below the output directory.
 */
#include "tools/convert/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool convert_path_is_beneath(const char *path)
{
    const char *component = path;

    for (;;) {
        size_t size = strcspn(component, "/");
        if (size == 0 || (size == 1 && component[0] == '.') ||
            (size == 2 && component[0] == '.' && component[1] == '.')) {
            return false;
        }
        if (component[size] == '\0') {
            return true;
        }
        component += size + 1;
    }
}

/* Opens a directory below `parent` and closes `parent`. */
static int descend(int parent, const char *name, bool is_read_only)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = is_read_only ? openat(parent, name, flags) : cli_make_directory_at(parent, name);
    int error_number = errno;

    close(parent);
    errno = error_number;
    return fd;
}

/* Creates the root and its missing parents. */
static bool create_root(const char *root)
{
    char *parent = cli_copy_text(root, strlen(root));

    for (char *end = parent; *end != '\0'; end++) {
        if (*end == '/' && end > parent) {
            *end = '\0';
            /* the mkdir of the root reports failures */
            (void)mkdir(parent, 0700);
            *end = '/';
        }
    }
    free(parent);
    return mkdir(root, 0700) == 0 || errno == EEXIST;
}

int convert_open_parent(const char *root, const char *path, bool is_read_only, const char **name)
{
    const char *component = path;
    const char *slash;
    int fd;

    if (!is_read_only && !create_root(root)) {
        return -1;
    }
    fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && (slash = strchr(component, '/')) != NULL) {
        char *directory = cli_copy_text(component, (size_t)(slash - component));
        fd = descend(fd, directory, is_read_only);
        free(directory);
        component = slash + 1;
    }
    *name = component;
    return fd;
}
