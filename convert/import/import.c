/*
 * import.c - reports, progress and errors of an import; times, metadata and project of a new
 * session; the file of a source (import.h).
 *
 * Lines are read from a window. A line larger than the window may grow is returned from a map of
 * the file.
 */
#include "convert/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "convert/model/model_member.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/descriptor.h"
#include "engine/base/directory.h"
#include "engine/base/error.h"
#include "engine/base/map.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "format/payload/timestamp.h"

/* --- the probe ----------------------------------------------------------- */
#define WAL__PROBE_LINES 4096

#define WAL__PROBE_SIZE ((uint64_t)16 << 20)

static enum wal_status check_callback(int32_t result, struct wal_error *error)
{
    return result == 0 ? WAL_OK
                       : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                                      "the callback stopped the import");
}

enum wal_status wal__import_progress(struct wal__import *import, const char *path, uint64_t done,
                                     uint64_t total, struct wal_error *error)
{
    if (import->progress == NULL) {
        return WAL_OK;
    }
    return check_callback(import->progress(import->ctx, wal__slice_from_text(path), done, total),
                          error);
}

static enum wal_status send_report(struct wal__import *import, struct wal_import_report *report,
                                   struct wal_error *error)
{
    report->struct_size = sizeof(*report);
    if (import->view_session != NULL) {
        report->flags |= WAL_IMPORT_CHANGED_VIEW;
        report->view_session = wal__slice_from_text(import->view_session);
    }
    return import->report == NULL ? WAL_OK
                                  : check_callback(import->report(import->ctx, report), error);
}

void wal__import_add_issue(struct wal__heap_arena *arena, struct wal__import_issues *issues,
                           const char *path, uint64_t line, uint64_t offset, const char *reason)
{
    struct wal_import_issue *items = wal__arena_grow(&arena->arena, issues->items, issues->count,
                                                     &issues->capacity, sizeof(items[0]));

    if (items != NULL) {
        issues->items = items;
        items[issues->count++] = (struct wal_import_issue){
            .struct_size = sizeof(items[0]),
            .path = wal__slice_from_text(path),
            .reason = wal__slice_from_text(reason),
            .line = line,
            .offset = offset,
        };
    }
}

enum wal_status wal__import_sync(struct wal__import *import, struct wal_error *error)
{
    enum wal_status status = import->must_sync ? wal_sync(import->store, error) : WAL_OK;

    import->must_sync = import->must_sync && status != WAL_OK;
    return status;
}

enum wal_status wal__import_report(struct wal__import *import, struct wal_import_report *report,
                                   struct wal_session *session, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    report->session_id = info.id;
    if (report->kind != WAL_IMPORT_STREAM) {
        import->result.sessions++;
        import->result.appended += report->appended;
        import->result.duplicates += report->duplicates;
    }
    return send_report(import, report, error);
}

enum wal_status wal__import_fail(struct wal__import *import, const char *path,
                                 enum wal_status status, struct wal_error *error)
{
    struct wal_import_report report = {
        .status = status, .path = wal__slice_from_text(path), .error = error};

    if (status == WAL_ECALLBACK || status == WAL_ENOMEM) {
        return status;
    }
    if (import->retries && (status == WAL_EBUSY || status == WAL_ECLAIMED)) {
        import->must_retry = true;
        *error = (struct wal_error){.struct_size = sizeof(*error)};
        return WAL_OK;
    }
    import->result.failed++;
    if (import->first.status == WAL_OK) {
        import->first = *error;
        import->first.status = status;
    }
    status = send_report(import, &report, error);
    *error = (struct wal_error){.struct_size = sizeof(*error)};
    return status;
}

enum wal_status wal__import_errno(struct wal_error *error)
{
    int number = errno;
    enum wal_status status = WAL_EIO;

    if (number == ENOMEM) {
        return wal__no_memory(error);
    }
    if (number == ENOENT) {
        status = WAL_ENOTFOUND;
    } else if (number == EACCES || number == EPERM) {
        status = WAL_EACCESS;
    } else if (number == ESTALE) {
        status = WAL_EBUSY;
    }
    return wal__fail_at(error, status, number, NULL, 0, "%s",
                        number == ESTALE ? "became shorter while it was read" : strerror(number));
}

enum wal_status wal__import_check_memory(const struct wal__import *import, struct wal_error *error)
{
    return import->arena.has_failed || import->walk.has_failed ? wal__no_memory(error) : WAL_OK;
}

char *wal__import_text(struct wal__arena *arena, struct wal_slice text)
{
    char *copy = wal__arena_alloc(arena, (size_t)text.size + 1);

    if (copy != NULL && text.size > 0) {
        memcpy(copy, text.data, (size_t)text.size);
    }
    if (copy != NULL) {
        copy[text.size] = '\0';
    }
    return copy;
}

