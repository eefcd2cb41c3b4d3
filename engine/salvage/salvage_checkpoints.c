/*
 * salvage_checkpoints.c - repeats the documents of a session whose keys are
 * reserved for the engine: checkpoints, and whether they are enabled (SPEC.md
 * 5.8, 5.16).
 *
 * Memory is bounded by the longest list of files.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/moved_document.h"
#include "engine/checkpoint/checkpoint_document.h"
#include "engine/salvage/salvage.h"
#include "engine/store/input_text.h"
#include "format/index/file_list.h"

static const char checkpointing_key[] = "\0checkpointing";
static const char rewind_key[] = "\0rewind";

/* The files of a list whose content is in OUT. */
struct file_states {
    struct wal_file *items; /* heap */
    uint64_t count;
    uint64_t lost;          /* number of the others */
    struct wal__span first; /* path of the first of them */
};

static void add_state(struct wal__salvage *salvage, struct file_states *states,
                      const struct wal__file_record *record)
{
    struct wal_file *file = &states->items[states->count];

    if (record->kind != WAL__FILE_ABSENT &&
        wal__salvage_check_content(salvage, &record->digest, record->size) !=
            NULL) {
        states->first = states->lost++ == 0 ? record->path : states->first;
        return;
    }
    *file = (struct wal_file){
        .struct_size = sizeof(*file),
        .kind = record->kind,
        .mode = record->mode,
        .path = wal__text_slice(record->path),
        .size = record->size,
        .mtime_ns = record->mtime_ns,
    };
    memcpy(file->digest, record->digest.bytes, WAL__DIGEST_SIZE);
    states->count++;
}

/* Reads the list; false if it is not valid, or the salvage failed. */
static bool read_states(struct wal__salvage *salvage, struct wal__span bytes,
                        struct file_states *states)
{
    struct wal__file_record record;
    struct wal__file_list list;

    if (wal__file_list_decode(bytes, &list) != WAL__FMT_OK) {
        return false;
    }
    states->items = wal__heap_resize(
        salvage->heap, NULL, (size_t)list.count + 1, sizeof(*states->items));
    if (states->items == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    while (list.remaining > 0) {
        if (wal__file_list_next(&list, &record) != WAL__FMT_OK) {
            return false;
        }
        add_state(salvage, states, &record);
    }
    return salvage->failed == WAL_OK;
}

/* Creates the checkpoint with its link to an entry, or if the session does not
 * have that entry without one. A checkpoint that a fork inherited and added
 * files to keeps its link, although the fork may not have the entry. */
static enum wal_status create_checkpoint(
    struct wal__salvage *salvage, const struct wal__salvage_session *session,
    const struct wal__checkpoint *checkpoint, const struct file_states *states)
{
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = wal__text_slice(checkpoint->id),
        .root = wal__text_slice(checkpoint->root),
        .created_ms = checkpoint->created_ms,
        .entry_id = wal__text_slice(checkpoint->entry),
        .flags = checkpoint->entry.size == 0 ? WAL_CHECKPOINT_UNLINKED : 0U,
    };
    const struct wal_slice entry = options.entry_id;
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *made = NULL;
    enum wal_status status =
        wal_checkpoint_import(session->handle, states->items, states->count,
                              &options, NULL, &salvage->error);

    if (status != WAL_ENOTFOUND || entry.size == 0) {
        return status;
    }
    options.entry_id = (struct wal_slice){NULL, 0};
    options.flags = WAL_CHECKPOINT_UNLINKED;
    status =
        wal_checkpoint_import(session->handle, states->items, states->count,
                              &options, &made, &salvage->error);
    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(made, &info, &salvage->error);
    }
    if (status == WAL_OK && info.entry_id.size == 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the entry of the checkpoint %.*s is lost: %.*s",
                            WAL_ARG(options.id), WAL_ARG(entry));
    }
    wal_file_cursor_close(made);
    return status;
}

static void import_checkpoint(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal__checkpoint *checkpoint,
                              const struct file_states *states)
{
    const struct wal_slice id = wal__text_slice(checkpoint->id);
    enum wal_status status =
        create_checkpoint(salvage, session, checkpoint, states);

    salvage->result.documents += wal__salvage_check(
        salvage, status, WAL_SALVAGE_CHECKPOINT, session->id, "",
        "the checkpoint %.*s cannot be created", WAL_ARG(id));
    if (states->lost > 0) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
            "%" PRIu64 " %s of the checkpoint %.*s, the first of them %.*s",
            states->lost, states->lost == 1 ? "file is lost" : "files are lost",
            WAL_ARG(id),
            (int)(states->first.size < 180 ? states->first.size : 180),
            (const char *)states->first.data);
    }
}

