/*
 * locks.c - the lock bytes of LOCK, and what their holders say in the control page (SPEC.md 4.1).
 * Those of opening are in control.c.
 *
 * A lock is a byte of the file, locked by an open file description: the kernel releases it with its
 * holder, however that dies, and it alone decides. What the page says of it is for those that wait:
 * who holds it, and a word to sleep on. Nothing there is needed for safety, and everything may be
 * late.
 *
 * Three locks of each log are waited for: append, sync and preallocation. A waiter counts itself,
 * tries once more, and sleeps on the wait word; the holder unlocks first and then looks at the
 * count, so that no wakeup is lost; and it looks every 5 ms in any case. A holder that runs gets 20
 * times the lock timeout, a stopped one gets it once, one whose name is not there twice.
 *
 * The sync lock is different: a process that is stopped while it syncs must not keep all others
 * from being durable. So it has a byte for each round, and a waiter whose wait ends begins the next
 * round, after it has poisoned the log. The former holder may continue at any time (sync.c says why
 * that is harmless).
 *
 * The others are tried, never waited for: those of compaction, of shipping and of a session. Guards
 * of content are shared by all who are about to name content of the pack, and only a compaction of
 * the pack waits for them.
 *
 * Invariants: the holder's process id is in the page while an append, sync or preallocation lock is
 * held, except between the two system calls around it. While guards[i] is not 0 this process shares
 * the byte of guard i, until it closes the file; a guard holds the byte of the round that the page
 * had after the byte was locked. A slot of a claim is valid while its process lives and the byte is
 * locked.
 */
#include "engine/log/locks.h"

#include <inttypes.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    POLL_INTERVAL_NS = 5000000, /* between two tries for a lock */
    IDLE_NS_MIN = 10000000,     /* that a holder is seen stopped */
    RUNNING_FACTOR = 20,        /* times the lock timeout, while the holder runs */
    PAUSE_NS = 1000000,         /* between two looks at a guard or a claim */
    ENTER_ATTEMPTS = 1000,      /* each meets the end of a wait: it lasts no time */
    HOLDER_POLLS_MAX = 20
};

static const uint64_t guard_wait_max_ns = UINT64_C(10000000000);

/* Sleeps between two looks at what nobody announces. */
static void pause_briefly(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    const uint32_t never_woken = 0;

    io->futex_wait(io->ctx, &never_woken, 0, PAUSE_NS);
}

/* --- the locks of a log ------------------------------------------------- */

static enum wal__wait_queue wait_queue_of(uint64_t byte)
{
    if (byte >= WAL__LOCK_PREALLOC) {
        return WAL__WAIT_PREALLOC;
    }
    return byte >= WAL__LOCK_SYNC ? WAL__WAIT_SYNC : WAL__WAIT_APPEND;
}

static struct wal__wait_word *wait_word_of(struct wal__control *control, uint64_t byte,
                                           uint32_t log_id)
{
    WAL__ASSERT(byte >= WAL__LOCK_APPEND && log_id < WAL__LOG_COUNT);
    return &control->page->logs[log_id].wait_words[wait_queue_of(byte)];
}

/* Returns the word of the control page that names the lock's holder. */
static _Atomic uint32_t *holder_of(struct wal__control *control, uint64_t byte, uint32_t log_id)
{
    struct wal__control_log *shared = &control->page->logs[log_id];

    switch (wait_queue_of(byte)) {
    case WAL__WAIT_PREALLOC:
        return &shared->prealloc_holder;
    case WAL__WAIT_SYNC:
        return &shared->sync_holder;
    case WAL__WAIT_APPEND:
    case WAL__WAIT_COUNT:
    default:
        return &shared->append_holder;
    }
}

/* Returns whether the holder that the page names is a process that runs. */
static bool holder_runs(struct wal__control *control, uint64_t byte, uint32_t log_id)
{
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));

    return holder != 0 && wal__control_start_time(control, holder) != 0 &&
           !wal__control_is_stopped(control, holder);
}

static enum wal_status fail_locked(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                   struct wal_error *error)
{
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));
    enum wal_status status =
        holder == 0 ? wal__fail_at(error, WAL_ELOCKED, 0, control->path, byte,
                                   "another process holds the store's lock")
                    : wal__fail_at(error, WAL_ELOCKED, 0, control->path, byte,
                                   "process %u holds the store's lock; it may be stopped: "
                                   "continue or end it",
                                   holder);

    wal__error_set_holder(error, (int32_t)holder);
    return status;
}

