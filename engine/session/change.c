/*
 * change.c - changes of sessions that are no entries, each a SESSION record
 * that is written anew: an update by a callback, which reads the session, calls
 * the function without a lock and retries when another change was appended
 * since (SPEC.md 5.9); a migration of its schema, one such update per version
 * (SPEC.md 7.2); the title that a redacted entry gave; the end of a redaction; the trash (SPEC.md
 * 5.10), in which a session is while its newest record has the flag; the store
 * in which it goes on (agentwal/admin.h); the acceptance of damage.
 *
 * Invariant: a feature is in MANIFEST before the first record that needs it. Any thread; the
 * resolve functions run in the leader, under the append lock and the state lock for writing.
 */
#include "engine/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/moved_document.h"
#include "engine/session/doc_cursor.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/json/json_text.h"
#include "format/segment/segment_fmt.h"

enum { ATTEMPTS_MAX = 1000 };

/* Commits an operation whose only frame is the record. `resolve` decides under the append lock,
 * with op->request, whether it is written, or skipped. */
static enum wal_status session_write_record(struct wal__core *core, uint32_t number,
                                            const struct wal__session_record *record,
                                            enum wal_status (*resolve)(void *ctx,
                                                                       struct wal__op *op),
                                            void *request, struct wal_error *error)
{
    size_t size = wal__session_record_size(record);
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL || wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__no_memory(error);
    }
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.session = number;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    op->request = request;
    op->resolve = resolve;
    wal__op_finish(op);
    /* Of its texts as they are, and as they are written. */
    op->reservation.texts = 2 * (size - record->metadata.size) + WAL__SUMMARY_GROWTH_MAX;
    status = wal__session_commit(core, op, error);
    wal__op_release(op);
    return status;
}

/* --- a record that is made from the newest one ---------------------------- */

/* The request of an operation whose frame is a SESSION record. */
struct rewrite {
    uint32_t flag; /* of the record, which is set or cleared; 0: no flag is */
    bool is_set;
    const uint64_t *expected; /* last_sequence that the caller saw, or null */
    uint64_t base;            /* position of the record that it was made from */
    bool is_stale;            /* out: `base` is not the newest any more */
};

static bool is_trashed(const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_TRASHED) != 0;
}

static enum wal_status fail_not_trashed(struct wal__span id, struct wal_error *error)
{
    return wal__fail(error, WAL_ENOTFOUND, "session \"%.*s\" is not in the trash", (int)id.size,
                     (const char *)id.data);
}

static enum wal_status resolve_rewrite(void *ctx, struct wal__op *op)
{
    struct rewrite *rewrite = op->request;
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(core, frame->frame.session, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status != WAL_OK) {
        return status;
    }
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    if (rewrite->flag == WAL__SESSION_RECORD_TRASHED && is_trashed(&summary) == rewrite->is_set) {
        return rewrite->is_set ? wal__session_fail_trashed(summary.id, &op->error)
                               : fail_not_trashed(summary.id, &op->error);
    }
    frame->skipped = rewrite->flag == WAL__SESSION_RECORD_MOVED &&
                     ((summary.flags & WAL__SUMMARY_MOVED) != 0) == rewrite->is_set;
    if (rewrite->expected != NULL) {
        status = wal__session_check_sequence(&summary, *rewrite->expected, &op->error);
    }
    if (status == WAL_OK && !frame->skipped && summary.session_position != rewrite->base) {
        rewrite->is_stale = true;
        status = wal__fail(&op->error, WAL_ECONFLICT,
                           "the record of session \"%.*s\" changes all the time",
                           (int)summary.id.size, (const char *)summary.id.data);
    }
    return status;
}

static enum wal_status try_flag(struct wal__core *core, uint32_t number, struct rewrite *rewrite,
                                struct wal_error *error)
{
    struct wal__current_record current = {.position = 0};
    enum wal_status status;

    rewrite->is_stale = false;
    wal__record_buf_init(&current.scratch, core->env.heap);
    status = wal__session_read_current(core, number, &current, error);
    if (status == WAL_OK && current.record.schema_version == 0) {
        status = wal__fail(error, WAL_ESCHEMA,
                           "the session has no schema version; migrate it "
                           "first");
    }
    if (status == WAL_OK) {
        rewrite->base = current.position;
        current.record.flags &= ~rewrite->flag;
        current.record.flags |= rewrite->is_set ? rewrite->flag : 0;
        status =
            session_write_record(core, number, &current.record, resolve_rewrite, rewrite, error);
    }
    wal__record_buf_deinit(&current.scratch);
    return status;
}

/* Sets or clears a flag of a session durably. WAL_ETRASHED: it is in the trash already;
 * WAL_ENOTFOUND: it is not in it, or the session is deleted. expected: last_sequence of the session
 * as the caller saw it, or null. */
