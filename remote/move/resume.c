/*
 * resume.c - brings a session to this store, and claims it (move.h,
 * agentwal/remote.h).
 *
 * The order: find who has the session, pull that store to a replica here, or
 * only a bundle of the session where it was handed off, claim
 * the session, merge it, and mark it as being here. What is killed on the way
 * is done again by the next call: a pull goes on, a claim of this store is
 * found, a merge adds what is missing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/transfer.h"
#include "engine/base/error.h"
#include "remote/move/move.h"

enum {
    PATH_SIZE = 4096,
    DIRECTORY_MODE = 0700
};

struct resume {
    struct wal_remote *remote;
    struct wal_store *store;
    const struct wal_remote_resume_options *options;
    struct wal_remote_resume_result *result;
    struct wal_error *error;
    bool takes_over;
    uint8_t mine[16];
    struct wal__holder holder;
    struct wal__own own; /* the claim of this store */
    struct wal_store *replica;
    char path[PATH_SIZE];   /* of the replica */
    char bundle[PATH_SIZE]; /* a file; empty: the replica has the session */
    char object[WAL__STORE_OBJECT_SIZE]; /* that the file was read from */
    int32_t refusal;                     /* status of the merge's report */
    struct wal_error why;                /* of it */
};

/* --- the replica -------------------------------------------------------- */

static enum wal_status make_path(struct resume *resume)
{
    const struct wal_slice given = resume->options->directory;
    char uuid[WAL__UUID_TEXT_SIZE];
    char place[PATH_SIZE];
    int size;

    if (given.size == 0 || given.size >= sizeof(place) ||
        memchr(given.data, 0, (size_t)given.size) != NULL) {
        return wal__invalid(resume->error,
                            "the directory for replicas is empty, or too long");
    }
    (void)snprintf(place, sizeof(place), "%.*s", WAL_ARG(given));
    if (mkdir(place, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return wal__fail_at(
            resume->error, errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO, errno,
            place, 0, "the directory for replicas cannot be made");
    }
    wal__uuid_format(resume->holder.uuid, uuid);
    size = snprintf(resume->path, sizeof(resume->path), "%s/%s", place, uuid);
    return size > 0 && size < (int)sizeof(resume->path)
               ? WAL_OK
               : wal__fail(resume->error, WAL_ETOOBIG, "a path is too long");
}

/* Whether the session was handed off, and perhaps claimed by this store since:
 * then there may be a bundle of it. */
static bool may_have_bundle(const struct wal__holder *holder)
{
    return holder->move > 0 &&
           (holder->is_mine || wal__uuid_is_zero(holder->claim.store));
}

/* Reads the bundle of the session. *is_there: resume->bundle is its file. A
 * failure of it is none of the call, unless it was ended: the store is pulled.
 */
static enum wal_status fetch_bundle(struct resume *resume, bool *is_there)
{
    struct wal_error unused = WAL_INIT(wal_error);
    enum wal_status status;
    int size;

    *is_there = false;
    if (!may_have_bundle(&resume->holder)) {
        return WAL_OK;
    }
    size = snprintf(resume->bundle, sizeof(resume->bundle), "%s.bundle",
                    resume->path);
    status =
        size >= (int)sizeof(resume->bundle)
            ? WAL_ETOOBIG
            : wal__bundle_get(resume->remote, resume->holder.uuid,
                              resume->own.session, resume->bundle,
                              resume->object, &resume->result->bytes, &unused);
    if (status == WAL_OK) {
        *is_there = true;
        memcpy(resume->own.entry, resume->holder.claim.entry,
               sizeof(resume->own.entry));
        resume->own.sequence = resume->holder.claim.sequence;
        return WAL_OK;
    }
    resume->bundle[0] = '\0';
    if (status == WAL_ECALLBACK) {
        wal__error_copy(resume->error, &unused);
        return status;
    }
    return WAL_OK;
}

static enum wal_status pull(struct resume *resume)
{
    const struct wal_open_options read_only = {.struct_size = sizeof(read_only),
                                               .flags = WAL_OPEN_READ_ONLY};
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);
    struct wal_remote_pull_result pulled = WAL_INIT(wal_remote_pull_result);
    enum wal_status status;

