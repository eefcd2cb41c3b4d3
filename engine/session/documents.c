/*
 * documents.c - the documents that a session sees: its own, and those of its
 * fork's source as they were when the fork was made, and so on to the root
 * (SPEC.md 5.8). Loaded when they are asked for; kept with the session's slot.
 *
 * Under the state lock for writing.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/core.h"

/* A session on the way to the root, and up to which record it is seen. */
struct origin {
    uint32_t number;
    uint64_t limit; /* sequences from here on are not seen */
};

/* The sessions whose documents are seen, the session itself first. */
static enum wal_status find_origins(struct wal__core *core, uint32_t number,
                                    struct wal__buf *origins)
{
    struct origin origin = {number, UINT64_MAX};
    struct wal__summary summary;
    enum wal_status status;

    do {
        status = wal__catalogue_get(&core->catalogue, origin.number, &summary);
        if (status == WAL_OK && summary.documents > 0) {
            status = wal__buf_append(origins, &origin, sizeof(origin));
        }
        if (status == WAL_OK && summary.fork_record > origin.limit) {
            status = WAL_ECORRUPT; /* forked after it was forked from */
        }
        origin.number = summary.fork_source;
        origin.limit = summary.fork_record;
    } while (status == WAL_OK && summary.fork_record != 0);
    return status;
}

struct loading {
    struct wal__documents *documents;
    uint64_t limit;
};

static enum wal_status add(void *ctx, const struct wal__posting *posting,
                           uint64_t position)
{
    const struct loading *loading = ctx;

    return posting->sequence < loading->limit
               ? wal__documents_add(loading->documents, posting, position)
               : WAL_OK;
}

static enum wal_status load(struct wal__core *core,
                            struct wal__branch_slot *slot,
                            struct wal__buf *origins)
{
    struct loading loading = {.documents = &slot->documents};
    enum wal_status status = WAL_OK;

    for (size_t at = origins->size; at > 0 && status == WAL_OK;
         at -= sizeof(struct origin)) {
        struct wal__summary summary;
        struct origin origin;

        memcpy(&origin, origins->data + at - sizeof(origin), sizeof(origin));
        loading.limit = origin.limit;
        status = wal__catalogue_get(&core->catalogue, origin.number, &summary);
        if (status == WAL_OK) {
            status = wal__core_postings(core, &summary, add, &loading);
        }
    }
    return status;
}

enum wal_status wal__core_documents(struct wal__core *core, uint32_t number,
                                    struct wal__branch_slot **slot,
                                    struct wal_error *error)
{
    struct wal__branch_slot *found = NULL;
    struct wal__summary summary;
    struct wal__buf origins;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        *slot = NULL;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__core_branch(core, number, &found, error);
    }
    if (status == WAL_OK && !found->documents_loaded) {
        wal__buf_init(&origins, core->env.heap);
        status = find_origins(core, number, &origins);
        if (status == WAL_OK) {
            status = load(core, found, &origins);
        }
        wal__buf_deinit(&origins);
        if (status != WAL_OK) {
            wal__documents_deinit(&found->documents);
        }
        found->documents_loaded = status == WAL_OK;
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, 0, NULL, 0,
                         "the documents cannot be loaded: %s",
                         wal_status_text(status));
    }
    *slot = found;
    return WAL_OK;
}
