/*
 * salvage_blobs.c - content in a salvage: copies the blob stream (SPEC.md 5.12,
 * 5.13).
 *
 * Records are copied in the order of the stream, in which a chunk follows its
 * base, and a list its chunks: what a record builds on is read from OUT. A
 * record that was written again after damage comes later than what builds on
 * it; so those that failed are tried again until none succeeds.
 *
 * Invariant: OUT has content under its own digest only. Memory is bounded by a
 * few MiB.
 */
#include <stdio.h>
#include <string.h>

#include "engine/salvage/salvage.h"
#include "engine/store/session.h"

/* --- why content is not in OUT -------------------------------------------- */

/* Whether the record of the content is known to be lost, or failed. */
static const char *find_fault(const struct wal__salvage *salvage,
                              const struct wal__digest *digest)
{
    uint32_t cursor = 0;
    uint32_t none;

    if (wal__hashmap_find(&salvage->lost_blobs, wal__digest_hash(digest),
                          &cursor, &none)) {
        return "its record is damaged";
    }
    for (uint32_t i = 0; i < salvage->bad_blob_count; i++) {
        if (wal__digest_equal(&salvage->bad_blobs[i].digest, digest)) {
            return salvage->bad_blobs[i].reason;
        }
    }
    return NULL;
}

const char *wal__salvage_blob_fault(const struct wal__salvage *salvage,
                                    const struct wal__digest *digest)
{
    const char *fault = find_fault(salvage, digest);

    return fault == NULL ? "it is missing" : fault;
}

const char *wal__salvage_check_content(struct wal__salvage *salvage,
                                       const struct wal__digest *digest,
                                       uint64_t size)
{
    uint64_t found = 0;
    uint64_t end;

    if (wal__salvage_try(salvage,
                         wal__blob_stat(salvage->out_blobs, digest, &found,
                                        &end, &salvage->error))) {
        return found == size ? NULL : "its size differs from the reference";
    }
    return wal__salvage_blob_fault(salvage, digest);
}

/* --- copying -------------------------------------------------------------- */

/* Reads a chunk from OUT. NULL, or why it is not there. */
static const char *load_chunk(struct wal__salvage *salvage,
                              const struct wal__digest *digest,
                              struct wal__buf *out, const char *missing,
                              const char *damaged)
{
    out->size = 0;
    if (wal__salvage_try(salvage, wal__blob_load(salvage->out_blobs, digest,
                                                 out, &salvage->error))) {
        return NULL;
    }
    return find_fault(salvage, digest) == NULL ? missing : damaged;
}

/* Returns a fault unless the content was put under its digest. */
static const char *check_put(struct wal__salvage *salvage,
                             enum wal_status status,
                             const struct wal__digest *put,
                             const struct wal__digest *expected)
{
    if (!wal__salvage_try(salvage, status)) {
        return "the new store refuses it";
    }
    return wal__digest_equal(put, expected) ? NULL
                                            : "its SHA-256 does not match";
}

/* Copies a CHUNK. NULL, or why its content cannot be read. */
static const char *copy_chunk(struct wal__salvage *salvage,
                              enum wal__blob_owner owner,
                              struct wal__span payload)
{
    struct wal__chunk_record chunk;
    struct wal__digest digest;
    const char *fault = NULL;
    enum wal_status status;
    uint8_t *bytes;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    salvage->base.size = 0;
    if (chunk.encoding == WAL__CHUNK_DELTA) {
        fault = load_chunk(salvage, &chunk.base, &salvage->base,
                           "its base chunk is missing",
                           "its base chunk is damaged");
    }
    if (fault != NULL) {
        return fault;
    }
    salvage->content.size = 0;
    if (wal__buf_reserve(&salvage->content, (size_t)chunk.size + 1, &bytes) !=
        WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    if (!wal__chunk_decode_content(
            &chunk, (struct wal__span){salvage->base.data, salvage->base.size},
            bytes)) {
        return "its compression is not valid";
    }
    status =
        wal__blob_put(salvage->out_blobs, (struct wal__span){bytes, chunk.size},
                      NULL, owner, &digest, &salvage->put, &salvage->error);
    return check_put(salvage, status, &digest, &chunk.digest);
}

/* Appends the chunks of a list to the writer. NULL, or why one of them cannot
 * be read. */
static const char *append_chunks(struct wal__salvage *salvage,
                                 const struct wal__blob_record *list,
                                 struct wal__blob_writer *writer)
{
    uint64_t left = list->size;

