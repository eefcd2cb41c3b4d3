/*
 * catalogue_model.c - a naive catalogue, the records that are applied to both,
 * and their comparison (catalogue_model.h). One thread, but for the checks.
 */
#include "tests/lib/catalogue_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/record.h"
#include "format/segment_fmt.h"

const uint8_t model_uuid[16] = "a store's uuid..";

static uint64_t random_state;

/* splitmix64 */
static uint64_t random_u64(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t model_random_below(uint32_t limit)
{
    return (uint32_t)(random_u64() % limit);
}

int model_set_up(void **state)
{
    const char *text = getenv("AGENTWAL_SEED");

    (void)state;
    random_state = text != NULL ? strtoull(text, NULL, 0) : 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    return 0;
}

struct wal__span model_span(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

/* ---------------------------------------------------------------- model --- */

static void finish(struct model_record *record,
                   const struct model_session *session, uint8_t type,
                   size_t size)
{
    record->frame.type = type;
    record->frame.session = session->numbers.number;
    record->frame.stored_size = (uint32_t)size;
    record->applied.frame = &record->frame;
    record->applied.payload = (struct wal__span){record->payload, size};
}

static void make_session(struct model_record *record,
                         struct model_session *session)
{
    static const char *const sources[] = {"", "claude:1", "codex:2"};
    static const char *const parents[] = {"", "parent-1", "parent-2"};
    bool is_fork = model_random_below(3) == 0;
    struct wal__session_record made;

    session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_FORK;
    session->numbers.flags |= is_fork ? WAL__SUMMARY_FORK : 0;
    session->numbers.created_ms = (int64_t)random_u64();
    session->numbers.session_position = record->applied.position;
    sprintf(session->cwd, "/home/%u", model_random_below(6));
    sprintf(session->project, "project %u", model_random_below(5));
    sprintf(session->title, "%.*s", (int)model_random_below(30),
            "a title of any length, or none");
    strcpy(session->source, sources[model_random_below(3)]);
    strcpy(session->parent_id, parents[model_random_below(3)]);
    made = (struct wal__session_record){
        .created_ms = session->numbers.created_ms,
        .schema_version = 1,
        .flags = is_fork ? WAL__SESSION_RECORD_FORK : 0,
        .id = model_span(session->id),
        .cwd = model_span(session->cwd),
        .project = model_span(session->project),
        .title = model_span(session->title),
        .parent_id = model_span(session->parent_id),
        .source = model_span(session->source),
        .metadata = model_span("{}"),
    };
    wal__session_record_encode(&made, record->payload);
    finish(record, session, WAL__FRAME_SESSION,
           wal__session_record_size(&made));
}

static void make_entry(struct model_record *record,
                       struct model_session *session)
{
    char id[MODEL_TEXT_SIZE];
    struct wal__entry_record entry = {.payload = model_span("{\"a\":1}")};

    sprintf(id, "entry-%0*llu", (int)model_random_below(45),
            (unsigned long long)record->frame.sequence);
    entry.id = model_span(id);
    record->frame.kind = WAL__KIND_MESSAGE;
    record->frame.stream = (uint8_t)model_random_below(2);
    record->frame.flags = model_random_below(3) > 0 ? WAL__FRAME_MOVES_HEAD : 0;
    wal__entry_record_encode(&entry, record->payload);
    finish(record, session, WAL__FRAME_ENTRY, wal__entry_record_size(&entry));
    if (record->frame.stream != 0) {
        return;
    }
    session->numbers.entries++;
    if (record->frame.flags != 0) {
        session->numbers.head_sequence = record->frame.sequence;
        strcpy(session->head_id, id);
    }
}

static void make_fork(const struct model *model, struct model_record *record,
                      struct model_session *session)
{
    const struct model_session *owner =
        &model->sessions[model_random_below(model->count)];
    struct wal__fork_record fork;

    if (owner->numbers.number == session->numbers.number) {
        make_entry(record, session);
        return;
    }
    record->frame.parent = record->frame.sequence - 1;
    fork = (struct wal__fork_record){
        .inherited = model_random_below(100),
        .depth = model_random_below(9),
        .stream = (uint8_t)model_random_below(2),
        .source_id = model_span("any"),
        .owner_id = model_span(owner->id),
        .entry_id = model_span("fork-point"),
    };
    wal__fork_record_encode(&fork, record->payload);
    finish(record, session, WAL__FRAME_FORK, wal__fork_record_size(&fork));
    session->numbers.flags |= WAL__SUMMARY_FORK;
    session->numbers.fork_sequence = record->frame.parent;
    session->numbers.fork_owner = owner->numbers.number;
    session->numbers.inherited = fork.inherited;
    session->numbers.depth = fork.depth;
    if (fork.stream == 0) {
        session->numbers.head_sequence = record->frame.parent;
        strcpy(session->head_id, "fork-point");
    }
}

static void make_head(struct model_record *record,
                      struct model_session *session)
{
    bool is_main = model_random_below(2) == 0;
    bool is_removed = model_random_below(4) == 0;
    const char *entry_id = is_removed ? "" : "a target";
    struct wal__head_record head = {
        .name = model_span(is_main ? "main" : "mains"),
        .entry_id = model_span(entry_id),
        .note = model_span("note"),
    };

    record->frame.stream = (uint8_t)model_random_below(2);
    record->frame.parent = is_removed ? 0 : record->frame.sequence - 1;
    wal__head_record_encode(&head, record->payload);
    finish(record, session, WAL__FRAME_HEAD, wal__head_record_size(&head));
    if (is_main && record->frame.stream == 0) {
        session->numbers.head_sequence = record->frame.parent;
        strcpy(session->head_id, entry_id);
    }
}

void model_make_record(struct model *model, struct model_record *record)
{
    struct model_session *session;

    memset(record, 0, sizeof(*record));
    model->sequence += 1 + model_random_below(3);
    record->frame.sequence = model->sequence;
    record->applied.position =
        wal__position(1 + model->sequence / 100, 4096 + model->sequence);
    record->applied.clock_ms = (int64_t)model->sequence * 1000;
    if (model->count == 0 ||
        (model->count < MODEL_SESSIONS && model_random_below(6) == 0)) {
        session = &model->sessions[model->count++];
        memset(session, 0, sizeof(*session));
        model->last_session += 1 + model_random_below(5) / 4;
        session->numbers.number = model->last_session;
        sprintf(session->id, "%x-session", model->last_session * 2654435761u);
        make_session(record, session);
    } else {
        uint32_t choice = model_random_below(12);

        session = &model->sessions[model_random_below(model->count)];
        if (choice == 0) {
            make_session(record, session);
        } else if (choice == 1) {
            make_fork(model, record, session);
        } else if (choice == 2) {
            make_head(record, session);
        } else if (choice == 3) {
            finish(record, session, WAL__FRAME_ACCEPT, 0);
            session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_DAMAGED;
        } else {
            make_entry(record, session);
        }
    }
    session->numbers.updated_ms = record->applied.clock_ms;
    session->numbers.last_sequence = record->frame.sequence;
    session->numbers.bytes += wal__frame_span(record->frame.stored_size);
}

void model_step(struct model *model, struct wal__catalogue *catalogue)
{
    struct model_record record;

    if (model->count > 0 && model_random_below(20) == 0) {
        struct model_session *session =
            &model->sessions[model_random_below(model->count)];

        session->numbers.flags |= WAL__SUMMARY_DAMAGED;
        assert_int_equal(
            wal__catalogue_mark_damaged(catalogue, session->numbers.number),
            WAL_OK);
        return;
    }
    model_make_record(model, &record);
    assert_int_equal(wal__catalogue_apply(catalogue, &record.applied), WAL_OK);
}

/* -------------------------------------------------------------- compare --- */

bool model_is_text(struct wal__span span, const char *text)
{
    return span.size == strlen(text) &&
           (span.size == 0 || memcmp(span.data, text, span.size) == 0);
}

bool model_is_same(const struct wal__summary *summary,
                   const struct model_session *session)
{
    const struct wal__summary *wanted = &session->numbers;

    return summary->number == wanted->number &&
           summary->flags == wanted->flags &&
           summary->session_position == wanted->session_position &&
           summary->fork_sequence == wanted->fork_sequence &&
           summary->fork_owner == wanted->fork_owner &&
           summary->depth == wanted->depth &&
           summary->created_ms == wanted->created_ms &&
           summary->updated_ms == wanted->updated_ms &&
           summary->last_sequence == wanted->last_sequence &&
           summary->entries == wanted->entries &&
           summary->inherited == wanted->inherited &&
           summary->bytes == wanted->bytes &&
           summary->head_sequence == wanted->head_sequence &&
           summary->segment == wanted->segment && summary->first_posting == 0 &&
           summary->posting_count == 0 &&
           model_is_text(summary->id, session->id) &&
           model_is_text(summary->head_id, session->head_id) &&
           model_is_text(summary->parent_id, session->parent_id) &&
           model_is_text(summary->cwd, session->cwd) &&
           model_is_text(summary->project, session->project) &&
           model_is_text(summary->title, session->title) &&
           model_is_text(summary->source, session->source);
}

const struct model_filter model_filters[MODEL_FILTERS] = {
    {"", "", "", "", ""},
    {"/home/3", "", "", "", ""},
    {"/home/none", "", "", "", ""},
    {"", "project 2", "", "", ""},
    {"", "", "3", "", ""},
    {"", "", "", "claude:1", ""},
    {"", "", "", "", "parent-2"},
    {"/home/1", "project 1", "", "", "parent-1"},
};

static bool passes(const char *filter, const char *text)
{
    return filter[0] == '\0' || strcmp(filter, text) == 0;
}

static int compare_newest(const void *a, const void *b)
{
    const struct model_session *const *x = a;
    const struct model_session *const *y = b;
    uint64_t x_sequence = (*x)->numbers.last_sequence;
    uint64_t y_sequence = (*y)->numbers.last_sequence;

    return (x_sequence < y_sequence) - (x_sequence > y_sequence);
}

uint32_t model_list(const struct model *model,
                    const struct model_filter *filter,
                    const struct model_session **list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct model_session *session = &model->sessions[i];

        if (passes(filter->cwd, session->cwd) &&
            passes(filter->project, session->project) &&
            passes(filter->source, session->source) &&
            passes(filter->parent_id, session->parent_id) &&
            strncmp(filter->prefix, session->id, strlen(filter->prefix)) == 0) {
            list[count++] = session;
        }
    }
    qsort(list, count, sizeof(*list), compare_newest);
    return count;
}

enum wal_status model_begin_list(struct wal__catalogue_cursor *cursor,
                                 const struct wal__catalogue *catalogue,
                                 const struct model_filter *texts)
{
    struct wal__catalogue_filter filter = {
        .cwd = model_span(texts->cwd),
        .project = model_span(texts->project),
        .prefix = model_span(texts->prefix),
        .source = model_span(texts->source),
        .parent_id = model_span(texts->parent_id),
    };

    return wal__catalogue_cursor_init(cursor, catalogue, &filter);
}

enum wal_status model_check_list(const struct wal__catalogue *catalogue,
                                 const struct model *model,
                                 const struct model_filter *texts)
{
    const struct model_session *wanted[MODEL_SESSIONS];
    uint32_t count = model_list(model, texts, wanted);
    struct wal__catalogue_cursor cursor;
    struct wal__summary summary;
    enum wal_status status = model_begin_list(&cursor, catalogue, texts);
    uint32_t at = 0;

    if (status != WAL_OK) {
        return status;
    }
    while ((status = wal__catalogue_cursor_next(&cursor, catalogue,
                                                &summary)) == WAL_OK) {
        if (at == count || !model_is_same(&summary, wanted[at++])) {
            status = WAL_END;
            at = UINT32_MAX;
            break;
        }
    }
    wal__catalogue_cursor_deinit(&cursor);
    if (status == WAL_END) {
        return at == count ? WAL_OK : WAL_END;
    }
    return status;
}

enum wal_status model_check_session(const struct wal__catalogue *catalogue,
                                    const struct model_session *session)
{
    struct wal__summary summary;
    enum wal_status status =
        wal__catalogue_get(catalogue, session->numbers.number, &summary);

    if (status != WAL_OK) {
        return status;
    }
    if (!model_is_same(&summary, session)) {
        return WAL_END;
    }
    status = wal__catalogue_find(catalogue, model_span(session->id), &summary);
    if (status != WAL_OK) {
        return status;
    }
    return model_is_same(&summary, session) ? WAL_OK : WAL_END;
}

enum wal_status model_check(const struct wal__catalogue *catalogue,
                            const struct model *model)
{
    enum wal_status status;

    for (uint32_t i = 0; i < model->count; i++) {
        status = model_check_session(catalogue, &model->sessions[i]);
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

void model_assert_same(const struct wal__catalogue *catalogue,
                       const struct model *model)
{
    struct wal__summary summary;

    assert_int_equal(model_check(catalogue, model), WAL_OK);
    assert_int_equal(catalogue->session_count, model->count);
    assert_int_equal(catalogue->last_session, model->last_session);
    assert_int_equal(wal__catalogue_get(catalogue, 0, &summary), WAL_ENOTFOUND);
    assert_int_equal(
        wal__catalogue_get(catalogue, model->last_session + 1, &summary),
        WAL_ENOTFOUND);
    assert_int_equal(
        wal__catalogue_find(catalogue, model_span("none"), &summary),
        WAL_ENOTFOUND);
}

/* ------------------------------------------------------------- snapshot --- */

enum wal_status model_take(void *ctx, const void *data, size_t size)
{
    struct model_sink *sink = ctx;

    assert_int_equal(sink->bytes.size % MODEL_CHUNK, 0);
    assert_true(size > 0 && size <= MODEL_CHUNK);
    if (++sink->calls == sink->fail_at) {
        return WAL_ENOSPACE;
    }
    return wal__buf_append(&sink->bytes, data, size);
}

const struct wal__catalogue_header model_header = {
    .position = 0x123456789,
    .last_sequence = 77,
    .chain = 0xabcdef,
    .uuid = "a store's uuid..",
};

struct wal__span model_write(const struct wal__catalogue *catalogue)
{
    struct model_sink sink = {.fail_at = 0};

    wal__buf_init(&sink.bytes, &wal__heap_libc);
    assert_int_equal(
        wal__catalogue_write(catalogue, &model_header, model_take, &sink),
        WAL_OK);
    return (struct wal__span){sink.bytes.data, sink.bytes.size};
}

void model_free(struct wal__span bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

enum wal_status model_put(struct wal__catalogue *catalogue, uint32_t number,
                          const char *id)
{
    struct wal__summary summary = {
        .number = number,
        .last_sequence = 1000000 + number,
        .first_posting = 5,
        .posting_count = 6,
        .id = model_span(id),
    };

    return wal__catalogue_put(catalogue, &summary);
}

void model_begin(struct model *model, struct wal__catalogue *catalogue,
                 const struct wal__heap *heap, int steps)
{
    memset(model, 0, sizeof(*model));
    wal__catalogue_init(catalogue, heap);
    while (steps-- > 0) {
        model_step(model, catalogue);
    }
}

struct wal__span model_roll(struct wal__catalogue *catalogue)
{
    struct wal__span bytes = model_write(catalogue);

    wal__catalogue_deinit(catalogue);
    assert_int_equal(wal__catalogue_adopt(catalogue, bytes, model_uuid),
                     WAL_OK);
    assert_int_equal(wal__catalogue_overlay_size(catalogue), 0);
    return bytes;
}
