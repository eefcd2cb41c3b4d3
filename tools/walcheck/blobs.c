/*
 * blobs.c - verifies the content of the blob stream: decodes each CHUNK with
 * its delta bases and digests it, and digests each BLOB over its chunks
 * (SPEC.md 2.18, 2.19, 5.12).
 *
 * Invariant: content is sound only if its SHA-256 was computed and matches.
 *
 * Threads: the main thread, except that check_blobs_verify creates and joins
 * workers, each with a reader of its thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "tools/walcheck/pack.h"

enum {
    VERIFY_BATCH = 16, /* records per thread and queue access */
    DELTA_CHAIN_MAX = WAL__CHUNK_DEPTH_MAX + 1
};

static const char missing_base[] = "its base chunk is missing";
static const char damaged_record[] = "its record is damaged";

/* --- the set -------------------------------------------------------------- */

void check_blobs_add_segment(struct check_blobs *blobs,
                             struct check_segment *segment)
{
    for (size_t i = 0; i < segment->blob_count; i++) {
        blobs->items = cli_reserve(blobs->items, blobs->count, &blobs->capacity,
                                   sizeof(*blobs->items));
        blobs->items[blobs->count++] = segment->blobs[i];
    }
    free(segment->blobs);
    segment->blobs = NULL;
    segment->blob_count = 0;
    segment->blob_capacity = 0;
}

void check_blobs_deinit(struct check_blobs *blobs)
{
    free(blobs->items);
    free(blobs->by_position);
    *blobs = (struct check_blobs){.items = NULL};
}

static int by_digest(const void *a, const void *b)
{
    const struct check_blob *x = a;
    const struct check_blob *y = b;
    int order = memcmp(x->digest.bytes, y->digest.bytes, WAL__DIGEST_SIZE);

    if (order != 0) {
        return order;
    }
    return x->position < y->position ? -1 : x->position > y->position;
}

static int by_position(const void *a, const void *b)
{
    const struct check_blob *x = *(struct check_blob *const *)a;
    const struct check_blob *y = *(struct check_blob *const *)b;

    return x->position < y->position ? -1 : x->position > y->position;
}

static void sort_blobs(struct check_blobs *blobs)
{
    if (blobs->count == 0) {
        return;
    }
    qsort(blobs->items, blobs->count, sizeof(*blobs->items), by_digest);
    blobs->by_position = cli_alloc(blobs->count * sizeof(struct check_blob *));
    for (size_t i = 0; i < blobs->count; i++) {
        blobs->by_position[i] = &blobs->items[i];
    }
    qsort(blobs->by_position, blobs->count, sizeof(struct check_blob *),
          by_position);
}

