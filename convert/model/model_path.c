/*
 * model_path.c - builds paths of session files (model_path.h).
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/model_path.h"

#include <string.h>

#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/payload/timestamp.h"

static void append(struct wal__model_path *path, const void *data, size_t size)
{
    if (path->text == NULL) {
        return;
    }
    if (path->capacity - path->size <= size) {
        size_t capacity = 2 * (path->capacity + size);
        char *text = wal__arena_alloc(path->arena, capacity);
        if (text != NULL) {
            memcpy(text, path->text, path->size);
        }
        path->text = text;
        path->capacity = capacity;
        if (text == NULL) {
            return;
        }
    }
    WAL__ASSERT(size < path->capacity - path->size);
    memcpy(path->text + path->size, data, size);
    path->size += size;
    path->text[path->size] = '\0';
}

void wal__model_path_init(struct wal__model_path *path,
                          struct wal__arena *arena)
{
    *path = (struct wal__model_path){.arena = arena, .capacity = 256};
    path->text = wal__arena_calloc(arena, path->capacity);
}

void wal__model_path_add(struct wal__model_path *path, const char *text)
{
    append(path, text, strlen(text));
}

void wal__model_path_add_string(struct wal__model_path *path,
                                struct wal__json_span string,
                                bool (*is_plain)(uint8_t byte), char other)
{
    struct wal__json_span text = wal__arena_unescape(path->arena, string);

    for (size_t i = 0; i < text.size; i++) {
        append(path,
               is_plain(text.data[i]) ? (const char *)&text.data[i] : &other,
               1);
    }
}

/* The maximum size of a folder's name between its dashes, from the limit of
 * file systems, and the size to which a longer name is truncated. */
#define FOLDER_MAX       251
#define FOLDER_TRUNCATED 200

static bool is_name_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_' ||
           byte == '.' || byte == '~' || byte >= 0x80;
}

/* Appends a hash that distinguishes names whose text was changed. */
static void add_hash(struct wal__model_path *path, struct wal__json_span text)
{
    uint64_t value = wal__model_hash(0, text);
    char hash[17] = "-";

    for (size_t i = 0; i < 16; i++) {
        hash[1 + i] = "0123456789abcdef"[value >> (60 - 4 * i) & 0xF];
    }
    append(path, hash, sizeof(hash));
}

void wal__model_path_add_id(struct wal__model_path *path,
                            struct wal__json_span id)
{
    struct wal__json_span text = wal__arena_unescape(path->arena, id);
    const struct wal__json_span head = {text.data,
                                        text.size < 160 ? text.size : 160};
    bool is_plain = text.size > 0 && text.size <= 160 && text.data[0] != '.';

    for (size_t i = 0; i < text.size; i++) {
        is_plain = is_plain && is_name_byte(text.data[i]);
    }
    if (is_plain) {
        append(path, text.data, text.size);
        return;
    }
    for (size_t i = 0; i < head.size; i++) {
        bool is_safe = is_name_byte(head.data[i]) && head.data[i] < 0x80 &&
                       (i > 0 || head.data[i] != '.');
        append(path, is_safe ? (const char *)&head.data[i] : "_", 1);
    }
    add_hash(path, text);
}

void wal__model_path_add_time(struct wal__model_path *path,
                              struct wal__json_span time, bool has_ms)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms = 0;

    (void)wal__model_time_read(time, &ms);
    (void)wal__model_time_write(ms, text);
    for (size_t i = 0; i < sizeof(text); i++) {
        if (text[i] == ':' || text[i] == '.') {
            text[i] = '-';
        }
    }
    append(path, text + 1, has_ms ? 24 : 19);
}

const char *wal__model_client_path(const struct wal__model_session *session,
                                   uint32_t stream, const char *dialect)
{
    return stream == 0 && session->file.size > 0 &&
                   strcmp(session->file_dialect, dialect) == 0
               ? (const char *)session->file.data
               : NULL;
}

const char *wal__model_dashed_path(const struct wal__model_session *session,
                                   bool (*is_plain)(uint8_t byte), bool has_ms,
                                   struct wal__arena *arena)
{
    struct wal__json_span cwd = session->cwd;
    struct wal__json_span text;
    struct wal__model_path path;
    size_t begin;

    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "sessions/--");
    if (cwd.size > 2 && cwd.data[1] == '/') {
        cwd = wal__arena_escape(
            arena, (struct wal__json_span){cwd.data + 2, cwd.size - 3});
    }
    begin = path.size;
    wal__model_path_add_string(&path, cwd, is_plain, '-');
    if (path.text != NULL && path.size - begin > FOLDER_MAX) {
        text = wal__arena_unescape(arena, cwd);
        path.size = begin + FOLDER_TRUNCATED;
        while ((path.text[path.size] & 0xC0) == 0x80) {
            path.size--; /* not inside a character */
        }
        add_hash(&path, text);
    }
    wal__model_path_add(&path, "--/");
    wal__model_path_add_time(&path, session->time, has_ms);
    wal__model_path_add(&path, "_");
    wal__model_path_add_id(&path, session->id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

bool wal__model_is_uuid(struct wal__json_span id)
{
    if (id.size != 38) {
        return false;
    }
    for (size_t i = 1; i < 37; i++) {
        bool is_dash = i == 9 || i == 14 || i == 19 || i == 24;
        uint8_t low = id.data[i] | 0x20;
        bool is_digit = (id.data[i] >= '0' && id.data[i] <= '9') ||
                        (low >= 'a' && low <= 'f');
        if (is_dash ? id.data[i] != '-' : !is_digit) {
            return false;
        }
    }
    return true;
}

struct wal__json_span wal__model_session_uuid(struct wal__json_span id,
                                              struct wal__arena *arena)
{
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];

    if (wal__model_is_uuid(id)) {
        return wal__arena_copy(arena, id);
    }
    hash[0] = wal__model_string_hash(1, id);
    hash[1] = wal__model_string_hash(2, id);
    return wal__arena_copy(
        arena, (struct wal__json_span){(const uint8_t *)text,
                                       wal__model_uuid(hash, text)});
}
