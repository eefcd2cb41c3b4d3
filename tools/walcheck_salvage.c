/*
 * walcheck_salvage - builds a sound store of all that can be read in another,
 * through the public interface alone (agentwal.h).
 *
 * The log is read once more, oldest record first: a session is made where its
 * records begin, with its newest header; entries follow in their order, with
 * their ids, parents, types and texts. An entry whose parent is lost goes
 * under the nearest ancestor that is left, or becomes a root.
 *
 * Invariant: a record is either in OUT or in the report; what moved is in the
 * report too.
 *
 * Threads: one.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli_json.h"
#include "tools/walcheck_salvage.h"

/* --- sessions ------------------------------------------------------------- */

static struct salvage_session *find_session(struct salvage *salvage,
                                            uint32_t number)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, number);

    if (known != NULL) {
        return known->salvaged == 0 ? NULL
                                    : &salvage->sessions[known->salvaged - 1];
    }
    for (size_t i = salvage->session_count; i > 0; i--) {
        if (salvage->sessions[i - 1].number == number) {
            return &salvage->sessions[i - 1];
        }
    }
    return NULL;
}

static struct wal_slice slice_of(struct wal__span span)
{
    return (struct wal_slice){span.data, span.size};
}

static struct salvage_session *add_session(struct salvage *salvage,
                                           uint32_t number)
{
    struct check_session *known =
        check_model_find(&salvage->store->model, number);
    struct salvage_session *session;

    salvage->sessions =
        cli_room(salvage->sessions, salvage->session_count,
                 &salvage->session_capacity, sizeof(*salvage->sessions));
    session = &salvage->sessions[salvage->session_count++];
    if (known != NULL) {
        known->salvaged = salvage->session_count;
    }
    *session = (struct salvage_session){.number = number};
    return session;
}

/* What the newest header of a session says, or a name for one without. */
static void options_of(const struct salvage *salvage, uint32_t number,
                       char *name, size_t name_size,
                       struct wal_session_options *options)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, number);

    *options = (struct wal_session_options){.struct_size = sizeof(*options)};
    if (known == NULL || !known->has_record) {
        snprintf(name, name_size, "salvaged-%" PRIu32, number);
        options->id = cli_slice(name);
        return;
    }
    options->schema_version = known->record.schema_version;
    options->id = slice_of(known->record.id);
    options->cwd = slice_of(known->record.cwd);
    options->project = slice_of(known->record.project);
    options->title = slice_of(known->record.title);
    options->parent_id = slice_of(known->record.parent_id);
    options->metadata = slice_of(known->record.metadata);
    options->source = slice_of(known->record.source);
}

static void create_session(struct salvage *salvage,
                           struct salvage_session *session)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, session->number);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_options options;
    enum wal_status status;
    char name[32];

    options_of(salvage, session->number, name, sizeof(name), &options);
    status =
        wal_session_create(salvage->out, &options, &session->handle, &error);
    session->id = cli_copy(options.id.data, options.id.size);
    if (status != WAL_OK) {
        salvage_note(salvage, session->id, "", "the session cannot be made: %s",
                     error.text);
        return;
    }
    salvage->sessions_made++;
    if (known == NULL || !known->has_record) {
        salvage_note(salvage, session->id, "",
                     "the session's header is lost: its id, directory and "
                     "metadata are not known");
    } else if (known->from_index) {
        salvage_note(salvage, session->id, "",
                     "the session's header is lost: its metadata is not "
                     "known, the rest comes from an index");
    }
}

/* The session in OUT, made now when it is not there. A fork is made by its
 * FORK record, or here as a session of its own when that is lost. */
struct salvage_session *salvage_session(struct salvage *salvage,
                                        uint32_t number)
{
    struct salvage_session *session = find_session(salvage, number);

    if (session == NULL) {
        session = add_session(salvage, number);
    }
    if (session->handle == NULL && session->id == NULL) {
        const struct check_session *known =
            check_model_find(&salvage->store->model, number);

        create_session(salvage, session);
        if (known != NULL && known->has_record &&
            (known->record.flags & WAL__SESSION_RECORD_FORK) != 0) {
            salvage_note(salvage, session->id, "",
                         "where the session was forked is lost: it holds its "
                         "own entries alone");
        }
    }
    return session;
}

/* Makes a fork in OUT at the nearest entry on the branch that is left. */
static void fork_session(struct salvage *salvage, uint32_t number,
                         const struct wal__fork_record *fork, uint64_t point)
{
    struct salvage_session *session = find_session(salvage, number);
    const uint32_t *source =
        cli_ids_find(&salvage->store->model.ids, slice_of(fork->source_id));
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_options options;
    struct wal_session *handle = NULL;
    struct salvage_session *from;
    enum wal_status status;
    uint64_t left = point;
    char name[32];
    char *at;

    if (session != NULL || source == NULL || *source == number) {
        return; /* salvage_session makes it, and says what is lost */
    }
    at = salvage_surviving_id(salvage, &left);
    from = salvage_session(salvage, *source);
    if (from->handle == NULL || (at == NULL && point != 0)) {
        free(at);
        return;
    }
    options_of(salvage, number, name, sizeof(name), &options);
    options.parent_id = (struct wal_slice){NULL, 0};
    status = wal_session_fork(from->handle, cli_slice(at == NULL ? "" : at),
                              &options, &handle, &error);
    if (status == WAL_OK) {
        session = add_session(salvage, number);
        session->handle = handle;
        session->id = cli_copy(options.id.data, options.id.size);
        salvage->sessions_made++;
        if (left != point) {
            salvage_moved(salvage, session->id, "", point, at);
        }
    }
    free(at);
}

