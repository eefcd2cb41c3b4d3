/*
 * output_file.c - directories and files below the output directory.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"

#define BUFFER_SIZE ((size_t)256 << 10) /* writes of whole large pages */

bool walconv_path_is_beneath(const char *path)
{
    const char *part = path;

    for (;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[size] == '\0') {
            return true;
        }
        part += size + 1;
    }
}

/* Opens one directory below another, which it closes. */
static int descend(int above, const char *name, bool is_reading)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;
    int number;

    if (is_reading || mkdirat(above, name, 0700) == 0 || errno == EEXIST) {
        fd = openat(above, name, flags);
    }
    number = errno;
    close(above);
    errno = number;
    return fd;
}

/* Makes the root, and what is missing above it. */
static bool create_root(const char *root)
{
    char *above = cli_copy_text(root, strlen(root));

    for (char *at = above; *at != '\0'; at++) {
        if (*at == '/' && at > above) {
            *at = '\0';
            (void)mkdir(above, 0700); /* the last one tells */
            *at = '/';
        }
    }
    free(above);
    return mkdir(root, 0700) == 0 || errno == EEXIST;
}

int walconv_open_parent(const char *root, const char *path, bool is_reading,
                        const char **name)
{
    const char *part = path;
    const char *slash;
    int fd;

    if (!is_reading && !create_root(root)) {
        return -1;
    }
    fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && (slash = strchr(part, '/')) != NULL) {
        char *directory = cli_copy_text(part, (size_t)(slash - part));
        fd = descend(fd, directory, is_reading);
        free(directory);
        part = slash + 1;
    }
    *name = part;
    return fd;
}

int walconv_output_file_begin(struct walconv_output_file *file, int directory,
                              const char *name)
{
    char temporary[64];
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;

    for (unsigned n = 0; fd < 0 && n < 1000; n++) {
        snprintf(temporary, sizeof(temporary), ".walconv-%ld-%u",
                 (long)getpid(), n);
        fd = openat(directory, temporary, flags, 0600);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        int number = errno;
        close(directory);
        errno = number;
        return -1;
    }
    file->directory = directory;
    file->name = name;
    file->temporary = cli_copy_text(temporary, strlen(temporary));
    file->stream = fdopen(fd, "w");
    if (file->stream == NULL) {
        close(fd);
        walconv_output_file_abort(file);
        errno = ENOMEM;
        return -1;
    }
    file->buffer = cli_alloc(BUFFER_SIZE);
    (void)setvbuf(file->stream, file->buffer, _IOFBF, BUFFER_SIZE);
    return 0;
}

static void deinit_output(struct walconv_output_file *file)
{
    free(file->temporary);
    free(file->buffer);
    close(file->directory);
    *file = (struct walconv_output_file){.stream = NULL};
}

int walconv_output_file_commit(struct walconv_output_file *file)
{
    FILE *stream = file->stream;
    bool is_complete =
        fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0;
    int number = errno;

    file->stream = NULL;
    if (fclose(stream) != 0 && is_complete) {
        is_complete = false;
        number = errno;
    }
    if (!is_complete || renameat(file->directory, file->temporary,
                                 file->directory, file->name) != 0) {
        number = is_complete ? errno : number;
        walconv_output_file_abort(file);
        errno = number;
        return -1;
    }
    is_complete = fsync(file->directory) == 0;
    number = errno;
    deinit_output(file);
    errno = number;
    return is_complete ? 0 : -1;
}

void walconv_output_file_abort(struct walconv_output_file *file)
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
