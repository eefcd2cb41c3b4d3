/*
 * file_import.c - imports one file: as one session, as a stream of one, or as a view of one
 * (file_import.h).
 *
 * A session that an import created is created again when the file was incomplete before and reads
 * otherwise now; not if anything but imports wrote to it. What is read of a session to decide that
 * holds as long as its last_sequence, which is read before, and by which the session is deleted.
 */
#include "convert/import/file_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/convert.h"
#include "convert/clients/client.h"
#include "convert/import/import.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "convert/source/source_lines.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/json/json_scan.h"
#include "format/payload/timestamp.h"

/* --- the session that a file continues ----------------------------------- */

#define FILE_ID_MAX 200 /* bytes of an id that is a file's name */

/* Compares the file with a session's lines, of its source or of the file with the id, of which
 * others may append more meanwhile. */
static enum wal_status match_source(struct wal__import_file *file, struct wal_session *session,
                                    const char *id, struct wal__source_match *match,
                                    struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    file->seen = info.last_sequence;
    if (status == WAL_OK) {
        status = wal__source_compare(file->import->heap, file->import->store, session, 0, id,
                                     file->fd, match, error);
    }
    if (status == WAL_OK && file->probe.is_whole && match->entries == 1 && match->is_redacted) {
        match->bytes = file->size; /* of an object in several lines, whatever it has now */
    }
    return status;
}

/* Finds the session that the file continues among those of a dialect. If there is none,
 * file->session stays NULL and file->source is the first unused source. */
static enum wal_status find_in_dialect(struct wal__import_file *file, const char *dialect,
                                       struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct wal__source_match match;
    enum wal_status status;

    for (uint64_t ordinal = 0;; ordinal++) {
        if (!wal__source_text(file->source, dialect, ordinal, file->path)) {
            return wal__fail(error, WAL_ETOOBIG, "%s", wal_status_text(WAL_ETOOBIG));
        }
        status = wal__session_open_source(file->import->store, file->source, &session, error);
        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_OK : status;
        }
        match = (struct wal__source_match){.issues = NULL};
        status = match_source(file, session, NULL, &match, error);
        if (status == WAL_OK && match.is_prefix) {
            file->session = session;
            file->lines.match = match;
            return WAL_OK;
        }
        wal__source_match_deinit(&match);
        wal_session_close(session);
        if (status != WAL_OK) {
            return status;
        }
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Size of a file's name without its ending. */
static size_t stem_size(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL ? (size_t)(dot - name) : strlen(name);
}

static bool is_stem(const char *id, const char *name)
{
    size_t size = stem_size(name);

    return strlen(id) == size && memcmp(id, name, size) == 0;
}

/* Makes the file's name the session's id where the client knows it by that, and the id that its
 * lines state that of the parent. */
static void probe_name(const struct wal__import_file *file, struct wal__file_probe *probe)
{
    const char *name;
    char id[40];

    if (!probe->dialect->has_id_in_name) {
        return;
    }
    name = base_name(file->path);
    (void)snprintf(id, sizeof(id), "\"%.*s\"", (int)stem_size(name), name);
    if (!wal__model_is_uuid(wal__model_literal(id)) ||
        (probe->session != NULL && is_stem(probe->session, name))) {
        return;
    }
    probe->stated = probe->session;
    if (probe->parent == NULL) {
        probe->parent = probe->session;
    }
    probe->session = wal__string_copy(&file->import->arena.arena, wal__model_literal(id), 36);
}

/* For the parts: the id that the file suggests: its session's id; for a file of a side chain, that
 * and the file's name. NULL: none, or no memory. */
static const char *file_id(const struct wal__import_file *file)
{
    const struct wal__file_probe *probe = &file->probe;
    const char *base = base_name(file->path);
    size_t base_size = stem_size(base);
    bool is_side_chain = probe->session != NULL && !probe->has_mainline && probe->has_sidechain &&
                         !is_stem(probe->session, base);
    size_t size;
    char *id;

    if (!is_side_chain && (probe->session != NULL || !file->import->matches_ids || base_size == 0 ||
                           base_size > FILE_ID_MAX)) {
        return probe->session;
    }
    size = (is_side_chain ? strlen(probe->session) : 0) + base_size + 2;
    id = wal__arena_alloc(&file->import->arena.arena, size);
    if (id != NULL) {
        snprintf(id, size, "%s%s%.*s", is_side_chain ? probe->session : "",
                 is_side_chain ? "~" : "", (int)base_size, base);
    }
    return id;
}

/* Returns true if the session's file is in another folder of the client, too: each is a session
 * then. It is not after a rename, of a copy of all folders, and through a link to the other one. */
static bool has_sibling(const struct wal__import_file *file, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char other[WAL__SOURCE_SIZE_MAX + 1];
    struct wal__source source;
    struct stat here;
    struct stat there;

    return file->import->placed != NULL && wal_session_get_info(session, &info, NULL) == WAL_OK &&
           wal__source_parse(info.source, &source) &&
           wal__source_sibling(file->name, file->path, source.path, other) &&
           lstat(other, &there) == 0 && S_ISREG(there.st_mode) && fstat(file->fd, &here) == 0 &&
           (here.st_dev != there.st_dev || here.st_ino != there.st_ino);
}

/* Opens the session of this id if the file continues it, or if it begins with the file's lines:
 * *is_covered. */
static enum wal_status match_id(struct wal__import_file *file, const char *id, bool *is_covered,
                                struct wal_error *error)
{
    struct wal__source_match match = {.issues = NULL};
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(file->import->store, wal__slice_from_text(id), &session, error);

    *is_covered = false;
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND || status == WAL_EINVAL ? WAL_OK : status;
    }
    if (wal__import_place_of(file, session) == WAL__PLACE_SAME) {
        bool is_copy = has_sibling(file, session);

        status = match_source(file, session, NULL, &match, error);
        if (status == WAL_OK && is_copy && file->original == NULL &&
            (match.entries > 1 || match.is_prefix)) {
            file->original = wal__arena_copy_text(&file->import->arena.arena, id);
        }
        *is_covered = status == WAL_OK && match.is_covered && !is_copy;
        if (status == WAL_OK && (match.is_prefix || match.is_covered) && !is_copy) {
            file->session = session;
            file->lines.match = match;
            return WAL_OK;
        }
    }
    wal__source_match_deinit(&match);
    wal_session_close(session);
    return status;
}

