/*
 * converter.c - converts a session to a client's dialect (converter.h, SPEC.md
 * 10.2).
 */
#include "convert/render/converter.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "convert/model/model_member.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

/* --- live branch --------------------------------------------------------- */

static uint64_t id_hash(struct wal__json_span id)
{
    return id.size > 0 ? wal__model_string_hash(0, id) : 0;
}

/* The fate of an item in `parents`, by address. */
static const uint8_t live[1];
static const uint8_t excluded[1];

/* First pass: records the item's parent. */
static bool record_parent(void *ctx, struct wal__model_item *item)
{
    struct wal__converter *convert = ctx;
    struct wal__json_span parent = {NULL, (size_t)id_hash(item->parent)};

    if (item->kind == WAL__ITEM_HEADER || item->id.size == 0) {
        return true;
    }
    if (!item->is_off_branch && !item->is_sidechain) {
        convert->last_candidate = id_hash(item->id);
    }
    return wal__model_table_put(&convert->parents, id_hash(item->id), parent);
}

/* Whether the path from an item over new items leads to the live head, or to a root if there is
 * none. */
static bool extends_live_branch(const struct wal__converter *convert, uint64_t key)
{
    struct wal__json_span parent;

    /* The bound ends a cycle of parents. */
    for (size_t i = 0; i <= convert->parents.count; i++) {
        if (key == 0 || !wal__model_table_get(&convert->parents, key, &parent)) {
            return convert->live_head == 0;
        }
        if (parent.data != NULL) {
            return parent.data == live && key == convert->live_head;
        }
        key = (uint64_t)parent.size;
    }
    return convert->live_head == 0;
}

/* Marks the path from the head to the written branch as live. *extends: the head extends the
 * written branch. */
static bool select_live_branch(struct wal__converter *convert, struct wal__json_span head,
                               bool *extends)
{
    uint64_t key = id_hash(head);
    struct wal__json_span parent;

    if (!wal__model_table_get(&convert->parents, key, &parent)) {
        key = convert->last_candidate;
    }
    *extends = extends_live_branch(convert, key);
    if (!*extends) {
        return true;
    }
    convert->live_head = key;
    while (key != 0 && wal__model_table_get(&convert->parents, key, &parent) &&
           parent.data == NULL) {
        parent.data = live;
        if (!wal__model_table_put(&convert->parents, key, parent)) {
            return false;
        }
        key = (uint64_t)parent.size;
    }
    return true;
}

static bool is_live(const struct wal__converter *convert, const struct wal__model_item *item)
{
    struct wal__json_span parent = {NULL, 0};

    return item->is_off_branch || item->kind == WAL__ITEM_HEADER || item->kind == WAL__ITEM_HEAD ||
           (wal__model_table_get(&convert->parents, id_hash(item->id), &parent) &&
            parent.data == live);
}

/* Marks an item off the live branch as excluded for good, and counts the loss. */
static bool exclude_item(struct wal__converter *convert, const struct wal__model_item *item)
{
    struct wal__json_span parent = {NULL, 0};

    if (convert->writer.raw_items_left > 0) {
        convert->writer.raw_items_left--; /* it is in the line of that item */
    }
    convert->writer.losses[item->is_sidechain ? WAL__FEATURE_SIDECHAINS : WAL__FEATURE_BRANCHES]++;
    if (!wal__model_table_get(&convert->parents, id_hash(item->id), &parent)) {
        return true;
    }
    parent.data = excluded;
    return wal__model_table_put(&convert->parents, id_hash(item->id), parent);
}

/* Determines the live items among the new ones. */
static enum wal_status scan_parents(struct wal__converter *convert,
                                    const struct wal__entry_limits *limits,
                                    struct wal__json_span head, bool *extends,
                                    struct wal_error *error)
{
    uint64_t emitted;
    enum wal_status status = wal__session_items_read(&convert->parent_scan, limits, error);

    emitted = convert->parent_scan.emitted;
    if (status == WAL_OK) {
        status = wal__session_items_finish(&convert->parent_scan, error);
    }
    convert->must_restart |= convert->parent_scan.emitted > emitted;
    if (status == WAL_OK && (convert->parent_scan.has_stopped ||
                             !wal__session_items_map_head(&convert->parent_scan, &head) ||
                             !select_live_branch(convert, head, extends))) {
        status = wal__no_memory(error);
    }
    return status;
}

/* --- writing ------------------------------------------------------------- */

static bool write_item(void *ctx, struct wal__model_item *item)
{
    struct wal__converter *convert = ctx;

    convert->has_failed |= convert->is_linear && !is_live(convert, item)
                               ? !exclude_item(convert, item)
                               : !wal__model_write_item(&convert->writer, item);
    return !convert->has_failed;
}

