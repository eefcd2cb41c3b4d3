/*
 * live_set.c - what of a log is live, and which bytes are whose (compact.h).
 *
 * A session sees of each key of the engine's documents (SPEC.md 5.13) the newest version among its
 * own and, of each session that it descends from, those before the fork. A version is dead when
 * nobody sees it and a deletion in its session follows, or that is deleted. One that a later
 * version replaced stays: its files are those of the later one.
 *
 * A fork sees the entries of the owner of its fork point up to that point, and what the owner
 * inherits. So one number for each fork suffices: the bytes of the owner's entries up to the fork
 * point. A record counts for the first fork point after it, and sums over the fork points of an
 * owner give the rest.
 *
 * Invariant: a session that is not in `lineages` is neither deleted nor a fork. A fork has a higher
 * number than the sessions it names, and than the owner of its fork point.
 */
#include "engine/base/containers.h"
#include "engine/care/compact.h"

#include <stdlib.h>
#include <string.h>

#include "engine/session/doc_cursor.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

/* --- what is live --------------------------------------------------------- */

/* A fork, or a deleted session. */
struct live_session {
    uint32_t number;
    uint32_t fork_owner; /* of the fork point; 0: none */
    uint32_t fork_source;
    bool is_deleted;
    bool is_retained; /* something of it is in a segment that stays */
    bool is_named;    /* by the FORK of a session that stays */
    uint64_t fork_sequence;
    uint64_t fork_record;
    /* Sequences up to which forks see entries and documents of a deleted session. */
    uint64_t entry_cut;
    uint64_t document_cut;
};

/* The newest HEAD record of a name. */
struct live_head {
    uint32_t number;
    uint32_t stream;
    uint64_t name_hash;
    uint64_t sequence;
};

/* An entry, or none, with provisional entries under it: the newest entry that moved the head under
 * it completes those before. */
struct delta_parent {
    uint32_t number;
    uint32_t stream;
    uint64_t parent;
    uint64_t completed;
};

enum { SESSIONS_MIN = 1024 };

void wal__live_set_init(struct wal__live_set *set, const struct wal__heap *heap)
{
    memset(set, 0, sizeof(*set));
    set->heap = heap;
    wal__hashmap_init(&set->lineage_map, heap);
    wal__hashmap_init(&set->head_map, heap);
    wal__hashmap_init(&set->delta_map, heap);
    wal__buf_init(&set->lineages, heap);
    wal__buf_init(&set->heads, heap);
    wal__buf_init(&set->delta_parents, heap);
    wal__buf_init(&set->redacted, heap);
}

void wal__live_set_deinit(struct wal__live_set *set)
{
    wal__heap_free(set->heap, set->newest_session);
    set->newest_session = NULL;
    wal__hashmap_deinit(&set->lineage_map);
    wal__hashmap_deinit(&set->head_map);
    wal__hashmap_deinit(&set->delta_map);
    wal__buf_deinit(&set->lineages);
    wal__buf_deinit(&set->heads);
    wal__buf_deinit(&set->delta_parents);
    wal__buf_deinit(&set->redacted);
}

/* --- tables ------------------------------------------------------------- */

static struct live_session *session_at(const struct wal__live_set *set, uint32_t rank)
{
    WAL__ASSERT((rank + 1) * sizeof(struct live_session) <= set->lineages.size);
    return (struct live_session *)(void *)set->lineages.data + rank;
}

static uint32_t session_count(const struct wal__live_set *set)
{
    return (uint32_t)(set->lineages.size / sizeof(struct live_session));
}

/* Appends an item to a table, and its rank to the map. */
static enum wal_status add_item(struct wal__buf *table, struct wal__hashmap *map, uint64_t hash,
                                const void *item, size_t size)
{
    uint32_t rank = (uint32_t)(table->size / size);
    enum wal_status status = wal__hashmap_reserve(map, 1);

    if (status == WAL_OK) {
        status = wal__buf_append(table, item, size);
    }
    return status == WAL_OK ? wal__hashmap_add(map, hash, rank) : status;
}