static enum wal_status set_flag(struct wal__core *core, uint32_t number, uint32_t flag, bool is_set,
                                const uint64_t *expected, struct wal_error *error)
{
    struct rewrite rewrite = {.flag = flag, .is_set = is_set, .expected = expected};
    uint32_t feature =
        flag == WAL__SESSION_RECORD_TRASHED ? WAL__INCOMPAT_TRASH : WAL__INCOMPAT_MOVED;
    enum wal_status status = is_set ? wal__core_require_feature(core, feature, error) : WAL_OK;
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_flag(core, number, &rewrite, error);
        attempt++;
    } while (status == WAL_ECONFLICT && rewrite.is_stale && attempt < ATTEMPTS_MAX);
    return status;
}

/* --- records without a payload ------------------------------------------- */

static enum wal_status resolve_accept(void *ctx, struct wal__op *op)
{
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    uint32_t number = frame->frame.session;
    enum wal_status status =
        number == WAL__STORE_NUMBER
            ? wal__catalogue_get(&core->catalogue, number, &summary)
            : wal__session_check_writable(core, number, true, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        summary.flags = 0; /* the store has no documents */
        status = WAL_OK;
    }
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    frame->skipped = (summary.flags & WAL__SUMMARY_DAMAGED) == 0;
    return status;
}

/* A damaged session can be deleted, and one in the trash. */
static enum wal_status resolve_delete(void *ctx, struct wal__op *op)
{
    const uint64_t *expected = op->request;
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status =
        wal__session_check_writable(core, op->frames[0].frame.session, false, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status != WAL_OK && status != WAL_EDAMAGED && status != WAL_ETRASHED) {
        return status;
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    return expected == NULL ? WAL_OK : wal__session_check_sequence(&summary, *expected, &op->error);
}

/* Commits a record without a payload. written, unless null, is raised when one was written. */
static enum wal_status
commit_empty_record(struct wal__core *core, uint32_t number, uint64_t text_size,
                    enum wal__frame_type type,
                    enum wal_status (*resolve)(void *ctx, struct wal__op *op), void *request,
                    uint64_t *written, struct wal_error *error)
{
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL || wal__op_add_frame(op, 0, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__no_memory(error);
    }
    frame->frame.type = (uint8_t)type;
    frame->frame.session = number;
    op->request = request;
    op->resolve = resolve;
    wal__op_finish(op);
    op->reservation.texts = text_size;
    status = wal__session_commit(core, op, error);
    if (written != NULL) {
        *written += status == WAL_OK && op->written;
    }
    wal__op_release(op);
    return status;
}

enum wal_status wal__session_accept_damage(struct wal__core *core, uint32_t number,
                                           uint64_t text_size, struct wal_error *error)
{
    return commit_empty_record(core, number, text_size, WAL__FRAME_ACCEPT, resolve_accept, NULL,
                               NULL, error);
}

enum { RETRIES_MAX = 1000 };

/* WAL_ECONFLICT when another change was appended since the read, even an equal one: a batch that is
 * sent again may be skipped as a duplicate, but here two callers that each add one may write the
 * same value. */
static enum wal_status check_stale_read(const struct wal__op *op,
                                        const struct wal_session_change *change,
                                        struct wal_error *error)
{
    const struct wal__batch *batch = op->request;
    char actual[24];

    WAL__ASSERT(batch->change_prepared);
    if (batch->expected_version == change->expected_version) {
        return WAL_OK;
    }
    (void)snprintf(actual, sizeof(actual), "%" PRIu64, batch->expected_version);
    return wal__conflict(error, WAL_EXPECTATION_METADATA, actual,
                         "the metadata has version %s, not %" PRIu64, actual,
                         change->expected_version);
}

static enum wal_status commit_change(struct wal_session *session,
                                     const struct wal_session_change *change, bool is_migration,
                                     struct wal_error *error)
{
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = change};
    struct wal__op *op = NULL;
    enum wal_status status = wal__batch_create(
        session, &batch, NULL, is_migration ? WAL__BATCH_MIGRATION : WAL__BATCH_PLAIN, &op, error);

    if (status != WAL_OK) {
        return status;
    }
    status = check_stale_read(op, change, error);
    if (status == WAL_OK) {
        status = wal__session_commit(session->core, op, error);
    }
    wal__op_release(op);
    return status;
}

