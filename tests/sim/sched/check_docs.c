/*
 * check_docs.c - documents, heads and metadata as they are read, against
 * the ledger: every version of a document is there once and follows the one
 * that it expected, a head is where one of the last moves put it, a number has
 * been counted up as often as was acknowledged (sched.h).
 */
#include <string.h>

#include "tests/sim/sched/internal.h"

/* --------------------------------------------------------- documents --- */

/* The versions of one key, newest first, as far as they were read. */
struct history {
    uint32_t key;
    uint32_t newer; /* operation that put the next version */
    uint64_t digest;
    bool seen[SCHED_OPS];
};

/* The operation that put this, or SCHED_NONE. */
static uint32_t find_put(const struct sched *sched, uint32_t session,
                         const struct wal_doc *doc)
{
    const char *bytes = doc->value.data;
    uint32_t number = SCHED_NONE;
    const struct sched_op *op;

    if (doc->value.size == 6) {
        number = sched__parse_number((struct wal_slice){bytes + 1, 4}, 'd');
    }
    if (number >= sched->ledger.op_count) {
        return SCHED_NONE;
    }
    op = &sched->ledger.ops[number];
    return op->kind == SCHED_PUT_DOC && op->session == session &&
                   sched__parse_number(doc->key, 'k') == op->key
               ? number
               : SCHED_NONE;
}

/* What the version above expected, when this one, 0 for none, is below it. */
static void check_expectation(struct sched *sched, const struct history *past,
                              uint64_t version)
{
    const struct sched_op *op;

    if (past->newer == SCHED_NONE) {
        return;
    }
    op = &sched->ledger.ops[past->newer];
    if (op->expects && op->version != version) {
        sched__fail(sched,
                    "the document of operation %u follows version %llu, and "
                    "expected %llu",
                    past->newer, (unsigned long long)version,
                    (unsigned long long)op->version);
    }
}

static void read_document(struct sched *sched, uint32_t session,
                          const struct wal_doc *doc, struct history *past)
{
    uint32_t number = find_put(sched, session, doc);

    if (number == SCHED_NONE || past->seen[number]) {
        sched__fail(sched,
                    "document \"%.*s\" version %llu: \"%.*s\" was not "
                    "put there, or is there twice",
                    (int)doc->key.size, (const char *)doc->key.data,
                    (unsigned long long)doc->version, (int)doc->value.size,
                    (const char *)doc->value.data);
        return;
    }
    if (sched->ledger.ops[number].key != past->key) {
        check_expectation(sched, past, 0);
    } else {
        check_expectation(sched, past, doc->version);
    }
    past->key = sched->ledger.ops[number].key;
    past->newer = number;
    past->seen[number] = true;
    sched__mix(&past->digest, number);
    sched__mix(&past->digest, doc->version);
}

static void check_documents(struct sched_process *process, uint32_t session,
                            const struct history *past, uint64_t since)
{
    struct sched *sched = process->sched;

    check_expectation(sched, past, 0);
    for (uint32_t i = 0; i < sched->ledger.op_count && !sched->failed; i++) {
        const struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind != SCHED_PUT_DOC || op->session != session) {
            continue;
        }
        if (past->seen[i]) {
            sched__mark_visible(sched, i, false);
        } else if (op->state >= SCHED_WRITTEN && op->known <= since &&
                   !process->read_only) {
            sched__fail(sched, "the document of operation %u is lost", i);
        }
    }
}