static struct live_session *find_session(const struct wal__live_set *set, uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&set->lineage_map, number, &cursor, &rank)) {
        if (session_at(set, rank)->number == number) {
            return session_at(set, rank);
        }
    }
    return NULL;
}

static enum wal_status get_session(struct wal__live_set *set, uint32_t number,
                                   struct live_session **session)
{
    struct live_session added = {.number = number};
    enum wal_status status;

    *session = find_session(set, number);
    if (*session != NULL) {
        return WAL_OK;
    }
    status = add_item(&set->lineages, &set->lineage_map, number, &added, sizeof(added));
    if (status == WAL_OK) {
        *session = session_at(set, session_count(set) - 1);
    }
    return status;
}

static uint64_t head_hash(uint32_t number, const struct wal__posting *posting)
{
    uint64_t key[3] = {number, posting->stream, posting->id_hash};

    return wal__id_hash(key, sizeof(key));
}

static struct live_head *find_head(const struct wal__live_set *set, uint32_t number,
                                   const struct wal__posting *posting)
{
    struct live_head *heads = (struct live_head *)(void *)set->heads.data;
    uint64_t hash = head_hash(number, posting);
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&set->head_map, hash, &cursor, &rank)) {
        if (heads[rank].number == number && heads[rank].stream == posting->stream &&
            heads[rank].name_hash == posting->id_hash) {
            return &heads[rank];
        }
    }
    return NULL;
}

static enum wal_status add_head(struct wal__live_set *set, uint32_t number,
                                const struct wal__posting *posting)
{
    struct live_head *head = find_head(set, number, posting);
    struct live_head added = {number, posting->stream, posting->id_hash, posting->sequence};

    if (head != NULL) {
        head->sequence = posting->sequence;
        return WAL_OK;
    }
    return add_item(&set->heads, &set->head_map, head_hash(number, posting), &added, sizeof(added));
}

static uint64_t delta_hash(uint32_t number, const struct wal__posting *posting)
{
    uint64_t key[3] = {number, posting->stream, posting->parent};

    return wal__id_hash(key, sizeof(key));
}

static struct delta_parent *find_delta_parent(const struct wal__live_set *set, uint32_t number,
                                              const struct wal__posting *posting)
{
    struct delta_parent *parents = (struct delta_parent *)(void *)set->delta_parents.data;
    uint32_t cursor = 0;
    uint32_t rank;

    while (parents != NULL &&
           wal__hashmap_find(&set->delta_map, delta_hash(number, posting), &cursor, &rank)) {
        if (parents[rank].number == number && parents[rank].stream == posting->stream &&
            parents[rank].parent == posting->parent) {
            return &parents[rank];
        }
    }
    return NULL;
}

static bool is_provisional(const struct wal__posting *posting)
{
    return posting->type == WAL__FRAME_ENTRY && (posting->flags & WAL__FRAME_PROVISIONAL) != 0;
}

/* Notes under which entries deltas are, and what completes them. A delta comes before the entry
 * that completes it. */
static enum wal_status add_entry(struct wal__live_set *set, uint32_t number,
                                 const struct wal__posting *posting)
{
    struct delta_parent *parent = find_delta_parent(set, number, posting);
    struct delta_parent added = {number, posting->stream, posting->parent, 0};

    if (parent != NULL && !is_provisional(posting) &&
        (posting->flags & WAL__FRAME_MOVES_HEAD) != 0) {
        parent->completed = posting->sequence;
    }
    if (parent != NULL || !is_provisional(posting)) {
        return WAL_OK;
    }
    return add_item(&set->delta_parents, &set->delta_map, delta_hash(number, posting), &added,
                    sizeof(added));
}

