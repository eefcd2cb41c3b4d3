/*
 * salvage.c - builds a sound store from all readable records of another,
 * through the public interface only (agentwal.h).
 *
 * The log is read again, oldest record first, and each record is repeated:
 * sessions and their changes, entries with their ids, parents, types and
 * texts, heads, documents, checkpoints, deletions. All content is copied
 * first, whether a record refers to it or not. An entry whose parent is lost
 * gets its nearest surviving ancestor as parent, or becomes a root. A deleted
 * session is copied only as far as its forks need it.
 *
 * Invariant: a record is either in OUT or in the report, and every change of a
 * parent is in the report. If OUT cannot be written, it is removed and nothing
 * is reported.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/walcheck/salvage.h"

/* --- the pass over the log ------------------------------------------------ */

static void copy_record(struct salvage *salvage, const struct wal__frame *frame,
                        uint64_t offset, const uint8_t *bytes)
{
    const struct wal__span payload = {bytes, frame->stored_size};

    if (frame->type == WAL__FRAME_ENTRY) {
        salvage_entry(salvage, frame, offset, bytes);
        return;
    }
    salvage_flush(salvage);
    switch (frame->type) {
    case WAL__FRAME_SESSION:
        salvage_header(salvage, frame->session, payload);
        break;
    case WAL__FRAME_FORK:
        salvage_fork(salvage, frame, payload);
        break;
    case WAL__FRAME_HEAD:
        salvage_head(salvage, frame, payload);
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        salvage_doc(salvage, frame, payload);
        break;
    case WAL__FRAME_REDACT:
        salvage_add_redaction(salvage, frame, payload);
        break;
    case WAL__FRAME_TOMBSTONE:
        salvage_redo_redactions(salvage); /* while the session still exists */
        salvage_delete(salvage, frame->session);
        break;
    default:
        break;
    }
}

static void copy_frame(struct salvage *salvage, const struct wal__frame *frame,
                       uint64_t offset, const uint8_t *payload)
{
    bool is_store = frame->session == WAL__STORE_NUMBER;

    if (!is_store && salvage_is_skipped(salvage, frame->session)) {
        return;
    }
    if ((frame->flags & WAL__FRAME_LZ4) != 0) {
        salvage_note(
            salvage,
            is_store ? "" : salvage_session(salvage, frame->session)->id, "",
            "the record of sequence %" PRIu64 " is compressed and was not read",
            frame->sequence);
        return;
    }
    copy_record(salvage, frame, offset, payload);
}

