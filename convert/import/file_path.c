/*
 * file_path.c - what the path of a client's file says of its session, and what the client has of
 * that in another file (file_import.h): one with its title, or with the directories of projects. Of
 * a sidecar, which is next to the session's file, the session keeps the bytes in its metadata:
 * those that the last import read.
 */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/import/file_import.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "engine/base/error.h"
#include "format/bytes/bytes.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/payload/timestamp.h"

#define INFO_SIZE_MAX (1 << 20) /* bytes of a client's file with a title */
#define KEPT_SIZE_MAX (1 << 16) /* of one that a session keeps */

/* Appends a text to a pattern of glob() that ends with NUL. False: it does not fit. */
static bool add_literal(char *pattern, size_t capacity, const char *text, size_t text_size)
{
    size_t size = strlen(pattern);

    for (size_t i = 0; i < text_size; i++) {
        if (size + 3 > capacity) {
            return false;
        }
        if (strchr("*?[]\\", text[i]) != NULL) {
            pattern[size++] = '\\';
        }
        pattern[size++] = text[i];
    }
    pattern[size] = '\0';
    return true;
}

/* Makes the pattern of a file with what the client has of a session: below the folder that the path
 * of the session's file, `below`, is in. */
static bool make_info_pattern(const struct wal__import_file *file, const char *info,
                              const char *below, struct wal_slice id, char pattern[PATH_MAX])
{
    size_t name_size = strlen(file->name);
    size_t below_size = strlen(below);
    const char *mark = strstr(info, "{id}");
    size_t begin_size = mark != NULL ? (size_t)(mark - info) : strlen(info);
    size_t size;

    pattern[0] = '\0';
    if (name_size < below_size || strcmp(file->name + name_size - below_size, below) != 0 ||
        !add_literal(pattern, PATH_MAX, file->name, name_size - below_size)) {
        return false;
    }
    size = strlen(pattern);
    if (size + begin_size >= PATH_MAX) {
        return false;
    }
    memcpy(pattern + size, info, begin_size);
    pattern[size + begin_size] = '\0';
    if (mark == NULL) {
        return true;
    }
    if (!add_literal(pattern, PATH_MAX, id.data, (size_t)id.size)) {
        return false;
    }
    size = strlen(pattern);
    return (size_t)snprintf(pattern + size, PATH_MAX - size, "%s", mark + 4) < PATH_MAX - size;
}

/* Finds the file with what the lines of the session do not say. */
static bool find_info_file(const struct wal__import_file *file, const struct wal__client *client,
                           const char *below, const struct wal__client_ids *ids,
                           char path[WAL__CLIENT_BELOW_SIZE])
{
    char pattern[PATH_MAX];
    glob_t found;
    bool is_found = false;

    if (client->info.path == NULL || wal__client_sidecar(client, file->name, path)) {
        return client->info.path != NULL;
    }
    if ((client->info.projects == NULL && ids->id.size + ids->starter.size == 0) ||
        !make_info_pattern(file, client->info.path, below,
                           ids->id.size > 0 ? ids->id : ids->starter, pattern) ||
        glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
        return false;
    }
    if (found.gl_pathc > 0) {
        is_found = (size_t)snprintf(path, WAL__CLIENT_BELOW_SIZE, "%s", found.gl_pathv[0]) <
                   WAL__CLIENT_BELOW_SIZE;
    }
    globfree(&found);
    return is_found;
}

static char *read_info_file(const struct wal__heap *heap, const char *path, size_t *size)
{
    struct stat stat;
    char *text = NULL;
    int fd = wal__file_open_regular(AT_FDCWD, path, &stat);

    if (fd < 0) {
        return NULL;
    }
    if (stat.st_size > 0 && stat.st_size <= INFO_SIZE_MAX) {
        *size = (size_t)stat.st_size;
        text = wal__heap_alloc(heap, *size);
    }
    if (text != NULL && wal__file_read_full(fd, text, *size) != (ssize_t)*size) {
        wal__heap_free(heap, text);
        text = NULL;
    }
    close(fd);
    return text;
}

/* Puts a scalar of YAML into an object of JSON, unless it is empty or begins another value. */
static void put_scalar(struct wal__arena *arena, struct wal__json_out *out,
                       struct wal__json_span key, struct wal__json_span scalar)
{
    struct wal__json_span string = scalar;
    uint8_t quote =
        scalar.size > 1 && scalar.data[0] == scalar.data[scalar.size - 1] ? scalar.data[0] : 0;
    size_t size = 0;