static enum wal_status set_newest_session(struct wal__live_set *set, uint32_t number,
                                          uint64_t sequence)
{
    uint32_t limit = set->session_limit < SESSIONS_MIN ? SESSIONS_MIN : set->session_limit;
    uint64_t *grown;

    if (number == WAL__STORE_NUMBER) {
        return WAL_ECORRUPT; /* the store has no such record */
    }
    while (limit <= number) {
        limit = limit > UINT32_MAX / 2 ? UINT32_MAX : limit * 2;
    }
    if (limit > set->session_limit) {
        grown = wal__heap_resize(set->heap, set->newest_session, limit, sizeof(*grown));
        if (grown == NULL) {
            return WAL_ENOMEM;
        }
        memset(grown + set->session_limit, 0, (limit - set->session_limit) * sizeof(*grown));
        set->newest_session = grown;
        set->session_limit = limit;
    }
    set->newest_session[number] = sequence;
    return WAL_OK;
}

/* --- building ----------------------------------------------------------- */

/* A REDACT or RESTORE, by target and sequence. */
struct live_redaction {
    uint64_t target;
    uint64_t sequence;
    bool is_undone;
};

static enum wal_status add_redaction(struct wal__live_set *set, const struct wal__posting *posting)
{
    const struct live_redaction redaction = {posting->parent, posting->sequence,
                                             posting->type == WAL__FRAME_RESTORE};

    return wal__buf_append(&set->redacted, &redaction, sizeof(redaction));
}

/* Keeps the targets that are redacted: of each the newest record decides. */
static void settle_redactions(struct wal__live_set *set)
{
    const struct live_redaction *items = (const void *)set->redacted.data;
    uint64_t *targets = (void *)set->redacted.data;
    size_t count = set->redacted.size / sizeof(*items);
    size_t kept = 0;

    wal__buf_sort(&set->redacted, sizeof(*items), wal__compare_u64_pair);
    for (size_t i = 0; i < count; i++) {
        const struct live_redaction item = items[i];

        if (!item.is_undone && (i + 1 == count || items[i + 1].target != item.target)) {
            targets[kept++] = item.target;
        }
    }
    set->redacted.size = kept * sizeof(*targets);
}

static enum wal_status add_posting(struct wal__live_set *set, const struct wal__summary *summary,
                                   const struct wal__posting *posting)
{
    struct live_session *session;
    enum wal_status status;

    switch (posting->type) {
    case WAL__FRAME_SESSION:
        return set_newest_session(set, summary->number, posting->sequence);
    case WAL__FRAME_HEAD:
        return add_head(set, summary->number, posting);
    case WAL__FRAME_ENTRY:
        return add_entry(set, summary->number, posting);
    case WAL__FRAME_REDACT:
    case WAL__FRAME_RESTORE:
        return add_redaction(set, posting);
    case WAL__FRAME_FORK:
        status = get_session(set, summary->number, &session);
        if (status == WAL_OK) {
            session->fork_owner = summary->fork_owner;
            session->fork_source = summary->fork_source;
            session->fork_sequence = summary->fork_sequence;
            session->fork_record = summary->fork_record;
        }
        return status;
    case WAL__FRAME_TOMBSTONE:
        status = get_session(set, summary->number, &session);
        if (status == WAL_OK) {
            session->is_deleted = true;
        }
        return status;
    default:
        return WAL_OK;
    }
}

enum wal_status wal__live_set_add(struct wal__live_set *set, const struct wal__index *index)
{
    WAL__ASSERT(!set->is_complete);
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        for (uint32_t k = 0; k < summary.posting_count; k++) {
            struct wal__posting posting;
            enum wal_status status;

            wal__index_posting(index, summary.first_posting + k, &posting);
            status = add_posting(set, &summary, &posting);
            if (status != WAL_OK) {
                return status;
            }
        }
    }
    return WAL_OK;
}

static void raise(uint64_t *value, uint64_t to)
{
    if (to > *value) {
        *value = to;
    }
}

/* Keeps what a session that is not deleted sees of deleted ones. One of its ancestors that is not
 * deleted keeps what is above itself. */