    for (uint32_t i = 0; i < list->chunk_count; i++) {
        uint64_t size = left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
        struct wal__digest digest;
        const char *fault;

        memcpy(digest.bytes, list->chunks + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        fault =
            load_chunk(salvage, &digest, &salvage->content,
                       "a chunk of it is missing", "a chunk of it is damaged");
        if (fault != NULL) {
            return fault;
        }
        if (salvage->content.size != size) {
            return "a chunk of it is damaged";
        }
        if (!wal__salvage_try(salvage,
                              wal__blob_writer_append(
                                  writer,
                                  (struct wal__span){salvage->content.data,
                                                     salvage->content.size},
                                  &salvage->error))) {
            return "the new store refuses it";
        }
        left -= size;
    }
    return NULL;
}

/* Copies a BLOB, a list of chunks. NULL, or why its content cannot be read. */
static const char *copy_list(struct wal__salvage *salvage,
                             enum wal__blob_owner owner,
                             struct wal__span payload)
{
    struct wal__blob_writer *writer = NULL;
    struct wal__blob_record list;
    struct wal__digest digest = {{0}};
    const char *fault;
    enum wal_status status;
    uint64_t size;

    if (wal__blob_record_decode(payload, &list) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    status = wal__blob_writer_create(salvage->out_blobs, NULL, owner, &writer,
                                     &salvage->error);
    if (!wal__salvage_try(salvage, status)) {
        return "the new store refuses it";
    }
    fault = append_chunks(salvage, &list, writer);
    if (fault == NULL) {
        status = wal__blob_writer_finish(writer, &digest, &size, &salvage->put,
                                         &salvage->error);
        fault = check_put(salvage, status, &digest, &list.digest);
    }
    wal__blob_writer_destroy(writer);
    return fault;
}

/* Copies a record unless OUT has its content, as that of the same owner. NULL,
 * or why it cannot be read; meaningless if the salvage failed. */
static const char *copy_content(struct wal__salvage *salvage,
                                const struct wal__frame *frame,
                                const struct wal__digest *digest,
                                struct wal__span payload)
{
    enum wal__blob_owner owner = wal__blob_frame_owner(frame);
    const char *fault;
    uint64_t end = 0;

    if (!wal__salvage_try(salvage,
                          wal__blob_find_end(salvage->out_blobs, digest, &end,
                                             &salvage->error)) ||
        (end != 0 && owner == WAL__BLOB_OF_RECORDS)) {
        return NULL;
    }
    fault = frame->type == WAL__FRAME_CHUNK
                ? copy_chunk(salvage, owner, payload)
                : copy_list(salvage, owner, payload);
    salvage->result.blobs += fault == NULL;
    return fault;
}

static enum wal_status copy_record(void *ctx,
                                   const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame,
                                   uint64_t offset, const uint8_t *bytes)
{
    struct wal__salvage *salvage = ctx;
    struct wal__salvage_bad_blob bad = {
        .segment = segment, .offset = offset, .frame = *frame};

    if ((frame->type != WAL__FRAME_CHUNK && frame->type != WAL__FRAME_BLOB) ||
        frame->stored_size < WAL__DIGEST_SIZE) {
        return salvage->failed;
    }
    memcpy(bad.digest.bytes, bytes, WAL__DIGEST_SIZE); /* both begin with it */
    bad.reason = copy_content(salvage, frame, &bad.digest,
                              (struct wal__span){bytes, frame->stored_size});
    if (bad.reason != NULL &&
        wal__salvage_grow(salvage, (void **)&salvage->bad_blobs,
                          salvage->bad_blob_count, &salvage->bad_blob_capacity,
                          sizeof(bad))) {
        salvage->bad_blobs[salvage->bad_blob_count++] = bad;
    }
    return salvage->failed;
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
                                            bad.frame.stored_size);
        }
        if (bytes != NULL) {
            bad.reason =
                copy_content(salvage, &bad.frame, &bad.digest,
                             (struct wal__span){bytes, bad.frame.stored_size});
        }
        wal__damaged_file_close(&file);
        if (bad.reason != NULL) {
            salvage->bad_blobs[kept++] = bad;
        }
    }
    salvage->bad_blob_count = kept;
    return kept < count && salvage->failed == WAL_OK;
}