static bool copy_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct salvage *salvage = ctx;
    uint64_t at = 0;

    while (at < piece->size && salvage->failed == WAL_OK) {
        struct wal__frame frame;

        if (wal__frame_decode(piece->bytes + at, piece->size - at,
                              salvage->segment->header.salt, piece->offset + at,
                              &frame) != WAL__FMT_OK) {
            return false;
        }
        if (wal__frame_is_sequenced(frame.type) && frame.session != 0) {
            copy_frame(salvage, &frame, piece->offset + at,
                       piece->bytes + at + WAL__FRAME_SIZE);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    return true;
}

/* Copies the log from the oldest segment to the newest. */
static void copy_log(struct salvage *salvage)
{
    const struct wal__scan_sink sink = {salvage, copy_piece, NULL};
    struct check_segment *segment = salvage->store->log.tail;

    while (segment != NULL && segment->previous != NULL) {
        segment = segment->previous;
    }
    for (; segment != NULL && salvage->failed == WAL_OK;
         segment = segment->next) {
        salvage->segment = segment;
        if (!check_segment_rescan(segment, &sink, true)) {
            salvage_note(salvage, "", "", "%s cannot be opened", segment->name);
        }
        salvage_flush(salvage);
    }
}

static int by_sequence(const void *a, const void *b)
{
    const struct check_lost_record *x = a;
    const struct check_lost_record *y = b;

    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Collects the lost records of all segments: their parents lead from an entry
 * to its nearest surviving ancestor. */
static void collect_lost(struct salvage *salvage)
{
    const struct check_segments *log = &salvage->store->log;

    for (size_t i = 0; i < log->count; i++) {
        const struct check_segment *segment = log->items[i];

        for (size_t k = 0; k < segment->lost_count; k++) {
            salvage->lost =
                cli_reserve(salvage->lost, salvage->lost_count,
                            &salvage->lost_capacity, sizeof(*salvage->lost));
            salvage->lost[salvage->lost_count++] = segment->lost[k];
        }
    }
    if (salvage->lost_count > 0) {
        qsort(salvage->lost, salvage->lost_count, sizeof(*salvage->lost),
              by_sequence);
    }
}

/* --- the output store ----------------------------------------------------- */

static bool is_complete(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        if (!damages->items[i].is_redundant) {
            return false;
        }
    }
    return salvage->note_count == 0;
}

static void deinit(struct salvage *salvage)
{
    salvage_sessions_deinit(salvage);
    salvage_notes_deinit(salvage);
    free(salvage->redactions); /* salvage_redo_redactions freed their texts */
    free(salvage->lost);
    salvage_entries_deinit(salvage);
    salvage_contents_deinit(salvage);
}

bool salvage_is_fatal(struct salvage *salvage, enum wal_status status,
                      const struct wal_error *error)
{
    if (cli_exit_code(status) != CLI_FAILED) {
        return false;
    }
    if (salvage->failed == WAL_OK) {
        salvage->failed = status;
        salvage->why = *error;
    }
    return true;
}

/* Creates the directory OUT; *made identifies it for remove_output. */
static int make_output(const struct check_store *store, const char *out,
                       struct stat *made)
{
    char real_parent[PATH_MAX];
    char real_store[PATH_MAX];
    const char *slash = strrchr(out, '/');
    char *parent = slash == NULL
                       ? cli_copy_text(".", 1)
                       : cli_copy_text(out, (size_t)(slash - out) + 1);
    bool inside = realpath(parent, real_parent) != NULL &&
                  realpath(store->path, real_store) != NULL &&
                  strncmp(real_parent, real_store, strlen(real_store)) == 0 &&
                  (real_parent[strlen(real_store)] == '/' ||
                   real_parent[strlen(real_store)] == '\0');
    free(parent);
    if (inside && lstat(out, made) != 0) {
        return cli_error(
            store->cli, CLI_USAGE, out,
            "is inside the store that is salvaged; choose another directory");
    }
    if (mkdir(out, 0700) == 0 && lstat(out, made) == 0) {
        return CLI_CONTINUE;
    }
    if (errno == EEXIST) {
        return cli_error(
            store->cli, CLI_NEGATIVE, out,
            "exists; salvage needs a directory that does not exist");
    }
    return cli_error(store->cli, CLI_FAILED, out, "cannot be created: %s",
                     strerror(errno));
}

/* Removes OUT and everything in it, if it is still the directory that
 * make_output created. */
static void remove_output(const char *out, const struct stat *made)
{
    char *paths[] = {cli_copy_text(out, strlen(out)), NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    FTSENT *entry;

    while (tree != NULL && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_level == 0 &&
            (entry->fts_statp->st_dev != made->st_dev ||
             entry->fts_statp->st_ino != made->st_ino)) {
            break; /* another directory replaced it */
        }
        if (entry->fts_info == FTS_DP) {
            (void)rmdir(entry->fts_accpath);
        } else if (entry->fts_info != FTS_D) {
            (void)unlink(entry->fts_accpath);
        }
    }
    if (tree != NULL) {
        fts_close(tree);
    }
    free(paths[0]);
}

/* Copies everything readable to OUT and closes it. */
static enum wal_status write_output(struct salvage *salvage)
{
    enum wal_status status;

    collect_lost(salvage);
    salvage_mark_needed(salvage);
    salvage_blobs(salvage);
    copy_log(salvage);
    salvage_redo_redactions(salvage);
    if (salvage->failed == WAL_OK) {
        salvage_finish_sessions(salvage);
    }
    if (salvage->failed == WAL_OK) {
        salvage->failed = wal_sync(salvage->out, &salvage->why);
    }
    salvage_close_sessions(salvage);
    if (salvage->failed == WAL_OK) {
        salvage->failed = wal_close(salvage->out, &salvage->why);
    } else {
        status = wal_close(salvage->out, NULL);
        (void)status; /* the first failure is reported */
    }
    return salvage->failed;
}

int check_salvage(struct check_store *store, const char *out)
{
    struct salvage salvage = {
        .store = store,
        .why = CLI_ERROR_INIT,
        .path = out,
        .reader = {.store = store},
    };
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags =
            WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE |
            (store->cli->force_network_fs ? (uint32_t)WAL_OPEN_NETWORK_FS : 0),
        .group_align = store->group_align > 8 ? store->group_align : 0,
    };
    enum wal_status status;
    struct stat made;
    int code = make_output(store, out, &made);

    if (code != CLI_CONTINUE) {
        return code;
    }
    status = wal_open(out, &options, &salvage.out, &salvage.why);
    if (status == WAL_OK) {
        status = write_output(&salvage);
    }
    if (status == WAL_OK) {
        salvage_report(&salvage, out);
        code = is_complete(&salvage) ? CLI_OK : CLI_NEGATIVE;
    } else {
        remove_output(out, &made);
        code = cli_worse_code(
            CLI_FAILED, cli_report(store->cli, out, status, &salvage.why));
    }
    deinit(&salvage);
    return code;
}