static void keep_shared(const struct wal__live_set *set, const struct live_session *fork)
{
    const struct live_session *at = fork;
    struct live_session *above;

    while (at->fork_owner != 0 && at->fork_sequence != 0) {
        above = find_session(set, at->fork_owner);
        if (above == NULL || !above->is_deleted) {
            break;
        }
        raise(&above->entry_cut, at->fork_sequence);
        at = above;
    }
    at = fork;
    while (at->fork_source != 0) {
        above = find_session(set, at->fork_source);
        if (above == NULL || !above->is_deleted) {
            break;
        }
        raise(&above->document_cut, at->fork_record);
        at = above;
    }
}

static int compare_numbers_descending(const void *a, const void *b)
{
    const struct live_session *x = *(const struct live_session *const *)a;
    const struct live_session *y = *(const struct live_session *const *)b;

    return x->number > y->number ? -1 : x->number < y->number;
}

void wal__live_set_complete(struct wal__live_set *set)
{
    uint32_t count = session_count(set);

    WAL__ASSERT(!set->is_complete);
    for (uint32_t i = 0; i < count; i++) {
        if (!session_at(set, i)->is_deleted) {
            keep_shared(set, session_at(set, i));
        }
    }
    settle_redactions(set);
    set->is_complete = true;
}

/* Returns whether something of the session stays. */
static bool stays(const struct live_session *session)
{
    return !session->is_deleted || session->entry_cut > 0 || session->document_cut > 0 ||
           session->is_retained || session->is_named;
}

static void name(const struct wal__live_set *set, uint32_t number)
{
    struct live_session *session = find_session(set, number);

    if (session != NULL) {
        session->is_named = true;
    }
}

enum wal_status wal__live_set_settle(struct wal__live_set *set)
{
    uint32_t count = session_count(set);
    struct live_session **order = wal__heap_alloc(set->heap, (count + 1) * sizeof(*order));

    WAL__ASSERT(set->is_complete);
    if (order == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = session_at(set, i);
        order[i]->is_named = false;
    }
    /* A fork before what it names. */
    qsort(order, count, sizeof(*order), compare_numbers_descending);
    for (uint32_t i = 0; i < count; i++) {
        if (stays(order[i])) {
            name(set, order[i]->fork_owner);
            name(set, order[i]->fork_source);
        }
    }
    wal__heap_free(set->heap, order);
    set->is_settled = true;
    return WAL_OK;
}

/* --- asking ------------------------------------------------------------- */

static bool is_session_deleted(const struct wal__live_set *set, uint32_t number)
{
    const struct live_session *session = find_session(set, number);

    return session != NULL && session->is_deleted;
}

bool wal__live_set_is_purged(const struct wal__live_set *set, uint32_t number)
{
    const struct live_session *session = find_session(set, number);

    return set->is_settled && session != NULL && !stays(session);
}

static struct wal__live_fork live_set_fork(const struct wal__live_set *set, uint32_t number)
{
    const struct live_session *session = find_session(set, number);
    struct wal__live_fork fork = {0, 0};

    if (session != NULL && session->fork_source < number) {
        fork.source = session->fork_source;
        fork.record = session->fork_record;
    }
    return fork;
}

/* The next fork that is not deleted, from *rank on, which begins at 0; false: there is none. */
static bool live_set_next_fork(const struct wal__live_set *set, uint32_t *rank, uint32_t *number)
{
    while (*rank < session_count(set)) {
        const struct live_session *session = session_at(set, (*rank)++);

        if (session->fork_source != 0 && !session->is_deleted) {
            *number = session->number;
            return true;
        }
    }
    return false;
}

void wal__live_set_retain(struct wal__live_set *set, uint32_t number)
{
    struct live_session *session = find_session(set, number);

    if (session != NULL) {
        session->is_retained = true;
        set->is_settled = false;
    }
}

void wal__live_set_retain_all(struct wal__live_set *set)
{
    for (uint32_t i = 0; i < session_count(set); i++) {
        struct live_session *session = session_at(set, i);

        session->is_retained = true;
        session->entry_cut = UINT64_MAX;
        session->document_cut = UINT64_MAX;
    }
    set->is_settled = false;
}

