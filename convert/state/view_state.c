/*
 * view_state.c - reads and writes the state of a view (view_state.h, SPEC.md
 * 10.4).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/state/view_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/model_member.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/bytes/fmt.h"
#include "format/json/json_out.h"
#include "format/json/json_value.h"

/* --- reading ------------------------------------------------------------- */

#define STATE_MAX ((uint64_t)256 << 20)

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
    S_HEAD,
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
    [S_HEAD] = "head",
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

    return wal__model_array_next(scan, &value) &&
           (is_hex ? read_hex(&value, number) : read_number(&value, number));
}

static bool read_stamp(const struct wal__json_token *value,
                       struct wal__file_stamp *stamp)
{
    struct wal__json_scan scan;
    uint64_t mtime = 0;

    wal__model_array_begin(&scan, value->span);
    if (!next_number(&scan, &stamp->size, false) ||
        !next_number(&scan, &mtime, false) ||
        !next_number(&scan, &stamp->inode, false)) {
        return false;
    }
    stamp->mtime_ns = (int64_t)mtime;
    return true;
}

static bool read_fingerprint(const struct wal__json_token *value,
                             struct wal__fingerprint *digest)
{
    struct wal__json_scan scan;

    wal__model_array_begin(&scan, value->span);
    return next_number(&scan, &digest->value, true) &&
           next_number(&scan, &digest->part, true) &&
           next_number(&scan, &digest->size, false);
}

static enum wal_status read_file(struct wal__view_files *files,
                                 struct wal__json_span object,
                                 bool append_pending)
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
    struct wal__saved_file saved = {.is_known = true,
                                    .append_pending = append_pending};
    struct wal__view_file *file;
    char path[4096];
    size_t size = 0;

    if (wal__model_members(object, members, COUNT, NULL) != WAL__JSON_OK ||
        members[PATH].value.kind != WAL__JSON_STRING ||
        wal__json_unescape(members[PATH].value.span, (uint8_t *)path,
                           sizeof(path) - 1, &size, NULL) != WAL__JSON_OK ||
        !read_stamp(&members[STAMP].value, &saved.stamp) ||
        !read_fingerprint(&members[DIGEST].value, &saved.fingerprint) ||
        !read_fingerprint(&members[SETTLED].value, &saved.stable)) {
        return WAL_ECORRUPT;
    }
    path[size] = '\0';
    saved.has_old_stamp = read_stamp(&members[OLD].value, &saved.old_stamp);
    file = wal__view_files_add(files, path,
                               members[DOCUMENT].value.kind == WAL__JSON_TRUE);
    if (file == NULL) {
        return WAL_ENOMEM;
    }
    file->lines.saved = saved;
    return WAL_OK;
}

static enum wal_status read_files(struct wal__view_files *files,
                                  struct wal__json_span array,
                                  bool append_pending)
{
    struct wal__json_scan scan;
    struct wal__json_token value;
    enum wal_status status = WAL_OK;

    wal__model_array_begin(&scan, array);
    while (status == WAL_OK && wal__model_array_next(&scan, &value)) {
        status = read_file(files, value.span, append_pending);
    }
    return status;
}

static bool matches_store(const struct wal__json_member *members,
                          const uint8_t store[16])
{
    uint64_t version = 0;
    char uuid[33];

    wal__hex_write(store, 16, uuid);
    return read_number(&members[S_VERSION].value, &version) &&
           version == WAL__VIEW_STATE_VERSION &&
           members[S_STORE].value.kind == WAL__JSON_STRING &&
           wal__json_string_is(members[S_STORE].value.span, uuid);
}

static bool matches_identity(const struct wal__json_member *members,
                             const struct wal__view_identity *identity)
{
    return matches_store(members, identity->store) &&
           members[S_SESSION].value.kind == WAL__JSON_STRING &&
           wal__json_string_equals(members[S_SESSION].value.span,
                                   identity->session.data,
                                   (size_t)identity->session.size) &&
           members[S_DIALECT].value.kind == WAL__JSON_STRING &&
           wal__json_string_is(members[S_DIALECT].value.span,
                               identity->dialect);
}

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

static bool is_checksum_valid(const uint8_t *data, size_t size)
{
    struct wal__fingerprint digest = {.size = 0};
    char check[WAL__VIEW_CHECK_SIZE + 1];

    if (size < WAL__VIEW_CHECK_SIZE) {
        return false;
    }
    wal__fingerprint_update(&digest, data, size - WAL__VIEW_CHECK_SIZE);
    snprintf(check, sizeof(check), WAL__VIEW_CHECK_KEY "%016" PRIx64 "\"}\n",
             digest.value ^ digest.part);
    return memcmp(data + size - WAL__VIEW_CHECK_SIZE, check,
                  WAL__VIEW_CHECK_SIZE) == 0;
}

