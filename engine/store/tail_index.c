/*
 * tail_index.c - the postings of the tail segment (tail_index.h, SPEC.md 2.12).
 *
 * Invariant: newest[rank] is the head of a chain through previous[] with the counts[rank] postings
 * of session numbers[rank], descending, all of them after the postings of the base. The base is
 * mapped and may be damaged at any time: its contents are checked, not asserted. The caller's lock:
 * one writer, or any readers.
 */
#include "engine/store/tail_index.h"

#include <string.h>

#include "engine/base/containers.h"
#include "format/bytes/assert.h"

enum { CAPACITY_MIN = 64 };

void wal__tail_index_init(struct wal__tail_index *tail, const struct wal__heap *heap)
{
    *tail = (struct wal__tail_index){.heap = heap};
    wal__hashmap_init(&tail->by_session, heap);
}

void wal__tail_index_deinit(struct wal__tail_index *tail)
{
    const struct wal__heap *heap = tail->heap;

    wal__heap_free(heap, tail->postings);
    wal__heap_free(heap, tail->previous);
    wal__heap_free(heap, tail->numbers);
    wal__heap_free(heap, tail->newest);
    wal__heap_free(heap, tail->counts);
    wal__hashmap_deinit(&tail->by_session);
    *tail = (struct wal__tail_index){.heap = heap};
    wal__hashmap_init(&tail->by_session, heap);
}

void wal__tail_index_reset(struct wal__tail_index *tail)
{
    struct wal__hashmap *map = &tail->by_session;

    memset(&tail->base, 0, sizeof(tail->base));
    tail->count = 0;
    tail->session_count = 0;
    tail->shared_count = 0;
    if (map->capacity > 0) {
        memset(map->values, 0, map->capacity * sizeof(*map->values));
    }
    map->count = 0;
}

/* The capacity doubled until it holds `needed`; 0 on overflow. */
static uint32_t grown_capacity(uint32_t capacity, uint64_t needed)
{
    uint64_t next = capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity;

    while (next < needed) {
        next *= 2;
    }
    WAL__ASSERT(next >= needed);
    return next <= UINT32_MAX ? (uint32_t)next : 0;
}

/* Resizes an array of uint32_t. */
static bool resize(const struct wal__heap *heap, uint32_t **array, uint32_t capacity)
{
    uint32_t *bigger = wal__heap_resize(heap, *array, capacity, sizeof(**array));

    if (bigger == NULL) {
        return false;
    }
    *array = bigger;
    return true;
}

static enum wal_status reserve_postings(struct wal__tail_index *tail, uint32_t more)
{
    uint64_t needed = (uint64_t)tail->count + more;

    if (needed <= tail->capacity) {
        return WAL_OK;
    }

    uint32_t capacity = grown_capacity(tail->capacity, needed);
    struct wal__posting *postings = NULL;

    if (capacity != 0) {
        postings = wal__heap_resize(tail->heap, tail->postings, capacity, sizeof(*postings));
    }
    if (postings == NULL) {
        return WAL_ENOMEM;
    }
    tail->postings = postings;
    if (!resize(tail->heap, &tail->previous, capacity)) {
        return WAL_ENOMEM;
    }
    tail->capacity = capacity;
    WAL__ASSERT(tail->count + (uint64_t)more <= tail->capacity);
    return WAL_OK;
}

static enum wal_status reserve_sessions(struct wal__tail_index *tail, uint32_t more)
{
    uint64_t needed = (uint64_t)tail->session_count + more;

    if (needed <= tail->session_capacity) {
        return WAL_OK;
    }

    uint32_t capacity = grown_capacity(tail->session_capacity, needed);

    if (capacity == 0 || !resize(tail->heap, &tail->numbers, capacity) ||
        !resize(tail->heap, &tail->newest, capacity) ||
        !resize(tail->heap, &tail->counts, capacity)) {
        return WAL_ENOMEM;
    }
    tail->session_capacity = capacity;
    WAL__ASSERT(tail->session_count + (uint64_t)more <= capacity);
    return WAL_OK;
}

enum wal_status wal__tail_index_reserve(struct wal__tail_index *tail, uint32_t postings)
{
    enum wal_status status = reserve_postings(tail, postings);

