/*
 * catalogue_model_check.c - the catalogue compared with its model, and its snapshots
 * (catalogue_model.h). One thread, but for the checks.
 */
#include "tests/lib/catalogue_model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

const uint8_t model_uuid[16] = "a store's uuid..";

/* -------------------------------------------------------------- compare --- */

bool model_span_is(struct wal__span span, const char *text)
{
    return span.size == strlen(text) && (span.size == 0 || memcmp(span.data, text, span.size) == 0);
}

/* What the catalogue gives has its texts in one piece, the id's first. */
static bool is_contiguous(const struct wal__summary *summary)
{
    const struct wal__span texts[] = {
        summary->head_id, summary->parent_id, summary->cwd,        summary->project,
        summary->title,   summary->source,    summary->first_text,
    };
    const uint8_t *begin = summary->id.data;
    const uint8_t *end = begin + wal__summary_text_size(summary);

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].size > 0 &&
            (texts[i].data < begin + summary->id.size || texts[i].data + texts[i].size > end)) {
            return false;
        }
    }
    return true;
}

bool model_equals(const struct wal__summary *summary, const struct model_session *session)
{
    const struct wal__summary *wanted = &session->numbers;

    return is_contiguous(summary) && summary->number == wanted->number &&
           summary->flags == wanted->flags &&
           summary->session_position == wanted->session_position &&
           summary->fork_sequence == wanted->fork_sequence &&
           summary->fork_owner == wanted->fork_owner && summary->depth == wanted->depth &&
           summary->created_ms == wanted->created_ms && summary->updated_ms == wanted->updated_ms &&
           summary->last_sequence == wanted->last_sequence && summary->entries == wanted->entries &&
           summary->inherited == wanted->inherited && summary->bytes == wanted->bytes &&
           summary->head_sequence == wanted->head_sequence && summary->segment == wanted->segment &&
           summary->first_posting == 0 && summary->posting_count == 0 &&
           summary->first_sequence == wanted->first_sequence &&
           summary->first_owner == wanted->first_owner &&
           summary->fork_record == wanted->fork_record &&
           summary->fork_source == wanted->fork_source && summary->documents == wanted->documents &&
           summary->schema_version == wanted->schema_version &&
           model_span_is(summary->first_text, session->first_text) &&
           model_span_is(summary->id, session->id) &&
           model_span_is(summary->head_id, session->head_id) &&
           model_span_is(summary->parent_id, session->parent_id) &&
           model_span_is(summary->cwd, session->cwd) &&
           model_span_is(summary->project, session->project) &&
           model_span_is(summary->title, session->title) &&
           model_span_is(summary->source, session->source);
}

const struct model_filter model_filters[MODEL_FILTERS] = {
    {"", "", "", "", "", 0, 0},           {"/home/3", "", "", "", "", 0, 0},
    {"/home/none", "", "", "", "", 0, 0}, {"", "project 2", "", "", "", 0, 0},
    {"", "", "3", "", "", 0, 0},          {"", "", "", "claude:1", "", 0, 0},
    {"", "", "", "", "parent-2", 0, 0},   {"/home/1", "project 1", "", "", "parent-1", 0, 0},
    {"", "", "", "", "", 100000, 0},      {"/home/2", "", "", "", "", 200000, 0},
    {"", "", "", "", "", INT64_MAX, 0},   {"", "", "", "", "", -1, 0},
    {"", "", "", "", "", 0, 60},          {"/home/4", "", "", "", "", 0, 150},
    {"", "", "", "", "", 0, UINT64_MAX},
};

static bool passes_filter(const char *filter, const char *text)
{
    return filter[0] == '\0' || strcmp(filter, text) == 0;
}

static int compare_newest(const void *a, const void *b)
{
    const struct model_session *const *x = a;
    const struct model_session *const *y = b;
    int64_t x_updated = (*x)->numbers.updated_ms;
    int64_t y_updated = (*y)->numbers.updated_ms;
    uint64_t x_sequence = (*x)->numbers.last_sequence;
    uint64_t y_sequence = (*y)->numbers.last_sequence;

    return x_updated != y_updated ? (x_updated < y_updated) - (x_updated > y_updated)
                                  : (x_sequence < y_sequence) - (x_sequence > y_sequence);
}

uint32_t model_visible_count(const struct model *model)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        count += !model_is_deleted(&model->sessions[i]);
    }
    return count;
}

uint32_t model_list(const struct model *model, const struct model_filter *filter,
                    const struct model_session **list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct model_session *session = &model->sessions[i];

        if (!model_is_deleted(session) && passes_filter(filter->cwd, session->cwd) &&
            passes_filter(filter->project, session->project) &&
            passes_filter(filter->source, session->source) &&
            passes_filter(filter->parent_id, session->parent_id) &&
            (filter->changed_after == 0 || session->numbers.updated_ms > filter->changed_after) &&
            (filter->recorded_after == 0 ||
             session->numbers.last_sequence > filter->recorded_after) &&
            strncmp(filter->prefix, session->id, strlen(filter->prefix)) == 0) {
            list[count++] = session;
        }
    }
    qsort(list, count, sizeof(*list), compare_newest);
    return count;
}

