/*
 * copy_origin.c - find the ids of sessions that a file's first lines name.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/copy_origin.h"

#include <string.h>

#include "convert/import/file_probe.h"
#include "convert/import/line_reader.h"

enum {
    SCAN_LINES_MAX = 16,
    SCAN_SIZE_MAX = 1 << 20,
    ID_MAX = 255,
    PATH_MAX_SIZE = 4096
};

/* Members that name an origin by id or by the path of its file. */
static const struct wal__json_member origin_members[] = {
    {.parent = "forkedFrom", .key = "sessionId"},
    {.parent = "payload", .key = "forked_from_id"},
    {.key = "forked_from_id"},
    {.key = "parentSession"},
    {.parent = "payload", .key = "parentSession"},
    {.key = "branchedFrom"},
    {.key = "parent_session_id"},
};

enum {
    ORIGIN_MEMBERS = sizeof(origin_members) / sizeof(origin_members[0])
};

void wal__copy_origins_add(struct wal__heap_arena *arena,
                           struct wal__copy_origins *origins, const char *text,
                           size_t size)
{
    char *id;

    if (text == NULL || size == 0 || size > ID_MAX ||
        origins->count == WAL__COPY_ORIGINS) {
        return;
    }
    for (size_t i = 0; i < origins->count; i++) {
        if (strlen(origins->ids[i]) == size &&
            memcmp(origins->ids[i], text, size) == 0) {
            return;
        }
    }
    id = wal__arena_alloc(&arena->arena, size + 1);
    if (id != NULL) {
        memcpy(id, text, size);
        id[size] = '\0';
        origins->ids[origins->count++] = id;
    }
}

/* Adds the ids in a path; the file is named ID.jsonl or TIME_ID.jsonl. */
static void add_path(struct wal__heap_arena *arena,
                     struct wal__copy_origins *origins, const char *text)
{
    const char *slash = strrchr(text, '/');
    const char *base = slash != NULL ? slash + 1 : text;
    const char *dot = strrchr(base, '.');
    size_t size = dot != NULL ? (size_t)(dot - base) : strlen(base);
    const char *underscore = memrchr(base, '_', size);

    if (underscore != NULL) {
        wal__copy_origins_add(arena, origins, underscore + 1,
                              size - (size_t)(underscore + 1 - base));
    }
    wal__copy_origins_add(arena, origins, base, size);
}

static void read_line(struct wal__heap_arena *arena,
                      struct wal__copy_origins *origins,
                      const struct wal__piece *piece)
{
    struct wal__json_span text = wal__line_text(piece->data, piece->size);
    struct wal__json_member members[ORIGIN_MEMBERS];

    memcpy(members, origin_members, sizeof(members));
    if (wal__line_members(text.data, text.size, members, ORIGIN_MEMBERS,
                          NULL) != WAL__JSON_OK) {
        return;
    }
    for (size_t i = 0; i < ORIGIN_MEMBERS; i++) {
        char *name =
            members[i].value.kind == WAL__JSON_STRING
                ? wal__string_copy(&arena->arena, members[i].value.span,
                                   PATH_MAX_SIZE)
                : NULL;

        if (name != NULL && strchr(name, '/') == NULL) {
            wal__copy_origins_add(arena, origins, name, strlen(name));
        }
        if (name != NULL && strstr(name, ".json") != NULL) {
            add_path(arena, origins, name);
        }
    }
}

int wal__copy_origins_read(struct wal__heap_arena *arena, int fd, uint64_t size,
                           struct wal__copy_origins *origins)
{
    struct wal__line_reader reader;
    struct wal__piece piece;
    int got;

    wal__line_reader_init(&reader, arena->heap, fd,
                          size < SCAN_SIZE_MAX ? size : SCAN_SIZE_MAX, false,
                          0);
    while ((got = wal__line_reader_next(&reader, &piece)) > 0 &&
           reader.line <= SCAN_LINES_MAX) {
        read_line(arena, origins, &piece);
    }
    wal__line_reader_deinit(&reader);
    return got < 0 ? -1 : 0;
}

bool wal__copy_origins_are_missing(const struct wal__copy_origins *origins,
                                   struct wal_store *store)
{
    struct wal_session *session = NULL;

    for (size_t i = 0; i < origins->count; i++) {
        if (wal_session_open(store, wal__slice_from_text(origins->ids[i]),
                             &session, NULL) == WAL_OK) {
            wal_session_close(session);
            return false;
        }
    }
    return origins->count > 0;
}
