/*
 * salvage_blobs.c - content in a salvage: copies the blob stream, maps the
 * payloads of entries, and repeats checkpoints (SPEC.md 5.12, 5.13, 5.16).
 *
 * Invariant: content is verified against its digest while it is copied to OUT.
 * Memory is bounded by a few MiB and the longest list of files: payloads are
 * written to an unlinked file in OUT and mapped.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "tools/walcheck/salvage.h"

static const char checkpointing_key[] = "\0checkpointing";
static const char rewind_key[] = "\0rewind";

static const char *error_text(enum wal_status status,
                              const struct wal_error *error)
{
    return error->text[0] != '\0' ? error->text : wal_status_text(status);
}

/* Records that OUT cannot be written, from an errno. */
static void fail_salvage(struct salvage *salvage, int number)
{
    bool full = number == ENOSPC || number == EFBIG || number == EDQUOT;
    enum wal_status status = full ? WAL_ENOSPACE : WAL_EIO;
    struct wal_error error = CLI_ERROR_INIT;

    error.status = status;
    error.sys_errno = number;
    (void)salvage_is_fatal(salvage, status, &error);
}

/* --- all content ---------------------------------------------------------- */

struct blob_copy {
    struct wal_blob_writer *writer;
    enum wal_status status;
    struct wal_error error;
};

static bool write_piece(void *ctx, struct wal__span piece)
{
    struct blob_copy *blob_copy = ctx;

    if (blob_copy->status == WAL_OK && piece.size > 0) {
        blob_copy->status = wal_blob_write(
            blob_copy->writer, (struct wal_slice){piece.data, piece.size},
            &blob_copy->error);
    }
    return blob_copy->status == WAL_OK;
}

static void copy_blob(struct salvage *salvage, const struct check_blob *blob)
{
    struct blob_copy blob_copy = {.error = CLI_ERROR_INIT};
    char text[CHECK_DIGEST_TEXT];
    uint8_t digest[WAL_DIGEST_SIZE];
    const char *fault = NULL;
    uint64_t culprit;

    blob_copy.status =
        wal_blob_create(salvage->out, &blob_copy.writer, &blob_copy.error);
    if (blob_copy.status == WAL_OK) {
        fault = check_reader_read(&salvage->reader, blob, write_piece,
                                  &blob_copy, &culprit);
    }
    if (blob_copy.status == WAL_OK && fault == NULL) {
        blob_copy.status =
            wal_blob_finish(blob_copy.writer, digest, NULL, &blob_copy.error);
    }
    wal_blob_discard(blob_copy.writer);
    if (blob_copy.status == WAL_OK && fault == NULL) {
        salvage->blobs_written++;
        return;
    }
    if (blob_copy.status != WAL_OK &&
        salvage_is_fatal(salvage, blob_copy.status, &blob_copy.error)) {
        return;
    }
    check_digest_text(&blob->digest, text);
    salvage_note(salvage, "", "",
                 "the content with the SHA-256 %s cannot be copied: %s", text,
                 blob_copy.status != WAL_OK
                     ? error_text(blob_copy.status, &blob_copy.error)
                     : fault);
}

/* Copies BLOB content first, so that its chunks are already in OUT when they
 * are copied as content. */
void salvage_blobs(struct salvage *salvage)
{
    static const uint8_t types[] = {WAL__FRAME_BLOB, WAL__FRAME_CHUNK};
    const struct check_blobs *blobs = &salvage->store->blobs;

    for (size_t pass = 0; pass < sizeof(types); pass++) {
        for (size_t i = 0; i < blobs->count && salvage->failed == WAL_OK; i++) {
            const struct check_blob *blob = blobs->by_position[i];

            if (blob->type == types[pass] && blob->fault == NULL &&
                check_blobs_find(blobs, &blob->digest) == blob) {
                copy_blob(salvage, blob);
            }
        }
    }
}

/* --- payloads ------------------------------------------------------------- */

struct file_write {
    int fd;
    int error;
};

static bool write_file_piece(void *ctx, struct wal__span piece)
{
    struct file_write *file_write = ctx;

    while (piece.size > 0) {
        ssize_t written = write(file_write->fd, piece.data, piece.size);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            file_write->error = written < 0 ? errno : ENOSPC;
            return false;
        }
        piece.data += written;
        piece.size -= (size_t)written;
    }
    return true;
}

