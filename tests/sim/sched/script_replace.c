/*
 * script_replace.c - the steps of processes that look at a session and then
 * remove it, while others append to it (sched.h): an agent, an importer that
 * deletes the session and creates it again, and a retainer that moves it to
 * the trash, and deletes it there or takes it back.
 *
 * The session is not of the ledger. Of each of its entries is known whether it
 * was acknowledged, and whether a removal that had seen it was, or may have
 * been, written.
 *
 * Invariant: an entry that was acknowledged, and that no removal had seen, is
 * there.
 */
#include <stdio.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/sched/internal.h"

enum {
    SEEN_STEPS = 3, /* turns between a look and what follows from it */
    ID_SIZE = 16
};

static const char *const name = "replaced";

static uint64_t random_below(struct sched_process *process, uint64_t sides)
{
    return sched__random(&process->read_random, sides);
}

static const char *entry_id(uint32_t number, char id[ID_SIZE])
{
    (void)snprintf(id, ID_SIZE, "r%u", number);
    return id;
}

/* Answers of a session that others remove and create. */
static bool is_expected(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED ||
           status == WAL_EEXISTS || status == WAL_ECONFLICT;
}

/* Whether the call succeeded. */
static bool check(struct sched_process *process, enum wal_status status,
                  const struct wal_error *error, const char *what)
{
    return !is_expected(status) &&
           sched__check_status(process, status, error, what);
}

/* --- what was seen -------------------------------------------------------- */

/* A look at the session. */
struct sched_look {
    struct wal_session *session;
    uint64_t sequence; /* last_sequence, from before the entries were read */
    bool has[SCHED_REPLACED];
};

static bool open_session(struct sched_process *process,
                         struct wal_session **session)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    process->blocked_byte = 0;
    status =
        wal_session_open(process->store, ledger_slice(name), session, &error);
    if (status == WAL_ETRASHED) {
        status =
            wal_session_undelete(process->store, ledger_slice(name), &error);
        (void)check(process, status, &error, "undeleting a session");
        return false;
    }
    return check(process, status, &error, "opening a session");
}

static void create_session(struct sched_process *process,
                           struct wal_session **session)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = ledger_slice(name)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    process->blocked_byte = 0;
    status = wal_session_create(process->store, &options, session, &error);
    (void)check(process, status, &error, "creating a session");
}

/* Reads which entries there are. False: it cannot be read now. */
static bool look(struct sched_process *process, struct sched_look *look)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_session_get_info(look->session, &info, &error);

    look->sequence = info.last_sequence;
    if (status == WAL_OK) {
        status =
            wal_entry_cursor_open(look->session, &options, &cursor, &error);
    }
    while (status == WAL_OK) {
        unsigned number = 0;

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK &&
            sscanf((const char *)entry.payload.data, "%u", &number) == 1 &&
            number < SCHED_REPLACED) {
            look->has[number] = true;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ||
           check(process, status, &error, "looking at a session");
}

/* Others go on. */
static void wait_after_look(struct sched_process *process)
{
    process->call = SIM_ANY;
    for (int i = 0; i < SEEN_STEPS; i++) {
        sched__step(process, false);
    }
}

/* --- removing ------------------------------------------------------------- */

static void add_doubts(struct sched *sched, const struct sched_look *look,
                       bool adds)
{
    for (uint32_t i = 0; i < sched->replaced_count; i++) {
        if (look->has[i]) {
            sched->replaced[i].doubts += adds ? 1u : UINT32_MAX;
        }
    }
}

/* Removes the session as it was seen. Until it is refused, what was seen may
 * be gone. */
static enum wal_status remove_seen(struct sched_process *process,
                                   const struct sched_look *seen,
                                   uint32_t flags)
{
    struct sched *sched = process->sched;
    const struct wal_session_remove_options options = {
        .struct_size = sizeof(options),
        .flags = flags | WAL_SESSION_REMOVE_EXPECT,
        .expected_sequence = seen->sequence};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    add_doubts(sched, seen, true);
    process->blocked_byte = 0;
    status = wal_session_remove(seen->session, &options, &error);
    if (status == WAL_ECONFLICT) {
        if (error.expectation != WAL_EXPECTATION_SEQUENCE) {
            sched__fail(sched, "a removal conflicts: %s", error.text);
        }
        sched->counts->outcomes[SCHED_REMOVAL_CONFLICTS]++;
    }
    (void)check(process, status, &error, "removing a session");
    if (is_expected(status)) {
        add_doubts(sched, seen, false);
    }
    return status;
}