/* For the parts: closes the session, and forgets what was found of it. */
static void forget_session(struct wal__import_file *file)
{
    wal__source_match_deinit(&file->lines.match);
    file->lines.match = (struct wal__source_match){.entries = 0};
    file->lines.file[0] = '\0';
    wal_session_close(file->session);
    file->session = NULL;
}

/* Finds the session that the file continues among those of an id, wherever the file was when they
 * were imported; or else one that begins with it. */
static enum wal_status find_by_id(struct wal__import_file *file, const char *base,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    char covering[WAL__SOURCE_SIZE_MAX] = "";
    char id[WAL__SOURCE_SIZE_MAX];

    for (unsigned n = 1;
         base != NULL && n <= WAL__IMPORT_ID_TRIES && status == WAL_OK && file->session == NULL;
         n++) {
        bool is_covered;

        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", base, n);
        status = match_id(file, id, &is_covered, error);
        if (status == WAL_OK && is_covered) {
            forget_session(file);
            memcpy(covering, id, sizeof(covering));
        }
    }
    if (status == WAL_OK && file->session == NULL && covering[0] != '\0') {
        status = match_id(file, covering, &file->is_covered, error);
    }
    return status;
}

/* Sets file->source to that of the session. */
static enum wal_status read_source(struct wal__import_file *file, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(file->session, &info, error);

    if (status == WAL_OK) {
        snprintf(file->source, sizeof(file->source), "%.*s", (int)info.source.size,
                 (const char *)info.source.data);
    }
    return status;
}

/* For the parts: opens the session that the file continues and sets its source. If there is none,
 * file->session stays NULL and free_source is the first unused source. */
static enum wal_status find_session(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__dialect *own = file->probe.dialect;
    const struct wal__dialect *dialect;
    enum wal_status status = find_in_dialect(file, own->name, error);

    if (status != WAL_OK) {
        return status;
    }
    memcpy(file->free_source, file->source, sizeof(file->source));
    for (size_t i = 0; status == WAL_OK && file->session == NULL && file->import->forced == NULL &&
                       (dialect = wal__dialect_at(i)) != NULL;
         i++) {
        if (dialect != own) {
            status = find_in_dialect(file, dialect->name, error);
        }
    }
    if (status == WAL_OK && file->session == NULL && file->import->matches_ids) {
        status = find_by_id(file, file_id(file), error);
        if (status == WAL_OK && file->session == NULL) {
            /* An older library gave it that one. */
            status = find_by_id(file, file->probe.stated, error);
        }
        if (status == WAL_OK && file->session != NULL) {
            status = read_source(file, error);
        }
    }
    return status;
}

/* --- what a file goes on from -------------------------------------------- */

/* Finds the session of other files of the file's thread: that of the id which the file states, and
 * which is not the file's; or one that is partial for want of this file. If it has lines of the
 * file it is the file's session. */
static enum wal_status find_thread(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__file_probe *probe = &file->probe;
    struct wal__source_match match = {.issues = NULL};
    char missing[WAL__STRING_MAX + 1];
    bool is_wanted;
    bool is_other;
    enum wal_status status;

    if (file->id[0] == '\0' || probe->session == NULL) {
        return WAL_OK;
    }
    is_other = probe->base != NULL && strcmp(file->id, probe->session) != 0;
    file->thread = wal__import_open_of_dialect(file, probe->session);
    if (file->thread == NULL) {
        return WAL_OK;
    }
    status = match_source(file, file->thread, file->id, &match, error);
    is_wanted = strcmp(file->id, probe->session) == 0 &&
                wal__import_is_partial(file->thread, missing) && strcmp(missing, file->id) == 0;
    if (status == WAL_OK && match.entries > 0 && (match.is_prefix || match.is_covered)) {
        /* Its lines are where they should not be while those after them can be made anew. */
        file->is_deferred = is_wanted && file->import->defers;
        file->session = file->thread;
        file->thread = NULL;
        file->is_other = true;
        file->is_covered = match.is_covered;
        file->lines.match = match;
        return WAL_OK;
    }
    if (status != WAL_OK || match.entries > 0 || !(is_wanted || is_other)) {
        wal_session_close(file->thread);
        file->thread = NULL;
    }
    wal__source_match_deinit(&match);
    return status;
}

/* --- the import of a file ------------------------------------------------ */

#define REPLACED_SIZE_MAX ((uint64_t)64 << 20) /* of an opaque file */
#define CHECKED_SIZE_MAX  ((uint64_t)16 << 20) /* of an opaque file */
#define ATTEMPTS_MAX      10                   /* to find a session that others write to */

/* A wal__import_create_fn. Opens the session if another import has created it from the same
 * source. */
static enum wal_status try_create(void *ctx, struct wal_session_options *options,
                                  struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__import_file *file = ctx;
    struct wal_store *store = file->import->store;
    enum wal_status status;

    status = file->base != NULL
                 ? wal_session_fork(file->base, wal__slice_from_text(file->lines.base), options,
                                    &file->session, error)
                 : wal_session_create(store, options, &file->session, error);
    if (status != WAL_EEXISTS) {
        return status;
    }
    status = wal_session_open(store, options->id, &file->session, error);
    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    if (status == WAL_OK && wal__slice_equal(info.source, options->source)) {
        return WAL_OK;
    }
    wal_session_close(file->session);
    file->session = NULL;
    return status == WAL_OK ? WAL_EEXISTS : status;
}