/* Writes the title of a session whose title is in no line: it was imported as documents. */
static bool write_title(struct wal__converter *convert)
{
    const struct wal__session_snapshot *snapshot = &convert->snapshot;
    struct wal__model_item title = {.kind = WAL__ITEM_TITLE,
                                    .is_off_branch = true,
                                    .id = wal__model_literal("\"title\""),
                                    .time = snapshot->session.time,
                                    .text = snapshot->session.title,
                                    .dialect = snapshot->dialect};

    return title.text.size <= 2 || snapshot->dialect->read_ops->documents == NULL ||
           convert->dialect->read_ops->documents != NULL ||
           wal__model_write_item(&convert->writer, &title);
}

static bool write_document(void *ctx, const char *key, struct wal__json_span value)
{
    struct wal__converter *convert = ctx;
    const struct wal__dialect_write_ops *to = convert->dialect->write_ops;

    convert->has_failed |= !to->document(&convert->writer, key, value);
    return !convert->has_failed;
}

/* Writes the documents of the session that no item has. */
static enum wal_status write_documents(struct wal__converter *convert, struct wal_error *error)
{
    const char *const *prefix = convert->dialect->write_ops->kept_documents;
    enum wal_status status = WAL_OK;

    if (prefix == NULL || convert->dialect != convert->snapshot.dialect) {
        return WAL_OK;
    }
    for (; *prefix != NULL && status == WAL_OK && !convert->has_failed; prefix++) {
        status = wal__document_items_scan(&convert->items, *prefix, write_document, convert, error);
    }
    return status;
}

/* Sets the absolute path of the root, which a link to another file needs. */
static enum wal_status set_root(struct wal__converter *convert, struct wal_error *error)
{
    struct wal__model_session *session = &convert->snapshot.session;
    char root[PATH_MAX];
    struct wal__json_span text = {(const uint8_t *)root, 0};

    if (convert->files->root == NULL || realpath(convert->files->root, root) == NULL) {
        return WAL_OK;
    }
    text.size = strlen(root) + 1;
    session->root = (const char *)wal__arena_copy(&convert->keep.arena, text).data;
    return session->root != NULL ? WAL_OK : wal__no_memory(error);
}

static bool is_idle(void *ctx)
{
    struct wal__converter *convert = ctx;

    return wal__model_write_is_idle(&convert->writer);
}

/* Returns the cause of a failed write. */
static enum wal_status writer_failure(const struct wal__converter *convert, struct wal_error *error)
{
    if (convert->files->status != WAL_OK) {
        wal__error_copy(error, &convert->files->error);
        return convert->files->status;
    }
    return wal__no_memory(error);
}

static void init_items(struct wal__converter *convert, struct wal__session_items *items)
{
    items->heap = convert->env->heap;
    items->store = convert->store;
    items->session = convert->session;
    items->dialect = convert->snapshot.dialect;
    items->is_fork = convert->snapshot.is_fork;
    items->ctx = convert;
    wal__session_items_init(items);
}

enum wal_status wal__converter_begin(struct wal__converter *convert, struct wal_error *error)
{
    const struct wal__dialect_write_ops *to = convert->dialect->write_ops;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(!convert->has_begun);
    convert->has_begun = true;
    convert->is_linear = (to->carries & WAL__CARRIES(BRANCHES)) == 0;
    convert->output = wal__view_files_output(convert->files);
    wal__heap_arena_init(&convert->keep, convert->env->heap);
    wal__heap_arena_init(&convert->trailer_arena, convert->env->heap);
    init_items(convert, &convert->items);
    init_items(convert, &convert->parent_scan);
    convert->items.sink = write_item;
    convert->items.is_idle = is_idle;
    convert->items.retains_items = to->merges_parts;
    convert->parent_scan.sink = record_parent;
    convert->parents.arena = &convert->keep.arena;
    convert->writer = (struct wal__model_writer){
        .dialect = convert->dialect,
        .session = &convert->snapshot.session,
        .output = &convert->output,
        .arena = &convert->keep.arena,
        .scratch = &convert->items.scratch.arena,
    };
    if (!to->links_starter && convert->snapshot.session.starter.size > 0) {
        convert->writer.losses[WAL__FEATURE_PARENTS]++;
    }
    status = set_root(convert, error);
    if (status == WAL_OK && convert->is_linear) {
        status = wal__session_items_begin(&convert->parent_scan, error);
    }
    return status;
}

void wal__converter_deinit(struct wal__converter *convert)
{
    if (convert->has_begun) {
        wal__session_items_deinit(&convert->items);
        wal__session_items_deinit(&convert->parent_scan);
        wal__heap_arena_deinit(&convert->keep);
        wal__heap_arena_deinit(&convert->trailer_arena);
    }
    wal__session_snapshot_deinit(&convert->snapshot);
    *convert = (struct wal__converter){.has_begun = false};
}

