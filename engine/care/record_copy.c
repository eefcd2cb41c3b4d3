/*
 * record_copy.c - records of one store as what the interface takes (record_copy.h).
 */
#include "engine/care/record_copy.h"

#include <stdio.h>

#include "engine/base/io.h"
#include "engine/store/input_text.h"

bool wal__copy_batch_is_full(const struct wal__copy_batch *batch)
{
    return batch->count == WAL__COPY_BATCH || batch->size >= WAL__COPY_BATCH_SIZE;
}

enum wal_status wal__copy_batch_add(struct wal__copy_batch *batch, const struct wal__frame *frame,
                                    struct wal__span bytes, const struct wal__entry_record *record)
{
    uint32_t i = batch->count;
    size_t offset = batch->bytes.size;
    enum wal_status status = wal__buf_append(&batch->bytes, bytes.data, bytes.size);

    if (status == WAL_OK) {
        batch->frames[i] = *frame;
        batch->offsets[i] = offset;
        batch->payloads[i] = NULL;
        batch->size += bytes.size;
        batch->size += record->digest != NULL ? record->payload_size : 0;
        batch->count++;
    }
    return status;
}

void wal__copy_batch_empty(struct wal__copy_batch *batch, const struct wal__heap *large_heap)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        wal__heap_free(large_heap, batch->payloads[i]);
    }
    batch->count = 0;
    batch->size = 0;
    batch->bytes.size = 0;
}

bool wal__copy_is_fatal(enum wal_status status)
{
    static const enum wal_status fatal[] = {
        WAL_ENOSPACE, WAL_EIO,      WAL_EVERSION,  WAL_ELOCKED,   WAL_EPOISONED,
        WAL_ENOMEM,   WAL_EBUSY,    WAL_EREADONLY, WAL_ENOTSTORE, WAL_EFORKED,
        WAL_ENETWORK, WAL_ECLAIMED, WAL_ELIMIT,    WAL_ELOCKFILE, WAL_EACCESS,
    };

    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        if (status == fatal[i]) {
            return true;
        }
    }
    return false;
}

bool wal__copy_refers(uint8_t kind)
{
    return kind == WAL__KIND_COMPACTION_SUMMARY || kind == WAL__KIND_BRANCH_SUMMARY ||
           kind == WAL__KIND_REDACTION;
}

void wal__copy_entry(const struct wal__frame *frame, const struct wal__entry_record *record,
                     bool is_hidden, struct wal_entry *entry)
{
    *entry = (struct wal_entry){
        .struct_size = sizeof(*entry),
        .flags = (frame->flags & WAL__FRAME_MOVES_HEAD) != 0 ? (uint32_t)WAL_ENTRY_HEAD_MOVE
                                                             : (uint32_t)WAL_ENTRY_HEAD_KEEP,
        .stream = frame->stream,
        .id = wal__text_slice(record->id),
        .type = wal__text_slice(record->type.size > 0 ? record->type : wal__kind_name(frame->kind)),
        .timestamp = wal__text_slice(record->time),
        .run_id = wal__text_slice(record->run),
        .payload = wal__text_slice(record->payload),
        .meta = wal__text_slice(record->meta),
    };
    if (record->form == WAL__ENTRY_LINE) {
        entry->flags |= WAL_ENTRY_LINE;
    }
    if (record->is_erased || is_hidden) {
        entry->payload = WAL_STR("{}");
        entry->meta = (struct wal_slice){NULL, 0};
    }
}

enum wal_status wal__copy_redaction(const struct wal__redact_record *record, struct wal__buf *json)
{
    enum wal_status status = wal__buf_append(json, "{\"targetEntryId\":", 17);

    if (status == WAL_OK) {
        status = wal__text_quote(json, record->target_id);
    }
    if (status == WAL_OK && record->reason.size > 0) {
        status = wal__buf_append(json, ",\"reason\":", 10);
        if (status == WAL_OK) {
            status = wal__text_quote(json, record->reason);
        }
    }
    return status == WAL_OK ? wal__buf_append(json, "}", 1) : status;
}

void wal__copy_session(const struct wal__session_record *record,
                       struct wal_session_options *options)
{
    *options = (struct wal_session_options){
        .struct_size = sizeof(*options),
        .schema_version = record->schema_version,
        .id = wal__text_slice(record->id),
        .cwd = wal__text_slice(record->cwd),
        .project = wal__text_slice(record->project),
        .title = wal__text_slice(record->title),
        .parent_id = wal__text_slice(record->parent_id),
        .metadata = wal__text_slice(record->metadata),
        .source = wal__text_slice(record->source),
        .created_ms = record->created_ms,
    };
}

void wal__copy_change(const struct wal_session_options *options, struct wal_session_change *change)
{
    change->fields = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD | WAL_CHANGE_PROJECT;
    change->metadata = options->metadata;
    change->title = options->title;
    change->cwd = options->cwd;
    change->project = options->project;
    if (options->schema_version != 0) {
        change->fields |= WAL_CHANGE_SCHEMA;
        change->schema_version = options->schema_version;
    }
}

struct removal {
    const struct wal__io *io;
    const char *directory;
    char path[WAL__PATH_MAX]; /* of the name that is removed */
};

static bool build_path(struct removal *removal, const char *name)
{
    int size = snprintf(removal->path, sizeof(removal->path), "%s/%s", removal->directory, name);

    return size > 0 && size < (int)sizeof(removal->path);
}

static enum wal_status remove_file(void *arg, const char *name)
{
    struct removal *removal = arg;
    int err = 0;

    if (build_path(removal, name)) {
        (void)!removal->io->unlink(removal->io->ctx, removal->path, &err);
    }
    return WAL_OK;
}

/* Removes a file, or a directory of files: a store has no others. */
static enum wal_status remove_name(void *arg, const char *name)
{
    struct removal *removal = arg;
    const struct wal__io *io = removal->io;
    struct removal inner = {.io = io, .directory = removal->path};
    int err = 0;

    if (remove_file(arg, name) == WAL_OK &&
        io->list(io->ctx, removal->path, remove_file, &inner, &err) == WAL_OK) {
        (void)!io->remove_directory(io->ctx, removal->path, &err);
    }
    return WAL_OK;
}

void wal__copy_remove_store(const struct wal__io *io, const char *path)
{
    struct removal removal = {.io = io, .directory = path};
    int err = 0;

    (void)!io->list(io->ctx, path, remove_name, &removal, &err);
    (void)!io->remove_directory(io->ctx, path, &err);
}
