/*
 * resume.c - brings a session to this store, and claims it (move.h, agentwal/remote.h).
 *
 * The order: find who has the session, get it here, claim it, merge it, and mark it as being here.
 * It comes as a bundle, which a handoff left or which is made of what is read of the store in the
 * remote; else that store is pulled to a replica. What is killed on the way is done again by the
 * next call: a pull goes on, a claim of this store is found, a merge adds what is missing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/transfer.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "format/bytes/bytes.h"
#include "remote/move/move.h"
#include "remote/pull/partial.h"
#include "remote/pull/pull.h"

/* --- handing off ---------------------------------------------------------- */

/* Checks the arguments of a call on a session. */
static enum wal_status check_session(const struct wal_remote *remote, const struct wal_store *store,
                                     struct wal_slice session, struct wal_error *error)
{
    enum wal_status status = wal__remote_check_given(remote, store != NULL, "store", error);

    if (status != WAL_OK) {
        return status;
    }
    return session.size == 0 || session.size >= WAL_ID_SIZE ||
                   memchr(session.data, 0, (size_t)session.size) != NULL
               ? wal__invalid(error, "the id of the session is not valid")
               : WAL_OK;
}

/* Opens the session, and fills a claim for this store with its end. */
static enum wal_status open_session(struct wal_store *store, struct wal_slice id,
                                    struct wal_session **session, struct wal__own *own,
                                    struct wal_error *error)
{
    char text[WAL_ID_SIZE];
    enum wal_status status = wal_session_open(store, id, session, error);

    if (status != WAL_OK) {
        return status;
    }
    (void)snprintf(text, sizeof(text), "%.*s", WAL_ARG(id));
    status = wal__claim_init(own, text, store, error);
    return status == WAL_OK ? wal__claim_set_end(own, *session, store, error) : status;
}

/* --- giving away -------------------------------------------------------- */

static enum wal_status fail_moved(const char *host, struct wal_error *error)
{
    return wal__fail(error, WAL_ECLAIMED, "the session has moved to %s",
                     host[0] != '\0' ? host : "the machine that resumes it next");
}

/* WAL_EBUSY unless the remote has the session to its end. */
static enum wal_status check_stored(struct wal_remote *remote, struct wal_store *store,
                                    struct wal_session *session, struct wal_error *error)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        status = wal_remote_get_status(remote, store, &found, error);
    }
    if (status == WAL_OK && found.sequence < info.last_sequence) {
        status =
            wal__fail(error, WAL_EBUSY,
                      "the remote has the store up to number %llu, and "
                      "the session ends at %llu: push the store, and hand "
                      "the session off again",
                      (unsigned long long)found.sequence, (unsigned long long)info.last_sequence);
    }
    return status;
}

/* Refuses appends, as the claim of this number will say: nothing can be added to the session after
 * what is pushed then. */
static enum wal_status mark(struct wal_session *session, const struct wal__own *own,
                            uint64_t number, struct wal_error *error)
{
    enum wal_status status = wal__claim_record(session, own, number, true, error);

    return status == WAL_OK ? wal__fail(error, WAL_EBUSY,
                                        "appends to the session are refused from now on: "
                                        "push the store, and hand the session off again")
                            : status;
}

/* Stores the session by itself, and that it has moved. Without that the next machine pulls the
 * store, so that only a call that was ended is a failure. */
static enum wal_status offer(struct wal_remote *remote, struct wal_store *store,
                             struct wal_session *session, const struct wal__own *own,
                             struct wal_error *error)
{
    struct wal_error unused = WAL_INIT(wal_error);
    enum wal_status status = wal__bundle_put(remote, store, session, own->session, &unused);

    if (status == WAL_OK) {
        status = wal_remote_put_sessions(remote, store, &unused);
    }
    if (status == WAL_ECALLBACK) {
        wal__error_copy(error, &unused);
        return status;
    }
    return WAL_OK;
}

/* The session is marked, and the remote has it to its end. */
static enum wal_status give_away(struct wal_remote *remote, struct wal_store *store,
                                 struct wal_session *session, const uint8_t mine[16],
                                 struct wal__own *own, uint64_t number, struct wal_error *error)
{
    enum wal_status status = offer(remote, store, session, own, error);