static bool has_sequence(const struct wal__buf *sequences, uint64_t sequence)
{
    return sequences->size > 0 &&
           bsearch(&sequence, sequences->data, sequences->size / sizeof(sequence), sizeof(sequence),
                   wal__compare_u64) != NULL;
}

static bool is_redacted(const struct wal__live_set *set, uint64_t sequence)
{
    return has_sequence(&set->redacted, sequence);
}

/* Returns whether a SESSION record after this sequence replaces it. */
static bool is_replaced(const struct wal__live_set *set, uint32_t number, uint64_t sequence)
{
    return number < set->session_limit && set->newest_session[number] > sequence;
}

/* A SESSION record. The first one stays, since it says that the session begins here; what it says
 * of the session does not count once it is replaced. */
static enum wal__fate session_fate(const struct wal__live_set *set, uint32_t number,
                                   const struct wal__posting *posting, bool is_first)
{
    return !is_replaced(set, number, posting->sequence) ? WAL__FATE_KEEP
           : !is_first                                  ? WAL__FATE_DROP
           : set->erases                                ? WAL__FATE_ERASE
                                                        : WAL__FATE_KEEP;
}

static enum wal__fate deleted_fate(const struct wal__live_set *set,
                                   const struct live_session *session,
                                   const struct wal__posting *posting, bool is_first)
{
    bool is_shared;

    switch (posting->type) {
    case WAL__FRAME_ENTRY:
        /* A fork sees no delta of another session. */
        is_shared = posting->sequence <= session->entry_cut && !is_provisional(posting);
        break;
    case WAL__FRAME_REDACT:
    case WAL__FRAME_RESTORE:
        is_shared = posting->parent <= session->entry_cut;
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        is_shared = posting->sequence <= session->document_cut;
        break;
    case WAL__FRAME_HEAD:
        is_shared = false;
        break;
    default:
        is_shared = !set->is_settled || stays(session);
        break;
    }
    if (!is_shared) {
        return WAL__FATE_DROP;
    }
    /* The id of a deleted session is enough. */
    return posting->type != WAL__FRAME_SESSION ? WAL__FATE_KEEP
           : session_fate(set, session->number, posting, is_first) == WAL__FATE_DROP
               ? WAL__FATE_DROP
               : WAL__FATE_ERASE;
}

void wal__live_set_strip(const struct wal__live_set *set, struct wal__summary *summary)
{
    const struct live_session *session = find_session(set, summary->number);
    struct wal__span *texts[] = {&summary->cwd, &summary->project, &summary->title,
                                 &summary->parent_id, &summary->source};
    bool is_deleted = session != NULL && session->is_deleted;
    bool is_stale = set->erases && is_replaced(set, summary->number, summary->last_sequence);

    for (size_t i = 0; (is_deleted || is_stale) && i < sizeof(texts) / sizeof(texts[0]); i++) {
        texts[i]->size = 0;
    }
    if ((is_deleted && summary->first_sequence > session->entry_cut) ||
        (set->erases && is_redacted(set, summary->first_sequence))) {
        summary->first_text.size = 0;
    }
}

/* Returns whether the entry is a delta of a message that is complete. */
static bool is_completed(const struct wal__live_set *set, uint32_t number,
                         const struct wal__posting *posting)
{
    const struct delta_parent *parent = !is_provisional(posting) || set->keeps_deltas
                                            ? NULL
                                            : find_delta_parent(set, number, posting);

    return parent != NULL && parent->completed > posting->sequence;
}