static void take_fork(struct salvage *salvage, const struct wal__frame *frame,
                      const uint8_t *payload)
{
    struct wal__fork_record fork;

    if (wal__fork_record_decode((struct wal__span){payload, frame->stored_size},
                                &fork) == WAL__FMT_OK) {
        fork_session(salvage, frame->session, &fork, frame->parent);
    }
}

/* --- the pass ------------------------------------------------------------- */

static bool is_fork(const struct wal__frame *frame, const uint8_t *payload)
{
    struct wal__session_record record;

    return wal__session_record_decode(
               (struct wal__span){payload, frame->stored_size}, &record) ==
               WAL__FMT_OK &&
           (record.flags & WAL__SESSION_RECORD_FORK) != 0;
}

static void take_head(struct salvage *salvage, const struct wal__frame *frame,
                      const uint8_t *payload)
{
    struct wal__head_record head;
    char name[WAL__ID_MAX + 1] = "";

    if (wal__head_record_decode((struct wal__span){payload, frame->stored_size},
                                &head) == WAL__FMT_OK) {
        memcpy(name, head.name.data, head.name.size);
        name[head.name.size] = '\0';
    }
    salvage_note(salvage, salvage_session(salvage, frame->session)->id, "",
                 "a move of the head %s is not repeated", name);
}

static void take_frame(struct salvage *salvage, const struct wal__frame *frame,
                       uint64_t offset, const uint8_t *payload)
{
    if ((frame->flags & WAL__FRAME_LZ4) != 0) {
        salvage_note(salvage, salvage_session(salvage, frame->session)->id, "",
                     "the record of sequence %" PRIu64
                     " is compressed and was not read",
                     frame->sequence);
        return;
    }
    if (frame->type == WAL__FRAME_ENTRY) {
        salvage_entry(salvage, frame, offset, payload);
        return;
    }
    salvage_flush(salvage);
    if (frame->type == WAL__FRAME_SESSION) {
        /* A fork is made when its FORK comes, right behind. */
        if (!is_fork(frame, payload)) {
            salvage_session(salvage, frame->session);
        }
    } else if (frame->type == WAL__FRAME_FORK) {
        take_fork(salvage, frame, payload);
    } else if (frame->type == WAL__FRAME_HEAD) {
        take_head(salvage, frame, payload);
    }
}

static bool take_piece(void *ctx, const struct wal__scan_piece *piece)
{
    struct salvage *salvage = ctx;
    uint64_t at = 0;

    while (at < piece->size) {
        struct wal__frame frame;

        if (wal__frame_decode(piece->bytes + at, piece->size - at,
                              salvage->segment->header.salt, piece->offset + at,
                              &frame) != WAL__FMT_OK) {
            return false;
        }
        if (wal__frame_is_sequenced(frame.type) && frame.session != 0) {
            take_frame(salvage, &frame, piece->offset + at,
                       piece->bytes + at + WAL__FRAME_SIZE);
        }
        at += wal__frame_span(frame.stored_size);
    }
    return true;
}

/* From the oldest segment to the newest. */
static void pass(struct salvage *salvage)
{
    const struct wal__scan_sink sink = {salvage, take_piece, NULL};
    struct check_segment *segment = salvage->store->log.tail;

    while (segment != NULL && segment->previous != NULL) {
        segment = segment->previous;
    }
    for (; segment != NULL; segment = segment->next) {
        salvage->segment = segment;
        if (!check_segment_pass(segment, &sink, true)) {
            salvage_note(salvage, "", "", "%s cannot be opened", segment->name);
        }
        salvage_flush(salvage);
    }
}

/* Sessions that have no record left that can be read. */
static void name_empty(struct salvage *salvage)
{
    const struct check_model *model = &salvage->store->model;

    for (size_t i = 0; i < model->session_count; i++) {
        if (model->sessions[i]->has_record) {
            salvage_session(salvage, model->sessions[i]->number);
        }
    }
}