    if (scalar.size == 0 || memchr("|>[{&*!", scalar.data[0], 7) != NULL) {
        return;
    }
    if (quote == '\'') {
        uint8_t *text = wal__arena_alloc(arena, scalar.size);

        for (size_t i = 1; text != NULL && i + 1 < scalar.size; i++) {
            text[size++] = scalar.data[i];
            i += scalar.data[i] == '\'' && scalar.data[i + 1] == '\'' ? 1 : 0;
        }
        scalar = (struct wal__json_span){text, text != NULL ? size : 0};
    }
    if (quote != '"') {
        string = wal__arena_escape(arena, scalar);
    }
    key = wal__arena_escape(arena, key);
    if (key.data != NULL && string.data != NULL &&
        wal__json_validate(string.data, string.size, NULL) == WAL__JSON_OK) {
        wal__json_out_value(out, key);
        wal__json_out_bytes(out, ":", 1);
        out->has_value = false;
        wal__json_out_value(out, string);
    }
}

/* Returns the scalars at the top of a text of YAML as an object of JSON, in the arena. */
static struct wal__json_span read_yaml(struct wal__arena *arena, const char *text, size_t size)
{
    struct wal__json_memory memory = {.data = wal__arena_alloc(arena, 8 * size + 2),
                                      .capacity = 8 * size + 2};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &memory};
    const char *end = text + size;

    if (memory.data == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    wal__json_out_open(&out, '{');
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;
        const char *colon = memchr(text, ':', (size_t)(stop - text));
        const char *value = colon != NULL ? colon + 1 : stop;
        const char *last = stop;
        bool is_member = colon != NULL && memchr(" -#'\"", *text, 5) == NULL &&
                         (value == stop || *value == ' ' || *value == '\r');

        while (value < last && (*value == ' ' || *value == '\t')) {
            value++;
        }
        while (last > value && (last[-1] == ' ' || last[-1] == '\r')) {
            last--;
        }
        if (is_member) {
            put_scalar(arena, &out,
                       (struct wal__json_span){(const uint8_t *)text, (size_t)(colon - text)},
                       (struct wal__json_span){(const uint8_t *)value, (size_t)(last - value)});
        }
        text = newline != NULL ? newline + 1 : end;
    }
    wal__json_out_close(&out, '}');
    return out.has_failed ? (struct wal__json_span){NULL, 0}
                          : (struct wal__json_span){memory.data, memory.size};
}

/* Whether a folder has the name that older versions of a client give to that of a project. */
static bool is_digest_of(struct wal_slice name, const char *directory)
{
    char text[WAL__DIGEST_HEX_SIZE];

    if (directory == NULL || name.size != sizeof(text) - 1) {
        return false;
    }
    wal__client_digest(wal__slice_from_text(directory), text);
    return wal__slice_equal(name, wal__slice_from_text(text));
}

/* Returns the directory of the project whose folder has a name, in a file of the client, in the
 * arena; NULL: it is not known. */
static char *find_project(struct wal__arena *arena, const char *text, size_t size, const char *key,
                          struct wal_slice name)
{
    struct wal__json_member projects = {.key = key};
    struct wal__json_span directory = {NULL, 0};
    struct wal__json_token token;
    struct wal__json_scan scan;
    char value[WAL__STRING_MAX + 1];

    if (wal__json_members(text, size, &projects, 1, NULL) != WAL__JSON_OK ||
        projects.value.kind != WAL__JSON_OBJECT) {
        return NULL;
    }
    wal__json_scan_init(&scan, projects.value.span.data, projects.value.span.size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_KEY) {
            directory = token.span;
        } else if (token.kind == WAL__JSON_STRING &&
                   wal__string_decode(token.span, WAL__STRING_MAX, value)) {
            char *path = wal__string_copy(arena, directory, WAL__STRING_MAX);

            if (wal__slice_equal(wal__slice_from_text(value), name) || is_digest_of(name, path)) {
                return path;
            }
        }
    }
    return NULL;
}

/* Sets what the probe did not find and the client has in another file. */
static void probe_info(struct wal__import_file *file, const struct wal__client_info *info,
                       const char *text, size_t size, struct wal__file_probe *probe)
{
    struct wal__arena *arena = &file->import->arena.arena;
    struct wal__json_member members[] = {{.key = info->title},
                                         {.key = info->cwd},
                                         {.key = info->created},
                                         {.key = info->agent},
                                         {.key = info->call}};
    char time[WAL__IMPORT_TIME_SIZE];
    bool absent[5];
    int64_t ms;

    for (size_t i = 0; i < 5; i++) {
        absent[i] = members[i].key == NULL;
        members[i].key = absent[i] ? "" : members[i].key;
    }
    if (wal__json_members(text, size, members, 5, NULL) != WAL__JSON_OK) {
        return;
    }
    for (size_t i = 0; i < 5; i++) {
        members[i].value =
            absent[i] ? (struct wal__json_token){.kind = WAL__JSON_NONE} : members[i].value;
    }
    if (info->call != NULL && size <= KEPT_SIZE_MAX && text[0] == '{') {
        file->about.agent = wal__arena_copy(arena, wal__member_string(&members[3]));
        file->about.call = wal__arena_copy(arena, wal__member_string(&members[4]));
        file->about.sidecar =
            wal__arena_copy(arena, (struct wal__json_span){(const uint8_t *)text, size});
    }
    if (info->untitled == NULL || !wal__line_string_is(&members[0], info->untitled)) {
        file->title =
            wal__string_copy(arena, wal__member_string(&members[0]), WAL__LINE_TITLE_SIZE);
    }
    if (probe->cwd == NULL) {
        probe->cwd = wal__string_copy(arena, wal__member_string(&members[1]), WAL__STRING_MAX);
    }
    if (probe->created == NULL && wal__model_time_read(members[2].value.span, &ms)) {
        wal__import_write_time(ms, time);
        probe->created = wal__arena_copy_text(arena, time);
    }
}

