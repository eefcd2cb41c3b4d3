/*
 * salvage_blobs.c - content in a salvage: copies the blob stream and loads the
 * payloads of entries (SPEC.md 5.12, 5.13).
 *
 * Records are copied in the order of the stream, in which a chunk follows its
 * base, and a list its chunks: what a record builds on is read from OUT. A
 * record that was written again after damage comes later than what builds on
 * it; so those that failed are tried again until none succeeds.
 *
 * Invariant: content is verified against its digest before it is in OUT.
 * Memory is bounded by a few MiB, one payload.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agentwal/blob.h"
#include "engine/salvage/salvage.h"
#include "engine/store/session.h"

static const char no_memory[] = "out of memory";

struct wal__blob_store *
wal__salvage_out_blobs(const struct wal__salvage *salvage)
{
    return &salvage->out->core.blobs;
}

/* --- why content is not in OUT -------------------------------------------- */

const char *wal__salvage_find_bad_blob(const struct wal__salvage *salvage,
                                       const struct wal__digest *digest)
{
    for (uint32_t i = 0; i < salvage->bad_blob_count; i++) {
        if (wal__digest_equal(&salvage->bad_blobs[i].digest, digest)) {
            return salvage->bad_blobs[i].reason;
        }
    }
    return NULL;
}

/* The same; also for a record that is known to be lost. */
static const char *find_fault(const struct wal__salvage *salvage,
                              const struct wal__digest *digest)
{
    uint64_t digest_hash = wal__digest_hash(digest);

    for (size_t at = 0; at < salvage->lost_blobs.size;
         at += sizeof(digest_hash)) {
        if (memcmp(salvage->lost_blobs.data + at, &digest_hash,
                   sizeof(digest_hash)) == 0) {
            return "its record is damaged";
        }
    }
    return wal__salvage_find_bad_blob(salvage, digest);
}

const char *wal__salvage_check_content(struct wal__salvage *salvage,
                                       const struct wal__digest *digest,
                                       uint64_t size)
{
    struct wal_error error = WAL_INIT(wal_error);
    uint64_t found = 0;
    uint64_t end;
    enum wal_status status = wal__blob_stat(wal__salvage_out_blobs(salvage),
                                            digest, &found, &end, &error);
    const char *fault;

    if (status == WAL_OK) {
        return found == size ? NULL : "its size differs from the reference";
    }
    (void)wal__salvage_is_fatal(salvage, status, &error);
    fault = find_fault(salvage, digest);
    return fault == NULL ? "it is missing" : fault;
}

/* --- copying -------------------------------------------------------------- */

/* Turns a failure to write into a reason. */
static const char *write_fault(struct wal__salvage *salvage,
                               enum wal_status status,
                               const struct wal_error *error)
{
    return status == WAL_OK || wal__salvage_is_fatal(salvage, status, error)
               ? NULL
               : "the new store refuses it";
}

/* Reads a chunk from OUT. NULL, or why it is not there. */
static const char *load_chunk(struct wal__salvage *salvage,
                              const struct wal__digest *digest,
                              struct wal__buf *out, const char *missing,
                              const char *damaged)
{
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    out->size = 0;
    status =
        wal__blob_load(wal__salvage_out_blobs(salvage), digest, out, &error);
    if (status == WAL_OK || wal__salvage_is_fatal(salvage, status, &error)) {
        return NULL;
    }
    return find_fault(salvage, digest) == NULL ? missing : damaged;
}

