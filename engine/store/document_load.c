/*
 * document_load.c - loads the documents that a session sees: its own, and those
 * of the sessions it descends from as they were at each fork (SPEC.md 5.8).
 * Loaded on first use and kept in the session's slot.
 *
 * State lock for writing.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

/* A session on the path to the root of the lineage. */
struct ancestor {
    uint32_t number;
    uint64_t limit; /* records from this sequence on are not seen */
};

/* Collects the sessions whose documents are seen, the session itself first. */
static enum wal_status find_ancestors(struct wal__core *core, uint32_t number,
                                      struct wal__buf *ancestors)
{
    struct ancestor ancestor = {number, UINT64_MAX};
    struct wal__summary summary;
    enum wal_status status;

    do {
        status =
            wal__catalogue_get(&core->catalogue, ancestor.number, &summary);
        if (status != WAL_OK) {
            return status;
        }
        if (summary.documents > 0) {
            status = wal__buf_append(ancestors, &ancestor, sizeof(ancestor));
            if (status != WAL_OK) {
                return status;
            }
        }
        if (summary.fork_record > ancestor.limit) {
            return WAL_ECORRUPT; /* its source was forked from it later */
        }
        ancestor.number = summary.fork_source;
        ancestor.limit = summary.fork_record;
    } while (summary.fork_record != 0);
    return WAL_OK;
}

struct documents_load {
    struct wal__documents *documents;
    uint64_t limit;
};

static enum wal_status add(void *ctx, const struct wal__posting *posting,
                           uint64_t position)
{
    const struct documents_load *documents_load = ctx;

    return posting->sequence < documents_load->limit
               ? wal__documents_add(documents_load->documents, posting,
                                    position)
               : WAL_OK;
}

static enum wal_status load(struct wal__core *core,
                            struct wal__branch_slot *slot,
                            struct wal__buf *ancestors)
{
    struct documents_load documents_load = {.documents = &slot->documents};

    WAL__ASSERT(slot->documents.count == 0 && !slot->documents_loaded);
    WAL__ASSERT(ancestors->size % sizeof(struct ancestor) == 0);
    /* Oldest ancestor first: versions are added in log order. */
    for (size_t at = ancestors->size; at > 0; at -= sizeof(struct ancestor)) {
        struct wal__summary summary;
        struct ancestor ancestor;
        enum wal_status status;

        memcpy(&ancestor, ancestors->data + at - sizeof(ancestor),
               sizeof(ancestor));
        documents_load.limit = ancestor.limit;
        status =
            wal__catalogue_get(&core->catalogue, ancestor.number, &summary);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__core_visit_postings(core, &summary, add, &documents_load);
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

enum wal_status wal__core_load_documents(struct wal__core *core,
                                         uint32_t number,
                                         struct wal__branch_slot **slot,
                                         struct wal_error *error)
{
    struct wal__branch_slot *found = NULL;
    struct wal__summary summary;
    struct wal__buf ancestors;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        *slot = NULL;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__core_get_branch(core, number, &found, error);
    if (status != WAL_OK) {
        goto failed;
    }
    if (!found->documents_loaded) {
        wal__buf_init(&ancestors, core->env.heap);
        status = find_ancestors(core, number, &ancestors);
        if (status == WAL_OK) {
            status = load(core, found, &ancestors);
        }
        wal__buf_deinit(&ancestors);
        if (status != WAL_OK) {
            wal__documents_deinit(&found->documents);
            goto failed;
        }
        found->documents_loaded = true;
    }
    *slot = found;
    return WAL_OK;
failed:
    return wal__fail(error, status, "cannot load the documents: %s",
                     wal_status_text(status));
}
