/*
 * head.c - heads: who set one last, and moving one (reference.h).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

static struct wal_slice name_of(struct wal_slice name)
{
    return name.size == 0 ? ref_text("main") : name;
}

static bool is_main(struct wal_slice name)
{
    return reference_is_equal(name_of(name), ref_text("main"));
}

uint64_t ref_head_setter(const struct reference *ref, uint32_t number,
                         uint32_t stream, struct wal_slice name, uint64_t limit)
{
    bool main = is_main(name);

    REF_EACH_BACK (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (i > limit || record->stream != stream) {
            continue;
        }
        if (record->kind == REF_HEAD &&
            reference_is_equal(record->head->name, name_of(name))) {
            return i;
        }
        /* An append moves `main` only, and a fork has only that. */
        if (main && ((record->kind == REF_ENTRY && record->moves_head) ||
                     record->kind == REF_FORK)) {
            return i;
        }
    }
    return 0;
}

uint64_t ref_head(const struct reference *ref, uint32_t number, uint32_t stream,
                  struct wal_slice name, uint64_t limit)
{
    uint64_t setter = ref_head_setter(ref, number, stream, name, limit);

    if (setter == 0) {
        return 0;
    }
    return ref_at(ref, setter)->kind == REF_ENTRY ? setter
                                                  : ref_at(ref, setter)->target;
}

/* Whether the head is there already, with this note if one is given. A head
 * that is removed keeps no note, but for `main`. */
static bool is_there(const struct reference *ref, uint32_t number,
                     const struct wal_head *head, uint64_t target)
{
    uint64_t setter =
        ref_head_setter(ref, number, head->stream, head->name, ref->count);

    if (ref_head(ref, number, head->stream, head->name, ref->count) != target) {
        return false;
    }
    return head->note.size == 0 || (target == 0 && !is_main(head->name)) ||
           (setter != 0 && ref_at(ref, setter)->kind == REF_HEAD &&
            reference_is_equal(ref_at(ref, setter)->head->note, head->note));
}

/* The entry must be one that the session sees, of the head's stream. What is
 * expected is the head before the batch, of which there were `before` records;
 * a head that is there already is left, whatever is expected. */
enum wal_status ref_move_head(struct reference *ref, uint32_t number,
                              const struct wal_head *head, uint64_t before,
                              struct wal_error *error)
{
    const struct wal_slice none = {NULL, 0};
    struct wal_slice old = ref_entry_id(
        ref, ref_head(ref, number, head->stream, head->name, before));
    uint64_t target = 0;
    struct ref_record *record;

    if (head->entry_id.size > 0) {
        target = ref_find_named(ref, number, head->entry_id);
        if (target == 0 || ref_at(ref, target)->stream != head->stream) {
            return ref_fail(error, WAL_ENOTFOUND, none);
        }
    }
    if (is_there(ref, number, head, target)) {
        return WAL_OK;
    }
    if ((head->flags & WAL_HEAD_EXPECT) != 0 &&
        !reference_is_equal(old, head->expected)) {
        return ref_conflict(error, WAL_EXPECTATION_HEAD, old);
    }
    record = ref_add(ref, REF_HEAD, number);
    record->stream = head->stream;
    record->target = target;
    record->head = common_alloc(1, sizeof(*record->head));
    WAL__ASSERT(record->head != NULL);
    record->head->name = ref_copy(name_of(head->name));
    record->head->note = ref_copy(head->note);
    return WAL_OK;
}

enum wal_status reference_head_move(struct reference *ref, uint32_t number,
                                    const struct wal_head *head,
                                    char previous[256], struct wal_error *error)
{
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .head_count = 1, .heads = head};
    struct wal_slice before = ref_entry_id(
        ref, ref_head(ref, number, head->stream, head->name, ref->count));
    enum wal_status status =
        reference_batch(ref, number, &batch, NULL, NULL, error);

    if (status == WAL_OK && previous != NULL) {
        memset(previous, 0, 256);
        if (before.size > 0) {
            memcpy(previous, before.data, before.size);
        }
    }
    return status;
}

enum wal_status reference_head_get(const struct reference *ref, uint32_t number,
                                   uint32_t stream, struct wal_slice name,
                                   struct wal_slice *entry_id)
{
    uint64_t target;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    target = ref_head(ref, number, stream, name, ref->count);
    if (target == 0) {
        return WAL_ENOTFOUND;
    }
    *entry_id = ref_entry_id(ref, target);
    return WAL_OK;
}

/* ------------------------------------------------------------- listing --- */

/* `main` before all others, then by stream, then by the bytes of the name. */
static int compare(const void *left, const void *right)
{
    const struct wal_head *a = left;
    const struct wal_head *b = right;
    bool a_main = reference_is_equal(a->name, ref_text("main"));
    bool b_main = reference_is_equal(b->name, ref_text("main"));
    uint64_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order;

    if (a_main != b_main) {
        return a_main ? -1 : 1;
    }
    if (a->stream != b->stream) {
        return a->stream < b->stream ? -1 : 1;
    }
    order = memcmp(a->name.data, b->name.data, size);
    if (order != 0) {
        return order;
    }
    return a->name.size < b->name.size ? -1 : a->name.size > b->name.size;
}

/* Whether a record may have set a head, and which. */
static bool head_of(const struct ref_record *record, uint32_t number,
                    struct wal_head *head)
{
    if (record->session != number ||
        (record->kind != REF_HEAD && record->kind != REF_FORK &&
         !(record->kind == REF_ENTRY && record->moves_head))) {
        return false;
    }
    memset(head, 0, sizeof(*head));
    head->struct_size = sizeof(*head);
    head->stream = record->stream;
    head->name = ref_text("main");
    if (record->kind == REF_HEAD) {
        head->name = record->head->name;
        head->note = record->head->note;
    }
    return true;
}

enum wal_status reference_heads(const struct reference *ref, uint32_t number,
                                struct wal_head **heads, uint32_t *count)
{
    struct wal_head *list;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    list = common_alloc(ref_places_of(ref, number).count + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    REF_EACH (i, ref, number) {
        struct wal_head *head = &list[*count];
        uint64_t target;

        /* It counts where it is the last that set its head. */
        if (!head_of(ref_at(ref, i), number, head) ||
            ref_head_setter(ref, number, head->stream, head->name,
                            ref->count) != i) {
            continue;
        }
        target = ref_head(ref, number, head->stream, head->name, ref->count);
        if (target != 0) {
            head->entry_id = ref_entry_id(ref, target);
            head->version = i;
            *count += 1;
        }
    }
    qsort(list, *count, sizeof(*list), compare);
    *heads = list;
    return WAL_OK;
}
