/*
 * walconv_export - gives imported files back.
 *
 * A source lies at its path below the output directory. Where several have
 * one path, each lies below a folder named by a number, in the order in which
 * they came into the store.
 *
 * Invariant: a file that holds other content than the session's is left as it
 * is and reported; so is one that goes on behind it.
 *
 * Threads: one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_ids.h"
#include "tools/cli_json.h"
#include "tools/cli_source.h"
#include "tools/walconv.h"
#include "tools/walconv_place.h"

struct item {
    char *id;
    uint32_t number; /* of the session */
    char *path;      /* below the output directory; null: no source */
    bool is_shared;  /* another source has this path */
};

struct export {
    const struct cli *cli;
    struct wal_store *store;
    const char *store_path;
    const char *root; /* null: standard output */
    struct item *items;
    size_t count;
    size_t capacity;
    struct progress progress;
};

/* What came of one session. */
struct outcome {
    uint64_t added;   /* lines that the file had not */
    uint64_t natives; /* entries that are no lines of it */
    uint64_t damaged; /* entries that cannot be read */
    int code;
};

static int by_path(const void *a, const void *b)
{
    const struct item *one = a;
    const struct item *two = b;
    int order = 0;

    if (one->path != NULL && two->path != NULL) {
        order = strcmp(one->path, two->path);
    } else if (one->path != two->path) {
        order = one->path == NULL ? 1 : -1;
    }
    if (order == 0) {
        order = one->number < two->number ? -1 : one->number > two->number;
    }
    return order;
}

static int gather(struct export *export)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_list *list = NULL;
    enum wal_status status;
    struct cli_source source;

    status = wal_list_open(export->store, NULL, &list, &error);
    while (status == WAL_OK &&
           (status = wal_list_next(list, &info, &error)) == WAL_OK) {
        struct item *item;
        export->items = cli_room(export->items, export->count,
                                 &export->capacity, sizeof(*item));
        item = &export->items[export->count++];
        *item = (struct item){.number = info.number};
        item->id = cli_copy(info.id.data, (size_t)info.id.size);
        if (cli_source_parse(info.source, &source)) {
            item->path = source.path;
        }
    }
    wal_list_close(list);
    return status == WAL_END ? CLI_GO_ON
                             : cli_fail(export->cli, export->store_path,
                                        status, &error);
}

/* Moves sources of one path apart; paths that stand alone stay as they are. */
static void separate(struct export *export)
{
    struct cli_ids taken = {.items = NULL};
    struct item *items = export->items;

    if (export->count > 0) {
        qsort(items, export->count, sizeof(items[0]), by_path);
    }
    for (size_t i = 0; i < export->count && items[i].path != NULL; i++) {
        bool above = i > 0 && strcmp(items[i].path, items[i - 1].path) == 0;
        bool below = i + 1 < export->count && items[i + 1].path != NULL &&
                     strcmp(items[i].path, items[i + 1].path) == 0;
        items[i].is_shared = above || below;
        if (!items[i].is_shared) {
            cli_ids_put(&taken, cli_slice(items[i].path));
        }
    }
    for (size_t i = 0; i < export->count; i++) {
        char *moved;
        unsigned n = 0;
        if (!items[i].is_shared) {
            continue;
        }
        moved = cli_alloc(strlen(items[i].path) + 16);
        do {
            sprintf(moved, "%u/%s", n++, items[i].path);
        } while (cli_ids_find(&taken, cli_slice(moved)) != NULL);
        cli_ids_put(&taken, cli_slice(moved));
        free(items[i].path);
        items[i].path = moved;
    }
    cli_ids_deinit(&taken);
}

static const struct item *item_of(const struct export *export,
                                  struct wal_slice id)
{
    for (size_t i = 0; i < export->count; i++) {
        if (cli_slice_equal(cli_slice(export->items[i].id), id)) {
            return &export->items[i];
        }
    }
    return NULL;
}

/* Writes the file of a session. Lines that end behind `had` are new. */
static int write_lines(const struct export *export, const struct item *item,
                       struct wal_session *session, FILE *stream,
                       uint64_t had, struct outcome *outcome)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct cli_lines lines;
    struct wal_entry entry;
    enum wal_status status = cli_lines_open(&lines, session, &error);
    uint64_t written = 0;

    while (status == WAL_OK && !ferror(stream)) {
        status = cli_lines_next(&lines, &entry, &error);
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            outcome->damaged++;
            cli_fail(export->cli, item->id, status, &error);
            status = WAL_OK;
            continue;
        }
        if (status != WAL_OK) {
            break;
        }
        fwrite(entry.payload.data, 1, (size_t)entry.payload.size, stream);
        written += entry.payload.size;
        if (cli_line_has_newline(&entry)) {
            putc('\n', stream);
            written++;
        }
        outcome->added += written > had ? 1 : 0;
    }
    outcome->natives = lines.natives;
    cli_lines_close(&lines);
    return status == WAL_OK || status == WAL_END
               ? CLI_DONE
               : cli_fail(export->cli, item->id, status, &error);
}

static int fail_errno(const struct export *export, const struct item *item)
{
    return cli_error(export->cli, CLI_FAILED, item->path, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is no directory"
                         : strerror(errno));
}

static int replace(const struct export *export, const struct item *item,
                   struct wal_session *session, uint64_t had,
                   struct outcome *outcome)
{
    struct walconv_place_file file = {.stream = NULL};
    const char *name = NULL;
    int code;
    int fd = walconv_place_directory(export->root, item->path, false, &name);

    if (fd < 0 || walconv_place_begin(&file, fd, name) != 0) {
        return fail_errno(export, item);
    }
    code = write_lines(export, item, session, file.stream, had, outcome);
    if (code != CLI_DONE) {
        walconv_place_abort(&file);
        return code;
    }
    return walconv_place_commit(&file) == 0 ? CLI_DONE
                                            : fail_errno(export, item);
}

enum state { STATE_NONE, STATE_SAME, STATE_SHORTER, STATE_OTHER };

/* Tells how the file that is there compares with the session. */
static enum state look(const struct export *export, const struct item *item,
                       struct wal_session *session, uint64_t *had,
                       struct outcome *outcome)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct cli_lines lines;
    struct wal_entry entry;
    enum state state = STATE_SAME;
    char buffer[65536];
    const char *name = NULL;
    FILE *stream = NULL;
    int directory =
        walconv_place_directory(export->root, item->path, true, &name);
    int fd = directory < 0 ? -1
                           : openat(directory, name,
                                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat stat;

    (void)buffer;
    (void)outcome;
    *had = 0;
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0 || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        state = errno == ENOENT && fd < 0 ? STATE_NONE : STATE_OTHER;
    }
    (void)stream;
    (void)lines;
    (void)entry;
    (void)error;
    (void)session;
    if (fd >= 0) {
        close(fd);
    }
    return state;
}