/* Creates a file in OUT that has no name and vanishes with its descriptor. */
static int make_unlinked_file(const struct salvage *salvage)
{
    static const char name[] = "/payload.tmp";
    size_t size = strlen(salvage->path);
    char *path = cli_alloc(size + sizeof(name));
    int fd;

    memcpy(path, salvage->path, size);
    memcpy(path + size, name, sizeof(name));
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && unlink(path) != 0) {
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

void *salvage_map_payload(struct salvage *salvage,
                          const struct wal__entry_record *record,
                          const char **reason)
{
    struct file_write file_write = {.fd = -1};
    struct check_blob_fault fault;
    struct wal__digest digest;
    void *map = MAP_FAILED;
    uint64_t culprit;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    fault =
        check_blob_find_fault(salvage->store, &digest, record->payload_size);
    if (fault.why != NULL) {
        *reason = fault.why;
        return NULL;
    }
    file_write.fd = make_unlinked_file(salvage);
    if (file_write.fd < 0) {
        fail_salvage(salvage, errno);
        return NULL;
    }
    *reason = check_reader_read(
        &salvage->reader, check_blobs_find(&salvage->store->blobs, &digest),
        write_file_piece, &file_write, &culprit);
    if (*reason == NULL) {
        map = mmap(NULL, (size_t)record->payload_size, PROT_READ, MAP_PRIVATE,
                   file_write.fd, 0);
        file_write.error = map == MAP_FAILED ? errno : 0;
    }
    if (file_write.error != 0) {
        fail_salvage(salvage, file_write.error);
    }
    close(file_write.fd);
    return map == MAP_FAILED ? NULL : map;
}

void salvage_unmap_payload(void *map, uint64_t size)
{
    if (map != NULL) {
        (void)munmap(map, (size_t)size);
    }
}

/* --- checkpoints ---------------------------------------------------------- */

/* The readable files of a list. *lost counts the others, and *first is the path
 * of the first of those. Null if the list is not valid. */
static struct wal_file *read_files(struct salvage *salvage, uint64_t *count,
                                   uint64_t *lost, struct wal__span *first)
{
    struct wal__file_record record;
    struct wal__file_list list;
    struct wal_file *files;

    *count = 0;
    *lost = 0;
    if (wal__file_list_decode(
            (struct wal__span){salvage->list.bytes, salvage->list.size},
            &list) != WAL__FMT_OK) {
        return NULL;
    }
    files = cli_alloc(((size_t)list.count + 1) * sizeof(*files));
    while (list.remaining > 0) {
        if (wal__file_list_next(&list, &record) != WAL__FMT_OK) {
            free(files);
            return NULL;
        }
        if (record.kind != WAL__FILE_ABSENT &&
            check_blob_find_fault(salvage->store, &record.digest, record.size)
                    .why != NULL) {
            *first = (*lost)++ == 0 ? record.path : *first;
            continue;
        }
        files[*count] = (struct wal_file){
            .struct_size = sizeof(*files),
            .kind = record.kind,
            .mode = record.mode,
            .path = {record.path.data, record.path.size},
            .size = record.size,
            .mtime_ns = record.mtime_ns,
        };
        memcpy(files[(*count)++].digest, record.digest.bytes, WAL__DIGEST_SIZE);
    }
    return files;
}

/* Links the checkpoint as it was, with no other entry when that one is lost. */
static enum wal_status
import_checkpoint(struct salvage *salvage, struct salvage_session *session,
                  const struct check_checkpoint *checkpoint, const char *id,
                  const struct wal_file *files, uint64_t count,
                  struct wal_error *error)
{
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = {checkpoint->id.data, checkpoint->id.size},
        .root = {checkpoint->root, checkpoint->root_size},
        .created_ms = checkpoint->created_ms,
        .entry_id = {checkpoint->entry, checkpoint->entry_size},
        .flags = checkpoint->entry_size == 0 ? WAL_CHECKPOINT_UNLINKED : 0U,
    };
    enum wal_status status = wal_checkpoint_import(
        session->handle, files, count, &options, NULL, error);

    if (status != WAL_ENOTFOUND || checkpoint->entry_size == 0) {
        return status;
    }
    options.entry_id = cli_slice(NULL);
    options.flags = WAL_CHECKPOINT_UNLINKED;
    status = wal_checkpoint_import(session->handle, files, count, &options,
                                   NULL, error);
    if (status == WAL_OK) {
        salvage_note(salvage, session->id, "",
                     "the entry of the checkpoint %s is lost: %.*s", id,
                     (int)checkpoint->entry_size,
                     (const char *)checkpoint->entry);
    }
    return status;
}

