/*
 * head_cursor.c - reading the heads of a session (SPEC.md 5.5). The target of a head is in the
 * branch and the annotations of the session's own records; its name and note are read from the
 * record that set it, the id from the entry.
 *
 * A cursor is used by one thread at a time; the state lock is taken inside.
 */
#include "engine/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static const struct wal__span main_name = {(const uint8_t *)"main", 4};

enum { STREAMS = 256 };

/* A head and copies of its texts: first as offsets in the cursor's texts, finally as spans. */
struct item {
    uint64_t version;
    uint32_t stream;
    bool named; /* not `main` */
    size_t name_offset;
    size_t id_offset;
    size_t note_offset;
    struct wal__span name;
    struct wal__span entry_id;
    struct wal__span note;
};

struct wal_head_cursor {
    struct wal__core *core;
    uint32_t session;
    struct wal__buf items; /* struct item */
    struct wal__buf texts;
    struct wal__record_buf scratch;
    size_t at; /* the next item */
};

/* --- targets ------------------------------------------------------------ */

bool wal__head_is_main(struct wal__span name)
{
    return name.size == 0 ||
           (name.size == main_name.size && memcmp(name.data, main_name.data, name.size) == 0);
}

uint64_t wal__head_target(const struct wal__branch_slot *slot, uint32_t stream,
                          struct wal__span name)
{
    const struct wal__named_head *head;

    WAL__ASSERT(slot->loaded);
    if (wal__head_is_main(name)) {
        return wal__branch_head(&slot->branch, stream);
    }
    head =
        wal__annotations_find_head(&slot->annotations, stream, wal__id_hash(name.data, name.size));
    return head == NULL ? 0 : head->target;
}

/* The id of the entry; valid while scratch is. WAL_ENOTFOUND when the entry was lost. State lock
 * for writing. */
static enum wal_status read_id(struct wal__core *core, uint32_t session, uint32_t stream,
                               uint64_t sequence, struct wal__record_buf *scratch,
                               struct wal__span *id, struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__entry_location found;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__core_find_sequence(core, session, stream, sequence, &found, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_read(&core->log, found.position, scratch, &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.type != WAL__FRAME_ENTRY ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(found.position),
                            "the entry that a head points to is damaged");
    }
    *id = record.id;
    return WAL_OK;
}

/* --- one head ----------------------------------------------------------- */