static enum wal_status create_session(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__file_probe *probe = &file->probe;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_options options = {.struct_size = sizeof(options)};
    const char *id = file_id(file);
    enum wal_status status = WAL_EEXISTS;
    char hashed[32];

    memcpy(file->source, file->free_source, sizeof(file->source));
    options.source = wal__slice_from_text(file->source);
    options.cwd = wal__slice_from_text(probe->cwd);
    options.parent_id = wal__slice_from_text(
        probe->parent != NULL || !probe->is_subagent || id == probe->session ? probe->parent
                                                                             : probe->session);
    if (options.parent_id.size == 0) {
        options.parent_id = wal__slice_from_text(file->original);
    }
    options.title = wal__slice_from_text(file->title);
    options.created_ms = probe->created == NULL ? file->modified_ms : 0;
    file->about.created = probe->created;
    file->about.is_subagent = probe->is_subagent;
    file->about.missing = file->missing;
    wal__import_describe(file->import, &file->about, &options);
    if (file->import->arena.has_failed) {
        return wal__no_memory(error);
    }
    if (id != NULL) {
        status = wal__import_try_ids(try_create, file, &options, id, error);
    }
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        snprintf(hashed, sizeof(hashed), "file-%016" PRIx64, wal__source_hash(file->source));
        status = wal__import_try_ids(try_create, file, &options, hashed, error);
    }
    file->is_new = true;
    file->has_other_id = status == WAL_OK && id != NULL &&
                         wal_session_get_info(file->session, &info, NULL) == WAL_OK &&
                         !wal__slice_equal(info.id, wal__slice_from_text(id));
    return status;
}

/* Returns the status of a read that returned `got`. */
static enum wal_status check_read(int got, struct wal_error *error)
{
    return got < 0 ? wal__import_errno(error) : WAL_OK;
}

/* Reports the issues of known lines again. */
static enum wal_status repeat_issues(struct wal__import_file *file, struct wal__line_reader *reader,
                                     struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = WAL_OK;
    struct wal__piece piece;
    int got = 1;

    for (uint32_t i = 0; status == WAL_OK && got > 0 && i < lines->match.issue_count; i++) {
        const struct wal__source_issue *issue = &lines->match.issues[i];

        wal__line_reader_seek(reader, issue->offset, issue->line - 1);
        got = wal__line_reader_next(reader, &piece);
        if (got > 0) {
            status = wal__import_lines_repeat_issues(lines, &piece, issue->sequence, error);
        }
    }
    return status == WAL_OK ? check_read(got, error) : status;
}

/* Imports the lines after the session's entries. */
static enum wal_status import_new_lines(struct wal__import_file *file,
                                        struct wal__line_reader *reader, bool is_opaque,
                                        struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = WAL_OK;
    struct wal__piece piece;
    int got = 1;

    wal__line_reader_seek(reader, lines->match.bytes, is_opaque ? 0 : lines->match.lines);
    while (status == WAL_OK && (got = wal__line_reader_next(reader, &piece)) > 0) {
        status = is_opaque ? wal__import_lines_add_opaque(lines, &piece, error)
                           : wal__import_lines_add(lines, &piece, error);
        if (status == WAL_OK) {
            status =
                wal__import_progress(file->import, file->name, reader->offset, file->size, error);
        }
    }
    file->count = reader->line;
    if (file->count < lines->known_lines) {
        file->count = lines->known_lines;
    }
    return status == WAL_OK ? check_read(got, error) : status;
}

/* Reports JSON errors of an opaque file, unless it is too large for memory. The file is read, not
 * mapped: a map raises SIGBUS when another process truncates the file. */
static enum wal_status check_opaque(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__heap *heap = file->import->heap;
    size_t size = (size_t)file->size;
    enum wal_status status;
    char *data;
    size_t got = 0;
    ssize_t last_read = 1;

    if (file->size == 0 || file->size > CHECKED_SIZE_MAX) {
        return WAL_OK;
    }
    data = wal__heap_alloc(heap, size);
    if (data == NULL) {
        return wal__no_memory(error);
    }
    while (got < size && last_read > 0) {
        last_read = pread(file->fd, data + got, size - got, (off_t)got);
        got += last_read > 0 ? (size_t)last_read : 0;
    }
    status = last_read < 0 ? wal__import_errno(error)
                           : wal__import_lines_check_opaque(&file->lines, data, got, error);
    wal__heap_free(heap, data);
    return status;
}

