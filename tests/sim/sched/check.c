/*
 * check.c - a session, and at the end the whole store, as it is read, against the ledger; and a
 * number in the metadata that has been counted up as often as was acknowledged (sched.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/log/segment.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"
#include "tests/lib/sanitizers.h"
#include "tests/sim/sched/internal.h"

/* The memory of a look: it survives the process that is killed during one. */
static struct ledger_checker *checkers[SCHED_PROCESSES];
static jmp_buf failed;

/* Goes on in sched__check_all when no process runs. */
static void on_failure(void *ctx, const char *text)
{
    sched__fail(ctx, "%s", text);
    longjmp(failed, 1);
}

void sched__check_free(void)
{
    for (uint32_t i = 0; i < SCHED_PROCESSES; i++) {
        ledger_checker_destroy(checkers[i]);
        checkers[i] = NULL;
    }
}

/* ---------------------------------------------------------- metadata --- */

/* {"n":1NNN} */
static uint32_t parse_counter(struct wal_slice metadata)
{
    char text[SCHED_TEXT] = "";
    unsigned count = 0;

    if (metadata.size == 10) {
        (void)snprintf(text, sizeof(text), "%.10s", (const char *)metadata.data);
    }
    return sscanf(text, "{\"n\":1%3u}", &count) == 1 ? count : SCHED_NONE;
}

uint32_t sched__check_counter(struct sched *sched, uint32_t session, struct wal_slice metadata,
                              uint64_t since)
{
    uint32_t count = parse_counter(metadata);
    uint32_t least = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].increments && batch->session == session) {
            least += batch->state >= LEDGER_WRITTEN && batch->known_since <= since;
            most += batch->state != LEDGER_REFUSED;
        }
    }
    if (count < least || count > most) {
        sched__fail(sched, "session %u has counted to %d, not %u to %u", session, (int)count, least,
                    most);
    }
    return count;
}

/* A fork begins with the number of its source. */
static bool read_counter(struct sched_process *process, struct wal_session *handle,
                         uint32_t session, uint64_t since)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_session_get_info(handle, &info, &error);

    if (!sched__check_status(process, status, &error, "a session's status")) {
        return false;
    }
    if (session < SCHED_SHARED_SESSIONS && !process->read_only) {
        (void)sched__check_counter(process->sched, session, info.metadata, since);
    }
    return !process->sched->failed;
}

/* ----------------------------------------------------------- reading --- */

static bool accepts(void *ctx, enum wal_status status, const struct wal_error *error,
                    const char *what)
{
    (void)sched__check_status(ctx, status, error, what);
    return true;
}

static void sched__mark_visible(struct sched *sched, uint32_t number, bool durable);

/* Visible records must remain visible. */
static void note_visible(struct sched *sched, const struct ledger_view *view,
                         const struct ledger_look *look, bool *seen)
{
    const struct ledger *ledger = &sched->ledger;

    for (uint32_t i = 0; i < ledger->batch_count && !sched->failed; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];

        if ((look == NULL || batch->session == look->session) &&
            batch->count + batch->part_count > 0 && ledger_is_visible(ledger, view, i)) {
            sched__mark_visible(sched, i, look != NULL && look->durable && batch->count > 0);
            if (seen != NULL) {
                seen[i] = true;
            }
        }
    }
    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        sched->counts->outcomes[SCHED_BLOBS_READ] +=
            view->entries[i] && ledger->entries[i].size > SCHED_INLINE;
    }
}

/* Whether the log is poisoned: what is known to be durable then may be less than what was
 * acknowledged before a loss of power, until it is healed. */
static bool is_poisoned(const struct sched_process *process)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    return wal_store_get_info(process->store, &info, NULL) != WAL_OK || info.status != WAL_OK;
}

