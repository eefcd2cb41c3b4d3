/*
 * export_source.c - compare a file with its session, and write it.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/export_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/source/source_lines.h"
#include "tools/convert/output_file.h"

enum state {
    STATE_MISSING,  /* the file does not exist */
    STATE_PREFIX,   /* the file is a prefix of the session */
    STATE_COMPLETE, /* the session is a prefix of the file */
    STATE_DIFFERENT /* different content, or not a regular file */
};

struct sink {
    FILE *stream;                    /* to write to; NULL: compare */
    struct wal__file_compare window; /* the file to compare with */
    uint64_t size;                   /* of that file */
    uint64_t position;               /* bytes written or compared */
    uint64_t old_size;               /* lines that end after it are new */
    bool is_open;                    /* the last line has no newline */
    bool differs;                    /* the file differs */
};

/* Writes the bytes, or compares those below the size of the file. */
static bool sink_write(void *ctx, const void *data, size_t size)
{
    struct sink *sink = ctx;
    uint64_t common = size;

    if (sink->stream != NULL) {
        fwrite(data, 1, size, sink->stream);
    } else if (sink->position < sink->size) {
        if (common > sink->size - sink->position) {
            common = sink->size - sink->position;
        }
        sink->differs = !wal__file_compare_bytes(&sink->window, sink->position,
                                                 data, (size_t)common);
    }
    sink->position += size;
    return !sink->differs;
}

/* Passes one line to the sink. An unreadable line is omitted as a whole. */
static enum wal_status write_line(const struct convert_source *source,
                                  struct wal__source_lines *lines,
                                  struct sink *sink,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__source_lines_check(lines, source->store, entry, error);
    char prefix[WAL__LINE_PREFIX_SIZE];
    size_t size = wal__source_line_prefix(entry, sink->is_open, prefix);

    if (status == WAL_OK && (size == 0 || sink_write(sink, prefix, size))) {
        status = wal__source_lines_read_payload(lines, source->store, entry,
                                                sink_write, sink, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    sink->is_open = !wal__source_line_has_newline(entry) &&
                    !wal__source_line_is_opaque(entry);
    if (wal__source_line_has_newline(entry) && !sink->differs) {
        (void)sink_write(sink, "\n", 1);
    }
    return WAL_OK;
}

/* Passes every line of the session to the sink. */
static int write_lines(const struct convert_source *source, struct sink *sink,
                       struct convert_outcome *outcome)
{
    struct convert_outcome counts = {.added = 0};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__source_lines lines;
    struct wal_entry entry;
    enum wal_status status = wal__source_lines_open(
        &lines, NULL, source->session, source->stream, &error);
    int code = CLI_OK;

    if (status != WAL_OK) {
        return cli_report(source->cli, source->name, status, &error);
    }
    while (!sink->differs && (status = wal__source_lines_next(
                                  &lines, &entry, &error)) != WAL_END) {
        if (status == WAL_OK && (entry.flags & WAL_ENTRY_REDACTED) == 0) {
            status = write_line(source, &lines, sink, &entry, &error);
            counts.added +=
                status == WAL_OK && sink->position > sink->old_size ? 1 : 0;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            counts.damaged++;
            code = CLI_NEGATIVE;
            continue;
        }
        if (status != WAL_OK) {
            code = cli_report(source->cli, source->name, status, &error);
            break;
        }
    }
    /* The record of the remaining copied lines is lost. */
    if (status == WAL_END && lines.is_copy && !lines.copy.is_complete) {
        counts.damaged++;
        code = CLI_NEGATIVE;
    }
    counts.native_count = lines.native_count;
    wal__source_lines_close(&lines);
    *outcome = counts;
    return code;
}

/* Compares the existing file with the session. */
static int compare_file(const struct convert_source *source, enum state *state,
                        uint64_t *size, struct convert_outcome *outcome)
{
    struct sink sink = {.stream = NULL};
    const char *name = NULL;
    struct stat stat;
    int directory =
        convert_open_parent(source->root, source->path, true, &name);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int code = CLI_OK;
    int fd;

    *size = 0;
    fd = directory < 0 ? -1 : openat(directory, name, flags);
    *state = errno == ENOENT && fd < 0 ? STATE_MISSING : STATE_DIFFERENT;
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0) {
        return CLI_OK;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        sink.size = (uint64_t)stat.st_size;
        sink.old_size = sink.size;
        sink.window.fd = fd;
        code = write_lines(source, &sink, outcome);
        wal__file_compare_deinit(&sink.window);
        if (!sink.differs) {
            *state = sink.position > sink.size ? STATE_PREFIX : STATE_COMPLETE;
        }
        *size = sink.size;
    }
    close(fd);
    return code;
}

static int fail_errno(const struct convert_source *source)
{
    return cli_error(source->cli, CLI_FAILED, source->name, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is not a directory"
                         : strerror(errno));
}

static int replace_file(const struct convert_source *source, uint64_t old_size,
                        bool is_new, struct convert_outcome *outcome)
{
    struct convert_output_file file = {.stream = NULL};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct sink sink = {.old_size = old_size};
    const char *name = NULL;
    int directory =
        convert_open_parent(source->root, source->path, false, &name);
    int code;

    if (directory < 0 ||
        convert_output_file_begin(&file, directory, name) != 0) {
        return fail_errno(source);
    }
    sink.stream = file.stream;
    file.modified_ms = source->modified_ms;
    if (file.modified_ms == 0 &&
        wal_session_get_info(source->session, &info, NULL) == WAL_OK) {
        file.modified_ms = info.updated_ms; /* clients sort by it */
    }
    code = write_lines(source, &sink, outcome);
    /* With damage, write what is readable, unless that would replace a file
     * that may have more. */
    if (code > CLI_NEGATIVE || (code == CLI_NEGATIVE && !is_new)) {
        convert_output_file_abort(&file);
        return code;
    }
    return convert_output_file_commit(&file) == 0 ? code : fail_errno(source);
}

int convert_source_write(const struct convert_source *source,
                         struct convert_outcome *outcome)
{
    enum state state;
    uint64_t size;
    int code;

    outcome->is_rejected = true;
    if (!convert_path_is_beneath(source->path)) {
        return cli_error(source->cli, CLI_NEGATIVE, source->name,
                         "leads out of the output directory; not written");
    }
    code = compare_file(source, &state, &size, outcome);
    if (code > CLI_NEGATIVE) {
        return code;
    }
    if (state == STATE_DIFFERENT) {
        outcome->is_rejected = true;
        return cli_error(source->cli, CLI_NEGATIVE, source->name,
                         "exists with other content; not changed");
    }
    outcome->is_rejected = false;
    if (state == STATE_COMPLETE) {
        return code;
    }
    return replace_file(source, size, state == STATE_MISSING, outcome);
}

int convert_source_print(const struct convert_source *source,
                         struct convert_outcome *outcome)
{
    struct sink sink = {.stream = stdout};

    return write_lines(source, &sink, outcome);
}
