/*
 * walconv_source - compares a file with its session, and writes it.
 *
 * Threads: one.
 */
#include "tools/walconv_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_source.h"
#include "tools/cli_window.h"
#include "tools/walconv_place.h"

enum state {
    STATE_NONE,    /* there is no file */
    STATE_SHORTER, /* it is the session's beginning */
    STATE_SAME,    /* it has all of the session, and may go on */
    STATE_OTHER    /* it holds something else, or is none */
};

struct sink {
    FILE *stream;             /* to write to; or */
    struct cli_window window; /* to compare with: a file */
    uint64_t size;            /* of this size */
    uint64_t at;              /* bytes that went in */
    uint64_t had;             /* entries that end behind are new */
    bool is_open;             /* what went in last has no newline */
    bool is_other;            /* the file differs */
};

/* Writes bytes, or compares those that the file is long enough for. */
static bool sink_take(void *ctx, const void *data, size_t size)
{
    struct sink *sink = ctx;
    uint64_t common = size;

    if (sink->stream != NULL) {
        fwrite(data, 1, size, sink->stream);
    } else if (sink->at < sink->size) {
        if (common > sink->size - sink->at) {
            common = sink->size - sink->at;
        }
        sink->is_other =
            !cli_window_has(&sink->window, sink->at, data, (size_t)common);
    }
    sink->at += size;
    return !sink->is_other;
}

/* Passes a line. One that cannot be read whole is left out whole. */
static enum wal_status pass_line(const struct walconv_source *source,
                                 struct cli_lines *lines, struct sink *sink,
                                 const struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status =
        cli_lines_check(lines, source->store, entry, error);
    char before[CLI_BEFORE_SIZE];
    size_t size = cli_line_before(entry, sink->is_open, before);

    if (status == WAL_OK && (size == 0 || sink_take(sink, before, size))) {
        status =
            cli_lines_pass(lines, source->store, entry, sink_take, sink, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    sink->is_open = !cli_line_has_newline(entry) && !cli_line_is_whole(entry);
    if (cli_line_has_newline(entry) && !sink->is_other) {
        (void)sink_take(sink, "\n", 1);
    }
    return WAL_OK;
}

/* Passes all lines of the session into a sink. */
static int pass_lines(const struct walconv_source *source, struct sink *sink,
                      struct walconv_outcome *outcome)
{
    struct walconv_outcome passed = {.added = 0};
    struct wal_error error = CLI_ERROR_INIT;
    struct cli_lines lines;
    struct wal_entry entry;
    enum wal_status status =
        cli_lines_open(&lines, source->session, source->stream, &error);
    int code = CLI_DONE;

    if (status != WAL_OK) {
        return cli_fail(source->cli, source->name, status, &error);
    }
    while (!sink->is_other &&
           (status = cli_lines_next(&lines, &entry, &error)) != WAL_END) {
        if (status == WAL_OK && (entry.flags & WAL_ENTRY_REDACTED) == 0) {
            status = pass_line(source, &lines, sink, &entry, &error);
            passed.added += status == WAL_OK && sink->at > sink->had ? 1 : 0;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            passed.damaged++;
            code = CLI_NO;
            continue;
        }
        if (status != WAL_OK) {
            code = cli_fail(source->cli, source->name, status, &error);
            break;
        }
    }
    /* What tells the rest of a copy is lost. */
    if (status == WAL_END && lines.is_copy && !lines.copy.is_whole) {
        passed.damaged++;
        code = CLI_NO;
    }
    passed.natives = lines.natives;
    cli_lines_close(&lines);
    *outcome = passed;
    return code;
}

/* Tells how the file that is there compares with the session. */
static int look(const struct walconv_source *source, enum state *state,
                uint64_t *size, struct walconv_outcome *outcome)
{
    struct sink sink = {.stream = NULL};
    const char *name = NULL;
    struct stat stat;
    int directory =
        walconv_place_directory(source->root, source->path, true, &name);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int code = CLI_DONE;
    int fd;

    *size = 0;
    fd = directory < 0 ? -1 : openat(directory, name, flags);
    *state = errno == ENOENT && fd < 0 ? STATE_NONE : STATE_OTHER;
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0) {
        return CLI_DONE;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        sink.size = (uint64_t)stat.st_size;
        sink.had = sink.size;
        cli_window_init(&sink.window, fd);
        code = pass_lines(source, &sink, outcome);
        cli_window_deinit(&sink.window);
        if (!sink.is_other) {
            *state = sink.at > sink.size ? STATE_SHORTER : STATE_SAME;
        }
        *size = sink.size;
    }
    close(fd);
    return code;
}

static int fail_errno(const struct walconv_source *source)
{
    return cli_error(source->cli, CLI_FAILED, source->name, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is no directory"
                         : strerror(errno));
}

static int replace(const struct walconv_source *source, uint64_t had,
                   bool is_new, struct walconv_outcome *outcome)
{
    struct walconv_place_file file = {.stream = NULL};
    struct sink sink = {.had = had};
    const char *name = NULL;
    int directory =
        walconv_place_directory(source->root, source->path, false, &name);
    int code;

    if (directory < 0 || walconv_place_begin(&file, directory, name) != 0) {
        return fail_errno(source);
    }
    sink.stream = file.stream;
    code = pass_lines(source, &sink, outcome);
    /* With damage: what can be read, unless more of it is there already. */
    if (code > CLI_NO || (code == CLI_NO && !is_new)) {
        walconv_place_abort(&file);
        return code;
    }
    return walconv_place_commit(&file) == 0 ? code : fail_errno(source);
}

int walconv_source_put(const struct walconv_source *source,
                       struct walconv_outcome *outcome)
{
    enum state state;
    uint64_t size;
    int code;

    outcome->is_refused = true;
    if (!walconv_path_is_safe(source->path)) {
        return cli_error(source->cli, CLI_NO, source->name,
                         "leads out of the output directory; not written");
    }
    code = look(source, &state, &size, outcome);
    if (code > CLI_NO) {
        return code;
    }
    if (state == STATE_OTHER) {
        outcome->is_refused = true;
        return cli_error(source->cli, CLI_NO, source->name,
                         "is there with other content; not touched");
    }
    outcome->is_refused = false;
    if (state == STATE_SAME) {
        return code;
    }
    return replace(source, size, state == STATE_NONE, outcome);
}

int walconv_source_print(const struct walconv_source *source,
                         struct walconv_outcome *outcome)
{
    struct sink sink = {.stream = stdout};

    return pass_lines(source, &sink, outcome);
}
