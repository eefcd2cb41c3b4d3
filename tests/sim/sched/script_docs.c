/*
 * script_docs.c - the steps of a process that append no entries:
 * documents, heads, forks, and a number in the metadata that is counted up
 * (sched.h).
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sched/internal.h"

enum {
    DOCUMENT_SIZE = 48,
    UPDATE_STEPS = 3 /* turns that a change of metadata waits for */
};

static const char *const mark = "head-0"; /* as the ledger names it */

static uint64_t random_below(struct sched_process *process, uint64_t sides)
{
    return sched__random(&process->rng_state, sides);
}

/* --------------------------------------------------------- documents --- */

/* The version of a document as this process sees it; 0: there is none. */
static bool find_version(struct sched_process *process,
                         struct wal_session *session, const char *key,
                         uint64_t *version)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status =
        wal_doc_cursor_open(process->store, session, NULL, &docs, &error);

    if (!sched__check_status(process, status, &error, "opening documents")) {
        return false;
    }
    status = wal_doc_cursor_get(docs, ledger_slice(key), 0, &doc, &error);
    *version = status == WAL_OK ? doc.version : 0;
    wal_doc_cursor_close(docs);
    return status == WAL_ENOTFOUND ||
           sched__check_status(process, status, &error, "reading a document");
}

static struct ledger_part *add_part(struct sched_process *process,
                                    uint32_t batch, enum ledger_part_kind kind,
                                    uint32_t session, uint32_t key)
{
    struct ledger *ledger = &process->sched->ledger;
    const struct ledger_part part = {
        .kind = kind, .session = session, .key = key, .target = SCHED_NONE};

    return &ledger->parts[ledger_add_part(ledger, batch, &part)];
}

void sched__step_put(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    bool of_store =
        session >= SCHED_SHARED_SESSIONS || random_below(process, 3) == 0;
    struct wal_session *handle =
        of_store ? NULL : sched__session(process, session);
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger_text *text = &process->texts[0];
    enum wal_status status;
    struct ledger_part *part;
    uint32_t number;

    if (!of_store && handle == NULL) {
        return;
    }
    number = sched__op_begin(process, session);
    part = add_part(process, number, LEDGER_PUT_DOC,
                    of_store ? SCHED_NONE : session,
                    (uint32_t)random_below(process, SCHED_KEYS));
    part->size = DOCUMENT_SIZE;
    part->expects = random_below(process, 3) != 0;
    ledger_fill_document(&sched->ledger, (uint32_t)(part - sched->ledger.parts),
                         &doc, text);
    if (of_store && part->expects && process->knows_version &&
        process->known_key == part->key && random_below(process, 2) == 0) {
        part->version = process->known_version;
    } else if (part->expects &&
               !find_version(process, handle, text->id, &part->version)) {
        sched__free_texts(process);
        sched__op_end(process, number, WAL_ENOTFOUND);
        return;
    }
    if (of_store && part->expects) {
        process->knows_version = true;
        process->known_key = part->key;
        process->known_version = part->version;
    }
    doc.flags = part->expects ? WAL_DOC_EXPECT : 0;
    doc.version = part->version;
    process->blocked_byte = 0;
    status = wal_doc_put(process->store, handle, &doc, NULL, &error);
    sched__free_texts(process);
    if (status == WAL_ECONFLICT && part->expects) {
        sched->counts->outcomes[SCHED_STALE]++;
    } else {
        (void)sched__check_status(process, status, &error,
                                  "putting a document");
    }
    sched__op_end(process, number, status);
}

/* ------------------------------------------------------------- heads --- */

/* Where a head is; empty: there is none. */
static bool find_head(struct sched_process *process,
                      struct wal_session *session, const char *name,
                      char out[256])
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status =
        wal_head_get(session, 0, ledger_slice(name), out, &error);

    if (status == WAL_ENOTFOUND) {
        out[0] = '\0';
        return true;
    }
    return sched__check_status(process, status, &error, "asking for a head");
}

