/*
 * copy_names.c - maps the ids of copied lines (copy_names.h).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/copy_names.h"

#include "agentwal/admin.h"
#include "convert/import/copy_walk.h"
#include "convert/import/session_modified.h"
#include "convert/model/model_table.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct wal__copy_names {
    struct wal__model_table ids; /* the id of the entry, by hash */
    struct wal__heap_arena *arena;
    const struct wal__dialect *dialect;
};

static uint64_t name_hash(const char *name)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)name, strlen(name)});
}

static void add_name(struct wal__copy_names *names, const void *data,
                     size_t size, struct wal_slice id)
{
    struct wal__json_span text = wal__line_text(data, size);
    char name[WAL__LINE_ID_SIZE];
    struct wal__line_info line;
    char *copy;

    if (names->dialect->read(text.data, text.size, &line, NULL) !=
            WAL__JSON_OK ||
        !wal__string_decode(line.id, WAL__LINE_ID_SIZE - 1, name) ||
        wal__slice_equal(wal__slice_from_text(name), id)) {
        return;
    }
    copy = wal__arena_alloc(&names->arena->arena, (size_t)id.size + 1);
    if (copy != NULL) {
        memcpy(copy, id.data, (size_t)id.size);
        copy[id.size] = '\0';
        (void)wal__model_table_put(
            &names->ids, name_hash(name),
            (struct wal__json_span){(uint8_t *)copy, (size_t)id.size});
    }
}

/* A wal__entry_payload_fn. */
static bool write_piece(void *ctx, const void *data, size_t size)
{
    const char *bytes = data;

    while (size > 0) {
        ssize_t got = write(*(const int *)ctx, bytes, size);

        if (got <= 0 && errno != EINTR) {
            return false;
        }
        bytes += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Parses a long line from a map, which the system can swap out. */
static void add_long_name(struct wal__copy_names *names,
                          struct wal__source_lines *lines,
                          struct wal_store *store,
                          const struct wal_entry *entry)
{
    int fd = memfd_create("line", MFD_CLOEXEC);
    off_t size;
    void *map;

    if (fd < 0) {
        return;
    }
    if (wal__source_lines_read_payload(lines, store, entry, write_piece, &fd,
                                       NULL) == WAL_OK &&
        (size = lseek(fd, 0, SEEK_END)) > 0) {
        map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            add_name(names, map, (size_t)size, entry->id);
            munmap(map, (size_t)size);
        }
    }
    close(fd);
}

static void load_names(struct wal__copy_names *names, struct wal_store *store,
                       struct wal_session *session)
{
    struct wal__source_lines lines;
    struct wal_entry entry;
    enum wal_status status;

    if (wal__source_lines_open(&lines, names->arena->heap, session, 0, NULL) !=
        WAL_OK) {
        return;
    }
    while (lines.is_copy && !lines.copy.has_ended) {
        status = wal__source_lines_next(&lines, &entry, NULL);
        if (status != WAL_OK && status != WAL_ECORRUPT && status != WAL_EIO) {
            break;
        }
        if (status != WAL_OK || !lines.is_shared ||
            (entry.flags & WAL_ENTRY_REDACTED) != 0) {
            continue;
        }
        if ((entry.flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
            add_long_name(names, &lines, store, &entry);
        } else {
            add_name(names, entry.payload.data, (size_t)entry.payload.size,
                     entry.id);
        }
    }
    wal__source_lines_close(&lines);
}

const char *wal__copy_names_find(struct wal__copy_names **names,
                                 struct wal__heap_arena *arena,
                                 struct wal_store *store,
                                 struct wal_session *session,
                                 const struct wal__dialect *dialect,
                                 const char *id)
{
    struct wal__json_span found;

    if (*names == NULL) {
        *names = wal__arena_alloc(&arena->arena, sizeof(**names));
        if (*names == NULL) {
            return NULL;
        }
        **names = (struct wal__copy_names){.ids = {.arena = &arena->arena},
                                           .arena = arena,
                                           .dialect = dialect};
        load_names(*names, store, session);
    }
    return wal__model_table_get(&(*names)->ids, name_hash(id), &found)
               ? (const char *)found.data
               : NULL;
}