/* --- lost records --------------------------------------------------------- */

static enum wal_status lose_content(struct wal__salvage *salvage,
                                    uint64_t digest_hash)
{
    salvage->result.lost_blobs++;
    return wal__hashmap_add(&salvage->lost_blobs, digest_hash, 0);
}

static enum wal_status lose_record(void *ctx, const struct wal__frame *frame)
{
    return lose_content(ctx, frame->id_hash);
}

/* The index of a damaged segment names the content that it had. */
static void add_lost_of_index(struct wal__salvage *salvage,
                              const struct wal__pack_index *index)
{
    for (uint32_t i = 0;
         i < index->header.posting_count && salvage->failed == WAL_OK; i++) {
        struct wal__digest digest;
        uint64_t end = 0;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        if (wal__salvage_try(salvage,
                             wal__blob_find_end(salvage->out_blobs, &digest,
                                                &end, &salvage->error)) &&
            end == 0 && find_fault(salvage, &digest) == NULL &&
            lose_content(salvage, wal__digest_hash(&digest)) != WAL_OK) {
            wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        }
    }
}

static void read_pack_indexes(struct wal__salvage *salvage,
                              const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__pack_index index;

    for (int i = 0; i < 2 && segment->has_damage; i++) {
        struct wal__span bytes =
            i == 0 ? wal__damaged_index_frame(damaged, segment, &file)
                   : wal__damaged_index_file(damaged, true, segment->id, &file);

        if (wal__damaged_decode_pack_index(damaged, segment->id, bytes,
                                           &index)) {
            add_lost_of_index(salvage, &index);
        }
        wal__damaged_file_close(&file);
    }
}

static void report_bad_blob(struct wal__salvage *salvage,
                            const struct wal__salvage_bad_blob *bad)
{
    char digest[WAL__DIGEST_HEX_SIZE];
    char reason[256];

    wal__digest_to_hex(&bad->digest, digest);
    snprintf(reason, sizeof(reason),
             "the content with the SHA-256 %s cannot be read: %s", digest,
             bad->reason);
    salvage->result.lost_blobs++;
    wal__salvage_send_report(
        salvage, &(struct wal_salvage_report){
                     .struct_size = sizeof(struct wal_salvage_report),
                     .kind = WAL_SALVAGE_BLOB,
                     .file = wal__salvage_text(bad->segment->name),
                     .offset = bad->offset,
                     .size = wal__frame_total_size(bad->frame.stored_size),
                     .reason = wal__salvage_text(reason),
                 });
}

void wal__salvage_blobs(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {
        salvage, copy_record, lose_record, wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;
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
    for (uint32_t i = 0; i < salvage->bad_blob_count; i++) {
        report_bad_blob(salvage, &salvage->bad_blobs[i]);
    }
    for (const struct wal__damaged_segment *segment = damaged->pack.tail;
         segment != NULL; segment = segment->previous) {
        read_pack_indexes(salvage, segment);
    }
    if (salvage->failed == WAL_OK && salvage->put.end != 0) {
        status = wal__blob_store_sync(salvage->out_blobs, salvage->put.end,
                                      &salvage->error);
        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, &salvage->error);
        }
    }
}

void wal__salvage_blobs_deinit(struct wal__salvage *salvage)
{
    wal__buf_deinit(&salvage->content);
    wal__buf_deinit(&salvage->base);
    wal__hashmap_deinit(&salvage->lost_blobs);
    wal__heap_free(salvage->heap, salvage->bad_blobs);
}