enum wal__fate wal__live_set_fate(const struct wal__live_set *set, uint32_t number,
                                  const struct wal__posting *posting, bool is_first)
{
    const struct live_session *session = find_session(set, number);
    const struct live_head *head;
    enum wal__fate fate = WAL__FATE_KEEP;

    WAL__ASSERT(set->is_complete);
    if (session != NULL && session->is_deleted) {
        fate = deleted_fate(set, session, posting, is_first);
    } else if (posting->type == WAL__FRAME_SESSION) {
        fate = session_fate(set, number, posting, is_first);
    } else if (posting->type == WAL__FRAME_HEAD) {
        head = find_head(set, number, posting);
        fate =
            head == NULL || head->sequence == posting->sequence ? WAL__FATE_KEEP : WAL__FATE_DROP;
    }
    if (fate == WAL__FATE_KEEP && posting->type == WAL__FRAME_DOC && set->dead_documents != NULL &&
        has_sequence(set->dead_documents, posting->sequence)) {
        return WAL__FATE_ERASE;
    }
    if (fate != WAL__FATE_KEEP || posting->type != WAL__FRAME_ENTRY) {
        return fate;
    }
    /* A redacted delta stays: its REDACT names it. */
    return is_redacted(set, posting->sequence)  ? (set->erases ? WAL__FATE_ERASE : WAL__FATE_KEEP)
           : is_completed(set, number, posting) ? WAL__FATE_DROP
                                                : WAL__FATE_KEEP;
}

/* --- documents that no session sees --------------------------------------- */

/* A version; by number, key and sequence. */
struct version {
    uint64_t number; /* of its session */
    uint64_t key_hash;
    uint64_t sequence;
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

static struct version *version_at(const struct dead_documents *dead, size_t rank)
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

    return x->number != y->number ? wal__compare_u64(x, y)
                                  : wal__compare_u64_pair(&x->key_hash, &y->key_hash);
}

/* --- collecting ----------------------------------------------------------- */

/* Adds a document of the engine. One whose key cannot be read stays. */
static enum wal_status add(struct dead_documents *dead, const struct candidate *candidate,
                           uint32_t number, const struct wal__posting *posting)
{
    const struct version version = {.key_hash = posting->id_hash,
                                    .sequence = posting->sequence,
                                    .number = number,
                                    .is_deletion = posting->type == WAL__FRAME_DOC_DELETE};
    struct wal__span first;
    struct wal__frame frame;
    struct wal__span key;

    if (wal__log_peek(&dead->compaction->core->log,
                      wal__position(candidate->input.segment->id, posting->offset),
                      WAL__DOC_KEY_END, &dead->scratch, &frame, &first, NULL) != WAL_OK ||
        !wal__doc_record_key(first, &key) || !wal__doc_key_is_reserved(key)) {
        return WAL_OK;
    }
    return wal__buf_append(&dead->versions, &version, sizeof(version));
}

static enum wal_status collect_index(struct dead_documents *dead, const struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        for (uint32_t k = 0; k < summary.posting_count && status == WAL_OK; k++) {
            struct wal__posting posting;

            wal__index_posting(index, summary.first_posting + k, &posting);
            if (posting.type == WAL__FRAME_DOC || posting.type == WAL__FRAME_DOC_DELETE) {
                status = add(dead, candidate, summary.number, &posting);
            }
        }
    }
    return status;
}

/* --- who sees what -------------------------------------------------------- */

/* Adds the versions of one session before a sequence. */
static enum wal_status add_seen(struct dead_documents *dead, uint32_t number, uint64_t limit)
{
    enum wal_status status = WAL_OK;

    for (size_t i =
             wal__lower_bound(dead->versions.data, version_count(dead), sizeof(struct version),
                              offsetof(struct version, number), number);
         i < version_count(dead) && version_at(dead, i)->number == number && status == WAL_OK;
         i++) {
        const struct version *version = version_at(dead, i);
        const struct candidate_version seen = {version->key_hash, version->sequence, i};

        if (version->sequence < limit) {
            status = wal__buf_append(&dead->seen, &seen, sizeof(seen));
        }
    }
    return status;
}

/* Marks what one session sees. What it descends from has a lower number. */
static enum wal_status mark_seen(struct dead_documents *dead, uint32_t number)
{
    const uint64_t lowest = version_at(dead, 0)->number;
    uint64_t limit = UINT64_MAX;
    enum wal_status status = WAL_OK;
    struct candidate_version *items;
    size_t count;