/* Returns the byte of the sync lock in a round. */
static uint64_t sync_byte(uint32_t log_id, uint32_t round)
{
    return WAL__LOCK_SYNC + log_id + (uint64_t)(round % WAL__SYNC_ROUNDS) * WAL__LOCK_SYNC_STRIDE;
}

/* Tries once to lock the byte of the present round. The round is read again under the lock: it is
 * not held by a process that was late. */
static enum wal_status try_sync_byte(struct wal__control *control, uint32_t log_id, int *err)
{
    const struct wal__control_log *shared = &control->page->logs[log_id];

    for (;;) {
        uint32_t round = atomic_load(&shared->sync_round);
        uint64_t byte = sync_byte(log_id, round);
        enum wal_status status = wal__control_set_lock(control, byte, WAL__IO_LOCK_EXCLUSIVE, err);

        if (status != WAL_OK) {
            return status;
        }
        if (atomic_load(&shared->sync_round) == round) {
            control->sync_round[log_id] = round;
            return WAL_OK;
        }
        status = wal__control_set_lock(control, byte, WAL__IO_LOCK_NONE, err);
        if (status != WAL_OK) {
            return status;
        }
    }
}

enum wal_status wal__control_try_lock(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                      int *err)
{
    enum wal_status status;

    WAL__ASSERT(byte >= WAL__LOCK_APPEND && log_id < WAL__LOG_COUNT);
    WAL__ASSERT(byte % 8 == log_id);
    status = byte == WAL__LOCK_SYNC + log_id
                 ? try_sync_byte(control, log_id, err)
                 : wal__control_set_lock(control, byte, WAL__IO_LOCK_EXCLUSIVE, err);
    if (status != WAL_OK) {
        return status;
    }
    atomic_store(holder_of(control, byte, log_id), control->process_id);
    if (byte == WAL__LOCK_APPEND + log_id) {
        atomic_store(&control->page->logs[log_id].holder_start, control->process_start_time);
    }
    return WAL_OK;
}

/* Tries once to lock, unless the durable end has reached the position. */
static enum wal_status try_lock_unless_durable(struct wal__control *control, uint64_t byte,
                                               uint32_t log_id, uint64_t position, int *err)
{
    if (atomic_load(&control->page->logs[log_id].durable) >= position) {
        return WAL_END;
    }
    return wal__control_try_lock(control, byte, log_id, err);
}

/* A wait for a lock. */
struct wait {
    uint64_t since_ns;
    /* Since when each look, after the lock timeout, found this holder not to run; 0: it runs. */
    uint64_t idle_since_ns;
    uint32_t idle_holder;
};

/* Returns whether the wait has expired: after the lock timeout, unless the holder runs. It may be
 * slow, and to be refused for that helps nobody. One look does not suffice: a holder may be about
 * to publish its name. Where the name is of nobody it is given the lock timeout for that: on a busy
 * machine it may have no processor for long. */
static bool wait_is_over(struct wal__control *control, uint64_t byte, uint32_t log_id,
                         struct wait *wait)
{
    const struct wal__io *io = control->env->io;
    uint64_t timeout_ns = (uint64_t)control->env->lock_timeout_ms * 1000000;
    uint64_t now = io->monotonic_ns(io->ctx);
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));
    uint64_t idle_ns = wal__control_is_stopped(control, holder) ? IDLE_NS_MIN : timeout_ns;

    if (now - wait->since_ns < timeout_ns) {
        return false;
    }
    if (holder_runs(control, byte, log_id)) {
        wait->idle_since_ns = 0;
    } else if (wait->idle_since_ns == 0 || wait->idle_holder != holder) {
        wait->idle_since_ns = now;
        wait->idle_holder = holder;
    }
    return now - wait->since_ns >= timeout_ns * RUNNING_FACTOR ||
           (wait->idle_since_ns != 0 && now - wait->idle_since_ns >= idle_ns);
}

/* Tries until the wait expires. The wait word is read before each try, so that an unlock in between
 * ends the wait. */