void wal__import_probe_path(struct wal__import_file *file, struct wal__file_probe *probe)
{
    struct wal__arena *arena = &file->import->arena.arena;
    const char *below = NULL;
    const struct wal__client *client =
        wal__client_of_source(probe->dialect->name, file->path, &below);
    struct wal__client_ids ids;
    char info[WAL__CLIENT_BELOW_SIZE];
    size_t size = 0;
    char *text;

    if (client == NULL) {
        return;
    }
    ids = wal__client_read_path(client, below);
    if (ids.id.size > 0) {
        probe->session = wal__import_text(arena, ids.id);
    }
    if (ids.starter.size > 0) {
        probe->parent = wal__import_text(arena, ids.starter);
        probe->is_subagent = true;
    }
    if (ids.agent.size > 0 && probe->parent != NULL) {
        size = (size_t)(ids.starter.size + ids.agent.size) + 2;
        probe->session = wal__arena_alloc(arena, size);
        if (probe->session != NULL) {
            (void)snprintf(probe->session, size, "%s~%.*s", probe->parent, WAL_ARG(ids.agent));
        }
    }
    if (client->info.projects != NULL && (probe->cwd != NULL || ids.project.size == 0)) {
        return;
    }
    text = find_info_file(file, client, below, &ids, info)
               ? read_info_file(file->import->heap, info, &size)
               : NULL;
    if (text != NULL && client->info.projects != NULL) {
        probe->cwd = find_project(arena, text, size, client->info.projects, ids.project);
    } else if (text != NULL && strcmp(info + strlen(info) - 5, ".yaml") == 0) {
        struct wal__json_span object = read_yaml(arena, text, size);
        probe_info(file, &client->info, (const char *)object.data, object.size, probe);
    } else if (text != NULL) {
        probe_info(file, &client->info, text, size, probe);
    }
    wal__heap_free(file->import->heap, text);
    file->drops_sidecar = client->info.call != NULL && file->about.sidecar.size == 0 &&
                          wal__client_sidecar(client, file->name, info) && access(info, F_OK) == 0;
    if (ids.starter.size > 0 && ids.id.size == 0) {
        file->title = NULL; /* it is the starter's */
    }
}

/* --- the metadata ---------------------------------------------------------- */

enum wal_status wal__import_update_about(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_METADATA};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__json_member m[] = {{.key = "created"}, {.key = "imported"}, {.key = "partial"}};
    struct wal__arena *arena = &file->import->arena.arena;
    struct wal__import_about about = file->about;
    enum wal_status status;

    file->import->result.left_out[WAL__FILE_OTHER] += file->drops_sidecar ? 1 : 0;
    if (file->is_new || about.sidecar.size == 0) {
        return WAL_OK;
    }
    status = wal_session_get_info(file->session, &info, error);
    if (status != WAL_OK || info.metadata.size == 0 || !wal__import_is_metadata(info.metadata) ||
        wal__json_members(info.metadata.data, (size_t)info.metadata.size, m, 3, NULL) !=
            WAL__JSON_OK) {
        return status;
    }
    about.is_subagent = file->probe.is_subagent;
    about.created = wal__string_copy(arena, wal__member_string(&m[0]), WAL__STRING_MAX);
    about.imported = wal__string_copy(arena, wal__member_string(&m[1]), WAL__STRING_MAX);
    about.missing = wal__string_copy(arena, wal__member_string(&m[2]), WAL__STRING_MAX);
    change.metadata = wal__import_metadata(file->import, &about);
    if (change.metadata.size == 0) {
        return wal__no_memory(error);
    }
    if (about.imported == NULL || wal__slice_equal(change.metadata, info.metadata)) {
        return WAL_OK;
    }
    file->import->must_sync = true;
    return wal_batch_commit(file->session, &batch, &options, NULL, error);
}
