/*
 * walconv_copy_state - what became of a session that is a copy, and what its
 * lines are called in its file.
 *
 * Threads: a tool is one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/cli.h"
#include "tools/cli_ids.h"
#include "tools/walconv_copy_walk.h"
#include "tools/walconv_touch.h"

#define LITTLE_LINES 64 /* of a session that is no copy yet */

/* --- state ---------------------------------------------------------------- */

/* Whether nothing is in the session but what was copied, and at most the
 * beginning of a line. */
static enum wal_status has_copy_alone(struct wal_session *session, bool *answer,
                                      struct wal_error *error)
{
    struct cli_lines lines;
    struct wal_entry entry;
    enum wal_status status = cli_lines_open(&lines, session, 0, error);

    if (status != WAL_OK) {
        return status;
    }
    *answer = true;
    while (*answer &&
           (status = cli_lines_next(&lines, &entry, error)) == WAL_OK) {
        *answer = !lines.copy.has_ended || !cli_line_has_newline(&entry);
    }
    *answer = *answer && status == WAL_END && lines.natives == 0;
    cli_lines_close(&lines);
    return status == WAL_ECORRUPT || status == WAL_EIO || status == WAL_END
               ? WAL_OK
               : status;
}

/* The same for a session that is no copy yet. */
static bool is_little(const struct cli_match *match)
{
    return match->natives == 0 && match->lines <= LITTLE_LINES;
}

/*
 * *is_begun: its import did not come to the end of what it shares; *is_bare: it
 * has little but a copy's lines, and nobody did anything with it.
 */
static enum wal_status find_state(struct wal_session *session,
                                  const struct cli_match *match, bool *is_begun,
                                  bool *is_bare, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__copy copy;
    bool is_copy = false;
    bool is_whole = false;
    bool is_touched = false;
    uint64_t begin = 0;
    enum wal_status status = walconv_is_touched(session, &is_touched, error);

    if (status == WAL_OK) {
        status = wal_session_status(session, &info, error);
    }
    if (status != WAL_OK || is_touched) {
        return status;
    }
    if ((info.flags & WAL_SESSION_FORK) == 0) {
        *is_bare = is_little(match);
        return WAL_OK;
    }
    status = wal__copy_look(session, &is_copy, &is_whole, error);
    if (status != WAL_OK || !is_copy || !is_whole) {
        *is_begun = status == WAL_OK && !is_whole &&
                    (is_copy || info.entries == info.inherited);
        return status;
    }
    status = wal__copy_open(&copy, session, NULL, 0, &is_copy, error);
    if (status == WAL_OK) {
        begin = copy.begin;
        wal__copy_close(&copy);
    }
    if (status == WAL_OK && info.metadata_version < begin) {
        status = has_copy_alone(session, is_bare, error);
    }
    return status;
}

enum wal_status walconv_copy_consider(struct walconv_copy *copy,
                                      struct wal_session *session,
                                      const struct cli_match *match,
                                      bool *drops, struct wal_error *error)
{
    bool is_begun = false;
    bool is_bare = false;
    enum wal_status status = WAL_OK;

    *drops = false;
    if (copy->survey->is_whole) {
        return WAL_OK;
    }
    if (session == NULL) {
        return walconv_copy_find(copy, NULL, error);
    }
    if (match->bytes < copy->size) {
        status = find_state(session, match, &is_begun, &is_bare, error);
    }
    if (status != WAL_OK || (!is_begun && !is_bare)) {
        return status;
    }
    if (is_begun && wal_session_claim(session, error) == WAL_ECLAIMED) {
        return WAL_ECLAIMED; /* another import is at it */
    }
    status = walconv_copy_find(copy, session, error);
    *drops = status == WAL_OK && (is_begun || copy->lines > match->lines);
    if (!*drops) {
        walconv_copy_deinit(copy);
    }
    return status;
}

/* --- names ---------------------------------------------------------------- */

struct walconv_names {
    struct cli_ids ids; /* the value is a place in texts */
    char *texts;
    size_t size;
    size_t capacity;
    const struct wal__dialect *dialect;
};

static void take_name(struct walconv_names *names, const void *data,
                      size_t size, struct wal_slice id)
{
    struct wal__json_span text = wal__line_text(data, size);
    char name[WALCONV_ID_SIZE];
    struct wal__line line;

    if (names->dialect->read(text.data, text.size, &line, NULL) !=
            WAL__JSON_OK ||
        !walconv_name(line.id, WALCONV_ID_SIZE - 1, name) ||
        cli_slice_equal(cli_slice(name), id) ||
        names->size > UINT32_MAX - 512) {
        return;
    }
    while (names->capacity - names->size < WALCONV_ID_SIZE) {
        names->capacity = 2 * names->capacity + 65536;
        names->texts = cli_grow(names->texts, names->capacity);
    }
    *cli_ids_put(&names->ids, cli_slice(name)) = (uint32_t)names->size;
    memcpy(names->texts + names->size, id.data, (size_t)id.size);
    names->size += (size_t)id.size;
    names->texts[names->size++] = '\0';
}

static bool write_piece(void *ctx, const void *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size;
}

/* A long line is looked at in a file, so that memory stays bounded. */
static void take_long(struct walconv_names *names, struct cli_lines *lines,
                      struct wal_store *store, const struct wal_entry *entry)
{
    FILE *file = tmpfile();
    long size;
    void *map;

    if (file == NULL) {
        return;
    }
    if (cli_lines_pass(lines, store, entry, write_piece, file, NULL) ==
            WAL_OK &&
        fflush(file) == 0 && (size = ftell(file)) > 0) {
        map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
        if (map != MAP_FAILED) {
            take_name(names, map, (size_t)size, entry->id);
            munmap(map, (size_t)size);
        }
    }
    fclose(file);
}

static void load(struct walconv_names *names, struct wal_store *store,
                 struct wal_session *session)
{
    struct cli_lines lines;
    struct wal_entry entry;
    enum wal_status status;

    if (cli_lines_open(&lines, session, 0, NULL) != WAL_OK) {
        return;
    }
    while (lines.is_copy && !lines.copy.has_ended) {
        status = cli_lines_next(&lines, &entry, NULL);
        if (status != WAL_OK && status != WAL_ECORRUPT && status != WAL_EIO) {
            break;
        }
        if (status != WAL_OK || !lines.is_shared ||
            (entry.flags & WAL_ENTRY_REDACTED) != 0) {
            continue;
        }
        if ((entry.flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
            take_long(names, &lines, store, &entry);
        } else {
            take_name(names, entry.payload.data, (size_t)entry.payload.size,
                      entry.id);
        }
    }
    cli_lines_close(&lines);
}

const char *walconv_names_find(struct walconv_names **names,
                               struct wal_store *store,
                               struct wal_session *session,
                               const struct wal__dialect *dialect,
                               const char *id)
{
    const uint32_t *place;

    if (*names == NULL) {
        *names = cli_alloc(sizeof(**names));
        **names = (struct walconv_names){.dialect = dialect};
        load(*names, store, session);
    }
    place = cli_ids_find(&(*names)->ids, cli_slice(id));
    return place != NULL ? (*names)->texts + *place : NULL;
}

void walconv_names_free(struct walconv_names *names)
{
    if (names != NULL) {
        cli_ids_deinit(&names->ids);
        free(names->texts);
        free(names);
    }
}