char *wal__import_path(struct wal__arena *arena, const char *root, const char *path)
{
    size_t size = strlen(root) + strlen(path) + 2;
    char *text = wal__arena_alloc(arena, size);

    if (text != NULL) {
        snprintf(text, size, "%s/%s", root, path);
    }
    return text;
}

enum wal_status wal__import_try_ids(wal__import_create_fn *create, void *ctx,
                                    struct wal_session_options *options, const char *base,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char id[WAL__SOURCE_SIZE_MAX + 1];

    for (unsigned n = 1; n <= WAL__IMPORT_ID_TRIES && status == WAL_EEXISTS; n++) {
        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", base, n);
        options->id = wal__slice_from_text(id);
        status = create(ctx, options, error);
    }
    return status;
}

/* The session that was imported from the source last, in the trash or not; WAL_END: none. *info is
 * valid until the list is closed. */
static enum wal_status find_source(struct wal_store *store, const char *source, uint32_t flags,
                                   struct wal_session_cursor **list, struct wal_session_info *info,
                                   struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .source = wal__slice_from_text(source),
    };
    enum wal_status status = wal_session_cursor_open(store, &options, list, error);

    return status == WAL_OK ? wal_session_cursor_next(*list, info, error) : status;
}

enum wal_status wal__session_open_source(struct wal_store *store, const char *source,
                                         struct wal_session **session, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = find_source(store, source, 0, &list, &info, error);

    if (status == WAL_END) {
        wal_session_cursor_close(list);
        list = NULL;
        status = find_source(store, source, WAL_SESSION_CURSOR_TRASH, &list, &info, error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(store, info.id, session, error);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_ENOTFOUND : status;
}

/* --- new sessions -------------------------------------------------------- */

#define PROJECT_SIZE 4097                     /* of an id with its terminator */
#define TIME_LAST    INT64_C(253402300799999) /* of the year 9999 */

void wal__import_write_time(int64_t ms, char time[WAL__IMPORT_TIME_SIZE])
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    (void)wal__model_time_write(ms < 0 || ms > TIME_LAST ? 0 : ms, text);
    snprintf(time, WAL__IMPORT_TIME_SIZE, "%.*s", (int)sizeof(text) - 2, (const char *)text + 1);
}

char *wal__import_time_text(struct wal__arena *arena, int64_t ms)
{
    char time[WAL__IMPORT_TIME_SIZE];

    wal__import_write_time(ms, time);
    return ms < 0 || ms > TIME_LAST ? NULL : wal__arena_copy_text(arena, time);
}

/* Adds text to a metadata that ends with a NUL. */
static void add_text(struct wal_slice *metadata, size_t capacity, const char *format, ...)
{
    char *bytes = (char *)(uintptr_t)metadata->data;
    va_list arguments;

    va_start(arguments, format);
    metadata->size += (uint64_t)vsnprintf(bytes + metadata->size, capacity - (size_t)metadata->size,
                                          format, arguments);
    va_end(arguments);
    WAL__ASSERT(metadata->size < capacity);
}

static void add_member(struct wal_slice *metadata, size_t capacity, const char *key,
                       struct wal__json_span value)
{
    if (value.size > 0) {
        add_text(metadata, capacity, "%s\"%s\":%.*s", metadata->size > 1 ? "," : "", key,
                 (int)value.size, (const char *)value.data);
    }
}

struct wal_slice wal__import_metadata(struct wal__import *import,
                                      const struct wal__import_about *about)
{
    struct wal__arena *arena = &import->arena.arena;
    const struct wal__json_span created =
        wal__json_quote(arena, wal__slice_from_text(about->created));
    const struct wal__json_span missing =
        wal__json_quote(arena, wal__slice_from_text(about->missing));
    char now[WAL__IMPORT_TIME_SIZE];
    struct wal__json_span imported;
    struct timespec time;
    struct wal_slice metadata = {NULL, 0};
    size_t capacity;

    clock_gettime(CLOCK_REALTIME, &time);
    wal__import_write_time((int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000, now);
    imported = wal__json_quote(
        arena, wal__slice_from_text(about->imported != NULL ? about->imported : now));
    capacity = created.size + missing.size + imported.size + about->agent.size + about->call.size +
               about->sidecar.size + 128;
    metadata.data = wal__arena_alloc(arena, capacity);
    if (metadata.data == NULL) {
        return metadata;
    }
    add_text(&metadata, capacity, "{");
    add_member(&metadata, capacity, "created",
               about->created != NULL ? created : (struct wal__json_span){NULL, 0});
    add_member(&metadata, capacity, "imported", imported);
    add_member(&metadata, capacity, "subagent",
               wal__model_literal(about->is_subagent ? "true" : ""));
    add_member(&metadata, capacity, "partial",
               about->missing != NULL ? missing : (struct wal__json_span){NULL, 0});
    add_member(&metadata, capacity, "agentName", about->agent);
    add_member(&metadata, capacity, "call", about->call);
    add_member(&metadata, capacity, "sidecar", about->sidecar);
    add_text(&metadata, capacity, "}");
    return metadata;
}

void wal__import_describe(struct wal__import *import, const struct wal__import_about *about,
                          struct wal_session_options *options)
{
    char directory[WAL__DIRECTORY_SIZE];
    char *project;
    int64_t created_ms;

    options->durability = WAL_WRITTEN;
    import->must_sync = true;
    options->metadata = wal__import_metadata(import, about);
    if (about->created != NULL && options->created_ms == 0 &&
        wal__model_time_read_text(wal__model_literal(about->created), &created_ms)) {
        options->created_ms = created_ms;
    }
    if (options->project.size > 0 || options->cwd.size == 0) {
        return;
    }
    wal__directory_normalise(options->cwd, directory);
    options->project = wal__slice_from_text(wal__arena_copy_text(&import->arena.arena, directory));
    if (import->project == NULL) {
        return;
    }
    project = wal__arena_alloc(&import->arena.arena, PROJECT_SIZE);
    if (project != NULL && import->project(import->ctx, options->cwd, project, PROJECT_SIZE) == 0) {
        options->project = wal__slice_from_text(project);
    }
}

enum wal_status wal__import_first_time(struct wal_session *session, struct wal_slice known,
                                       const char *created, char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status;

    if (known.size > 0 && known.size < WAL__IMPORT_TIME_SIZE) {
        memcpy(time, known.data, (size_t)known.size);
        time[known.size] = '\0';
        return WAL_OK;
    }
    if (created != NULL) {
        snprintf(time, WAL__IMPORT_TIME_SIZE, "%s", created);
        return WAL_OK;
    }
    status = wal_session_get_info(session, &info, error);
    if (status == WAL_OK) {
        wal__import_write_time(info.created_ms, time);
    }
    return status;
}

/* --- changes to an imported session -------------------------------------- */

struct retitle {
    struct wal_slice before;
    struct wal_slice title;
};

static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    const struct retitle *titles = ctx;

    if (!wal__slice_equal(now->title, titles->before)) {
        return 1;
    }
    change->fields = WAL_CHANGE_TITLE;
    change->title = titles->title;
    return 0;
}

enum wal_status wal__import_title(struct wal_session *session, struct wal_slice before,
                                  struct wal_slice title, struct wal_error *error)
{
    struct retitle titles = {before, title};
    enum wal_status status = wal_session_update(session, retitle, &titles, error);

    return status == WAL_ECALLBACK ? WAL_OK : status;
}

/* Returns true if the session has no head other than `main`. */
static bool has_one_head(struct wal_session *session)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    unsigned count = 0;

    if (wal_head_cursor_open(session, &heads, NULL) != WAL_OK) {
        return false;
    }
    while (wal_head_cursor_next(heads, &head, NULL) == WAL_OK) {
        count++;
    }
    wal_head_cursor_close(heads);
    return count <= 1;
}