static enum wal_status wait_for_lock(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                     uint64_t position, int *err)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    struct wait wait = {.since_ns = io->monotonic_ns(io->ctx)};

    for (;;) {
        uint32_t seen = atomic_load(&wait_word->word);
        enum wal_status status = try_lock_unless_durable(control, byte, log_id, position, err);

        if (status != WAL_ELOCKED || wait_is_over(control, byte, log_id, &wait)) {
            return status;
        }
        io->futex_wait(io->ctx, (const uint32_t *)&wait_word->word, seen, POLL_INTERVAL_NS);
    }
}

enum wal_status wal__control_lock_unless_durable(struct wal__control *control, uint64_t byte,
                                                 uint32_t log_id, uint64_t position,
                                                 struct wal_error *error)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    enum wal_status status;
    int err = 0;

    status = try_lock_unless_durable(control, byte, log_id, position, &err);
    if (status == WAL_ELOCKED) {
        /* A process that unlocks from here on sees the waiter. */
        atomic_fetch_add(&wait_word->waiters, 1);
        status = wait_for_lock(control, byte, log_id, position, &err);
        atomic_fetch_sub(&wait_word->waiters, 1);
    }
    if (status == WAL_OK || status == WAL_END) {
        return status;
    }
    if (status == WAL_ELOCKED) {
        return fail_locked(control, byte, log_id, error);
    }
    return wal__fail_at(error, status, err, control->path, byte, "cannot lock byte %" PRIu64, byte);
}

enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                  struct wal_error *error)
{
    return wal__control_lock_unless_durable(control, byte, log_id, UINT64_MAX, error);
}

bool wal__control_take_over_sync_lock(struct wal__control *control, uint32_t log_id)
{
    struct wal__control_log *shared = &control->page->logs[log_id];
    uint64_t byte = WAL__LOCK_SYNC + log_id;
    uint32_t round = atomic_load(&shared->sync_round);
    uint32_t holder = atomic_load(&shared->sync_holder);

    if (holder_runs(control, byte, log_id)) {
        return false;
    }
    /* Before the round: the next holder must not trust a sync. */
    wal__control_poison(shared, WAL__POISON_STOPPED, holder);
    (void)atomic_compare_exchange_strong(&shared->sync_round, &round, round + 1);
    return true;
}

bool wal__control_has_waiters(struct wal__control *control, uint64_t byte, uint32_t log_id)
{
    return atomic_load(&wait_word_of(control, byte, log_id)->waiters) != 0;
}

void wal__control_unlock(struct wal__control *control, uint64_t byte, uint32_t log_id)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    enum wal__wait_queue queue = wait_queue_of(byte);
    _Atomic uint32_t *holder = holder_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    uint32_t own = control->process_id;
    int ignored = 0;

    WAL__ASSERT(byte % 8 == log_id);
    /* Another process may have taken the sync lock over. */
    (void)atomic_compare_exchange_strong(holder, &own, 0);
    if (byte == WAL__LOCK_SYNC + log_id) {
        byte = sync_byte(log_id, control->sync_round[log_id]);
    }
    /* A lock that the kernel does not release now is released with the file; until then other
     * processes report its holder. */
    (void)!wal__control_set_lock(control, byte, WAL__IO_LOCK_NONE, &ignored);
    if (atomic_load(&wait_word->waiters) != 0) {
        atomic_fetch_add(&wait_word->word, 1);
        io->futex_wake(io->ctx, (const uint32_t *)&wait_word->word,
                       queue == WAL__WAIT_SYNC ? UINT32_MAX : 1);
    }
}

/* --- the compaction lock ------------------------------------------------ */

enum wal_status wal__compact_lock_refused(const struct wal__control *control, uint32_t holder,
                                          struct wal_error *error)
{
    enum wal_status status = holder == 0
                                 ? wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                                                "another process compacts the store, or backs "
                                                "it up")
                                 : wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                                                "process %u compacts the store", holder);

    wal__error_set_holder(error, (int32_t)holder);
    return status;
}

enum wal_status wal__compact_lock_acquire(struct wal__control *control, struct wal_error *error)
{
    struct wal__control_page *page = control->file_page;
    int err = 0;
    enum wal_status status =
        wal__control_set_lock(control, WAL__LOCK_COMPACT, WAL__IO_LOCK_EXCLUSIVE, &err);

    if (status == WAL_ELOCKED) {
        return wal__compact_lock_refused(
            control, page == NULL ? 0 : wal__lock_owner_find(control, &page->compact_owner), error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, WAL__LOCK_COMPACT,
                            "cannot lock the compaction");
    }
    if (page != NULL) {
        wal__lock_owner_publish(control, &page->compact_owner);
    }
    return WAL_OK;
}

