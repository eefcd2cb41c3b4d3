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

#define BUFFER_SIZE ((size_t)256 << 10) /* bytes; few large writes */

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
    int fd = -1;
    int error_number;

    if (is_read_only || mkdirat(parent, name, 0700) == 0 || errno == EEXIST) {
        fd = openat(parent, name, flags);
    }
    error_number = errno;
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

int convert_output_file_begin(struct convert_output_file *file, int directory, const char *name)
{
    char temporary[64];
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;

    for (unsigned n = 0; fd < 0 && n < 1000; n++) {
        snprintf(temporary, sizeof(temporary), ".agentwal-export-%ld-%u", (long)getpid(), n);
        fd = openat(directory, temporary, flags, 0600);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        int error_number = errno;
        close(directory);
        errno = error_number;
        return -1;
    }
    file->directory = directory;
    file->name = name;
    file->temporary = cli_copy_text(temporary, strlen(temporary));
    file->stream = fdopen(fd, "w");
    if (file->stream == NULL) {
        close(fd);
        convert_output_file_abort(file);
        errno = ENOMEM;
        return -1;
    }
    file->buffer = cli_alloc(BUFFER_SIZE);
    (void)setvbuf(file->stream, file->buffer, _IOFBF, BUFFER_SIZE);
    return 0;
}

static void deinit_output(struct convert_output_file *file)
{
    free(file->temporary);
    free(file->buffer);
    close(file->directory);
    *file = (struct convert_output_file){.stream = NULL};
}

/* Sets the time of the last change; true: a file without it is complete too. */
static bool set_time(const struct convert_output_file *file)
{
    int64_t ms = file->modified_ms;
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)},
    };

    if (ms > 0) {
        (void)futimens(fileno(file->stream), times);
    }
    return true;
}

int convert_output_file_commit(struct convert_output_file *file)
{
    FILE *stream = file->stream;
    bool is_complete =
        fflush(stream) == 0 && !ferror(stream) && set_time(file) && fsync(fileno(stream)) == 0;
    int error_number = errno;

    file->stream = NULL;
    if (fclose(stream) != 0 && is_complete) {
        is_complete = false;
        error_number = errno;
    }
    if (!is_complete ||
        renameat(file->directory, file->temporary, file->directory, file->name) != 0) {
        error_number = is_complete ? errno : error_number;
        convert_output_file_abort(file);
        errno = error_number;
        return -1;
    }
    is_complete = fsync(file->directory) == 0;
    error_number = errno;
    deinit_output(file);
    errno = error_number;
    return is_complete ? 0 : -1;
}

void convert_output_file_abort(struct convert_output_file *file)
{
    if (file->temporary == NULL) {
        return;
    }
    if (file->stream != NULL) {
        fclose(file->stream);
    }
    unlinkat(file->directory, file->temporary, 0);
    deinit_output(file);
}
