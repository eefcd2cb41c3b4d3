/*
 * batch.c - operations that commit entries, documents, heads and a
 * change together (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/request.h"

static const struct wal_slice nothing = {NULL, 0};

static void fill_docs(struct differential *run,
                      struct differential_request *given)
{
    uint32_t count = differential_random(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        bool is_store = differential_one_in(run, 3);

        differential_doc(run, given->number, is_store, &given->docs[i]);
        given->docs[i].flags |= is_store ? WAL_DOC_STORE : 0;
        if (differential_one_in(run, 6)) {
            given->docs[i].flags |= WAL_DOC_DELETE;
            given->docs[i].value = nothing;
        }
    }
    given->batch.document_count = count;
}

static void fill_heads(struct differential *run,
                       struct differential_request *given)
{
    uint32_t count = differential_random(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        struct wal_head *head = &given->heads[i];

        differential_head(run, given->number, head);
        if (given->batch.entry_count > 0 && differential_one_in(run, 3)) {
            head->entry_id = given->entries[0].id;
            head->stream = given->entries[0].stream;
        }
        if (differential_one_in(run, 4)) {
            head->flags |= WAL_HEAD_EXPECT;
            (void)reference_head_get(run->ref, given->number, head->stream,
                                     head->name, &head->expected);
        }
    }
    given->batch.head_count = count;
}

/* One condition that does not hold, or a part that is not valid. */
static void invalidate_batch(struct differential *run,
                             struct differential_request *given)
{
    switch (differential_random(run, 4)) {
    case 0:
        given->docs[0].struct_size = sizeof(given->docs[0]);
        given->docs[0].flags = WAL_DOC_EXPECT;
        given->docs[0].key = differential_slice("never there");
        given->docs[0].value = differential_slice("1");
        given->docs[0].version = 7;
        given->batch.document_count = 1;
        break;
    case 1:
        given->heads[0].struct_size = sizeof(given->heads[0]);
        given->heads[0].flags = WAL_HEAD_EXPECT;
        given->heads[0].expected = differential_slice("elsewhere");
        given->batch.head_count = 1;
        break;
    case 2:
        given->docs[1] = given->docs[0];
        given->docs[1].value = differential_slice("{");
        given->docs[1].key = differential_slice("bad");
        given->docs[1].struct_size = sizeof(given->docs[1]);
        given->batch.document_count = given->batch.document_count > 0 ? 2 : 0;
        break;
    default:
        given->change.struct_size = sizeof(given->change);
        given->change.fields = WAL_CHANGE_EXPECT | WAL_CHANGE_TITLE;
        given->change.expected_version = 1u << 30;
        given->batch.change = &given->change;
        break;
    }
}

void differential_fill_parts(struct differential *run,
                             struct differential_request *given)
{
    fill_docs(run, given);
    fill_heads(run, given);
    if (differential_one_in(run, 3)) {
        given->change.struct_size = sizeof(given->change);
        differential_change(run, given->number, &given->change);
        given->batch.change = &given->change;
    }
}

void differential_batch(struct differential *run)
{
    struct differential_request given;

    if (!differential_request_init(run, &given)) {
        return;
    }
    if (!differential_one_in(run, 3)) {
        differential_fill_entries(run, &given);
    }
    differential_fill_parts(run, &given);
    if (differential_one_in(run, 5)) {
        invalidate_batch(run, &given);
    } else if (differential_one_in(run, 6)) {
        differential_expect_tail(run, &given);
    }
    differential_commit(run, &given);
    if (given.batch.document_count > 0) {
        struct wal_doc_cursor_options docs = {.struct_size = sizeof(docs)};

        differential_check_docs(run, given.number, &docs);
    }
}