/* Entries whose parent is lost need to know what stood above them. */
static int by_sequence(const void *a, const void *b)
{
    const struct check_lost *x = a;
    const struct check_lost *y = b;

    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void collect_lost(struct salvage *salvage)
{
    const struct check_segments *log = &salvage->store->log;

    for (size_t i = 0; i < log->count; i++) {
        const struct check_segment *segment = log->items[i];

        for (size_t k = 0; k < segment->lost_count; k++) {
            salvage->lost =
                cli_room(salvage->lost, salvage->lost_count,
                         &salvage->lost_capacity, sizeof(*salvage->lost));
            salvage->lost[salvage->lost_count++] = segment->lost[k];
        }
    }
    if (salvage->lost_count > 0) {
        qsort(salvage->lost, salvage->lost_count, sizeof(*salvage->lost),
              by_sequence);
    }
}

/* --- report --------------------------------------------------------------- */

static void report_json(const struct salvage *salvage, const char *out)
{
    const struct check_damages *damages = &salvage->store->damages;
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "out");
    cli_json_text(&json, cli_slice(out));
    cli_json_key(&json, "sessions");
    cli_json_number(&json, salvage->sessions_made);
    cli_json_key(&json, "entries");
    cli_json_number(&json, salvage->entries_made);
    cli_json_key(&json, "damage");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < damages->count; i++) {
        check_report_damage(&json, &salvage->store->model, &damages->items[i]);
    }
    cli_json_close(&json, ']');
    cli_json_key(&json, "notes");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct salvage_note *note = &salvage->notes[i];

        cli_json_open(&json, '{');
        cli_json_key(&json, "sessionId");
        cli_json_optional(&json, cli_slice(note->session));
        cli_json_key(&json, "entryId");
        cli_json_optional(&json, cli_slice(note->entry));
        cli_json_key(&json, "reason");
        cli_json_text(&json, cli_slice(note->reason));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

static void report_text(const struct salvage *salvage, const char *out)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        const struct check_damage *damage = &damages->items[i];

        if (!damage->spare) {
            printf("lost: %s: %" PRIu64 ", %" PRIu64 " bytes, sequence %" PRIu64
                   " to %" PRIu64 ": ",
                   damage->file, damage->offset, damage->length,
                   damage->first_sequence, damage->last_sequence);
            cli_print(stdout, cli_slice(damage->reason), 0, false);
            putchar('\n');
        }
    }
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct salvage_note *note = &salvage->notes[i];

        cli_print(stdout, cli_slice(note->session), 0, false);
        fputs(note->entry[0] == '\0' ? "" : " ", stdout);
        cli_print(stdout, cli_slice(note->entry), 0, false);
        fputs(": ", stdout);
        cli_print(stdout, cli_slice(note->reason), 0, false);
        putchar('\n');
    }
    printf("%s: %" PRIu64 " sessions, %" PRIu64 " entries\n", out,
           salvage->sessions_made, salvage->entries_made);
}

static bool lost_nothing(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        if (!damages->items[i].spare) {
            return false;
        }
    }
    return salvage->note_count == 0;
}

static void deinit(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->session_count; i++) {
        wal_session_close(salvage->sessions[i].handle);
        free(salvage->sessions[i].id);
        free(salvage->sessions[i].last_id);
    }
    for (size_t i = 0; i < salvage->note_count; i++) {
        free(salvage->notes[i].session);
        free(salvage->notes[i].entry);
        free(salvage->notes[i].reason);
    }
    free(salvage->sessions);
    free(salvage->notes);
    free(salvage->lost);
    salvage_entries_deinit(salvage);
}

/* Whether OUT can be made where it is asked for. */
static int check_out(const struct check_store *store, const char *out)
{
    char place[PATH_MAX];
    char root[PATH_MAX];
    const char *slash = strrchr(out, '/');
    char *parent = slash == NULL ? cli_copy(".", 1)
                                 : cli_copy(out, (size_t)(slash - out) + 1);
    bool inside = realpath(parent, place) != NULL &&
                  realpath(store->path, root) != NULL &&
                  strncmp(place, root, strlen(root)) == 0 &&
                  (place[strlen(root)] == '/' || place[strlen(root)] == '\0');
    struct stat status;

    free(parent);
    if (lstat(out, &status) == 0) {
        return cli_error(store->cli, CLI_NO, out,
                         "exists; a salvaged store is made anew");
    }
    if (inside) {
        return cli_error(store->cli, CLI_USAGE, out,
                         "lies in the store that is salvaged");
    }
    return CLI_GO_ON;
}

int check_salvage(struct check_store *store, const char *out)
{
    struct salvage salvage = {.store = store};
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags =
            WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE |
            (store->cli->force_network_fs ? (uint32_t)WAL_OPEN_NETWORK_FS : 0),
        .group_align = store->group_align > 8 ? store->group_align : 0,
    };
    struct wal_error error = CLI_ERROR_INIT;
    int code = check_out(store, out);
    enum wal_status status;

    if (code != CLI_GO_ON) {
        return code;
    }
    status = wal_open(out, &options, &salvage.out, &error);
    if (status != WAL_OK) {
        return cli_fail(store->cli, out, status, &error);
    }
    collect_lost(&salvage);
    pass(&salvage);
    name_empty(&salvage);
    status = wal_sync(salvage.out, &error);
    if (store->cli->json) {
        report_json(&salvage, out);
    } else {
        report_text(&salvage, out);
    }
    code = lost_nothing(&salvage) ? CLI_DONE : CLI_NO;
    deinit(&salvage);
    if (status != WAL_OK) {
        code = cli_fail(store->cli, out, status, &error);
    }
    return cli_close(store->cli, out, salvage.out, code);
}
