/*
 * references.c - checks what the log refers to in the blob stream: entries
 * whose payload is stored there, and checkpoints, whose list names the content
 * of each file (SPEC.md 2.6, 3.8, 5.13).
 *
 * A reference to unreadable content is damage at the content's record if its
 * position is known, else at the record of the log. Damage of the blob stream
 * that causes such a fault names the sessions that refer to it.
 *
 * Threads: check_reference_decode any; all other functions the main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/pack.h"

bool check_reference_decode(struct wal__span payload,
                            struct check_reference *reference)
{
    struct wal__entry_record entry;
    struct wal__doc_record doc;

    if (reference->type == WAL__FRAME_ENTRY) {
        if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK ||
            entry.digest == NULL) {
            return false;
        }
        memcpy(reference->digest.bytes, entry.digest, WAL__DIGEST_SIZE);
        reference->size = entry.payload_size;
        return true;
    }
    /* An unreadable checkpoint keeps a digest of zeros, which no content
     * has. */
    if (reference->type != WAL__FRAME_DOC ||
        wal__doc_record_decode(payload, &doc) != WAL__FMT_OK ||
        !check_key_is_checkpoint(doc.key)) {
        return false;
    }
    (void)check_checkpoint_list(&doc, &reference->digest);
    return true;
}

/* --- faults --------------------------------------------------------------- */

static struct check_blob_fault
check_blob_find_fault(const struct check_store *store,
                      const struct wal__digest *digest, uint64_t size)
{
    const struct check_blob *blob = check_blobs_find(&store->blobs, digest);
    struct check_blob_fault fault = {.why = NULL};

    if (blob == NULL) {
        fault.position = check_blobs_find_lost(store, digest);
        fault.why =
            fault.position == 0 ? "it is missing" : "its record is damaged";
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
static void attribute_to_session(const struct check_store *store,
                                 uint64_t position, uint32_t session)
{
    struct check_segment *segment = check_pack_segment(store, position);
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
    struct check_reader reader;
    const struct check_reference *reference;
    struct check_payloads payloads;
    struct check_list list;
};

/* Reads the payload of the referring record; valid until the next read. */
static struct wal__span reread_payload(struct reference_walk *reference_walk)
{
    const struct check_reference *reference = reference_walk->reference;
    struct wal__span payload = {NULL, 0};

    payload.data =
        check_payload_read(&reference_walk->payloads, reference->segment,
                           reference->offset, reference->stored_size);
    payload.size = payload.data == NULL ? 0 : reference->stored_size;
    return payload;
}

/* Reports a fault; `what` describes the content. */
static void report_fault(struct reference_walk *reference_walk,
                         const struct check_blob_fault *fault,
                         const struct wal__digest *digest, const char *what)
{
    const struct check_reference *reference = reference_walk->reference;
    struct check_store *store = reference_walk->store;
    const struct check_segment *segment =
        fault->position == 0 ? NULL
                             : check_pack_segment(store, fault->position);
    const struct check_blob *blob = check_blobs_find(&store->blobs, digest);
    bool in_block =
        wal__segment_is_rewritten(&reference->segment->head->header);
    uint64_t size =
        in_block ? 0 : wal__frame_total_size(reference->stored_size);
    uint64_t offset =
        in_block ? wal__block_offset(reference->offset) : reference->offset;
    const char *file = reference->segment->head->name;
    char text[2 * WAL__DIGEST_SIZE + 1];

    if (segment != NULL) {
        file = segment->head->name;
        offset = wal__position_offset(fault->position);
        size = blob == NULL ? WAL__FRAME_SIZE : blob->span;
    }
    wal__hex_write(digest->bytes, WAL__DIGEST_SIZE, text);
    check_damage_session(
        check_damage_add_once(&store->damages, file, offset, size,
                              "%s, SHA-256 %s, cannot be read: %s", what, text,
                              fault->why),
        reference->session);
    attribute_to_session(store, fault->position, reference->session);
    attribute_to_session(store, fault->culprit, reference->session);
}

static void follow_entry(struct reference_walk *reference_walk)
{
    const struct check_reference *reference = reference_walk->reference;
    struct check_blob_fault fault = check_blob_find_fault(
        reference_walk->store, &reference->digest, reference->size);
    struct wal__entry_record entry;
    char what[WAL__ID_MAX + 64];

    if (fault.why == NULL) {
        return;
    }
    if (wal__entry_record_decode(reread_payload(reference_walk), &entry) !=
        WAL__FMT_OK) {
        return; /* it was well-formed in the scan; reading it again failed */
    }
    snprintf(what, sizeof(what), "the payload of the entry %.*s",
             (int)entry.id.size, (const char *)entry.id.data);
    report_fault(reference_walk, &fault, &reference->digest, what);
}

/* Checks every file of the list; false if the list is not valid. */
static bool follow_files(struct reference_walk *reference_walk, const char *id)
{
    const struct wal__span bytes = {reference_walk->list.bytes,
                                    reference_walk->list.size};
    char what[WAL__ID_MAX + 256];
    struct wal__file_record file;
    struct wal__file_list list;

    if (wal__file_list_decode(bytes, &list) != WAL__FMT_OK) {
        return false;
    }
    while (list.remaining > 0) {
        struct check_blob_fault fault;

        if (wal__file_list_next(&list, &file) != WAL__FMT_OK) {
            return false;
        }
        if (file.kind == WAL__FILE_ABSENT) {
            continue;
        }
        fault = check_blob_find_fault(reference_walk->store, &file.digest,
                                      file.size);
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
    struct check_checkpoint *checkpoint = cli_alloc(sizeof(*checkpoint));
    struct check_blob_fault fault = {.why = NULL};
    struct wal__doc_record doc;
    char what[WAL__ID_MAX + 64];
    char *id;

    if (wal__doc_record_decode(reread_payload(reference_walk), &doc) !=
            WAL__FMT_OK ||
        !check_checkpoint_decode(&doc, checkpoint)) {
        check_damage_session(
            check_damage_add(&reference_walk->store->damages,
                             reference->segment->head->name, reference->offset,
                             wal__frame_total_size(reference->stored_size),
                             "the checkpoint of sequence %" PRIu64
                             " is not well-formed",
                             reference->sequence),
            reference->session);
        free(checkpoint);
        return;
    }
    id = cli_copy_text(checkpoint->id.data, checkpoint->id.size);
    snprintf(what, sizeof(what), "the list of files of the checkpoint %s", id);
    fault.why = check_list_read(&reference_walk->reader, &reference->digest,
                                &reference_walk->list);
    if (fault.why != NULL) {
        fault =
            check_blob_find_fault(reference_walk->store, &reference->digest, 0);
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
    struct reference_walk reference_walk = {.store = store,
                                            .reader = {.store = store}};

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
    check_reader_deinit(&reference_walk.reader);
    free(reference_walk.list.bytes);
}