void sched__read(struct sched_process *process, struct wal_session *handle, uint32_t session,
                 bool durable, uint64_t since)
{
    struct sched *sched = process->sched;
    const bool lags = process->read_only || (durable && is_poisoned(process));
    const struct ledger_look look = {.handle = handle,
                                     .session = session,
                                     .durable = durable,
                                     .lags = lags,
                                     .seen = process->seen,
                                     .since = since,
                                     .accepts = accepts,
                                     .ctx = process};
    struct ledger_checker **checker = &checkers[process->slot];
    const struct ledger_view *view;

    if (*checker == NULL) {
        *checker = ledger_checker_create();
    }
    ledger_on_failure(on_failure, sched);
    sched->counts->outcomes[SCHED_READS]++;
    if (ledger_look(*checker, &sched->ledger, process->store, &look, &view)) {
        note_visible(sched, view, &look, process->seen);
        (void)read_counter(process, handle, session, since);
    }
}

/* -------------------------------------------------------- everything --- */

/* A session that exists was made, and one that was made exists. */
static void check_session(struct sched_process *process, uint32_t session,
                          const struct ledger_view *view)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;
    char id[LEDGER_TEXT];

    if (view->sessions[session] ? !sched__may_exist(sched, session)
                                : sched__must_exist(sched, session, sched->steps)) {
        sched__fail(sched, "session %u %s", session,
                    view->sessions[session] ? "is there, and was never made" : "is lost");
    }
    if (!view->sessions[session] || sched->failed) {
        return;
    }
    ledger_session_id(session, id);
    if (wal_session_open(process->store, ledger_slice(id), &handle, &error) != WAL_OK) {
        sched__fail(sched, "session %u: opening it fails: %s", session, error.text);
        return;
    }
    (void)read_counter(process, handle, session, sched->steps);
    wal_session_close(handle);
}

/* Operations that only create or count have no visible record. */
static void settle(struct sched *sched, const struct ledger_view *view)
{
    ledger_resolve(&sched->ledger, view);
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        if (batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_DURABLE;
        }
    }
}

uint64_t sched__check_all(struct sched_process *process, bool settles)
{
    static struct ledger_view view;
    struct sched *sched = process->sched;

    ledger_on_failure(on_failure, sched);
    if (setjmp(failed) != 0) {
        return 0;
    }
    ledger_check(&sched->ledger, process->store, LEDGER_NO_LOSS, &view);
    ledger_check_counts(process->store);
    note_visible(sched, &view, NULL, NULL);
    for (uint32_t i = 0; i < sched->ledger.session_count && !sched->failed; i++) {
        check_session(process, i, &view);
    }
    if (sched->options.replaces && !sched->failed) {
        sched__check_replaced(process);
    }
    if (settles) {
        settle(sched, &view);
    }
    return view.digest;
}

/* --- ledger --------------------------------------------------------------- */

/*
 * The results that calls returned to the processes, and what follows for what may be seen (sched.h,
 * tests/sim/ledger). Calls go on at the same time: an answer, or being seen, holds from the step of
 * that on.
 *
 * Invariant: what is known of a batch only rises, but for a loss of power, which takes back what
 * was written and not durable.
 */

/* ------------------------------------------------------------ adding --- */

static void begin_op(struct sched_process *process, uint32_t number)
{
    struct sched *sched = process->sched;
    struct ledger_batch *batch = &sched->ledger.batches[number];

    WAL__ASSERT(number < SCHED_OPS);
    batch->begin = sched->steps;
    batch->end = UINT64_MAX;
    batch->known_since = UINT64_MAX;
    batch->durable_since = UINT64_MAX;
    sched->ops[number] = (struct sched_op){0};
    process->op = number;
}

uint32_t sched__op_begin(struct sched_process *process, uint32_t session)
{
    uint32_t number = ledger_add_batch(&process->sched->ledger, session, process->slot);

    begin_op(process, number);
    return number;
}

