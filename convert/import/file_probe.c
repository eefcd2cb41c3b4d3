/*
 * file_probe.c - detects a file's dialect and session from its beginning.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/file_probe.h"

#include <string.h>

#define RECOGNISE_LINES 64 /* lines that are used to detect the dialect */
#define PARENT_LINES    16 /* lines that may name the forked session */
#define TEXT_MAX        4096
#define ID_MAX          255

static void set_once(struct wal__arena *arena, char **text,
                     struct wal__json_span string, size_t max)
{
    if (*text == NULL) {
        *text = wal__string_copy(arena, string, max);
    }
}

/* Members that name the session that a client forked, by its id or the path of
 * its file. */
static const struct wal__json_member parent_members[] = {
    {.parent = "forkedFrom", .key = "sessionId"},
    {.parent = "payload", .key = "forked_from_id"},
    {.key = "forked_from_id"},
    {.key = "parentSession"},
    {.parent = "payload", .key = "parentSession"},
    {.key = "branchedFrom"},
    {.key = "parent_session_id"},
};

enum {
    PARENT_MEMBERS = sizeof(parent_members) / sizeof(parent_members[0])
};

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

static void probe_parent(struct wal__arena *arena,
                         struct wal__file_probe *probe,
                         struct wal__json_span text)
{
    struct wal__json_member members[PARENT_MEMBERS];

    memcpy(members, parent_members, sizeof(members));
    if (wal__line_members(text.data, text.size, members, PARENT_MEMBERS,
                          NULL) != WAL__JSON_OK) {
        return;
    }
    for (size_t i = 0; probe->parent == NULL && i < PARENT_MEMBERS; i++) {
        char *name = wal__string_copy(arena, members[i].value.span, TEXT_MAX);

        if (name != NULL &&
            (strchr(name, '/') != NULL || strstr(name, ".json") != NULL)) {
            name = id_of_path(name);
        }
        if (name != NULL && name[0] != '\0' && strlen(name) <= ID_MAX &&
            (probe->session == NULL || strcmp(name, probe->session) != 0)) {
            probe->parent = name;
        }
    }
}

static void probe_line(struct wal__arena *arena, struct wal__file_probe *probe,
                       struct wal__json_span text, uint64_t number,
                       const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = probe->dialect;
    struct wal__line_info line;

    if (dialect == NULL && forced == NULL &&
        probe->nonblank <= RECOGNISE_LINES) {
        dialect =
            wal__dialect_recognise(text.data, text.size, probe->nonblank == 1);
        probe->dialect = dialect;
    }
    if (dialect == NULL) {
        dialect = &wal__dialect_lines;
    }
    if (dialect->read(text.data, text.size, &line, NULL) != WAL__JSON_OK) {
        return;
    }
    probe->first = probe->parsed++ == 0 ? number : probe->first;
    probe->has_mainline |= line.is_in_conversation && !line.is_sidechain;
    probe->has_sidechain |= line.is_sidechain;
    set_once(arena, &probe->session, line.session, ID_MAX);
    set_once(arena, &probe->cwd, line.cwd, TEXT_MAX);
    set_once(arena, &probe->created, line.time, 64);
    if (probe->nonblank <= PARENT_LINES) {
        probe_parent(arena, probe, text);
    }
}

/* Returns true if more lines cannot change the result, except `end`. */
static bool is_decided(const struct wal__file_probe *probe)
{
    return probe->nonblank >= RECOGNISE_LINES && probe->dialect != NULL &&
           probe->session != NULL && probe->cwd != NULL &&
           probe->created != NULL && probe->has_mainline;
}

static int probe_lines(struct wal__arena *arena,
                       struct wal__line_reader *reader,
                       const struct wal__dialect *forced,
                       struct wal__file_probe *probe)
{
    struct wal__piece piece;
    int got;

    while ((got = wal__line_reader_next(reader, &piece)) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        if (!wal__line_is_blank(text.data, text.size)) {
            probe->nonblank++;
            probe_line(arena, probe, text, reader->line, forced);
        }
        if (is_decided(probe) || reader->line == WAL__PROBE_LINES ||
            reader->offset >= WAL__PROBE_SIZE) {
            break;
        }
    }
    probe->end = reader->offset;
    probe->is_at_end = reader->offset == reader->size;
    return got < 0 ? got : 0;
}

int wal__file_probe(struct wal__heap_arena *arena, int fd, uint64_t size,
                    const struct wal__dialect *forced,
                    struct wal__file_probe *probe)
{
    struct wal__line_reader reader;
    int got;

    probe->dialect = forced;
    wal__line_reader_init(&reader, arena->heap, fd, size, false, 0);
    got = probe_lines(&arena->arena, &reader, forced, probe);
    wal__line_reader_deinit(&reader);
    if (probe->dialect == NULL) {
        probe->dialect = &wal__dialect_lines;
    }
    probe->is_opaque = 2 * probe->parsed < probe->nonblank;
    return got;
}

int wal__file_count_lines(const struct wal__heap *heap, int fd, uint64_t size,
                          uint64_t *lines)
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

bool wal__file_probe_equal(const struct wal__file_probe *a,
                           const struct wal__file_probe *b)
{
    return a->dialect == b->dialect && a->is_opaque == b->is_opaque &&
           a->has_mainline == b->has_mainline &&
           a->has_sidechain == b->has_sidechain &&
           is_same(a->session, b->session) && is_same(a->cwd, b->cwd) &&
           is_same(a->created, b->created) && is_same(a->parent, b->parent);
}
