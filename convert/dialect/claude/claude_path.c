/*
 * claude_path.c - paths and ids of sessions of Claude Code.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/dialect/claude/claude_path.h"

#include <string.h>

#include "convert/model/model_path.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"

#define FOLDER_MAX 200 /* UTF-16 units of a folder's name */

static bool is_plain(uint32_t code)
{
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
           (code >= 'a' && code <= 'z');
}

/* Appends the absolute value of the hash in base 36. */
static void add_hash(struct wal__model_path *path, int32_t hash)
{
    uint32_t rest = hash < 0 ? 0 - (uint32_t)hash : (uint32_t)hash;
    char digits[16];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[rest % 36];
        rest /= 36;
    } while (rest > 0);
    wal__model_path_add(path, "-");
    wal__model_path_add(path, digits + at);
}

bool wal__claude_is_id(struct wal__json_span id)
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

void wal__claude_split_id(struct wal__json_span id, struct wal__arena *arena,
                          struct wal__json_span *session,
                          struct wal__json_span *agent)
{
    static const char separator[] = "~agent-";
    const size_t size = sizeof(separator) - 1;

    *session = id;
    *agent = (struct wal__json_span){NULL, 0};
    if (id.size == 0 || memchr(id.data, '\\', id.size) != NULL) {
        return;
    }
    for (size_t i = 1; i + size < id.size; i++) {
        if (memcmp(id.data + i, separator, size) == 0) {
            *session = wal__arena_escape(
                arena, (struct wal__json_span){id.data + 1, i - 1});
            *agent = wal__arena_escape(
                arena,
                (struct wal__json_span){id.data + i + 1, id.size - i - 2});
            return;
        }
    }
}

struct wal__json_span wal__claude_uuid(struct wal__json_span id,
                                       struct wal__arena *arena)
{
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];

    if (wal__claude_is_id(id)) {
        return wal__arena_copy(arena, id);
    }
    hash[0] = wal__model_string_hash(1, id);
    hash[1] = wal__model_string_hash(2, id);
    return wal__arena_copy(
        arena, (struct wal__json_span){(const uint8_t *)text,
                                       wal__model_uuid(hash, text)});
}

/* Appends the folder of a directory: its UTF-16 units, with dashes for all but
 * ASCII letters and digits; a long name is truncated and gets a hash. */
static void add_folder(struct wal__model_path *path, struct wal__json_span cwd)
{
    const uint8_t *at = cwd.size > 2 ? cwd.data + 1 : NULL;
    const uint8_t *end = cwd.size > 2 ? cwd.data + cwd.size - 1 : NULL;
    size_t count = 0;
    int32_t hash = 0;
    uint32_t code;

    while (at < end && wal__json_character_read(&at, end, &code)) {
        uint32_t units[2] = {code, 0};
        unsigned size = code > 0xFFFF ? 2 : 1;
        if (size == 2) {
            units[0] = 0xD800 + ((code - 0x10000) >> 10);
            units[1] = 0xDC00 + ((code - 0x10000) & 0x3FF);
        }
        for (unsigned i = 0; i < size; i++) {
            char name[2] = {(char)(is_plain(units[i]) ? units[i] : '-'), '\0'};
            hash = (int32_t)((uint32_t)hash * 31 + units[i]);
            if (count++ < FOLDER_MAX) {
                wal__model_path_add(path, name);
            }
        }
    }
    if (count == 0) {
        wal__model_path_add(path, "-");
    } else if (count > FOLDER_MAX) {
        add_hash(path, hash);
    }
}

const char *wal__claude_path(const struct wal__model_session *session,
                             uint32_t stream, struct wal__arena *arena)
{
    struct wal__json_span id;
    struct wal__json_span agent;
    struct wal__model_path path;
    const char *given = wal__model_client_path(session, stream, "claude");

    if (given != NULL) {
        return given;
    }
    wal__claude_split_id(session->id, arena, &id, &agent);
    id = wal__claude_uuid(id, arena);
    if (id.data == NULL) {
        return NULL;
    }
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "projects/");
    add_folder(&path, session->cwd);
    wal__model_path_add(&path, "/");
    wal__model_path_add_id(&path, id);
    if (agent.size > 0) {
        wal__model_path_add(&path, "/subagents/");
        wal__model_path_add_id(&path, agent);
    }
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

bool wal__claude_can_copy_verbatim(const struct wal__model_session *session,
                                   struct wal__arena *arena)
{
    struct wal__json_span id;
    struct wal__json_span agent;

    wal__claude_split_id(session->id, arena, &id, &agent);
    return wal__dialect_is(session->dialect, "claude") &&
           wal__claude_is_id(id) && session->raw.size == id.size &&
           memcmp(session->raw.data, id.data, id.size) == 0;
}