static void make_checkpoint(struct salvage *salvage,
                            struct salvage_session *session,
                            const struct check_checkpoint *checkpoint,
                            const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__span first = {NULL, 0};
    enum wal_status status;
    uint64_t count;
    uint64_t lost;
    struct wal_file *files = read_files(salvage, &count, &lost, &first);

    if (files == NULL) {
        salvage_note(salvage, session->id, "",
                     "the checkpoint %s is lost: its list of files is not "
                     "valid",
                     id);
        return;
    }
    status = import_checkpoint(salvage, session, checkpoint, id, files, count,
                               &error);
    free(files);
    if (status == WAL_OK) {
        salvage->documents_written++;
    } else if (!salvage_is_fatal(salvage, status, &error)) {
        salvage_note(salvage, session->id, "",
                     "the checkpoint %s cannot be created: %s", id,
                     error_text(status, &error));
    }
    if (lost > 0) {
        salvage_note(salvage, session->id, "",
                     "%" PRIu64 " %s of the checkpoint %s, the first of them "
                     "%.*s",
                     lost, cli_plural(lost, "file is lost", "files are lost"),
                     id, (int)(first.size < 180 ? first.size : 180),
                     (const char *)first.data);
    }
}

static void put_checkpoint(struct salvage *salvage,
                           struct salvage_session *session,
                           const struct wal__doc_record *record, const char *id)
{
    struct check_checkpoint *checkpoint = cli_alloc(sizeof(*checkpoint));
    const char *fault = "its document is not well-formed";

    if (check_checkpoint_decode(record, checkpoint)) {
        fault = check_list_read(&salvage->reader, &checkpoint->list,
                                &salvage->list);
    }
    if (fault == NULL) {
        make_checkpoint(salvage, session, checkpoint, id);
    } else {
        salvage_note(salvage, session->id, "",
                     "the checkpoint %s is lost: its list of files: %s", id,
                     fault);
    }
    free(checkpoint);
}

static void delete_checkpoint(struct salvage *salvage,
                              struct salvage_session *session, const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        wal_checkpoint_delete(session->handle, cli_slice(id), &error);

    if (status == WAL_OK) {
        salvage->documents_written++;
    } else if (status != WAL_ENOTFOUND &&
               !salvage_is_fatal(salvage, status, &error)) {
        salvage_note(salvage, session->id, "",
                     "the checkpoint %s cannot be deleted: %s", id,
                     error_text(status, &error));
    }
}

static bool is_key(struct wal__span key, const char *name, size_t size)
{
    return key.size == size - 1 && memcmp(key.data, name, size - 1) == 0;
}

static void set_checkpointing(struct salvage *salvage,
                              struct salvage_session *session, bool on)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        wal_session_set_checkpointing(session->handle, on, &error);

    if (status == WAL_OK) {
        salvage->documents_written++;
    } else if (!salvage_is_fatal(salvage, status, &error)) {
        salvage_note(salvage, session->id, "",
                     "checkpointing cannot be switched on or off: %s",
                     error_text(status, &error));
    }
}

void salvage_reserved_doc(struct salvage *salvage,
                          struct salvage_session *session,
                          const struct wal__frame *frame,
                          const struct wal__doc_record *record)
{
    static const char off[] = "false";
    const struct wal__span value = record->value;
    bool is_put = frame->type == WAL__FRAME_DOC;
    char *id;

    if (is_key(record->key, checkpointing_key, sizeof(checkpointing_key))) {
        set_checkpointing(salvage, session,
                          !is_put || value.size != strlen(off) ||
                              memcmp(value.data, off, value.size) != 0);
    } else if (check_key_is_checkpoint(record->key)) {
        id = check_checkpoint_name(record->key);
        if (is_put) {
            put_checkpoint(salvage, session, record, id);
        } else {
            delete_checkpoint(salvage, session, id);
        }
        free(id);
    } else if (is_put && is_key(record->key, rewind_key, sizeof(rewind_key)) &&
               check_model_doc(&salvage->store->model, frame->session,
                               frame->id_hash) == frame->sequence) {
        salvage_note(salvage, session->id, "",
                     "an unfinished rewind was not copied");
    }
}

void salvage_contents_deinit(struct salvage *salvage)
{
    check_reader_deinit(&salvage->reader);
    free(salvage->list.bytes);
}
