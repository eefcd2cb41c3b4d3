/*
 * rewind_head.c - moves the head `main` with the files (SPEC.md 5.15). The
 * caller holds wal__rewind_lock.
 *
 * Invariant: the head moves in the batch that deletes the journal, so that it
 * moves when all files are restored, and only then.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

enum wal_status wal__rewind_plan_head(struct wal__rewind_job *job,
                                      const struct wal__checkpoint *checkpoint,
                                      bool moves, struct wal_error *error)
{
    const struct wal__span *entry = &checkpoint->entry;
    enum wal_status status =
        wal__checkpoint_current_entry(job->session, job->head_before, error);

    WAL__ASSERT(job->head_after[0] == '\0');
    if (status != WAL_OK || !moves) {
        return status;
    }
    if (entry->size == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the checkpoint \"%.*s\" is linked with no entry of "
                         "the conversation; rewind the files alone",
                         (int)checkpoint->id.size,
                         (const char *)checkpoint->id.data);
    }
    status = wal__checkpoint_check_entry(job->session, *entry, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(entry->size < sizeof(job->head_after));
    if (strcmp((const char *)entry->data, job->head_before) != 0) {
        memcpy(job->head_after, entry->data, entry->size);
        job->head_after[entry->size] = '\0';
    }
    return WAL_OK;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

struct wal_head wal__rewind_head_move(const struct wal__rewind_job *job)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .flags = WAL_HEAD_EXPECT,
                                  .entry_id = slice(job->head_after),
                                  .expected = slice(job->head_before)};

    WAL__ASSERT(job->head_after[0] != '\0');
    return head;
}

enum wal_status wal__rewind_finish(struct wal__rewind_job *job,
                                   struct wal_error *error)
{
    const struct wal_doc journal = {
        .struct_size = sizeof(journal),
        .flags = WAL_DOC_DELETE,
        .key = wal__text_slice(wal__rewind_journal_key())};
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .documents = &journal,
                              .document_count = 1,
                              .head_count = 1};
    struct wal_head head;

    if (job->head_after[0] == '\0') {
        return wal__rewind_journal_delete(job, false, error);
    }
    head = wal__rewind_head_move(job);
    batch.heads = &head;
    return wal__rewind_commit(job->session, &batch, WAL_DURABLE, error);
}
