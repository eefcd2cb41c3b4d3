/*
 * batch.c - reading a batch (batch.h).
 */
#include "bindings/node/native/store/batch.h"

#include "bindings/node/native/base/uuid.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"

/* Allocates `count` zeroed structs. */
static void *allocate(struct call *call, uint32_t count, size_t size)
{
    void *items;

    if (call->failed) {
        return NULL;
    }
    items = arena_calloc(call->arena, count, size);
    if (items == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a batch");
    }
    return items;
}

/* Gives the last entry an id, so that it is known at once. */
static void make_id(struct call *call, struct batch_input *input,
                    struct wal_entry *entry)
{
    char *id;

    if (entry->id.size > 0) {
        return;
    }
    id = allocate(call, 1, UUID_TEXT_SIZE);
    if (id != NULL) {
        uuid_make(call->addon, id);
        entry->id = (struct wal_slice){id, UUID_TEXT_SIZE - 1};
        input->made_id = true;
    }
}

static void read_batch(struct call *call, size_t first,
                       struct batch_input *input)
{
    struct wal_batch *batch = &input->batch;
    napi_value change = call_arg(call, first + 3);
    struct wal_entry *entries = read_structs(
        call, call_arg(call, first), &wal_entry_in, &batch->entry_count);

    if (entries != NULL && !call->failed) {
        make_id(call, input, &entries[batch->entry_count - 1]);
    }
    batch->entries = entries;
    batch->documents = read_structs(call, call_arg(call, first + 1),
                                    &wal_doc_in, &batch->document_count);
    batch->heads = read_structs(call, call_arg(call, first + 2), &wal_head_in,
                                &batch->head_count);
    if (value_length(call, change) > 0) {
        read_items(call, change, 0, &wal_session_change_in, &input->change);
        batch->change = &input->change;
    }
}

struct batch_input *batch_read(struct call *call, size_t first)
{
    struct batch_input *input = allocate(call, 1, sizeof(*input));

    if (input == NULL) {
        return NULL;
    }
    input->batch.struct_size = sizeof(input->batch);
    read_struct(call, first, &wal_append_options_in, &input->options);
    read_batch(call, first + 3, input);
    return call->failed ? NULL : input;
}

napi_value batch_made_id(struct call *call, const struct batch_input *input)
{
    const struct wal_batch *batch = &input->batch;

    return input->made_id
               ? make_text(call, batch->entries[batch->entry_count - 1].id)
               : make_undefined(call);
}
