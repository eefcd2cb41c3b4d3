/*
 * read.c - reads the answers of a store (read.h).
 *
 * Entries are read segment by segment, in the order of the log; documents
 * session by session, as they are now.
 */
#include "tools/usage/read.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/record.h"
#include "convert/model/dialect.h"
#include "format/payload/timestamp.h"
#include "tools/cli/cli.h"

enum {
    ATTEMPTS = 4 /* while compaction replaces segments */
};

/* --- sessions ----------------------------------------------------------- */

static char *copy_slice(struct wal_slice text)
{
    return cli_copy_text(text.data, (size_t)text.size);
}

/* The name of a dialect is before the first blank of a source. */
static char *client_of(struct wal_slice source)
{
    const char *blank =
        source.size > 0 ? memchr(source.data, ' ', (size_t)source.size) : NULL;

    return blank == NULL
               ? cli_copy_text("agentwal", 8)
               : cli_copy_text(source.data,
                               (size_t)(blank - (const char *)source.data));
}

static int compare_sessions(const void *a, const void *b)
{
    const struct usage_session *one = a;
    const struct usage_session *other = b;

    return (one->number > other->number) - (one->number < other->number);
}

static struct usage_session *find_session(struct usage *usage, uint32_t number)
{
    const struct usage_session wanted = {.number = number};

    return usage->session_count == 0
               ? NULL
               : bsearch(&wanted, usage->sessions, usage->session_count,
                         sizeof(wanted), compare_sessions);
}

/* Where answers go. */
struct reading {
    struct usage *usage;
    uint32_t session;
};

static void add_answer(void *ctx, const struct usage_sample *sample)
{
    struct reading *reading = ctx;

    usage_answers_add(&reading->usage->answers, reading->session, sample);
}

/* Lists the sessions, and those that have documents. */
static enum wal_status list_sessions(struct usage *usage,
                                     struct wal_store *store,
                                     struct usage_names *with_documents,
                                     struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(store, NULL, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        struct usage_session *session;

        usage->sessions =
            cli_reserve(usage->sessions, usage->session_count,
                        &usage->session_capacity, sizeof(usage->sessions[0]));
        session = &usage->sessions[usage->session_count++];
        *session = (struct usage_session){.number = info.number,
                                          .id = copy_slice(info.id),
                                          .title = copy_slice(info.title),
                                          .cwd = copy_slice(info.cwd),
                                          .project = copy_slice(info.project),
                                          .client = client_of(info.source)};
        if (info.documents > 0) {
            (void)usage_names_number(with_documents, session->id);
        }
    }
    wal_session_cursor_close(list);
    if (usage->session_count > 0) {
        qsort(usage->sessions, usage->session_count, sizeof(usage->sessions[0]),
              compare_sessions);
    }
    return status == WAL_END ? WAL_OK : status;
}

/* --- documents ---------------------------------------------------------- */

static enum wal_status read_documents(struct usage *usage,
                                      struct wal_store *store,
                                      struct wal_session *session,
                                      struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;
    struct reading reading = {.usage = usage};
    const struct usage_session *known = NULL;
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        known = find_session(usage, info.number);
    }
    if (known == NULL) {
        return status;
    }
    reading.session = (uint32_t)(known - usage->sessions);
    status = wal_doc_cursor_open(store, session, NULL, &cursor, error);
    while (status == WAL_OK) {
        status = wal_doc_cursor_next(cursor, &doc, error);
        if (status == WAL_OK && usage_may_count(doc.value)) {
            usage_read_document(
                (struct wal__json_span){doc.value.data, (size_t)doc.value.size},
                doc.modified_ms, add_answer, &reading);
        } else if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        }
    }
    wal_doc_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status read_all_documents(struct usage *usage,
                                          struct wal_store *store,
                                          const struct usage_names *ids,
                                          struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < ids->count && status == WAL_OK; i++) {
        struct wal_session *session = NULL;

        status =
            wal_session_open(store, cli_slice(ids->items[i]), &session, error);
        if (status == WAL_OK) {
            status = read_documents(usage, store, session, error);
        }
        wal_session_close(session);
        if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        } else if (status == WAL_ENOTFOUND || status == WAL_ETRASHED) {
            status = WAL_OK; /* deleted meanwhile */
        }
    }
    return status;
}