    dead->seen.size = 0;
    while (number >= lowest && limit != 0 && status == WAL_OK) {
        struct wal__live_fork fork;

        status = add_seen(dead, number, limit);
        fork = live_set_fork(&dead->compaction->set, number);
        number = fork.source;
        limit = fork.record;
    }
    items = (void *)dead->seen.data;
    count = dead->seen.size / sizeof(*items);
    wal__buf_sort(&dead->seen, sizeof(*items), wal__compare_u64_pair);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || items[i].key_hash != items[i + 1].key_hash) {
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
        number = (uint32_t)version_at(dead, i)->number;
        if ((i == 0 || number != version_at(dead, i - 1)->number) &&
            !is_session_deleted(set, number)) {
            status = mark_seen(dead, number);
        }
    }
    for (uint32_t i = 0; live_set_next_fork(set, &i, &number) && status == WAL_OK;) {
        status = mark_seen(dead, number);
    }
    return status;
}

static enum wal_status add_dead(const struct dead_documents *dead, struct wal__buf *out)
{
    const struct wal__live_set *set = &dead->compaction->set;
    enum wal_status status = WAL_OK;
    bool is_over = false; /* a deletion follows, or its session is deleted */

    for (size_t i = version_count(dead); i > 0 && status == WAL_OK; i--) {
        const struct version *version = version_at(dead, i - 1);
        const struct version *next = i < version_count(dead) ? version_at(dead, i) : NULL;

        if (next == NULL || next->number != version->number ||
            next->key_hash != version->key_hash) {
            is_over = is_session_deleted(set, (uint32_t)version->number);
        }
        if (version->is_deletion) {
            is_over = true;
        } else if (is_over && !version->is_seen) {
            status = wal__buf_append(out, &version->sequence, sizeof(version->sequence));
        }
    }
    wal__buf_sort(out, sizeof(uint64_t), wal__compare_u64);
    return status;
}

enum wal_status wal__dead_documents_find(const struct compaction *compaction, struct wal__buf *out)
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
        wal__buf_sort(&dead.versions, sizeof(struct version), compare_versions);
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

/* --- bytes by session ----------------------------------------------------- */

/* A fork, at the owner's records. */
struct fork_mark {
    uint32_t owner;
    uint32_t fork;
    uint64_t cut;   /* sequence of the fork point */
    uint64_t bytes; /* of the owner's entries up to it */
};

enum { SLOTS_MIN = 256 };

void wal__space_init(struct wal__space *space, const struct wal__heap *heap)
{
    memset(space, 0, sizeof(*space));
    space->heap = heap;
    wal__buf_init(&space->forks, heap);
}

void wal__space_deinit(struct wal__space *space)
{
    wal__heap_free(space->heap, space->slots);
    space->slots = NULL;
    wal__buf_deinit(&space->forks);
}

static struct fork_mark *marks(const struct wal__space *space)
{
    return (struct fork_mark *)(void *)space->forks.data;
}

static size_t mark_count(const struct wal__space *space)
{
    return space->forks.size / sizeof(struct fork_mark);
}

uint32_t wal__space_slot(uint32_t number)
{
    return number == WAL__STORE_NUMBER ? 0 : number;
}

static enum wal_status reserve(struct wal__space *space, uint32_t number)
{
    uint32_t limit = space->limit < SLOTS_MIN ? SLOTS_MIN : space->limit;
    struct wal__session_space *grown;

    while (limit <= number) {
        limit = limit > UINT32_MAX / 2 ? UINT32_MAX : limit * 2;
    }
    if (limit == space->limit) {
        return WAL_OK;
    }
    grown = wal__heap_resize(space->heap, space->slots, limit, sizeof(*grown));
    if (grown == NULL) {
        return WAL_ENOMEM;
    }
    memset(grown + space->limit, 0, (limit - space->limit) * sizeof(*grown));
    space->slots = grown;
    space->limit = limit;
    return WAL_OK;
}

static enum wal_status add_summary(struct wal__space *space, const struct wal__summary *summary)
{
    struct wal__session_space *slot = &space->slots[wal__space_slot(summary->number)];
    struct fork_mark mark = {
        .owner = summary->fork_owner, .fork = summary->number, .cut = summary->fork_sequence};