uint32_t sched__op_begin_fork(struct sched_process *process, uint32_t source, uint32_t at)
{
    struct ledger *ledger = &process->sched->ledger;
    uint32_t session = ledger_add_session(ledger, process->slot, source, at);
    uint32_t number = ledger->sessions[session].batch;

    begin_op(process, number);
    process->sched->ops[number].creates = true;
    return session;
}

/* ----------------------------------------------------------- answers --- */

static void raise_to(struct sched *sched, uint32_t number, enum ledger_state state)
{
    struct ledger_batch *batch = &sched->ledger.batches[number];

    if (batch->state == LEDGER_REFUSED) {
        sched__fail(sched, "batch %u was refused, and is there", number);
        return;
    }
    if (state == LEDGER_DURABLE && batch->state != LEDGER_DURABLE) {
        batch->durable_since = sched->steps;
    }
    batch->state = batch->state > state ? batch->state : state;
    batch->known_since = batch->known_since < sched->steps ? batch->known_since : sched->steps;
}

/* Two appends that expected the same tail cannot both have found it. */
static void check_expected(struct sched *sched, uint32_t number)
{
    const struct ledger *ledger = &sched->ledger;
    const struct ledger_batch *batch = &ledger->batches[number];

    if (!batch->expects || sched->moves_main) {
        return;
    }
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *other = &ledger->batches[i];

        if (i != number && other->expects && other->session == batch->session &&
            other->state >= LEDGER_WRITTEN && other->expected == batch->expected) {
            sched__fail(sched,
                        "batches %u and %u were acknowledged, and both "
                        "expected the tail %d",
                        i, number, (int)batch->expected);
        }
    }
}

static bool is_unknown(enum wal_status status)
{
    return status == WAL_EIO || status == WAL_EPOISONED;
}

void sched__op_end(struct sched_process *process, uint32_t number, enum wal_status status)
{
    struct sched *sched = process->sched;
    struct ledger_batch *batch = &sched->ledger.batches[number];

    batch->end = sched->steps;
    process->op = SCHED_NONE;
    process->again = SCHED_NONE;
    if (status == WAL_OK) {
        sched->ops[number].handle = process->handle;
        raise_to(sched, number, batch->durability == WAL_DURABLE ? LEDGER_DURABLE : LEDGER_WRITTEN);
        check_expected(sched, number);
        sched->counts->outcomes[SCHED_ACKNOWLEDGED]++;
        return;
    }
    if (is_unknown(status)) {
        process->again = number;
        sched->counts->outcomes[SCHED_UNKNOWN]++;
        return;
    }
    if (batch->again) {
        return; /* it speaks of this attempt alone */
    }
    if (batch->state >= LEDGER_WRITTEN) {
        sched__fail(sched, "batch %u answers %d, and was seen", number, status);
    }
    batch->state = LEDGER_REFUSED;
}

static void sched__mark_visible(struct sched *sched, uint32_t number, bool durable)
{
    raise_to(sched, number, durable ? LEDGER_DURABLE : LEDGER_WRITTEN);
}

void sched__mark_durable(struct sched_process *process)
{
    struct sched *sched = process->sched;

    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].handle == process->handle && batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_DURABLE;
            batch->durable_since = sched->steps;
        }
    }
}

void sched__mark_power_loss(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        sched->ops[i].handle = 0;
        if (batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_OPEN;
            batch->known_since = UINT64_MAX;
        }
    }
    sched__replaced_power_loss(sched);
}

/* --------------------------------------------------------- sessions --- */

bool sched__may_exist(const struct sched *sched, uint32_t session)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].creates && batch->session == session && batch->state != LEDGER_REFUSED) {
            return true;
        }
    }
    return false;
}

bool sched__must_exist(const struct sched *sched, uint32_t session, uint64_t since)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].creates && batch->session == session && batch->state >= LEDGER_WRITTEN &&
            batch->known_since <= since) {
            return true;
        }
    }
    return false;
}

/* --- image ---------------------------------------------------------------- */