void wal__compact_lock_release(struct wal__control *control)
{
    int ignored = 0;

    if (control->file_page != NULL) {
        atomic_store(&control->file_page->compact_owner.process, 0);
    }
    /* A lock that the kernel does not release now is released with the file. */
    (void)!wal__control_set_lock(control, WAL__LOCK_COMPACT, WAL__IO_LOCK_NONE, &ignored);
}

/* --- guards of content -------------------------------------------------- */

static uint64_t guard_byte(uint32_t round)
{
    return WAL__LOCK_CONTENT + (round & 1);
}

/* Releases a guard of the round. */
static void drop_guard(struct wal__control *control, uint32_t round)
{
    int ignored = 0;

    WAL__ASSERT(control->guards[round & 1] > 0);
    control->guards[round & 1]--;
    if (control->guards[round & 1] == 0 && control->file != NULL) {
        /* A byte that the kernel keeps only makes a compaction wait. */
        (void)!wal__control_set_lock(control, guard_byte(round), WAL__IO_LOCK_NONE, &ignored);
    }
}

/* Tries to take a guard of the present round. WAL_ELOCKED: a compaction has just begun the next
 * one. */
static enum wal_status try_take_guard(struct wal__control *control, uint32_t *round, int *err)
{
    enum wal_status status = WAL_OK;

    *round = atomic_load(&control->page->content_round);
    if (control->guards[*round & 1] == 0) {
        status = wal__control_set_lock(control, guard_byte(*round), WAL__IO_LOCK_SHARED, err);
    }
    if (status != WAL_OK) {
        return status;
    }
    control->guards[*round & 1]++;
    if (atomic_load(&control->page->content_round) != *round) {
        drop_guard(control, *round);
        return WAL_ELOCKED;
    }
    return WAL_OK;
}

enum wal_status wal__content_guard_enter(struct wal__content_guard *guard,
                                         struct wal__control *control, struct wal_error *error)
{
    enum wal_status status = WAL_ELOCKED;
    int err = 0;

    if (guard->control != NULL) {
        return WAL_OK;
    }
    for (int i = 0; i < ENTER_ATTEMPTS && status == WAL_ELOCKED; i++) {
        if (i > 0) {
            pause_briefly(control);
        }
        pthread_mutex_lock(&control->guard_mutex);
        status = try_take_guard(control, &guard->round, &err);
        pthread_mutex_unlock(&control->guard_mutex);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, WAL__LOCK_CONTENT,
                            "cannot guard content");
    }
    guard->control = control;
    return WAL_OK;
}

void wal__content_guard_leave(struct wal__content_guard *guard)
{
    struct wal__control *control = guard->control;

    if (control == NULL) {
        return;
    }
    pthread_mutex_lock(&control->guard_mutex);
    drop_guard(control, guard->round);
    pthread_mutex_unlock(&control->guard_mutex);
    guard->control = NULL;
}

bool wal__content_guard_is_held(struct wal__control *control)
{
    bool is_held;

    pthread_mutex_lock(&control->guard_mutex);
    is_held = control->guards[0] + control->guards[1] > 0;
    pthread_mutex_unlock(&control->guard_mutex);
    return is_held;
}

/* Returns whether nobody holds a guard of rounds like this one. *is_own: a thread of this process
 * does. */
static enum wal_status try_drain_guards(struct wal__control *control, uint32_t round, bool *is_own,
                                        int *err)
{
    enum wal_status status = WAL_ELOCKED;
    int ignored = 0;

    pthread_mutex_lock(&control->guard_mutex);
    *is_own = control->guards[round & 1] > 0;
    if (!*is_own) {
        status = wal__control_set_lock(control, guard_byte(round), WAL__IO_LOCK_EXCLUSIVE, err);
    }
    if (status == WAL_OK) {
        (void)!wal__control_set_lock(control, guard_byte(round), WAL__IO_LOCK_NONE, &ignored);
    }
    pthread_mutex_unlock(&control->guard_mutex);
    return status;
}