/* Copies a CHUNK. NULL, or why its content cannot be read. */
static const char *copy_chunk(struct wal__salvage *salvage,
                              struct wal__span payload)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal__chunk_record chunk;
    struct wal__span content;
    struct wal__digest digest;
    const char *fault = NULL;
    uint8_t *bytes;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    if (chunk.encoding == WAL__CHUNK_DELTA) {
        fault = load_chunk(salvage, &chunk.base, &salvage->base,
                           "its base chunk is missing",
                           "its base chunk is damaged");
    }
    if (fault != NULL || salvage->failed != WAL_OK) {
        return fault;
    }
    salvage->content.size = 0;
    if (wal__buf_reserve(&salvage->content, (size_t)chunk.size + 1, &bytes) !=
        WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    content = (struct wal__span){bytes, chunk.size};
    if (!wal__chunk_decode_content(
            &chunk, (struct wal__span){salvage->base.data, salvage->base.size},
            bytes)) {
        return "its compression is not valid";
    }
    if (wal__sha256(&salvage->sha256_alg, content, &digest) != WAL_OK) {
        return no_memory;
    }
    if (!wal__digest_equal(&digest, &chunk.digest)) {
        return "its SHA-256 does not match";
    }
    return write_fault(salvage,
                       wal__blob_put(wal__salvage_out_blobs(salvage), content,
                                     NULL, &digest, &salvage->put, &error),
                       &error);
}

/* Appends the chunks of a list to the writer. NULL, or why one of them cannot
 * be read. */
static const char *append_chunks(struct wal__salvage *salvage,
                                 const struct wal__blob_record *list,
                                 struct wal__sha256_ctx *sha256,
                                 struct wal__blob_writer *writer)
{
    struct wal_error error = WAL_INIT(wal_error);
    const char *fault = NULL;
    uint64_t left = list->size;

    for (uint32_t i = 0;
         i < list->chunk_count && fault == NULL && salvage->failed == WAL_OK;
         i++) {
        uint64_t size = left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
        struct wal__span content;
        struct wal__digest digest;

        memcpy(digest.bytes, list->chunks + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        fault =
            load_chunk(salvage, &digest, &salvage->content,
                       "a chunk of it is missing", "a chunk of it is damaged");
        content =
            (struct wal__span){salvage->content.data, salvage->content.size};
        if (fault == NULL && content.size != size) {
            fault = "a chunk of it is damaged";
        }
        if (fault == NULL && wal__sha256_update(sha256, content) != WAL_OK) {
            fault = no_memory;
        }
        if (fault == NULL && salvage->failed == WAL_OK) {
            fault = write_fault(
                salvage, wal__blob_writer_append(writer, content, &error),
                &error);
        }
        left -= size;
    }
    return fault;
}

/* Copies a BLOB, a list of chunks. NULL, or why its content cannot be read. */
static const char *copy_list(struct wal__salvage *salvage,
                             struct wal__span payload)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal__sha256_ctx sha256 = {NULL};
    struct wal__blob_writer *writer = NULL;
    struct wal__blob_record list;
    struct wal__digest digest;
    const char *fault;
    enum wal_status status;
    uint64_t size;

    if (wal__blob_record_decode(payload, &list) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    if (wal__sha256_begin(&salvage->sha256_alg, &sha256) != WAL_OK) {
        return no_memory;
    }
    status = wal__blob_writer_create(wal__salvage_out_blobs(salvage), NULL,
                                     &writer, &error);
    fault = write_fault(salvage, status, &error);
    if (status != WAL_OK) {
        goto done;
    }
    fault = append_chunks(salvage, &list, &sha256, writer);
    if (fault != NULL || salvage->failed != WAL_OK) {
        goto done;
    }
    if (wal__sha256_final(&sha256, &digest) != WAL_OK ||
        !wal__digest_equal(&digest, &list.digest)) {
        fault = "its SHA-256 does not match";
        goto done;
    }
    fault = write_fault(
        salvage,
        wal__blob_writer_finish(writer, &digest, &size, &salvage->put, &error),
        &error);
done:
    wal__blob_writer_destroy(writer);
    wal__sha256_deinit(&sha256);
    return fault;
}

/* Copies a record unless OUT has its content. NULL, or why it cannot be
 * read. */
static const char *copy_content(struct wal__salvage *salvage, uint8_t type,
                                const struct wal__digest *digest,
                                struct wal__span payload)
{
    struct wal_error error = WAL_INIT(wal_error);
    const char *fault;
    uint64_t end = 0;
    enum wal_status status = wal__blob_find_end(wal__salvage_out_blobs(salvage),
                                                digest, &end, &error);