    if (status == WAL_OK) {
        status = wal__claim_create(remote, mine, number, own, error);
    }
    if (status == WAL_ECLAIMED) {
        (void)!wal__claim_record(session, own, number, true, NULL);
    }
    return status;
}

static enum wal_status hand_off(struct wal_remote *remote, struct wal_store *store,
                                struct wal_session *session, struct wal__own *own,
                                struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal__own newest = {.sequence = 0};
    uint8_t mine[16];
    uint64_t number = 0;
    enum wal_status status = wal_session_get_move(session, &known, error);
    const bool is_away = status == WAL_OK && (known.flags & WAL_SESSION_MOVE_AWAY) != 0;

    if (is_away && !wal__uuid_is_zero(known.store)) {
        return fail_moved(known.host, error);
    }
    memcpy(mine, own->store, sizeof(mine));
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = wal__claim_read(remote, mine, own->session, &newest, &number, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (is_away && number >= known.number && memcmp(newest.store, mine, sizeof(mine)) != 0) {
        /* Handed off before, and perhaps resumed since. */
        if (wal__uuid_is_zero(newest.store)) {
            return WAL_OK;
        }
        status = wal__claim_record(session, &newest, number, true, error);
        return status == WAL_OK ? fail_moved(newest.host, error) : status;
    }
    number++;
    own->move = newest.move + 1;
    memset(own->store, 0, sizeof(own->store));
    own->host[0] = '\0';
    if (!is_away || known.number < number) {
        return mark(session, own, number, error);
    }
    status = check_stored(remote, store, session, error);
    return status == WAL_OK ? give_away(remote, store, session, mine, own, number, error) : status;
}

enum wal_status wal_remote_handoff(struct wal_remote *remote, struct wal_store *store,
                                   struct wal_slice id, struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct wal__own own = {.sequence = 0};
    enum wal_status status = check_session(remote, store, id, error);

    if (status == WAL_OK) {
        status = open_session(store, id, &session, &own, error);
    }
    if (status == WAL_OK) {
        status = hand_off(remote, store, session, &own, error);
    }
    wal_session_close(session);
    return status;
}

/* --- taking back -------------------------------------------------------- */

/* Claims the session below the store that has it now, and below this one. */
static enum wal_status claim_back(struct wal_remote *remote, const struct wal_session_move *known,
                                  struct wal__own *own, uint64_t *number, struct wal_error *error)
{
    struct wal__holder holder = {.is_mine = true};
    uint8_t mine[16];
    enum wal_status status;

    memcpy(mine, own->store, sizeof(mine));
    memcpy(holder.uuid, mine, sizeof(holder.uuid));
    status = wal__holder_find(remote, mine, own->session, true, &holder, error);
    own->move = holder.move + 1;
    if (status == WAL_OK && !holder.is_mine) {
        status = wal__claim_create(remote, holder.uuid, holder.number + 1, own, error);
    } else if (status == WAL_OK && !wal__uuid_is_zero(known->store) &&
               memcmp(known->store, mine, sizeof(mine)) != 0) {
        /* The store that has it need not be in the remote to read of it. */
        status = wal__claim_next(remote, known->store, own, number, error);
    }
    return status == WAL_OK ? wal__claim_next(remote, mine, own, number, error) : status;
}

enum wal_status wal_remote_take_back(struct wal_remote *remote, struct wal_store *store,
                                     struct wal_slice id, struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal_session *session = NULL;
    struct wal__own own = {.sequence = 0};
    uint64_t number = 0;
    enum wal_status status = check_session(remote, store, id, error);

    if (status == WAL_OK) {
        status = open_session(store, id, &session, &own, error);
    }
    if (status == WAL_OK) {
        status = wal_session_get_move(session, &known, error);
    }
    if (status == WAL_OK && (known.flags & WAL_SESSION_MOVE_AWAY) != 0) {
        status = claim_back(remote, &known, &own, &number, error);
        if (status == WAL_OK) {
            number = number > known.number ? number : known.number;
            status = wal__claim_record(session, &own, number, false, error);
        }
    }
    wal_session_close(session);
    return status;
}

/* --- resuming ------------------------------------------------------------- */

#define BUNDLE_SUFFIX ".bundle"

enum { PATH_SIZE = 4096, DIRECTORY_MODE = 0700 };

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
    char path[PATH_SIZE];                /* of the replica */
    char bundle[PATH_SIZE];              /* a file; empty: the replica has the session */
    char object[WAL__STORE_OBJECT_SIZE]; /* that the file was read from; empty: none */
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
        return wal__invalid(resume->error, "the directory for replicas is empty, or too long");
    }
    (void)snprintf(place, sizeof(place), "%.*s", WAL_ARG(given));
    if (mkdir(place, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return wal__fail_at(resume->error, errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO, errno, place,
                            0, "the directory for replicas cannot be made");
    }
    wal__hex_write(resume->holder.uuid, 16, uuid);
    size = snprintf(resume->path, sizeof(resume->path), "%s/%s", place, uuid);
    return size > 0 && size < (int)(sizeof(resume->path) - sizeof(BUNDLE_SUFFIX))
               ? WAL_OK
               : wal__fail(resume->error, WAL_ETOOBIG, "a path is too long");
}