    if (summary->fork_owner == 0 || slot->is_fork) {
        return WAL_OK;
    }
    if (summary->fork_owner >= summary->number) {
        return WAL_ECORRUPT;
    }
    slot->is_fork = true;
    return wal__buf_append(&space->forks, &mark, sizeof(mark));
}

enum wal_status wal__space_add_index(struct wal__space *space, const struct wal__index *index,
                                     uint32_t rank)
{
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;
        enum wal_status status;
        uint32_t number;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        number = wal__space_slot(summary.number);
        status = reserve(space, number);
        if (status == WAL_OK) {
            space->slots[number].index = rank + 1;
            space->slots[number].rank = i;
            status = add_summary(space, &summary);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

static int compare_by_owner(const void *a, const void *b)
{
    const struct fork_mark *x = a;
    const struct fork_mark *y = b;

    if (x->owner != y->owner) {
        return x->owner < y->owner ? -1 : 1;
    }
    return x->cut < y->cut ? -1 : x->cut > y->cut;
}

static int compare_by_fork(const void *a, const void *b)
{
    const struct fork_mark *x = a;
    const struct fork_mark *y = b;

    return x->fork < y->fork ? -1 : x->fork > y->fork;
}

void wal__space_begin_records(struct wal__space *space)
{
    if (mark_count(space) > 0) {
        qsort(marks(space), mark_count(space), sizeof(struct fork_mark), compare_by_owner);
    }
}

/* Returns the first fork point of an owner that is not before the sequence, or NULL. */
static struct fork_mark *find_mark(const struct wal__space *space, uint32_t owner,
                                   uint64_t sequence)
{
    struct fork_mark key = {.owner = owner, .cut = sequence};
    size_t low = 0;
    size_t high = mark_count(space);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_by_owner(&marks(space)[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < mark_count(space) && marks(space)[low].owner == owner ? &marks(space)[low] : NULL;
}

void wal__space_add_record(struct wal__space *space, uint32_t number,
                           const struct wal__posting *posting, uint64_t kept, uint64_t dead)
{
    struct wal__session_space *slot = &space->slots[wal__space_slot(number)];
    struct fork_mark *mark = NULL;

    WAL__ASSERT(wal__space_slot(number) < space->limit);
    slot->own += kept;
    slot->reclaimable += dead;
    if (posting->type == WAL__FRAME_ENTRY && kept > 0) {
        mark = find_mark(space, number, posting->sequence);
    }
    if (mark != NULL) {
        mark->bytes += kept;
    }
}

void wal__space_finish(struct wal__space *space, const struct wal__live_set *set)
{
    struct fork_mark *all = marks(space);
    size_t count = mark_count(space);

    for (uint32_t i = 0; i < space->limit; i++) {
        space->slots[i].is_deleted = is_session_deleted(set, i);
        space->slots[i].is_viewed = !space->slots[i].is_deleted;
    }
    for (size_t i = 1; i < count; i++) {
        if (all[i].owner == all[i - 1].owner) {
            all[i].bytes += all[i - 1].bytes;
        }
    }
    if (count > 0) {
        qsort(all, count, sizeof(*all), compare_by_fork);
    }
    for (size_t i = count; i > 0; i--) {
        const struct fork_mark *mark = &all[i - 1];
        struct wal__session_space *owner = NULL;

        if (mark->owner < space->limit && space->slots[mark->fork].is_viewed) {
            owner = &space->slots[mark->owner];
            owner->is_viewed = true;
            owner->seen = owner->seen < mark->bytes ? mark->bytes : owner->seen;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct wal__session_space *fork = &space->slots[all[i].fork];

        fork->inherited = all[i].bytes;
        if (all[i].owner < space->limit) {
            fork->inherited += space->slots[all[i].owner].inherited;
        }
    }
    for (uint32_t i = 0; i < space->limit; i++) {
        space->slots[i].own -= space->slots[i].seen;
    }
}
