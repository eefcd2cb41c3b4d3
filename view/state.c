/*
 * state.c - what a view remembers (SPEC.md 10.4).
 *
 * Threads: one thread at a time.
 */
#include "view/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/jsonl/json_out.h"
#include "format/jsonl/json_value.h"
#include "format/jsonl/model_read.h"
#include "view/arenas.h"

#define STATE_VERSION 1
#define STATE_MAX     ((uint64_t)256 << 20)
#define CHECK_KEY     ",\"check\":\""
#define CHECK_SIZE    (sizeof(CHECK_KEY) - 1 + 16 + 3) /* 16 digits, "}\n */

/* ------------------------------------------------------------- writing --- */

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

static void out_hex(struct wal__json_out *out, uint64_t value)
{
    char text[19];

    snprintf(text, sizeof(text), "\"%016" PRIx64 "\"", value);
    wal__json_out_literal(out, text);
}

static void out_number(struct wal__json_out *out, const char *key,
                       uint64_t number)
{
    wal__json_out_count(out, key, (int64_t)number);
}

static void out_stamp(struct wal__json_out *out, const char *key,
                      const struct wal__stamp *stamp)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    wal__json_out_number(out, (int64_t)stamp->size);
    wal__json_out_number(out, stamp->mtime_ns);
    wal__json_out_number(out, (int64_t)stamp->inode);
    wal__json_out_close(out, ']');
}

static void out_digest(struct wal__json_out *out, const char *key,
                       const struct wal__digest *digest)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    out_hex(out, digest->value);
    out_hex(out, digest->part);
    wal__json_out_number(out, (int64_t)digest->size);
    wal__json_out_close(out, ']');
}

static void out_file(struct wal__json_out *out,
                     const struct wal__view_file *file, bool is_open)
{
    struct wal__left left =
        is_open ? file->lines.left : wal__view_files_left(file);
    const char *path = file->lines.path;

    if (!left.is_known) {
        return;
    }
    wal__json_out_open(out, '{');
    /* Paths are made of what is UTF-8. */
    wal__json_out_plain(
        out, "path",
        (struct wal__json_span){(const uint8_t *)path, strlen(path)});
    wal__json_out_flag(out, "document", file->is_document);
    out_stamp(out, "stamp", &left.stamp);
    if (left.has_old) {
        out_stamp(out, "old", &left.old);
    }
    out_digest(out, "digest", &left.digest);
    out_digest(out, "settled", &left.settled);
    wal__json_out_close(out, '}');
}

static void out_losses(struct wal__json_out *out, const uint64_t *losses)
{
    wal__json_out_key(out, "losses");
    wal__json_out_open(out, '{');
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        if (losses[i] > 0) {
            out_number(out, wal__feature_text((enum wal__feature)i), losses[i]);
        }
    }
    wal__json_out_close(out, '}');
}

static void out_subject(struct wal__json_out *out,
                        const struct wal__subject *subject)
{
    struct wal__json_span session = {subject->session.data,
                                     (size_t)subject->session.size};
    char uuid[33];

    for (size_t i = 0; i < 16; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", subject->store[i]);
    }
    wal__json_out_count(out, "version", STATE_VERSION);
    wal__json_out_name(out, "store", uuid);
    wal__json_out_plain(out, "session", session);
    wal__json_out_name(out, "dialect", subject->dialect);
}

static bool encode(const struct wal__subject *subject,
                   const struct wal__view_files *files,
                   const struct wal__position *position, struct wal__buf *buf)
{
    struct wal__json_out out = {.put = put, .ctx = buf};
    struct wal__digest digest = {.size = 0};
    char check[CHECK_SIZE + 1];

    wal__json_out_open(&out, '{');
    out_subject(&out, subject);
    wal__json_out_flag(&out, "verbatim", position->is_verbatim);
    wal__json_out_flag(&out, "open", position->is_open);
    out_number(&out, "entries", position->entries[0]);
    out_number(&out, "entries1", position->entries[1]);
    out_number(&out, "total", position->total);
    out_number(&out, "redacted", position->redacted);
    out_number(&out, "seen", position->seen);
    out_number(&out, "newest", position->newest);
    wal__json_out_key(&out, "known");
    out_hex(&out, position->known);
    out_number(&out, "documents", position->documents);
    out_number(&out, "unreadable", position->unreadable);
    out_losses(&out, position->losses);
    wal__json_out_key(&out, "files");
    wal__json_out_open(&out, '[');
    for (uint32_t i = 0; i < files->count; i++) {
        out_file(&out, files->items[i], position->is_open);
    }
    wal__json_out_close(&out, ']');
    wal__digest_add(&digest, buf->data, buf->size);
    snprintf(check, sizeof(check), CHECK_KEY "%016" PRIx64 "\"}\n",
             digest.value ^ digest.part);
    return !out.has_failed && put(buf, check, CHECK_SIZE);
}