/* Reads, calls the function and writes, once. */
static enum wal_status try_update(struct wal_session *reader, wal_update_fn *fn, void *ctx,
                                  uint32_t schema_version, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_change change = {.struct_size = sizeof(change)};
    enum wal_status status = wal__session_get_info(reader, &info, error);
    int32_t returned;

    if (status != WAL_OK) {
        return status;
    }
    if (schema_version != 0 && info.schema_version >= schema_version) {
        return WAL_OK; /* another caller did this step meanwhile */
    }
    returned = fn(ctx, &info, &change);
    if (returned != 0) {
        return wal__fail_at(error, WAL_ECALLBACK, returned, NULL, 0,
                            "the update function of the session returned "
                            "%" PRId32,
                            returned);
    }
    change.fields |= WAL_CHANGE_EXPECT;
    change.expected_version = info.metadata_version;
    if (schema_version != 0) {
        change.fields |= WAL_CHANGE_SCHEMA;
        change.schema_version = schema_version;
    }
    return commit_change(reader, &change, schema_version != 0, error);
}

static enum wal_status update(struct wal_session *session, wal_update_fn *fn, void *ctx,
                              uint32_t schema_version, struct wal_error *error)
{
    struct wal_session *reader = NULL;
    /* A separate handle: the caller owns the info texts of its handle. */
    enum wal_status status = wal__session_open(session->core, session->number, &reader, error);
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t looked = 0;
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_update(reader, fn, ctx, schema_version, &own);
        attempt++;
    } while ((status == WAL_ECONFLICT && attempt < RETRIES_MAX &&
              own.expectation != WAL_EXPECTATION_SEQUENCE) ||
             wal__core_invalidate_derived(session->core, status, &looked));
    WAL__ASSERT(attempt <= RETRIES_MAX + 1);
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    wal__session_free(reader);
    return status;
}

/* --- schemas ------------------------------------------------------------ */

/* Buffer for the title in the metadata of a session of schema 0. */
struct title_buffer {
    uint8_t title[WAL__TEXT_MAX];
};

/* Version 0 to 1: copies the title from the metadata to its field. */
static int32_t migrate_title(void *ctx, const struct wal_session_info *now,
                             struct wal_session_change *change)
{
    struct title_buffer *title_buffer = ctx;
    struct wal__span metadata = {now->metadata.data, (size_t)now->metadata.size};
    struct wal__span title;

    if (now->title.size > 0 || !wal__text_member(metadata, "title", title_buffer->title,
                                                 sizeof(title_buffer->title), &title)) {
        return 0;
    }
    WAL__ASSERT(title.size <= sizeof(title_buffer->title));
    change->fields = WAL_CHANGE_TITLE;
    change->title = wal__text_slice(title);
    return 0;
}

static enum wal_status reject_migration(uint32_t from, uint32_t to, struct wal_error *error)
{
    char actual[16];
    int size = snprintf(actual, sizeof(actual), "%" PRIu32, from);

