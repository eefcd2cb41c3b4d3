/*
 * document.c - documents of a session, as of a moment, and of the
 * store (reference.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

/* Goes from a session to the one it was forked from, as that was then, or at
 * the limit if that is earlier; false: there is none. */
static bool step_to_source(const struct reference *ref, uint32_t *number,
                           uint64_t *limit)
{
    const struct ref_record *fork =
        *number == REFERENCE_STORE ? NULL : ref_fork_of(ref, *number);

    if (fork == NULL) {
        return false;
    }
    *number = fork->other;
    if (ref_sequence(ref, fork) < *limit) {
        *limit = ref_sequence(ref, fork);
    }
    return true;
}

const struct ref_record *ref_document(const struct reference *ref,
                                      uint32_t number, struct wal_slice key,
                                      uint64_t limit)
{
    do {
        REF_EACH_BACK (i, ref, number) {
            const struct ref_record *record = ref_at(ref, i);

            if (i <= limit && record->kind == REF_DOC &&
                reference_is_equal(record->doc->key, key)) {
                return record;
            }
        }
    } while (step_to_source(ref, &number, &limit));
    return NULL;
}

static bool is_deletion(const struct ref_record *record)
{
    return (record->doc->flags & WAL_DOC_DELETE) != 0;
}

/* ------------------------------------------------------------- writing --- */

/* 0 says that there is no document: there never was one, or it was deleted. */
static uint64_t version_now(const struct reference *ref,
                            const struct ref_record *newest)
{
    return newest == NULL || is_deletion(newest) ? 0
                                                 : ref_sequence(ref, newest);
}

/* A value that is there already is left, whatever version is expected. */
enum wal_status ref_put_doc(struct reference *ref, uint32_t number,
                            const struct wal_doc *doc, struct wal_error *error)
{
    const struct wal_slice none = {NULL, 0};
    const struct ref_record *newest =
        ref_document(ref, number, doc->key, ref->count);
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t version = version_now(ref, newest);
    struct ref_record *record;

    if (!deletes && version != 0 &&
        reference_is_equal(newest->doc->value, doc->value)) {
        return WAL_OK;
    }
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->version != version) {
        return ref_conflict_number(error, WAL_EXPECTATION_DOCUMENT, version);
    }
    if (deletes && version == 0) {
        return ref_fail(error, WAL_ENOTFOUND, none);
    }
    record = ref_add(ref, REF_DOC, number);
    record->doc = common_alloc(1, sizeof(*record->doc));
    WAL__ASSERT(record->doc != NULL);
    record->doc->flags = doc->flags & WAL_DOC_DELETE;
    record->doc->key = ref_copy(doc->key);
    if (!deletes) {
        record->doc->value = ref_copy(doc->value);
    }
    return WAL_OK;
}

/* Of a session, as a batch with nothing else; of the store alike. */
static enum wal_status put(struct reference *ref, uint32_t number,
                           const struct wal_doc *doc, uint32_t flags,
                           uint64_t *version, struct wal_error *error)
{
    struct wal_doc given = *doc;
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = 1, .documents = &given};
    enum wal_status status;

    if ((doc->flags & ~(uint32_t)WAL_DOC_EXPECT) != 0) {
        return WAL_EINVAL;
    }
    given.flags |= flags;
    given.flags |= number == REFERENCE_STORE ? WAL_DOC_STORE : 0;
    status = reference_batch(ref, number, &batch, NULL, NULL, error);
    if (status == WAL_OK && version != NULL) {
        *version =
            ref_sequence(ref, ref_document(ref, number, doc->key, ref->count));
    }
    return status;
}

enum wal_status reference_doc_put(struct reference *ref, uint32_t number,
                                  const struct wal_doc *doc, uint64_t *version,
                                  struct wal_error *error)
{
    return put(ref, number, doc, 0, version, error);
}

enum wal_status reference_doc_delete(struct reference *ref, uint32_t number,
                                     const struct wal_doc *doc,
                                     uint64_t *version, struct wal_error *error)
{
    return put(ref, number, doc, WAL_DOC_DELETE, version, error);
}

/* ------------------------------------------------------------- reading --- */

static void fill_doc(const struct reference *ref,
                     const struct ref_record *record, struct reference_doc *out)
{
    memset(out, 0, sizeof(*out));
    out->doc = *record->doc;
    out->doc.struct_size = sizeof(out->doc);
    out->doc.version = ref_sequence(ref, record);
    out->doc.modified_ms = record->earliest_ms;
    out->latest_ms = record->latest_ms;
}

/* By the bytes of the keys, a shorter one before those that begin with it;
 * versions of one key newest first. */
static int compare(const void *left, const void *right)
{
    const struct wal_doc *a = &((const struct reference_doc *)left)->doc;
    const struct wal_doc *b = &((const struct reference_doc *)right)->doc;
    uint64_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = memcmp(a->key.data, b->key.data, size);

    if (order != 0) {
        return order;
    }
    if (a->key.size != b->key.size) {
        return a->key.size < b->key.size ? -1 : 1;
    }
    return a->version > b->version ? -1 : a->version < b->version;
}

enum wal_status reference_docs(const struct reference *ref, uint32_t number,
                               const struct wal_doc_cursor_options *options,
                               struct reference_doc **docs, uint32_t *count)
{
    bool history = (options->flags & WAL_DOC_CURSOR_HISTORY) != 0;
    struct reference_doc *list;
    uint32_t owner = number;
    uint64_t limit = ref->count;
    uint64_t most = 0;

    if (number != REFERENCE_STORE && reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    do {
        most += ref_places_of(ref, owner).count;
    } while (step_to_source(ref, &owner, &limit));
    owner = number;
    limit = ref->count;
    list = common_alloc(most + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    do {
        REF_EACH (i, ref, owner) {
            const struct ref_record *record = ref_at(ref, i);

            if (i <= limit && record->kind == REF_DOC &&
                ref_begins_with(record->doc->key, options->prefix) &&
                (history || (!is_deletion(record) &&
                             ref_document(ref, number, record->doc->key,
                                          ref->count) == record))) {
                fill_doc(ref, record, &list[*count]);
                *count += 1;
            }
        }
    } while (step_to_source(ref, &owner, &limit));
    qsort(list, *count, sizeof(*list), compare);
    *docs = list;
    return WAL_OK;
}

enum wal_status reference_doc_get(const struct reference *ref, uint32_t number,
                                  struct wal_slice key, uint64_t version,
                                  struct reference_doc *doc)
{
    const struct ref_record *found;
    uint64_t limit = version == 0 ? ref->count : version;

    if (number != REFERENCE_STORE && reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (limit > ref->count) {
        return WAL_ENOTFOUND;
    }
    found = ref_document(ref, number, key, limit);
    if (found == NULL || is_deletion(found) ||
        (version != 0 && ref_sequence(ref, found) != version)) {
        return WAL_ENOTFOUND;
    }
    fill_doc(ref, found, doc);
    return WAL_OK;
}