enum wal_status wal__converter_append(struct wal__converter *convert,
                                      const struct wal__entry_limits *limits,
                                      struct wal__json_span head, bool *extends,
                                      struct wal_error *error)
{
    bool is_first = convert->writer.out.put == NULL;
    enum wal_status status = WAL_OK;
    uint64_t emitted;

    WAL__ASSERT(convert->has_begun && !convert->must_restart);
    *extends = true;
    if (convert->is_linear) {
        status = scan_parents(convert, limits, head, extends, error);
    }
    if (status != WAL_OK || !*extends) {
        return status;
    }
    if (is_first) {
        convert->has_failed = !wal__model_write_begin(&convert->writer) || !write_title(convert) ||
                              convert->keep.has_failed || convert->items.scratch.has_failed;
        status =
            convert->has_failed ? writer_failure(convert, error) : write_documents(convert, error);
        if (status == WAL_OK && !convert->has_failed) {
            status = wal__session_items_begin(&convert->items, error);
        }
    }
    if (status == WAL_OK && !convert->has_failed) {
        status = wal__session_items_read(&convert->items, limits, error);
    }
    emitted = convert->items.emitted;
    if (status == WAL_OK && !convert->has_failed) {
        status = wal__session_items_finish(&convert->items, error);
    }
    convert->must_restart |= convert->items.emitted > emitted;
    convert->must_restart |= convert->items.is_copy;
    return status == WAL_OK && convert->has_failed ? writer_failure(convert, error) : status;
}

enum wal_status wal__converter_write_trailer(struct wal__converter *convert,
                                             struct wal__json_span head,
                                             struct wal__json_span updated,
                                             uint64_t losses[WAL__FEATURE_COUNT],
                                             struct wal_error *error)
{
    struct wal__model_session session = convert->snapshot.session;
    struct wal__model_writer branch;
    bool is_written;

    wal__heap_arena_reset(&convert->trailer_arena);
    session.updated = updated;
    is_written = wal__model_write_clone(&convert->writer, &branch, &convert->trailer_arena.arena);
    branch.session = &session;
    if (!is_written || !wal__session_items_map_head(&convert->items, &head) ||
        !wal__model_write_end(&branch, head) || convert->trailer_arena.has_failed ||
        convert->keep.has_failed) {
        convert->must_restart = true;
        return writer_failure(convert, error);
    }
    memcpy(losses, branch.losses, sizeof(branch.losses));
    losses[WAL__FEATURE_DAMAGED] += convert->items.damaged;
    losses[WAL__FEATURE_REDACTED] += convert->items.redacted;
    return WAL_OK;
}

/* --- imported lines ------------------------------------------------------- */

#define PIECE_SIZE ((size_t)1 << 20)

struct verbatim_writer {
    const struct wal__verbatim *verbatim;
    struct wal__model_output output;
    uint8_t *piece;
};

/* --- eligibility --------------------------------------------------------- */

/* Whether the last append moved `main` to its entry, and no call moved it since. */
static bool is_head_appended(struct wal_session *session)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, 0);
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_head_cursor *heads = NULL;
    struct wal_entry_cursor *cursor = NULL;
    bool is_appended = false;
    enum wal_status status = wal_head_cursor_open(session, &heads, NULL);

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (status == WAL_OK) {
        status = wal_head_cursor_next(heads, &head, NULL);
    }
    if (status == WAL_END || (status == WAL_OK && (head.stream != 0 || head.name.size != 4 ||
                                                   memcmp(head.name.data, "main", 4) != 0))) {
        is_appended = true; /* there is no head */
    } else if (status == WAL_OK &&
               wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK) {
        is_appended = wal_entry_cursor_get(cursor, head.entry_id, &entry, NULL) == WAL_OK &&
                      entry.sequence == head.version;
    }
    wal_entry_cursor_close(cursor);
    wal_head_cursor_close(heads);
    return is_appended;
}

bool wal__verbatim_is_possible(const struct wal__verbatim *verbatim)
{
    const struct wal__dialect_write_ops *to = verbatim->dialect->write_ops;
    struct wal__heap_arena arena;
    bool is_possible;

    if (to->can_copy_verbatim == NULL || verbatim->snapshot->is_fork ||
        verbatim->snapshot->dialect != verbatim->dialect) {
        return false;
    }
    wal__heap_arena_init(&arena, verbatim->env->heap);
    is_possible = to->can_copy_verbatim(&verbatim->snapshot->session, &arena.arena);
    wal__heap_arena_deinit(&arena);
    return is_possible && is_head_appended(verbatim->session);
}

/* --- writing ------------------------------------------------------------- */

static bool write_blob(struct verbatim_writer *writer, struct wal_blob *blob, bool dry_run,
                       enum wal_status *status, struct wal_error *error)
{
    uint64_t got = 1;