/* Imports an opaque file in pieces. */
static enum wal_status import_opaque(struct wal__import_file *file, struct wal__line_reader *reader,
                                     struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = import_new_lines(file, reader, true, error);

    if (status == WAL_OK) {
        status = wal__import_batch_flush(&lines->batch, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__file_count_lines(file->import->heap, file->fd, file->size, &file->count) < 0) {
        return wal__import_errno(error);
    }
    if (lines->batch.appended == 0) {
        lines->known_lines = file->count;
    }
    return check_opaque(file, error);
}

static enum wal_status import_lines(struct wal__import_file *file, struct wal__line_reader *reader,
                                    struct wal_error *error)
{
    enum wal_status status = repeat_issues(file, reader, error);

    if (status == WAL_OK) {
        status = import_new_lines(file, reader, false, error);
    }
    if (status == WAL_OK) {
        status = wal__import_lines_finish(&file->lines, error);
    }
    return status == WAL_OK ? wal__import_batch_flush(&file->lines.batch, error) : status;
}

/* A wal__source_file_fn: stops at a file whose name comes after that of the imported one. */
static bool is_older(void *ctx, const char *id, const char *path)
{
    struct wal__import_file *file = ctx;

    (void)id;
    file->lines.keeps_head = strcmp(base_name(path), base_name(file->path)) > 0;
    return !file->lines.keeps_head;
}

/* Determines whether the session has a file that is newer: then the head is on that one. */
static enum wal_status find_newest_file(struct wal__import_file *file, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__source source;
    enum wal_status status = WAL_OK;

    if (!file->is_other && !file->lines.match.has_other_files) {
        return WAL_OK;
    }
    status = wal_session_get_info(file->session, &info, error);
    if (status == WAL_OK && wal__source_parse(info.source, &source) &&
        is_older(file, "", source.path)) {
        status = wal__source_files_visit(file->session, is_older, file, error);
    }
    return status;
}

static enum wal_status import_content(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__source_match *match = &file->lines.match;
    bool is_opaque = match->entries > 0 ? match->is_opaque : file->probe.is_opaque;
    struct wal__line_reader reader;
    enum wal_status status = wal__import_lines_begin(&file->lines, file->session, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__line_reader_init(&reader, file->import->heap, file->fd, file->size, is_opaque, 0);
    reader.is_whole = file->probe.is_whole;
    status = is_opaque ? import_opaque(file, &reader, error) : import_lines(file, &reader, error);
    wal__line_reader_deinit(&reader);
    file->import->must_sync |= file->lines.batch.appended > 0;
    return status;
}

#define REST_MAX (16U << 20) /* bytes of a last line without a newline */

/* Leaves a last line without a newline out, unless it is to be taken and is JSON. False: errno. */
static bool leave_rest(struct wal__import_file *file)
{
    struct wal__import *import = file->import;
    uint64_t all = file->size;
    uint64_t rest;
    void *text;

    if (wal__source_file_end(file->fd, &file->size) < 0) {
        return false;
    }
    rest = all - file->size;
    if (rest == 0) {
        return true;
    }
    text = import->takes_rest && rest <= REST_MAX ? wal__arena_alloc(&import->arena.arena, rest)
                                                  : NULL;
    if (text != NULL && pread(file->fd, text, rest, (off_t)file->size) == (ssize_t)rest &&
        wal__json_validate(text, rest, NULL) == WAL__JSON_OK) {
        file->size = all;
    } else {
        import->has_rest = true;
    }
    return true;
}

static enum wal_status probe(struct wal__import_file *file, const struct wal__dialect *forced,
                             struct wal_error *error)
{
    struct stat stat;

    if (fstat(file->fd, &stat) != 0) {
        return wal__import_errno(error);
    }
    file->size = (uint64_t)stat.st_size;
    file->modified_ms = wal__system_modified_ns(&stat) / 1000000;
    if ((file->import->waits_for_newline && !wal__is_json_name(file->name) && !leave_rest(file)) ||
        wal__file_probe(&file->import->arena, file->fd, file->size, forced, &file->probe) < 0) {
        return wal__import_errno(error);
    }
    if (file->path != NULL) {
        probe_name(file, &file->probe);
        wal__import_probe_path(file, &file->probe);
    }
    file->lines.arena = &file->import->arena;
    file->lines.store = file->import->store;
    file->lines.name = file->name;
    file->lines.dialect = file->probe.dialect;
    file->lines.probe = &file->probe;
    file->lines.is_titled = file->title != NULL;
    file->lines.file_size = file->size;
    return wal__import_check_memory(file->import, error);
}

/* *has_other_content: the session has anything that is not from the file. */
static enum wal_status has_other_content(const struct wal__import_file *file,
                                         bool *has_other_content, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    bool is_modified = false;
    enum wal_status status = wal__import_is_modified(file->session, &is_modified, error);

    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    *has_other_content =
        is_modified || file->lines.match.native_count > 0 || (info.flags & WAL_SESSION_FORK) != 0;
    return status;
}

/* The dialect of the source, unless its lines decide. */
static const struct wal__dialect *expected(const struct wal__import *import)
{
    return import->forced != NULL ? import->forced : import->placed;
}

/* Returns 1 if a probe of the first `known` bytes gives another result than a probe of the file, 0
 * if not, -1 with errno set. */
static int probe_differs(struct wal__import_file *file, uint64_t known)
{
    struct wal__file_probe previous = {.end = 0};

    if (file->probe.end <= known) {
        return 0;
    }
    if (wal__file_probe(&file->import->arena, file->fd, known, expected(file->import), &previous) <
        0) {
        return -1;
    }
    probe_name(file, &previous);
    wal__import_probe_path(file, &previous);
    return !wal__file_probe_equal(&previous, &file->probe);
}

/* Returns 1 if the last entry's line continues in a way that an entry cannot, 0 if not, -1 with
 * errno set. */
static int last_line_differs(const struct wal__import_file *file)
{
    const struct wal__source_match *match = &file->lines.match;
    struct wal__line_reader reader;
    struct wal__piece piece;
    int got;

    if (match->entries == 0 || match->has_newline) {
        return 0;
    }
    if (match->is_opaque) {
        return file->size <= REPLACED_SIZE_MAX && match->bytes % WAL__PIECE_SIZE != 0;
    }
    wal__line_reader_init(&reader, file->import->heap, file->fd, file->size, false, match->bytes);
    got = wal__line_reader_next(&reader, &piece);
    if (got > 0) {
        got = wal__line_is_rest(&piece) ? 0 : 1;
    }
    wal__line_reader_deinit(&reader);
    return got;
}

/*
 * Deletes the session, of which only an import wrote. Its source becomes free for the new session.
 * file->seen: its last_sequence before what made the caller delete it was read. WAL_ECONFLICT:
 * others wrote to it, and it stays.
 */
static enum wal_status delete_session(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal_session_remove_options options = {.struct_size = sizeof(options),
                                                       .flags = WAL_SESSION_REMOVE_EXPECT,
                                                       .expected_sequence = file->seen};
    struct wal__source source;
    enum wal_status status = wal_session_remove(file->session, &options, error);

    if (status != WAL_OK) {
        return status;
    }
    forget_session(file);
    if (wal__source_parse(wal__slice_from_text(file->source), &source) &&
        strcmp(source.dialect, file->probe.dialect->name) == 0 &&
        strcmp(base_name(source.path), base_name(file->path)) == 0) {
        memcpy(file->free_source, file->source, sizeof(file->source));
    }
    file->source[0] = '\0';
    return WAL_OK;
}

/*
 * The file may have been incomplete when it was imported: what was read then can differ from the
 * beginning of what is read now. Its session is created again, unless it was used otherwise.
 */
static enum wal_status delete_outdated_session(struct wal__import_file *file,
                                               struct wal_error *error)
{
    uint64_t known = file->lines.match.bytes + file->lines.match.partial_size;
    bool is_shared = false;
    uint64_t others = 0;
    enum wal_status status;
    int differs;

    if (known >= file->size) {
        return WAL_OK;
    }
    status = has_other_content(file, &is_shared, error);
    if (status != WAL_OK || is_shared || file->lines.match.has_other_files) {
        return status;
    }
    differs = probe_differs(file, known);
    if (differs == 0) {
        differs = last_line_differs(file);
    }
    if (differs < 0) {
        return wal__import_errno(error);
    }
    status = wal__import_check_memory(file->import, error);
    if (status != WAL_OK) {
        return status;
    }
    if (differs) {
        status = wal__import_count_others(file->session, &others, error);
    }
    return differs && status == WAL_OK && others == 0 ? delete_session(file, error) : status;
}

/* --- forms of a file ----------------------------------------------------- */

/* Finds the session of the file's id that has the file in another form. One that is older is
 * deleted, unless it was used otherwise; one that is newer covers the file. */
static enum wal_status find_other_form(struct wal__import_file *file, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    const char *id = file_id(file);
    enum wal__import_form form = WAL__FORM_OTHER;
    bool is_modified = false;
    uint64_t others = 0;
    enum wal_status status;

    if (id == NULL || !file->import->matches_ids) {
        return WAL_OK;
    }
    status = wal_session_open(file->import->store, wal__slice_from_text(id), &file->session, error);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND || status == WAL_EINVAL ? WAL_OK : status;
    }
    status = wal_session_get_info(file->session, &info, error);
    file->seen = info.last_sequence;
    if (status == WAL_OK) {
        status = wal__import_compare_forms(file, file->session, &form, error);
    }
    if (status == WAL_OK && form != WAL__FORM_OTHER) {
        status = read_source(file, error);
    }
    file->is_covered = status == WAL_OK && form == WAL__FORM_COVERED;
    if (file->is_covered) {
        return WAL_OK;
    }
    if (status == WAL_OK && form == WAL__FORM_OLDER) {
        status = has_other_content(file, &is_modified, error);
    }
    if (status == WAL_OK && form == WAL__FORM_OLDER && !is_modified) {
        status = wal__import_count_others(file->session, &others, error);
    }
    if (status == WAL_OK && form == WAL__FORM_OLDER && !is_modified && others == 0) {
        return delete_session(file, error);
    }
    forget_session(file);
    return status;
}

struct waiting {
    const struct wal__import *import;
    bool all;
};

/* A wal__source_file_fn: stops at a file that does not wait. */
static bool does_wait(void *ctx, const char *id, const char *path)
{
    struct waiting *waiting = ctx;

    (void)path;
    waiting->all = wal__import_is_waiting(waiting->import, id);
    return waiting->all;
}

/* Deletes the session if it is partial, what its lines go on from is in the store or waits to be
 * imported, and it has the lines of this file alone, or others of files that wait. */
static enum wal_status delete_partial_session(struct wal__import_file *file,
                                              struct wal_error *error)
{
    struct waiting waiting = {file->import, true};
    char missing[WAL__STRING_MAX + 1];
    bool is_modified = false;
    uint64_t others = 0;
    enum wal_status status;

    if (file->probe.base == NULL || !wal__import_is_partial(file->session, missing)) {
        return WAL_OK;
    }
    status = wal__import_find_base(file, error);
    if (status != WAL_OK ||
        (file->missing != NULL && !wal__import_is_waiting(file->import, file->missing))) {
        return status;
    }
    status = wal__import_is_modified(file->session, &is_modified, error);
    if (status == WAL_OK && !is_modified) {
        status = wal__import_count_others(file->session, &others, error);
    }
    if (status == WAL_OK) {
        status = wal__source_files_visit(file->session, does_wait, &waiting, error);
    }
    return status == WAL_OK && !is_modified && others == 0 && waiting.all
               ? delete_session(file, error)
               : status;
}

/* Adds the file to the session of other files, after a line that this one has. */
static void join_thread(struct wal__import_file *file)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    if (wal_entry_get(file->thread, wal__slice_from_text(file->lines.base), &entry, NULL) !=
        WAL_OK) {
        file->lines.base[0] = '\0';
    }
    file->is_other = true;
    file->session = file->thread;
    file->thread = NULL;
    snprintf(file->lines.file, sizeof(file->lines.file), "%s", file->id);
    file->lines.path = wal__source_escape(&file->import->arena.arena, file->path);
}