static void name_bundle(struct resume *resume)
{
    const size_t size = strlen(resume->path);

    memcpy(resume->bundle, resume->path, size);
    memcpy(resume->bundle + size, BUNDLE_SUFFIX, sizeof(BUNDLE_SUFFIX));
}

/* Reads the bundle of the session. *is_there: resume->bundle is its file. A failure of it is none
 * of the call, unless it was ended: the store is pulled.
 */
static enum wal_status fetch_bundle(struct resume *resume, bool *is_there)
{
    struct wal_error unused = WAL_INIT(wal_error);
    enum wal_status status;

    *is_there = false;
    /* There may be one of a session that was handed off, and perhaps claimed by this store
     * since. */
    if (resume->holder.move == 0 ||
        (!resume->holder.is_mine && !wal__uuid_is_zero(resume->holder.claim.store))) {
        return WAL_OK;
    }
    name_bundle(resume);
    status = wal__bundle_get(resume->remote, resume->holder.uuid, resume->own.session,
                             resume->bundle, resume->object, &resume->result->bytes, &unused);
    if (status == WAL_OK) {
        *is_there = true;
        memcpy(resume->own.entry, resume->holder.claim.entry, sizeof(resume->own.entry));
        resume->own.sequence = resume->holder.claim.sequence;
        return WAL_OK;
    }
    resume->bundle[0] = '\0';
    resume->object[0] = '\0';
    if (status == WAL_ECALLBACK) {
        wal__error_copy(resume->error, &unused);
        return status;
    }
    return WAL_OK;
}

static enum wal_status pull(struct resume *resume)
{
    const struct wal_open_options read_only = {
        .struct_size = sizeof(read_only), .flags = WAL_OPEN_READ_ONLY, .key = resume->options->key};
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);
    struct wal_remote_pull_result pulled = WAL_INIT(wal_remote_pull_result);
    enum wal_status status;

    memcpy(options.uuid, resume->holder.uuid, sizeof(options.uuid));
    status = wal_remote_pull(resume->remote, resume->path, &options, &pulled, resume->error);
    if (status == WAL_OK) {
        resume->result->parts = pulled.parts;
        resume->result->bytes += pulled.bytes;
        status = wal_open(resume->path, &read_only, &resume->replica, resume->error);
    }
    return status;
}

/* Reads the end of the session in the replica. */
static enum wal_status read_tail(struct resume *resume, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(resume->replica, resume->options->session, &session, error);

    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the remote has no session \"%s\" in the store of "
                         "%s: `agentwal remote sessions URL` lists them",
                         resume->own.session, resume->result->host);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__claim_set_end(&resume->own, session, resume->replica, error);
    wal_session_close(session);
    return status;
}

/* --- the session alone -------------------------------------------------- */