static enum wal_status drain_guards(struct wal__control *control, uint32_t round,
                                    struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t deadline = io->monotonic_ns(io->ctx) + guard_wait_max_ns;
    bool is_own = false;
    int err = 0;
    enum wal_status status = try_drain_guards(control, round, &is_own, &err);

    while (status == WAL_ELOCKED && io->monotonic_ns(io->ctx) < deadline) {
        pause_briefly(control);
        status = try_drain_guards(control, round, &is_own, &err);
    }
    if (status == WAL_ELOCKED) {
        status = wal__fail_at(error, status, 0, control->path, guard_byte(round),
                              "%s is still storing content, such as a checkpoint: try again",
                              is_own ? "another thread" : "another process");
        wal__error_set_holder(error, is_own ? (int32_t)control->process_id : 0);
        return status;
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, control->path, guard_byte(round),
                                           "cannot wait for guards of content");
}

enum wal_status wal__content_condemn(struct wal__control *control, uint64_t last_id,
                                     struct wal_error *error)
{
    struct wal__control_page *page = control->page;
    uint32_t round = atomic_load(&page->content_round);
    /* The guards of a round for which an earlier compaction did not wait long enough. */
    enum wal_status status = drain_guards(control, round + 1, error);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(last_id > 0);
    atomic_store(&page->condemned_id, last_id);
    atomic_store(&page->content_round, round + 1);
    status = drain_guards(control, round, error);
    if (status != WAL_OK) {
        wal__content_absolve(control);
    }
    return status;
}

void wal__content_absolve(struct wal__control *control)
{
    atomic_store(&control->page->condemned_id, 0);
}

uint64_t wal__content_condemned(const struct wal__control *control)
{
    return atomic_load(&control->page->condemned_id);
}

/* --- claims of sessions ------------------------------------------------- */

static uint64_t encode_owner(uint32_t session, uint32_t process_id)
{
    return (uint64_t)session << 32 | process_id;
}

/* Returns whether the process of a slot lives, and is the one that wrote it. */
static bool is_alive(const struct wal__control *control, uint64_t name, uint64_t start)
{
    uint64_t now = wal__control_start_time(control, (uint32_t)name);

    return now == start || now == UINT64_MAX;
}

/* Returns the process that claims the session, or 0. */
static uint32_t find_holder(const struct wal__control *control, uint32_t session)
{
    for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
        struct wal__control_claim *claim = &control->page->claims[i];
        uint64_t start = atomic_load(&claim->start);
        uint64_t name = atomic_load(&claim->session_and_pid);

        if (start != 0 && name >> 32 == session && is_alive(control, name, start)) {
            return (uint32_t)name;
        }
    }
    return 0;
}

enum wal_status wal__control_claim_refused(int32_t holder, struct wal_error *error)
{
    enum wal_status status;

    status = holder == 0
                 ? wal__fail(error, WAL_ECLAIMED, "another process claims the session")
                 : wal__fail(error, WAL_ECLAIMED, "process %d claims the session", (int)holder);
    wal__error_set_holder(error, holder);
    return status;
}

/* Waits briefly for the name: the holder locks the byte, then writes it. */
static enum wal_status fail_claimed(struct wal__control *control, uint32_t session,
                                    struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint32_t holder = find_holder(control, session);
    const uint32_t never_woken = 0;

    for (int i = 0; holder == 0 && i < HOLDER_POLLS_MAX; i++) {
        io->futex_wait(io->ctx, &never_woken, 0, PAUSE_NS);
        holder = find_holder(control, session);
    }
    return wal__control_claim_refused((int32_t)holder, error);
}

static bool is_own(const struct wal__control *control, uint64_t name, uint64_t start)
{
    return (uint32_t)name == control->process_id && start == control->process_start_time;
}

/* Returns whether the slot can be used: it is free, names this session, whose byte this process has
 * locked, or with reuse_dead names a session whose byte no process has locked. */
static bool is_usable(const struct wal__control *control, const struct wal__control_claim *claim,
                      uint64_t start, uint32_t session, bool reuse_dead)
{
    const struct wal__io *io = control->env->io;
    uint64_t name = atomic_load(&claim->session_and_pid);
    int ignored = 0;

    return start == 0 || name >> 32 == session ||
           (reuse_dead && !is_own(control, name, start) &&
            io->lock(io->ctx, control->file, WAL__LOCK_CLAIM + (name >> 32), WAL__IO_LOCK_TEST,
                     &ignored) == WAL_OK);
}

