/*
 * checkpoint_list.c - lists the checkpoints of a session in order, and loads
 * the lists of the newest ones (checkpoint.h). Any thread; one at a time per
 * cursor.
 *
 * Invariant: the order is that of the sequence numbers of document versions. No
 * clock is used.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint_document.h"
#include "engine/session/doc_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

enum {
    CHECKPOINTS_TRIED_MAX = 16 /* checkpoints to try, of any root */
};

/* A checkpoint that is not deleted. */
struct item {
    /* sequence of its first version after the last deletion */
    uint64_t created_sequence;
    uint64_t newest_sequence; /* sequence of its newest version */
    size_t rank;              /* index of the newest version in docs->items */
};

struct wal_checkpoint_cursor {
    struct wal__core *core;
    struct wal_doc_cursor *docs;
    struct wal__buf items; /* struct item, in order */
    size_t next;
    struct wal__checkpoint current;
};

static int compare_created(const void *left, const void *right)
{
    const struct item *a = left;
    const struct item *b = right;

    return a->created_sequence < b->created_sequence
               ? -1
               : a->created_sequence > b->created_sequence;
}

static int compare_newest(const void *left, const void *right)
{
    const struct item *a = left;
    const struct item *b = right;

    return a->newest_sequence > b->newest_sequence
               ? -1
               : a->newest_sequence < b->newest_sequence;
}

/* Adds the document whose versions, newest first, begin at `rank`, unless it is
 * deleted. *end is the rank after its versions. */
static enum wal_status add_document(struct wal_checkpoint_cursor *checkpoints,
                                    size_t rank, size_t *end)
{
    const struct wal__doc_cursor_item *items =
        (void *)checkpoints->docs->items.data;
    size_t count = checkpoints->docs->items.size / sizeof(*items);
    const struct wal__doc_cursor_item *newest = &items[rank];
    struct item item = {.newest_sequence = newest->sequence, .rank = rank};
    bool is_live = true;

    WAL__ASSERT(rank < count);
    for (; rank < count && items[rank].document == newest->document; rank++) {
        is_live = is_live && !items[rank].deleted;
        item.created_sequence =
            is_live ? items[rank].sequence : item.created_sequence;
    }
    WAL__ASSERT(rank > item.rank);
    *end = rank;
    /* A document with an unreadable key may be any document. */
    if (newest->deleted || newest->is_unreadable) {
        return WAL_OK;
    }
    return wal__buf_append(&checkpoints->items, &item, sizeof(item));
}

static enum wal_status add_documents(struct wal_checkpoint_cursor *checkpoints)
{
    size_t count =
        checkpoints->docs->items.size / sizeof(struct wal__doc_cursor_item);
    enum wal_status status = WAL_OK;
    size_t rank = 0;

    while (rank < count && status == WAL_OK) {
        status = add_document(checkpoints, rank, &rank);
    }
    return status;
}

static enum wal_status open_docs(struct wal_session *session,
                                 struct wal_doc_cursor **docs,
                                 struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_DOC_CURSOR_HISTORY,
        .prefix = {wal__checkpoint_prefix, WAL__CHECKPOINT_PREFIX_SIZE}};
    enum wal_status status;

    do {
        status = wal__doc_cursor_open(session->core, session->number, &options,
                                      docs, error);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    return status;
}

static enum wal_status open_ordered(struct wal_session *session,
                                    int (*compare)(const void *, const void *),
                                    struct wal_checkpoint_cursor **checkpoints,
                                    struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct wal_checkpoint_cursor *opened =
        wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = session->core;
    wal__core_retain(opened->core);
    wal__buf_init(&opened->items, heap);
    wal__checkpoint_init(&opened->current, heap);
    status = open_docs(session, &opened->docs, error);
    if (status == WAL_OK && add_documents(opened) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status != WAL_OK) {
        wal__checkpoint_cursor_close(opened);
        return status;
    }
    if (opened->items.size > 0) {
        qsort(opened->items.data, opened->items.size / sizeof(struct item),
              sizeof(struct item), compare);
    }
    *checkpoints = opened;
    return WAL_OK;
}

enum wal_status
wal__checkpoint_cursor_open(struct wal_session *session,
                            struct wal_checkpoint_cursor **checkpoints,
                            struct wal_error *error)
{
    return open_ordered(session, compare_created, checkpoints, error);
}

enum wal_status
wal__checkpoint_cursor_open_newest(struct wal_session *session,
                                   struct wal_checkpoint_cursor **checkpoints,
                                   struct wal_error *error)
{
    return open_ordered(session, compare_newest, checkpoints, error);
}

enum wal_status
wal__checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                            const struct wal__checkpoint **checkpoint,
                            struct wal_error *error)
{
    const struct item *items = (const void *)checkpoints->items.data;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal__span id;
    struct wal__span value;
    enum wal_status status;