/* Creates the session of a file that goes on from another one, or adds the file to that of its
 * thread; or defers it until the other one is imported. */
static enum wal_status create_with_base(struct wal__import_file *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_of_thread = file->thread != NULL;

    if (file->probe.base != NULL && file->base == NULL) {
        status = wal__import_find_base(file, error);
    }
    if (status == WAL_OK && file->import->defers &&
        (file->missing != NULL || (is_of_thread && file->probe.base == NULL))) {
        file->is_deferred = true;
        return WAL_OK;
    }
    if (status == WAL_OK && is_of_thread) {
        join_thread(file);
        return wal__import_check_memory(file->import, error);
    }
    if (status == WAL_OK && file->base != NULL) {
        snprintf(file->lines.file, sizeof(file->lines.file), "%s", file->id);
    }
    return status == WAL_OK ? create_session(file, error) : status;
}

/* Finds the file's session, or creates it. WAL_ECONFLICT: others wrote to a session that would have
 * been created again. */
static enum wal_status try_find_or_create(struct wal__import_file *file, struct wal_error *error)
{
    enum wal_status status = find_session(file, error);

    if (status == WAL_OK && file->session == NULL) {
        status = find_other_form(file, error);
        if (status == WAL_OK && file->session == NULL) {
            status = find_thread(file, error);
        }
    } else if (status == WAL_OK && !file->is_covered) {
        status = delete_outdated_session(file, error);
    }
    if (status == WAL_OK && file->is_deferred) {
        return WAL_OK;
    }
    if (status == WAL_OK && file->session != NULL) {
        status = delete_partial_session(file, error);
    }
    if (status != WAL_OK || file->session != NULL) {
        return status;
    }
    return file->probe.base != NULL || file->thread != NULL ? create_with_base(file, error)
                                                            : create_session(file, error);
}