    if (status != WAL_OK) {
        return status;
    }
    status = reserve_sessions(tail, postings);
    if (status != WAL_OK) {
        return status;
    }
    return wal__hashmap_reserve(&tail->by_session, postings);
}

/* The rank of a session: ranks are in order of the first posting after the base. */
static bool find_rank(const struct wal__tail_index *tail, uint32_t session, uint32_t *rank)
{
    uint32_t cursor = 0;
    bool found = wal__hashmap_find(&tail->by_session, session, &cursor, rank);

    WAL__ASSERT(!found || (*rank < tail->session_count && tail->numbers[*rank] == session));
    return found;
}

/* --- the base ----------------------------------------------------------- */

static bool is_in_base(const struct wal__tail_index *tail, uint32_t session)
{
    struct wal__summary part;

    return wal__index_find(&tail->base, session, &part) == WAL__FMT_OK;
}

enum wal_status wal__tail_index_attach_base(struct wal__tail_index *tail,
                                            const struct wal__index *base)
{
    uint32_t next = 0;
    uint32_t last = 0;

    WAL__ASSERT(tail->count == 0 && tail->base.header.session_count == 0);
    for (uint32_t i = 0; i < base->header.session_count; i++) {
        struct wal__summary part;

        if (wal__index_summary(base, i, &part) != WAL__FMT_OK || part.number <= last ||
            part.first_posting != next) {
            return WAL_ECORRUPT;
        }
        last = part.number;
        next += part.posting_count;
    }
    if (next != base->header.posting_count) {
        return WAL_ECORRUPT;
    }
    tail->base = *base;
    return WAL_OK;
}

static const uint8_t *base_posting(const struct wal__tail_index *tail, uint32_t item)
{
    return tail->base.postings + (size_t)item * WAL__POSTING_SIZE;
}

/* --- adding ------------------------------------------------------------- */

/* Room was reserved. */
static uint32_t add_session(struct wal__tail_index *tail, uint32_t session)
{
    uint32_t rank = tail->session_count;
    enum wal_status status = wal__hashmap_add(&tail->by_session, session, rank);

    WAL__ASSERT(status == WAL_OK);
    WAL__ASSERT(rank < tail->session_capacity);
    tail->numbers[rank] = session;
    tail->newest[rank] = 0;
    tail->counts[rank] = 0;
    tail->session_count++;
    tail->shared_count += is_in_base(tail, session);
    WAL__ASSERT(tail->shared_count <= tail->session_count &&
                tail->by_session.count == tail->session_count);
    return rank;
}

enum wal_status wal__tail_index_add(struct wal__tail_index *tail, uint32_t session,
                                    const struct wal__posting *posting)
{
    enum wal_status status = wal__tail_index_reserve(tail, 1);
    uint32_t rank;

    if (status != WAL_OK) {
        return status;
    }
    if (!find_rank(tail, session, &rank)) {
        rank = add_session(tail, session);
    }
    WAL__ASSERT(tail->count < tail->capacity);
    WAL__ASSERT(tail->newest[rank] <= tail->count);
    tail->postings[tail->count] = *posting;
    tail->previous[tail->count] = tail->newest[rank];
    tail->count++;
    tail->newest[rank] = tail->count;
    tail->counts[rank]++;
    WAL__ASSERT(tail->counts[rank] <= tail->count);
    return WAL_OK;
}

/* --- reading ------------------------------------------------------------ */

/* The base is ordered by session, so every posting is read. */
static uint64_t base_last_before(const struct wal__tail_index *tail, uint64_t offset)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < tail->base.header.posting_count; i++) {
        struct wal__posting posting;

        wal__posting_decode(base_posting(tail, i), &posting);
        if (posting.offset < offset && posting.sequence > newest) {
            newest = posting.sequence;
        }
    }
    return newest;
}

uint64_t wal__tail_index_last_before(const struct wal__tail_index *tail, uint64_t offset)
{
    for (uint32_t i = tail->count; i > 0; i--) {
        if (tail->postings[i - 1].offset < offset) {
            return tail->postings[i - 1].sequence;
        }
    }
    return base_last_before(tail, offset);
}

struct wal__tail_postings wal__tail_index_postings(const struct wal__tail_index *tail,
                                                   uint32_t session)
{
    struct wal__tail_postings postings = {0};
    struct wal__summary part;
    uint32_t rank;

    if (wal__index_find(&tail->base, session, &part) == WAL__FMT_OK) {
        postings.base = base_posting(tail, part.first_posting);
        postings.base_count = part.posting_count;
    }
    if (find_rank(tail, session, &rank)) {
        postings.newest = tail->newest[rank];
        postings.count = tail->counts[rank];
    }
    return postings;
}