static bool acquire_slot(struct wal__control *control, uint32_t session, bool reuse_dead,
                         uint32_t *slot)
{
    WAL__ASSERT(control->page == control->file_page);
    for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
        struct wal__control_claim *claim = &control->page->claims[i];
        uint64_t start = atomic_load(&claim->start);

        if (is_usable(control, claim, start, session, reuse_dead) &&
            atomic_compare_exchange_strong(&claim->start, &start, control->process_start_time)) {
            atomic_store(&claim->session_and_pid, encode_owner(session, control->process_id));
            *slot = i;
            return true;
        }
    }
    return false;
}

enum wal_status wal__control_claim(struct wal__control *control, uint32_t session, uint32_t *slot,
                                   struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t byte = WAL__LOCK_CLAIM + session;
    enum wal_status status;
    int err = 0;

    status = io->lock(io->ctx, control->file, byte, WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status == WAL_ELOCKED) {
        return fail_claimed(control, session, error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, byte,
                            "cannot lock the byte of the session");
    }
    if (acquire_slot(control, session, false, slot) || acquire_slot(control, session, true, slot)) {
        return WAL_OK;
    }
    (void)!io->lock(io->ctx, control->file, byte, WAL__IO_LOCK_NONE, &err);
    return wal__fail_at(error, WAL_ELIMIT, 0, control->path, 0,
                        "%d sessions of the store are claimed, there is no room for another "
                        "claim: release one",
                        (int)WAL__CLAIMS);
}

void wal__control_release_claim(struct wal__control *control, uint32_t session, uint32_t slot)
{
    const struct wal__io *io = control->env->io;
    struct wal__control_claim *claim = &control->page->claims[slot];
    uint64_t name = encode_owner(session, control->process_id);
    int ignored = 0;

    WAL__ASSERT(slot < WAL__CLAIMS);
    /* Unless another process took the slot: clears the name, then frees it. */
    if (atomic_compare_exchange_strong(&claim->session_and_pid, &name, 0)) {
        atomic_store(&claim->start, 0);
    }
    (void)!io->lock(io->ctx, control->file, WAL__LOCK_CLAIM + session, WAL__IO_LOCK_NONE, &ignored);
}

/* Returns whether an open file has locked the session's byte. `file` is another open of LOCK than
 * the store's, so that the store's own locks conflict with it. */
static enum wal_status test_byte(const struct wal__control *control, struct wal__file *file,
                                 uint32_t session, bool *locked, struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t byte = WAL__LOCK_CLAIM + session;
    int err = 0;
    enum wal_status status = io->lock(io->ctx, file, byte, WAL__IO_LOCK_TEST, &err);

    *locked = status == WAL_ELOCKED;
    return status == WAL_OK || status == WAL_ELOCKED
               ? WAL_OK
               : wal__fail_at(error, status, err, control->path, byte,
                              "cannot test the lock of a session");
}

/* Adds the holder. The slot of a dead process may name a session that a live one has claimed since:
 * its slot has the process. */
static void add_holder(struct wal__claim_holder out[WAL__CLAIMS], uint32_t *count,
                       struct wal__claim_holder holder)
{
    uint32_t i = 0;

    while (i < *count && out[i].session != holder.session) {
        i++;
    }
    WAL__ASSERT(i < WAL__CLAIMS);
    if (i == *count) {
        out[(*count)++] = holder;
    } else if (out[i].process_id == 0) {
        out[i] = holder;
    }
}

static enum wal_status list_slots(const struct wal__control *control, struct wal__file *file,
                                  const struct wal__control_page *page,
                                  struct wal__claim_holder out[WAL__CLAIMS], uint32_t *count,
                                  struct wal_error *error)
{
    for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
        uint64_t start = atomic_load(&page->claims[i].start);
        uint64_t name = atomic_load(&page->claims[i].session_and_pid);
        struct wal__claim_holder holder = {.session = (uint32_t)(name >> 32)};
        bool locked = false;
        enum wal_status status;

        if (start == 0 || name == 0) {
            continue;
        }
        status = test_byte(control, file, holder.session, &locked, error);
        if (status != WAL_OK) {
            return status;
        }
        if (is_alive(control, name, start)) {
            holder.process_id = (uint32_t)name;
            holder.is_own = is_own(control, name, start);
        }
        if (locked) {
            add_holder(out, count, holder);
        }
    }
    return WAL_OK;
}