/* Whether what is asked of the remote is not to be asked in another way. */
static bool ends_call(enum wal_status status)
{
    return status == WAL_ECALLBACK || status == WAL_EREMOTE || status == WAL_EACCESS ||
           status == WAL_ENOMEM || status == WAL_ENOSPACE;
}

/* Makes the bundle of the session, from the store that is read in the remote. */
static enum wal_status make_bundle(struct resume *resume, struct wal_error *error)
{
    const struct wal_transfer_options options = {.struct_size = sizeof(options),
                                                 .sessions = &resume->options->session,
                                                 .session_count = 1,
                                                 .directory = resume->options->directory,
                                                 .key = resume->options->key};

    name_bundle(resume);
    (void)unlink(resume->bundle); /* of a process that was killed */
    return wal_bundle_write(resume->replica,
                            (struct wal_slice){resume->bundle, strlen(resume->bundle)}, &options,
                            NULL, error);
}

/* Reads the session in the remote, with what it needs. *is_there: resume->bundle is its file.
 * Otherwise the store is to be pulled. */
static enum wal_status fetch_session(struct resume *resume, bool *is_there)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__partial *partial = NULL;
    bool is_lacking = false;
    char directory[PATH_SIZE];
    enum wal_status status;

    *is_there = false;
    if (wal__pull_has_store(resume->path, &info)) {
        return WAL_OK; /* most of it is here */
    }
    (void)snprintf(directory, sizeof(directory), "%.*s", WAL_ARG(resume->options->directory));
    status = wal__partial_open(resume->remote, resume->holder.uuid, resume->options->key, directory,
                               &partial, &resume->replica, &own);
    if (status == WAL_OK) {
        status = read_tail(resume, &own);
        is_lacking = status == WAL_ENOTFOUND;
    }
    if (status == WAL_OK) {
        status = make_bundle(resume, &own);
        *is_there = status == WAL_OK;
    }
    (void)!wal_close(resume->replica, NULL);
    resume->replica = NULL;
    resume->result->bytes += wal__partial_bytes(partial);
    if (!*is_there) {
        status = wal__partial_status(partial, status, &own);
        resume->bundle[0] = '\0';
    }
    wal__partial_close(partial);
    if (is_lacking || ends_call(status)) {
        wal__error_copy(resume->error, &own);
        return status;
    }
    return WAL_OK;
}

/* Brings the session here, by itself or with its store. */
static enum wal_status fetch(struct resume *resume)
{
    bool is_there = false;
    enum wal_status status = make_path(resume);