    wal__fail(error, WAL_ESCHEMA, "cannot migrate schema version %s to %" PRIu32, actual, to);
    wal__error_set_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

static enum wal_status read_schema_version(struct wal_session *session, uint32_t *version,
                                           struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_check_writable(core, session->number, true, &summary, error);
    if (status == WAL_OK) {
        *version = summary.schema_version;
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__session_migrate(struct wal_session *session, uint32_t to, wal_update_fn *fn,
                                     void *ctx, struct wal_migrate_result *result,
                                     struct wal_error *error)
{
    uint32_t from = 0;
    uint32_t version;
    enum wal_status status = read_schema_version(session, &from, error);

    version = from;
    if (status == WAL_OK && from > to) {
        status = reject_migration(from, to, error);
    }
    while (status == WAL_OK && version < to) {
        struct title_buffer title_buffer;

        if (fn != NULL) {
            status = update(session, fn, ctx, version + 1, error);
        } else if (version == 0) {
            status = update(session, migrate_title, &title_buffer, 1, error);
        } else {
            status = reject_migration(version, to, error);
        }
        version += status == WAL_OK;
    }
    if (status == WAL_OK && result != NULL) {
        WAL__ASSERT(version == to);
        result->from = from;
        result->to = to;
        result->reserved = 0;
        result->sessions = from != to;
    }
    return status;
}

enum {
    LOADED_MAX = 16 * 1024 * 1024 /* bytes of a payload that is a blob */
};

/* --- titles that a redacted entry gave ------------------------------------ */

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* The title without white space around it, and without the sign that it was cut. */
static struct wal__span trim(struct wal__span title)
{
    static const uint8_t ellipsis[] = {0xe2, 0x80, 0xa6};

    if (title.size >= 3 && (memcmp(title.data + title.size - 3, ellipsis, 3) == 0 ||
                            memcmp(title.data + title.size - 3, "...", 3) == 0)) {
        title.size -= 3;
    }
    while (title.size > 0 && is_space(title.data[title.size - 1])) {
        title.size--;
    }
    while (title.size > 0 && is_space(title.data[0])) {
        title.data++;
        title.size--;
    }
    return title;
}

/* Reads the text whose first character is at *at, up to its closing quote. Whether it begins with
 * the title, after white space. */
static bool text_begins_with(const uint8_t **at, const uint8_t *end, struct wal__span title)
{
    bool is_same = true;
    size_t size = 0;

    while (*at < end && **at != '"') {
        uint32_t code_point = 0;
        uint8_t encoded[4];
        size_t length;

        if (!wal__json_character_read(at, end, &code_point)) {
            *at = end;
            break;
        }
        if (code_point > 0x10ffff) { /* a line may have any bytes */
            is_same = false;
            continue;
        }
        length = wal__json_character_write(code_point, encoded);
        if (!is_same || size == title.size || (size == 0 && length == 1 && is_space(encoded[0]))) {
            continue;
        }
        is_same = title.size - size >= length && memcmp(title.data + size, encoded, length) == 0;
        size += length;
    }
    return is_same && size == title.size;
}

bool wal__title_is_given(struct wal__span json, struct wal__span title)
{
    const uint8_t *at = json.data;
    const uint8_t *end = at + json.size;

    title = trim(title);
    while (title.size > 0 && at < end) {
        at = memchr(at, '"', (size_t)(end - at));
        if (at == NULL) {
            return false;
        }
        at++;
        if (text_begins_with(&at, end, title)) {
            return true;
        }
        at += at < end;
    }
    return false;
}

/* --- the sessions that have the title ------------------------------------- */

static enum wal_status forget_title(struct wal__core *core, uint32_t number, struct wal__span json,
                                    struct rewrite *rewrite, struct wal_error *error)
{
    struct wal__current_record current = {.position = 0};
    enum wal_status status;

    rewrite->is_stale = false;
    wal__record_buf_init(&current.scratch, core->env.heap);
    status = wal__session_read_current(core, number, &current, NULL);
    if (status == WAL_OK && current.position != 0 && current.record.schema_version != 0 &&
        wal__title_is_given(json, current.record.title)) {
        rewrite->base = current.position;
        current.record.title.size = 0;
        status =
            session_write_record(core, number, &current.record, resolve_rewrite, rewrite, error);
    } else if (status != WAL_ENOMEM && status != WAL_EIO) {
        status = WAL_OK; /* it was deleted, or its record lost */
    }
    wal__record_buf_deinit(&current.scratch);
    return status;
}

/* Whether a session is the owner, or a fork that was made of it. */
static bool descends(const struct wal__core *core, struct wal__summary summary, uint32_t owner)
{
    while (summary.number != owner) {
        if (summary.fork_source == 0 ||
            wal__catalogue_get(&core->catalogue, summary.fork_source, &summary) != WAL_OK) {
            return false;
        }
    }
    return true;
}

/* Lists the sessions with a title that may be of the owner's entry. State lock. */
static enum wal_status list_forks(const struct wal__core *core, uint32_t owner,
                                  struct wal__buf *numbers)
{
    enum wal_status status = WAL_OK;

    for (uint32_t number = owner; number <= core->catalogue.last_session && status == WAL_OK;
         number++) {
        struct wal__summary summary;

        if (wal__catalogue_get(&core->catalogue, number, &summary) == WAL_OK &&
            (summary.flags & WAL__SUMMARY_DELETED) == 0 && summary.title.size > 0 &&
            descends(core, summary, owner)) {
            status = wal__buf_append(numbers, &number, sizeof(number));
        }
    }
    return status;
}

/* The same of the sessions that have the title of a redacted entry; none when its redaction was
 * undone. State lock for writing. */
static enum wal_status list_holders(struct wal__core *core, uint32_t owner, uint64_t sequence,
                                    struct wal__buf *numbers, struct wal_error *error)
{
    struct wal__branch_slot *slot = NULL;
    enum wal_status status = wal__core_get_branch(core, owner, &slot, error);

    if (status != WAL_OK || wal__annotations_find_redaction(&slot->annotations, sequence) == NULL) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    return list_forks(core, owner, numbers);
}

/* Reads the payload of the record of an entry; empty when it was erased. */
static enum wal_status read_payload(struct wal__core *core, uint64_t position,
                                    struct wal__record_buf *scratch, struct wal__buf *content,
                                    struct wal__span *json, struct wal_error *error)
{
    struct wal__entry_record entry;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = wal__log_read(&core->log, position, scratch, &frame, &payload, error);

    if (status == WAL_OK && wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    if (status != WAL_OK || entry.is_erased) {
        return status;
    }
    if (entry.digest != NULL && entry.payload_size <= LOADED_MAX) {
        status = wal__payload_load(core, &entry, content, error);
        entry.payload = (struct wal__span){content->data, content->size};
    }
    if (status == WAL_OK) {
        *json = entry.payload;
    }
    return status;
}

/* Finds an entry and reads its payload; empty when it is lost or erased. What seems damaged may be
 * a file that another process replaced. */
static enum wal_status load_payload(struct wal__core *core, uint32_t owner, uint32_t stream,
                                    uint64_t sequence, struct wal__record_buf *scratch,
                                    struct wal__buf *content, struct wal__span *json,
                                    struct wal_error *error)
{
    struct wal__entry_location found = {0};
    uint64_t looked = 0;
    enum wal_status status;

    *json = (struct wal__span){NULL, 0};
    do {
        content->size = 0;
        status = wal__core_write_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__core_find_sequence(core, owner, stream, sequence, &found, error);
        wal__core_unlock(core);
        if (status == WAL_OK) {
            status = read_payload(core, found.position, scratch, content, json, error);
        }
    } while (wal__core_invalidate_derived(core, status, &looked));
    return status == WAL_ENOTFOUND || status == WAL_ECORRUPT ? WAL_OK : status;
}

enum wal_status wal__session_gives_title(struct wal__core *core,
                                         const struct wal__entry_location *entry,
                                         struct wal__span title, bool *gives,
                                         struct wal_error *error)
{
    struct wal__span json = {NULL, 0};
    struct wal__record_buf scratch;
    struct wal__buf content;
    enum wal_status status;

    wal__record_buf_init(&scratch, core->env.heap);
    wal__buf_init(&content, core->env.heap);
    status = load_payload(core, entry->session, entry->stream, entry->sequence, &scratch, &content,
                          &json, error);
    *gives = json.size > 0 && wal__title_is_given(json, title);
    wal__buf_deinit(&content);
    wal__record_buf_deinit(&scratch);
    return status;
}

enum wal_status wal__session_forget_titles(struct wal__core *core, uint32_t owner, uint32_t stream,
                                           uint64_t sequence, struct wal_error *error)
{
    struct wal__span json = {NULL, 0};
    struct wal__record_buf scratch;
    struct wal__buf content;
    struct wal__buf numbers;
    enum wal_status status;

    wal__record_buf_init(&scratch, core->env.heap);
    wal__buf_init(&content, core->env.heap);
    wal__buf_init(&numbers, core->env.heap);
    status = load_payload(core, owner, stream, sequence, &scratch, &content, &json, error);
    if (status == WAL_OK && json.size > 0) {
        status = wal__core_write_lock(core, error);
        if (status == WAL_OK) {
            status = list_holders(core, owner, sequence, &numbers, error);
            wal__core_unlock(core);
        }
    }
    for (size_t at = 0; at < numbers.size && json.size > 0 && status == WAL_OK;
         at += sizeof(uint32_t)) {
        struct rewrite rewrite = {.flag = 0};
        uint32_t attempt = 0;
        uint32_t number;

        memcpy(&number, numbers.data + at, sizeof(number));
        do {
            status = forget_title(core, number, json, &rewrite, error);
            attempt++;
        } while (status == WAL_ECONFLICT && rewrite.is_stale && attempt < ATTEMPTS_MAX);
    }
    wal__buf_deinit(&numbers);
    wal__buf_deinit(&content);
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* --- undoing a redaction -------------------------------------------------- */

/* The request of an operation whose frame is a RESTORE record. */
struct restore {
    uint32_t session; /* that sees the entry */
    struct wal__span id;
};

/* WAL_EREDACTED when the entry was erased. What it has is read under the compaction lock, so that
 * nothing is erased before the record is in the log. State lock for writing. */
static enum wal_status check_restore(struct wal__core *core, const struct restore *restore,
                                     struct wal__entry_location *found, struct wal_error *error)
{
    const int size = (int)restore->id.size;
    const char *id = (const char *)restore->id.data;
    struct wal__branch_slot *slot = NULL;
    struct wal__entry_record entry;
    struct wal__record_buf scratch;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = wal__core_find_id(core, restore->session, restore->id, found, error);

    if (status == WAL_OK) {
        status = wal__core_get_branch(core, found->session, &slot, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__annotations_find_redaction(&slot->annotations, found->sequence) == NULL) {
        return wal__fail(error, WAL_ENOTFOUND, "the entry \"%.*s\" is not redacted", size, id);
    }
    wal__record_buf_init(&scratch, core->env.heap);
    status = wal__log_read(&core->log, found->position, &scratch, &frame, &payload, error);
    if (status == WAL_OK && wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        status = wal__fail(error, WAL_ECORRUPT, "the entry \"%.*s\" is damaged", size, id);
    }
    if (status == WAL_OK && entry.is_erased) {
        status = wal__fail(error, WAL_EREDACTED, "the content of the entry \"%.*s\" was erased",
                           size, id);
    }
    wal__record_buf_deinit(&scratch);
    return status;
}

static enum wal_status resolve_restore(void *ctx, struct wal__op *op)
{
    const struct restore *restore = op->request;
    struct wal__frame *frame = &op->frames[0].frame;
    struct wal__entry_location found = {0};
    struct wal__core *core = ctx;
    enum wal_status status = wal__session_check_present(core, restore->session, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status == WAL_OK) {
        status = check_restore(core, restore, &found, &op->error);
    }
    if (status == WAL_OK) {
        frame->session = found.session;
        frame->stream = (uint8_t)WAL__STREAM_BASE(found.stream);
        frame->parent = found.sequence;
        frame->flags = WAL__FRAME_FIRST | WAL__FRAME_LAST | WAL__FRAME_IGNORABLE;
    }
    return status;
}

/* --- the trash ------------------------------------------------------------ */

/* Takes the session with this id out of the trash. */
static enum wal_status session_undelete(struct wal__core *core, struct wal__span id,
                                        struct wal_error *error)
{
    struct wal__summary summary = {0};
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_find(&core->catalogue, id, &summary);
    wal__core_unlock(core);
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, status, 0, core->env.root, 0, "there is no session \"%.*s\"",
                            (int)id.size, (const char *)id.data);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s", wal_status_text(status));
    }
    return is_trashed(&summary)
               ? set_flag(core, summary.number, WAL__SESSION_RECORD_TRASHED, false, NULL, error)
               : fail_not_trashed(id, error);
}

/* --- emptying the trash --------------------------------------------------- */

/* One that was taken out of the trash meanwhile, or is deleted, is skipped. No sequence is
 * expected: a session in the trash gets no entries. */
static enum wal_status resolve_empty(void *ctx, struct wal__op *op)
{
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(core, frame->frame.session, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    frame->skipped = status == WAL_ENOTFOUND || (status == WAL_OK && !is_trashed(&summary));
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Finds the first session in the trash from a number on; WAL_ENOTFOUND when there is none. */
static enum wal_status find_trashed(struct wal__core *core, uint32_t from, uint32_t *number,
                                    uint64_t *text_size, struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = WAL_ENOTFOUND;
    for (uint64_t i = from; status == WAL_ENOTFOUND && i <= core->catalogue.last_session; i++) {
        status = wal__catalogue_get(&core->catalogue, (uint32_t)i, &summary);
        if (status == WAL_OK &&
            (!is_trashed(&summary) || (summary.flags & WAL__SUMMARY_DELETED) != 0)) {
            status = WAL_ENOTFOUND;
        }
    }
    if (status == WAL_OK) {
        *number = summary.number;
        *text_size = wal__summary_text_size(&summary) + WAL__SUMMARY_GROWTH_MAX;
    } else if (status != WAL_ENOTFOUND) {
        status = wal__fail(error, status, "cannot read the catalogue: %s", wal_status_text(status));
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__trash_empty(struct wal__core *core, uint64_t *count, struct wal_error *error)
{
    uint64_t looked = 0;
    uint64_t text_size;
    uint32_t number = 0;
    enum wal_status status = WAL_OK;

    *count = 0;
    while (status == WAL_OK) {
        status = find_trashed(core, number + 1, &number, &text_size, error);
        if (status == WAL_OK) {
            status = commit_empty_record(core, number, text_size, WAL__FRAME_TOMBSTONE,
                                         resolve_empty, NULL, count, error);
        } else if (wal__core_invalidate_derived(core, status, &looked)) {
            status = WAL_OK;
        }
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* --- the engine's own documents ------------------------------------------ */

static enum wal_status try_get(struct wal_doc_cursor *docs, struct wal__span key,
                               struct wal__buf *value, uint64_t *version, struct wal_error *error)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    enum wal_status status = wal__doc_cursor_get(docs, key, 0, &doc, error);

    if (status != WAL_OK) {
        return status;
    }
    value->size = 0;
    if (wal__buf_append(value, doc.value.data, (size_t)doc.value.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    if (version != NULL) {
        *version = doc.version;
    }
    return WAL_OK;
}

enum wal_status wal__reserved_doc_get(struct wal_session *session, struct wal__span key,
                                      struct wal__buf *value, uint64_t *version,
                                      struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_doc_cursor docs = {.core = session->core, .number = session->number};
    enum wal_status status;

    WAL__ASSERT(wal__doc_key_is_reserved(key));
    wal__record_buf_init(&docs.scratch, session->core->env.heap);
    do {
        status = try_get(&docs, key, value, version, error);
    } while (wal__core_read_again(session->core, status, docs.is_damaged, &looked));
    wal__record_buf_deinit(&docs.scratch);
    return status;
}

enum wal_status wal__reserved_commit(struct wal_session *session, const struct wal_batch *batch,
                                     enum wal__batch_mode mode, enum wal_durability durability,
                                     uint64_t *version, struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    enum wal_status status;

    do {
        struct wal__op *op = NULL;

        status = wal__batch_create(session, batch, &options, mode, &op, error);
        if (status == WAL_OK) {
            status = wal__session_commit(session->core, op, error);
            if (status == WAL_OK && version != NULL) {
                *version = ((struct wal__batch *)op->request)->docs[0].version;
            }
            wal__op_release(op);
        }
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    return status;
}

enum wal_status wal__reserved_doc_put(struct wal_session *session, struct wal__span key,
                                      struct wal__span value, uint64_t expected, uint64_t *version,
                                      struct wal_error *error)
{
    struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = wal__text_slice(key), .value = wal__text_slice(value)};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1};

    WAL__ASSERT(wal__doc_key_is_reserved(key));
    if (expected != WAL__DOC_ANY_VERSION) {
        doc.flags = WAL_DOC_EXPECT;
        doc.version = expected;
    }
    return wal__reserved_commit(session, &batch, WAL__BATCH_PLAIN, WAL_DURABLE, version, error);
}

/* --- the store in which a session goes on --------------------------------- */

/* Copies the id of a session, which is not deleted. */
static enum wal_status read_session_id(struct wal_session *session, char id[WAL_ID_SIZE],
                                       bool *is_away, struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_find(core, session->number, &summary, error);
    if (status == WAL_OK) {
        WAL__ASSERT(summary.id.size < WAL_ID_SIZE);
        memcpy(id, summary.id.data, summary.id.size);
        id[summary.id.size] = '\0';
        *is_away = (summary.flags & WAL__SUMMARY_MOVED) != 0;
    }
    wal__core_unlock(core);
    return status;
}

static struct wal__span span_of(const char *id)
{
    return (struct wal__span){(const uint8_t *)id, strlen(id)};
}

/* WAL_ENOTFOUND: there was none. */
static enum wal_status session_get_move(struct wal_session *session, struct wal_session_move *move,
                                        struct wal_error *error)
{
    struct wal_session_move read = WAL_INIT(wal_session_move);
    struct wal__buf value;
    char id[WAL_ID_SIZE];
    bool is_away = false;
    enum wal_status status = read_session_id(session, id, &is_away, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&value, session->core->env.heap);
    status = wal__reserved_doc_get(session, wal__moved_key(), &value, NULL, error);
    if (status == WAL_OK &&
        !wal__moved_decode((struct wal__span){value.data, value.size}, span_of(id), &read)) {
        status = WAL_ENOTFOUND;
    }
    wal__buf_deinit(&value);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, status, "the session \"%s\" never moved", id);
    }
    if (status == WAL_OK) {
        read.flags = is_away ? (uint32_t)WAL_SESSION_MOVE_AWAY : 0;
        *move = read;
    }
    return status;
}

/* Records a move durably: the document, then the flag, so that a refused append can say where
 * to. */
static enum wal_status session_set_move(struct wal_session *session,
                                        const struct wal_session_move *move,
                                        struct wal_error *error)
{
    const bool leaves = (move->flags & WAL_SESSION_MOVE_AWAY) != 0;
    struct wal_doc doc = {.struct_size = sizeof(doc), .key = wal__text_slice(wal__moved_key())};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1};
    char id[WAL_ID_SIZE];
    bool is_away = false;
    struct wal__buf value;
    enum wal_status status = read_session_id(session, id, &is_away, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&value, session->core->env.heap);
    status = wal__moved_encode(move, span_of(id), &value);
    if (status == WAL_OK) {
        doc.value = (struct wal_slice){value.data, value.size};
        /* As a copy, which a session that has moved accepts. */
        status = wal__reserved_commit(session, &batch, WAL__BATCH_COPY, WAL_DURABLE, NULL, error);
    } else {
        status = wal__no_memory(error);
    }
    wal__buf_deinit(&value);
    return status == WAL_OK ? set_flag(session->core, session->number, WAL__SESSION_RECORD_MOVED,
                                       leaves, NULL, error)
                            : status;
}

enum wal_status wal_session_accept_damage(struct wal_session *session, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__session_accept_damage(session->core, session->number, session->text_size, error);
}

static enum wal_status check_update(struct wal_session *session, wal_update_fn *fn,
                                    struct wal_error *error)
{
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fn == NULL) {
        status = wal__invalid(error, "the function that changes the session is null");
    }
    return status;
}

enum wal_status wal_session_update(struct wal_session *session, wal_update_fn *fn, void *ctx,
                                   struct wal_error *error)
{
    enum wal_status status = check_update(session, fn, error);

    return status == WAL_OK ? update(session, fn, ctx, 0, error) : status;
}

enum wal_status wal_session_migrate(struct wal_session *session, uint32_t to, wal_update_fn *fn,
                                    void *ctx, struct wal_migrate_result *result,
                                    struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_migrate_result);
    struct wal_migrate_result done = WAL_INIT(wal_migrate_result);
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_migrate(session, to, fn, ctx, &done, error);
    if (status == WAL_OK) {
        wal__struct_store(type, result, &done);
    }
    return status;
}

enum wal_status wal_session_unredact(struct wal_session *session, struct wal_slice entry_id,
                                     struct wal_error *error)
{
    struct wal__core *core = session == NULL ? NULL : session->core;
    struct restore restore = {.session = 0};
    uint64_t looked = 0;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = wal__text_check(entry_id, WAL__ID_MAX, "entry's id", &restore.id, error);
    }
    if (status == WAL_OK && restore.id.size == 0) {
        status = wal__invalid(error, "the id of the entry to show again is empty");
    }
    if (status != WAL_OK || core->env.io->forgets) {
        return status;
    }
    restore.session = session->number;
    status = wal__core_compact_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_require_feature(core, WAL__RO_COMPAT(WAL__RO_COMPAT_RESTORE), error);
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = commit_empty_record(core, restore.session, WAL__SUMMARY_TEXT_MAX,
                                     WAL__FRAME_RESTORE, resolve_restore, &restore, NULL, error);
    }
    wal__core_compact_unlock(core);
    return status;
}

enum wal_status wal_session_remove(struct wal_session *session,
                                   const struct wal_session_remove_options *options,
                                   struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_session_remove_options own;
    uint64_t *expected;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_remove_options), &own, options, error);
    }
    if (status == WAL_OK &&
        (own.flags & ~(uint32_t)(WAL_SESSION_REMOVE_TRASH | WAL_SESSION_REMOVE_EXPECT)) != 0) {
        status = wal__invalid(error, "the flags of the removal are not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    expected = (own.flags & WAL_SESSION_REMOVE_EXPECT) != 0 ? &own.expected_sequence : NULL;
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status =
            (own.flags & WAL_SESSION_REMOVE_TRASH) != 0
                ? set_flag(session->core, session->number, WAL__SESSION_RECORD_TRASHED, true,
                           expected, error)
                : commit_empty_record(session->core, session->number, session->text_size,
                                      WAL__FRAME_TOMBSTONE, resolve_delete, expected, NULL, error);
    }
    return status;
}

enum wal_status wal_session_delete(struct wal_session *session, struct wal_error *error)
{
    return wal_session_remove(session, NULL, error);
}

enum wal_status wal_session_trash(struct wal_session *session, struct wal_error *error)
{
    struct wal_session_remove_options options = WAL_INIT(wal_session_remove_options);