/* Moves a head to the tail, or `main` to where the mark is. */
void sched__step_head(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    struct wal_session *handle = sched__session(process, session);
    bool main = sched->moves_main && random_below(process, 2) == 0;
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = {.struct_size = sizeof(error)};
    char expected[256];
    char target[256];
    struct ledger_part *part;
    enum wal_status status;
    uint32_t number;

    if (handle == NULL ||
        !find_head(process, handle, main ? mark : "main", target) ||
        !find_head(process, handle, main ? "main" : mark, expected) ||
        target[0] == '\0') {
        return;
    }
    number = sched__op_begin(process, session);
    part = add_part(process, number, main ? LEDGER_MOVE_MAIN : LEDGER_MOVE_HEAD,
                    session, 0);
    part->target = ledger_find_entry(&sched->ledger, ledger_slice(target));
    ledger_fill_head(&sched->ledger, (uint32_t)(part - sched->ledger.parts),
                     &head, &process->texts[0]);
    if (random_below(process, 2) == 0) {
        head.flags = WAL_HEAD_EXPECT;
        head.expected = ledger_slice(expected);
    }
    process->blocked_byte = 0;
    status = wal_head_move(handle, &head, NULL, &error);
    if (status == WAL_ECONFLICT && (head.flags & WAL_HEAD_EXPECT) != 0) {
        sched->counts->outcomes[SCHED_STALE]++;
    } else {
        (void)sched__check_status(process, status, &error, "moving a head");
    }
    sched__op_end(process, number, status);
}

/* ------------------------------------------------------------- forks --- */

void sched__step_fork(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    const struct ledger *ledger = &sched->ledger;
    struct wal_session *handle = sched__session(process, session);
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    char at[256];
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t number;
    uint32_t op;

    if (handle == NULL || ledger->session_count == SCHED_SESSIONS ||
        !find_head(process, handle, "main", at) || at[0] == '\0') {
        return;
    }
    if (ledger->session_count == SCHED_SESSIONS) {
        return; /* others may have forked in the meantime */
    }
    number = sched__op_begin_fork(process, session,
                                  ledger_find_entry(ledger, ledger_slice(at)));
    op = process->op;
    ledger_session_id(number, id);
    options.id = ledger_slice(id);
    process->blocked_byte = 0;
    status = wal_session_fork(handle, ledger_slice(at), &options,
                              &process->sessions[number], &error);
    (void)sched__check_status(process, status, &error, "forking");
    sched__op_end(process, op, status);
    sched->counts->outcomes[SCHED_FORKS] += status == WAL_OK;
}

/* ---------------------------------------------------------- metadata --- */

struct counter_update {
    struct sched_process *process;
    uint32_t session;
    uint64_t since;
    char text[SCHED_TEXT];
};

/* Called by wal_session_update: one more than there is. */
static int32_t increment(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    struct counter_update *counter_update = ctx;
    struct sched_process *process = counter_update->process;
    uint32_t count =
        sched__check_counter(process->sched, counter_update->session,
                             now->metadata, counter_update->since);

    /* It takes its time, in which others may count too. */
    process->call = SIM_ANY;
    process->updates = counter_update->session + 1;
    for (int i = 0; i < UPDATE_STEPS; i++) {
        sched__step(process, false);
    }
    process->updates = 0;
    (void)snprintf(counter_update->text, sizeof(counter_update->text),
                   "{\"n\":1%03u}", count + 1);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata = ledger_slice(counter_update->text);
    return 0;
}

void sched__step_increment(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    struct counter_update counter_update = {.process = process,
                                            .session = session};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle;
    enum wal_status status;
    uint32_t op;

    if (session >= SCHED_SHARED_SESSIONS) {
        return; /* a fork begins with the number of its source */
    }
    handle = sched__session(process, session);
    if (handle == NULL) {
        return;
    }
    op = sched__op_begin(process, session);
    sched->ops[op].increments = true;
    counter_update.since = sched->steps;
    process->blocked_byte = 0;
    status = wal_session_update(handle, increment, &counter_update, &error);
    (void)sched__check_status(process, status, &error, "updating a session");
    sched__op_end(process, op, status);
}