/* --- entries ------------------------------------------------------------ */

static void read_record(struct usage *usage, const struct wal_record *record)
{
    struct usage_session *session;
    struct reading reading = {.usage = usage};
    struct wal__json_span line;
    struct wal__json_span time;
    int64_t time_ms = 0;

    if (record->kind != WAL_RECORD_ENTRY ||
        !usage_may_count(record->entry->payload)) {
        return;
    }
    session = find_session(usage, record->session_number);
    if (session == NULL) {
        return; /* created meanwhile */
    }
    if (session->codex == NULL) {
        session->codex = cli_alloc(sizeof(*session->codex));
    }
    line = wal__line_text(record->entry->payload.data,
                          (size_t)record->entry->payload.size);
    time = (struct wal__json_span){record->entry->timestamp.data,
                                   (size_t)record->entry->timestamp.size};
    (void)wal__model_time_read_text(time, &time_ms);
    reading.session = (uint32_t)(session - usage->sessions);
    usage_read_line(line, time_ms, session->codex, add_answer, &reading);
}

static enum wal_status read_segment(struct usage *usage,
                                    struct wal_store *store,
                                    const struct wal_segment_info *segment,
                                    struct wal_error *error)
{
    struct wal_record_cursor_options options =
        WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    enum wal_status status;

    options.segment = segment->id;
    options.identity = segment->identity;
    status = wal_record_cursor_open(store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_record_cursor_next(cursor, &record, error);
        if (status == WAL_OK) {
            read_record(usage, &record);
        } else if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        }
    }
    wal_record_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status read_segments(struct usage *usage,
                                     struct wal_store *store,
                                     struct wal_error *error)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    struct wal_segment_cursor *segments = NULL;
    uint64_t done = 0;
    enum wal_status status = wal_segment_cursor_open(store, &segments, error);

    while (status == WAL_OK && (status = wal_segment_cursor_next(
                                    segments, &segment, error)) == WAL_OK) {
        progress_update(usage->progress, "reading", done++, 0, "segments");
        status = read_segment(usage, store, &segment, error);
        if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        }
    }
    wal_segment_cursor_close(segments);
    return status == WAL_END ? WAL_OK : status;
}

/* --- both --------------------------------------------------------------- */

static enum wal_status read_once(struct usage *usage, struct wal_store *store,
                                 struct wal_error *error)
{
    struct usage_names with_documents = {.items = NULL};
    enum wal_status status =
        list_sessions(usage, store, &with_documents, error);

    if (status == WAL_OK) {
        status = read_segments(usage, store, error);
    }
    if (status == WAL_OK) {
        status = read_all_documents(usage, store, &with_documents, error);
    }
    usage_names_deinit(&with_documents);
    return status;
}

enum wal_status usage_read(struct usage *usage, struct wal_store *store,
                           struct wal_error *error)
{
    struct progress *progress = usage->progress;
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        status = read_once(usage, store, error);
        if (status != WAL_ENOTFOUND) {
            break;
        }
        usage_deinit(usage); /* compaction replaced a segment: read again */
        usage->progress = progress;
    }
    progress_clear(progress);
    return status;
}

void usage_deinit(struct usage *usage)
{
    for (size_t i = 0; i < usage->session_count; i++) {
        struct usage_session *session = &usage->sessions[i];

        free(session->id);
        free(session->title);
        free(session->cwd);
        free(session->project);
        free(session->client);
        free(session->codex);
    }
    free(usage->sessions);
    usage_answers_deinit(&usage->answers);
    *usage = (struct usage){.sessions = NULL};
}