    options.flags = WAL_SESSION_REMOVE_TRASH;
    return wal_session_remove(session, &options, error);
}

enum wal_status wal_session_undelete(struct wal_store *store, struct wal_slice id,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = session_undelete(core, span, error);
    }
    return status;
}

/* Whether the host is terminated and printable, and the number one. */
static bool is_valid(const struct wal_session_move *move)
{
    const char *end = memchr(move->host, 0, sizeof(move->host));

    for (const char *at = move->host; end != NULL && at < end; at++) {
        if (*at < 0x20 || *at > 0x7e) {
            return false;
        }
    }
    return end != NULL && move->number > 0 && move->number <= INT64_MAX &&
           (move->flags & ~(uint32_t)WAL_SESSION_MOVE_AWAY) == 0;
}

enum wal_status wal_session_set_move(struct wal_session *session,
                                     const struct wal_session_move *move, struct wal_error *error)
{
    struct wal_session_move own;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && move == NULL) {
        status = wal__invalid(error, "the move is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_move), &own, move, error);
    }
    if (status == WAL_OK && !is_valid(&own)) {
        status = wal__invalid(error, "the move of the session is not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    return session_set_move(session, &own, error);
}

enum wal_status wal_session_get_move(struct wal_session *session, struct wal_session_move *move,
                                     struct wal_error *error)
{
    struct wal_session_move own = WAL_INIT(wal_session_move);
    enum wal_status status = wal__check_output(session == NULL ? NULL : session->core,
                                               WAL__STRUCT(wal_session_move), move, error);

    if (status == WAL_OK) {
        status = session_get_move(session, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_session_move), move, &own);
    }
    return status;
}