/* --- the three ------------------------------------------------------------ */

static void append(struct sched_process *process, struct wal_session *session)
{
    struct sched *sched = process->sched;
    uint32_t number = sched->replaced_count;
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability =
            random_below(process, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = WAL_STR(WAL_TYPE_MESSAGE)};
    enum wal_status status;
    char payload[ID_SIZE];
    char id[ID_SIZE];

    if (session == NULL || number == SCHED_REPLACED) {
        return;
    }
    sched->replaced[number] = (struct sched_replaced){.doubts = 0};
    sched->replaced_count++;
    (void)snprintf(payload, sizeof(payload), "%u    ", number);
    entry.id = ledger_slice(entry_id(number, id));
    entry.payload = ledger_slice(payload);
    process->blocked_byte = 0;
    status = wal_append(session, &entry, 1, &options, NULL, &error);
    if (check(process, status, &error, "appending")) {
        sched->replaced[number].is_acknowledged = true;
        sched->replaced[number].is_durable = options.durability == WAL_DURABLE;
        process->poisoned = false;
    }
}

static void run_importer(struct sched_process *process, struct sched_look *seen)
{
    if (!look(process, seen)) {
        return;
    }
    wait_after_look(process);
    if (remove_seen(process, seen, 0) == WAL_OK) {
        process->sched->counts->outcomes[SCHED_REPLACEMENTS]++;
        wal_session_close(seen->session);
        seen->session = NULL;
        create_session(process, &seen->session);
        append(process, seen->session);
    }
}

static void run_retainer(struct sched_process *process, struct sched_look *seen)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (!look(process, seen)) {
        return;
    }
    wait_after_look(process);
    if (remove_seen(process, seen, WAL_SESSION_REMOVE_TRASH) != WAL_OK) {
        return;
    }
    sched->counts->outcomes[SCHED_RETENTIONS]++;
    if (random_below(process, 2) == 0) {
        /* An erasing compaction may have emptied the trash. */
        status =
            wal_session_undelete(process->store, ledger_slice(name), &error);
        if (check(process, status, &error, "undeleting a session") &&
            !sched->options.compacts) {
            add_doubts(sched, seen, false);
        }
        return;
    }
    memset(seen->has, 0, sizeof(seen->has));
    if (look(process, seen)) {
        wait_after_look(process);
        (void)remove_seen(process, seen, 0);
    }
}

void sched__step_replace(struct sched_process *process)
{
    struct sched_look seen = {.session = NULL};
    uint64_t way = random_below(process, 4);

    if (!open_session(process, &seen.session)) {
        if (process->store != NULL && !process->poisoned) {
            create_session(process, &seen.session);
        }
        way = 0;
    }
    if (seen.session == NULL) {
        return;
    }
    if (way < 2) {
        append(process, seen.session);
    } else if (way == 2) {
        run_importer(process, &seen);
    } else {
        run_retainer(process, &seen);
    }
    wal_session_close(seen.session);
}

/* --- what must be there --------------------------------------------------- */

void sched__replaced_power_loss(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->replaced_count; i++) {
        sched->replaced[i].is_acknowledged &= sched->replaced[i].is_durable;
    }
}

void sched__check_replaced(struct sched_process *process)
{
    struct sched *sched = process->sched;
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(process->store, ledger_slice(name), &session, NULL);
    char id[ID_SIZE];

    if (status == WAL_ETRASHED) {
        (void)!wal_session_undelete(process->store, ledger_slice(name), NULL);
        status = wal_session_open(process->store, ledger_slice(name), &session,
                                  NULL);
    }
    for (uint32_t i = 0; i < sched->replaced_count && !sched->failed; i++) {
        const struct sched_replaced *entry = &sched->replaced[i];
        struct wal_entry found = {.struct_size = sizeof(found)};

        if (!entry->is_acknowledged || entry->doubts > 0) {
            continue;
        }
        if (status != WAL_OK ||
            wal_entry_get(session, ledger_slice(entry_id(i, id)), &found,
                          NULL) != WAL_OK) {
            sched__fail(sched,
                        "the entry %s was acknowledged, and no removal had "
                        "seen it: it is gone",
                        id);
        }
        sched->counts->outcomes[SCHED_KEPT]++;
    }
    wal_session_close(session);
}