enum wal_status model_begin_list(struct wal__catalogue_iter *cursor,
                                 const struct wal__catalogue *catalogue,
                                 const struct model_filter *texts)
{
    struct wal__catalogue_filter filter = {
        .cwd = model_span(texts->cwd),
        .project = model_span(texts->project),
        .prefix = model_span(texts->prefix),
        .source = model_span(texts->source),
        .parent_id = model_span(texts->parent_id),
        .changed_after = texts->changed_after,
        .recorded_after = texts->recorded_after,
    };

    return wal__catalogue_iter_init(cursor, catalogue, &filter);
}

enum wal_status model_check_list(const struct wal__catalogue *catalogue, const struct model *model,
                                 const struct model_filter *texts)
{
    const struct model_session *wanted[MODEL_SESSIONS];
    uint32_t count = model_list(model, texts, wanted);
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    enum wal_status status = model_begin_list(&cursor, catalogue, texts);
    uint32_t at = 0;

    if (status != WAL_OK) {
        return status;
    }
    while ((status = wal__catalogue_iter_next(&cursor, catalogue, &summary)) == WAL_OK) {
        if (at == count || !model_equals(&summary, wanted[at++])) {
            status = WAL_END;
            at = UINT32_MAX;
            break;
        }
    }
    wal__catalogue_iter_deinit(&cursor);
    if (status == WAL_END) {
        return at == count ? WAL_OK : WAL_END;
    }
    return status;
}

enum wal_status model_check_session(const struct wal__catalogue *catalogue,
                                    const struct model *model, const struct model_session *session)
{
    const struct model_session *found = model_find(model, session->id);
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, session->numbers.number, &summary);

    if (session->is_omitted) {
        return status == WAL_ENOTFOUND ? WAL_OK : status == WAL_OK ? WAL_END : status;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!model_equals(&summary, session)) {
        return WAL_END;
    }
    status = wal__catalogue_find(catalogue, model_span(session->id), &summary);
    if (found == NULL) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_END : status;
    }
    return model_equals(&summary, found) ? WAL_OK : WAL_END;
}

enum wal_status model_check(const struct wal__catalogue *catalogue, const struct model *model)
{
    enum wal_status status;

    if (model->store.numbers.number != 0) {
        status = model_check_session(catalogue, model, &model->store);
        if (status != WAL_OK) {
            return status;
        }
    }
    for (uint32_t i = 0; i < model->count; i++) {
        status = model_check_session(catalogue, model, &model->sessions[i]);
        if (status != WAL_OK) {
            return status;
        }
    }
    for (size_t i = 0; i < MODEL_FILTERS; i++) {
        status = model_check_list(catalogue, model, &model_filters[i]);
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

void model_assert_same(const struct wal__catalogue *catalogue, const struct model *model)
{
    struct wal__summary summary;

    assert_ok(model_check(catalogue, model));
    assert_int_equal(catalogue->visible_count, model_visible_count(model));
    assert_int_equal(catalogue->last_session, model->last_session);
    assert_int_equal(wal__catalogue_get(catalogue, 0, &summary), WAL_ENOTFOUND);
    assert_int_equal(wal__catalogue_get(catalogue, model->last_session + 1, &summary),
                     WAL_ENOTFOUND);
    assert_int_equal(wal__catalogue_find(catalogue, model_span("none"), &summary), WAL_ENOTFOUND);
}

/* ------------------------------------------------------------- snapshot --- */

enum wal_status model_sink_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    struct model_sink *sink = ctx;

    if (++sink->calls == sink->fail_at) {
        return WAL_ENOSPACE;
    }
    if (sink->calls > 1 && offset == 0) { /* the header, last */
        assert_int_equal(size, WAL__CATALOGUE_HEADER_SIZE);
        memcpy(sink->bytes.data, data, size);
        return WAL_OK;
    }
    assert_int_equal(offset, sink->bytes.size);
    assert_int_equal(offset % MODEL_CHUNK, 0);
    assert_true(size > 0 && size <= MODEL_CHUNK);
    return wal__buf_append(&sink->bytes, data, size);
}

const struct wal__catalogue_header model_header = {
    .position = 0x123456789,
    .last_sequence = 2000000, /* no record is after it */
    .chain = 0xabcdef,
    .uuid = "a store's uuid..",
};

struct wal__span model_write(const struct wal__catalogue *catalogue, struct model *model)
{
    struct model_sink sink = {.fail_at = 0};

    wal__buf_init(&sink.bytes, &wal__heap_libc);
    assert_ok(wal__catalogue_write(catalogue, &model_header, model_sink_write, &sink));
    if (model != NULL) {
        model_omit(model);
    }
    test_at_end(free, sink.bytes.data);
    return (struct wal__span){sink.bytes.data, sink.bytes.size};
}

enum wal_status model_attach(struct wal__catalogue *catalogue, struct wal__span bytes,
                             const uint8_t uuid[16])
{
    struct wal__snapshot *snapshot;
    enum wal_status status = wal__snapshot_open(catalogue->heap, bytes, uuid, &snapshot);

    if (status == WAL_OK) {
        wal__catalogue_attach(catalogue, snapshot);
    }
    return status;
}

struct wal__span model_swap_snapshot(struct wal__catalogue *catalogue, struct model *model)
{
    struct wal__span bytes = model_write(catalogue, model);

    wal__catalogue_deinit(catalogue);
    assert_ok(model_attach(catalogue, bytes, model_uuid));
    assert_int_equal(wal__catalogue_overlay_size(catalogue), 0);
    return bytes;
}