    if (wal__salvage_is_fatal(salvage, status, &error) || end != 0) {
        return NULL;
    }
    fault = type == WAL__FRAME_CHUNK ? copy_chunk(salvage, payload)
                                     : copy_list(salvage, payload);
    salvage->result.blobs += fault == NULL && salvage->failed == WAL_OK;
    return fault;
}

static enum wal_status copy_record(void *ctx,
                                   const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame,
                                   uint64_t offset, const uint8_t *bytes)
{
    struct wal__salvage *salvage = ctx;
    struct wal__salvage_bad_blob bad = {segment,     offset, frame->stored_size,
                                        frame->type, {{0}},  NULL};

    if ((frame->type != WAL__FRAME_CHUNK && frame->type != WAL__FRAME_BLOB) ||
        frame->stored_size < WAL__DIGEST_SIZE) {
        return salvage->failed;
    }
    memcpy(bad.digest.bytes, bytes, WAL__DIGEST_SIZE); /* both begin with it */
    bad.reason = copy_content(salvage, frame->type, &bad.digest,
                              (struct wal__span){bytes, frame->stored_size});
    if (bad.reason != NULL &&
        wal__salvage_grow(salvage, (void **)&salvage->bad_blobs,
                          salvage->bad_blob_count, &salvage->bad_blob_capacity,
                          sizeof(bad))) {
        salvage->bad_blobs[salvage->bad_blob_count++] = bad;
    }
    return salvage->failed;
}

static enum wal_status lose_record(void *ctx, const struct wal__frame *frame)
{
    struct wal__salvage *salvage = ctx;

    salvage->result.lost_blobs++;
    return wal__buf_append(&salvage->lost_blobs, &frame->id_hash,
                           sizeof(frame->id_hash));
}

/* Copies again what failed. Returns whether something was copied. */
static bool retry_bad_blobs(struct wal__salvage *salvage)
{
    uint32_t count = salvage->bad_blob_count;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count && salvage->failed == WAL_OK; i++) {
        struct wal__salvage_bad_blob bad = salvage->bad_blobs[i];
        struct wal__damaged_file file;
        const uint8_t *bytes = NULL;

        if (wal__damaged_file_open(&file, &salvage->damaged.env,
                                   bad.segment->name) == WAL_OK) {
            bytes = wal__damaged_file_fetch(&file, bad.offset + WAL__FRAME_SIZE,
                                            bad.stored_size);
        }
        if (bytes != NULL) {
            bad.reason =
                copy_content(salvage, bad.type, &bad.digest,
                             (struct wal__span){bytes, bad.stored_size});
        }
        wal__damaged_file_close(&file);
        if (bad.reason != NULL) {
            salvage->bad_blobs[kept++] = bad;
        }
    }
    salvage->bad_blob_count = kept;
    return kept < count && salvage->failed == WAL_OK;
}

/* The index of a damaged segment names the content that it had. */
static void add_lost_of_index(struct wal__salvage *salvage,
                              const struct wal__pack_index *index)
{
    for (uint32_t i = 0;
         i < index->header.posting_count && salvage->failed == WAL_OK; i++) {
        struct wal_error error = WAL_INIT(wal_error);
        struct wal__frame frame = {0};
        struct wal__digest digest;
        uint64_t end = 0;
        enum wal_status status;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        status = wal__blob_find_end(wal__salvage_out_blobs(salvage), &digest,
                                    &end, &error);
        if (!wal__salvage_is_fatal(salvage, status, &error) && end == 0 &&
            find_fault(salvage, &digest) == NULL) {
            frame.id_hash = wal__digest_hash(&digest);
            status = lose_record(salvage, &frame);
            if (status != WAL_OK) {
                wal__salvage_fail(salvage, status, NULL);
            }
        }
    }
}