    WAL__ASSERT(checkpoints->next <= checkpoints->items.size / sizeof(*items));
    if (checkpoints->next == checkpoints->items.size / sizeof(*items)) {
        wal__record_buf_release(&checkpoints->docs->scratch);
        return WAL_END;
    }
    checkpoints->docs->next = items[checkpoints->next].rank;
    status = wal__doc_cursor_next(checkpoints->docs, &doc, error);
    checkpoints->next += status != WAL_ENOMEM;
    if (status != WAL_OK) {
        return status;
    }
    id.data = (const uint8_t *)doc.key.data + WAL__CHECKPOINT_PREFIX_SIZE;
    id.size = (size_t)doc.key.size - WAL__CHECKPOINT_PREFIX_SIZE;
    value.data = doc.value.data;
    value.size = (size_t)doc.value.size;
    status = wal__checkpoint_decode(&checkpoints->current, id, value,
                                    doc.version, error);
    if (status == WAL_OK) {
        *checkpoint = &checkpoints->current;
    }
    return status;
}

const struct wal__core *
wal__checkpoint_cursor_core(const struct wal_checkpoint_cursor *checkpoints)
{
    return checkpoints->core;
}

void wal__checkpoint_cursor_close(struct wal_checkpoint_cursor *checkpoints)
{
    struct wal__core *core;

    if (checkpoints == NULL) {
        return;
    }
    core = checkpoints->core;
    wal__doc_cursor_close(checkpoints->docs);
    wal__buf_deinit(&checkpoints->items);
    wal__checkpoint_deinit(&checkpoints->current);
    wal__heap_free(core->env.heap, checkpoints);
    wal__core_release(core);
}

/* --- baselines ----------------------------------------------------------- */

/* Whether the status concerns one list, so that another may load. */
static bool is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_ENOTFOUND ||
           status == WAL_EIO;
}

/* Counts the wanted files that are in none of the lists. */
static uint32_t count_missing(const struct wal__files *wanted,
                              const struct wal__files *lists, uint32_t count)
{
    uint32_t missing = wanted->count;

    for (uint32_t i = 0; i < wanted->count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            if (wal__files_find(&lists[j], wanted->items[i].path) != NULL) {
                missing--;
                break;
            }
        }
    }
    return missing;
}

/* Loads the list of a checkpoint if it has the root and is undamaged. */
static enum wal_status load_list(struct wal_session *session,
                                 const struct wal__checkpoint *checkpoint,
                                 struct wal__span root,
                                 struct wal__files *files, bool *loaded,
                                 struct wal_error *error)
{
    enum wal_status status;

    *loaded = false;
    if (!wal__span_equal(checkpoint->root, root)) {
        return WAL_OK;
    }
    status =
        wal__files_load(files, &session->core->blobs, &checkpoint->list, error);
    *loaded = status == WAL_OK;
    if (*loaded) {
        wal__files_invalidate_fresh(files, session->core->env.io);
    }
    return is_damage(status) ? WAL_OK : status;
}

static enum wal_status load_newest(struct wal_session *session,
                                   struct wal_checkpoint_cursor *checkpoints,
                                   struct wal__span root,
                                   const struct wal__files *wanted,
                                   struct wal__files *files,
                                   struct wal__digest *newest, uint32_t *count,
                                   struct wal_error *error)
{
    uint32_t filled = 0;

    for (int i = 0;
         i < CHECKPOINTS_TRIED_MAX && filled < WAL__CAPTURE_BASELINES; i++) {
        const struct wal__checkpoint *checkpoint;
        enum wal_status status =
            wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
        bool loaded = false;

        if (status == WAL_END) {
            break;
        }
        if (status == WAL_OK) {
            status = load_list(session, checkpoint, root, &files[filled],
                               &loaded, error);
        }
        if (status != WAL_OK && !is_damage(status)) {
            return status;
        }
        if (!loaded) {
            continue;
        }
        WAL__ASSERT(filled < WAL__CAPTURE_BASELINES);
        if (filled++ == 0) {
            *newest = checkpoint->list;
        }
        if (count_missing(wanted, files, filled) == 0) {
            break;
        }
    }
    *count = filled;
    return WAL_OK;
}

enum wal_status wal__checkpoint_load_baselines(
    struct wal_session *session, struct wal__span root,
    const struct wal__files *wanted, struct wal__files *files,
    struct wal__digest *newest, uint32_t *count, struct wal_error *error)
{
    struct wal_checkpoint_cursor *checkpoints;
    enum wal_status status =
        wal__checkpoint_cursor_open_newest(session, &checkpoints, error);

    if (status != WAL_OK) {
        return status;
    }
    status = load_newest(session, checkpoints, root, wanted, files, newest,
                         count, error);
    wal__checkpoint_cursor_close(checkpoints);
    return status;
}