/* After a conflict the session has what others appended: whether the file continues it, or becomes
 * another one, is decided anew. */
static enum wal_status find_or_create_session(struct wal__import_file *file,
                                              struct wal_error *error)
{
    enum wal_status status = WAL_ECONFLICT;

    for (unsigned i = 0; i < ATTEMPTS_MAX && status == WAL_ECONFLICT; i++) {
        forget_session(file);
        wal__import_forget_base(file);
        status = try_find_or_create(file, error);
    }
    return status;
}

/* --- files that are known without being read ----------------------------- */

#define STAMP_SIZE (WAL__STRING_MAX + 1)
#define SETTLED_NS 2000000000 /* FAT keeps times in steps of two seconds */

/* Writes the beginning of a stamp: what the file was when it was opened. Returns its size. */
static size_t write_stat(const struct stat *stat, char stamp[STAMP_SIZE])
{
    return (size_t)snprintf(stamp, STAMP_SIZE, "%llu %" PRId64 " %" PRId64 " %llu %llu ",
                            (unsigned long long)stat->st_size, wal__system_modified_ns(stat),
                            wal__system_changed_ns(stat), (unsigned long long)stat->st_ino,
                            (unsigned long long)stat->st_dev);
}

/* Whether the session has what is in the client's file next to this one. */
static bool has_sidecar(struct wal__import_file *file, struct wal_slice metadata)
{
    const struct wal__client *client =
        wal__client_of_source(file->probe.dialect->name, file->path, NULL);
    struct wal__file_probe probe = {.dialect = file->probe.dialect};
    struct wal__json_span kept =
        wal__metadata_sidecar((struct wal__json_span){metadata.data, (size_t)metadata.size});

    if (client == NULL || client->info.call == NULL) {
        return true;
    }
    wal__import_probe_path(file, &probe);
    return !file->drops_sidecar && !file->import->arena.has_failed &&
           (file->about.sidecar.size == 0 || wal__json_span_equal(file->about.sidecar, kept));
}

/* Finds the session that has all of the file by its stamp; false: the file must be read. It is the
 * session that would be compared first: what others are in the store changes nothing. */
static bool find_known(struct wal__import_file *file, const struct wal__dialect *dialect)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = file->import->store;
    char stamp[STAMP_SIZE];
    char now[STAMP_SIZE];
    size_t size = write_stat(&file->import->stat, now);
    char *at;

    if (file->import->opened_ns == 0 || file->import->waits_for_newline ||
        !wal__source_text(file->source, dialect->name, 0, file->path) ||
        wal__session_open_source(store, file->source, &file->session, NULL) != WAL_OK) {
        return false;
    }
    file->probe.dialect = dialect;
    if (wal_session_get_info(file->session, &info, NULL) == WAL_OK &&
        info.metadata_version == info.last_sequence && (info.flags & WAL_SESSION_DAMAGED) == 0 &&
        info.metadata.size > 0 &&
        wal__string_member(info.metadata.data, (size_t)info.metadata.size, NULL, "stamp", stamp) &&
        strncmp(stamp, now, size) == 0) {
        file->count = strtoull(stamp + size, &at, 10);
        file->size = strtoull(at, &at, 10);
        file->lines.known_lines = file->count;
        if (strtoull(at, NULL, 10) == info.entries && has_sidecar(file, info.metadata)) {
            return true;
        }
    }
    forget_session(file);
    return false;
}

/* Whether a stamp may be kept for the file, of which the session has all. */
static bool is_settled(const struct wal__import_file *file, const struct wal_session_info *info)
{
    const struct wal__import *import = file->import;
    int64_t modified_ns = wal__system_modified_ns(&import->stat);
    int64_t changed_ns = wal__system_changed_ns(&import->stat);
    int64_t newest_ns = modified_ns > changed_ns ? modified_ns : changed_ns;
    char first[WAL__SOURCE_SIZE_MAX + 1];
    char text[STAMP_SIZE] = "";
    char *kept = text;

    if (info->metadata.size > 0 &&
        wal__string_member(info->metadata.data, (size_t)info->metadata.size, NULL, "stamp", text)) {
        (void)strtoull(kept, &kept, 10);
        (void)strtoll(kept, &kept, 10);
    }
    return import->opened_ns - SETTLED_NS >= newest_ns && changed_ns >= strtoll(kept, NULL, 10) &&
           !import->waits_for_newline && file->probe.parsed > 0 && file->lines.issues.count == 0 &&
           !file->is_covered && !file->lines.has_partial_line &&
           file->lines.match.partial_size == 0 && !file->lines.match.is_copy &&
           !file->lines.match.has_other_files &&
           wal__source_text(first, file->probe.dialect->name, 0, file->path) &&
           wal__slice_equal(info->source, wal__slice_from_text(first)) &&
           !wal__import_is_partial(file->session, text);
}

/* Keeps a stamp, if the session has not changed since; one that cannot be kept costs only time. */
static void keep_stamp(struct wal__import_file *file)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_METADATA | WAL_CHANGE_EXPECT_SEQUENCE};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};
    char stamp[STAMP_SIZE];
    size_t size = write_stat(&file->import->stat, stamp);

    if (wal_session_get_info(file->session, &info, NULL) != WAL_OK || !is_settled(file, &info)) {
        return;
    }
    snprintf(stamp + size, sizeof(stamp) - size, "%" PRIu64 " %" PRIu64 " %" PRIu64, file->count,
             file->size, info.entries);
    change.expected_sequence = info.last_sequence;
    change.metadata = wal__import_metadata_stamped(file->import, info.metadata, stamp);
    if (change.metadata.size > 0) {
        (void)!wal_batch_commit(file->session, &batch, &options, NULL, NULL);
    }
}

