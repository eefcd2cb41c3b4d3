/*
 * batch.c - reading a batch (batch.h).
 */
#include "bindings/node/native/store/batch.h"

#include "bindings/node/native/base/uuid.h"
#include "bindings/node/native/base/value.h"

enum {
    ENTRY_ITEMS = 9,
    DOCUMENT_ITEMS = 4,
    HEAD_ITEMS = 6
};

static struct wal_slice text_item(struct call *call, napi_value array,
                                  uint32_t index)
{
    return value_text(call, value_item(call, array, index));
}

static uint32_t u32_item(struct call *call, napi_value array, uint32_t index)
{
    return value_u32(call, value_item(call, array, index));
}

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

static void read_entries(struct call *call, napi_value array,
                         struct batch_input *input)
{
    uint32_t count = value_length(call, array) / ENTRY_ITEMS;
    struct wal_entry *entries;

    if (count == 0) {
        return;
    }
    entries = allocate(call, count, sizeof(*entries));
    for (uint32_t i = 0; i < count && !call->failed; i++) {
        uint32_t at = i * ENTRY_ITEMS;

        entries[i] = (struct wal_entry){
            .struct_size = sizeof(entries[i]),
            .id = text_item(call, array, at),
            .parent_id = text_item(call, array, at + 1),
            .type = text_item(call, array, at + 2),
            .timestamp = text_item(call, array, at + 3),
            .run_id = text_item(call, array, at + 4),
            .payload = value_bytes(call, value_item(call, array, at + 5)),
            .meta = text_item(call, array, at + 6),
            .flags = u32_item(call, array, at + 7),
            .stream = u32_item(call, array, at + 8),
        };
    }
    if (!call->failed) {
        make_id(call, input, &entries[count - 1]);
    }
    input->batch.entries = entries;
    input->batch.entry_count = count;
}

static void read_documents(struct call *call, napi_value array,
                           struct wal_batch *batch)
{
    uint32_t count = value_length(call, array) / DOCUMENT_ITEMS;
    struct wal_doc *documents;

    if (count == 0) {
        return;
    }
    documents = allocate(call, count, sizeof(*documents));
    for (uint32_t i = 0; i < count && !call->failed; i++) {
        uint32_t at = i * DOCUMENT_ITEMS;

        documents[i] = (struct wal_doc){
            .struct_size = sizeof(documents[i]),
            .key = text_item(call, array, at),
            .value = text_item(call, array, at + 1),
            .flags = u32_item(call, array, at + 2),
            .version = value_u64(call, value_item(call, array, at + 3)),
        };
    }
    batch->documents = documents;
    batch->document_count = count;
}

static void read_heads(struct call *call, napi_value array,
                       struct wal_batch *batch)
{
    uint32_t count = value_length(call, array) / HEAD_ITEMS;
    struct wal_head *heads;

    if (count == 0) {
        return;
    }
    heads = allocate(call, count, sizeof(*heads));
    for (uint32_t i = 0; i < count && !call->failed; i++) {
        uint32_t at = i * HEAD_ITEMS;

        heads[i] = (struct wal_head){
            .struct_size = sizeof(heads[i]),
            .entry_id = text_item(call, array, at),
            .name = text_item(call, array, at + 1),
            .note = text_item(call, array, at + 2),
            .expected = text_item(call, array, at + 3),
            .flags = u32_item(call, array, at + 4),
            .stream = u32_item(call, array, at + 5),
        };
    }
    batch->heads = heads;
    batch->head_count = count;
}

static void read_change(struct call *call, napi_value array,
                        struct batch_input *input)
{
    if (value_length(call, array) == 0) {
        return;
    }
    input->change = (struct wal_session_change){
        .struct_size = sizeof(input->change),
        .fields = u32_item(call, array, 0),
        .metadata = text_item(call, array, 1),
        .title = text_item(call, array, 2),
        .cwd = text_item(call, array, 3),
        .project = text_item(call, array, 4),
        .schema_version = u32_item(call, array, 5),
        .expected_sequence = value_u64(call, value_item(call, array, 6)),
        .expected_version = value_u64(call, value_item(call, array, 7)),
    };
    input->batch.change = &input->change;
}

struct batch_input *batch_read(struct call *call, size_t first)
{
    struct batch_input *input = allocate(call, 1, sizeof(*input));

    if (input == NULL) {
        return NULL;
    }
    input->batch.struct_size = sizeof(input->batch);
    input->options = (struct wal_append_options){
        .struct_size = sizeof(input->options),
        .durability = value_u32(call, call_arg(call, first)),
        .flags = value_u32(call, call_arg(call, first + 1)),
        .expected_tail = value_text(call, call_arg(call, first + 2)),
    };
    read_entries(call, call_arg(call, first + 3), input);
    read_documents(call, call_arg(call, first + 4), &input->batch);
    read_heads(call, call_arg(call, first + 5), &input->batch);
    read_change(call, call_arg(call, first + 6), input);
    return call->failed ? NULL : input;
}

napi_value batch_made_id(struct call *call, const struct batch_input *input)
{
    const struct wal_batch *batch = &input->batch;

    return input->made_id
               ? make_text(call, batch->entries[batch->entry_count - 1].id)
               : make_undefined(call);
}