static enum wal_status find_id(struct wal_session *session, uint32_t stream, struct wal__span name,
                               struct wal__record_buf *scratch, struct wal__span *id,
                               struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__branch_slot *slot;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(core, session->number, &summary, error);
    uint64_t target;

    if (status == WAL_OK) {
        status = wal__core_get_branch(core, session->number, &slot, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    target = wal__head_target(slot, stream, name);
    if (target == 0) {
        name = name.size == 0 ? main_name : name;
        return wal__fail(error, WAL_ENOTFOUND,
                         "stream %u has no head \"%.*s\" that points to an "
                         "entry",
                         stream, (int)name.size, (const char *)name.data);
    }
    return read_id(core, session->number, stream, target, scratch, id, error);
}

enum wal_status wal__head_get(struct wal_session *session, uint32_t stream, struct wal__span name,
                              char entry_id[256], struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__span id;
    struct wal__record_buf scratch;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    status = find_id(session, stream, name, &scratch, &id, error);
    if (status == WAL_OK) {
        WAL__ASSERT(id.size <= WAL__ID_MAX);
        memcpy(entry_id, id.data, id.size);
        entry_id[id.size] = '\0';
    }
    wal__record_buf_deinit(&scratch);
    wal__core_unlock(core);
    return status;
}

/* --- the list ----------------------------------------------------------- */

/* Appends a copy of a text to the cursor's texts. */
static enum wal_status copy_text(struct wal_head_cursor *heads, struct wal__span text,
                                 struct wal__span *copy, size_t *at, struct wal_error *error)
{
    *at = heads->texts.size;
    copy->size = text.size;
    if (text.size > 0 && wal__buf_append(&heads->texts, text.data, text.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

/* Copies name, note and version from the record that set the head. */
static enum wal_status copy_record(struct wal_head_cursor *heads,
                                   const struct wal__named_head *head, struct item *item,
                                   struct wal_error *error)
{
    struct wal__head_record record;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&heads->core->log, head->position, &heads->scratch, &frame, &payload, error);

    if (status != WAL_OK) {
        return status;
    }
    if (frame.type != WAL__FRAME_HEAD || wal__head_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(head->position),
                            "the record of a head is damaged");
    }
    item->version = head->version;
    status = copy_text(heads, record.name, &item->name, &item->name_offset, error);
    if (status != WAL_OK) {
        return status;
    }
    return copy_text(heads, record.note, &item->note, &item->note_offset, error);
}

/* Adds the item with the id of its target; skips it when the target was lost. */
static enum wal_status add_item(struct wal_head_cursor *heads, struct item *item, uint64_t target,
                                struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    struct wal__span id;
    enum wal_status status = read_id(heads->core, heads->session, item->stream, target,
                                     &heads->scratch, &id, &local_error);

    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &local_error);
        return status;
    }
    status = copy_text(heads, id, &item->entry_id, &item->id_offset, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__buf_append(&heads->items, item, sizeof(*item)) == WAL_OK ? WAL_OK
                                                                         : wal__no_memory(error);
}

/* Adds `main` of a stream: it was set by a record, moved by an append, or is still at the fork
 * point. */
static enum wal_status add_main(struct wal_head_cursor *heads, const struct wal__branch_slot *slot,
                                const struct wal__summary *summary, uint32_t stream,
                                struct wal_error *error)
{
    uint64_t target = wal__branch_head(&slot->branch, stream);
    const struct wal__named_head *set = wal__annotations_find_head(
        &slot->annotations, stream, wal__id_hash(main_name.data, main_name.size));
    struct item item = {.stream = stream, .version = target};
    enum wal_status status;

    if (target == 0) {
        return WAL_OK;
    }
    if (set != NULL && set->target == target) {
        status = copy_record(heads, set, &item, error);
    } else {
        if (target == slot->branch.fork_sequence) {
            item.version = summary->fork_record;
        }
        status = copy_text(heads, main_name, &item.name, &item.name_offset, error);
    }
    return status == WAL_OK ? add_item(heads, &item, target, error) : status;
}

static enum wal_status add_named(struct wal_head_cursor *heads, const struct wal__named_head *head,
                                 struct wal_error *error)
{
    struct item item = {.stream = head->stream, .named = true};
    enum wal_status status = WAL_OK;

    if (head->target == 0 || head->name_hash == wal__id_hash(main_name.data, main_name.size)) {
        return WAL_OK;
    }
    status = copy_record(heads, head, &item, error);
    return status == WAL_OK ? add_item(heads, &item, head->target, error) : status;
}

static int compare(const void *a, const void *b)
{
    const struct item *one = a;
    const struct item *other = b;

    if (one->named != other->named) {
        return one->named ? 1 : -1;
    }
    if (one->stream != other->stream) {
        return one->stream < other->stream ? -1 : 1;
    }
    return wal__span_compare(one->name, other->name);
}

/* Converts offsets to spans, since the texts move no more, and sorts the items. */
static void finish_items(struct wal_head_cursor *heads)
{
    struct item *items = (void *)heads->items.data;
    size_t count = heads->items.size / sizeof(*items);

    for (size_t i = 0; i < count; i++) {
        WAL__ASSERT(items[i].name_offset + items[i].name.size <= heads->texts.size);
        WAL__ASSERT(items[i].id_offset + items[i].entry_id.size <= heads->texts.size);
        WAL__ASSERT(items[i].note_offset + items[i].note.size <= heads->texts.size);
        items[i].name.data = heads->texts.data + items[i].name_offset;
        items[i].entry_id.data = heads->texts.data + items[i].id_offset;
        items[i].note.data = heads->texts.data + items[i].note_offset;
    }
    if (count > 1) {
        qsort(items, count, sizeof(*items), compare);
    }
}

static enum wal_status collect(struct wal_head_cursor *heads, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(heads->core, heads->session, &summary, error);

    if (status == WAL_OK) {
        status = wal__core_get_branch(heads->core, heads->session, &slot, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    slot->pin_count++; /* a lookup in ancestors may evict slots */
    for (uint32_t i = 0; i < STREAMS && status == WAL_OK; i++) {
        status = add_main(heads, slot, &summary, i, error);
    }
    for (uint32_t i = 0; status == WAL_OK && i < slot->annotations.head_count; i++) {
        status = add_named(heads, &slot->annotations.heads[i], error);
    }
    WAL__ASSERT(slot->pin_count > 0);
    slot->pin_count--;
    return status;
}

static enum wal_status fill(struct wal_head_cursor *heads, struct wal_error *error)
{
    enum wal_status status = wal__core_write_lock(heads->core, error);

    if (status == WAL_OK) {
        status = collect(heads, error);
        wal__core_unlock(heads->core);
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

enum wal_status wal__head_cursor_open(struct wal_session *session, struct wal_head_cursor **heads,
                                      struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct wal_head_cursor *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = session->core;
    wal__core_retain(opened->core);
    opened->session = session->number;
    wal__buf_init(&opened->items, heap);
    wal__buf_init(&opened->texts, heap);
    wal__record_buf_init(&opened->scratch, heap);
    status = fill(opened, error);
    if (status != WAL_OK) {
        wal__head_cursor_close(opened);
        return status;
    }
    wal__record_buf_release(&opened->scratch);
    finish_items(opened);
    *heads = opened;
    return WAL_OK;
}

enum wal_status wal__head_cursor_next(struct wal_head_cursor *heads, struct wal_head *head)
{
    const struct item *item = (const void *)heads->items.data;
    uint32_t size = head->struct_size;

    WAL__ASSERT(heads->at <= heads->items.size / sizeof(*item));
    if (heads->at == heads->items.size / sizeof(*item)) {
        return WAL_END;
    }
    item += heads->at;
    heads->at++;
    memset(head, 0, sizeof(*head));
    head->struct_size = size;
    head->stream = item->stream;
    head->name = wal__text_slice(item->name);
    head->entry_id = wal__text_slice(item->entry_id);
    head->note = wal__text_slice(item->note);
    head->version = item->version;
    return WAL_OK;
}

void wal__head_cursor_close(struct wal_head_cursor *heads)
{
    struct wal__core *core;

    if (heads == NULL) {
        return;
    }
    core = heads->core;
    wal__buf_deinit(&heads->items);
    wal__buf_deinit(&heads->texts);
    wal__record_buf_deinit(&heads->scratch);
    wal__heap_free(core->env.heap, heads);
    wal__core_release(core);
}

enum wal_status wal_head_get(struct wal_session *session, uint32_t stream, struct wal_slice name,
                             char entry_id[256], struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && (entry_id == NULL || stream > 255)) {
        status = wal__invalid(error, entry_id == NULL ? "the place for the entry id is null"
                                                      : "a stream has a number up to 255");
    }
    if (status == WAL_OK) {
        status = wal__text_check(name, WAL__ID_MAX, "head's name", &span, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = wal__head_get(session, stream, span, entry_id, error);
    }
    return status;
}

enum wal_status wal_head_cursor_open(struct wal_session *session, struct wal_head_cursor **heads,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && heads == NULL) {
        status = wal__invalid(error, "the place for the list is null");
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = wal__head_cursor_open(session, heads, error);
    }
    return status;
}

enum wal_status wal_head_cursor_next(struct wal_head_cursor *heads, struct wal_head *head,
                                     struct wal_error *error)
{
    struct wal_head own;
    struct wal_head *out;
    enum wal_status status;

    if (heads == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(heads->core, error);
    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_head), head, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_head), head, &own);
    status = wal__head_cursor_next(heads, out);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_head), head, out);
    }
    return status;
}

void wal_head_cursor_close(struct wal_head_cursor *heads)
{
    wal__head_cursor_close(heads);
}