/* --- reports ------------------------------------------------------------- */

static enum wal_status report(const struct wal__import_file *file, enum wal_import_kind kind,
                              struct wal_error *error)
{
    const struct wal__import_lines *lines = &file->lines;
    struct wal_import_report report = {
        .kind = kind,
        .path = wal__slice_from_text(file->name),
        .dialect = wal__slice_from_text(file->probe.dialect->name),
        .lines = file->count,
        /* a partial line does not count */
        .appended = lines->batch.appended - (lines->has_partial_line ? 1 : 0),
        .duplicates = lines->known_lines + lines->batch.duplicates,
        .issues = lines->issues.items,
        .issue_count = (uint32_t)lines->issues.count,
        .flags = (file->has_other_id ? WAL_IMPORT_OTHER_ID : 0) |
                 (lines->missing != NULL && lines->issues.count > 0 ? WAL_IMPORT_PARTIAL : 0),
        .bytes = file->size,
    };

    file->import->result.bytes += file->size;
    return wal__import_report(file->import, &report, file->session, error);
}

static void deinit(struct wal__import_file *file)
{
    wal__import_lines_deinit(&file->lines);
    wal__heap_free(file->import->heap, file);
}

static struct wal__import_file *create(struct wal__import *import, int fd, const char *name)
{
    struct wal__import_file *file = wal__heap_zalloc(import->heap, sizeof(*file));

    if (file != NULL) {
        file->import = import;
        file->fd = fd;
        file->name = name;
    }
    return file;
}

#define TEXT_SIZE 4096 /* bytes of a file that show whether it is text */

/* Whether the file begins with the mark of UTF-16, or with two characters of ASCII in it. */
static bool is_utf16(const uint8_t *bytes, ssize_t size)
{
    bool has_mark = size >= 2 && (bytes[0] ^ bytes[1]) == 1 && (bytes[0] | bytes[1]) == 0xff;

    return has_mark || (size >= 4 && (bytes[0] == 0) != (bytes[1] == 0) &&
                        (bytes[0] == 0) == (bytes[2] == 0) && (bytes[1] == 0) == (bytes[3] == 0));
}

/* Refuses a file without a line of JSON that begins with bytes that no text has, and one of a
 * client that is to be one object and is none. */
static enum wal_status check_text(const struct wal__import_file *file, struct wal_error *error)
{
    uint8_t bytes[TEXT_SIZE];
    bool is_text = true;
    ssize_t size;

    if (file->import->placed != NULL && wal__is_json_name(file->name) && !file->probe.is_whole &&
        file->probe.first != 1) {
        return wal__fail(error, WAL_EBADJSON,
                         "the file is no session of its client, or not a whole one: import it "
                         "again when the client has written it");
    }
    if (!file->import->refuses_binary || file->probe.parsed > 0) {
        return WAL_OK;
    }
    size = pread(file->fd, bytes, sizeof(bytes), 0);
    if (size < 0) {
        return wal__import_errno(error);
    }
    if (is_utf16(bytes, size)) {
        return wal__fail(error, WAL_EBADJSON,
                         "the file is in UTF-16, which no client writes: import what iconv -f "
                         "UTF-16 -t UTF-8 makes of it, or keep it as it is with --dialect lines");
    }
    for (ssize_t i = 0; i < size; i++) {
        is_text = is_text &&
                  (bytes[i] >= ' ' || (bytes[i] >= '\a' && bytes[i] <= '\r') || bytes[i] == '\x1b');
    }
    return is_text ? WAL_OK
                   : wal__fail(error, WAL_EBADJSON,
                               "the file is not text: to keep it as it is, import it with "
                               "--dialect lines");
}

enum wal_status wal__import_file(struct wal__import *import, int fd, const char *name,
                                 const char *path, struct wal_error *error)
{
    struct wal__import_file *file = create(import, fd, name);
    enum wal_status status;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->path = path;
    (void)wal__source_file_id(path, file->id);
    file->lines.sets_title = true;
    file->lines.fd = fd;
    if (expected(import) != NULL && find_known(file, expected(import))) {
        status = report(file, WAL_IMPORT_FILE, error);
        goto out;
    }
    status = wal__source_file_lock(import, fd, name, error);
    if (status == WAL_OK) {
        status = probe(file, expected(import), error);
    }
    if (status == WAL_OK) {
        status = check_text(file, error);
    }
    if (status == WAL_OK && expected(import) == NULL && find_known(file, file->probe.dialect)) {
        status = report(file, WAL_IMPORT_FILE, error);
        goto out;
    }
    if (status == WAL_OK) {
        status = find_or_create_session(file, error);
    }
    if (status == WAL_OK && file->is_deferred) {
        import->is_deferred = true;
        goto out;
    }
    if (status == WAL_OK) {
        status = find_newest_file(file, error);
    }
    if (status == WAL_OK) {
        status = wal__import_update_about(file, error);
    }
    if (status == WAL_OK) {
        if (!file->is_covered) {
            status = import_content(file, error);
        } else if (wal__file_count_lines(import->heap, fd, file->size, &file->count) < 0) {
            status = wal__import_errno(error);
        } else {
            file->lines.known_lines = file->count;
        }
    }
    if (status == WAL_OK) {
        keep_stamp(file);
        status = wal__import_check_memory(import, error);
    }
    if (status == WAL_OK) {
        status = report(file, WAL_IMPORT_FILE, error);
        import->result.sessions -= file->is_other ? 1 : 0;
    }
out:
    wal__import_forget_base(file);
    wal_session_close(file->session);
    deinit(file);
    return status;
}

enum wal_status wal__import_known_file(struct wal__import *import, const char *name,
                                       const char *path, bool *is_known, struct wal_error *error)
{
    struct wal__import_file *file = create(import, -1, name);
    enum wal_status status = WAL_OK;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->path = path;
    *is_known = expected(import) != NULL && find_known(file, expected(import));
    if (*is_known) {
        status = report(file, WAL_IMPORT_FILE, error);
    }
    wal_session_close(file->session);
    deinit(file);
    return status;
}

