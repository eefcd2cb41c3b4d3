/*
 * entries.c - prints the entries of a session and, with --follow, new ones.
 *
 * Invariant: an entry that cannot be read is reported and skipped; the others
 * are printed, and the exit code is CLI_NEGATIVE.
 *
 * Threads: the tool has one thread.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/shown/shown.h"
#include "tools/walcat/walcat.h"

/* Interval of the check that the output is still read. */
#define FOLLOW_MS 500

/* An entry in the ring. */
struct pending_entry {
    struct wal_entry entry;
    char *owned_payload; /* copy of data that the cursor owns, or null */
};

struct printer {
    const struct cli *cli;
    struct wal_session *session;
    const struct walcat_options *view;
    struct wal__json_out json;
    struct shown_documents documents;
    size_t documents_from; /* the range of those in view */
    size_t documents_to;
    /* with --type and --tail: the last matching entries */
    struct pending_entry *ring;
    uint64_t ring_size;
    uint64_t ring_count; /* number of entries that were put in */
    uint64_t newest;     /* highest sequence that was read */
    uint64_t passed;     /* sequence of the entry that was read last */
    char previous[256];  /* id of the entry that was read most recently */
    bool is_following;
    int code;
};

static void print(struct printer *printer, const struct wal_entry *entry)
{
    char what[300];
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *store = printer->view->store;
    enum wal_status status =
        printer->view->text
            ? walcat_print_text(store, entry, &error)
            : cli_entry_write(&printer->json, store, entry, &error);

    if (status != WAL_OK) {
        snprintf(what, sizeof(what), "the entry %.*s", (int)entry->id.size,
                 (const char *)entry->id.data);
        cli_report(printer->cli, what, status, &error);
        printer->code = CLI_NEGATIVE;
    }
}

static void process_entry(struct printer *printer,
                          const struct wal_entry *entry)
{
    const char *type = printer->view->type;
    struct pending_entry *slot;

    if (entry->sequence > printer->newest) {
        printer->newest = entry->sequence;
    }
    if (type != NULL && !cli_slice_equal(entry->type, cli_slice(type))) {
        return;
    }
    if (printer->ring_size == 0) {
        print(printer, entry);
        return;
    }
    slot = &printer->ring[printer->ring_count++ % printer->ring_size];
    free(slot->owned_payload);
    slot->entry = *entry;
    slot->owned_payload = cli_entry_detach(&slot->entry);
}

static void print_ring(struct printer *printer)
{
    uint64_t count = printer->ring_count;
    uint64_t first =
        count > printer->ring_size ? count - printer->ring_size : 0;

    for (uint64_t i = first; i < count && !cli_output_failed(); i++) {
        print(printer, &printer->ring[i % printer->ring_size].entry);
    }
    for (uint64_t i = 0; i < printer->ring_size; i++) {
        free(printer->ring[i].owned_payload);
    }
    free(printer->ring);
    printer->ring = NULL;
    printer->ring_size = 0;
}

/* Whether the view hides an entry of a cursor that returns all entries. */
static bool is_hidden(const struct walcat_options *view,
                      const struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0 && !view->redacted) {
        return true;
    }
    return !view->deltas &&
           cli_slice_equal(entry->type,
                           cli_slice(WAL_TYPE_MESSAGE_DELTA_BATCH));
}

/* Sets the entry's parent to its nearest ancestor in view. */
static void reparent(const struct walcat_options *view,
                     struct wal_entry_cursor *cursor, struct wal_entry *entry)
{
    struct wal_entry parent = WAL_INIT(wal_entry);

    while (entry->parent_id.size > 0 &&
           wal_entry_cursor_get(cursor, entry->parent_id, &parent, NULL) ==
               WAL_OK &&
           is_hidden(view, &parent)) {
        entry->parent_id = parent.parent_id;
    }
}

static void follow_entry(struct printer *printer,
                         struct wal_entry_cursor *cursor,
                         struct wal_entry *entry)
{
    char *owned_payload;

    snprintf(printer->previous, sizeof(printer->previous), "%.*s",
             (int)entry->id.size, (const char *)entry->id.data);
    size_t parent = shown_documents_parent(&printer->documents, entry);

    if (parent < printer->documents.count) {
        entry->parent_id = printer->documents.items[parent].id;
    }
    if (!printer->is_following) {
        process_entry(printer, entry);
    } else if (!is_hidden(printer->view, entry)) {
        owned_payload = cli_entry_detach(entry);
        reparent(printer->view, cursor, entry);
        process_entry(printer, entry);
        free(owned_payload);
    }
}

