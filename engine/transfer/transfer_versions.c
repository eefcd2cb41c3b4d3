/*
 * transfer_versions.c - the versions of documents on both sides, key by key:
 * which of them the other store lacks.
 *
 * A key has a beginning in common, or the newest version of one side is an
 * older one of the other; else it was changed on both sides.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"

static int compare_versions(const void *a, const void *b)
{
    const struct wal__transfer_version *x = a;
    const struct wal__transfer_version *y = b;

    if (x->key_hash != y->key_hash) {
        return x->key_hash < y->key_hash ? -1 : 1;
    }
    return x->record < y->record ? -1 : x->record > y->record;
}

/* Compaction leaves a deletion where a version was that nobody sees. */
static void mark_erased(struct wal__buf *versions)
{
    struct wal__transfer_version *items = (void *)versions->data;

    for (size_t i = 0; i + 1 < versions->size / sizeof(*items); i++) {
        items[i].is_erased = items[i].is_deletion && items[i + 1].is_deletion &&
                             items[i].key_hash == items[i + 1].key_hash;
    }
}

enum wal_status
wal__transfer_list_versions(struct wal__transfer *transfer,
                            struct wal__core *core,
                            const struct wal__transfer_records *records,
                            struct wal__buf *out, struct wal_error *error)
{
    const struct wal__transfer_record *items =
        (const void *)records->items.data;
    size_t count = records->items.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__transfer_version version = {.key_hash = items[i].id_hash,
                                                .record = i};
        struct wal__doc_record doc;
        struct wal__frame frame;

        if ((items[i].type != WAL__FRAME_DOC &&
             items[i].type != WAL__FRAME_DOC_DELETE) ||
            wal__transfer_is_local(items[i].id_hash)) {
            continue;
        }
        status =
            wal__transfer_read_doc(core, items[i].position,
                                   &transfer->to_scratch, &frame, &doc, error);
        if (status == WAL_OK) {
            version.is_deletion = frame.type == WAL__FRAME_DOC_DELETE;
            status = wal__sha256(&transfer->sha256, doc.value, &version.digest);
        }
        if (status == WAL_OK) {
            status = wal__buf_append(out, &version, sizeof(version));
        }
    }
    if (out->size > 0) {
        qsort(out->data, out->size / sizeof(struct wal__transfer_version),
              sizeof(struct wal__transfer_version), compare_versions);
    }
    mark_erased(out);
    return status;
}

static bool is_equal(const struct wal__transfer_version *a,
                     const struct wal__transfer_version *b)
{
    return a->is_deletion == b->is_deletion &&
           wal__digest_equal(&a->digest, &b->digest);
}

/* What was erased is the version that is at its place. */
bool wal__transfer_same_version(const struct wal__transfer_version *a,
                                const struct wal__transfer_version *b)
{
    return a->is_erased || b->is_erased || is_equal(a, b);
}

size_t wal__transfer_count_present(const struct wal__transfer_version *from,
                                   size_t from_count,
                                   const struct wal__transfer_version *to,
                                   size_t to_count)
{
    size_t common = 0;

    while (common < from_count && common < to_count &&
           wal__transfer_same_version(&from[common], &to[common])) {
        common++;
    }
    if (common == from_count || common == to_count) {
        return common == from_count ? from_count : common;
    }
    /* At another place what was erased is none that is known. */
    for (size_t i = from_count; i > 0; i--) {
        if (!from[i - 1].is_erased &&
            is_equal(&from[i - 1], &to[to_count - 1])) {
            return i;
        }
    }
    for (size_t i = 0; i < to_count; i++) {
        if (!to[i].is_erased && is_equal(&from[from_count - 1], &to[i])) {
            return from_count;
        }
    }
    return SIZE_MAX;
}

size_t wal__transfer_key_end(const struct wal__transfer_version *items,
                             size_t count, size_t at)
{
    size_t end = at;

    while (end < count && items[end].key_hash == items[at].key_hash) {
        end++;
    }
    return end;
}

static enum wal_status match(struct wal__transfer *transfer,
                             const struct wal__buf *from_versions,
                             const struct wal__buf *to_versions,
                             enum wal__transfer_difference difference,
                             struct wal_error *error)
{
    struct wal__transfer_record *records =
        (void *)transfer->from_records.items.data;
    const struct wal__transfer_version *from =
        (const void *)from_versions->data;
    const struct wal__transfer_version *to = (const void *)to_versions->data;
    size_t from_count = from_versions->size / sizeof(*from);
    size_t to_count = to_versions->size / sizeof(*to);
    size_t other = 0;

    for (size_t at = 0; at < from_count;) {
        size_t end = wal__transfer_key_end(from, from_count, at);
        size_t other_end = other;
        size_t present;

        while (other < to_count && to[other].key_hash < from[at].key_hash) {
            other++;
        }
        other_end = other < to_count && to[other].key_hash == from[at].key_hash
                        ? wal__transfer_key_end(to, to_count, other)
                        : other;
        present = wal__transfer_count_present(&from[at], end - at,
                                              to_count == 0 ? NULL : &to[other],
                                              other_end - other);
        if (present == SIZE_MAX && difference == WAL__TRANSFER_REFUSE) {
            return wal__fail(error, WAL_EEXISTS,
                             "a document was changed on both sides");
        }
        if (present == SIZE_MAX && difference == WAL__TRANSFER_REPORT) {
            wal__transfer_report_document(
                transfer, records[from[end - 1].record].position);
            present = end - at;
        }
        present = present == SIZE_MAX ? 0 : present;
        for (size_t i = 0; i < present; i++) {
            records[from[at + i].record].is_present = true;
        }
        at = end;
        other = other_end;
    }
    return WAL_OK;
}

enum wal_status
wal__transfer_compare_versions(struct wal__transfer *transfer,
                               enum wal__transfer_difference difference,
                               struct wal_error *error)
{
    struct wal__buf from;
    struct wal__buf to;
    enum wal_status status;

    wal__buf_init(&from, transfer->heap);
    wal__buf_init(&to, transfer->heap);
    status = wal__transfer_list_versions(transfer, transfer->from,
                                         &transfer->from_records, &from, error);
    if (status == WAL_OK) {
        status = wal__transfer_list_versions(transfer, transfer->to,
                                             &transfer->to_records, &to, error);
    }
    if (status == WAL_OK) {
        status = match(transfer, &from, &to, difference, error);
    }
    wal__buf_deinit(&from);
    wal__buf_deinit(&to);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}