static void read_pack_indexes(struct wal__salvage *salvage,
                              const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__pack_index index;

    if (!segment->has_damage) {
        return;
    }
    if (wal__damaged_decode_pack_index(
            damaged, segment->id,
            wal__damaged_index_frame(damaged, segment, &file), &index)) {
        add_lost_of_index(salvage, &index);
    }
    wal__damaged_file_close(&file);
    if (wal__damaged_decode_pack_index(
            damaged, segment->id,
            wal__damaged_index_file(damaged, true, segment->id, &file),
            &index)) {
        add_lost_of_index(salvage, &index);
    }
    wal__damaged_file_close(&file);
}

static void report_bad_blobs(struct wal__salvage *salvage)
{
    char text[WAL__DIGEST_HEX_SIZE];
    char reason[256];

    for (uint32_t i = 0;
         i < salvage->bad_blob_count && salvage->failed == WAL_OK; i++) {
        const struct wal__salvage_bad_blob *bad = &salvage->bad_blobs[i];
        const struct wal__frame frame = {.stored_size = bad->stored_size};

        wal__digest_to_hex(&bad->digest, text);
        snprintf(reason, sizeof(reason),
                 "the content with the SHA-256 %s cannot be read: %s", text,
                 bad->reason);
        salvage->result.lost_blobs++;
        wal__salvage_report_frame(salvage, WAL_SALVAGE_BLOB, bad->segment,
                                  &frame, bad->offset, reason);
    }
}

void wal__salvage_blobs(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {
        salvage, copy_record, lose_record, wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal_error error = WAL_INIT(wal_error);
    uint32_t found = damaged->damage_count;
    enum wal_status status = WAL_OK;

    for (struct wal__damaged_segment *segment =
             wal__damaged_first(&damaged->pack);
         segment != NULL && status == WAL_OK; segment = segment->next) {
        status = wal__damaged_scan(damaged, segment, &visitor);
    }
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, NULL);
        return;
    }
    wal__salvage_report_damage(salvage, found);
    while (retry_bad_blobs(salvage)) {
    }
    report_bad_blobs(salvage);
    for (const struct wal__damaged_segment *segment = damaged->pack.tail;
         segment != NULL && salvage->failed == WAL_OK;
         segment = segment->previous) {
        read_pack_indexes(salvage, segment);
    }
    if (salvage->failed == WAL_OK && salvage->put.end != 0) {
        status = wal__blob_store_sync(wal__salvage_out_blobs(salvage),
                                      salvage->put.end, &error);
        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, &error);
        }
    }
}

/* --- payloads ------------------------------------------------------------- */

uint8_t *wal__salvage_load_payload(struct wal__salvage *salvage,
                                   const struct wal__entry_record *record,
                                   const char **reason)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_blob *blob = NULL;
    struct wal__digest digest;
    uint8_t *payload = NULL;
    enum wal_status status;
    uint64_t got = 0;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    *reason =
        wal__salvage_check_content(salvage, &digest, record->payload_size);
    if (*reason != NULL) {
        return NULL;
    }
    status = wal_blob_open(salvage->out, digest.bytes, &blob, &error);
    if (status == WAL_OK) {
        payload = wal__heap_alloc(salvage->large_heap, record->payload_size);
        status = payload == NULL
                     ? WAL_ENOMEM
                     : wal_blob_read(blob, 0, payload, record->payload_size,
                                     &got, &error);
        wal_blob_close(blob);
    }
    if (status != WAL_OK || got != record->payload_size) {
        wal__heap_free(salvage->large_heap, payload);
        wal__salvage_fail(salvage, status == WAL_OK ? WAL_EIO : status,
                          status == WAL_ENOMEM ? NULL : &error);
        return NULL;
    }
    return payload;
}

void wal__salvage_blobs_deinit(struct wal__salvage *salvage)
{
    wal__buf_deinit(&salvage->content);
    wal__buf_deinit(&salvage->base);
    wal__buf_deinit(&salvage->lost_blobs);
    wal__heap_free(salvage->heap, salvage->bad_blobs);
    wal__sha256_alg_deinit(&salvage->sha256_alg);
}
