/*
 * walconv_view_files - the files that a view is made of, being written.
 *
 * Invariant: nothing is written outside the directory.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_view_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const struct walconv_view_files *files, const char *path)
{
    return cli_error(files->cli, CLI_FAILED, path, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is no directory"
                         : strerror(errno));
}

static bool open_file(struct walconv_view_files *files,
                      struct walconv_view_file *file)
{
    const char *name = NULL;
    int directory;

    if (!walconv_path_is_safe(file->path)) {
        cli_error(files->cli, CLI_NO, file->path,
                  "leads out of the output directory; not written");
        return false;
    }
    directory = walconv_place_directory(files->root, file->path, false, &name);
    if (directory < 0 ||
        walconv_place_begin(&file->place, directory, name) != 0) {
        fail(files, file->path);
        return false;
    }
    return true;
}

static bool choose(void *ctx, const char *path, bool is_document)
{
    struct walconv_view_files *files = ctx;
    struct walconv_view_file *file;
    uint32_t *place = cli_ids_put(&files->places, cli_slice(path));

    if (*place > 0) {
        files->chosen = *place - 1;
        file = &files->items[files->chosen];
        file->size = 0;
        return true;
    }
    files->items = cli_room(files->items, files->count, &files->capacity,
                            sizeof(files->items[0]));
    files->chosen = files->count++;
    *place = (uint32_t)files->count;
    file = &files->items[files->chosen];
    *file = (struct walconv_view_file){.path = cli_copy(path, strlen(path)),
                                       .is_document = is_document};
    return files->root == NULL || is_document || open_file(files, file);
}

/* Documents are in memory until all is known of them: many files cannot be
 * open at once. */
static void append(struct walconv_view_file *file, const void *data,
                   size_t size)
{
    if (file->size + size > file->capacity) {
        file->capacity = 2 * (file->size + size);
        file->data = cli_grow(file->data, file->capacity);
    }
    memcpy(file->data + file->size, data, size);
    file->size += size;
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct walconv_view_files *files = ctx;
    struct walconv_view_file *file = &files->items[files->chosen];
    FILE *stream = files->root != NULL ? file->place.stream : stdout;

    if (file->is_document) {
        if (files->root != NULL && size > 0) { /* lines alone go to stdout */
            append(file, data, size);
        }
        return true;
    }
    if (fwrite(data, 1, size, stream) == size) {
        return true;
    }
    if (files->root != NULL) {
        fail(files, file->path);
    }
    return false;
}

struct wal__model_output walconv_view_output(struct walconv_view_files *files)
{
    return (struct wal__model_output){.ctx = files, .file = choose, .put = put};
}

/* Whether what is there is the beginning of the file; counts the lines that
 * come behind it. */
static bool goes_on(struct walconv_view_files *files,
                    const struct walconv_view_file *file, bool *is_same)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int there = openat(file->place.directory, file->place.name, flags);
    int made = openat(file->place.directory, file->place.temporary, flags);
    bool is_beginning = made >= 0;
    char one[16384];
    char two[16384];
    ssize_t got = 0;
    off_t at = 0;

    while (is_beginning && there >= 0 &&
           (got = pread(there, one, sizeof(one), at)) > 0) {
        is_beginning = pread(made, two, (size_t)got, at) == got &&
                       memcmp(one, two, (size_t)got) == 0;
        at += got;
    }
    *is_same = there >= 0;
    while (is_beginning && got >= 0 &&
           (got = pread(made, two, sizeof(two), at)) > 0) {
        *is_same = false;
        for (ssize_t i = 0; i < got; i++) {
            files->added += two[i] == '\n' ? 1 : 0;
        }
        at += got;
    }
    if (there >= 0) {
        close(there);
    }
    if (made >= 0) {
        close(made);
    }
    return is_beginning && got >= 0;
}

static int commit_file(struct walconv_view_files *files,
                       struct walconv_view_file *file)
{
    bool is_same = false;

    if (file->is_document) {
        if (!open_file(files, file)) {
            return CLI_FAILED;
        }
        fwrite(file->data, 1, file->size, file->place.stream);
    }
    if (fflush(file->place.stream) != 0) {
        return fail(files, file->path);
    }
    if (!goes_on(files, file, &is_same) && !file->is_document) {
        return cli_error(files->cli, CLI_NO, file->path,
                         "is there with other content; not touched");
    }
    if (is_same) {
        walconv_place_abort(&file->place);
        return CLI_DONE;
    }
    return walconv_place_commit(&file->place) == 0 ? CLI_DONE
                                                   : fail(files, file->path);
}

int walconv_view_files_commit(struct walconv_view_files *files)
{
    int code = CLI_DONE;

    for (size_t i = 0; files->root != NULL && i < files->count; i++) {
        if (code == CLI_DONE) {
            code = commit_file(files, &files->items[i]);
        }
    }
    return code;
}

void walconv_view_files_deinit(struct walconv_view_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->root != NULL) {
            walconv_place_abort(&files->items[i].place);
        }
        free(files->items[i].path);
        free(files->items[i].data);
    }
    free(files->items);
    cli_ids_deinit(&files->places);
}
