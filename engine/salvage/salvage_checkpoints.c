/*
 * salvage_checkpoints.c - repeats the documents of a session whose keys are
 * reserved for the engine: checkpoints, and whether they are enabled (SPEC.md
 * 5.8, 5.16).
 *
 * Memory is bounded by the longest list of files.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/checkpoint/checkpoint_document.h"
#include "engine/salvage/salvage.h"
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

/* Reads the list; false if it is not valid, or the salvage failed. */
static bool read_states(struct wal__salvage *salvage, struct wal__span bytes,
                        struct file_states *states)
{
    struct wal__file_record record;
    struct wal__file_list list;

    *states = (struct file_states){.items = NULL};
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
        if (record.kind != WAL__FILE_ABSENT &&
            wal__salvage_check_content(salvage, &record.digest, record.size) !=
                NULL) {
            states->first = states->lost++ == 0 ? record.path : states->first;
            continue;
        }
        states->items[states->count] = (struct wal_file){
            .struct_size = sizeof(*states->items),
            .kind = record.kind,
            .mode = record.mode,
            .path = {record.path.data, record.path.size},
            .size = record.size,
            .mtime_ns = record.mtime_ns,
        };
        memcpy(states->items[states->count++].digest, record.digest.bytes,
               WAL__DIGEST_SIZE);
    }
    return salvage->failed == WAL_OK;
}

/* Creates the checkpoint with its link to an entry, or if the session does not
 * have that entry without one. A checkpoint that a fork inherited and added
 * files to keeps its link, although the fork may not have the entry. */
static enum wal_status
create_checkpoint(struct wal__salvage *salvage,
                  const struct wal__salvage_session *session,
                  const struct wal__checkpoint *checkpoint,
                  const struct file_states *states, struct wal_error *error)
{
    const struct wal__span entry = checkpoint->entry;
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = {checkpoint->id.data, checkpoint->id.size},
        .root = {checkpoint->root.data, checkpoint->root.size},
        .created_ms = checkpoint->created_ms,
        .entry_id = {entry.data, entry.size},
        .flags = entry.size == 0 ? WAL_CHECKPOINT_UNLINKED : 0U,
    };
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *made = NULL;
    enum wal_status status = wal_checkpoint_import(
        session->handle, states->items, states->count, &options, NULL, error);

    if (status != WAL_ENOTFOUND || entry.size == 0) {
        return status;
    }
    options.entry_id = (struct wal_slice){NULL, 0};
    options.flags = WAL_CHECKPOINT_UNLINKED;
    status = wal_checkpoint_import(session->handle, states->items,
                                   states->count, &options, &made, error);
    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(made, &info, error);
    }
    if (status == WAL_OK && info.entry_id.size == 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the entry of the checkpoint %.*s is lost: %.*s",
                            WAL_ARG(options.id), (int)entry.size,
                            (const char *)entry.data);
    }
    wal_file_cursor_close(made);
    return status;
}

static void import_checkpoint(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal__checkpoint *checkpoint,
                              const struct file_states *states)
{
    const struct wal_slice id = {checkpoint->id.data, checkpoint->id.size};
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status =
        create_checkpoint(salvage, session, checkpoint, states, &error);

    if (status == WAL_OK) {
        salvage->result.documents++;
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the checkpoint %.*s cannot be created: %s",
                            WAL_ARG(id),
                            wal__salvage_error_text(status, &error));
    }
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
    struct wal_error error = WAL_INIT(wal_error);
    const char *fault = wal__salvage_find_bad_blob(salvage, &checkpoint->list);
    struct file_states states = {.items = NULL};
    struct wal__buf list;
    enum wal_status status;

    wal__buf_init(&list, salvage->heap);
    status = wal__blob_load(wal__salvage_out_blobs(salvage), &checkpoint->list,
                            &list, &error);
    if (status == WAL_OK) {
        fault = NULL;
        if (read_states(salvage, (struct wal__span){list.data, list.size},
                        &states)) {
            import_checkpoint(salvage, session, checkpoint, &states);
        } else {
            fault = "it is not a valid list of files";
        }
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        fault = fault == NULL ? "it is missing" : fault;
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
    enum wal_status status;

    wal__checkpoint_init(&checkpoint, salvage->heap);
    status = wal__checkpoint_decode(&checkpoint, id, value, 0, NULL);
    if (status == WAL_OK) {
        fault = copy_checkpoint(salvage, session, &checkpoint);
    } else {
        (void)wal__salvage_is_fatal(salvage, status, NULL);
    }
    if (fault != NULL && salvage->failed == WAL_OK) {
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
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status = wal_checkpoint_delete(session->handle, id, &error);

    if (status == WAL_OK) {
        salvage->result.documents++;
    } else if (status != WAL_ENOTFOUND &&
               !wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the checkpoint %.*s cannot be deleted: %s",
                            WAL_ARG(id),
                            wal__salvage_error_text(status, &error));
    }
}

static void set_checkpointing(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              bool on)
{
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status =
        wal_session_set_checkpointing(session->handle, on, &error);

    if (status == WAL_OK) {
        salvage->result.documents++;
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "checkpointing cannot be switched on or off: %s",
                            wal__salvage_error_text(status, &error));
    }
}

static bool is_key(struct wal__span key, const char *name, size_t size)
{
    return key.size == size - 1 && memcmp(key.data, name, size - 1) == 0;
}

void wal__salvage_reserved_doc(struct wal__salvage *salvage,
                               struct wal__salvage_session *session,
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
    } else if (is_put && is_key(key, rewind_key, sizeof(rewind_key)) &&
               session->rewind_sequence == frame->sequence) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "an unfinished rewind was not copied");
    }
}