/*
 * Disks to begin with: made once, then copied for every schedule, each with the ledger of what is
 * on it. Stores with a short tail that is nearly full rotate soon.
 */

enum image {
    IMAGE_NONE,         /* no store yet */
    IMAGE_FRESH,        /* two sessions, closed */
    IMAGE_FULL,         /* a short tail, nearly full, closed */
    IMAGE_KILLED,       /* the same, and its process was killed */
    IMAGE_PREALLOCATED, /* the same, with a preallocated segment */
    IMAGE_TORN,         /* killed in the middle of a write */
    IMAGE_SEALED,       /* rotated, then killed */
    IMAGE_FAILED,       /* a sync failed, and all are gone */
    IMAGES
};

enum { SHORT_CAPACITY = 128 * 1024 };

static struct {
    struct sim_disk *disk;
    struct ledger ledger;
    struct sched_op ops[SCHED_OPS];
    bool may_poison;
} images[IMAGES];

static struct sched maker;

/* ------------------------------------------------------------ making --- */

static void make_open(void)
{
    bool opened = sched__open(&maker.processes[0]);

    WAL__ASSERT(opened && !maker.failed);
}

static void make_close(void)
{
    bool closed = sched__close(&maker.processes[0]);

    WAL__ASSERT(closed && !maker.failed);
}

static void make_kill(void)
{
    sched__remove_process(&maker.processes[0]);
    sched__start(&maker.processes[0]);
}

/* The first segment, not yet begun, is replaced by a short one. */
static void shrink_segment(void)
{
    struct sched_process *process = &maker.processes[0];
    struct wal__segment_header header = {.version = WAL__FORMAT_VERSION,
                                         .id = 1,
                                         .capacity = SHORT_CAPACITY,
                                         .class = WAL__CLASS_LOG,
                                         .salt = 12345};
    struct wal__env env = {.heap = &process->arena.heap, .io = &process->io};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;
    int err = 0;

    make_open();
    memcpy(header.uuid, process->store->core.manifest.uuid, sizeof(header.uuid));
    header.group_align = process->store->core.manifest.group_align;
    wal__encrypt_header(process->store->core.env.keyring, &header);
    make_close();
    memcpy(env.root, SCHED_ROOT, sizeof(SCHED_ROOT));
    status = env.io->unlink(env.io->ctx, SCHED_ROOT "/log/0000000000000001.seg", &err);
    WAL__ASSERT(status == WAL_OK);
    status = wal__segment_preallocate(&env, "log", NULL, &header, SHORT_CAPACITY, NULL, &error);
    WAL__ASSERT(status == WAL_OK);
    make_open();
}

