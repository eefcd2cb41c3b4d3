/*
 * blobs.c - the blob stream: the records of its segments and their indexes (SPEC.md 2.18 to 2.20),
 * their content (5.12), and what the log refers to in it: entries whose payload is stored there,
 * and checkpoints, whose list names the content of each file (2.6, 2.21, 3.8, 5.13).
 *
 * Each CHUNK is decoded with its delta bases and digested, and each BLOB is digested over its
 * chunks. A reference to unreadable content is damage at the content's record if its position is
 * known, else at the record of the log. Damage of the blob stream that causes such a fault names
 * the sessions that refer to it.
 *
 * Invariant: content is sound only if its SHA-256 was computed and matches. Each thread holds at
 * most a few MiB of content in memory, plus one whole list of files.
 *
 * Threads: check_pack_add_record and check_pack_add_lost run in the scan of their segment;
 * check_blobs_verify creates and joins workers, each with a reader of its thread; all other
 * functions the main thread.
 */
#include "engine/base/containers.h"
#include "tools/walcheck/walcheck.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

/* --- records and indexes ------------------------------------------------ */

/* Decodes a record; false if it is not well-formed. */
static bool decode_record(const struct wal__frame *frame, const uint8_t *payload,
                          struct check_blob *blob)
{
    const struct wal__span bytes = {payload, frame->stored_size};
    struct wal__chunk_record chunk;
    struct wal__blob_record list;

    if ((frame->flags & ~WAL__FRAME_REWRITTEN) != 0 || frame->session != 0 || frame->stream != 0 ||
        frame->kind > 1 || frame->parent != 0) {
        return false;
    }
    if (frame->type == WAL__FRAME_CHUNK && wal__chunk_record_decode(bytes, &chunk) == WAL__FMT_OK) {
        blob->digest = chunk.digest;
        blob->size = chunk.size;
    } else if (frame->type == WAL__FRAME_BLOB &&
               wal__blob_record_decode(bytes, &list) == WAL__FMT_OK) {
        blob->digest = list.digest;
        blob->size = list.size;
    } else {
        return false;
    }
    blob->type = frame->type;
    blob->is_callers = frame->kind == 0;
    blob->span = (uint32_t)wal__frame_total_size(frame->stored_size);
    return wal__digest_hash(&blob->digest) == frame->id_hash;
}

void check_pack_add_record(struct check_segment *segment, const struct wal__frame *frame,
                           uint64_t offset, const uint8_t *payload)
{
    struct check_blob blob = {
        .position = wal__position(segment->head->id, (uint32_t)offset),
    };

    if (!decode_record(frame, payload, &blob)) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, offset,
                         wal__frame_total_size(frame->stored_size),
                         "the %s of sequence %" PRIu64 " is not well-formed",
                         wal__frame_type_name(frame->type), frame->sequence);
        check_pack_add_lost(segment, frame->id_hash, offset);
        return;
    }
    *CLI_PUSH(segment->blobs, segment->blob_count, segment->blob_capacity) = blob;
}

void check_pack_add_lost(struct check_segment *segment, uint64_t digest_hash, uint64_t offset)
{
    *CLI_PUSH(segment->lost_blobs, segment->lost_blob_count, segment->lost_blob_capacity) =
        (struct check_lost_blob){digest_hash, wal__position(segment->head->id, (uint32_t)offset)};
}

/* The record at an offset, or null. */
static const struct check_blob *find_at_offset(const struct check_segment *segment, uint32_t offset)
{
    uint64_t position = wal__position(segment->head->id, offset);
    size_t rank = wal__lower_bound(segment->blobs, segment->blob_count, sizeof(segment->blobs[0]),
                                   offsetof(struct check_blob, position), position);

    return rank < segment->blob_count && segment->blobs[rank].position == position
               ? &segment->blobs[rank]
               : NULL;
}