const struct check_blob *check_blobs_find(const struct check_blobs *blobs,
                                          const struct wal__digest *digest)
{
    size_t low = 0;
    size_t high = blobs->count;

    /* Find the rank after the last item whose digest is at most `digest`. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(blobs->items[middle].digest.bytes, digest->bytes,
                   WAL__DIGEST_SIZE) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && memcmp(blobs->items[low - 1].digest.bytes, digest->bytes,
                             WAL__DIGEST_SIZE) == 0
               ? &blobs->items[low - 1]
               : NULL;
}

uint64_t check_blobs_find_lost(const struct check_store *store,
                               const struct wal__digest *digest)
{
    uint64_t digest_hash = wal__digest_hash(digest);

    for (size_t i = 0; i < store->pack.count; i++) {
        const struct check_segment *segment = store->pack.items[i];

        for (size_t k = 0; k < segment->lost_blob_count; k++) {
            if (segment->lost_blobs[k].digest_hash == digest_hash) {
                return segment->lost_blobs[k].position;
            }
        }
    }
    return 0;
}

struct check_segment *check_pack_segment(const struct check_store *store,
                                         uint64_t position)
{
    for (size_t i = 0; i < store->pack.count; i++) {
        struct check_segment *segment = store->pack.items[i];

        if (segment->head->id == wal__position_segment(position) &&
            segment->head->role == WAL__DAMAGED_LINKED) {
            return segment;
        }
    }
    return NULL;
}

/* --- reading -------------------------------------------------------------- */

/* Reads a record's payload; it is valid until the next fetch with this rank. */
static bool fetch_payload(struct check_reader *reader, int rank,
                          const struct check_blob *blob,
                          struct wal__span *payload)
{
    const struct check_segment *segment =
        check_pack_segment(reader->store, blob->position);
    struct wal__frame frame;

    return segment != NULL &&
           check_record_read(&reader->open[rank], segment,
                             wal__position_offset(blob->position), blob->span,
                             &frame, payload) &&
           frame.type == blob->type;
}

/* A chunk and its delta bases, down to a chunk without a base. */
struct delta_chain {
    const struct check_blob *blobs[DELTA_CHAIN_MAX];
    int count;
};

static const char *find_delta_chain(struct check_reader *reader,
                                    const struct check_blob *blob,
                                    struct delta_chain *delta_chain,
                                    uint64_t *culprit)
{
    struct wal__chunk_record chunk = {.size = 0};
    struct wal__span payload;

    delta_chain->count = 0;
    do {
        if (blob == NULL) {
            *culprit = check_blobs_find_lost(reader->store, &chunk.base);
            return missing_base;
        }
        *culprit = blob->position;
        if (delta_chain->count == DELTA_CHAIN_MAX) {
            return "its chain of base chunks is too long";
        }
        if (!fetch_payload(reader, delta_chain->count > 0, blob, &payload) ||
            wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK) {
            return damaged_record;
        }
        delta_chain->blobs[delta_chain->count++] = blob;
        blob = check_blobs_find(&reader->store->blobs, &chunk.base);
    } while (chunk.encoding == WAL__CHUNK_DELTA);
    return NULL;
}

/* Decodes one chunk of the chain into the buffer that does not hold its
 * base. */
static bool decode_chunk(struct check_reader *reader,
                         const struct delta_chain *delta_chain, int rank,
                         struct wal__span *content)
{
    struct wal__chunk_record chunk;
    struct wal__span payload;
    uint8_t **to = &reader->content[rank % 2];

    if (*to == NULL) {
        *to = cli_alloc(WAL__CHUNK_MAX);
    }
    if (!fetch_payload(reader, rank > 0, delta_chain->blobs[rank], &payload) ||
        wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK ||
        !wal__chunk_decode_content(&chunk, *content, *to)) {
        return false;
    }
    *content = (struct wal__span){*to, chunk.size};
    return true;
}

/* Reads the content of a CHUNK, valid until the next read. Null, or a fault. */
static const char *read_chunk(struct check_reader *reader,
                              const struct check_blob *blob,
                              struct wal__span *content, uint64_t *culprit)
{
    struct wal__digest digest;
    struct delta_chain delta_chain;
    const char *fault = find_delta_chain(reader, blob, &delta_chain, culprit);

    if (fault != NULL) {
        return delta_chain.count > 0 && fault == damaged_record
                   ? "its base chunk is damaged"
                   : fault;
    }
    *content = (struct wal__span){NULL, 0};
    for (int i = delta_chain.count - 1; i >= 0; i--) {
        if (!decode_chunk(reader, &delta_chain, i, content)) {
            *culprit = delta_chain.blobs[i]->position;
            return i == 0 ? "its compression is not valid"
                          : "its base chunk is damaged";
        }
    }
    *culprit = blob->position;
    if (EVP_Digest(content->data, content->size, digest.bytes, NULL,
                   EVP_sha256(), NULL) != 1 ||
        memcmp(digest.bytes, blob->digest.bytes, WAL__DIGEST_SIZE) != 0) {
        return "its SHA-256 does not match";
    }
    return NULL;
}

/* Reads the chunks of a BLOB in order. The list must not point into a reader's
 * file window. */
static const char *read_list(struct check_reader *reader,
                             const struct wal__blob_record *list,
                             check_piece_fn *piece, void *ctx,
                             uint64_t *culprit)
{
    uint64_t left = list->size;
    struct wal__digest digest;
    struct wal__span content;

    for (uint32_t i = 0; i < list->chunk_count; i++) {
        uint64_t size = left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
        const struct check_blob *chunk;

        memcpy(digest.bytes, list->chunks + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        chunk = check_blobs_find(&reader->store->blobs, &digest);
        *culprit = chunk == NULL ? check_blobs_find_lost(reader->store, &digest)
                                 : chunk->position;
        if (chunk == NULL) {
            return "a chunk of it is missing";
        }
        if (chunk->type != WAL__FRAME_CHUNK || chunk->size != size ||
            read_chunk(reader, chunk, &content, culprit) != NULL ||
            content.size != size) {
            return "a chunk of it is damaged";
        }
        if (EVP_DigestUpdate(reader->digest, content.data, content.size) != 1) {
            return "out of memory";
        }
        if (piece != NULL && !piece(ctx, content)) {
            return "the caller stopped the read";
        }
        left -= size;
    }
    return NULL;
}

static const char *read_blob(struct check_reader *reader,
                             const struct check_blob *blob,
                             check_piece_fn *piece, void *ctx,
                             uint64_t *culprit)
{
    struct wal__blob_record list;
    struct wal__span payload;
    struct wal__digest digest;
    const char *fault = damaged_record;
    uint8_t *copy;

    *culprit = blob->position;
    if (!fetch_payload(reader, 0, blob, &payload)) {
        return fault;
    }
    copy = cli_alloc(payload.size);
    memcpy(copy, payload.data, payload.size);
    payload.data = copy;
    if (reader->digest == NULL) {
        reader->digest = EVP_MD_CTX_new();
    }
    if (wal__blob_record_decode(payload, &list) == WAL__FMT_OK &&
        reader->digest != NULL &&
        EVP_DigestInit_ex(reader->digest, EVP_sha256(), NULL) == 1) {
        fault = read_list(reader, &list, piece, ctx, culprit);
    }
    if (fault == NULL) {
        *culprit = blob->position;
        if (EVP_DigestFinal_ex(reader->digest, digest.bytes, NULL) != 1 ||
            memcmp(digest.bytes, blob->digest.bytes, WAL__DIGEST_SIZE) != 0) {
            fault = "its SHA-256 does not match";
        }
    }
    free(copy);
    return fault;
}

const char *check_reader_read(struct check_reader *reader,
                              const struct check_blob *blob,
                              check_piece_fn *piece, void *ctx,
                              uint64_t *culprit)
{
    struct wal__span content;
    const char *fault;

    if (blob->type == WAL__FRAME_BLOB) {
        return read_blob(reader, blob, piece, ctx, culprit);
    }
    fault = read_chunk(reader, blob, &content, culprit);
    if (fault == NULL && piece != NULL && !piece(ctx, content)) {
        fault = "the caller stopped the read";
    }
    return fault;
}

void check_reader_deinit(struct check_reader *reader)
{
    for (int i = 0; i < 2; i++) {
        check_payload_close(&reader->open[i]);
        free(reader->content[i]);
    }
    EVP_MD_CTX_free(reader->digest);
}

/* --- verification --------------------------------------------------------- */

struct verify_queue {
    struct check_store *store;
    size_t next;
    pthread_mutex_t mutex;
};

/* Takes the next records to verify; false if none are left. */
static bool next_batch(struct verify_queue *verify_queue, size_t *begin,
                       size_t *end)
{
    size_t count = verify_queue->store->blobs.count;

    pthread_mutex_lock(&verify_queue->mutex);
    *begin = verify_queue->next;
    *end = *begin + VERIFY_BATCH < count ? *begin + VERIFY_BATCH : count;
    verify_queue->next = *end;
    pthread_mutex_unlock(&verify_queue->mutex);
    return *begin < *end;
}

static void *verify_worker(void *arg)
{
    struct verify_queue *verify_queue = arg;
    struct check_reader reader = {.store = verify_queue->store};
    size_t begin;
    size_t end;

    while (next_batch(verify_queue, &begin, &end)) {
        for (; begin < end; begin++) {
            struct check_blob *blob =
                verify_queue->store->blobs.by_position[begin];

            blob->fault =
                check_reader_read(&reader, blob, NULL, NULL, &blob->culprit);
        }
    }
    check_reader_deinit(&reader);
    return NULL;
}

/* Whether a record lacks what it needs, as a compaction may leave one that
 * nothing names (SPEC.md 3.9). Of content that is named the reference reports
 * that. */
static bool is_remainder(const struct check_blob *blob)
{
    return blob->fault != NULL && blob->culprit == 0 && !blob->is_callers;
}

static void report_faults(struct check_store *store)
{
    char text[2 * WAL__DIGEST_SIZE + 1];

    for (size_t i = 0; i < store->blobs.count; i++) {
        const struct check_blob *blob = store->blobs.by_position[i];
        struct check_segment *segment =
            check_pack_segment(store, blob->position);

        if (blob->fault != NULL && segment != NULL && !is_remainder(blob)) {
            wal__hex_write(blob->digest.bytes, WAL__DIGEST_SIZE, text);
            check_damage_add(&segment->damages, segment->head->name,
                             wal__position_offset(blob->position), blob->span,
                             "the content with the SHA-256 %s cannot be read: "
                             "%s",
                             text, blob->fault);
        }
    }
}

void check_blobs_verify(struct check_store *store)
{
    struct verify_queue verify_queue = {.store = store};
    pthread_t *threads = cli_alloc(store->jobs * sizeof(*threads));
    unsigned started = 0;

    sort_blobs(&store->blobs);
    pthread_mutex_init(&verify_queue.mutex, NULL);
    while (started + 1 < store->jobs &&
           started * VERIFY_BATCH < store->blobs.count &&
           pthread_create(&threads[started], NULL, verify_worker,
                          &verify_queue) == 0) {
        started++;
    }
    verify_worker(&verify_queue);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&verify_queue.mutex);
    free(threads);
    report_faults(store);
}