enum wal_status wal__state_write(const char *name,
                                 const struct wal__subject *subject,
                                 const struct wal__view_files *files,
                                 const struct wal__position *position,
                                 bool is_durable, struct wal__stamp *stamp,
                                 struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    char temporary[WAL__VIEW_NAME_SIZE];
    struct wal__buf buf;
    enum wal_status status;
    int fd = -1;

    wal__buf_init(&buf, env->heap);
    snprintf(temporary, sizeof(temporary), "%s.8.tmp", files->key);
    if (!encode(subject, files, position, &buf)) {
        wal__buf_deinit(&buf);
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = wal__place_create(env, files->folder, temporary, &fd, error);
    if (status == WAL_OK) {
        status = wal__place_write(env, fd, buf.data, buf.size, error);
        if (status == WAL_OK) {
            status = wal__place_finish(env, fd, is_durable, stamp, error);
        }
        close(fd);
    }
    wal__buf_deinit(&buf);
    if (status == WAL_OK) {
        status = wal__place_rename(env, files->folder, temporary, files->folder,
                                   name, is_durable, error);
    }
    return status;
}

/* ------------------------------------------------------------- reading --- */

enum {
    S_VERSION,
    S_STORE,
    S_SESSION,
    S_DIALECT,
    S_VERBATIM,
    S_OPEN,
    S_ENTRIES,
    S_ENTRIES1,
    S_TOTAL,
    S_REDACTED,
    S_SEEN,
    S_NEWEST,
    S_KNOWN,
    S_DOCUMENTS,
    S_UNREADABLE,
    S_LOSSES,
    S_FILES,
    S_COUNT
};

static const char *const keys[S_COUNT] = {
    [S_VERSION] = "version",
    [S_STORE] = "store",
    [S_SESSION] = "session",
    [S_DIALECT] = "dialect",
    [S_VERBATIM] = "verbatim",
    [S_OPEN] = "open",
    [S_ENTRIES] = "entries",
    [S_ENTRIES1] = "entries1",
    [S_TOTAL] = "total",
    [S_REDACTED] = "redacted",
    [S_SEEN] = "seen",
    [S_NEWEST] = "newest",
    [S_KNOWN] = "known",
    [S_DOCUMENTS] = "documents",
    [S_UNREADABLE] = "unreadable",
    [S_LOSSES] = "losses",
    [S_FILES] = "files",
};

static bool read_number(const struct wal__json_token *value, uint64_t *number)
{
    int64_t read;

    if (value->kind != WAL__JSON_NUMBER ||
        wal__json_integer(value->span, &read) != WAL__JSON_OK) {
        return false;
    }
    *number = (uint64_t)read;
    return true;
}

static bool read_hex(const struct wal__json_token *value, uint64_t *number)
{
    uint64_t read = 0;

    if (value->kind != WAL__JSON_STRING || value->span.size != 18) {
        return false;
    }
    for (size_t i = 1; i < 17; i++) {
        uint8_t c = value->span.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        read = read << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *number = read;
    return true;
}

static bool next_number(struct wal__json_scan *scan, uint64_t *number,
                        bool is_hex)
{
    struct wal__json_token value;

    return wal__model_values_next(scan, &value) &&
           (is_hex ? read_hex(&value, number) : read_number(&value, number));
}

static bool read_stamp(const struct wal__json_token *value,
                       struct wal__stamp *stamp)
{
    struct wal__json_scan scan;
    uint64_t mtime = 0;

    wal__model_values(&scan, value->span);
    if (!next_number(&scan, &stamp->size, false) ||
        !next_number(&scan, &mtime, false) ||
        !next_number(&scan, &stamp->inode, false)) {
        return false;
    }
    stamp->mtime_ns = (int64_t)mtime;
    return true;
}

static bool read_digest(const struct wal__json_token *value,
                        struct wal__digest *digest)
{
    struct wal__json_scan scan;

    wal__model_values(&scan, value->span);
    return next_number(&scan, &digest->value, true) &&
           next_number(&scan, &digest->part, true) &&
           next_number(&scan, &digest->size, false);
}

static enum wal_status read_file(struct wal__view_files *files,
                                 struct wal__json_span object, bool is_open)
{
    enum {
        PATH,
        DOCUMENT,
        STAMP,
        OLD,
        DIGEST,
        SETTLED,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [PATH] = {.key = "path"},     [DOCUMENT] = {.key = "document"},
        [STAMP] = {.key = "stamp"},   [OLD] = {.key = "old"},
        [DIGEST] = {.key = "digest"}, [SETTLED] = {.key = "settled"},
    };
    struct wal__left left = {.is_known = true, .is_open = is_open};
    struct wal__view_file *file;
    char path[4096];
    size_t size = 0;

    if (wal__model_members(object, members, COUNT, NULL) != WAL__JSON_OK ||
        members[PATH].value.kind != WAL__JSON_STRING ||
        wal__json_unescape(members[PATH].value.span, (uint8_t *)path,
                           sizeof(path) - 1, &size, NULL) != WAL__JSON_OK ||
        !read_stamp(&members[STAMP].value, &left.stamp) ||
        !read_digest(&members[DIGEST].value, &left.digest) ||
        !read_digest(&members[SETTLED].value, &left.settled)) {
        return WAL_ECORRUPT;
    }
    path[size] = '\0';
    left.has_old = read_stamp(&members[OLD].value, &left.old);
    file = wal__view_files_add(files, path,
                               members[DOCUMENT].value.kind == WAL__JSON_TRUE);
    if (file == NULL) {
        return WAL_ENOMEM;
    }
    file->lines.left = left;
    return WAL_OK;
}

static enum wal_status read_files(struct wal__view_files *files,
                                  struct wal__json_span array, bool is_open)
{
    struct wal__json_scan scan;
    struct wal__json_token value;
    enum wal_status status = WAL_OK;

    wal__model_values(&scan, array);
    while (status == WAL_OK && wal__model_values_next(&scan, &value)) {
        status = read_file(files, value.span, is_open);
    }
    return status;
}

static bool is_of_store(const struct wal__json_member *members,
                        const uint8_t store[16])
{
    uint64_t version = 0;
    char uuid[33];

    for (size_t i = 0; i < 16; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", store[i]);
    }
    return read_number(&members[S_VERSION].value, &version) &&
           version == STATE_VERSION &&
           members[S_STORE].value.kind == WAL__JSON_STRING &&
           wal__json_string_is(members[S_STORE].value.span, uuid);
}

static bool is_of(const struct wal__json_member *members,
                  const struct wal__subject *subject)
{
    return is_of_store(members, subject->store) &&
           members[S_SESSION].value.kind == WAL__JSON_STRING &&
           wal__json_string_equals(members[S_SESSION].value.span,
                                   subject->session.data,
                                   (size_t)subject->session.size) &&
           members[S_DIALECT].value.kind == WAL__JSON_STRING &&
           wal__json_string_is(members[S_DIALECT].value.span, subject->dialect);
}

static bool read_losses(struct wal__json_span object, uint64_t *losses)
{
    struct wal__json_member members[WAL__FEATURE_COUNT];

    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        members[i] = (struct wal__json_member){
            .key = wal__feature_text((enum wal__feature)i)};
    }
    if (wal__model_members(object, members, WAL__FEATURE_COUNT, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        (void)read_number(&members[i].value, &losses[i]);
    }
    return true;
}

static bool is_whole(const uint8_t *data, size_t size)
{
    struct wal__digest digest = {.size = 0};
    char check[CHECK_SIZE + 1];

    if (size < CHECK_SIZE) {
        return false;
    }
    wal__digest_add(&digest, data, size - CHECK_SIZE);
    snprintf(check, sizeof(check), CHECK_KEY "%016" PRIx64 "\"}\n",
             digest.value ^ digest.part);
    return memcmp(data + size - CHECK_SIZE, check, CHECK_SIZE) == 0;
}

static enum wal_status decode(const uint8_t *data, size_t size,
                              const struct wal__subject *subject,
                              struct wal__view_files *files,
                              struct wal__position *position)
{
    struct wal__position read = {.is_known = true};
    struct wal__json_span text = {data, size};
    struct wal__json_member members[S_COUNT];
    enum wal_status status;

    for (size_t i = 0; i < S_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    if (!is_whole(data, size) ||
        wal__model_members(text, members, S_COUNT, NULL) != WAL__JSON_OK ||
        !is_of(members, subject) ||
        !read_number(&members[S_ENTRIES].value, &read.entries[0]) ||
        !read_number(&members[S_ENTRIES1].value, &read.entries[1]) ||
        !read_number(&members[S_TOTAL].value, &read.total) ||
        !read_number(&members[S_REDACTED].value, &read.redacted) ||
        !read_number(&members[S_SEEN].value, &read.seen) ||
        !read_number(&members[S_NEWEST].value, &read.newest) ||
        !read_hex(&members[S_KNOWN].value, &read.known) ||
        !read_number(&members[S_DOCUMENTS].value, &read.documents) ||
        !read_number(&members[S_UNREADABLE].value, &read.unreadable) ||
        !read_losses(members[S_LOSSES].value.span, read.losses)) {
        return WAL_ECORRUPT;
    }
    read.is_verbatim = wal__model_true(&members[S_VERBATIM]);
    read.is_open = wal__model_true(&members[S_OPEN]);
    status = read_files(files, members[S_FILES].value.span, read.is_open);
    if (status == WAL_OK) {
        *position = read;
    }
    return status;
}

static bool load(int fd, uint8_t *data, size_t size)
{
    size_t at = 0;
    ssize_t got = 1;

    while (at < size && got > 0) {
        got = pread(fd, data + at, size - at, (off_t)at);
        at += got > 0 ? (size_t)got : 0;
    }
    return at == size;
}

/* Reads a state's file, to be freed; *data is null where there is none. */
static enum wal_status read_state(const struct wal__view_env *env, int folder,
                                  const char *name, uint8_t **data,
                                  struct wal__stamp *stamp,
                                  struct wal_error *error)
{
    int fd = -1;

    *data = NULL;
    if (wal__place_open(folder, name, &fd, stamp, NULL) != WAL_OK) {
        return WAL_OK;
    }
    if (stamp->size <= STATE_MAX) {
        *data = wal__heap_alloc(env->heap, (size_t)stamp->size + 1);
        if (*data == NULL) {
            close(fd);
            return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
        }
        if (!load(fd, *data, (size_t)stamp->size)) {
            wal__heap_free(env->heap, *data);
            *data = NULL;
        }
    }
    close(fd);
    return WAL_OK;
}

enum wal_status
wal__state_read(const char *name, const struct wal__subject *subject,
                struct wal__view_files *files, struct wal__position *position,
                struct wal__stamp *stamp, struct wal_error *error)
{
    enum wal_status status;
    uint8_t *data = NULL;

    *position = (struct wal__position){.is_known = false};
    *stamp = (struct wal__stamp){.size = 0};
    status = read_state(files->env, files->folder, name, &data, stamp, error);
    if (status != WAL_OK || data == NULL) {
        return status;
    }
    status = decode(data, (size_t)stamp->size, subject, files, position);
    wal__heap_free(files->env->heap, data);
    if (status == WAL_ECORRUPT) {
        wal__view_files_forget(files);
        return WAL_OK;
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail(error, status, 0, NULL, 0, "no memory");
}

/* -------------------------------------------------------------- finding --- */

static bool copy_text(const struct wal__json_member *member, char *text,
                      size_t room)
{
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text, room - 1, &size,
                           NULL) != WAL__JSON_OK) {
        return false;
    }
    text[size] = '\0';
    return true;
}

static bool has_file(struct wal__json_span array, const char *path)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_values(&scan, array);
    while (wal__model_values_next(&scan, &value)) {
        struct wal__json_member members[] = {{.key = "path"},
                                             {.key = "document"}};
        if (wal__model_members(value.span, members, 2, NULL) == WAL__JSON_OK &&
            members[0].value.kind == WAL__JSON_STRING &&
            wal__json_string_is(members[0].value.span, path)) {
            return !wal__model_true(&members[1]);
        }
    }
    return false;
}

enum wal_status wal__state_find(const struct wal__view_env *env, int folder,
                                const char *name, const uint8_t store[16],
                                const char *path, struct wal_view_place *place,
                                bool *is_found, struct wal_error *error)
{
    struct wal__json_member members[S_COUNT];
    struct wal__stamp stamp = {.size = 0};
    struct wal__json_span text;
    uint8_t *data = NULL;
    enum wal_status status =
        read_state(env, folder, name, &data, &stamp, error);

    *is_found = false;
    if (status != WAL_OK || data == NULL) {
        return status;
    }
    text = (struct wal__json_span){data, (size_t)stamp.size};
    for (size_t i = 0; i < S_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    *is_found =
        is_whole(text.data, text.size) &&
        wal__model_members(text, members, S_COUNT, NULL) == WAL__JSON_OK &&
        is_of_store(members, store) &&
        has_file(members[S_FILES].value.span, path) &&
        copy_text(&members[S_SESSION], place->session,
                  sizeof(place->session)) &&
        copy_text(&members[S_DIALECT], place->dialect, sizeof(place->dialect));
    wal__heap_free(env->heap, data);
    return WAL_OK;
}
