/*
 * claim_table.c - session claims (SPEC.md 4.1): a lock byte for each session
 * number, and the holder's process in the control page for error messages.
 *
 * Invariant: the lock byte alone decides whether a session is claimed. A slot
 * is valid while its process lives and the byte is locked. Any thread; the
 * caller ensures that one open file claims a session once.
 */
#include "engine/base/error.h"
#include "engine/log/control.h"
#include "format/bytes/assert.h"

enum {
    HOLDER_POLLS_MAX = 20,
    POLL_INTERVAL_NS = 1000000
};

static uint64_t encode_owner(uint32_t session, uint32_t process_id)
{
    return (uint64_t)session << 32 | process_id;
}

/* Whether the process of a slot lives, and is the one that wrote it. */
static bool is_alive(const struct wal__control *control, uint64_t name,
                     uint64_t start)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->process_start_time(io->ctx, (uint32_t)name);

    return now == start || now == UINT64_MAX;
}

/* Returns the process that claims the session, or 0. */
static uint32_t find_holder(const struct wal__control *control,
                            uint32_t session)
{
    for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
        struct wal__control_claim *claim = &control->page->claims[i];
        uint64_t start = atomic_load(&claim->start);
        uint64_t name = atomic_load(&claim->session_and_pid);

        if (start != 0 && name >> 32 == session &&
            is_alive(control, name, start)) {
            return (uint32_t)name;
        }
    }
    return 0;
}

enum wal_status wal__control_claim_refused(int32_t holder,
                                           struct wal_error *error)
{
    enum wal_status status;

    status = holder == 0
                 ? wal__fail(error, WAL_ECLAIMED,
                             "another process claims the session")
                 : wal__fail(error, WAL_ECLAIMED,
                             "process %d claims the session", (int)holder);
    wal__error_set_holder(error, holder);
    return status;
}

/* Waits briefly for the name: the holder locks the byte, then writes it. */
static enum wal_status fail_claimed(struct wal__control *control,
                                    uint32_t session, struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint32_t holder = find_holder(control, session);
    const uint32_t never_woken = 0;

    for (int i = 0; holder == 0 && i < HOLDER_POLLS_MAX; i++) {
        io->futex_wait(io->ctx, &never_woken, 0, POLL_INTERVAL_NS);
        holder = find_holder(control, session);
    }
    return wal__control_claim_refused((int32_t)holder, error);
}

/* Whether the slot can be used: it is free, names this session, whose byte this
 * process has locked, or with reuse_dead names a dead process. */
static bool is_usable(const struct wal__control *control,
                      const struct wal__control_claim *claim, uint64_t start,
                      uint32_t session, bool reuse_dead)
{
    uint64_t name = atomic_load(&claim->session_and_pid);

    return start == 0 || name >> 32 == session ||
           (reuse_dead && !is_alive(control, name, start));
}

static bool acquire_slot(struct wal__control *control, uint32_t session,
                         bool reuse_dead, uint32_t *slot)
{
    WAL__ASSERT(control->page == control->file_page);
    for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
        struct wal__control_claim *claim = &control->page->claims[i];
        uint64_t start = atomic_load(&claim->start);

        if (is_usable(control, claim, start, session, reuse_dead) &&
            atomic_compare_exchange_strong(&claim->start, &start,
                                           control->process_start_time)) {
            atomic_store(&claim->session_and_pid,
                         encode_owner(session, control->process_id));
            *slot = i;
            return true;
        }
    }
    return false;
}

enum wal_status wal__control_claim(struct wal__control *control,
                                   uint32_t session, uint32_t *slot,
                                   struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t byte = WAL__LOCK_CLAIM + session;
    enum wal_status status;
    int err = 0;

    status =
        io->lock(io->ctx, control->file, byte, WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status == WAL_ELOCKED) {
        return fail_claimed(control, session, error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, byte,
                            "cannot lock the byte of the session");
    }
    if (acquire_slot(control, session, false, slot) ||
        acquire_slot(control, session, true, slot)) {
        return WAL_OK;
    }
    (void)!io->lock(io->ctx, control->file, byte, WAL__IO_LOCK_NONE, &err);
    return wal__fail_at(
        error, WAL_ELIMIT, 0, control->path, 0,
        "%d sessions of the store are claimed, there is no room for another "
        "claim: release one",
        (int)WAL__CLAIMS);
}

void wal__control_release_claim(struct wal__control *control, uint32_t session,
                                uint32_t slot)
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
    (void)!io->lock(io->ctx, control->file, WAL__LOCK_CLAIM + session,
                    WAL__IO_LOCK_NONE, &ignored);
}

/* --- listing ------------------------------------------------------------- */

/* Whether an open file has locked the session's byte. `file` is another open of
 * LOCK than the store's, so that the store's own locks conflict with it. */
static enum wal_status test_byte(const struct wal__control *control,
                                 struct wal__file *file, uint32_t session,
                                 bool *locked, struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t byte = WAL__LOCK_CLAIM + session;
    int err = 0;
    enum wal_status status =
        io->lock(io->ctx, file, byte, WAL__IO_LOCK_TEST, &err);

    *locked = status == WAL_ELOCKED;
    return status == WAL_OK || status == WAL_ELOCKED
               ? WAL_OK
               : wal__fail_at(error, status, err, control->path, byte,
                              "cannot test the lock of a session");
}

/* Adds the holder. The slot of a dead process may name a session that a live
 * one has claimed since: its slot has the process. */
static void add_holder(struct wal__claim_holder out[WAL__CLAIMS],
                       uint32_t *count, struct wal__claim_holder holder)
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

static enum wal_status list_slots(const struct wal__control *control,
                                  struct wal__file *file,
                                  const struct wal__control_page *page,
                                  struct wal__claim_holder out[WAL__CLAIMS],
                                  uint32_t *count, struct wal_error *error)
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
            holder.is_own = holder.process_id == control->process_id &&
                            start == control->process_start_time;
        }
        if (locked) {
            add_holder(out, count, holder);
        }
    }
    return WAL_OK;
}

/* Maps the page of an open LOCK, which has none before the first opener made
 * it. */
static enum wal_status list_file(const struct wal__control *control,
                                 struct wal__file *file,
                                 struct wal__claim_holder out[WAL__CLAIMS],
                                 uint32_t *count, struct wal_error *error)
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

enum wal_status
wal__control_list_claims(const struct wal__control *control,
                         struct wal__claim_holder out[WAL__CLAIMS],
                         uint32_t *count, struct wal_error *error)
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