enum wal_status wal__import_stream(struct wal__import *import, int fd, const char *name,
                                   struct wal_session *session, const struct wal__dialect *dialect,
                                   uint32_t stream, struct wal_error *error)
{
    struct wal__import_file *file = create(import, fd, name);
    enum wal_status status;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->session = session;
    file->lines.stream = stream;
    status = wal__source_compare(import->heap, import->store, session, stream, NULL, fd,
                                 &file->lines.match, error);
    if (status == WAL_OK) {
        status = probe(file, dialect, error);
    }
    if (status == WAL_OK) {
        status = import_content(file, error);
    }
    if (status == WAL_OK) {
        status = report(file, WAL_IMPORT_STREAM, error);
    }
    deinit(file);
    return status;
}

/* --- the import of a view ------------------------------------------------ */

struct view_import {
    struct wal__import *import;
    int fd;
    const char *name;
    struct wal_view_info info;
    struct wal_session *session;
    struct wal_view *view;
    struct wal_view_import_result result;
};

static enum wal_status import_view(struct view_import *view_import, struct wal_error *error)
{
    struct wal_store *store = view_import->import->store;
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = wal__slice_from_text(view_import->info.dialect),
        .root = wal__slice_from_text(view_import->info.root),
    };
    enum wal_status status = wal_session_open(
        store, wal__slice_from_text(view_import->info.session), &view_import->session, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_view_open(store, view_import->session, &options, &view_import->view, error);
    if (status != WAL_OK) {
        return status;
    }
    view_import->result.struct_size = sizeof(view_import->result);
    return wal_view_import(view_import->view, &view_import->result, error);
}

/* Returns true if the file is the main file of a view whose dialect the options allow. */
static bool is_view_file(struct view_import *view_import)
{
    const struct wal__dialect *forced = view_import->import->forced;

    view_import->info.struct_size = sizeof(view_import->info);
    return wal__view_index_find(&view_import->import->views,
                                wal__slice_from_text(view_import->name), &view_import->info,
                                NULL) == WAL_OK &&
           (forced == NULL || strcmp(forced->name, view_import->info.dialect) == 0);
}

/* Whether the file is a document: its view has no lines. */
static bool is_document(const struct view_import *view_import)
{
    const struct wal__dialect *dialect = wal__dialect_find(view_import->info.dialect);

    return dialect != NULL && dialect->write_ops->join != NULL;
}

/* Counts the file's lines, and of these the ones that the session had. */
static enum wal_status count_lines(struct view_import *view_import,
                                   struct wal_import_report *report, struct wal_error *error)
{
    struct stat stat;
    char last = '\n';

    if (is_document(view_import)) {
        report->lines = view_import->result.lines;
        report->duplicates = view_import->result.duplicates;
        return WAL_OK;
    }
    if (fstat(view_import->fd, &stat) != 0 ||
        (stat.st_size > 0 && pread(view_import->fd, &last, 1, stat.st_size - 1) != 1) ||
        wal__file_count_lines(view_import->import->heap, view_import->fd, (uint64_t)stat.st_size,
                              &report->lines) < 0) {
        return wal__import_errno(error);
    }
    view_import->import->result.bytes += (uint64_t)stat.st_size;
    report->duplicates = report->lines - report->appended;
    if (last != '\n' && report->duplicates > 0) {
        report->duplicates--; /* a partial line waits for its newline */
    }
    return WAL_OK;
}

/* Lists the issues of the view, in the arena. */
static enum wal_status list_issues(struct view_import *view_import,
                                   struct wal_import_report *report, struct wal_error *error)
{
    struct wal__import *import = view_import->import;
    struct wal__import_issues issues = {.count = 0};
    uint64_t lines = 0;
    uint64_t offset;
    const char *reason;

    for (uint32_t i = 0; wal_view_issue(view_import->view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        if (wal__file_count_lines(import->heap, view_import->fd, offset, &lines) < 0) {
            return wal__import_errno(error);
        }
        wal__import_add_issue(&import->arena, &issues, view_import->name, lines + 1, offset,
                              reason);
    }
    report->issues = issues.items;
    report->issue_count = (uint32_t)issues.count;
    return wal__import_check_memory(import, error);
}

static enum wal_status report_view(struct view_import *view_import, struct wal_error *error)
{
    struct wal_import_report report = {
        .kind = WAL_IMPORT_VIEW,
        .path = wal__slice_from_text(view_import->name),
        .dialect = wal__slice_from_text(view_import->info.dialect),
        .appended = view_import->result.appended,
    };
    enum wal_status status = count_lines(view_import, &report, error);

    if (status == WAL_OK) {
        status = list_issues(view_import, &report, error);
    }
    return status == WAL_OK
               ? wal__import_report(view_import->import, &report, view_import->session, error)
               : status;
}

/* Keeps the id of the session of a changed view for the file's report. */
static enum wal_status keep_session(struct view_import *view_import, struct wal_error *error)
{
    view_import->import->view_session =
        wal__arena_copy_text(&view_import->import->arena.arena, view_import->info.session);
    return view_import->import->view_session != NULL ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__import_view(struct wal__import *import, int fd, const char *name,
                                 bool *is_view, struct wal_error *error)
{
    struct view_import view_import = {.import = import, .fd = fd, .name = name};
    enum wal_status status;

    *is_view = false;
    if (!is_view_file(&view_import)) {
        return WAL_OK;
    }
    status = import_view(&view_import, error);
    if (status == WAL_ECHANGED) {
        status = keep_session(&view_import, error);
    } else if (status == WAL_ENOTFOUND) {
        status = WAL_OK;
    } else {
        *is_view = true;
    }
    if (*is_view && status == WAL_OK) {
        status = report_view(&view_import, error);
    }
    wal_view_close(view_import.view);
    wal_session_close(view_import.session);
    return status;
}
