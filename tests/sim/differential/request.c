/*
 * request.c - a batch that is given to both sides
 * (differential_given.h).
 */
#include <string.h>

#include "tests/sim/differential/request.h"

static const struct wal_slice nothing = {NULL, 0};

bool differential_request_init(struct differential *run,
                               struct differential_request *given)
{
    return differential_request_begin(run, differential_session(run), given);
}

bool differential_request_begin(struct differential *run, uint32_t number,
                                struct differential_request *given)
{
    memset(given, 0, sizeof(*given));
    given->number = number;
    if (number == 0) {
        return false;
    }
    given->session = differential_handle(run, given->number);
    given->batch.struct_size = sizeof(given->batch);
    given->batch.entries = given->entries;
    given->batch.documents = given->docs;
    given->batch.heads = given->heads;
    given->options.struct_size = sizeof(given->options);
    given->options.durability =
        differential_one_in(run, 3) ? WAL_WRITTEN : WAL_DURABLE;
    return given->session != NULL;
}

void differential_fill_entries(struct differential *run,
                               struct differential_request *given)
{
    uint32_t count = 1;

    if (differential_one_in(run, 3)) {
        count = 1 + differential_random(run, DIFFERENTIAL_BATCH);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wal_entry *entry = &given->entries[i];

        differential_entry(run, given->number, entry);
        /* Under an entry of the same batch. */
        if (i > 0 && differential_one_in(run, 3)) {
            entry->stream = given->entries[0].stream;
            entry->parent_id = given->entries[i - 1].id;
            if (given->entries[i - 1].stream != entry->stream) {
                entry->parent_id = given->entries[0].id;
            }
            entry->flags &= ~(uint32_t)WAL_ENTRY_ROOT;
        }
    }
    given->batch.entry_count = count;
}

void differential_expect_tail(struct differential *run,
                              struct differential_request *given)
{
    const struct wal_slice main = {NULL, 0};

    given->options.flags |= WAL_APPEND_EXPECT;
    given->options.expected_tail = nothing;
    (void)reference_head_get(run->ref, given->number, given->entries[0].stream,
                             main, &given->options.expected_tail);
}

enum wal_status differential_submit(struct differential *run,
                                    struct differential_request *given,
                                    struct wal_append_result *result)
{
    bool plain = given->batch.document_count == 0 &&
                 given->batch.head_count == 0 && given->batch.change == NULL;
    bool conditional = given->batch.change == NULL ||
                       (given->batch.change->fields & WAL_CHANGE_EXPECT) != 0;
    struct wal_ticket *ticket = NULL;
    enum wal_status status;

    if (plain && differential_one_in(run, 2)) {
        return wal_append(given->session, given->entries,
                          given->batch.entry_count, &given->options, result,
                          &run->error);
    }
    if (!conditional || differential_one_in(run, 2)) {
        return wal_batch_commit(given->session, &given->batch, &given->options,
                                result, &run->error);
    }
    if (plain && differential_one_in(run, 2)) {
        status =
            wal_submit(given->session, given->entries, given->batch.entry_count,
                       &given->options, &ticket, &run->error);
    } else {
        status = wal_batch_submit(given->session, &given->batch,
                                  &given->options, &ticket, &run->error);
    }
    if (status == WAL_OK) {
        status = wal_ticket_wait(ticket, -1, result, &run->error);
        wal_ticket_destroy(ticket);
    }
    return status;
}

void differential_compare_result(struct differential *run,
                                 const struct wal_append_result *result,
                                 const struct wal_append_result *wanted)
{
    differential_check_number(run, "appended", result->appended,
                              wanted->appended);
    differential_check_number(run, "duplicates", result->duplicates,
                              wanted->duplicates);
    differential_check_number(run, "the result's sequence", result->sequence,
                              wanted->sequence);
    differential_check_slice(run, "the last id",
                             differential_slice(result->last_id),
                             differential_slice(wanted->last_id));
}

void differential_commit(struct differential *run,
                         struct differential_request *given)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    enum wal_status status = differential_submit(run, given, &result);

    differential_enter_reference(run);
    if (status == WAL_OK && given->batch.entry_count > 0 &&
        given->entries[given->batch.entry_count - 1].id.size == 0) {
        given->entries[given->batch.entry_count - 1].id =
            differential_slice(result.last_id);
    }
    if (differential_compare_status(
            run, status,
            reference_batch(run->ref, given->number, &given->batch,
                            &given->options, &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
    }
    differential_check_session(run, given->number);
}