void wal__tail_index_step_back(const struct wal__tail_index *tail, uint32_t *newest,
                               struct wal__posting *posting)
{
    uint32_t item = *newest - 1;

    WAL__ASSERT(*newest != 0 && item < tail->count);
    WAL__ASSERT(tail->previous[item] <= item);
    *posting = tail->postings[item];
    *newest = tail->previous[item];
}

enum wal_status wal__tail_index_collect(const struct wal__tail_index *tail,
                                        const struct wal__tail_postings *postings,
                                        struct wal__buf *out)
{
    size_t size = postings->count * sizeof(struct wal__posting);
    uint8_t *at;
    enum wal_status status = wal__buf_reserve(out, size, &at);

    if (status != WAL_OK) {
        return status;
    }
    out->size += size;
    at += size;
    for (uint32_t i = postings->newest; i != 0;) {
        struct wal__posting posting;

        wal__tail_index_step_back(tail, &i, &posting);
        at -= sizeof(posting);
        memcpy(at, &posting, sizeof(posting));
    }
    WAL__ASSERT(at + size == out->data + out->size);
    return WAL_OK;
}

bool wal__tail_index_has_session(const struct wal__tail_index *tail, uint32_t session)
{
    uint32_t rank;

    return find_rank(tail, session, &rank) || is_in_base(tail, session);
}

enum wal_status wal__tail_index_visit_sessions(const struct wal__tail_index *tail,
                                               wal__session_visitor *visit, void *ctx)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < tail->base.header.session_count && status == WAL_OK; i++) {
        status =
            visit(ctx, wal__summary_number(tail->base.summaries + (size_t)i * WAL__SUMMARY_SIZE));
    }
    for (uint32_t rank = 0; rank < tail->session_count && status == WAL_OK; rank++) {
        if (!is_in_base(tail, tail->numbers[rank])) {
            status = visit(ctx, tail->numbers[rank]);
        }
    }
    return status;
}

/* --- encoding ----------------------------------------------------------- */

static uint32_t total_sessions(const struct wal__tail_index *tail)
{
    return tail->base.header.session_count + tail->session_count - tail->shared_count;
}

static uint32_t total_postings(const struct wal__tail_index *tail)
{
    return tail->base.header.posting_count + tail->count;
}

uint64_t wal__tail_index_size_bound(const struct wal__tail_index *tail, uint32_t postings,
                                    uint32_t sessions, uint64_t text_bound)
{
    return wal__index_size(total_sessions(tail), total_postings(tail), text_bound) +
           (uint64_t)sessions * WAL__SUMMARY_SIZE + (uint64_t)postings * WAL__POSTING_SIZE;
}

struct numbers {
    struct wal__heapsort_item *items;
    uint32_t count;
    uint32_t capacity;
};

static enum wal_status add_number(void *ctx, uint32_t number)
{
    struct numbers *numbers = ctx;

    if (numbers->count == numbers->capacity) {
        return WAL_ECORRUPT;
    }
    numbers->items[numbers->count++] = (struct wal__heapsort_item){.key = number};
    return WAL_OK;
}

/* Allocates *order, the numbers of all sessions, ascending. */
static enum wal_status sort_sessions(const struct wal__tail_index *tail,
                                     struct wal__heapsort_item **order)
{
    struct numbers numbers = {.capacity = total_sessions(tail)};
    enum wal_status status;

    numbers.items = wal__heap_resize(tail->heap, NULL, numbers.capacity, sizeof(*numbers.items));
    if (numbers.items == NULL) {
        return WAL_ENOMEM;
    }
    status = wal__tail_index_visit_sessions(tail, add_number, &numbers);
    if (status == WAL_OK && numbers.count != numbers.capacity) {
        status = WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        wal__heap_free(tail->heap, numbers.items);
        return status;
    }
    wal__heapsort_sort(numbers.items, numbers.count);
    *order = numbers.items;
    return WAL_OK;
}

/* Offsets in the buffer, whose memory moves as it grows. */
struct offsets {
    size_t summary;
    size_t postings;
    size_t texts;
    uint32_t first_posting;
};

