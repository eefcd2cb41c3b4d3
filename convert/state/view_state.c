/*
 * view_state.c - reads and writes the state of a view, where the states of a
 * root are kept, and the view that a file belongs to (view_state.h, SPEC.md
 * 10.4, 10.6).
 */
#include "convert/state/view_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"

#define WAL__VIEW_STATE_VERSION 1

#define WAL__VIEW_CHECK_KEY ",\"check\":\""

/* Bytes of the check: 16 digits, and "}\n. */
#define WAL__VIEW_CHECK_SIZE (sizeof(WAL__VIEW_CHECK_KEY) - 1 + 16 + 3)

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
    [S_VERSION] = "version",   [S_STORE] = "store",         [S_SESSION] = "session",
    [S_DIALECT] = "dialect",   [S_VERBATIM] = "verbatim",   [S_OPEN] = "open",
    [S_ENTRIES] = "entries",   [S_ENTRIES1] = "entries1",   [S_TOTAL] = "total",
    [S_REDACTED] = "redacted", [S_SEEN] = "seen",           [S_NEWEST] = "newest",
    [S_KNOWN] = "known",       [S_DOCUMENTS] = "documents", [S_UNREADABLE] = "unreadable",
    [S_LOSSES] = "losses",     [S_HEAD] = "head",           [S_FILES] = "files",
};