    memcpy(options.uuid, resume->holder.uuid, sizeof(options.uuid));
    status = wal_remote_pull(resume->remote, resume->path, &options, &pulled,
                             resume->error);
    if (status == WAL_OK) {
        resume->result->parts = pulled.parts;
        resume->result->bytes = pulled.bytes;
        status =
            wal_open(resume->path, &read_only, &resume->replica, resume->error);
    }
    return status;
}

/* Reads the end of the session in the replica. */
static enum wal_status read_tail(struct resume *resume)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(
        resume->replica, resume->options->session, &session, resume->error);

    if (status == WAL_ENOTFOUND) {
        return wal__fail(resume->error, WAL_ENOTFOUND,
                         "the remote has no session \"%s\" in the store of "
                         "%s: `agentwal remote sessions URL` lists them",
                         resume->own.session, resume->result->host);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__claim_set_end(&resume->own, session, resume->replica,
                                resume->error);
    wal_session_close(session);
    return status;
}

/* Brings the session here, by itself or with its store. */
static enum wal_status fetch(struct resume *resume)
{
    bool is_there = false;
    enum wal_status status = make_path(resume);

    memcpy(resume->result->uuid, resume->holder.uuid,
           sizeof(resume->result->uuid));
    if (status == WAL_OK) {
        status = fetch_bundle(resume, &is_there);
    }
    if (status == WAL_OK && !is_there) {
        status = pull(resume);
        if (status == WAL_OK) {
            status = read_tail(resume);
        }
    }
    return status;
}

/* --- the session -------------------------------------------------------- */

static enum wal_status claim(struct resume *resume)
{
    resume->own.move = resume->holder.move;
    if (resume->holder.is_mine) {
        return WAL_OK;
    }
    /* The number after what was found first: another claim since then wins. */
    resume->own.move++;
    return wal__claim_create(resume->remote, resume->holder.uuid,
                             resume->holder.number + 1, &resume->own,
                             resume->error);
}

static int32_t take_report(void *ctx, const struct wal_transfer_report *report)
{
    struct resume *resume = ctx;
    struct wal_remote_resume_result *result = resume->result;
    const struct wal_slice id =
        report->branch_id.size > 0 ? report->branch_id : report->session_id;

    /* A source of the session may be refused first. */
    if (strlen(resume->own.session) != report->session_id.size ||
        memcmp(resume->own.session, report->session_id.data,
               (size_t)report->session_id.size) != 0) {
        return 0;
    }
    result->kind = report->kind;
    result->entries = report->entries;
    (void)snprintf(result->session, sizeof(result->session), "%.*s",
                   WAL_ARG(id));
    resume->refusal = report->status;
    if (report->error != NULL) {
        resume->why = *report->error;
    }
    return 0;
}

/* Takes the session from its bundle, of which nothing is taken when it is
 * damaged. */
static enum wal_status take_bundle(struct resume *resume,
                                   const struct wal_transfer_options *options)
{
    const struct wal_slice path = {resume->bundle, strlen(resume->bundle)};
    struct wal__driver *driver = resume->remote->driver;
    enum wal_status status =
        wal_bundle_read(resume->store, path, options, NULL, resume->error);

    (void)unlink(resume->bundle);
    resume->bundle[0] = '\0';
    if (status == WAL_OK) {
        (void)!driver->calls->remove(resume->remote->driver, resume->object,
                                     NULL);
    } else if (status == WAL_ECORRUPT || status == WAL_EVERSION ||
               status == WAL_EINVAL || status == WAL_ENOTFOUND) {
        status = pull(resume);
    }
    return status;
}

static enum wal_status merge(struct resume *resume)
{
    const char *host = resume->result->host;
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_TRANSFER_KEEP_BOTH,
        .sessions = &resume->options->session,
        .session_count = 1,
        .report = take_report,
        .ctx = resume,
        .directory = resume->options->directory,
        /* Of a host with the name of this one: digits of the store's id. */
        .branch_name = {host,
                        strcmp(host, resume->own.host) == 0 ? 0 : strlen(host)},
    };
    enum wal_status status =
        resume->bundle[0] != '\0' ? take_bundle(resume, &options) : WAL_OK;

    if (status == WAL_OK && resume->replica != NULL) {
        status = wal_store_merge(resume->replica, resume->store, &options, NULL,
                                 resume->error);
    }
    if (status == WAL_OK && resume->refusal != WAL_OK) {
        status = (enum wal_status)resume->refusal;
        wal__error_copy(resume->error, &resume->why);
    }
    return status;
}