/* Advances *at past a member, if the metadata has it there and once. */
static bool skip_member(struct wal_slice metadata, const char *key, size_t *at)
{
    const uint8_t *bytes = metadata.data;
    char quoted[32];
    struct wal__json_token found;
    size_t size = (size_t)snprintf(quoted, sizeof(quoted), "\"%s\":", key);

    if (metadata.size < *at + size || memcmp(bytes + *at, quoted, size) != 0 ||
        wal__json_find(bytes, (size_t)metadata.size, key, &found) != WAL__JSON_OK ||
        found.span.data != bytes + *at + size) {
        return false;
    }
    *at += size + found.span.size;
    return true;
}

bool wal__import_is_metadata(struct wal_slice metadata)
{
    static const char *const keys[] = {"created", "imported",  "stamp", "subagent",
                                       "partial", "agentName", "call",  "sidecar"};
    const char *bytes = metadata.data;
    size_t at = 1;

    if (metadata.size == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (skip_member(metadata, keys[i], &at) && at < metadata.size && bytes[at] == ',') {
            at++;
        }
    }
    while (at < metadata.size && strchr(" \t\r\n", bytes[at]) != NULL) {
        at++; /* after the last one: the bytes of a file end with it */
    }
    return at + 1 == metadata.size;
}