static void make_sessions(uint32_t size, uint32_t count)
{
    struct sched_process *process = &maker.processes[0];

    for (uint32_t i = 0; i < SCHED_SHARED_SESSIONS; i++) {
        sched__create(process, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        sched__append(process, i % SCHED_SHARED_SESSIONS, WAL_DURABLE, size);
    }
    WAL__ASSERT(!maker.failed);
}

/* One more batch, whose write, or the sync of it, fails; nor can it be healed. */
static void make_failure(enum sim_call call)
{
    struct sched_process *process = &maker.processes[0];
    struct sim_fault fault = {.call = call, .path = ".seg", .sys_errno = EIO, .put = 200};
    struct sim_fault unhealed = {
        .call = SIM_OPEN, .path = ".seg.new", .sticky = true, .sys_errno = EIO};

    sched__append(process, 0, WAL_WRITTEN, 300);
    process->failed = true;
    maker.may_poison = true;
    sim_process_add_fault(process->process, &fault);
    sim_process_add_fault(process->process, &unhealed);
    sched__append(process, 1, WAL_DURABLE, 500);
    WAL__ASSERT(!maker.failed && process->poisoned);
    make_kill();
}

static void make_content(enum image image)
{
    struct sched_process *process = &maker.processes[0];

    if (image == IMAGE_NONE) {
        return;
    }
    if (image == IMAGE_FRESH) {
        make_open();
        make_sessions(200, 4);
        make_close();
        return;
    }
    shrink_segment();
    make_sessions(9000, image == IMAGE_SEALED ? 11 : 8);
    switch (image) {
    case IMAGE_FULL:
        make_close();
        return;
    case IMAGE_PREALLOCATED: {
        struct wal__prealloc_job job = {2, SHORT_CAPACITY};
        enum wal_status status = wal__prealloc_create(&process->store->core.log, &job, 0, NULL);

        WAL__ASSERT(status == WAL_OK);
        make_close();
        return;
    }
    case IMAGE_TORN:
        make_failure(SIM_PWRITEV);
        return;
    case IMAGE_FAILED:
        make_failure(SIM_SYNC);
        return;
    case IMAGE_NONE:
    case IMAGE_FRESH:
    case IMAGE_KILLED:
    case IMAGE_SEALED:
    case IMAGES:
        break;
    }
    make_kill();
}

static void make_image(enum image image)
{
    static struct sched_counts counts;

    memset(&maker, 0, sizeof(maker));
    maker.counts = &counts;
    maker.options.processes = 1;
    maker.options.seed = image;
    maker.disk = sim_disk_create(image + 1u);
    maker.watch = sim_process_create(maker.disk);
    maker.processes[0].sched = &maker;
    maker.processes[0].again = SCHED_NONE;
    maker.ledger.counts = true;
    for (uint32_t i = 0; i < SCHED_SHARED_SESSIONS; i++) {
        (void)ledger_add_session(&maker.ledger, 0, SCHED_NONE, SCHED_NONE);
    }
    sched__start(&maker.processes[0]);
    make_content(image);
    sched__remove_process(&maker.processes[0]);
    for (uint32_t i = 0; i < maker.ledger.batch_count; i++) {
        struct ledger_batch *batch = &maker.ledger.batches[i];

        maker.ops[i].handle = 0;
        batch->begin = 0;
        batch->end = 0;
        batch->known_since = batch->state >= LEDGER_WRITTEN ? 0 : UINT64_MAX;
        batch->durable_since = batch->state == LEDGER_DURABLE ? 0 : UINT64_MAX;
    }
    images[image].disk = maker.disk;
    ledger_copy(&images[image].ledger, &maker.ledger);
    memcpy(images[image].ops, maker.ops, sizeof(maker.ops));
    images[image].may_poison = maker.may_poison;
}

/* ------------------------------------------------------------- using --- */

void sched__load_image(struct sched *sched, uint64_t which)
{
    enum image image = (enum image)(which % IMAGES);

    if (images[image].disk == NULL) {
        make_image(image);
    }
    sched->disk = sim_disk_clone(images[image].disk);
    ledger_copy(&sched->ledger, &images[image].ledger);
    memcpy(sched->ops, images[image].ops, sizeof(sched->ops));
    sched->may_poison = images[image].may_poison;
}

void sched__images_free(void)
{
    for (uint32_t i = 0; i < IMAGES; i++) {
        sim_disk_destroy(images[i].disk);
        images[i].disk = NULL;
    }
}

/* --- print ---------------------------------------------------------------- */

/*
 * The counts of a run, and whether everything that must happen did; and the test program around
 * schedules.
 */

enum { SCHEDULES = 2000, SCHEDULES_LONG = 250000 };

static const char *const place_names[SCHED_ACTIVITIES] = {
    [SCHED_ANY_ACTIVITY] = "anywhere",
    [SCHED_OPENING] = "opening",
    [SCHED_RECOVERING] = "in recovery",
    [SCHED_APPEND_LOCK] = "holding the append lock",
    [SCHED_WRITING] = "before a write",
    [SCHED_SYNCING] = "holding the sync lock",
    [SCHED_PREALLOCATING] = "preallocating a segment",
    [SCHED_ROTATING] = "rotating",
    [SCHED_OPEN_UNPUBLISHED] = "a segment begun, not published",
    [SCHED_HEALING] = "healing",
    [SCHED_WAITING] = "waiting for a lock",
    [SCHED_READING] = "reading",
    [SCHED_CLOSING] = "closing",
    [SCHED_CLOSING_LAST] = "closing as the last"};

static const char *const failure_names[SCHED_FAILURES] = {
    [SCHED_FAIL_ONCE] = "a call fails once",
    [SCHED_FAIL_STICKY] = "a call fails from then on",
    [SCHED_FAIL_SYNC] = "a sync drops its pages",
    [SCHED_FAIL_PARTIAL] = "a sync drops some pages",
    [SCHED_FAIL_WRITE] = "a write fails after a part",
    [SCHED_SHORT_WRITE] = "a write is short",
    [SCHED_FAIL_NO_SPACE] = "a call finds no space",
    [SCHED_FULL_DISK] = "the disk is full",
    [SCHED_TORN_WRITE] = "killed in the middle of a write"};

static const char *const outcome_names[SCHED_OUTCOMES] = {
    [SCHED_SCHEDULES] = "schedules",
    [SCHED_STEPS] = "steps",
    [SCHED_SWITCHES] = "switches",
    [SCHED_ROTATIONS] = "segments begun",
    [SCHED_PREALLOCATIONS] = "segments preallocated",
    [SCHED_RECOVERIES] = "recoveries",
    [SCHED_ACKNOWLEDGED] = "acknowledged",
    [SCHED_CONFLICTS] = "tails that had moved",
    [SCHED_STALE] = "documents and heads that had",
    [SCHED_HOLDER_REPORTED] = "stopped holders named",
    [SCHED_OPEN_HOLDER_REPORTED] = "those inside, when opening",
    [SCHED_POISONED] = "answers of poison",
    [SCHED_HEALED] = "healed by an append",
    [SCHED_UNKNOWN] = "answers that leave it open",
    [SCHED_RESENT] = "sent again",
    [SCHED_REFUSED_SPACE] = "refused for want of space",
    [SCHED_FORKS] = "forks",
    [SCHED_READS] = "sessions read",
    [SCHED_READ_ONLY] = "those by a handle to read only",
    [SCHED_BLOBS_READ] = "payloads read from out of line",
    [SCHED_COMPACTED] = "segments compacted",
    [SCHED_COMPACTING] = "compactions while another one ran",
    [SCHED_REPLACEMENTS] = "sessions created again",
    [SCHED_RETENTIONS] = "sessions moved to the trash",
    [SCHED_REMOVAL_CONFLICTS] = "removals of a session that had changed",
    [SCHED_KEPT] = "entries that no removal had seen",
    [SCHED_RESTORED] = "redactions undone",
    [SCHED_GONE] = "those of erased entries"};

static void sched_print(const struct sched_counts *counts)
{
    for (uint32_t i = 0; i < SCHED_OUTCOMES; i++) {
        printf("%12llu %s\n", (unsigned long long)counts->outcomes[i], outcome_names[i]);
    }
    printf("      killed     stopped   power cut\n");
    for (uint32_t i = 0; i < SCHED_ACTIVITIES; i++) {
        printf("%12llu%12llu%12llu  %s\n", (unsigned long long)counts->fault_hits[SCHED_KILL][i],
               (unsigned long long)counts->fault_hits[SCHED_STOP][i],
               (unsigned long long)counts->fault_hits[SCHED_POWER_LOSS][i], place_names[i]);
    }
    for (uint32_t i = 0; i < SCHED_FAILURES; i++) {
        printf("%12llu %s\n", (unsigned long long)counts->failures[i], failure_names[i]);
    }
    for (int i = SIM_ANY + 1; i < SIM_STORE_CALLS; i++) {
        printf("%12llu failed: %s\n", (unsigned long long)counts->calls[i],
               sim_call_name((enum sim_call)i));
    }
}

static uint32_t report_zero(uint64_t count, const char *what, const char *name)
{
    if (count != 0) {
        return 0;
    }
    printf("never happened: %s%s\n", what, name);
    return 1;
}

/* How many of what must happen with these options never did; each is printed.
 */
static uint32_t sched_print_uncovered(const struct sched_counts *counts,
                                      const struct sched_options *options)
{
    bool heals = options->append_heals;
    static const char *const fault_names[SCHED_FAULTS] = {
        [SCHED_KILL] = "killed ", [SCHED_STOP] = "stopped ", [SCHED_POWER_LOSS] = "power cut "};
    uint32_t missing = 0;

    for (uint32_t i = 0; i < SCHED_FAULTS; i++) {
        for (uint32_t j = 0; j < SCHED_ACTIVITIES; j++) {
            if (j != SCHED_HEALING || heals) {
                missing += report_zero(counts->fault_hits[i][j], fault_names[i], place_names[j]);
            }
        }
    }
    for (uint32_t i = 0; i < SCHED_FAILURES; i++) {
        missing += report_zero(counts->failures[i], "", failure_names[i]);
    }
    for (int i = SIM_ANY + 1; i < SIM_STORE_CALLS; i++) {
        missing += report_zero(counts->calls[i], "failed: ", sim_call_name((enum sim_call)i));
    }
    for (uint32_t i = 0; i < SCHED_OUTCOMES; i++) {
        if ((i != SCHED_HEALED || heals) && (i != SCHED_BLOBS_READ || options->with_blobs) &&
            ((i != SCHED_COMPACTED && i != SCHED_COMPACTING) || options->compacts) &&
            (i < SCHED_REPLACEMENTS || i >= SCHED_RESTORED || options->replaces) &&
            (i < SCHED_RESTORED || options->restores)) {
            missing += report_zero(counts->outcomes[i], "", outcome_names[i]);
        }
    }
    return missing;
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

/* The schedule `number` of a program, from 1. */
static bool run_named(const char *name, const struct sched_options *options, uint64_t number,
                      struct sched_counts *counts)
{
    bool is_complete;

    sched__seed_report_begin(name, options->seed, number);
    is_complete = sched_run(options, counts);
    sched__seed_report_end();
    return is_complete;
}

int sched_main(const char *name, const struct sched_options *options)
{
    static struct sched_counts counts;
    const char *given = getenv("AGENTWAL_SEED");
    struct sched_options one = *options;
    /* Contents take their time to digest. */
    uint64_t few = options->with_blobs ? SCHEDULES / 2 : SCHEDULES;
    bool is_long = is_set("AGENTWAL_LONG");
    uint64_t count = is_long ? SCHEDULES_LONG : WITH_ADDRESS_SANITIZER ? few / 4 : few;
    bool is_complete = true;

    one.append_heals = one.append_heals || is_set("AGENTWAL_HEALS");
    sched__seed_report_install();
    if (given != NULL) {
        one.seed = strtoull(given, NULL, 0);
        one.prints_trace = true;
        is_complete = run_named(name, &one, 1, &counts);
    }
    for (uint64_t i = 0; given == NULL && is_complete && i < count; i++) {
        one.seed =
            i < options->known_count ? options->known[i] : options->seed + i - options->known_count;
        is_complete = run_named(name, &one, i + 1, &counts);
    }
    sched_finish();
    if (!is_complete) {
        printf("%s failed; AGENTWAL_SEED=%llu sim_sched %s runs it again\n", name,
               (unsigned long long)one.seed, name);
        return 1;
    }
    if (given != NULL) {
        return 0;
    }
    sched_print(&counts);
    if (count < few) {
        return 0; /* too few for everything to happen */
    }
    return sched_print_uncovered(&counts, &one) == 0 ? 0 : 1;
}