const char *check_pack_index(struct check_segment *segment, const struct wal__pack_index *index)
{
    const uint8_t *previous = NULL;
    uint32_t previous_offset = 0;
    uint32_t found = 0;

    for (uint32_t i = 0; i < index->header.posting_count; i++) {
        const uint8_t *digest = index->digests + (size_t)i * WAL__DIGEST_SIZE;
        uint32_t offset = wal__get32(index->offsets + (size_t)i * 4);
        const struct check_blob *blob = find_at_offset(segment, offset);
        int order = previous == NULL ? -1 : memcmp(previous, digest, WAL__DIGEST_SIZE);

        if (order > 0 || (order == 0 && previous_offset >= offset)) {
            return "its digests are not in order";
        }
        previous = digest;
        previous_offset = offset;
        if (blob != NULL && memcmp(blob->digest.bytes, digest, WAL__DIGEST_SIZE) == 0) {
            found++;
        } else if (blob == NULL && segment->has_lost_records) {
            check_pack_add_lost(segment, wal__get64(digest), offset);
        } else {
            return "one of its digests is not at the recorded offset";
        }
    }
    return found < segment->blob_count ? "records of the segment are missing from it" : NULL;
}

/* --- content ------------------------------------------------------------ */

enum {
    VERIFY_BATCH = 16, /* records per thread and queue access */
    DELTA_CHAIN_MAX = WAL__CHUNK_DEPTH_MAX + 1
};

static const char missing_base[] = "its base chunk is missing";

static const char damaged_record[] = "its record is damaged";

/* --- the set -------------------------------------------------------------- */

void check_blobs_add_segment(struct check_blobs *blobs, struct check_segment *segment)
{
    for (size_t i = 0; i < segment->blob_count; i++) {
        *CLI_ADD(blobs) = segment->blobs[i];
    }
    free(segment->blobs);
    segment->blobs = NULL;
    segment->blob_count = 0;
    segment->blob_capacity = 0;
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
    qsort(blobs->by_position, blobs->count, sizeof(struct check_blob *), by_position);
}