int walcat_report_lost(const struct cli *cli, struct wal_slice previous,
                       enum wal_status status, const struct wal_error *error)
{
    char what[320] = "the first entry in view";

    if (previous.size > 0) {
        snprintf(what, sizeof(what), "the entry after %.*s", (int)previous.size,
                 (const char *)previous.data);
    }
    cli_report(cli, what, status, error);
    return CLI_NEGATIVE;
}

/* Processes the entries of the cursor that are after sequence `after`. */
static void process_entries(struct printer *printer,
                            struct wal_entry_cursor *cursor, uint64_t after)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_entry entry;
    enum wal_status status = WAL_OK;

    while (status != WAL_END && !cli_output_failed()) {
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            printer->passed = entry.sequence;
        }
        if (status == WAL_OK && entry.sequence > after) {
            follow_entry(printer, cursor, &entry);
        } else if (cli_is_damage(status)) {
            printer->code = walcat_report_lost(
                printer->cli, cli_slice(printer->previous), status, &error);
        } else if (status != WAL_OK && status != WAL_END) {
            printer->code = cli_report(printer->cli, printer->cli->items[1],
                                       status, &error);
            return;
        }
    }
}

/* last: the number of entries at the end to read; 0: all. */
static enum wal_status open_cursor(struct printer *printer, uint64_t last,
                                   struct wal_entry_cursor **cursor,
                                   struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = view->all ? WAL_ENTRY_CURSOR_ALL : WAL_ENTRY_CURSOR_BRANCH,
        .flags =
            WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED |
            (view->since_compaction ? WAL_ENTRY_CURSOR_SINCE_COMPACTION : 0U) |
            (view->deltas ? WAL_ENTRY_CURSOR_DELTAS : 0U) |
            (view->redacted ? WAL_ENTRY_CURSOR_REDACTED : 0U),
        .stream = view->stream,
        .up_to = cli_slice(view->branch != NULL ? view->branch : view->up_to),
        .last = last,
    };
    enum wal_status status =
        wal_entry_cursor_open(printer->session, &options, cursor, error);

    if (status == WAL_ENOTFOUND && view->branch != NULL) {
        options.up_to = cli_slice(NULL);
        options.head = cli_slice(view->branch);
        status =
            wal_entry_cursor_open(printer->session, &options, cursor, error);
    }
    return status;
}

/* Opens a cursor on every entry in log order. Their number decreases only when
 * compaction drops deltas, that of the entries in view by a redaction too. */
static enum wal_status open_all(struct printer *printer, uint64_t skip,
                                struct wal_entry_cursor **cursor,
                                struct wal_error *error)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED,
        .stream = printer->view->stream,
        .skip = skip,
    };

    return wal_entry_cursor_open(printer->session, &options, cursor, error);
}

/* Reads the messages in documents, and finds those on the view's branch. */
static enum wal_status find_documents(struct printer *printer,
                                      struct wal_entry_cursor *cursor,
                                      struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    struct shown_documents *documents = &printer->documents;
    struct wal_entry first = WAL_INIT(wal_entry);
    struct wal_entry_cursor *peek = NULL;
    enum wal_status status;

    if (view->stream != 0) {
        return WAL_OK;
    }
    status = shown_documents_read(documents, view->store, printer->session,
                                  cursor, error);
    if (status != WAL_OK || documents->count == 0) {
        return status;
    }
    printer->documents_to = documents->count;
    if (view->since_compaction) {
        printer->documents_from = shown_documents_compaction(documents);
    }
    if (view->all) {
        return WAL_OK;
    }
    status = open_cursor(printer, 0, &peek, error);
    if (status == WAL_OK &&
        wal_entry_cursor_next(peek, &first, NULL) == WAL_OK) {
        /* None before a compaction of the log, whose entries have parents. */
        printer->documents_to =
            first.parent_id.size > 0
                ? 0
                : shown_documents_parent(documents, &first) + 1;
    }
    if (printer->documents_from > printer->documents_to) {
        printer->documents_from = printer->documents_to;
    }
    wal_entry_cursor_close(peek);
    return status;
}

static void process_documents(struct printer *printer)
{
    for (size_t i = printer->documents_from;
         i < printer->documents_to && !cli_output_failed(); i++) {
        process_entry(printer, &printer->documents.items[i]);
    }
}