    memcpy(resume->result->uuid, resume->holder.uuid, sizeof(resume->result->uuid));
    if (status == WAL_OK) {
        status = fetch_bundle(resume, &is_there);
    }
    if (status == WAL_OK && !is_there) {
        status = fetch_session(resume, &is_there);
    }
    if (status == WAL_OK && !is_there) {
        status = pull(resume);
        if (status == WAL_OK) {
            status = read_tail(resume, resume->error);
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
    return wal__claim_create(resume->remote, resume->holder.uuid, resume->holder.number + 1,
                             &resume->own, resume->error);
}

static int32_t take_report(void *ctx, const struct wal_transfer_report *report)
{
    struct resume *resume = ctx;
    struct wal_remote_resume_result *result = resume->result;
    const struct wal_slice id = report->branch_id.size > 0 ? report->branch_id : report->session_id;

    /* A source of the session may be refused first. */
    if (strlen(resume->own.session) != report->session_id.size ||
        memcmp(resume->own.session, report->session_id.data, (size_t)report->session_id.size) !=
            0) {
        return 0;
    }
    result->kind = report->kind;
    result->entries = report->entries;
    (void)snprintf(result->session, sizeof(result->session), "%.*s", WAL_ARG(id));
    resume->refusal = report->status;
    if (report->error != NULL) {
        resume->why = *report->error;
    }
    return 0;
}

/* Takes the session from its bundle, of which nothing is taken when it is damaged. */
static enum wal_status take_bundle(struct resume *resume,
                                   const struct wal_transfer_options *options)
{
    const struct wal_slice path = {resume->bundle, strlen(resume->bundle)};
    struct wal__driver *driver = resume->remote->driver;
    enum wal_status status = wal_bundle_read(resume->store, path, options, NULL, resume->error);

    (void)unlink(resume->bundle);
    resume->bundle[0] = '\0';
    if (status == WAL_OK && resume->object[0] != '\0') {
        (void)!driver->calls->remove(resume->remote->driver, resume->object, NULL);
    } else if (status == WAL_ECORRUPT || status == WAL_EVERSION || status == WAL_EINVAL ||
               status == WAL_ENOTFOUND) {
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
        .key = resume->options->key,
        /* Of a host with the name of this one: digits of the store's id. */
        .branch_name = {host, strcmp(host, resume->own.host) == 0 ? 0 : strlen(host)},
    };
    enum wal_status status = resume->bundle[0] != '\0' ? take_bundle(resume, &options) : WAL_OK;

    if (status == WAL_OK && resume->replica != NULL) {
        status = wal_store_merge(resume->replica, resume->store, &options, NULL, resume->error);
    }
    if (status == WAL_OK && resume->refusal != WAL_OK) {
        status = (enum wal_status)resume->refusal;
        wal__error_copy(resume->error, &resume->why);
    }
    return status;
}

/* The session is here again: says so below this store, where it went away, and permits appends to
 * it. */
static enum wal_status come_back(struct resume *resume)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal__own newest = {.sequence = 0};
    struct wal_session *session = NULL;
    uint64_t number = 0;
    enum wal_status status = wal__claim_read(resume->remote, resume->mine, resume->own.session,
                                             &newest, &number, resume->error);

    if (status == WAL_OK && number > 0) {
        status =
            wal__claim_next(resume->remote, resume->mine, &resume->own, &number, resume->error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(resume->store, resume->options->session, &session, resume->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal_session_get_move(session, &known, NULL) == WAL_OK || number > 0) {
        bool is_known = (known.flags & WAL_SESSION_MOVE_AWAY) == 0 && known.number >= number;

        number = number > known.number ? number : known.number;
        if (!is_known) {
            status = wal__claim_record(session, &resume->own, number, false, resume->error);
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
        status = wal__holder_find_other(resume->remote, resume->mine, resume->own.session,
                                        resume->holder.uuid, resume->error);
    }
    if (status == WAL_OK && memcmp(resume->holder.uuid, resume->mine, 16) == 0) {
        return wal__invalid(resume->error, "the store that the session is "
                                           "taken from is this one");
    }
    if (status == WAL_OK) {
        status = wal__holder_find(resume->remote, resume->mine, resume->own.session,
                                  resume->takes_over, &resume->holder, resume->error);
    }
    return status == WAL_OK ? wal__holder_host(resume->remote, resume->holder.uuid,
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

static enum wal_status resume_session(struct wal_remote *remote, struct wal_store *store,
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
    if (resume->replica != NULL && wal_close(resume->replica, NULL) != WAL_OK && status == WAL_OK) {
        status = wal__fail(error, WAL_EIO, "the replica cannot be closed");
    }
    if (resume->bundle[0] != '\0') {
        (void)unlink(resume->bundle);
    }
    wal__heap_free(heap, resume);
    return status;
}

enum wal_status wal_remote_resume(struct wal_remote *remote, struct wal_store *store,
                                  const struct wal_remote_resume_options *options,
                                  struct wal_remote_resume_result *result, struct wal_error *error)
{
    struct wal_remote_resume_result found = WAL_INIT(wal_remote_resume_result);
    struct wal_remote_resume_options own;
    enum wal_status status;

    if (options == NULL) {
        return wal__invalid(error, "the options are null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_resume_options), &own, options, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_remote_resume_result), result, error);
    }
    if (status == WAL_OK && (own.flags & ~(uint32_t)WAL_REMOTE_RESUME_TAKE_OVER) != 0) {
        status = wal__invalid(error, "the flags of the resume are not valid");
    }
    if (status == WAL_OK) {
        status = check_session(remote, store, own.session, error);
    }
    if (status == WAL_OK) {
        status = resume_session(remote, store, &own, &found, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_remote_resume_result), result, &found);
    }
    return status;
}
