/*
 * list.c - what is known of a session, from its summary and SESSION record (SPEC.md 5.4), and
 * session cursors: the sessions of the catalogue, or the ancestors of a session.
 *
 * The catalogue's iterator keeps what it reads, also where the indexes are reloaded. Only when that
 * is damaged does the cursor begin anew, with the indexes that were rebuilt.
 *
 * Invariant: `seen` contains every session that was returned, and `key` is the rearmost position at
 * which one was returned: every session without a record since the open is returned before a
 * session at that position. A cursor that begins anew continues there. One thread at a time; the
 * state lock is taken inside.
 */
#include "engine/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* Appends a copy of a text; the space is reserved. */
static struct wal_slice copy_text(struct wal__buf *texts, struct wal__span text)
{
    struct wal_slice slice = {texts->data + texts->size, text.size};

    WAL__ASSERT(text.size <= texts->capacity - texts->size);
    if (text.size > 0) {
        memcpy(texts->data + texts->size, text.data, text.size);
        texts->size += text.size;
    }
    return slice;
}

/* The first user message; its text may be kept by another session of the lineage. */
static enum wal_status find_first_text(const struct wal__core *core,
                                       const struct wal__summary *summary, struct wal__span *text)
{
    struct wal__summary owner;
    enum wal_status status;

    *text = (struct wal__span){NULL, 0};
    if (summary->first_sequence == 0) {
        return WAL_OK;
    }
    if (summary->first_owner == summary->number) {
        *text = summary->first_text;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, summary->first_owner, &owner);
    if (status == WAL_OK && owner.first_sequence == summary->first_sequence) {
        *text = owner.first_text;
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static uint32_t public_flags(uint32_t flags)
{
    return ((flags & WAL__SUMMARY_FORK) != 0 ? WAL_SESSION_FORK : 0) |
           ((flags & WAL__SUMMARY_DAMAGED) != 0 ? WAL_SESSION_DAMAGED : 0) |
           ((flags & WAL__SUMMARY_MOVED) != 0 ? WAL_SESSION_MOVED : 0) |
           ((flags & WAL__SUMMARY_DELETED) != 0   ? WAL_SESSION_DELETED
            : (flags & WAL__SUMMARY_TRASHED) != 0 ? WAL_SESSION_TRASHED
                                                  : 0);
}

/* The copy of a summary's text, given the copy of all its texts. */
static struct wal_slice relocate(const struct wal__summary *summary, struct wal__span text,
                                 const uint8_t *to)
{
    size_t offset = text.size > 0 ? (size_t)(text.data - summary->id.data) : 0;

    WAL__ASSERT(text.size == 0 || text.data >= summary->id.data);
    return (struct wal_slice){to + offset, text.size};
}

/* Copies the texts of a summary, which are contiguous in the catalogue. */
static void copy_texts(const struct wal__summary *summary, size_t size, struct wal__buf *texts,
                       struct wal_session_info *info)
{
    const uint8_t *to = texts->data + texts->size;

    WAL__ASSERT(size <= texts->capacity - texts->size);
    memcpy(texts->data + texts->size, summary->id.data, size);
    texts->size += size;
    info->id = relocate(summary, summary->id, to);
    info->cwd = relocate(summary, summary->cwd, to);
    info->project = relocate(summary, summary->project, to);
    info->title = relocate(summary, summary->title, to);
    info->parent_id = relocate(summary, summary->parent_id, to);
    info->head = relocate(summary, summary->head_id, to);
    info->source = relocate(summary, summary->source, to);
}

/* metadata: that of the SESSION record, or empty. */
static enum wal_status fill_info(const struct wal__core *core, const struct wal__summary *summary,
                                 struct wal__span metadata, struct wal__buf *texts,
                                 struct wal_session_info *info)
{
    struct wal__span first_text;
    enum wal_status status = find_first_text(core, summary, &first_text);
    size_t size = wal__summary_text_size(summary);
    uint8_t *room;

    if (status != WAL_OK) {
        return status;
    }
    texts->size = 0;
    if (wal__buf_reserve(texts, size + metadata.size + first_text.size, &room) != WAL_OK) {
        return WAL_ENOMEM;
    }
    info->schema_version = summary->schema_version;
    info->number = summary->number;
    info->flags =
        public_flags(summary->flags) |
        (summary->first_sequence != 0 && first_text.size == 0 ? (uint32_t)WAL_SESSION_NO_TEXT : 0);
    copy_texts(summary, size, texts, info);
    info->metadata = copy_text(texts, metadata);
    info->first_text = first_text.data == summary->first_text.data
                           ? relocate(summary, first_text, info->id.data)
                           : copy_text(texts, first_text);
    WAL__ASSERT(info->id.data == texts->data && texts->size <= texts->capacity);
    info->created_ms = summary->created_ms;
    info->updated_ms = summary->updated_ms;
    info->entries = summary->entries + summary->inherited;
    info->inherited = summary->inherited;
    info->bytes = summary->bytes;
    info->last_sequence = summary->last_sequence;
    info->metadata_version = 0;
    info->documents = summary->documents;
    return WAL_OK;
}

/* Fills info from a summary; texts are copied to `texts`, which
 * is emptied first. State lock for reading. */
static enum wal_status session_fill_info(const struct wal__core *core,
                                         const struct wal__summary *summary, struct wal__buf *texts,
                                         struct wal_session_info *info)
{
    return fill_info(core, summary, (struct wal__span){NULL, 0}, texts, info);
}

enum wal_status wal__core_read_session_record(struct wal__core *core, uint64_t position,
                                              struct wal__record_buf *scratch,
                                              struct wal__session_record *record,
                                              uint64_t *sequence, struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status;
    uint32_t version;

    status = wal__log_read(&core->log, position, scratch, &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    version = scratch->used->header.version;
    if (frame.type != WAL__FRAME_SESSION ||
        wal__session_record_decode(payload, version, record) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
                            "the record of session %" PRIu32 " is damaged", frame.session);
    }
    *sequence = frame.sequence;
    return WAL_OK;
}

/* Under the state lock and info_mutex. */
static enum wal_status read_info(struct wal_session *session, struct wal__record_buf *scratch,
                                 struct wal_session_info *info, struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__session_record record = {0};
    struct wal__summary summary;
    uint64_t sequence = 0;
    enum wal_status status = wal__session_find(core, session->number, &summary, error);

    if (status != WAL_OK) {
        return status;
    }
    if (summary.session_position != 0) {
        status = wal__core_read_session_record(core, summary.session_position, scratch, &record,
                                               &sequence, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = fill_info(core, &summary, record.metadata, &session->info_texts, info);
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s", wal_status_text(status));
    }
    info->metadata_version = sequence;
    return WAL_OK;
}

enum wal_status wal__session_get_info(struct wal_session *session, struct wal_session_info *info,
                                      struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal_session_info filled = *info;
    struct wal__record_buf scratch;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    pthread_mutex_lock(&session->info_mutex);
    status = read_info(session, &scratch, &filled, error);
    if (status == WAL_OK) {
        *info = filled;
    }
    pthread_mutex_unlock(&session->info_mutex);
    wal__core_unlock(core);
    wal__record_buf_deinit(&scratch);
    return status;
}

enum {
    FILTERS = 5,
    TIME_DIGITS = 16,
    SEQUENCE_DIGITS = 16,
    NUMBER_DIGITS = 8,
    SEQUENCE_AT = TIME_DIGITS + 1,
    NUMBER_AT = SEQUENCE_AT + SEQUENCE_DIGITS + 1,
    CURSOR_TEXT = NUMBER_AT + NUMBER_DIGITS
};

static enum wal_status fail_catalogue(enum wal_status status, struct wal_error *error)
{
    return status >= 0
               ? status
               : wal__fail(error, status, "cannot read the catalogue: %s", wal_status_text(status));
}

/* -------------------------------------------------------------- options --- */

/* Copies the filter's texts, which must outlive the catalogue cursor. */
static enum wal_status set_filter(struct wal_session_cursor *list,
                                  const struct wal_session_cursor_options *options,
                                  struct wal_error *error)
{
    struct wal__catalogue_filter *filter = &list->catalogue_filter;
    const struct {
        const struct wal_slice *slice;
        struct wal__span *span;
        const char *what;
    } texts[FILTERS] = {
        {&options->cwd, &filter->cwd, "cwd"},
        {&options->project, &filter->project, "project id"},
        {&options->prefix, &filter->prefix, "id's prefix"},
        {&options->source, &filter->source, "source"},
        {&options->parent, &filter->parent_id, "parent id"},
    };
    uint8_t *at;

    if (wal__buf_reserve(&list->filter_texts, (size_t)FILTERS * WAL__TEXT_MAX, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    for (size_t i = 0; i < FILTERS; i++) {
        enum wal_status status =
            wal__text_check(*texts[i].slice, WAL__TEXT_MAX, texts[i].what, texts[i].span, error);

        if (status != WAL_OK) {
            return status;
        }
        if (texts[i].span->size > 0) {
            memcpy(at, texts[i].span->data, texts[i].span->size);
            texts[i].span->data = at;
            at += texts[i].span->size;
        }
    }
    return WAL_OK;
}

static bool is_filtered(const struct wal__catalogue_filter *filter)
{
    return filter->is_trash || filter->changed_after != 0 || filter->recorded_after != 0 ||
           filter->cwd.size + filter->project.size + filter->prefix.size + filter->source.size +
                   filter->parent_id.size >
               0;
}

static bool read_hex(const char *text, size_t digits, uint64_t *value)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t read = 0;

    for (size_t i = 0; i < digits; i++) {
        const char *digit = memchr(hex, text[i], sizeof(hex) - 1);

        if (digit == NULL) {
            return false;
        }
        read = read << 4 | (uint64_t)(digit - hex);
    }
    *value = read;
    return true;
}

/* Parses what session_cursor_encode wrote. Number 0: no session was returned, so all follow. */
static enum wal_status set_after(struct wal_session_cursor *list, struct wal_slice after,
                                 struct wal_error *error)
{
    const char *text = after.data;
    uint64_t time;
    uint64_t sequence;
    uint64_t number;

    if (after.size == 0) {
        return WAL_OK;
    }
    if (text == NULL || after.size != CURSOR_TEXT || text[SEQUENCE_AT - 1] != '-' ||
        text[NUMBER_AT - 1] != '-' || !read_hex(text, TIME_DIGITS, &time) ||
        !read_hex(text + SEQUENCE_AT, SEQUENCE_DIGITS, &sequence) ||
        !read_hex(text + NUMBER_AT, NUMBER_DIGITS, &number) ||
        (number == 0 && (time != 0 || sequence != 0))) {
        return wal__invalid(error, "`after` is not a cursor; pass the text that "
                                   "wal_session_cursor_encode wrote");
    }
    WAL__ASSERT(list->key.number == 0);
    list->catalogue_filter.after.updated_ms = (int64_t)time;
    list->catalogue_filter.after.sequence = sequence;
    list->catalogue_filter.after.number = (uint32_t)number;
    list->key = list->catalogue_filter.after;
    list->is_page = number != 0;
    return WAL_OK;
}

/* Sets the options; *of is the session whose lineage is requested. */
static enum wal_status set_options(struct wal_session_cursor *list,
                                   const struct wal_session_cursor_options *options,
                                   struct wal__span *of, struct wal_error *error)
{
    const uint32_t known = WAL_SESSION_CURSOR_LINEAGE | WAL_SESSION_CURSOR_TRASH;
    enum wal_status status;

    if ((options->flags & ~known) != 0) {
        return wal__invalid(error, "the flags of the session cursor options "
                                   "are not valid");
    }
    list->is_lineage = (options->flags & WAL_SESSION_CURSOR_LINEAGE) != 0;
    list->catalogue_filter.is_trash = (options->flags & WAL_SESSION_CURSOR_TRASH) != 0;
    list->catalogue_filter.changed_after = options->changed_after;
    list->catalogue_filter.recorded_after = options->recorded_after;
    status = set_filter(list, options, error);
    if (status != WAL_OK) {
        return status;
    }
    status = set_after(list, options->after, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(options->lineage_of, WAL__ID_MAX, "session's id", of, error);
    if (status != WAL_OK) {
        return status;
    }
    if (list->is_lineage != (of->size > 0)) {
        return wal__invalid(error, "WAL_SESSION_CURSOR_LINEAGE and lineage_of must be set "
                                   "together");
    }
    if (list->is_lineage && is_filtered(&list->catalogue_filter)) {
        return wal__invalid(error, "a lineage cannot be filtered; unset the filters");
    }
    return WAL_OK;
}

/* -------------------------------------------------------------- lineage --- */

static enum wal_status add_seen(struct wal_session_cursor *list, uint32_t number)
{
    enum wal_status status = wal__bitset_reserve(&list->seen, number);

    if (status == WAL_OK) {
        wal__bitset_set(&list->seen, number);
    }
    return status;
}

/* The session that a session was forked from, or names as its parent; WAL_ENOTFOUND when there is
 * none. */
static enum wal_status get_parent(const struct wal__core *core, const struct wal__summary *summary,
                                  struct wal__summary *parent)
{
    if (summary->fork_source != 0) {
        return wal__catalogue_get(&core->catalogue, summary->fork_source, parent);
    }
    return wal__catalogue_find(&core->catalogue, summary->parent_id, parent);
}

/* Collects the numbers of the ancestors, nearest first. parent_id is set by callers, so it can form
 * a cycle: the walk stops at the first repeat. */
static enum wal_status collect_lineage(struct wal_session_cursor *list,
                                       const struct wal__summary *of)
{
    struct wal__summary summary = *of;
    enum wal_status status = add_seen(list, of->number);

    while (status == WAL_OK) {
        struct wal__summary parent;

        status = get_parent(list->core, &summary, &parent);
        if (status != WAL_OK || wal__bitset_contains(&list->seen, parent.number)) {
            break;
        }
        status = add_seen(list, parent.number);
        if (status == WAL_OK) {
            status = wal__buf_append(&list->lineage, &parent.number, sizeof(parent.number));
        }
        summary = parent;
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static bool lineage_at(const struct wal_session_cursor *list, size_t rank, uint32_t *number)
{
    WAL__ASSERT(list->lineage.size % sizeof(*number) == 0);
    if (rank >= list->lineage.size / sizeof(*number)) {
        return false;
    }
    memcpy(number, list->lineage.data + rank * sizeof(*number), sizeof(*number));
    return true;
}

static enum wal_status begin_lineage(struct wal_session_cursor *list, struct wal__span of,
                                     struct wal_error *error)
{
    struct wal__core *core = list->core;
    struct wal__summary summary;
    uint32_t number;
    enum wal_status status = wal__catalogue_find(&core->catalogue, of, &summary);

    WAL__ASSERT(list->is_lineage && list->lineage.size == 0);
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, status, 0, core->env.root, 0, "there is no session \"%.*s\"",
                            (int)of.size, (const char *)of.data);
    }
    if (status == WAL_OK) {
        status = collect_lineage(list, &summary);
    }
    if (status != WAL_OK || list->key.number == 0) {
        return fail_catalogue(status, error);
    }
    while (lineage_at(list, list->lineage_next++, &number) && number != list->key.number) {
    }
    return WAL_OK;
}

static enum wal_status next_in_lineage(struct wal_session_cursor *list,
                                       struct wal_session_info *info)
{
    struct wal__core *core = list->core;
    struct wal__summary summary;
    uint32_t number;
    enum wal_status status;

    if (!lineage_at(list, list->lineage_next, &number)) {
        return WAL_END;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK) {
        status = session_fill_info(core, &summary, &list->texts, info);
    }
    if (status == WAL_OK) {
        list->lineage_next++;
        list->key.updated_ms = summary.updated_ms;
        list->key.sequence = summary.last_sequence;
        list->key.number = number;
    }
    return status;
}

/* -------------------------------------------------------------- walking --- */

/* Starts the catalogue cursor after the filter's key. State lock. */
static enum wal_status begin(struct wal_session_cursor *list)
{
    struct wal__core *core = list->core;
    enum wal_status status =
        wal__catalogue_iter_init(&list->cursor, &core->catalogue, &list->catalogue_filter);

    if (status == WAL_OK) {
        list->generation = core->generation;
    }
    return status;
}

/* Restarts at the newest session after the indexes were rebuilt, since the catalogue cursor met
 * damage. was_returned() skips the sessions that were returned before. */
static enum wal_status restart(struct wal_session_cursor *list)
{
    WAL__ASSERT(list->generation != list->core->generation);
    wal__catalogue_iter_deinit(&list->cursor);
    memset(&list->cursor, 0, sizeof(list->cursor));
    list->cursor.heap = list->core->env.heap;
    memset(&list->catalogue_filter.after, 0, sizeof(list->catalogue_filter.after));
    list->is_damaged = false;
    list->is_restarted = true;
    list->retry_session = 0;
    return begin(list);
}

/* Whether the session was returned before a restart. Sessions without a record since the open keep
 * their place and are compared by key; those with records may have moved and are looked up in
 * `seen`. Of a page, they may have been on an earlier one: as if they had moved before this page
 * was opened, they are left out. */
static bool was_returned(const struct wal_session_cursor *list)
{
    const struct wal__list_key *key = &list->cursor.key;

    if (!list->is_restarted) {
        return false;
    }
    if (key->sequence > list->last_sequence) {
        return list->is_page || key->number > list->last_session ||
               wal__bitset_contains(&list->seen, key->number);
    }
    return !wal__list_key_is_after(key, &list->key);
}

static enum wal_status next_summary(struct wal_session_cursor *list, struct wal__summary *summary)
{
    const struct wal__catalogue *catalogue = &list->core->catalogue;
    enum wal_status status;

    if (list->retry_session != 0) {
        status = wal__catalogue_get(catalogue, list->retry_session, summary);
        if (status != WAL_ENOTFOUND &&
            (status != WAL_OK || wal__catalogue_is_listed(&list->catalogue_filter, summary))) {
            return status;
        }
        list->retry_session = 0; /* it has left the list since */
    }
    do {
        status = wal__catalogue_iter_next(&list->cursor, catalogue, summary);
    } while (status == WAL_OK && was_returned(list));
    return status;
}

/* The next summary; when the cursor's layers are damaged, of the indexes that were rebuilt
 * since. */
static enum wal_status next_or_restart(struct wal_session_cursor *list,
                                       struct wal__summary *summary)
{
    const struct wal__core *core = list->core;
    enum wal_status status;

    do {
        status = WAL_OK;
        if (list->is_damaged && list->generation != core->generation) {
            status = restart(list);
        }
        if (status == WAL_OK) {
            status = next_summary(list, summary);
        }
        list->is_damaged = list->is_damaged || status == WAL_ECORRUPT;
    } while (status == WAL_ECORRUPT && list->generation != core->generation);
    return status;
}

static enum wal_status next_in_catalogue(struct wal_session_cursor *list,
                                         struct wal_session_info *info)
{
    struct wal__core *core = list->core;
    struct wal__summary summary;
    enum wal_status status = next_or_restart(list, &summary);

    if (status != WAL_OK) {
        return status;
    }
    list->retry_session = summary.number;
    status = wal__bitset_reserve(&list->seen, summary.number);
    if (status == WAL_OK) {
        status = session_fill_info(core, &summary, &list->texts, info);
    }
    if (status != WAL_OK) {
        return status;
    }
    list->retry_session = 0;
    wal__bitset_set(&list->seen, summary.number);
    /* After a restart a session that moved to the front may be returned. */
    if (wal__list_key_is_after(&list->cursor.key, &list->key)) {
        list->key = list->cursor.key;
    }
    return WAL_OK;
}

/* ----------------------------------------------------------- the handle --- */

static enum wal_status start(struct wal_session_cursor *list, struct wal__span of,
                             struct wal_error *error)
{
    struct wal__core *core = list->core;
    bool by_source = list->catalogue_filter.source.size > 0;
    enum wal_status status =
        by_source ? wal__core_write_lock(core, error) : wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    list->last_sequence = core->log.last_sequence;
    list->last_session = core->catalogue.last_session;
    if (by_source) {
        status = fail_catalogue(wal__catalogue_index_sources(&core->catalogue), error);
    }
    if (status == WAL_OK) {
        status =
            list->is_lineage ? begin_lineage(list, of, error) : fail_catalogue(begin(list), error);
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__session_cursor_open(struct wal__core *core,
                                         const struct wal_session_cursor_options *options,
                                         struct wal_session_cursor **list, struct wal_error *error)
{
    const struct wal_session_cursor_options none = {.struct_size = sizeof(none)};
    struct wal_session_cursor *opened;
    struct wal__span of;
    enum wal_status status;

    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    wal__core_retain(core);
    opened->cursor.heap = core->env.heap;
    wal__bitset_init(&opened->seen, core->env.heap);
    wal__buf_init(&opened->lineage, core->env.heap);
    wal__buf_init(&opened->filter_texts, core->env.heap);
    wal__buf_init(&opened->texts, core->env.heap);
    status = set_options(opened, options == NULL ? &none : options, &of, error);
    if (status == WAL_OK) {
        status = start(opened, of, error);
    }
    if (status != WAL_OK) {
        wal__session_cursor_close(opened);
        return status;
    }
    *list = opened;
    return WAL_OK;
}

enum wal_status wal__session_cursor_next(struct wal_session_cursor *list,
                                         struct wal_session_info *info, struct wal_error *error)
{
    struct wal__core *core = list->core;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = list->is_lineage ? next_in_lineage(list, info) : next_in_catalogue(list, info);
    wal__core_unlock(core);
    return fail_catalogue(status, error);
}

static void session_cursor_encode(const struct wal_session_cursor *list,
                                  char cursor[WAL_CURSOR_TEXT_SIZE])
{
    (void)snprintf(cursor, WAL_CURSOR_TEXT_SIZE, "%016" PRIx64 "-%016" PRIx64 "-%08" PRIx32,
                   (uint64_t)list->key.updated_ms, list->key.sequence, list->key.number);
}

void wal__session_cursor_close(struct wal_session_cursor *list)
{
    struct wal__core *core;

    if (list == NULL) {
        return;
    }
    core = list->core;
    wal__catalogue_iter_deinit(&list->cursor);
    wal__bitset_deinit(&list->seen);
    wal__buf_deinit(&list->lineage);
    wal__buf_deinit(&list->filter_texts);
    wal__buf_deinit(&list->texts);
    wal__heap_free(core->env.heap, list);
    wal__core_release(core);
}

enum wal_status wal_session_get_info(struct wal_session *session, struct wal_session_info *info,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal__struct *type = WAL__STRUCT(wal_session_info);
    struct wal_session_info own = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal__check_output(session == NULL ? NULL : session->core, type, info, error);

    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = wal__session_get_info(session, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, info, &own);
    }
    return status;
}

enum wal_status wal_session_cursor_open(struct wal_store *store,
                                        const struct wal_session_cursor_options *options,
                                        struct wal_session_cursor **list, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_session_cursor_options own;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && list == NULL) {
        status = wal__invalid(error, "the place for the list is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_cursor_options), &own, options, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = wal__session_cursor_open(core, &own, list, error);
    }
    return status;
}

enum wal_status wal_session_cursor_next(struct wal_session_cursor *list,
                                        struct wal_session_info *info, struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal__struct *type = WAL__STRUCT(wal_session_info);
    struct wal_session_info own;
    struct wal_session_info *out = NULL;
    enum wal_status status = wal__check_output(list == NULL ? NULL : list->core, type, info, error);

    if (status == WAL_OK) {
        out = wal__struct_target(type, info, &own);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(list->core, status, &looked)) {
        status = wal__session_cursor_next(list, out, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, info, out);
    }
    return status;
}

enum wal_status wal_session_cursor_encode(struct wal_session_cursor *list,
                                          char cursor[WAL_CURSOR_TEXT_SIZE],
                                          struct wal_error *error)
{
    enum wal_status status = wal__check_core(list == NULL ? NULL : list->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        session_cursor_encode(list, cursor);
    }
    return status;
}

void wal_session_cursor_close(struct wal_session_cursor *list)
{
    wal__session_cursor_close(list);
}
