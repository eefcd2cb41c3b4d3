/*
 * copy_detect.c - decide whether the session of a copied file is kept or
 * created again, and map the ids of copied lines.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agentwal/admin.h"
#include "tools/cli/cli.h"
#include "tools/cli/ids.h"
#include "tools/walconv/import/copy_walk.h"
#include "tools/walconv/import/session_modified.h"

#define SHORT_LINES_MAX 64 /* lines of a session that is not a copy yet */

/* --- state ---------------------------------------------------------------- */

/* *answer: the session consists of copied lines and at most a partial line. */
static enum wal_status is_copy_only(struct wal_session *session, bool *answer,
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
    *answer = *answer && status == WAL_END && lines.native_count == 0;
    cli_lines_close(&lines);
    return status == WAL_ECORRUPT || status == WAL_EIO || status == WAL_END
               ? WAL_OK
               : status;
}

/* As is_copy_only, for a session that is not a copy. */
static bool is_short(const struct cli_match *match)
{
    return match->native_count == 0 && match->lines <= SHORT_LINES_MAX;
}

/*
 * *is_incomplete: the import of the shared lines did not finish.
 * *is_replaceable: the session has little more than a copy's lines, and nobody
 * modified it.
 */
static enum wal_status inspect_session(struct wal_session *session,
                                       const struct cli_match *match,
                                       bool *is_incomplete,
                                       bool *is_replaceable,
                                       struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__copy copy;
    bool is_copy = false;
    bool is_complete = false;
    bool is_modified = false;
    uint64_t begin = 0;
    enum wal_status status = walconv_is_modified(session, &is_modified, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_session_get_info(session, &info, error);
    if (status != WAL_OK || is_modified) {
        return status;
    }
    if ((info.flags & WAL_SESSION_FORK) == 0) {
        *is_replaceable = is_short(match);
        return WAL_OK;
    }
    status = wal__copy_inspect(session, &is_copy, &is_complete, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!is_copy || !is_complete) {
        *is_incomplete =
            !is_complete && (is_copy || info.entries == info.inherited);
        return WAL_OK;
    }
    status = wal__copy_open(&copy, session, NULL, 0, &is_copy, error);
    if (status != WAL_OK) {
        return status;
    }
    begin = copy.first_sequence;
    wal__copy_close(&copy);
    return info.metadata_version < begin
               ? is_copy_only(session, is_replaceable, error)
               : WAL_OK;
}

enum wal_status walconv_copy_detect(struct walconv_copy *copy,
                                    struct wal_session *session,
                                    const struct cli_match *match,
                                    bool *must_delete, struct wal_error *error)
{
    bool is_incomplete = false;
    bool is_replaceable = false;
    enum wal_status status;

    *must_delete = false;
    if (copy->probe->is_opaque) {
        return WAL_OK;
    }
    if (session == NULL) {
        return walconv_copy_find(copy, NULL, error);
    }
    if (match->bytes >= copy->size) {
        return WAL_OK;
    }
    status =
        inspect_session(session, match, &is_incomplete, &is_replaceable, error);
    if (status != WAL_OK || (!is_incomplete && !is_replaceable)) {
        return status;
    }
    if (is_incomplete && wal_session_claim(session, error) == WAL_ECLAIMED) {
        return WAL_ECLAIMED; /* another import is writing it */
    }
    status = walconv_copy_find(copy, session, error);
    *must_delete =
        status == WAL_OK && (is_incomplete || copy->lines > match->lines);
    if (!*must_delete) {
        walconv_copy_deinit(copy);
    }
    return status;
}

/* --- ids of copied lines -------------------------------------------------- */

struct walconv_copy_names {
    struct cli_ids ids; /* the value is an offset in texts */
    char *texts;
    size_t size;
    size_t capacity;
    const struct wal__dialect *dialect;
};

static void add_name(struct walconv_copy_names *names, const void *data,
                     size_t size, struct wal_slice id)
{
    struct wal__json_span text = wal__line_text(data, size);
    char name[WALCONV_ID_SIZE];
    struct wal__line_info line;

    if (names->dialect->read(text.data, text.size, &line, NULL) !=
            WAL__JSON_OK ||
        !walconv_decode_text(line.id, WALCONV_ID_SIZE - 1, name) ||
        cli_slice_equal(cli_slice(name), id) ||
        names->size > UINT32_MAX - 512) {
        return;
    }
    while (names->capacity - names->size < WALCONV_ID_SIZE) {
        names->capacity = 2 * names->capacity + 65536;
        names->texts = cli_realloc(names->texts, names->capacity);
    }
    *cli_ids_get_or_add(&names->ids, cli_slice(name)) = (uint32_t)names->size;
    memcpy(names->texts + names->size, id.data, (size_t)id.size);
    names->size += (size_t)id.size;
    names->texts[names->size++] = '\0';
}

static bool write_piece(void *ctx, const void *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size;
}

/* A long line is parsed from a mapped temporary file, to bound memory. */
static void add_long_name(struct walconv_copy_names *names,
                          struct cli_lines *lines, struct wal_store *store,
                          const struct wal_entry *entry)
{
    FILE *file = tmpfile();
    long size;
    void *map;

    if (file == NULL) {
        return;
    }
    if (cli_lines_read_payload(lines, store, entry, write_piece, file, NULL) ==
            WAL_OK &&
        fflush(file) == 0 && (size = ftell(file)) > 0) {
        map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
        if (map != MAP_FAILED) {
            add_name(names, map, (size_t)size, entry->id);
            munmap(map, (size_t)size);
        }
    }
    fclose(file);
}

static void load_names(struct walconv_copy_names *names,
                       struct wal_store *store, struct wal_session *session)
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
            add_long_name(names, &lines, store, &entry);
        } else {
            add_name(names, entry.payload.data, (size_t)entry.payload.size,
                     entry.id);
        }
    }
    cli_lines_close(&lines);
}

const char *walconv_copy_names_find(struct walconv_copy_names **names,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    const struct wal__dialect *dialect,
                                    const char *id)
{
    const uint32_t *offset;

    if (*names == NULL) {
        *names = cli_alloc(sizeof(**names));
        **names = (struct walconv_copy_names){.dialect = dialect};
        load_names(*names, store, session);
    }
    offset = cli_ids_find(&(*names)->ids, cli_slice(id));
    return offset != NULL ? (*names)->texts + *offset : NULL;
}

void walconv_copy_names_destroy(struct walconv_copy_names *names)
{
    if (names != NULL) {
        cli_ids_deinit(&names->ids);
        free(names->texts);
        free(names);
    }
}
