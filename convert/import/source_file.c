/*
 * source_file.c - the file of a source: its lock, its lines, and what its
 * beginning says of its session (source_file.h).
 *
 * Lines are read from a window. A line larger than the window may grow is
 * returned from a map of the file.
 *
 * Threads: one thread at a time per descriptor or struct.
 */
#include "convert/import/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/map.h"

/* --- regular files ------------------------------------------------------- */

int wal__file_open_regular(int directory, const char *name, struct stat *stat)
{
    int fd =
        openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

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

/* --- the file ------------------------------------------------------------ */

/* 10 seconds */
#define LOCK_DELAY_NS 10000000
#define LOCK_TRIES    1000

enum wal_status wal__source_file_lock(struct wal__import *import, int fd,
                                      const char *name, struct wal_error *error)
{
    const struct timespec delay = {.tv_nsec = LOCK_DELAY_NS};
    enum wal_status status = WAL_OK;

    for (unsigned i = 0; status == WAL_OK && i < LOCK_TRIES &&
                         flock(fd, LOCK_EX | LOCK_NB) != 0 &&
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
        const char *newline;

        if (got < 0 || (size_t)got != part) {
            errno = got < 0 ? errno : ESTALE;
            return -1;
        }
        newline = memrchr(bytes, '\n', part);
        if (newline != NULL) {
            *size -= part - (size_t)(newline + 1 - bytes);
            return 0;
        }
        *size -= part;
    }
    return 0;
}

/* --- lines --------------------------------------------------------------- */

#define WINDOW_SIZE 65536
#define WINDOW_MAX  WAL__PIECE_SIZE

void wal__line_reader_init(struct wal__line_reader *reader,
                           const struct wal__heap *heap, int fd, uint64_t size,
                           bool is_opaque, uint64_t offset)
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

void wal__line_reader_seek(struct wal__line_reader *reader, uint64_t offset,
                           uint64_t line)
{
    unmap(reader);
    reader->offset = offset;
    reader->line = line;
    reader->begin = 0;
    reader->end = 0;
}

static ssize_t read_at(const struct wal__line_reader *reader, char *bytes,
                       size_t size, uint64_t offset)
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

/* Reads more bytes after those in the window. Returns 1 if there were more, 0
 * at the end of the file, -1 if reading failed or the file became shorter. */
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
        size_t capacity =
            reader->capacity > 0 ? 2 * reader->capacity : WINDOW_SIZE;
        char *window =
            wal__heap_resize(reader->heap, reader->window, capacity, 1);
        if (window == NULL) {
            errno = ENOMEM;
            return -1;
        }
        reader->window = window;
        reader->capacity = capacity;
    }
    got = read_at(reader, reader->window + buffered,
                  reader->capacity - buffered, read_offset);
    if (got < 0) {
        return -1;
    }
    reader->end += (size_t)got;
    return 1;
}

static void return_piece(struct wal__line_reader *reader,
                         struct wal__piece *piece, size_t size,
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

/* Advances *offset to the end of the line: its newline, or the end of the file.
 * Overwrites the window. Returns 1, or -1 with errno set. */
static int find_end(struct wal__line_reader *reader, uint64_t *offset,
                    bool *has_newline)
{
    const char *newline = NULL;

    while (newline == NULL && *offset < reader->size) {
        ssize_t got =
            read_at(reader, reader->window, reader->capacity, *offset);

        if (got < 0) {
            return -1;
        }
        newline = memchr(reader->window, '\n', (size_t)got);
        *offset += newline != NULL ? (uint64_t)(newline - reader->window)
                                   : (uint64_t)got;
    }
    *has_newline = newline != NULL;
    return 1;
}

/* Maps the line that begins in the window. Empties the window. */
static int return_mapped(struct wal__line_reader *reader,
                         struct wal__piece *piece)
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
    reader->mapped =
        wal__guarded_map(reader->fd, (off_t)(begin - page_offset),
                         reader->mapped_size, PROT_READ, MAP_PRIVATE);
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
static int next_opaque_piece(struct wal__line_reader *reader,
                             struct wal__piece *piece)
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

        return_piece(reader, piece,
                     buffered < WAL__PIECE_SIZE ? buffered : WAL__PIECE_SIZE,
                     false);
        return 1;
    }
    return 0;
}

int wal__line_reader_next(struct wal__line_reader *reader,
                          struct wal__piece *piece)
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

        if (buffered > scanned) {
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
            return_piece(reader, piece, buffered, false);
            return 1;
        }
    }
}

/* --- the probe ----------------------------------------------------------- */

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