/* The newest record with the digest, or null. After check_blobs_verify. */
static const struct check_blob *blobs_find(const struct check_blobs *blobs,
                                           const struct wal__digest *digest)
{
    size_t low = 0;
    size_t high = blobs->count;

    /* Find the rank after the last item whose digest is at most `digest`. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(blobs->items[middle].digest.bytes, digest->bytes, WAL__DIGEST_SIZE) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 &&
                   memcmp(blobs->items[low - 1].digest.bytes, digest->bytes, WAL__DIGEST_SIZE) == 0
               ? &blobs->items[low - 1]
               : NULL;
}

/* The position of a lost record, if its frame header or an index has it; else
 * 0. */
static uint64_t blobs_find_lost(const struct check_store *store, const struct wal__digest *digest)
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

/* The segment that contains a position of the blob stream, or null. */
static struct check_segment *pack_segment(const struct check_store *store, uint64_t position)
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

/* Reads content. Initialise with zeros and the store. Used by one thread. */
struct reader {
    const struct check_store *store;
    struct check_payloads open[2]; /* for records, and for delta bases */
    uint8_t *content[2];
    void *digest; /* EVP_MD_CTX */
};

/* Receives a piece of content; returns false to stop. */
typedef bool piece_fn(void *ctx, struct wal__span piece);

/* Reads a record's payload; it is valid until the next fetch with this rank. */
static bool fetch_payload(struct reader *reader, int rank, const struct check_blob *blob,
                          struct wal__span *payload)
{
    const struct check_segment *segment = pack_segment(reader->store, blob->position);
    struct wal__frame frame;

    return segment != NULL &&
           check_record_read(&reader->open[rank], segment, wal__position_offset(blob->position),
                             blob->span, &frame, payload) &&
           frame.type == blob->type;
}

/* A chunk and its delta bases, down to a chunk without a base. */
struct delta_chain {
    const struct check_blob *blobs[DELTA_CHAIN_MAX];
    int count;
};

static const char *find_delta_chain(struct reader *reader, const struct check_blob *blob,
                                    struct delta_chain *delta_chain, uint64_t *culprit)
{
    struct wal__chunk_record chunk = {.size = 0};
    struct wal__span payload;

    delta_chain->count = 0;
    do {
        if (blob == NULL) {
            *culprit = blobs_find_lost(reader->store, &chunk.base);
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
        blob = blobs_find(&reader->store->blobs, &chunk.base);
    } while (chunk.encoding == WAL__CHUNK_DELTA);
    return NULL;
}

/* Decodes one chunk of the chain into the buffer that does not hold its base. */
static bool decode_chunk(struct reader *reader, const struct delta_chain *delta_chain, int rank,
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
static const char *read_chunk(struct reader *reader, const struct check_blob *blob,
                              struct wal__span *content, uint64_t *culprit)
{
    struct wal__digest digest;
    struct delta_chain delta_chain;
    const char *fault = find_delta_chain(reader, blob, &delta_chain, culprit);

    if (fault != NULL) {
        return delta_chain.count > 0 && fault == damaged_record ? "its base chunk is damaged"
                                                                : fault;
    }
    *content = (struct wal__span){NULL, 0};
    for (int i = delta_chain.count - 1; i >= 0; i--) {
        if (!decode_chunk(reader, &delta_chain, i, content)) {
            *culprit = delta_chain.blobs[i]->position;
            return i == 0 ? "its compression is not valid" : "its base chunk is damaged";
        }
    }
    *culprit = blob->position;
    if (EVP_Digest(content->data, content->size, digest.bytes, NULL, EVP_sha256(), NULL) != 1 ||
        memcmp(digest.bytes, blob->digest.bytes, WAL__DIGEST_SIZE) != 0) {
        return "its SHA-256 does not match";
    }
    return NULL;
}

/* Reads the chunks of a BLOB in order. The list must not point into a reader's file window. */
static const char *read_list(struct reader *reader, const struct wal__blob_record *list,
                             piece_fn *piece, void *ctx, uint64_t *culprit)
{
    uint64_t left = list->size;
    struct wal__digest digest;
    struct wal__span content;

    for (uint32_t i = 0; i < list->chunk_count; i++) {
        uint64_t size = left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
        const struct check_blob *chunk;

        memcpy(digest.bytes, list->chunks + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        chunk = blobs_find(&reader->store->blobs, &digest);
        *culprit = chunk == NULL ? blobs_find_lost(reader->store, &digest) : chunk->position;
        if (chunk == NULL) {
            return "a chunk of it is missing";
        }
        if (chunk->type != WAL__FRAME_CHUNK || chunk->size != size ||
            read_chunk(reader, chunk, &content, culprit) != NULL || content.size != size) {
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

static const char *read_blob(struct reader *reader, const struct check_blob *blob, piece_fn *piece,
                             void *ctx, uint64_t *culprit)
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
    if (wal__blob_record_decode(payload, &list) == WAL__FMT_OK && reader->digest != NULL &&
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

/* Reads the content of a record and verifies all digests. Returns null, or the reason why it cannot
 * be read; *culprit is then the record that causes it, and the caller must discard all pieces
 * received. `piece` may be null. */
static const char *reader_read(struct reader *reader, const struct check_blob *blob,
                               piece_fn *piece, void *ctx, uint64_t *culprit)
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

static void reader_deinit(struct reader *reader)
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
static bool next_batch(struct verify_queue *verify_queue, size_t *begin, size_t *end)
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
    struct reader reader = {.store = verify_queue->store};
    size_t begin;
    size_t end;

    while (next_batch(verify_queue, &begin, &end)) {
        for (; begin < end; begin++) {
            struct check_blob *blob = verify_queue->store->blobs.by_position[begin];

            blob->fault = reader_read(&reader, blob, NULL, NULL, &blob->culprit);
        }
    }
    reader_deinit(&reader);
    return NULL;
}

/* Whether a record lacks what it needs, as a compaction may leave one that nothing names (SPEC.md
 * 3.9). Of content that is named the reference reports that. */
static bool is_remainder(const struct check_blob *blob)
{
    return blob->fault != NULL && blob->culprit == 0 && !blob->is_callers;
}

static void report_faults(struct check_store *store)
{
    char text[2 * WAL__DIGEST_SIZE + 1];

    for (size_t i = 0; i < store->blobs.count; i++) {
        const struct check_blob *blob = store->blobs.by_position[i];
        struct check_segment *segment = pack_segment(store, blob->position);

        if (blob->fault != NULL && segment != NULL && !is_remainder(blob)) {
            wal__hex_write(blob->digest.bytes, WAL__DIGEST_SIZE, text);
            check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name,
                             wal__position_offset(blob->position), blob->span,
                             "the content with the SHA-256 %s cannot be read: %s", text,
                             blob->fault);
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
    while (started + 1 < store->jobs && started * VERIFY_BATCH < store->blobs.count &&
           pthread_create(&threads[started], NULL, verify_worker, &verify_queue) == 0) {
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

/* --- checkpoints and their lists ---------------------------------------- */

static const char prefix[] = "\0checkpoint/";

enum { PREFIX_SIZE = sizeof(prefix) - 1, ROOT_MAX = 8192 };

/* Whether the key is a checkpoint's. */
static bool key_is_checkpoint(struct wal__span key)
{
    return key.size > PREFIX_SIZE && memcmp(key.data, prefix, PREFIX_SIZE) == 0;
}

/* Decodes hexadecimal text between quotes; false if it is invalid or too long. */
static bool read_hex(struct wal__json_span text, uint8_t *out, size_t capacity, size_t *size)
{
    if (text.size % 2 != 0 || text.size / 2 - 1 > capacity) {
        return false;
    }
    *size = text.size / 2 - 1;
    return wal__hex_read(text.data + 1, *size, out);
}

static bool find(const struct wal__doc_record *doc, const char *key, enum wal__json_kind kind,
                 struct wal__json_token *token)
{
    return wal__json_find(doc->value.data, doc->value.size, key, token) == WAL__JSON_OK &&
           token->kind == kind;
}

/* Decodes only the digest of the file list. */
static bool checkpoint_list(const struct wal__doc_record *doc, struct wal__digest *list)
{
    struct wal__json_token token;
    size_t size;

    return find(doc, "list", WAL__JSON_STRING, &token) &&
           read_hex(token.span, list->bytes, sizeof(list->bytes), &size) &&
           size == sizeof(list->bytes);
}

/* Whether the checkpoint has a root, as text or as bytes. */
static bool check_root(const struct wal__doc_record *doc)
{
    struct wal__json_token token;
    uint8_t root[ROOT_MAX];
    size_t size = 0;

    if (find(doc, "root", WAL__JSON_STRING, &token)) {
        return wal__json_unescape(token.span, root, sizeof(root), &size, NULL) == WAL__JSON_OK;
    }
    return find(doc, "rootHex", WAL__JSON_STRING, &token) &&
           read_hex(token.span, root, sizeof(root), &size);
}

/* Whether the entry that the checkpoint is linked with has a valid id. A fork that was made at an
 * older entry shares the checkpoint and not the entry, so that a link to an entry which the session
 * does not have is no damage. */
static bool check_entry(const struct wal__doc_record *doc)
{
    struct wal__json_token token;
    uint8_t id[WAL__ID_MAX];
    size_t size = 0;

    return wal__json_find(doc->value.data, doc->value.size, "entry", &token) != WAL__JSON_OK ||
           (token.kind == WAL__JSON_STRING &&
            wal__json_unescape(token.span, id, sizeof(id), &size, NULL) == WAL__JSON_OK &&
            size > 0);
}

struct checkpoint {
    struct wal__span id; /* points into the key */
    struct wal__digest list;
};

/* Whether the document is a valid checkpoint. */
static bool checkpoint_decode(const struct wal__doc_record *doc, struct checkpoint *checkpoint)
{
    if (!key_is_checkpoint(doc->key) || !checkpoint_list(doc, &checkpoint->list) ||
        !check_root(doc) || !check_entry(doc)) {
        return false;
    }
    checkpoint->id.data = doc->key.data + PREFIX_SIZE;
    checkpoint->id.size = doc->key.size - PREFIX_SIZE;
    return true;
}

/* --- lists ---------------------------------------------------------------- */

static bool add_piece(void *ctx, struct wal__span piece)
{
    cli_append(ctx, piece.data, piece.size);
    return true;
}

/* Reads the encoded list into *list. Returns null, or why it cannot be read. */
static const char *list_read(struct reader *reader, const struct wal__digest *digest,
                             struct wal__buf *list)
{
    const struct check_blob *blob = blobs_find(&reader->store->blobs, digest);
    uint64_t culprit;

    list->size = 0;
    if (blob == NULL) {
        return "it is missing";
    }
    if (blob->fault != NULL) {
        return blob->fault;
    }
    return reader_read(reader, blob, add_piece, list, &culprit);
}

/* --- references --------------------------------------------------------- */

bool check_reference_decode(struct wal__span payload, struct check_reference *reference)
{
    struct wal__entry_record entry;
    struct wal__doc_record doc;

    if (reference->type == WAL__FRAME_ENTRY) {
        if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK || entry.digest == NULL) {
            return false;
        }
        memcpy(reference->digest.bytes, entry.digest, WAL__DIGEST_SIZE);
        reference->size = entry.payload_size;
        return true;
    }
    /* An unreadable checkpoint keeps a digest of zeros, which no content has. */
    if (reference->type != WAL__FRAME_DOC || wal__doc_record_decode(payload, &doc) != WAL__FMT_OK ||
        !key_is_checkpoint(doc.key)) {
        return false;
    }
    (void)checkpoint_list(&doc, &reference->digest);
    return true;
}

/* --- faults --------------------------------------------------------------- */

/* The fault of content that a record refers to. */
struct blob_fault {
    const char *why;   /* null: no fault */
    uint64_t position; /* position of its record; 0: missing */
    uint64_t culprit;
};

static struct blob_fault check_blob_find_fault(const struct check_store *store,
                                               const struct wal__digest *digest, uint64_t size)
{
    const struct check_blob *blob = blobs_find(&store->blobs, digest);
    struct blob_fault fault = {.why = NULL};

    if (blob == NULL) {
        fault.position = blobs_find_lost(store, digest);
        fault.why = fault.position == 0 ? "it is missing" : "its record is damaged";
        return fault;
    }
    fault.position = blob->position;
    fault.culprit = blob->culprit;
    fault.why = blob->fault;
    if (blob->fault == NULL && blob->size != size) {
        fault.why = "its size differs from the reference";
    }
    return fault;
}

/* Adds the session to the damage that covers a position of the blob stream. */
static void attribute_to_session(const struct check_store *store, uint64_t position,
                                 uint32_t session)
{
    struct check_segment *segment = pack_segment(store, position);
    uint64_t at = wal__position_offset(position);

    for (size_t i = 0; segment != NULL && i < segment->damages.count; i++) {
        struct check_damage *damage = &segment->damages.items[i];

        if (damage->kind == CHECK_LOSS && at >= damage->offset &&
            at - damage->offset < damage->length) {
            check_damage_session(damage, session);
        }
    }
}

struct reference_walk {
    struct check_store *store;
    struct reader reader;
    const struct check_reference *reference;
    struct check_payloads payloads;
    struct wal__buf list; /* the encoded bytes of a list of files */
};

/* Reads the payload of the referring record; valid until the next read. */
static struct wal__span reread_payload(struct reference_walk *reference_walk)
{
    const struct check_reference *reference = reference_walk->reference;
    struct wal__span payload = {NULL, 0};

    payload.data = check_payload_read(&reference_walk->payloads, reference->segment,
                                      reference->offset, reference->stored_size);
    payload.size = payload.data == NULL ? 0 : reference->stored_size;
    return payload;
}

/* Reports a fault; `what` describes the content. */
static void report_fault(struct reference_walk *reference_walk, const struct blob_fault *fault,
                         const struct wal__digest *digest, const char *what)
{
    const struct check_reference *reference = reference_walk->reference;
    struct check_store *store = reference_walk->store;
    const struct check_segment *segment =
        fault->position == 0 ? NULL : pack_segment(store, fault->position);
    const struct check_blob *blob = blobs_find(&store->blobs, digest);
    bool in_block = wal__segment_is_rewritten(&reference->segment->head->header);
    uint64_t size = in_block ? 0 : wal__frame_total_size(reference->stored_size);
    uint64_t offset = in_block ? wal__block_offset(reference->offset) : reference->offset;
    const char *file = reference->segment->head->name;
    char text[2 * WAL__DIGEST_SIZE + 1];

    if (segment != NULL) {
        file = segment->head->name;
        offset = wal__position_offset(fault->position);
        size = blob == NULL ? WAL__FRAME_SIZE : blob->span;
    }
    wal__hex_write(digest->bytes, WAL__DIGEST_SIZE, text);
    check_damage_session(check_damage_add_once(&store->damages, file, offset, size,
                                               "%s, SHA-256 %s, cannot be read: %s", what, text,
                                               fault->why),
                         reference->session);
    attribute_to_session(store, fault->position, reference->session);
    attribute_to_session(store, fault->culprit, reference->session);
}

static void follow_entry(struct reference_walk *reference_walk)
{
    const struct check_reference *reference = reference_walk->reference;
    struct blob_fault fault =
        check_blob_find_fault(reference_walk->store, &reference->digest, reference->size);
    struct wal__entry_record entry;
    char what[WAL__ID_MAX + 64];

    if (fault.why == NULL) {
        return;
    }
    if (wal__entry_record_decode(reread_payload(reference_walk), &entry) != WAL__FMT_OK) {
        return; /* it was well-formed in the scan; reading it again failed */
    }
    snprintf(what, sizeof(what), "the payload of the entry %.*s", (int)entry.id.size,
             (const char *)entry.id.data);
    report_fault(reference_walk, &fault, &reference->digest, what);
}

/* Checks every file of the list; false if the list is not valid. */
static bool follow_files(struct reference_walk *reference_walk, const char *id)
{
    const struct wal__span bytes = {reference_walk->list.data, reference_walk->list.size};
    char what[WAL__ID_MAX + 256];
    struct wal__file_record file;
    struct wal__file_list list;

    if (wal__file_list_decode(bytes, &list) != WAL__FMT_OK) {
        return false;
    }
    while (list.remaining > 0) {
        struct blob_fault fault;

        if (wal__file_list_next(&list, &file) != WAL__FMT_OK) {
            return false;
        }
        if (file.kind == WAL__FILE_ABSENT) {
            continue;
        }
        fault = check_blob_find_fault(reference_walk->store, &file.digest, file.size);
        if (fault.why != NULL) {
            snprintf(what, sizeof(what), "the file %.*s of the checkpoint %s",
                     (int)(file.path.size < 180 ? file.path.size : 180),
                     (const char *)file.path.data, id);
            report_fault(reference_walk, &fault, &file.digest, what);
        }
    }
    return true;
}

static void follow_checkpoint(struct reference_walk *reference_walk)
{
    const struct check_reference *reference = reference_walk->reference;
    struct checkpoint *checkpoint = cli_alloc(sizeof(*checkpoint));
    struct blob_fault fault = {.why = NULL};
    struct wal__doc_record doc;
    char what[WAL__ID_MAX + 64];
    char *id;

    if (wal__doc_record_decode(reread_payload(reference_walk), &doc) != WAL__FMT_OK ||
        !checkpoint_decode(&doc, checkpoint)) {
        check_damage_session(
            check_damage_add(
                &reference_walk->store->damages, CHECK_LOSS, reference->segment->head->name,
                reference->offset, wal__frame_total_size(reference->stored_size),
                "the checkpoint of sequence %" PRIu64 " is not well-formed", reference->sequence),
            reference->session);
        free(checkpoint);
        return;
    }
    id = cli_copy_text(checkpoint->id.data, checkpoint->id.size);
    snprintf(what, sizeof(what), "the list of files of the checkpoint %s", id);
    fault.why = list_read(&reference_walk->reader, &reference->digest, &reference_walk->list);
    if (fault.why != NULL) {
        fault = check_blob_find_fault(reference_walk->store, &reference->digest, 0);
    } else if (!follow_files(reference_walk, id)) {
        fault = check_blob_find_fault(reference_walk->store, &reference->digest,
                                      reference_walk->list.size);
        fault.why = "it is not a valid list of files";
    }
    if (fault.why != NULL) {
        report_fault(reference_walk, &fault, &reference->digest, what);
    }
    free(id);
    free(checkpoint);
}

void check_references(struct check_store *store)
{
    struct reference_walk reference_walk = {.store = store, .reader = {.store = store}};

    for (size_t i = 0; i < store->log.count; i++) {
        const struct check_segment *segment = store->log.items[i];

        for (size_t k = 0; k < segment->reference_count; k++) {
            reference_walk.reference = &segment->references[k];
            if (reference_walk.reference->type == WAL__FRAME_ENTRY) {
                follow_entry(&reference_walk);
            } else {
                follow_checkpoint(&reference_walk);
            }
        }
    }
    check_payload_close(&reference_walk.payloads);
    reader_deinit(&reference_walk.reader);
    free(reference_walk.list.data);
}