struct wal_slice wal__import_metadata_stamped(struct wal__import *import, struct wal_slice metadata,
                                              const char *stamp)
{
    struct wal_slice stamped = {NULL, 0};
    const char *bytes = metadata.data;
    struct wal__json_token imported;
    size_t capacity = (size_t)metadata.size + strlen(stamp) + sizeof(",\"stamp\":\"\"");
    size_t begin;
    size_t end;

    if (metadata.size == 0 || !wal__import_is_metadata(metadata) ||
        wal__json_find(bytes, (size_t)metadata.size, "imported", &imported) != WAL__JSON_OK ||
        imported.kind != WAL__JSON_STRING) {
        return stamped;
    }
    begin = (size_t)((const char *)imported.span.data - bytes) + imported.span.size;
    end = begin + 1;
    if (bytes[begin] != ',' || !skip_member(metadata, "stamp", &end)) {
        end = begin;
    }
    stamped.data = wal__arena_alloc(&import->arena.arena, capacity);
    if (stamped.data != NULL) {
        add_text(&stamped, capacity, "%.*s,\"stamp\":\"%s\"%.*s", (int)begin, bytes, stamp,
                 (int)(metadata.size - end), bytes + end);
    }
    return stamped;
}

enum wal_status wal__import_is_modified(struct wal_session *session, bool *is_modified,
                                        struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        /* A title of a session with entries may be from their lines. */
        *is_modified = info.documents > 0 || !wal__import_is_metadata(info.metadata) ||
                       (info.entries == 0 && info.title.size > 0) || !has_one_head(session);
    }
    return status;
}

static enum wal_status count_stream(struct wal_session *session, uint32_t stream, uint64_t *others,
                                    struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .stream = stream,
    };
    bool has_lines = stream == 0 || stream == WAL__PARTIAL_STREAM;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, error);

    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK && (!has_lines || (entry.flags & WAL_ENTRY_LINE) == 0 ||
                                 wal__source_line_is_from_view(&entry))) {
            ++*others;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__import_count_others(struct wal_session *session, uint64_t *others,
                                         struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    *others = (info.flags & WAL_SESSION_DAMAGED) != 0 ? 1 : 0;
    for (uint32_t i = 0; status == WAL_OK && i <= UINT8_MAX; i++) {
        status = count_stream(session, i, others, error);
    }
    return status;
}

/* --- regular files ------------------------------------------------------- */

int wal__file_open_regular(int directory, const char *name, struct stat *stat)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, stat) != 0 || !S_ISREG(stat->st_mode)) {
        close(fd);
        errno = ELOOP;
        return -1;
    }
    return fd;
}