static enum wal_status decode(const uint8_t *data, size_t size,
                              const struct wal__view_identity *identity,
                              struct wal__view_files *files,
                              struct wal__view_position *position)
{
    struct wal__view_position read = {.is_known = true};
    struct wal__json_span text = {data, size};
    struct wal__json_member members[S_COUNT];
    enum wal_status status;

    for (size_t i = 0; i < S_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    if (!is_checksum_valid(data, size) ||
        wal__model_members(text, members, S_COUNT, NULL) != WAL__JSON_OK ||
        !matches_identity(members, identity) ||
        !read_number(&members[S_ENTRIES].value, &read.entries[0]) ||
        !read_number(&members[S_ENTRIES1].value, &read.entries[1]) ||
        !read_number(&members[S_TOTAL].value, &read.total) ||
        !read_number(&members[S_REDACTED].value, &read.redacted) ||
        !read_number(&members[S_SEEN].value, &read.session_sequence) ||
        !read_number(&members[S_NEWEST].value, &read.entry_sequence) ||
        !read_hex(&members[S_KNOWN].value, &read.session_hash) ||
        !read_number(&members[S_DOCUMENTS].value, &read.documents) ||
        !read_number(&members[S_UNREADABLE].value, &read.unreadable) ||
        !read_losses(members[S_LOSSES].value.span, read.losses)) {
        return WAL_ECORRUPT;
    }
    if (!copy_text(&members[S_HEAD], read.head, sizeof(read.head))) {
        read.head[0] = '\0';
    }
    read.is_verbatim = wal__member_is_true(&members[S_VERBATIM]);
    read.append_pending = wal__member_is_true(&members[S_OPEN]);
    status =
        read_files(files, members[S_FILES].value.span, read.append_pending);
    if (status == WAL_OK) {
        *position = read;
    }
    return status;
}

static bool read_fully(int fd, uint8_t *data, size_t size)
{
    size_t at = 0;
    ssize_t got = 1;

    while (at < size && got > 0) {
        got = pread(fd, data + at, size - at, (off_t)at);
        at += got > 0 ? (size_t)got : 0;
    }
    return at == size;
}

/* Reads a state file; the caller frees *data, which is NULL when there is
 * none. */
static enum wal_status read_state(const struct wal__view_env *env,
                                  int state_dir, const char *name,
                                  uint8_t **data, struct wal__file_stamp *stamp,
                                  struct wal_error *error)
{
    int fd = -1;

    *data = NULL;
    if (wal__view_fs_open(state_dir, name, &fd, stamp, NULL) != WAL_OK) {
        return WAL_OK;
    }
    if (stamp->size <= STATE_MAX) {
        *data = wal__heap_alloc(env->heap, (size_t)stamp->size + 1);
        if (*data == NULL) {
            close(fd);
            return wal__no_memory(error);
        }
        if (!read_fully(fd, *data, (size_t)stamp->size)) {
            wal__heap_free(env->heap, *data);
            *data = NULL;
        }
    }
    close(fd);
    return WAL_OK;
}

enum wal_status wal__view_state_read(const char *name,
                                     const struct wal__view_identity *identity,
                                     struct wal__view_files *files,
                                     struct wal__view_position *position,
                                     struct wal__file_stamp *stamp,
                                     struct wal_error *error)
{
    enum wal_status status;
    uint8_t *data = NULL;

