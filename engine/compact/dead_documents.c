/*
 * dead_documents.c - finds the versions of the engine's documents that no
 * session sees (dead_documents.h).
 *
 * A session sees of each key the newest version among its own and, of each
 * session that it descends from, those before the fork. A version is dead when
 * nobody sees it and a deletion in its session follows, or that is deleted. One
 * that a later version replaced stays: its files are those of the later one.
 */
#include "engine/compact/dead_documents.h"

#include <stdlib.h>
#include <string.h>

#include "engine/read/document_reader.h"

/* A version; by number, key and sequence. */
struct version {
    uint64_t key_hash;
    uint64_t sequence;
    uint32_t number; /* of its session */
    bool is_deletion;
    bool is_seen;
};

/* A version that a session may see, in `seen`. */
struct candidate_version {
    uint64_t key_hash;
    uint64_t sequence;
    size_t rank;
};

struct dead_documents {
    const struct compaction *compaction;
    struct wal__buf versions; /* struct version */
    struct wal__buf seen;     /* struct candidate_version */
    struct wal__record_buf scratch;
};

static struct version *version_at(const struct dead_documents *dead,
                                  size_t rank)
{
    return (struct version *)(void *)dead->versions.data + rank;
}

static size_t version_count(const struct dead_documents *dead)
{
    return dead->versions.size / sizeof(struct version);
}

static int compare_versions(const void *a, const void *b)
{
    const struct version *x = a;
    const struct version *y = b;

    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    if (x->key_hash != y->key_hash) {
        return x->key_hash < y->key_hash ? -1 : 1;
    }
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* By key, the newest first. */
static int compare_seen(const void *a, const void *b)
{
    const struct candidate_version *x = a;
    const struct candidate_version *y = b;

    if (x->key_hash != y->key_hash) {
        return x->key_hash < y->key_hash ? -1 : 1;
    }
    return x->sequence > y->sequence ? -1 : x->sequence < y->sequence;
}

/* --- collecting ----------------------------------------------------------- */

/* Adds a document of the engine. One whose key cannot be read stays. */
static enum wal_status add(struct dead_documents *dead,
                           const struct candidate *candidate, uint32_t number,
                           const struct wal__posting *posting)
{
    const struct version version = {.key_hash = posting->id_hash,
                                    .sequence = posting->sequence,
                                    .number = number,
                                    .is_deletion =
                                        posting->type == WAL__FRAME_DOC_DELETE};
    struct wal__span first;
    struct wal__frame frame;
    struct wal__span key;

    if (wal__log_peek(
            &dead->compaction->core->log,
            wal__position(candidate->input.segment->id, posting->offset),
            WAL__DOC_KEY_END, &dead->scratch, &frame, &first, NULL) != WAL_OK ||
        !wal__doc_record_key(first, &key) || !wal__doc_key_is_reserved(key)) {
        return WAL_OK;
    }
    return wal__buf_append(&dead->versions, &version, sizeof(version));
}

static enum wal_status collect_index(struct dead_documents *dead,
                                     const struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK;
         i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        for (uint32_t k = 0; k < summary.posting_count && status == WAL_OK;
             k++) {
            struct wal__posting posting;

            wal__index_posting(index, summary.first_posting + k, &posting);
            if (posting.type == WAL__FRAME_DOC ||
                posting.type == WAL__FRAME_DOC_DELETE) {
                status = add(dead, candidate, summary.number, &posting);
            }
        }
    }
    return status;
}

/* --- who sees what -------------------------------------------------------- */