static bool read_number(const struct wal__json_token *value, uint64_t *number)
{
    int64_t read;

    if (value->kind != WAL__JSON_NUMBER || wal__json_integer(value->span, &read) != WAL__JSON_OK) {
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

static bool next_number(struct wal__json_scan *scan, uint64_t *number, bool is_hex)
{
    struct wal__json_token value;

    return wal__model_array_next(scan, &value) &&
           (is_hex ? read_hex(&value, number) : read_number(&value, number));
}

static bool read_stamp(const struct wal__json_token *value, struct wal__file_stamp *stamp)
{
    struct wal__json_scan scan;
    uint64_t mtime = 0;

    wal__model_array_begin(&scan, value->span);
    if (!next_number(&scan, &stamp->size, false) || !next_number(&scan, &mtime, false) ||
        !next_number(&scan, &stamp->inode, false)) {
        return false;
    }
    stamp->mtime_ns = (int64_t)mtime;
    return true;
}

static bool read_fingerprint(const struct wal__json_token *value, struct wal__fingerprint *digest)
{
    struct wal__json_scan scan;

    wal__model_array_begin(&scan, value->span);
    return next_number(&scan, &digest->value, true) && next_number(&scan, &digest->part, true) &&
           next_number(&scan, &digest->size, false);
}

static bool copy_text(const struct wal__json_member *member, char *text, size_t room)
{
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text, room - 1, &size, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    text[size] = '\0';
    return true;
}

static enum wal_status read_file(struct wal__view_files *files, struct wal__json_span object,
                                 bool append_pending)
{
    enum { PATH, DOCUMENT, STAMP, OLD, DIGEST, SETTLED, COUNT };
    struct wal__json_member members[COUNT] = {
        [PATH] = {.key = "path"}, [DOCUMENT] = {.key = "document"}, [STAMP] = {.key = "stamp"},
        [OLD] = {.key = "old"},   [DIGEST] = {.key = "digest"},     [SETTLED] = {.key = "settled"},
    };
    struct wal__saved_file saved = {.is_known = true, .append_pending = append_pending};
    struct wal__view_file *file;
    char path[4096];

    if (wal__model_members(object, members, COUNT, NULL) != WAL__JSON_OK ||
        !copy_text(&members[PATH], path, sizeof(path)) ||
        !read_stamp(&members[STAMP].value, &saved.stamp) ||
        !read_fingerprint(&members[DIGEST].value, &saved.fingerprint) ||
        !read_fingerprint(&members[SETTLED].value, &saved.stable)) {
        return WAL_ECORRUPT;
    }
    saved.has_old_stamp = read_stamp(&members[OLD].value, &saved.old_stamp);
    file = wal__view_files_add(files, path, members[DOCUMENT].value.kind == WAL__JSON_TRUE);
    if (file == NULL) {
        return WAL_ENOMEM;
    }
    file->lines.saved = saved;
    return WAL_OK;
}

static enum wal_status read_files(struct wal__view_files *files, struct wal__json_span array,
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

static bool read_losses(struct wal__json_span object, uint64_t *losses)
{
    struct wal__json_member members[WAL__FEATURE_COUNT];

    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = wal__feature_text((enum wal__feature)i)};
    }
    if (wal__model_members(object, members, WAL__FEATURE_COUNT, NULL) != WAL__JSON_OK) {
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
    return memcmp(data + size - WAL__VIEW_CHECK_SIZE, check, WAL__VIEW_CHECK_SIZE) == 0;
}

/* Finds the members of a state; false: it is not a valid one of the store. The members point into
 * the text. */
static bool find_members(struct wal__json_span text, const uint8_t store[16],
                         struct wal__json_member members[S_COUNT], struct wal_view_info *info)
{
    uint64_t version = 0;
    char uuid[33];

    wal__hex_write(store, 16, uuid);
    for (size_t i = 0; i < S_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    return is_checksum_valid(text.data, text.size) &&
           wal__model_members(text, members, S_COUNT, NULL) == WAL__JSON_OK &&
           read_number(&members[S_VERSION].value, &version) && version == WAL__VIEW_STATE_VERSION &&
           wal__line_string_is(&members[S_STORE], uuid) &&
           copy_text(&members[S_SESSION], info->session, sizeof(info->session)) &&
           copy_text(&members[S_DIALECT], info->dialect, sizeof(info->dialect));
}

static enum wal_status decode(const uint8_t *data, size_t size,
                              const struct wal__view_identity *identity,
                              struct wal__view_files *files, struct wal__view_position *position)
{
    struct wal__view_position read = {.is_known = true};
    struct wal__json_span text = {data, size};
    struct wal__json_member members[S_COUNT];
    struct wal_view_info info;
    enum wal_status status;

    if (!find_members(text, identity->store, members, &info) ||
        !wal__slice_equal(wal__slice_from_text(info.session), identity->session) ||
        strcmp(info.dialect, identity->dialect) != 0 ||
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
    status = read_files(files, members[S_FILES].value.span, read.append_pending);
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

/* Reads a state file; the caller frees *data, which is NULL when there is none. */
static enum wal_status load_state(const struct wal__view_env *env, int state_dir, const char *name,
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

enum wal_status wal__view_state_read(const char *name, const struct wal__view_identity *identity,
                                     struct wal__view_files *files,
                                     struct wal__view_position *position,
                                     struct wal__file_stamp *stamp, struct wal_error *error)
{
    enum wal_status status;
    uint8_t *data = NULL;

    *position = (struct wal__view_position){.is_known = false};
    *stamp = (struct wal__file_stamp){.size = 0};
    status = load_state(files->env, files->state_dir, name, &data, stamp, error);
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

/* Whether the file leads to its session: a file of lines, or the document of a session. */
static bool leads_to_session(struct wal__json_span file, char path[4096])
{
    struct wal__json_member members[] = {{.key = "path"}, {.key = "document"}};

    return wal__model_members(file, members, 2, NULL) == WAL__JSON_OK &&
           copy_text(&members[0], path, 4096) &&
           (!wal__member_is_true(&members[1]) || is_session(path));
}

enum wal_status wal__view_state_identify(const struct wal__view_env *env, int state_dir,
                                         const char *name, const uint8_t store[16],
                                         struct wal__view_summary *summary, bool *is_found,
                                         struct wal_error *error)
{
    struct wal__json_member members[S_COUNT];
    struct wal__file_stamp stamp = {.size = 0};
    uint8_t *data = NULL;
    enum wal_status status = load_state(env, state_dir, name, &data, &stamp, error);

    *is_found = false;
    if (status != WAL_OK || data == NULL) {
        return status;
    }
    *is_found = find_members((struct wal__json_span){data, (size_t)stamp.size}, store, members,
                             &summary->info) &&
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

static void put_file(struct wal__json_out *out, const struct wal__view_file *file,
                     bool append_pending)
{
    struct wal__saved_file saved =
        append_pending ? file->lines.saved : wal__view_file_to_save(file);
    const char *path = file->lines.path;

    if (!saved.is_known || file->is_shared) {
        return;
    }
    wal__json_out_open(out, '{');
    /* Paths are always UTF-8. */
    wal__json_out_member_text(out, "path", wal__model_literal(path));
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
            wal__json_out_member_count(out, wal__feature_text((enum wal__feature)i), losses[i]);
        }
    }
    wal__json_out_close(out, '}');
}

static void put_identity(struct wal__json_out *out, const struct wal__view_identity *identity)
{
    struct wal__json_span session = {identity->session.data, (size_t)identity->session.size};
    char uuid[33];

    wal__hex_write(identity->store, 16, uuid);
    wal__json_out_member_int(out, "version", WAL__VIEW_STATE_VERSION);
    wal__json_out_member_str(out, "store", uuid);
    wal__json_out_member_text(out, "session", session);
    wal__json_out_member_str(out, "dialect", identity->dialect);
}

static bool encode(const struct wal__view_identity *identity, const struct wal__view_files *files,
                   const struct wal__view_position *position, struct wal__buf *buf)
{
    struct wal__json_out out = {.put = put, .ctx = buf};
    struct wal__fingerprint digest = {.size = 0};
    char check[WAL__VIEW_CHECK_SIZE + 1];

    wal__json_out_open(&out, '{');
    put_identity(&out, identity);
    wal__json_out_member_bool(&out, "verbatim", position->is_verbatim);
    wal__json_out_member_bool(&out, "open", position->append_pending);
    wal__json_out_member_count(&out, "entries", position->entries[0]);
    wal__json_out_member_count(&out, "entries1", position->entries[1]);
    wal__json_out_member_count(&out, "total", position->total);
    wal__json_out_member_count(&out, "redacted", position->redacted);
    wal__json_out_member_count(&out, "seen", position->session_sequence);
    wal__json_out_member_count(&out, "newest", position->entry_sequence);
    wal__json_out_key(&out, "known");
    put_hex(&out, position->session_hash);
    wal__json_out_member_count(&out, "documents", position->documents);
    wal__json_out_member_count(&out, "unreadable", position->unreadable);
    put_losses(&out, position->losses);
    if (position->head[0] != '\0') {
        wal__json_out_member_text(&out, "head", wal__model_literal(position->head));
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

enum wal_status wal__view_state_write(const char *name, const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position, bool is_durable,
                                      struct wal__file_stamp *stamp, struct wal_error *error)
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
            /* Else a power loss may leave the name of a file without bytes, and no state. */
            status = wal__view_fs_sync(env, fd, stamp, error);
        }
        close(fd);
    }
    wal__buf_deinit(&buf);
    if (status == WAL_OK) {
        status = wal__view_fs_rename(env, files->state_dir, temporary, files->state_dir, name,
                                     is_durable, error);
    }
    return status;
}

/* --- the place ----------------------------------------------------------- */

/* Whether the root is a client's folder, and not only below one. */
static bool is_client_folder(const char *root)
{
    struct wal__places places;
    struct wal__place place;

    wal__places_read(&places);
    place = wal__place_of_argument(&places, root);
    return place.kind == WAL__PLACE_CLIENT && place.root == 0 && place.base == strlen(root);
}

static bool has_old_state(const char *root)
{
    char name[2 * PATH_MAX];

    snprintf(name, sizeof(name), "%s/" WAL__VIEW_STATE_DIR "/lock", root);
    return access(name, F_OK) == 0;
}

/* Writes where the state of a root is if that is a client's folder, and the root without links. */
static bool make_place(const char *root, char resolved[PATH_MAX], char path[PATH_MAX])
{
    const char *base = getenv("XDG_STATE_HOME");
    const char *below = "agentwal/views";
    int used;

    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = ".local/state/agentwal/views";
    }
    if (base == NULL || base[0] != '/' || realpath(root, resolved) == NULL) {
        return false;
    }
    used = snprintf(path, PATH_MAX, "%s/%s/%016" PRIx64, base, below, wal__source_hash(resolved));
    return used > 0 && used < PATH_MAX;
}

bool wal__view_place(const char *root, char path[PATH_MAX])
{
    char resolved[PATH_MAX];

    return make_place(root, resolved, path) && is_client_folder(resolved) &&
           !has_old_state(resolved);
}

/* --- states of a root ---------------------------------------------------- */

/* Frees what was read of a state, or with its name all of it. */
static void clear_state(const struct wal__heap *heap, struct wal__view_state_file *state,
                        bool frees_name)
{
    wal__buf_deinit(&state->paths);
    wal__heap_free(heap, state->session);
    state->session = NULL;
    if (frees_name) {
        wal__heap_free(heap, state->name);
    }
}

/* Forgets everything that was read. */
static void clear(struct wal__view_states *states)
{
    for (uint32_t i = 0; i < states->count; i++) {
        clear_state(states->env.heap, &states->items[i], true);
    }
    states->count = 0;
    wal__hashmap_deinit(&states->by_path);
    wal__hashmap_init(&states->by_path, states->env.heap);
}

static void view_states_destroy(struct wal__view_states *states)
{
    const struct wal__heap *heap = states->env.heap;

    clear(states);
    wal__heap_free(heap, states->items);
    wal__heap_free(heap, states->name);
    wal__heap_free(heap, states);
}

/* Creates the states of a directory that were not read yet; NULL: no memory. */
static struct wal__view_states *view_states_create(const struct wal__heap *heap,
                                                   const uint8_t store[16], const char *name)
{
    struct wal__view_states *states = wal__heap_zalloc(heap, sizeof(*states));

    if (states == NULL) {
        return NULL;
    }
    states->env.heap = heap;
    memcpy(states->store, store, sizeof(states->store));
    wal__hashmap_init(&states->by_path, heap);
    states->name = wal__heap_copy_text(heap, name, strlen(name));
    if (states->name == NULL) {
        view_states_destroy(states);
        return NULL;
    }
    return states;
}

/* --- reading ------------------------------------------------------------- */

/* Keeps the paths of the files that lead to the session. */
static enum wal_status keep_paths(struct wal__view_state_file *state, struct wal__json_span files)
{
    struct wal__json_scan scan;
    struct wal__json_token value;
    enum wal_status status = WAL_OK;
    char path[4096];

    wal__model_array_begin(&scan, files);
    while (status == WAL_OK && wal__model_array_next(&scan, &value)) {
        if (leads_to_session(value.span, path)) {
            status = wal__buf_append(&state->paths, path, strlen(path) + 1);
        }
    }
    return status;
}

/* Reads a state file. One that is not of the store has no paths. */
static enum wal_status read_state(struct wal__view_states *states, int directory,
                                  struct wal__view_state_file *state, struct wal_error *error)
{
    const struct wal__heap *heap = states->env.heap;
    struct wal_view_info info = {.struct_size = sizeof(info)};
    struct wal__json_member members[S_COUNT];
    struct wal__file_stamp stamp = {.size = 0};
    uint8_t *data = NULL;
    enum wal_status status = load_state(&states->env, directory, state->name, &data, &stamp, error);

    clear_state(heap, state, false);
    wal__buf_init(&state->paths, heap);
    if (status == WAL_OK && data != NULL &&
        find_members((struct wal__json_span){data, (size_t)stamp.size}, states->store, members,
                     &info)) {
        state->dialect = wal__dialect_find(info.dialect);
        state->session = wal__heap_copy_text(heap, info.session, strlen(info.session));
        status =
            state->session == NULL ? WAL_ENOMEM : keep_paths(state, members[S_FILES].value.span);
    }
    wal__heap_free(heap, data);
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* Finds the state of a name, or adds it without a stamp; NULL: no memory. Directories are listed in
 * the same order again: it is looked for from *next on, which becomes the index after it. */
static struct wal__view_state_file *find_state(struct wal__view_states *states, const char *name,
                                               uint32_t *next)
{
    const struct wal__heap *heap = states->env.heap;
    char *copy;

    for (uint32_t i = 0; i < states->count; i++) {
        uint32_t index = (*next + i) % states->count;

        if (strcmp(states->items[index].name, name) == 0) {
            *next = index + 1;
            return &states->items[index];
        }
    }
    if (!WAL__HEAP_GROW(heap, states->items, states->count, states->capacity) ||
        (copy = wal__heap_copy_text(heap, name, strlen(name))) == NULL) {
        return NULL;
    }
    states->items[states->count] = (struct wal__view_state_file){.name = copy, .paths.heap = heap};
    return &states->items[states->count++];
}

/* Reads the states that are new or have changed. */
static enum wal_status read_changed(struct wal__view_states *states, DIR *dir,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const struct dirent *entry;
    uint32_t next = 0;

    while (status == WAL_OK && (entry = readdir(dir)) != NULL) {
        struct wal__view_state_file *state;
        struct wal__file_stamp stamp;
        struct stat stat;

        if (!wal__is_json_name(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        stamp = wal__file_stamp_of(&stat);
        state = find_state(states, entry->d_name, &next);
        if (state == NULL) {
            return wal__no_memory(error);
        }
        if (!wal__file_stamp_equal(&state->stamp, &stamp)) {
            state->stamp = stamp;
            status = read_state(states, dirfd(dir), state, error);
        }
        state->is_listed = true;
    }
    return status;
}

/* Removes the states that were not listed, and finds those that are left by their paths. */
static enum wal_status index_paths(struct wal__view_states *states, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint32_t kept = 0;

    wal__hashmap_deinit(&states->by_path);
    wal__hashmap_init(&states->by_path, states->env.heap);
    for (uint32_t i = 0; i < states->count; i++) {
        struct wal__view_state_file *state = &states->items[i];
        const char *path;

        if (!state->is_listed) {
            clear_state(states->env.heap, state, true);
            continue;
        }
        for (size_t at = 0; status == WAL_OK && at < state->paths.size; at += strlen(path) + 1) {
            path = (const char *)state->paths.data + at;
            status = wal__hashmap_add(&states->by_path, wal__model_text_hash(path), kept);
        }
        state->is_listed = false;
        states->items[kept++] = *state;
    }
    states->count = kept;
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* --- finding ------------------------------------------------------------- */

static bool has_path(const struct wal__view_state_file *state, const char *path)
{
    const char *paths = (const char *)state->paths.data;
    size_t at = 0;

    while (at < state->paths.size && strcmp(paths + at, path) != 0) {
        at += strlen(paths + at) + 1;
    }
    return at < state->paths.size;
}

static const struct wal__view_state_file *find_path(const struct wal__view_states *states,
                                                    const char *path)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (wal__hashmap_find(&states->by_path, wal__model_text_hash(path), &cursor, &index)) {
        WAL__ASSERT(index < states->count);
        if (has_path(&states->items[index], path)) {
            return &states->items[index];
        }
    }
    return NULL;
}

/* Finds the state of the view with a path below the root; *found is NULL if there is none. */
static enum wal_status view_states_find(struct wal__view_states *states, const char *path,
                                        const struct wal__view_state_file **found,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__file_stamp stamp;
    struct stat stat_now;
    DIR *dir;

    *found = find_path(states, path);
    if (*found != NULL || stat(states->name, &stat_now) != 0) {
        return WAL_OK;
    }
    stamp = wal__file_stamp_of(&stat_now);
    if (states->exists && wal__file_stamp_equal(&stamp, &states->stamp)) {
        return WAL_OK;
    }
    dir = opendir(states->name);
    if (dir == NULL) {
        return WAL_OK;
    }
    status = read_changed(states, dir, error);
    closedir(dir);
    if (status == WAL_OK) {
        status = index_paths(states, error);
    }
    if (status != WAL_OK) {
        clear(states);
    }
    states->exists = status == WAL_OK;
    states->stamp = stamp;
    *found = find_path(states, path);
    return status;
}

/* --- the view of a file -------------------------------------------------- */

#define PARENT_DIRS_MAX 8 /* parent directories of a file that are searched */

struct view_search {
    struct wal__view_index *index;
    struct wal_view_info place;
    bool has_state; /* one of the directories that were searched is there */
    bool is_found;
};

void wal__view_index_init(struct wal__view_index *index, struct wal_store *store,
                          const struct wal__heap *heap)
{
    *index = (struct wal__view_index){.heap = heap, .store = store};
}

void wal__view_index_deinit(struct wal__view_index *index)
{
    for (uint32_t i = 0; i < index->count; i++) {
        view_states_destroy(index->items[i]);
    }
    wal__heap_free(index->heap, index->items);
    *index = (struct wal__view_index){.heap = index->heap};
}

void wal__view_index_refresh(struct wal__view_index *index)
{
    index->bare[0] = '\0';
}

/* Returns the states of a directory; NULL: no memory. */
static struct wal__view_states *states_of(struct view_search *search, const char *name)
{
    struct wal__view_index *index = search->index;

    for (uint32_t i = 0; i < index->count; i++) {
        if (strcmp(index->items[i]->name, name) == 0) {
            return index->items[i];
        }
    }
    if (!WAL__HEAP_GROW(index->heap, index->items, index->count, index->capacity)) {
        return NULL;
    }
    index->items[index->count] = view_states_create(index->heap, index->store_id, name);
    return index->items[index->count] != NULL ? index->items[index->count++] : NULL;
}

static enum wal_status search_directory(struct view_search *search, const char *name,
                                        const char *path, struct wal_error *error)
{
    const struct wal__view_state_file *found = NULL;
    struct wal__view_states *states;
    enum wal_status status;

    if (access(name, F_OK) != 0) {
        return WAL_OK;
    }
    search->has_state = true;
    states = states_of(search, name);
    if (states == NULL) {
        return wal__no_memory(error);
    }
    status = view_states_find(states, path, &found, error);
    if (status == WAL_OK && found != NULL && found->dialect != NULL) {
        snprintf(search->place.session, sizeof(search->place.session), "%s", found->session);
        snprintf(search->place.dialect, sizeof(search->place.dialect), "%s", found->dialect->name);
        search->is_found = true;
    }
    return status;
}

/* Searches the states of the root, which is the first `size` bytes of the path. */
static enum wal_status search_root(struct view_search *search, const char *path, size_t size,
                                   struct wal_error *error)
{
    char name[PATH_MAX + sizeof(WAL__VIEW_STATE_DIR) + 1];
    char resolved[PATH_MAX];
    char place[PATH_MAX];
    enum wal_status status;

    snprintf(name, sizeof(name), "%.*s/" WAL__VIEW_STATE_DIR, (int)size, path);
    status = search_directory(search, name, path + size + 1, error);
    snprintf(name, sizeof(name), "%.*s", size > 0 ? (int)size : 1, path);
    /* What says that it is a client's folder is read only where there is a state. */
    if (status == WAL_OK && !search->is_found && make_place(name, resolved, place) &&
        access(place, F_OK) == 0 && wal__view_place(name, place)) {
        status = search_directory(search, place, path + size + 1, error);
    }
    snprintf(search->place.root, sizeof(search->place.root), "%.*s", size > 0 ? (int)size : 1,
             path);
    return status;
}

static enum wal_status find(struct view_search *search, const char *path, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t size = strlen(path);

    for (unsigned i = 0; i < PARENT_DIRS_MAX && size > 0 && status == WAL_OK && !search->is_found;
         i++) {
        do {
            size--;
        } while (path[size] != '/');
        status = search_root(search, path, size, error);
    }
    return status;
}

/* Searches the folder of a path and those above it, unless no state was in them before. */
static enum wal_status search_folder(struct view_search *search, const char *given,
                                     struct wal_error *error)
{
    struct wal__view_index *index = search->index;
    const char *slash = strrchr(given, '/');
    size_t size = slash != NULL ? (size_t)(slash - given) : 0;
    char real[PATH_MAX];
    enum wal_status status;

    if (size > 0 && strlen(index->bare) == size && memcmp(index->bare, given, size) == 0) {
        return WAL_OK;
    }
    if (realpath(given, real) == NULL) {
        return wal__view_fs_fail(error, given);
    }
    status = find(search, real, error);
    if (status == WAL_OK && !search->has_state && size < sizeof(index->bare)) {
        memcpy(index->bare, given, size);
        index->bare[size] = '\0';
    }
    return status;
}

enum wal_status wal__view_index_find(struct wal__view_index *index, struct wal_slice path,
                                     struct wal_view_info *place, struct wal_error *error)
{
    static const uint8_t none[16] = {0};
    struct view_search search = {.index = index};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char given[PATH_MAX];
    enum wal_status status = WAL_OK;

    if (path.size == 0 || path.size >= sizeof(given)) {
        return wal__invalid(error, "path must be a valid path");
    }
    memcpy(given, path.data, (size_t)path.size);
    given[path.size] = '\0';
    search.place.struct_size = sizeof(search.place);
    if (!index->has_store_id) {
        status = wal_store_get_info(index->store, &info, error);
        if (status != WAL_OK) {
            return status;
        }
        memcpy(index->store_id, info.uuid, sizeof(index->store_id));
        index->has_store_id = true;
    }
    if (memcmp(index->store_id, none, sizeof(none)) != 0) {
        status = search_folder(&search, given, error);
    }
    if (status == WAL_OK && !search.is_found) {
        status = wal__fail(error, WAL_ENOTFOUND, "the file belongs to no view of this store");
    }
    if (status == WAL_OK) {
        *place = search.place;
    }
    return status;
}

enum wal_status wal_view_find(struct wal_store *store, struct wal_slice path,
                              struct wal_view_info *place, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_info);
    struct wal_view_info found = {.struct_size = sizeof(found)};
    struct wal__view_index index;
    enum wal_status status;

    status = wal__struct_check_output(type, place, error);
    if (status != WAL_OK) {
        return status;
    }
    if (store == NULL) {
        return wal__invalid(error, "store must not be NULL, and path must be a "
                                   "valid path");
    }
    wal__view_index_init(&index, store, &wal__heap_libc);
    status = wal__view_index_find(&index, path, &found, error);
    wal__view_index_deinit(&index);
    if (status == WAL_OK) {
        wal__struct_store(type, place, &found);
    }
    return status;
}
