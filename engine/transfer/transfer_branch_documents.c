/*
 * transfer_branch_documents.c - the documents of a branch (transfer_branch.c):
 * it sees those of the trunk as they are when it is made, and is to have those
 * of `from`.
 *
 * The versions that both have are shared. Where the trunk has gone on with a
 * document, the branch begins with the last common version again. The further
 * ones of `from` follow in their order.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"

/* The versions of one key. */
struct run {
    const struct wal__transfer_version *items;
    size_t count;
};

/* The documents of three sessions, by key. */
struct versions {
    struct wal__buf from;
    struct wal__buf trunk;
    struct wal__buf branch;
    size_t at[3];
};

static const struct wal__transfer_record *
record_at(const struct wal__transfer_records *records, size_t rank)
{
    return (const struct wal__transfer_record *)(const void *)
               records->items.data +
           rank;
}

/* Removes the versions that the branch does not see. */
static void apply_limit(const struct wal__transfer *transfer, uint64_t limit,
                        struct wal__buf *trunk)
{
    struct wal__transfer_version *items = (void *)trunk->data;
    size_t kept = 0;

    for (size_t i = 0; i < trunk->size / sizeof(*items); i++) {
        if (record_at(&transfer->trunk_records, items[i].record)->sequence <
            limit) {
            items[kept++] = items[i];
        }
    }
    trunk->size = kept * sizeof(*items);
}

static const struct wal__transfer_version *peek(const struct wal__buf *list,
                                                size_t at)
{
    const struct wal__transfer_version *items = (const void *)list->data;

    return at < list->size / sizeof(*items) ? &items[at] : NULL;
}

/* Takes the versions of this key from a list. */
static struct run take(const struct wal__buf *list, size_t *at, uint64_t key)
{
    const struct wal__transfer_version *first = peek(list, *at);
    struct run run = {first, 0};

    if (first != NULL && first->key_hash == key) {
        size_t end = wal__transfer_key_end((const void *)list->data,
                                           list->size / sizeof(*first), *at);

        run.count = end - *at;
        *at = end;
    }
    return run;
}

/* The lowest key that is left of `from` and the trunk; false: none is. */
static bool next_key(const struct versions *versions, uint64_t *key)
{
    const struct wal__transfer_version *from =
        peek(&versions->from, versions->at[0]);
    const struct wal__transfer_version *trunk =
        peek(&versions->trunk, versions->at[1]);

    if (from == NULL && trunk == NULL) {
        return false;
    }
    *key = trunk == NULL || (from != NULL && from->key_hash < trunk->key_hash)
               ? from->key_hash
               : trunk->key_hash;
    return true;
}

/* The versions of the branch whose key is lower were made there. */
static void skip_lower(const struct wal__buf *list, size_t *at, uint64_t key)
{
    const struct wal__transfer_version *version = peek(list, *at);

    while (version != NULL && version->key_hash < key) {
        version = peek(list, ++*at);
    }
}

static enum wal_status add_restore(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session,
                                   struct run from, struct run trunk,
                                   size_t common)
{
    struct wal__transfer_restore restore = {.rank = session->rank};

    if (common > 0) {
        restore.position =
            record_at(&transfer->from_records, from.items[common - 1].record)
                ->position;
    } else {
        restore.is_hide = 1;
        restore.position = record_at(&transfer->trunk_records,
                                     trunk.items[trunk.count - 1].record)
                               ->position;
    }
    return wal__buf_append(&transfer->restores, &restore, sizeof(restore)) ==
                   WAL_OK
               ? WAL_OK
               : wal__no_memory(&transfer->error);
}

/* Whether the branch begins with the version that a restore makes. */
static bool is_restored(struct run from, struct run branch, size_t common)
{
    return branch.count > 0 &&
           (common > 0 ? wal__transfer_same_version(&branch.items[0],
                                                    &from.items[common - 1])
                       : branch.items[0].is_deletion);
}

static enum wal_status compare_key(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session,
                                   struct run from, struct run trunk,
                                   struct run branch, bool repeats)
{
    struct wal__transfer_record *records =
        (void *)transfer->from_records.items.data;
    size_t common = 0;
    size_t present = 0;
    enum wal_status status = WAL_OK;

    while (
        common < from.count && common < trunk.count &&
        wal__transfer_same_version(&from.items[common], &trunk.items[common])) {
        common++;
    }
    if (trunk.count > common) {
        /* What is deleted in the trunk need not be hidden. */
        bool is_needed =
            common > 0 || !trunk.items[trunk.count - 1].is_deletion;

        if (is_needed && is_restored(from, branch, common)) {
            branch.items++;
            branch.count--;
        } else if (is_needed && (session->handle == NULL || repeats)) {
            status = add_restore(transfer, session, from, trunk, common);
        }
    }
    if (common < from.count) {
        present = wal__transfer_count_present(&from.items[common],
                                              from.count - common, branch.items,
                                              branch.count);
    }
    if (present == SIZE_MAX && !repeats) {
        return WAL_EEXISTS;
    }
    present = common + (present == SIZE_MAX ? 0 : present);
    for (size_t i = 0; i < present; i++) {
        records[from.items[i].record].is_present = true;
    }
    return status;
}

static enum wal_status compare(struct wal__transfer *transfer,
                               const struct wal__transfer_session *session,
                               struct versions *versions, bool repeats)
{
    enum wal_status status = WAL_OK;
    uint64_t key = 0;

    while (status == WAL_OK && next_key(versions, &key)) {
        struct run from = take(&versions->from, &versions->at[0], key);
        struct run trunk = take(&versions->trunk, &versions->at[1], key);
        struct run branch;

        skip_lower(&versions->branch, &versions->at[2], key);
        branch = take(&versions->branch, &versions->at[2], key);
        status = compare_key(transfer, session, from, trunk, branch, repeats);
    }
    return status;
}

enum wal_status wal__transfer_compare_branch_versions(
    struct wal__transfer *transfer, const struct wal__transfer_session *session,
    uint64_t limit, bool repeats)
{
    struct versions versions = {.at = {0}};
    struct wal_error *error = &transfer->error;
    enum wal_status status;

    wal__buf_init(&versions.from, transfer->heap);
    wal__buf_init(&versions.trunk, transfer->heap);
    wal__buf_init(&versions.branch, transfer->heap);
    status = wal__transfer_list_versions(transfer, transfer->from,
                                         &transfer->from_records,
                                         &versions.from, error);
    if (status == WAL_OK) {
        status = wal__transfer_list_versions(transfer, transfer->to,
                                             &transfer->trunk_records,
                                             &versions.trunk, error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_list_versions(transfer, transfer->to,
                                             &transfer->to_records,
                                             &versions.branch, error);
    }
    if (status == WAL_OK) {
        apply_limit(transfer, limit, &versions.trunk);
        status = compare(transfer, session, &versions, repeats);
    }
    wal__buf_deinit(&versions.from);
    wal__buf_deinit(&versions.trunk);
    wal__buf_deinit(&versions.branch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

void wal__transfer_restore_branch(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session)
{
    const struct wal__transfer_restore *items =
        (const void *)transfer->restores.data;
    size_t count = transfer->restores.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        if (items[i].rank != session->rank) {
            continue;
        }
        status = items[i].is_hide != 0
                     ? wal__transfer_hide_document(transfer, session,
                                                   items[i].position)
                     : wal__transfer_repeat_document(transfer, session,
                                                     items[i].position);
    }
    (void)wal__transfer_try(transfer, session, status);
}
