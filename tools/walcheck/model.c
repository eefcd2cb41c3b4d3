/*
 * model.c - the state that the replay builds: sessions, the position of each
 * record, and the versions of documents.
 *
 * Invariant: sessions ascend by number, records and versions by sequence. The
 * store itself, which has documents too, is the last session, under
 * WAL__STORE_NUMBER and without a SESSION record.
 *
 * Threads: the main thread.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "tools/walcheck/walcheck.h"

/* The id in the store's summary; a session may have the same id. */
static const struct wal__span store_id = {(const uint8_t *)"store", 5};

/* The rank of the first session whose number is at least `number`. */
static size_t session_rank(const struct check_model *model, uint32_t number)
{
    size_t low = 0;
    size_t high = model->session_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (model->sessions[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct check_session *check_model_find(const struct check_model *model,
                                       uint32_t number)
{
    size_t rank = session_rank(model, number);

    if (rank < model->session_count &&
        model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    return NULL;
}

struct check_session *check_model_get_or_add(struct check_model *model,
                                             uint32_t number)
{
    size_t rank = session_rank(model, number);
    struct check_session *session;

    if (rank < model->session_count &&
        model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    model->sessions =
        cli_reserve(model->sessions, model->session_count,
                    &model->session_capacity, sizeof(*model->sessions));
    memmove(model->sessions + rank + 1, model->sessions + rank,
            (model->session_count - rank) * sizeof(*model->sessions));
    session = cli_alloc(sizeof(*session));
    *session = (struct check_session){.number = number, .state.number = number};
    if (number == WAL__STORE_NUMBER) {
        session->has_record = true;
        session->record.id = store_id;
        session->state.id_hash = wal__id_hash(store_id.data, store_id.size);
    }
    model->sessions[rank] = session;
    model->session_count++;
    return session;
}

bool check_session_is_deleted(const struct check_session *session)
{
    return (session->state.flags & WAL__SUMMARY_DELETED) != 0;
}

size_t check_model_count_sessions(const struct check_model *model, bool deleted)
{
    size_t count = 0;

    for (size_t i = 0; i < model->session_count; i++) {
        count += model->sessions[i]->number != WAL__STORE_NUMBER &&
                 check_session_is_deleted(model->sessions[i]) == deleted;
    }
    return count;
}

const struct check_replayed *
check_model_find_replayed(const struct check_model *model, uint64_t sequence)
{
    size_t low = 0;
    size_t high = model->replayed_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (model->replayed[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < model->replayed_count &&
                   model->replayed[low].sequence == sequence
               ? &model->replayed[low]
               : NULL;
}

bool check_model_can_see(const struct check_model *model, uint32_t number,
                         const struct check_replayed *replayed)
{
    uint64_t highest = UINT64_MAX;

    for (unsigned depth = 0; depth <= WAL__LINEAGE_MAX; depth++) {
        const struct check_session *session = check_model_find(model, number);

        if (session == NULL || replayed->sequence > highest) {
            return false;
        }
        if (replayed->session == number) {
            return true;
        }
        if ((session->state.flags & WAL__SUMMARY_FORK) == 0) {
            return false;
        }
        if (session->state.fork_sequence < highest) {
            highest = session->state.fork_sequence;
        }
        number = session->state.fork_source;
    }
    return false;
}

void check_model_mark_damaged(struct check_store *store,
                              const struct check_segment *segment)
{
    for (size_t i = 0; i < segment->damages.count; i++) {
        const struct check_damage *damage = &segment->damages.items[i];

        for (size_t k = 0; k < damage->session_count; k++) {
            check_model_get_or_add(&store->model, damage->sessions[k])
                ->damaged = true;
        }
    }
    store->records_lost = store->records_lost || segment->has_lost_records;
}

uint64_t check_hash_of(struct wal__span id)
{
    return id.size == 0 ? 0 : wal__id_hash(id.data, id.size);
}

/* --- documents ------------------------------------------------------------ */

enum {
    DOC_NAME_SIZE = 12 /* session number and key hash */
};

static struct wal_slice doc_name(uint32_t session, uint64_t key_hash,
                                 uint8_t out[DOC_NAME_SIZE])
{
    wal__put32(out, session);
    wal__put64(out + sizeof(session), key_hash);
    return (struct wal_slice){out, DOC_NAME_SIZE};
}

uint64_t check_model_doc(const struct check_model *model, uint32_t number,
                         uint64_t key_hash)
{
    uint64_t highest = UINT64_MAX;
    uint8_t name[DOC_NAME_SIZE];

    for (unsigned depth = 0; depth <= WAL__LINEAGE_MAX; depth++) {
        const struct check_session *session = check_model_find(model, number);
        const uint32_t *newest =
            cli_ids_find(&model->doc_names, doc_name(number, key_hash, name));
        uint32_t rank = newest == NULL ? 0 : *newest;

        while (rank != 0 && model->docs[rank - 1].sequence > highest) {
            rank = model->docs[rank - 1].previous;
        }
        if (rank != 0) {
            return model->docs[rank - 1].sequence;
        }
        if (session == NULL || session->state.fork_source == 0) {
            return 0;
        }
        if (session->state.fork_record < highest) {
            highest = session->state.fork_record;
        }
        number = session->state.fork_source;
    }
    return 0;
}

void check_model_add_doc(struct check_model *model, uint32_t session,
                         uint64_t key_hash, uint64_t sequence)
{
    uint8_t name[DOC_NAME_SIZE];
    uint32_t *newest = cli_ids_get_or_add(&model->doc_names,
                                          doc_name(session, key_hash, name));

    model->docs = cli_reserve(model->docs, model->doc_count,
                              &model->doc_capacity, sizeof(*model->docs));
    model->docs[model->doc_count++] = (struct check_doc){sequence, *newest};
    *newest = (uint32_t)model->doc_count;
}

/* --- sessions whose SESSION record is lost -------------------------------- */

static void copy_session_record(struct check_model *model,
                                struct check_session *session,
                                const struct wal__session_record *record)
{
    struct wal__span payload;

    free(session->payload);
    payload.size = wal__session_record_size(record);
    session->payload = cli_alloc(payload.size);
    payload.data = session->payload;
    wal__session_record_encode(record, session->payload);
    session->has_record =
        wal__session_record_decode(payload, WAL__FORMAT_VERSION,
                                   &session->record) == WAL__FMT_OK;
    if (session->has_record && !check_session_is_deleted(session)) {
        *cli_ids_get_or_add(&model->ids,
                            (struct wal_slice){session->record.id.data,
                                               session->record.id.size}) =
            session->number;
    }
}

void check_model_add_from_index(struct check_model *model,
                                const struct wal__summary *summary)
{
    struct check_session *session =
        check_model_get_or_add(model, summary->number);
    const struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version =
            summary->schema_version == 0 ? 1 : summary->schema_version,
        .flags = ((summary->flags & WAL__SUMMARY_FORK) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_FORK
                      : 0) |
                 ((summary->flags & WAL__SUMMARY_TRASHED) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_TRASHED
                      : 0) |
                 ((summary->flags & WAL__SUMMARY_MOVED) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_MOVED
                      : 0),
        .id = summary->id,
        .cwd = summary->cwd,
        .project = summary->project,
        .title = summary->title,
        .parent_id = summary->parent_id,
        .source = summary->source,
    };

    session->damaged = true;
    session->state.flags |= summary->flags & WAL__SUMMARY_DELETED;
    if (!session->has_record) {
        copy_session_record(model, session, &record);
    }
}

void check_model_deinit(struct check_model *model)
{
    for (size_t i = 0; i < model->session_count; i++) {
        free(model->sessions[i]->payload);
        free(model->sessions[i]->first_text);
        free(model->sessions[i]);
    }
    free(model->sessions);
    free(model->replayed);
    free(model->docs);
    cli_ids_deinit(&model->ids);
    cli_ids_deinit(&model->doc_names);
    *model = (struct check_model){.sessions = NULL};
}