    for (uint64_t at = 0; got > 0 && *status == WAL_OK; at += got) {
        *status = wal_blob_read(blob, at, writer->piece, PIECE_SIZE, &got, error);
        if (*status == WAL_OK && got > 0 && !dry_run &&
            !writer->output.put(writer->output.ctx, writer->piece, (size_t)got)) {
            return false;
        }
    }
    return true;
}

/* Writes a payload that is a blob, all of it or nothing: a dry run reads it completely first. */
static enum wal_status write_blob_payload(struct verbatim_writer *writer,
                                          const struct wal_entry *entry, bool dry_run,
                                          struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    bool wants_more;

    if (writer->piece == NULL) {
        writer->piece = wal__heap_alloc(writer->verbatim->env->heap, PIECE_SIZE);
        if (writer->piece == NULL) {
            return wal__no_memory(error);
        }
    }
    status = wal_blob_open(writer->verbatim->store, entry->payload_digest, &blob, error);
    wants_more = status != WAL_OK || write_blob(writer, blob, dry_run, &status, error);
    wal_blob_close(blob);
    return wants_more ? status : WAL_ECALLBACK;
}

static enum wal_status write_line(struct verbatim_writer *writer, const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__model_output *output = &writer->output;
    bool is_out_of_line = (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0;
    enum wal_status status = WAL_OK;

    if (is_out_of_line) {
        status = write_blob_payload(writer, entry, true, error);
    }
    if (status == WAL_OK && is_out_of_line) {
        status = write_blob_payload(writer, entry, false, error);
    }
    if (status == WAL_OK && ((!is_out_of_line && !output->put(output->ctx, entry->payload.data,
                                                              (size_t)entry->payload.size)) ||
                             !output->put(output->ctx, "\n", 1))) {
        status = WAL_ECALLBACK;
    }
    if (status == WAL_ECALLBACK) {
        wal__error_copy(error, &writer->verbatim->files->error);
        return writer->verbatim->files->status;
    }
    return status;
}

static bool is_exact(const struct wal__verbatim *verbatim, const struct wal_entry *entry)
{
    struct wal__line_meta meta = wal__entry_meta(entry);

    return (entry->flags & WAL_ENTRY_LINE) != 0 && (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
           !meta.is_inexact && !meta.is_opaque &&
           (!meta.is_from_view || meta.view == verbatim->dialect);
}

/* Checks all new entries before any of them is written. */
static enum wal_status check_exact(const struct wal__verbatim *verbatim, uint64_t limits,
                                   bool *exact, struct wal_error *error)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, verbatim->from);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    *exact = true;
    status = wal_entry_cursor_open(verbatim->session, &options, &cursor, error);
    for (uint64_t at = verbatim->from; status == WAL_OK && *exact && at < limits; at++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            *exact = is_exact(verbatim, &entry);
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            *exact = false;
            status = WAL_OK;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status write_lines(struct verbatim_writer *writer, uint64_t *from, uint64_t limits,
                                   bool *exact, struct wal_error *error)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, *from);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    status = wal_entry_cursor_open(writer->verbatim->session, &options, &cursor, error);
    for (uint64_t at = *from; status == WAL_OK && *exact && at < limits; at++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            *exact = is_exact(writer->verbatim, &entry);
            status = *exact ? write_line(writer, &entry, error) : WAL_OK;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO || status == WAL_ENOTFOUND) {
            *exact = false; /* a conversion omits what cannot be read */
            status = WAL_OK;
        }
        *from = at + 1;
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__verbatim_write(struct wal__verbatim *verbatim,
                                    const struct wal__entry_limits *limits, bool *exact,
                                    struct wal_error *error)
{
    struct verbatim_writer writer = {.verbatim = verbatim,
                                     .output = wal__view_files_output(verbatim->files)};
    struct wal__heap_arena arena;
    enum wal_status status = WAL_OK;
    const char *path;

    *exact = true;
    wal__heap_arena_init(&arena, verbatim->env->heap);
    path = verbatim->dialect->write_ops->path(&verbatim->snapshot->session, 0, &arena.arena);
    if (path == NULL || arena.has_failed) {
        status = wal__no_memory(error);
    } else if (!writer.output.file(writer.output.ctx, path, WAL__OUTPUT_LINES)) {
        wal__error_copy(error, &verbatim->files->error);
        status = verbatim->files->status;
    }
    /* An append in place cannot be undone: check first. */
    if (status == WAL_OK && wal__view_files_is_appending(verbatim->files)) {
        status = check_exact(verbatim, limits->entries[0], exact, error);
    }
    if (status == WAL_OK && *exact) {
        status = write_lines(&writer, &verbatim->from, limits->entries[0], exact, error);
    }
    wal__view_files_set_stable(verbatim->files);
    wal__heap_free(verbatim->env->heap, writer.piece);
    wal__heap_arena_deinit(&arena);
    return status;
}