/* The session is here again: says so below this store, where it went away, and
 * permits appends to it. */
static enum wal_status come_back(struct resume *resume)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal__own newest = {.sequence = 0};
    struct wal_session *session = NULL;
    uint64_t number = 0;
    enum wal_status status =
        wal__claim_read(resume->remote, resume->mine, resume->own.session,
                        &newest, &number, resume->error);

    if (status == WAL_OK && number > 0) {
        status = wal__claim_next(resume->remote, resume->mine, &resume->own,
                                 &number, resume->error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(resume->store, resume->options->session,
                                  &session, resume->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal_session_get_move(session, &known, NULL) == WAL_OK || number > 0) {
        bool is_known = (known.flags & WAL_SESSION_MOVE_AWAY) == 0 &&
                        known.number >= number;

        number = number > known.number ? number : known.number;
        if (!is_known) {
            status = wal__claim_record(session, &resume->own, number, false,
                                       resume->error);
        }
    }
    wal_session_close(session);
    return status;
}

/* --- the call ----------------------------------------------------------- */

static enum wal_status find_holder(struct resume *resume)
{
    const struct wal_remote_resume_options *options = resume->options;
    enum wal_status status = WAL_OK;

    memcpy(resume->holder.uuid, options->uuid, sizeof(options->uuid));
    if (wal__uuid_is_zero(options->uuid)) {
        status = wal__holder_find_other(resume->remote, resume->mine,
                                        resume->own.session,
                                        resume->holder.uuid, resume->error);
    }
    if (status == WAL_OK &&
        memcmp(resume->holder.uuid, resume->mine, 16) == 0) {
        return wal__invalid(resume->error, "the store that the session is "
                                           "taken from is this one");
    }
    if (status == WAL_OK) {
        status = wal__holder_find(resume->remote, resume->mine,
                                  resume->own.session, resume->takes_over,
                                  &resume->holder, resume->error);
    }
    return status == WAL_OK
               ? wal__holder_host(resume->remote, resume->holder.uuid,
                                  resume->result->host, resume->error)
               : status;
}

static enum wal_status run(struct resume *resume)
{
    enum wal_status status = find_holder(resume);

    if (status == WAL_OK) {
        status = fetch(resume);
    }
    if (status == WAL_OK) {
        status = claim(resume);
    }
    if (status == WAL_OK) {
        status = merge(resume);
    }
    return status == WAL_OK ? come_back(resume) : status;
}

enum wal_status wal__resume(struct wal_remote *remote, struct wal_store *store,
                            const struct wal_remote_resume_options *options,
                            struct wal_remote_resume_result *result,
                            struct wal_error *error)
{
    const struct wal__heap *heap = remote->heap;
    struct resume *resume = wal__heap_zalloc(heap, sizeof(*resume));
    char session[WAL_ID_SIZE];
    enum wal_status status;

    if (resume == NULL) {
        return wal__no_memory(error);
    }
    resume->remote = remote;
    resume->store = store;
    resume->options = options;
    resume->result = result;
    resume->error = error;
    resume->takes_over = (options->flags & WAL_REMOTE_RESUME_TAKE_OVER) != 0;
    resume->why.struct_size = sizeof(resume->why);
    (void)snprintf(session, sizeof(session), "%.*s", WAL_ARG(options->session));
    status = wal__claim_init(&resume->own, session, store, error);
    if (status == WAL_OK) {
        memcpy(resume->mine, resume->own.store, sizeof(resume->mine));
        status = run(resume);
    }
    if (resume->replica != NULL && wal_close(resume->replica, NULL) != WAL_OK &&
        status == WAL_OK) {
        status = wal__fail(error, WAL_EIO, "the replica cannot be closed");
    }
    if (resume->bundle[0] != '\0') {
        (void)unlink(resume->bundle);
    }
    wal__heap_free(heap, resume);
    return status;
}