/* Opens the view's cursor at the first entry that --tail selects. */
static enum wal_status open_view(struct printer *printer,
                                 struct wal_entry_cursor **cursor,
                                 struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    bool is_tail = view->tail > 0 && view->tail != UINT64_MAX;
    enum wal_status status = open_cursor(
        printer, is_tail && view->type == NULL ? view->tail : 0, cursor, error);
    uint64_t documents;
    uint64_t count;

    if (status == WAL_OK) {
        status = find_documents(printer, *cursor, error);
    }
    if (status != WAL_OK || view->tail == UINT64_MAX) {
        return status;
    }
    count = wal_entry_cursor_remaining(*cursor);
    documents = printer->documents_to - printer->documents_from;
    if (!is_tail || view->type == NULL) {
        uint64_t left = view->tail > count ? view->tail - count : 0;
        if (left < documents) {
            printer->documents_from = printer->documents_to - (size_t)left;
        }
        return status;
    }
    count += documents;
    printer->ring_size = view->tail < count ? view->tail : count;
    printer->ring =
        cli_alloc((size_t)printer->ring_size * sizeof(*printer->ring));
    return status;
}

/* Reads the sequence of the last of the entries that were seen; WAL_END when
 * there are fewer now. Else 0 when it is not known. */
static enum wal_status read_last(struct printer *printer, uint64_t seen,
                                 uint64_t *sequence)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = WAL_OK;

    *sequence = 0;
    if (seen > 0) {
        status = open_all(printer, seen - 1, &cursor, NULL);
    }
    if (seen > 0 && status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        *sequence = status == WAL_OK ? entry.sequence : 0;
    }
    wal_entry_cursor_close(cursor);
    return status;
}

/* Opens a cursor after the entries that were seen, the last of which has the
 * sequence printer->passed; before all when compaction dropped deltas. */
static enum wal_status open_rest(struct printer *printer, uint64_t *seen,
                                 struct wal_entry_cursor **cursor,
                                 struct wal_error *error)
{
    uint64_t sequence;

    if (read_last(printer, *seen, &sequence) == WAL_END ||
        (sequence != 0 && printer->passed != 0 &&
         sequence != printer->passed)) {
        *seen = 0;
    }
    return open_all(printer, *seen, cursor, error);
}

static int follow(struct printer *printer, uint64_t seen)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    uint64_t after = printer->newest;
    uint64_t wait_position = 0;

    printer->is_following = true;
    (void)!read_last(printer, seen, &printer->passed);
    while (!cli_output_failed()) {
        status = open_rest(printer, &seen, &cursor, &error);
        if (status != WAL_OK) {
            return cli_report(printer->cli, printer->cli->items[1], status,
                              &error);
        }
        seen += wal_entry_cursor_remaining(cursor);
        process_entries(printer, cursor,
                        after > printer->passed ? after : printer->passed);
        wal_entry_cursor_close(cursor);
        cursor = NULL;
        fflush(stdout);
        status = wal_store_wait(printer->view->store, &wait_position,
                                WAL_WRITTEN, FOLLOW_MS, &error);
        if (status != WAL_OK && status != WAL_EBUSY) {
            return cli_report(printer->cli, printer->cli->items[0], status,
                              &error);
        }
        if (poll(&output, 1, 0) > 0 &&
            (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
            break;
        }
    }
    return printer->code;
}

int walcat_print_entries(const struct cli *cli, struct wal_session *session,
                         const struct walcat_options *view)
{
    struct printer printer = {
        .cli = cli, .session = session, .view = view, .code = CLI_OK};
    const char *named = view->branch != NULL ? view->branch : view->up_to;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = WAL_OK;
    uint64_t seen = 0;
    int code;

    cli_json_init(&printer.json, stdout);
    if (view->follow) {
        status = open_all(&printer, 0, &cursor, &error);
        seen = status == WAL_OK ? wal_entry_cursor_remaining(cursor) : 0;
        wal_entry_cursor_close(cursor);
        cursor = NULL;
    }
    if (status == WAL_OK) {
        status = open_view(&printer, &cursor, &error);
    }
    if (status != WAL_OK) {
        free(printer.ring);
        shown_documents_deinit(&printer.documents);
        return cli_report(cli, named != NULL ? named : cli->items[1], status,
                          &error);
    }
    if (!view->follow) {
        cli_start_pager(cli);
    }
    process_documents(&printer);
    if (view->tail > 0) {
        process_entries(&printer, cursor, 0);
    }
    print_ring(&printer);
    wal_entry_cursor_close(cursor);
    code = view->follow ? follow(&printer, seen) : printer.code;
    shown_documents_deinit(&printer.documents);
    return code;
}