/* Maps the page of an open LOCK, which has none before the first opener made it. */
static enum wal_status list_file(const struct wal__control *control, struct wal__file *file,
                                 struct wal__claim_holder out[WAL__CLAIMS], uint32_t *count,
                                 struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    enum wal_status status;
    void *page = NULL;
    int err = 0;

    status = io->stat(io->ctx, file, &stat, &err);
    if (status == WAL_OK && stat.size < WAL__CONTROL_SIZE) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = io->map(io->ctx, file, WAL__CONTROL_SIZE, false, &page, &err);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, 0,
                            "cannot read the claims of sessions");
    }
    status = list_slots(control, file, page, out, count, error);
    io->unmap(io->ctx, page, WAL__CONTROL_SIZE);
    return status;
}

enum wal_status wal__control_list_claims(const struct wal__control *control,
                                         struct wal__claim_holder out[WAL__CLAIMS], uint32_t *count,
                                         struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    struct wal__file *file = NULL;
    enum wal_status status = WAL_OK;
    int err = 0;

    *count = 0;
    if (control->file != NULL) {
        status = wal__control_check_lock_file(control, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = io->open(io->ctx, control->path, 0, &file, &err);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK; /* no process has the store open */
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, 0,
                            "cannot open the lock file to list the claims");
    }
    status = list_file(control, file, out, count, error);
    io->close(io->ctx, file);
    return status;
}

/* --- shipping ----------------------------------------------------------- */

enum wal_status wal__shipping_begin(struct wal__control *control, struct wal_error *error)
{
    struct wal__control_shipping *shipping = &control->page->shipping;
    int err = 0;
    enum wal_status status;

    WAL__ASSERT(control->page == control->file_page);
    status = wal__control_set_lock(control, WAL__LOCK_SHIPPING, WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status != WAL_OK) {
        return status == WAL_ELOCKED ? wal__fail_at(error, status, 0, control->path, 0,
                                                    "another process ships the store")
                                     : wal__fail_at(error, status, err, control->path,
                                                    WAL__LOCK_SHIPPING, "cannot lock the shipping");
    }
    /* The process before may have shipped to another place. */
    atomic_store(&shipping->sequence, 0);
    atomic_store(&shipping->status, WAL_OK);
    return WAL_OK;
}

void wal__shipping_end(struct wal__control *control)
{
    int ignored = 0;

    (void)!wal__control_set_lock(control, WAL__LOCK_SHIPPING, WAL__IO_LOCK_NONE, &ignored);
    /* Those that wait find that nothing ships. */
    wal__shipping_report(control, atomic_load(&control->page->shipping.sequence), WAL_OK);
}

void wal__shipping_report(struct wal__control *control, uint64_t sequence, enum wal_status status)
{
    struct wal__control_shipping *shipping = &control->page->shipping;
    uint32_t seen;

    if (status != WAL_OK) {
        atomic_store(&shipping->status, status);
        atomic_fetch_add(&shipping->failures, 1);
    }
    atomic_store(&shipping->sequence, sequence);
    seen = atomic_load(&shipping->word);
    if (seen % 2 == 1 && atomic_compare_exchange_strong(&shipping->word, &seen, seen + 1)) {
        control->env->io->futex_wake(control->env->io->ctx, (const uint32_t *)&shipping->word,
                                     UINT32_MAX);
    }
}

void wal__shipping_read(struct wal__control *control, struct wal__shipping_state *state)
{
    struct wal__control_shipping *shipping = &control->page->shipping;

    state->word = (const uint32_t *)&shipping->word;
    state->expected = atomic_fetch_or(&shipping->word, 1) | 1;
    state->sequence = atomic_load(&shipping->sequence);
    state->failures = atomic_load(&shipping->failures);
    state->status = (enum wal_status)atomic_load(&shipping->status);
}

enum wal_status wal__shipping_test(struct wal__control *control, bool *ships,
                                   struct wal_error *error)
{
    int err = 0;
    enum wal_status status =
        wal__control_set_lock(control, WAL__LOCK_SHIPPING, WAL__IO_LOCK_TEST, &err);

    *ships = status == WAL_ELOCKED;
    return status == WAL_OK || status == WAL_ELOCKED
               ? WAL_OK
               : wal__fail_at(error, status, err, control->path, WAL__LOCK_SHIPPING,
                              "cannot test whether a process ships the store");
}