    *position = (struct wal__view_position){.is_known = false};
    *stamp = (struct wal__file_stamp){.size = 0};
    status =
        read_state(files->env, files->state_dir, name, &data, stamp, error);
    if (status != WAL_OK || data == NULL) {
        return status;
    }
    status = decode(data, (size_t)stamp->size, identity, files, position);
    wal__heap_free(files->env->heap, data);
    if (status == WAL_ECORRUPT) {
        wal__view_files_clear(files);
        return WAL_OK;
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* --- finding ------------------------------------------------------------- */

/* Whether the document is a session's own. */
static bool is_session(const char *path)
{
    static const char above[] = "storage/session/";

    return strncmp(path, above, sizeof(above) - 1) == 0;
}

/* Whether the file leads to its session: a file of lines, or the document of
 * a session. */
static bool leads_to_session(struct wal__json_span file, char path[4096])
{
    struct wal__json_member members[] = {{.key = "path"}, {.key = "document"}};

    return wal__model_members(file, members, 2, NULL) == WAL__JSON_OK &&
           copy_text(&members[0], path, 4096) &&
           (!wal__member_is_true(&members[1]) || is_session(path));
}

static enum wal_status list_files(struct wal__json_span array,
                                  const struct wal_view_info *place,
                                  wal__view_state_each *each, void *ctx,
                                  struct wal_error *error)
{
    struct wal__json_scan scan;
    struct wal__json_token value;
    char path[4096];

    wal__model_array_begin(&scan, array);
    while (wal__model_array_next(&scan, &value)) {
        if (leads_to_session(value.span, path) && !each(ctx, path, place)) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* Finds the members of a state; false: it is not a valid one of the store. The
 * members point into the text. */
static bool find_members(struct wal__json_span text, const uint8_t store[16],
                         struct wal__json_member members[S_COUNT],
                         struct wal_view_info *info)
{
    for (size_t i = 0; i < S_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    return is_checksum_valid(text.data, text.size) &&
           wal__model_members(text, members, S_COUNT, NULL) == WAL__JSON_OK &&
           matches_store(members, store) &&
           copy_text(&members[S_SESSION], info->session,
                     sizeof(info->session)) &&
           copy_text(&members[S_DIALECT], info->dialect, sizeof(info->dialect));
}

enum wal_status wal__view_state_list(const struct wal__view_env *env,
                                     int state_dir, const char *name,
                                     const uint8_t store[16],
                                     wal__view_state_each *each, void *ctx,
                                     struct wal_error *error)
{
    struct wal_view_info place = {.struct_size = sizeof(place)};
    struct wal__json_member members[S_COUNT];
    struct wal__file_stamp stamp = {.size = 0};
    uint8_t *data = NULL;
    enum wal_status status =
        read_state(env, state_dir, name, &data, &stamp, error);

    if (status != WAL_OK || data == NULL) {
        return status;
    }
    if (find_members((struct wal__json_span){data, (size_t)stamp.size}, store,
                     members, &place)) {
        status =
            list_files(members[S_FILES].value.span, &place, each, ctx, error);
    }
    wal__heap_free(env->heap, data);
    return status;
}

enum wal_status wal__view_state_identify(const struct wal__view_env *env,
                                         int state_dir, const char *name,
                                         const uint8_t store[16],
                                         struct wal__view_summary *summary,
                                         bool *is_found,
                                         struct wal_error *error)
{
    struct wal__json_member members[S_COUNT];
    struct wal__file_stamp stamp = {.size = 0};
    uint8_t *data = NULL;
    enum wal_status status =
        read_state(env, state_dir, name, &data, &stamp, error);

    *is_found = false;
    if (status != WAL_OK || data == NULL) {
        return status;
    }
    *is_found = find_members((struct wal__json_span){data, (size_t)stamp.size},
                             store, members, &summary->info) &&
                read_number(&members[S_REDACTED].value, &summary->redacted);
    wal__heap_free(env->heap, data);
    return WAL_OK;
}

/* --- writing ------------------------------------------------------------- */

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

static void put_hex(struct wal__json_out *out, uint64_t value)
{
    char text[19];

    snprintf(text, sizeof(text), "\"%016" PRIx64 "\"", value);
    wal__json_out_literal(out, text);
}

static void put_number(struct wal__json_out *out, const char *key,
                       uint64_t number)
{
    wal__json_out_member_int(out, key, (int64_t)number);
}

static void put_stamp(struct wal__json_out *out, const char *key,
                      const struct wal__file_stamp *stamp)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    wal__json_out_number(out, (int64_t)stamp->size);
    wal__json_out_number(out, stamp->mtime_ns);
    wal__json_out_number(out, (int64_t)stamp->inode);
    wal__json_out_close(out, ']');
}

static void put_fingerprint(struct wal__json_out *out, const char *key,
                            const struct wal__fingerprint *digest)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    put_hex(out, digest->value);
    put_hex(out, digest->part);
    wal__json_out_number(out, (int64_t)digest->size);
    wal__json_out_close(out, ']');
}

static void put_file(struct wal__json_out *out,
                     const struct wal__view_file *file, bool append_pending)
{
    struct wal__saved_file saved =
        append_pending ? file->lines.saved : wal__view_file_to_save(file);
    const char *path = file->lines.path;

    if (!saved.is_known || file->is_shared) {
        return;
    }
    wal__json_out_open(out, '{');
    /* Paths are always UTF-8. */
    wal__json_out_member_text(
        out, "path",
        (struct wal__json_span){(const uint8_t *)path, strlen(path)});
    wal__json_out_member_bool(out, "document", file->is_document);
    put_stamp(out, "stamp", &saved.stamp);
    if (saved.has_old_stamp) {
        put_stamp(out, "old", &saved.old_stamp);
    }
    put_fingerprint(out, "digest", &saved.fingerprint);
    put_fingerprint(out, "settled", &saved.stable);
    wal__json_out_close(out, '}');
}

static void put_losses(struct wal__json_out *out, const uint64_t *losses)
{
    wal__json_out_key(out, "losses");
    wal__json_out_open(out, '{');
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        if (losses[i] > 0) {
            put_number(out, wal__feature_text((enum wal__feature)i), losses[i]);
        }
    }
    wal__json_out_close(out, '}');
}

static void put_identity(struct wal__json_out *out,
                         const struct wal__view_identity *identity)
{
    struct wal__json_span session = {identity->session.data,
                                     (size_t)identity->session.size};
    char uuid[33];

    wal__hex_write(identity->store, 16, uuid);
    wal__json_out_member_int(out, "version", WAL__VIEW_STATE_VERSION);
    wal__json_out_member_str(out, "store", uuid);
    wal__json_out_member_text(out, "session", session);
    wal__json_out_member_str(out, "dialect", identity->dialect);
}

static bool encode(const struct wal__view_identity *identity,
                   const struct wal__view_files *files,
                   const struct wal__view_position *position,
                   struct wal__buf *buf)
{
    struct wal__json_out out = {.put = put, .ctx = buf};
    struct wal__fingerprint digest = {.size = 0};
    char check[WAL__VIEW_CHECK_SIZE + 1];

    wal__json_out_open(&out, '{');
    put_identity(&out, identity);
    wal__json_out_member_bool(&out, "verbatim", position->is_verbatim);
    wal__json_out_member_bool(&out, "open", position->append_pending);
    put_number(&out, "entries", position->entries[0]);
    put_number(&out, "entries1", position->entries[1]);
    put_number(&out, "total", position->total);
    put_number(&out, "redacted", position->redacted);
    put_number(&out, "seen", position->session_sequence);
    put_number(&out, "newest", position->entry_sequence);
    wal__json_out_key(&out, "known");
    put_hex(&out, position->session_hash);
    put_number(&out, "documents", position->documents);
    put_number(&out, "unreadable", position->unreadable);
    put_losses(&out, position->losses);
    if (position->head[0] != '\0') {
        wal__json_out_member_text(
            &out, "head",
            (struct wal__json_span){(const uint8_t *)position->head,
                                    strlen(position->head)});
    }
    wal__json_out_key(&out, "files");
    wal__json_out_open(&out, '[');
    for (uint32_t i = 0; i < files->count; i++) {
        put_file(&out, files->items[i], position->append_pending);
    }
    wal__json_out_close(&out, ']');
    wal__fingerprint_update(&digest, buf->data, buf->size);
    snprintf(check, sizeof(check), WAL__VIEW_CHECK_KEY "%016" PRIx64 "\"}\n",
             digest.value ^ digest.part);
    return !out.has_failed && put(buf, check, WAL__VIEW_CHECK_SIZE);
}

enum wal_status wal__view_state_write(const char *name,
                                      const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position,
                                      bool is_durable,
                                      struct wal__file_stamp *stamp,
                                      struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    char temporary[WAL__VIEW_NAME_SIZE];
    struct wal__buf buf;
    enum wal_status status;
    int fd = -1;

    WAL__ASSERT(files->state_dir >= 0);
    wal__buf_init(&buf, env->heap);
    snprintf(temporary, sizeof(temporary), "%s.8.tmp", files->key);
    if (!encode(identity, files, position, &buf)) {
        wal__buf_deinit(&buf);
        return wal__no_memory(error);
    }
    status = wal__view_fs_create(env, files->state_dir, temporary, &fd, error);
    if (status == WAL_OK) {
        status = wal__view_fs_write(env, fd, buf.data, buf.size, error);
        if (status == WAL_OK) {
            /* Else a power loss may leave the name of a file without bytes, and
             * no state. */
            status = wal__view_fs_sync(env, fd, stamp, error);
        }
        close(fd);
    }
    wal__buf_deinit(&buf);
    if (status == WAL_OK) {
        status = wal__view_fs_rename(env, files->state_dir, temporary,
                                     files->state_dir, name, is_durable, error);
    }
    return status;
}