bool sched__read_documents(struct sched_process *process, uint32_t session,
                           uint64_t *digest, uint64_t since)
{
    struct sched *sched = process->sched;
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct history past = {.key = SCHED_NONE, .newer = SCHED_NONE};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;

    if (session != SCHED_NONE && session >= SCHED_SHARED_SESSIONS) {
        return true; /* a fork has those of its source too */
    }
    status = wal_doc_cursor_open(
        process->store,
        session == SCHED_NONE ? NULL : process->sessions[session], &options,
        &docs, &error);
    if (!sched__check_status(process, status, &error, "opening documents")) {
        return false;
    }
    while (!sched->failed &&
           (status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        read_document(sched, session, &doc, &past);
    }
    wal_doc_cursor_close(docs);
    if (sched->failed) {
        return false;
    }
    if (status != WAL_END) {
        return sched__check_status(process, status, &error,
                                   "reading documents");
    }
    check_documents(process, session, &past, since);
    sched__mix(digest, past.digest);
    return !sched->failed;
}

/* ------------------------------------------------------------- heads --- */

/* A move that nobody has moved on from since. */
static void check_head(struct sched *sched, uint32_t session, uint32_t number,
                       uint64_t since)
{
    const struct sched_ledger *ledger = &sched->ledger;

    for (uint32_t i = 0; i < ledger->op_count; i++) {
        const struct sched_op *op = &ledger->ops[i];

        if (op->kind != SCHED_MOVE_HEAD || op->session != session ||
            i == number || op->state < SCHED_WRITTEN || op->known > since) {
            continue;
        }
        if (number == SCHED_NONE || op->begin > ledger->ops[number].end) {
            sched__fail(sched,
                        "session %u: the head is where operation %d put it, "
                        "and operation %u moved it after that",
                        session, (int)number, i);
            return;
        }
    }
}

static void read_mark(struct sched *sched, uint32_t session, uint32_t number,
                      const struct wal_head *head)
{
    const struct sched_op *op = &sched->ledger.ops[number];

    if (number >= sched->ledger.op_count || op->kind != SCHED_MOVE_HEAD ||
        op->session != session ||
        sched__parse_number(head->entry_id, 'e') != op->target) {
        sched__fail(sched, "session %u: nobody put the head at \"%.*s\"",
                    session, (int)head->entry_id.size,
                    (const char *)head->entry_id.data);
    }
}

bool sched__read_heads(struct sched_process *process, uint32_t session,
                       uint64_t *digest, uint64_t since)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    uint32_t number = SCHED_NONE;
    enum wal_status status =
        wal_head_cursor_open(process->sessions[session], &heads, &error);

    if (!sched__check_status(process, status, &error, "opening heads")) {
        return false;
    }
    while (!sched->failed &&
           (status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
        if (head.name.size == 4 && memcmp(head.name.data, "mark", 4) == 0) {
            number = sched__parse_number(head.note, 'n');
            read_mark(sched, session, number, &head);
        }
        sched__mix(digest, head.version);
        sched__mix(digest, sched__parse_number(head.entry_id, 'e'));
    }
    wal_head_cursor_close(heads);
    if (sched->failed) {
        return false;
    }
    if (status != WAL_END) {
        return sched__check_status(process, status, &error, "reading heads");
    }
    if (number != SCHED_NONE) {
        sched__mark_visible(sched, number, false);
    }
    if (!process->read_only) {
        check_head(sched, session, number, since);
    }
    return !sched->failed;
}

/* ---------------------------------------------------------- metadata --- */

uint32_t sched__parse_counter(struct wal_slice metadata)
{
    const char *bytes = metadata.data;

    if (metadata.size != 10) {
        return SCHED_NONE;
    }
    return sched__parse_number((struct wal_slice){bytes + 5, 4}, '1');
}

void sched__check_counter(struct sched *sched, uint32_t session, uint32_t count,
                          uint64_t since)
{
    uint32_t least = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        const struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind == SCHED_INCREMENT && op->session == session) {
            least += op->state >= SCHED_WRITTEN && op->known <= since;
            most += op->state != SCHED_REFUSED;
        }
    }
    if (count < least || count > most) {
        sched__fail(sched, "session %u has counted to %d, not %u to %u",
                    session, (int)count, least, most);
    }
}

bool sched__read_counter(struct sched_process *process, uint32_t session,
                         uint64_t *digest, uint64_t since)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status =
        wal_session_get_info(process->sessions[session], &info, &error);

    if (!sched__check_status(process, status, &error, "a session's status")) {
        return false;
    }
    sched__mix(digest, info.metadata_version);
    sched__mix(digest, info.bytes);
    if (session < SCHED_SHARED_SESSIONS && !process->read_only) {
        sched__check_counter(process->sched, session,
                             sched__parse_counter(info.metadata), since);
    }
    return !process->sched->failed;
}