ssize_t wal__file_read_full(int fd, void *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, (char *)data + done, size - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -1 : (ssize_t)done;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* --- compressed files ---------------------------------------------------- */

static bool write_full(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, data, size);

        if (done < 0 && errno != EINTR) {
            return false;
        }
        data += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* One file that is expanded. */
struct unpacking {
    ZSTD_DCtx *context;
    int from;
    int to;
    uint64_t most;
    uint64_t size;   /* of what was written */
    size_t expected; /* bytes that the frame needs at least; 0: it is complete */
    bool has_frame;  /* a frame was complete */
    char in[65536];
    char out[131072];
};

static enum wal_status fail_expanding(uint64_t most, struct wal_error *error)
{
    return wal__fail(error, WAL_ETOOBIG,
                     "it expands to more than %" PRIu64 " MiB, which is the most that is read",
                     most >> 20);
}

/* Expands the bytes that were read. */
static enum wal_status unpack_bytes(struct unpacking *file, size_t size, struct wal_error *error)
{
    ZSTD_inBuffer in = {file->in, size, 0};
    bool is_full = false;

    while (in.pos < in.size || is_full) {
        ZSTD_outBuffer out = {file->out, sizeof(file->out), 0};
        bool begins = file->expected == 0;

        file->expected = ZSTD_decompressStream(file->context, &out, &in);
        if (ZSTD_isError(file->expected)) {
            return begins && file->has_frame
                       ? wal__fail(error, WAL_EBADJSON, "other bytes follow its compressed content")
                       : wal__fail(error, WAL_EBADJSON, "its compressed content is damaged: %s",
                                   ZSTD_getErrorName(file->expected));
        }
        file->has_frame |= file->expected == 0;
        file->size += out.pos;
        if (file->size > file->most) {
            return fail_expanding(file->most, error);
        }
        if (!write_full(file->to, file->out, out.pos)) {
            return wal__fail_at(error, errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO, errno, NULL, 0,
                                "no temporary file for its content: %s", strerror(errno));
        }
        is_full = out.pos == out.size && file->expected != 0;
    }
    return WAL_OK;
}

static enum wal_status unpack(struct unpacking *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_first = true;
    ssize_t got;

    do {
        got = wal__file_read_full(file->from, file->in, sizeof(file->in));
        if (got < 0) {
            return wal__import_errno(error);
        }
        if (is_first) {
            unsigned long long declared = ZSTD_getFrameContentSize(file->in, (size_t)got);

            if (declared != ZSTD_CONTENTSIZE_ERROR && declared != ZSTD_CONTENTSIZE_UNKNOWN &&
                declared > file->most) {
                return fail_expanding(file->most, error);
            }
            is_first = false;
        }
        status = unpack_bytes(file, (size_t)got, error);
    } while (status == WAL_OK && got == (ssize_t)sizeof(file->in));
    if (status == WAL_OK && (file->expected != 0 || !file->has_frame)) {
        status = wal__fail(error, WAL_EBADJSON, "its compressed content is cut short");
    }
    return status;
}

enum wal_status wal__file_unpack(const struct wal__heap *heap, int fd, uint64_t most, int *plain,
                                 struct wal_error *error)
{
    struct unpacking *file = wal__heap_zalloc(heap, sizeof(*file));
    enum wal_status status = WAL_OK;
    struct stat stat;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->context = ZSTD_createDCtx();
    file->from = fd;
    file->most = most;
    file->to = wal__descriptor_temporary();
    if (file->context == NULL) {
        status = wal__no_memory(error);
    } else if (file->to < 0) {
        status = wal__fail_at(error, WAL_EIO, errno, NULL, 0,
                              "no temporary file for its content: %s", strerror(errno));
    } else {
        status = unpack(file, error);
    }
    if (status == WAL_OK && fstat(fd, &stat) == 0) {
        const int64_t modified_ns = wal__system_modified_ns(&stat);
        const struct timespec times[] = {
            {.tv_nsec = UTIME_OMIT},
            {.tv_sec = (time_t)(modified_ns / 1000000000), .tv_nsec = modified_ns % 1000000000}};

        (void)!futimens(file->to, times);
    }
    if (status == WAL_OK) {
        *plain = file->to;
    } else if (file->to >= 0) {
        close(file->to);
    }
    ZSTD_freeDCtx(file->context);
    wal__heap_free(heap, file);
    return status;
}

/* --- the file ------------------------------------------------------------ */

/* 10 seconds */
#define LOCK_DELAY_NS 10000000
#define LOCK_TRIES    1000

enum wal_status wal__source_file_lock(struct wal__import *import, int fd, const char *name,
                                      struct wal_error *error)
{
    const struct timespec delay = {.tv_nsec = LOCK_DELAY_NS};
    enum wal_status status = WAL_OK;

    for (unsigned i = 0; status == WAL_OK && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0 &&
                         (errno == EWOULDBLOCK || errno == EINTR);
         i++) {
        nanosleep(&delay, NULL);
        status = wal__import_progress(import, name, 0, 0, error);
    }
    return status;
}

int wal__source_file_end(int fd, uint64_t *size)
{
    char bytes[4096];

    while (*size > 0) {
        size_t part = *size < sizeof(bytes) ? (size_t)*size : sizeof(bytes);
        ssize_t got = pread(fd, bytes, part, (off_t)(*size - part));

        if (got < 0 || (size_t)got != part) {
            errno = got < 0 ? errno : ESTALE;
            return -1;
        }
        while (part > 0 && bytes[part - 1] != '\n') {
            part--;
            --*size;
        }
        if (part > 0) {
            return 0;
        }
    }
    return 0;
}

/* --- lines --------------------------------------------------------------- */

#define WINDOW_SIZE 65536
#define WINDOW_MAX  WAL__PIECE_SIZE

void wal__line_reader_init(struct wal__line_reader *reader, const struct wal__heap *heap, int fd,
                           uint64_t size, bool is_opaque, uint64_t offset)
{
    *reader = (struct wal__line_reader){
        .heap = heap,
        .fd = fd,
        .is_opaque = is_opaque,
        .size = size,
        .offset = offset,
    };
}

static void unmap(struct wal__line_reader *reader)
{
    if (reader->mapped != NULL) {
        wal__guarded_unmap(reader->mapped, reader->mapped_size);
        reader->mapped = NULL;
    }
}

void wal__line_reader_deinit(struct wal__line_reader *reader)
{
    unmap(reader);
    wal__heap_free(reader->heap, reader->window);
    reader->window = NULL;
}

void wal__line_reader_seek(struct wal__line_reader *reader, uint64_t offset, uint64_t line)
{
    unmap(reader);
    reader->offset = offset;
    reader->line = line;
    reader->begin = 0;
    reader->end = 0;
}

static ssize_t read_at(const struct wal__line_reader *reader, char *bytes, size_t size,
                       uint64_t offset)
{
    ssize_t got;

    if (size > reader->size - offset) {
        size = (size_t)(reader->size - offset);
    }
    do {
        got = pread(reader->fd, bytes, size, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        errno = ESTALE;
    }
    return got > 0 ? got : -1;
}

/* Reads more bytes after those in the window. Returns 1 if there were more, 0 at the end of the
 * file, -1 if reading failed or the file became shorter. */
static int fill_window(struct wal__line_reader *reader)
{
    size_t buffered = reader->end - reader->begin;
    uint64_t read_offset = reader->offset + buffered;
    ssize_t got;

    if (read_offset >= reader->size) {
        return 0;
    }
    if (buffered > 0) {
        memmove(reader->window, reader->window + reader->begin, buffered);
    }
    reader->begin = 0;
    reader->end = buffered;
    if (buffered == reader->capacity) {
        size_t capacity = reader->capacity > 0 ? 2 * reader->capacity : WINDOW_SIZE;
        char *window = wal__heap_resize(reader->heap, reader->window, capacity, 1);
        if (window == NULL) {
            errno = ENOMEM;
            return -1;
        }
        reader->window = window;
        reader->capacity = capacity;
    }
    got = read_at(reader, reader->window + buffered, reader->capacity - buffered, read_offset);
    if (got < 0) {
        return -1;
    }
    reader->end += (size_t)got;
    return 1;
}

static void return_piece(struct wal__line_reader *reader, struct wal__piece *piece, size_t size,
                         bool has_newline)
{
    reader->line++;
    *piece = (struct wal__piece){
        .data = reader->window + reader->begin,
        .size = size,
        .offset = reader->offset,
        .line = reader->line,
        .has_newline = has_newline,
    };
    size += has_newline ? 1 : 0;
    reader->begin += size;
    reader->offset += size;
}

/* Advances *offset to the end of the line: its newline, or the end of the file. Overwrites the
 * window. Returns 1, or -1 with errno set. */
static int find_end(struct wal__line_reader *reader, uint64_t *offset, bool *has_newline)
{
    const char *newline = NULL;

    if (reader->is_whole && *offset < reader->size) {
        *offset = reader->size - 1; /* only the last byte can end the piece */
    }
    while (newline == NULL && *offset < reader->size) {
        ssize_t got = read_at(reader, reader->window, reader->capacity, *offset);

        if (got < 0) {
            return -1;
        }
        newline = memchr(reader->window, '\n', (size_t)got);
        *offset += newline != NULL ? (uint64_t)(newline - reader->window) : (uint64_t)got;
    }
    *has_newline = newline != NULL;
    return 1;
}

/* Maps the line that begins in the window. Empties the window. */
static int return_mapped(struct wal__line_reader *reader, struct wal__piece *piece)
{
    uint64_t begin = reader->offset;
    uint64_t end = begin + (reader->end - reader->begin);
    size_t page_offset = (size_t)(begin % (uint64_t)sysconf(_SC_PAGESIZE));
    bool has_newline = false;

    if (find_end(reader, &end, &has_newline) < 0) {
        return -1;
    }
    reader->mapped_size = page_offset + (size_t)(end - begin);
    reader->losses = wal__guarded_map_losses();
    reader->mapped = wal__guarded_map(reader->fd, (off_t)(begin - page_offset), reader->mapped_size,
                                      PROT_READ, MAP_PRIVATE);
    if (reader->mapped == NULL) {
        return -1;
    }
    reader->begin = 0;
    reader->end = 0;
    return_piece(reader, piece, (size_t)(end - begin), has_newline);
    reader->begin = 0;
    piece->data = (const char *)reader->mapped + page_offset;
    return 1;
}

/* Returns the next piece of an opaque file. */
static int next_opaque_piece(struct wal__line_reader *reader, struct wal__piece *piece)
{
    int more = 1;

    while (more > 0 && reader->end - reader->begin < WAL__PIECE_SIZE) {
        more = fill_window(reader);
    }
    if (more < 0) {
        return -1;
    }
    if (reader->end - reader->begin > 0) {
        size_t buffered = reader->end - reader->begin;

        return_piece(reader, piece, buffered < WAL__PIECE_SIZE ? buffered : WAL__PIECE_SIZE, false);
        return 1;
    }
    return 0;
}

int wal__line_reader_next(struct wal__line_reader *reader, struct wal__piece *piece)
{
    size_t scanned = 0;

    if (reader->mapped != NULL && reader->losses != wal__guarded_map_losses()) {
        errno = ESTALE;
        return -1;
    }
    unmap(reader);
    if (reader->is_opaque) {
        return next_opaque_piece(reader, piece);
    }
    for (;;) {
        size_t buffered = reader->end - reader->begin;
        const char *start = NULL;
        const char *newline = NULL;
        int more;

        if (buffered > scanned && !reader->is_whole) {
            start = reader->window + reader->begin;
            newline = memchr(start + scanned, '\n', buffered - scanned);
        }
        if (newline != NULL) {
            return_piece(reader, piece, (size_t)(newline - start), true);
            return 1;
        }
        scanned = buffered;
        if (buffered >= WINDOW_MAX) {
            return return_mapped(reader, piece);
        }
        more = fill_window(reader);
        if (more < 0) {
            return -1;
        }
        if (more == 0 && buffered == 0) {
            return 0;
        }
        if (more == 0) {
            bool ends_line = reader->window[reader->end - 1] == '\n';

            return_piece(reader, piece, buffered - (ends_line ? 1 : 0), ends_line);
            return 1;
        }
    }
}

/* --- the probe ----------------------------------------------------------- */

#define RECOGNISE_LINES 64 /* lines that are used to detect the dialect */
#define PARENT_LINES    16 /* lines that may name the session that started this one */
#define WHOLE_SIZE_MAX  ((uint64_t)256 << 20)
#define TEXT_MAX        4096
#define ID_MAX          255

static void set_once(struct wal__arena *arena, char **text, struct wal__json_span string,
                     size_t max)
{
    if (*text == NULL) {
        *text = wal__string_copy(arena, string, max);
    }
}

/* Decodes the characters of a string of JSON that is itself in a string; NULL: they are none. */
static char *copy_inner(struct wal__arena *arena, struct wal__json_span text)
{
    struct wal__json_span outer = wal__arena_quote(arena, text);

    outer = outer.size > 0 ? wal__arena_unescape(arena, outer) : outer;
    outer = outer.size > 0 ? wal__arena_quote(arena, outer) : outer;
    return outer.size > 0 ? wal__string_copy(arena, outer, TEXT_MAX) : NULL;
}

/* Returns the id in the name of a file, ID.jsonl or TIME_ID.jsonl. */
static char *id_of_path(char *path)
{
    char *slash = strrchr(path, '/');
    char *base = slash != NULL ? slash + 1 : path;
    char *dot = strrchr(base, '.');
    char *id = base + strspn(base, "0123456789-:.TZ");

    if (dot != NULL) {
        *dot = '\0';
    }
    return id > base && *id == '_' ? id + 1 : base;
}

/* The first that is not the session itself. */
static void probe_starter(struct wal__arena *arena, struct wal__file_probe *probe,
                          const struct wal__line_info *line)
{
    char *name = probe->parent == NULL ? wal__string_copy(arena, line->starter, TEXT_MAX) : NULL;

    if (name != NULL && (strchr(name, '/') != NULL || strstr(name, ".json") != NULL)) {
        name = id_of_path(name);
    }
    if (name != NULL && name[0] != '\0' && strlen(name) <= ID_MAX &&
        (probe->session == NULL || strcmp(name, probe->session) != 0)) {
        probe->parent = name;
    }
}

static void probe_line(struct wal__arena *arena, struct wal__file_probe *probe,
                       struct wal__json_span text, uint64_t number,
                       const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = probe->dialect;
    struct wal__line_info line;
    char time[WAL__IMPORT_TIME_SIZE];
    int64_t base_end = 0;

    if (dialect == NULL && forced == NULL && probe->nonblank <= RECOGNISE_LINES) {
        dialect = wal__dialect_recognise(text.data, text.size, probe->nonblank == 1);
        probe->dialect = dialect;
    }
    if (dialect == NULL) {
        dialect = &wal__dialect_lines;
    }
    if (wal__line_read(dialect, text.data, text.size, &line, NULL) != WAL__JSON_OK) {
        return;
    }
    probe->parsed++;
    probe->first = probe->first == 0 && !line.is_preamble ? number : probe->first;
    probe->has_mainline |= line.is_in_conversation && !line.is_sidechain;
    probe->has_sidechain |= line.is_sidechain;
    set_once(arena, &probe->session, line.session, ID_MAX);
    if (!line.has_inner_cwd) {
        set_once(arena, &probe->cwd, line.cwd, TEXT_MAX);
    } else if (probe->cwd == NULL) {
        probe->cwd = copy_inner(arena, line.cwd);
    }
    set_once(arena, &probe->created, line.time, 64);
    if (probe->created == NULL && line.time_ms > 0) {
        wal__import_write_time(line.time_ms, time);
        probe->created = wal__arena_copy_text(arena, time);
    }
    probe->is_subagent |= line.is_subagent;
    if (probe->parsed == 1 && line.base_end.size > 0 &&
        wal__json_integer(line.base_end, &base_end) == WAL__JSON_OK && base_end >= 0) {
        probe->base = wal__string_copy(arena, line.base, ID_MAX);
        probe->base_end = (uint64_t)base_end;
    }
    if (probe->nonblank <= PARENT_LINES) {
        probe_starter(arena, probe, &line);
    }
}

static int probe_lines(struct wal__arena *arena, struct wal__line_reader *reader,
                       const struct wal__dialect *forced, struct wal__file_probe *probe)
{
    struct wal__piece piece;
    int got;

    while ((got = wal__line_reader_next(reader, &piece)) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        if (!wal__line_is_blank(text.data, text.size)) {
            probe->nonblank++;
            probe_line(arena, probe, text, reader->line, forced);
        }
        /* More lines cannot change the result, except `end`. */
        if ((probe->nonblank >= PARENT_LINES && probe->dialect != NULL && probe->session != NULL &&
             probe->cwd != NULL && probe->created != NULL && probe->has_mainline) ||
            reader->line == WAL__PROBE_LINES || reader->offset >= WAL__PROBE_SIZE) {
            break;
        }
    }
    probe->end = reader->offset;
    probe->is_at_end = reader->offset == reader->size;
    return got < 0 ? got : 0;
}

/* Probes a file that may be one object in several lines: its first line is no JSON. */
static int probe_whole(struct wal__arena *arena, struct wal__line_reader *reader,
                       const struct wal__dialect *forced, struct wal__file_probe *probe)
{
    struct wal__file_probe whole = {.nonblank = 1, .is_whole = true, .is_at_end = true};
    struct wal__json_span text;
    struct wal__piece piece;
    int got;

    wal__line_reader_seek(reader, 0, 0);
    reader->is_whole = true;
    got = wal__line_reader_next(reader, &piece);
    if (got <= 0) {
        return got;
    }
    text = wal__line_text(piece.data, piece.size);
    if (text.size > 0 && text.data[0] == '{') {
        probe_line(arena, &whole, text, 1, NULL);
    }
    whole.end = reader->offset;
    if (whole.parsed == 1 && whole.dialect != NULL && (forced == NULL || forced == whole.dialect)) {
        *probe = whole;
    }
    return 0;
}

int wal__file_probe(struct wal__heap_arena *arena, int fd, uint64_t size,
                    const struct wal__dialect *forced, struct wal__file_probe *probe)
{
    struct wal__line_reader reader;
    int got;

    probe->dialect = forced;
    wal__line_reader_init(&reader, arena->heap, fd, size, false, 0);
    got = probe_lines(&arena->arena, &reader, forced, probe);
    if (got == 0 && probe->parsed < probe->nonblank && probe->first != 1 &&
        size <= WHOLE_SIZE_MAX) {
        got = probe_whole(&arena->arena, &reader, forced, probe);
    }
    wal__line_reader_deinit(&reader);
    if (probe->dialect == NULL) {
        probe->dialect = &wal__dialect_lines;
    }
    probe->is_opaque = 2 * probe->parsed < probe->nonblank;
    return got;
}

int wal__file_count_lines(const struct wal__heap *heap, int fd, uint64_t size, uint64_t *lines)
{
    struct wal__line_reader reader;
    struct wal__piece piece;
    int got;

    wal__line_reader_init(&reader, heap, fd, size, false, 0);
    do {
        got = wal__line_reader_next(&reader, &piece);
    } while (got > 0);
    *lines = reader.line;
    wal__line_reader_deinit(&reader);
    return got;
}

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool wal__file_probe_equal(const struct wal__file_probe *a, const struct wal__file_probe *b)
{
    return a->dialect == b->dialect && a->is_opaque == b->is_opaque && a->is_whole == b->is_whole &&
           a->has_mainline == b->has_mainline && a->has_sidechain == b->has_sidechain &&
           a->is_subagent == b->is_subagent && is_same(a->session, b->session) &&
           is_same(a->cwd, b->cwd) && is_same(a->created, b->created) &&
           is_same(a->parent, b->parent) && is_same(a->base, b->base) && a->base_end == b->base_end;
}