/* Reads the list of a checkpoint from OUT and creates the checkpoint. NULL, or
 * why it is lost. */
static const char *copy_checkpoint(struct wal__salvage *salvage,
                                   const struct wal__salvage_session *session,
                                   const struct wal__checkpoint *checkpoint)
{
    struct file_states states = {.items = NULL};
    const char *fault = NULL;
    struct wal__buf list;

    wal__buf_init(&list, salvage->heap);
    if (!wal__salvage_try(salvage,
                          wal__blob_load(salvage->out_blobs, &checkpoint->list,
                                         &list, &salvage->error))) {
        fault = wal__salvage_blob_fault(salvage, &checkpoint->list);
    } else if (read_states(salvage, (struct wal__span){list.data, list.size},
                           &states)) {
        import_checkpoint(salvage, session, checkpoint, &states);
    } else {
        fault = "it is not a valid list of files";
    }
    wal__heap_free(salvage->heap, states.items);
    wal__buf_deinit(&list);
    return fault;
}

static void put_checkpoint(struct wal__salvage *salvage,
                           const struct wal__salvage_session *session,
                           struct wal__span id, struct wal__span value)
{
    const char *fault = "its document is not well-formed";
    struct wal__checkpoint checkpoint;

    wal__checkpoint_init(&checkpoint, salvage->heap);
    if (wal__salvage_try(salvage, wal__checkpoint_decode(&checkpoint, id, value,
                                                         0, &salvage->error))) {
        fault = copy_checkpoint(salvage, session, &checkpoint);
    }
    if (fault != NULL) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
            "the checkpoint %.*s is lost: its list of files: %s", (int)id.size,
            (const char *)id.data, fault);
    }
    wal__checkpoint_deinit(&checkpoint);
}

static void delete_checkpoint(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              struct wal_slice id)
{
    enum wal_status status =
        wal_checkpoint_delete(session->handle, id, &salvage->error);

    if (status != WAL_ENOTFOUND) {
        salvage->result.documents += wal__salvage_check(
            salvage, status, WAL_SALVAGE_CHECKPOINT, session->id, "",
            "the checkpoint %.*s cannot be deleted", WAL_ARG(id));
    }
}

static void set_checkpointing(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              bool on)
{
    salvage->result.documents += wal__salvage_check(
        salvage,
        wal_session_set_checkpointing(session->handle, on, &salvage->error),
        WAL_SALVAGE_CHECKPOINT, session->id, "",
        "checkpointing cannot be switched on or off");
}

/* Where the session is marked as moved when all of it is copied. */
static void put_move(struct wal__salvage *salvage,
                     const struct wal__salvage_session *session,
                     struct wal__span value)
{
    const struct wal__span id = {(const uint8_t *)session->id,
                                 strlen(session->id)};
    struct wal_session_move move = WAL_INIT(wal_session_move);

    if (wal__moved_decode(value, id, &move)) {
        salvage->result.documents += wal__salvage_check(
            salvage,
            wal_session_set_move(session->handle, &move, &salvage->error),
            WAL_SALVAGE_SESSION, session->id, "",
            "where the session moved to cannot be written");
    }
}

static bool is_key(struct wal__span key, const char *name, size_t size)
{
    return key.size == size - 1 && memcmp(key.data, name, size - 1) == 0;
}

void wal__salvage_reserved_doc(struct wal__salvage *salvage,
                               const struct wal__salvage_session *session,
                               const struct wal__frame *frame,
                               const struct wal__doc_record *record)
{
    static const char off[] = "false";
    const struct wal__span key = record->key;
    const struct wal__span value = record->value;
    bool is_put = frame->type == WAL__FRAME_DOC;
    struct wal__span id;

    if (is_key(key, checkpointing_key, sizeof(checkpointing_key))) {
        set_checkpointing(salvage, session,
                          !is_put || value.size != strlen(off) ||
                              memcmp(value.data, off, value.size) != 0);
    } else if (key.size > WAL__CHECKPOINT_PREFIX_SIZE &&
               memcmp(key.data, wal__checkpoint_prefix,
                      WAL__CHECKPOINT_PREFIX_SIZE) == 0) {
        id.data = key.data + WAL__CHECKPOINT_PREFIX_SIZE;
        id.size = key.size - WAL__CHECKPOINT_PREFIX_SIZE;
        if (is_put) {
            put_checkpoint(salvage, session, id, value);
        } else {
            delete_checkpoint(salvage, session,
                              (struct wal_slice){id.data, id.size});
        }
    } else if (is_put && wal__span_equal(key, wal__moved_key())) {
        put_move(salvage, session, value);
    } else if (is_put && is_key(key, rewind_key, sizeof(rewind_key)) &&
               session->rewind_sequence == frame->sequence) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "an unfinished rewind was not copied");
    }
}