/* The rank of the first version of a session, or of one after it. */
static size_t first_of(const struct dead_documents *dead, uint32_t number)
{
    size_t low = 0;
    size_t high = version_count(dead);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (version_at(dead, middle)->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Adds the versions of one session before a sequence. */
static enum wal_status add_seen(struct dead_documents *dead, uint32_t number,
                                uint64_t limit)
{
    enum wal_status status = WAL_OK;

    for (size_t i = first_of(dead, number);
         i < version_count(dead) && version_at(dead, i)->number == number &&
         status == WAL_OK;
         i++) {
        const struct version *version = version_at(dead, i);
        const struct candidate_version seen = {version->key_hash,
                                               version->sequence, i};

        if (version->sequence < limit) {
            status = wal__buf_append(&dead->seen, &seen, sizeof(seen));
        }
    }
    return status;
}

/* Marks what one session sees. What it descends from has a lower number. */
static enum wal_status mark_seen(struct dead_documents *dead, uint32_t number)
{
    const uint32_t lowest = version_at(dead, 0)->number;
    uint64_t limit = UINT64_MAX;
    enum wal_status status = WAL_OK;
    struct candidate_version *items;

    dead->seen.size = 0;
    while (number >= lowest && limit != 0 && status == WAL_OK) {
        struct wal__live_fork fork;

        status = add_seen(dead, number, limit);
        fork = wal__live_set_fork(&dead->compaction->set, number);
        number = fork.source;
        limit = fork.record;
    }
    items = (void *)dead->seen.data;
    if (dead->seen.size > 0) {
        qsort(items, dead->seen.size / sizeof(*items), sizeof(*items),
              compare_seen);
    }
    for (size_t i = 0; i < dead->seen.size / sizeof(*items); i++) {
        if (i == 0 || items[i].key_hash != items[i - 1].key_hash) {
            version_at(dead, items[i].rank)->is_seen = true;
        }
    }
    return status;
}

static enum wal_status mark_all(struct dead_documents *dead)
{
    const struct wal__live_set *set = &dead->compaction->set;
    enum wal_status status = WAL_OK;
    uint32_t number;

    for (size_t i = 0; i < version_count(dead) && status == WAL_OK; i++) {
        number = version_at(dead, i)->number;
        if ((i == 0 || number != version_at(dead, i - 1)->number) &&
            !wal__live_set_is_deleted(set, number)) {
            status = mark_seen(dead, number);
        }
    }
    for (uint32_t i = 0;
         wal__live_set_next_fork(set, &i, &number) && status == WAL_OK;) {
        status = mark_seen(dead, number);
    }
    return status;
}

static int compare_sequences(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static enum wal_status add_dead(const struct dead_documents *dead,
                                struct wal__buf *out)
{
    const struct wal__live_set *set = &dead->compaction->set;
    enum wal_status status = WAL_OK;
    bool is_over = false; /* a deletion follows, or its session is deleted */

    for (size_t i = version_count(dead); i > 0 && status == WAL_OK; i--) {
        const struct version *version = version_at(dead, i - 1);
        const struct version *next =
            i < version_count(dead) ? version_at(dead, i) : NULL;

        if (next == NULL || next->number != version->number ||
            next->key_hash != version->key_hash) {
            is_over = wal__live_set_is_deleted(set, version->number);
        }
        if (version->is_deletion) {
            is_over = true;
        } else if (is_over && !version->is_seen) {
            status = wal__buf_append(out, &version->sequence,
                                     sizeof(version->sequence));
        }
    }
    if (out->size > 0) {
        qsort(out->data, out->size / sizeof(uint64_t), sizeof(uint64_t),
              compare_sequences);
    }
    return status;
}

enum wal_status wal__dead_documents_find(const struct compaction *compaction,
                                         struct wal__buf *out)
{
    const struct wal__heap *heap = compaction->core->env.heap;
    struct dead_documents dead = {.compaction = compaction};
    enum wal_status status = WAL_OK;

    wal__buf_init(&dead.versions, heap);
    wal__buf_init(&dead.seen, heap);
    wal__record_buf_init(&dead.scratch, heap);
    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        status = collect_index(&dead, &compaction->candidates[i]);
    }
    if (status == WAL_OK && version_count(&dead) > 0) {
        qsort(dead.versions.data, version_count(&dead), sizeof(struct version),
              compare_versions);
        status = mark_all(&dead);
        if (status == WAL_OK) {
            status = add_dead(&dead, out);
        }
    }
    wal__record_buf_deinit(&dead.scratch);
    wal__buf_deinit(&dead.seen);
    wal__buf_deinit(&dead.versions);
    return status;
}