static enum wal_status encode_summary(struct wal__buf *out, const struct offsets *offsets,
                                      const struct wal__summary *summary)
{
    size_t text_offset = out->size - offsets->texts;
    size_t text_size = wal__summary_text_size(summary);
    uint8_t *text;

    WAL__ASSERT(wal__summary_is_valid(summary));
    WAL__ASSERT(out->size >= offsets->texts);
    WAL__ASSERT(offsets->summary + WAL__SUMMARY_SIZE <= offsets->postings);
    if (text_offset + text_size > UINT32_MAX) {
        return WAL_ETOOBIG;
    }

    enum wal_status status = wal__buf_reserve(out, text_size, &text);

    if (status != WAL_OK) {
        return status;
    }
    wal__summary_encode(summary, (uint32_t)text_offset, out->data + offsets->summary, text);
    out->size += text_size;
    return WAL_OK;
}

static void encode_postings(const struct wal__tail_index *tail,
                            const struct wal__tail_postings *postings, uint8_t *at)
{
    size_t size = (size_t)postings->base_count * WAL__POSTING_SIZE;

    if (size > 0) {
        memcpy(at, postings->base, size);
    }
    at += size + (size_t)postings->count * WAL__POSTING_SIZE;
    for (uint32_t i = postings->newest; i != 0; i = tail->previous[i - 1]) {
        WAL__ASSERT(i <= tail->count && tail->previous[i - 1] < i);
        at -= WAL__POSTING_SIZE;
        wal__posting_encode(&tail->postings[i - 1], at);
    }
}

static enum wal_status encode_session(const struct wal__tail_index *tail, uint32_t number,
                                      wal__summary_source *source, void *ctx,
                                      struct offsets *offsets, struct wal__buf *out)
{
    struct wal__tail_postings postings = wal__tail_index_postings(tail, number);
    uint32_t count = postings.base_count + postings.count;
    struct wal__summary summary;
    enum wal_status status = source(ctx, number, &summary);

    if (status != WAL_OK) {
        return status;
    }
    if (count > total_postings(tail) - offsets->first_posting) {
        return WAL_ECORRUPT;
    }
    summary.number = number;
    summary.first_posting = offsets->first_posting;
    summary.posting_count = count;
    status = encode_summary(out, offsets, &summary);
    if (status != WAL_OK) {
        return status;
    }
    encode_postings(tail, &postings,
                    out->data + offsets->postings +
                        (size_t)offsets->first_posting * WAL__POSTING_SIZE);
    offsets->summary += WAL__SUMMARY_SIZE;
    offsets->first_posting += count;
    return WAL_OK;
}

enum wal_status wal__tail_index_encode(const struct wal__tail_index *tail,
                                       const struct wal__index_header *header,
                                       wal__summary_source *source, void *ctx, struct wal__buf *out)
{
    struct wal__index_header sealed = *header;
    struct wal__heapsort_item *order = NULL;
    uint8_t *at;
    uint32_t session_count = total_sessions(tail);
    uint32_t posting_count = total_postings(tail);
    size_t texts = wal__index_size(session_count, posting_count, 0);
    struct offsets offsets = {
        .summary = WAL__INDEX_HEADER_SIZE,
        .postings = wal__index_size(session_count, 0, 0),
        .texts = texts,
    };
    enum wal_status status;

    out->size = 0;
    status = wal__buf_reserve(out, texts, &at);
    if (status != WAL_OK) {
        goto done;
    }
    status = sort_sessions(tail, &order);
    if (status != WAL_OK) {
        goto done;
    }
    out->size = texts;
    for (uint32_t i = 0; i < session_count; i++) {
        status = encode_session(tail, (uint32_t)order[i].key, source, ctx, &offsets, out);
        if (status != WAL_OK) {
            goto done;
        }
    }
    WAL__ASSERT(offsets.summary == offsets.postings);
    if (offsets.first_posting != posting_count) {
        status = WAL_ECORRUPT;
        goto done;
    }
    sealed.session_count = session_count;
    sealed.posting_count = posting_count;
    sealed.text_size = (uint32_t)(out->size - texts);
    wal__index_finish(&sealed, out->data);
done:
    if (status != WAL_OK) {
        out->size = 0;
    }
    wal__heap_free(tail->heap, order);
    return status;
}
