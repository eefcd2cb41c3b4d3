/*
 * check.c - compares all that a store answers with the reference: lists, cursors, readings at once
 * (differential.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/bytes/assert.h"
#include "tests/sim/differential/differential.h"

enum { LARGEST_IN_LINE = 256 * 1024 };

static const struct wal_slice nothing = {NULL, 0};

void differential_check_slice(struct differential *run, const char *what, struct wal_slice engine,
                              struct wal_slice reference)
{
    if (!reference_is_equal(engine, reference)) {
        differential_fail(run, "%s is \"%.*s\", not \"%.*s\"", what,
                          (int)(engine.size < 300 ? engine.size : 300),
                          engine.size > 0 ? (const char *)engine.data : "",
                          (int)(reference.size < 300 ? reference.size : 300),
                          reference.size > 0 ? (const char *)reference.data : "");
    }
}

void differential_check_number(struct differential *run, const char *what, uint64_t engine,
                               uint64_t reference)
{
    if (engine != reference) {
        differential_fail(run, "%s is %" PRIu64 ", not %" PRIu64, what, engine, reference);
    }
}

static void check_time(struct differential *run, const char *what, int64_t engine, int64_t earliest,
                       int64_t latest)
{
    if (engine < earliest || engine > latest) {
        differential_fail(run, "%s is %" PRId64 ", not %" PRId64 " to %" PRId64, what, engine,
                          earliest, latest);
    }
}

/* ------------------------------------------------------------ sessions --- */

/* A text of a session; of one that is deleted compaction leaves none. */
static void check_text(struct differential *run, const char *what,
                       const struct wal_session_info *engine, struct wal_slice text,
                       struct wal_slice wanted)
{
    if ((engine->flags & WAL_SESSION_DELETED) == 0 || text.size > 0) {
        differential_check_slice(run, what, text, wanted);
    }
}

static void check_info(struct differential *run, const struct wal_session_info *engine,
                       const struct reference_info *reference, bool listed)
{
    const struct wal_session_info *wanted = &reference->info;
    struct wal_slice first = {reference->first_text, reference->first_text_size};
    /* Also of a deleted session whose text compaction dropped. */
    const uint32_t without = (engine->flags & WAL_SESSION_DELETED) != 0 ? WAL_SESSION_NO_TEXT : 0;

    differential_check_slice(run, "the session's id", engine->id, wanted->id);
    check_text(run, "cwd", engine, engine->cwd, wanted->cwd);
    check_text(run, "project", engine, engine->project, wanted->project);
    check_text(run, "title", engine, engine->title, wanted->title);
    check_text(run, "parent id", engine, engine->parent_id, wanted->parent_id);
    check_text(run, "source", engine, engine->source, wanted->source);
    differential_check_slice(run, "head", engine->head, wanted->head);
    differential_check_slice(run, "metadata", engine->metadata,
                             listed ? nothing : wanted->metadata);
    check_text(run, "first text", engine, engine->first_text, first);
    differential_check_number(run, "number", engine->number, wanted->number);
    differential_check_number(run, "flags", engine->flags & ~without, wanted->flags & ~without);
    differential_check_number(run, "schema version", engine->schema_version,
                              wanted->schema_version);
    differential_check_number(run, "entries", engine->entries, wanted->entries);
    differential_check_number(run, "inherited", engine->inherited, wanted->inherited);
    differential_check_number(run, "last sequence", engine->last_sequence, wanted->last_sequence);
    differential_check_number(run, "metadata version", engine->metadata_version,
                              listed ? 0 : wanted->metadata_version);
    differential_check_number(run, "documents", engine->documents, wanted->documents);
    check_time(run, "created", engine->created_ms, wanted->created_ms,
               reference->created_latest_ms);
    check_time(run, "updated", engine->updated_ms, wanted->updated_ms,
               reference->updated_latest_ms);
}

void differential_check_session(struct differential *run, uint32_t number)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = differential_handle(run, number);
    struct reference_info wanted;

    if (session != NULL &&
        differential_compare_status(run, wal_session_get_info(session, &info, &run->error),
                                    reference_session_status(run->ref, number, &wanted))) {
        check_info(run, &info, &wanted, false);
    }
}

static void learn_times(struct differential *run, uint32_t flags)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .flags = flags};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(run->store, &options, &list, &run->error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, &run->error)) == WAL_OK) {
        reference_learn_time(run->ref, info.number, info.updated_ms);
    }
    wal_session_cursor_close(list);
    (void)differential_compare_status(run, status, WAL_END);
}

void differential_learn_times(struct differential *run)
{
    reference_forget_times(run->ref);
    learn_times(run, 0);
    learn_times(run, WAL_SESSION_CURSOR_TRASH);
}

/* Compaction leaves no parent id of a session that is deleted: a lineage may end there. */
static bool may_have_no_parent(const struct reference_info *of)
{
    return (of->info.flags & (WAL_SESSION_DELETED | WAL_SESSION_FORK)) ==
           (uint32_t)WAL_SESSION_DELETED;
}

/* Reads a list to its end, beginning again with the cursor after each page; 0: in one piece. */
static void differential_check_list(struct differential *run,
                                    const struct wal_session_cursor_options *options, uint32_t page)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor_options wanted = *options;
    struct reference_info *infos = NULL;
    struct wal_session_cursor *list = NULL;
    char cursor[WAL_CURSOR_TEXT_SIZE];
    enum wal_status status;
    uint32_t count = 0;

    differential_learn_times(run);
    status = wal_session_cursor_open(run->store, options, &list, &run->error);
    if (!differential_compare_status(run, status,
                                     reference_list(run->ref, options, &infos, &count))) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        status = wal_session_cursor_next(list, &info, &run->error);
        if (status == WAL_END && i > 0 && may_have_no_parent(&infos[i - 1])) {
            break;
        }
        (void)differential_compare_status(run, status, WAL_OK);
        check_info(run, &info, &infos[i], true);
        if (page != 0 && i % page == page - 1) {
            (void)differential_compare_status(
                run, wal_session_cursor_encode(list, cursor, &run->error), WAL_OK);
            wal_session_cursor_close(list);
            wanted.after = differential_slice(cursor);
            list = NULL;
            (void)differential_compare_status(
                run, wal_session_cursor_open(run->store, &wanted, &list, &run->error), WAL_OK);
        }
    }
    (void)differential_compare_status(run, wal_session_cursor_next(list, &info, &run->error),
                                      WAL_END);
    wal_session_cursor_close(list);
    common_free(infos);
}

/* ------------------------------------------------------------- entries --- */

/* A time that the engine gave must be one of these milliseconds. */
static void check_stamp(struct differential *run, struct wal_slice engine,
                        const struct reference_entry *wanted)
{
    char text[32] = "";

    if (wanted->entry.timestamp.size > 0) {
        differential_check_slice(run, "timestamp", engine, wanted->entry.timestamp);
        return;
    }
    for (int64_t ms = wanted->earliest_ms; ms <= wanted->latest_ms; ms++) {
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;

        (void)gmtime_r(&seconds, &tm);
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        (void)snprintf(text + 19, sizeof(text) - 19, ".%03dZ", (int)(ms % 1000));
        if (reference_is_equal(engine, differential_slice(text))) {
            return;
        }
    }
    differential_fail(run, "timestamp is \"%.*s\", not up to %s", (int)engine.size,
                      (const char *)engine.data, text);
}

/* Checks what replaces the content of a redacted entry. */
static void check_redacted(struct differential *run, struct wal_slice payload,
                           const struct reference_entry *wanted)
{
    struct wal_slice by;
    struct wal_slice reason;

    if (!reference_member(payload, "redactedBy", &by) ||
        !reference_member(payload, "reason", &reason)) {
        differential_fail(run, "a redacted entry says \"%.*s\"", (int)payload.size,
                          (const char *)payload.data);
    }
    differential_check_slice(run, "redactedBy", by, wanted->redacted_by);
    differential_check_slice(run, "reason", reason, wanted->reason);
    reference_free(by);
    reference_free(reason);
}

/* It may have been left out of line. */
static void check_payload(struct differential *run, const struct wal_entry *engine,
                          struct wal_slice wanted)
{
    bool outside = (engine->flags & WAL_ENTRY_OUT_OF_LINE) != 0;

    if (outside && wanted.size <= LARGEST_IN_LINE) {
        differential_fail(run, "a payload of %" PRIu64 " bytes is a blob", wanted.size);
    }
    differential_check_slice(run, "payload", engine->payload, outside ? nothing : wanted);
    differential_check_number(run, "payload_size", engine->payload_size, wanted.size);
}

void differential_check_entry(struct differential *run, const struct wal_entry *engine,
                              const struct reference_entry *wanted)
{
    const struct wal_entry *entry = &wanted->entry;

    differential_check_slice(run, "the entry's id", engine->id, entry->id);
    differential_check_slice(run, "parent", engine->parent_id, entry->parent_id);
    differential_check_slice(run, "type", engine->type, entry->type);
    differential_check_slice(run, "run id", engine->run_id, entry->run_id);
    differential_check_slice(run, "meta", engine->meta, entry->meta);
    differential_check_number(run, "the entry's flags",
                              engine->flags & ~(uint32_t)WAL_ENTRY_OUT_OF_LINE, entry->flags);
    differential_check_number(run, "stream", engine->stream, entry->stream);
    differential_check_number(run, "sequence", engine->sequence, entry->sequence);
    differential_check_number(run, "depth", engine->depth, entry->depth);
    check_stamp(run, engine->timestamp, wanted);
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        check_redacted(run, engine->payload, wanted);
    } else {
        check_payload(run, engine, entry->payload);
    }
}

/* A cursor up to the durable end may omit entries: the engine may have synced more than was
 * requested. Of a copy all is durable. */
static uint32_t durable_count(const struct differential *run, const struct reference_entry *entries,
                              uint32_t count)
{
    while (count > 0 && !run->is_copy &&
           entries[count - 1].entry.sequence > reference_durable_sequence(run->ref)) {
        count--;
    }
    return count;
}

/* ---------------------------------------------------- dropped deltas --- */

/* Whether this process found that a delta is gone that was dropped. */
static bool differential_was_gone(const struct differential *run, uint64_t sequence)
{
    return !run->is_shared || (run->gone[sequence / 8] & (1u << sequence % 8)) != 0;
}

/* This process has no delta that it found gone (SPEC.md 5.1). */
static void set_gone(struct differential *run, uint64_t sequence)
{
    if (!run->is_shared) {
        return;
    }
    WAL__ASSERT(sequence < DIFFERENTIAL_RECORDS);
    run->gone[sequence / 8] |= (uint8_t)(1u << sequence % 8);
}

/* A reader does not have the entry: it was dropped, if it may have been. */
static void differential_learn_gone(struct differential *run, uint64_t sequence)
{
    bool is_doubtful;
    bool is_dropped = reference_is_dropped(run->ref, sequence, &is_doubtful);

    if (is_doubtful) {
        reference_drop(run->ref, sequence);
        run->counts->dropped_deltas++;
    }
    if (is_dropped || is_doubtful) {
        set_gone(run, sequence);
    }
    reference_show(run->ref, sequence, false);
}

/* The entries of a complete read, with those that were dropped. */
static uint32_t read_dropped(struct differential *run, uint32_t number,
                             const struct wal_entry_cursor_options *options,
                             struct reference_entry **entries)
{
    uint32_t count = 0;

    reference_hide_dropped(run->ref);
    reference_show_dropped(run->ref, true);
    (void)differential_compare_status(run, WAL_OK,
                                      reference_read(run->ref, number, options, entries, &count));
    reference_show_dropped(run->ref, false);
    return count;
}

/* Lets complete reads of the reference have the dropped deltas that this process has still: of the
 * files from before a compaction. Where processes do not share the store there are none. */
static void learn_shown(struct differential *run, uint32_t number,
                        const struct wal_entry_cursor_options *asked)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = asked->flags &
                                                              ~(uint32_t)WAL_ENTRY_CURSOR_DURABLE,
                                                     .mode = WAL_ENTRY_CURSOR_ALL,
                                                     .stream = asked->stream};
    struct wal_session *session = differential_handle(run, number);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct reference_entry *entries = NULL;
    struct wal_entry_cursor *iter = NULL;
    uint32_t count = read_dropped(run, number, &options, &entries);
    enum wal_status status = wal_entry_cursor_open(session, &options, &iter, &run->error);

    (void)differential_compare_status(run, status, WAL_OK);
    status = wal_entry_cursor_next(iter, &entry, &run->error);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sequence = entries[i].entry.sequence;
        bool is_doubtful;

        if (status != WAL_OK || entry.sequence != sequence) {
            differential_learn_gone(run, sequence);
            continue;
        }
        if (reference_is_dropped(run->ref, sequence, &is_doubtful)) {
            if (differential_was_gone(run, sequence)) {
                differential_fail(run, "a delta that was gone is back: %" PRIu64, sequence);
            }
            reference_show(run->ref, sequence, true);
        }
        status = wal_entry_cursor_next(iter, &entry, &run->error);
    }
    (void)differential_compare_status(run, status, WAL_END);
    wal_entry_cursor_close(iter);
    common_free(entries);
}

/* Whether a reader may have deltas that were dropped, or lack some that were not known to be. */
static bool is_uncertain(const struct wal_entry_cursor_options *options)
{
    return options->mode == WAL_ENTRY_CURSOR_ALL && (options->flags & WAL_ENTRY_CURSOR_DELTAS) != 0;
}

/* The process may find the files of a compaction between two calls: not twice. */
static bool differential_open_read(struct differential *run, uint32_t number,
                                   const struct wal_entry_cursor_options *options,
                                   struct wal_entry_cursor **iter, struct reference_entry **entries,
                                   uint32_t *count)
{
    struct wal_session *session = differential_handle(run, number);
    bool is_same = false;

    if (is_uncertain(options) && !reference_is_deleted(run->ref, number)) {
        learn_shown(run, number, options);
    }
    for (uint32_t i = 0; i < 3 && !is_same; i++) {
        enum wal_status status;

        wal_entry_cursor_close(*iter);
        common_free(*entries);
        *iter = NULL;
        *entries = NULL;
        status = wal_entry_cursor_open(session, options, iter, &run->error);
        if (!differential_compare_status(
                run, status, reference_read(run->ref, number, options, entries, count))) {
            return false;
        }
        is_same = !is_uncertain(options) || wal_entry_cursor_remaining(*iter) == *count;
        if (!is_same) {
            learn_shown(run, number, options);
        }
    }
    return true;
}

static void differential_check_read(struct differential *run, uint32_t number,
                                    const struct wal_entry_cursor_options *options)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct reference_entry *entries = NULL;
    struct wal_entry_cursor *iter = NULL;
    uint64_t remaining;
    uint32_t count = 0;

    if (differential_handle(run, number) == NULL) {
        return;
    }
    if (!differential_open_read(run, number, options, &iter, &entries, &count)) {
        return;
    }
    remaining = wal_entry_cursor_remaining(iter);
    if ((options->flags & WAL_ENTRY_CURSOR_DURABLE) != 0 && remaining <= count &&
        remaining >= durable_count(run, entries, count)) {
        count = (uint32_t)remaining;
    }
    if (remaining != count) {
        differential_fail(run,
                          "entries that remain is %" PRIu64
                          ", not %u: session %u, stream %u, mode %u, flags "
                          "%#x",
                          remaining, count, number, options->stream, options->mode, options->flags);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)differential_compare_status(run, wal_entry_cursor_next(iter, &entry, &run->error),
                                          WAL_OK);
        differential_check_entry(run, &entry, &entries[i]);
    }
    (void)differential_compare_status(run, wal_entry_cursor_next(iter, &entry, &run->error),
                                      WAL_END);
    wal_entry_cursor_close(iter);
    common_free(entries);
    reference_hide_dropped(run->ref);
}

void differential_check_get(struct differential *run, uint32_t number, struct wal_slice id,
                            uint32_t flags)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = differential_handle(run, number);
    struct reference_entry wanted;
    struct wal_entry_cursor *iter = NULL;
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    status = wal_entry_cursor_open(session, &options, &iter, &run->error);
    if (!differential_compare_status(
            run, status, reference_is_deleted(run->ref, number) ? WAL_ENOTFOUND : WAL_OK)) {
        return;
    }
    if (differential_compare_status(run, wal_entry_cursor_get(iter, id, &entry, &run->error),
                                    reference_get(run->ref, number, id, flags, &wanted))) {
        differential_check_entry(run, &entry, &wanted);
    }
    wal_entry_cursor_close(iter);
}

/* ---------------------------------------------------- heads, documents --- */

void differential_check_heads(struct differential *run, uint32_t number)
{
    struct wal_session *session = differential_handle(run, number);
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    struct wal_head *wanted = NULL;
    enum wal_status status;
    uint32_t count = 0;

    if (session == NULL) {
        return;
    }
    status = wal_head_cursor_open(session, &heads, &run->error);
    if (!differential_compare_status(run, status,
                                     reference_heads(run->ref, number, &wanted, &count))) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)differential_compare_status(run, wal_head_cursor_next(heads, &head, &run->error),
                                          WAL_OK);
        differential_check_slice(run, "a head's name", head.name, wanted[i].name);
        differential_check_slice(run, "a head's entry", head.entry_id, wanted[i].entry_id);
        differential_check_slice(run, "a head's note", head.note, wanted[i].note);
        differential_check_number(run, "a head's stream", head.stream, wanted[i].stream);
        differential_check_number(run, "a head's version", head.version, wanted[i].version);
    }
    (void)differential_compare_status(run, wal_head_cursor_next(heads, &head, &run->error),
                                      WAL_END);
    wal_head_cursor_close(heads);
    common_free(wanted);
}

/* A session's handle, or none for the store; false: there is no handle. */
static bool owner_of(struct differential *run, uint32_t number, struct wal_session **session)
{
    *session = number == REFERENCE_STORE ? NULL : differential_handle(run, number);
    return number == REFERENCE_STORE || *session != NULL;
}

void differential_check_doc(struct differential *run, const struct wal_doc *engine,
                            const struct reference_doc *wanted, bool keys)
{
    const struct wal_doc *doc = &wanted->doc;

    differential_check_slice(run, "key", engine->key, doc->key);
    differential_check_slice(run, "value", engine->value, keys ? nothing : doc->value);
    differential_check_number(run, "the document's flags", engine->flags, doc->flags);
    differential_check_number(run, "version", engine->version, doc->version);
    check_time(run, "modified", engine->modified_ms, doc->modified_ms, wanted->latest_ms);
}

void differential_check_docs(struct differential *run, uint32_t number,
                             const struct wal_doc_cursor_options *options)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_session *session;
    struct wal_doc_cursor *docs = NULL;
    struct reference_doc *wanted = NULL;
    enum wal_status status;
    uint32_t count = 0;

    if (!owner_of(run, number, &session)) {
        return;
    }
    status = wal_doc_cursor_open(run->store, session, options, &docs, &run->error);
    if (!differential_compare_status(run, status,
                                     reference_docs(run->ref, number, options, &wanted, &count))) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)differential_compare_status(run, wal_doc_cursor_next(docs, &doc, &run->error),
                                          WAL_OK);
        differential_check_doc(run, &doc, &wanted[i], (options->flags & WAL_DOC_CURSOR_KEYS) != 0);
    }
    (void)differential_compare_status(run, wal_doc_cursor_next(docs, &doc, &run->error), WAL_END);
    wal_doc_cursor_close(docs);
    common_free(wanted);
}

void differential_check_doc_get(struct differential *run, uint32_t number, struct wal_slice key,
                                uint64_t version)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_session *session;
    struct wal_doc_cursor *docs = NULL;
    struct reference_doc wanted;
    enum wal_status status;

    if (!owner_of(run, number, &session)) {
        return;
    }
    status = wal_doc_cursor_open(run->store, session, NULL, &docs, &run->error);
    if (!differential_compare_status(
            run, status,
            session != NULL && reference_is_deleted(run->ref, number) ? WAL_ENOTFOUND : WAL_OK)) {
        return;
    }
    if (differential_compare_status(run, wal_doc_cursor_get(docs, key, version, &doc, &run->error),
                                    reference_doc_get(run->ref, number, key, version, &wanted))) {
        differential_check_doc(run, &doc, &wanted, false);
    }
    wal_doc_cursor_close(docs);
}

/* ---------------------------------------------------------- everything --- */

/* Reads each stream in every way, or in one. */
static void check_session_whole(struct differential *run, uint32_t number, bool is_sample)
{
    static const struct {
        uint32_t mode;
        uint32_t flags;
    } ways[] = {
        {WAL_ENTRY_CURSOR_BRANCH, 0},
        {WAL_ENTRY_CURSOR_BRANCH, WAL_ENTRY_CURSOR_SINCE_COMPACTION},
        {WAL_ENTRY_CURSOR_BRANCH, WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED},
        {WAL_ENTRY_CURSOR_BRANCH, WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_DURABLE},
        {WAL_ENTRY_CURSOR_ALL, 0},
        {WAL_ENTRY_CURSOR_ALL, WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED},
        {WAL_ENTRY_CURSOR_ALL, WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_DURABLE},
    };
    const uint32_t count = sizeof(ways) / sizeof(ways[0]);
    struct wal_doc_cursor_options docs = {.struct_size = sizeof(docs)};

    differential_check_session(run, number);
    differential_check_heads(run, number);
    for (uint32_t stream = 0; stream < DIFFERENTIAL_STREAMS; stream++) {
        uint32_t first = is_sample ? differential_random(run, count) : 0;
        uint32_t last = is_sample ? first : count - 1;

        for (uint32_t i = first; i <= last; i++) {
            const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                             .flags = ways[i].flags,
                                                             .mode = ways[i].mode,
                                                             .stream = stream};

            differential_check_read(run, number, &options);
        }
    }
    differential_check_docs(run, number, &docs);
    docs.flags = WAL_DOC_CURSOR_HISTORY;
    differential_check_docs(run, number, &docs);
}

static void check_all(struct differential *run, bool is_sample)
{
    struct wal_session_cursor_options list = {.struct_size = sizeof(list)};
    struct wal_doc_cursor_options docs = {.struct_size = sizeof(docs),
                                          .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    uint32_t count = reference_session_count(run->ref);
    uint64_t alive = 0;

    run->counts->checks++;
    for (uint32_t number = 1; number <= count; number++) {
        if (!reference_is_deleted(run->ref, number)) {
            check_session_whole(run, number, is_sample);
            alive++;
        }
    }
    differential_check_docs(run, REFERENCE_STORE, &docs);
    differential_check_list(run, &list, 0);
    list.flags = WAL_SESSION_CURSOR_TRASH;
    differential_check_list(run, &list, 0);
    (void)differential_compare_status(run, wal_store_get_info(run->store, &info, &run->error),
                                      WAL_OK);
    if (info.segments > run->counts->segments) {
        run->counts->segments = info.segments;
    }
    differential_check_number(run, "sessions of the store", info.sessions, alive);
    differential_check_number(run, "the last sequence of the store", info.last_sequence,
                              reference_last_sequence(run->ref));
}

void differential_check_all(struct differential *run)
{
    check_all(run, false);
}

void differential_check_sample(struct differential *run)
{
    check_all(run, true);
}

/* --- operations that read ------------------------------------------------- */

void differential_iterate(struct differential *run)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0) {
        return;
    }
    options.mode = differential_one_in(run, 4) ? WAL_ENTRY_CURSOR_ALL : WAL_ENTRY_CURSOR_BRANCH;
    options.flags = differential_random(run, 32);
    if (options.mode == WAL_ENTRY_CURSOR_ALL) {
        options.flags &= ~(uint32_t)WAL_ENTRY_CURSOR_SINCE_COMPACTION;
    }
    /* Which compaction is the last one depends on where the reading ends. */
    if ((options.flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
        options.flags &= ~(uint32_t)WAL_ENTRY_CURSOR_DURABLE;
    }
    if (differential_one_in(run, 4)) {
        options.stream = differential_random(run, DIFFERENTIAL_STREAMS);
    }
    if (options.mode == WAL_ENTRY_CURSOR_BRANCH) {
        switch (differential_random(run, 6)) {
        case 0:
        case 1:
            options.up_to = differential_entry_id(run, number);
            break;
        case 2:
            options.head = differential_slice("left");
            break;
        case 3:
            options.head = differential_slice("main");
            options.up_to =
                differential_one_in(run, 6) ? differential_slice("both") : options.up_to;
            break;
        default:
            break;
        }
    }
    if (differential_one_in(run, 4)) {
        options.skip = differential_random(run, 12);
    }
    /* How many are durable is not known, so neither is the first of the last ones. */
    if (differential_one_in(run, 2) && (options.flags & WAL_ENTRY_CURSOR_DURABLE) == 0) {
        options.last = differential_random(run, 12);
    }
    differential_check_read(run, number, &options);
}

void differential_get(struct differential *run)
{
    uint32_t number = differential_session(run);
    uint32_t flags = differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_REDACTED : 0;
    struct wal_slice id;

    if (number == 0) {
        return;
    }
    if (differential_one_in(run, 2)) {
        flags |= WAL_ENTRY_CURSOR_DELTAS;
    }
    if (differential_one_in(run, 2)) {
        flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    }
    id = differential_entry_id(run, number);
    if (id.size == 0 || differential_one_in(run, 10)) {
        id = differential_slice("no entry");
    }
    differential_check_get(run, number, id, flags);
}

void differential_list(struct differential *run)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct reference_info info;

    if (differential_one_in(run, 5) && number != 0 &&
        reference_session_status(run->ref, number, &info) == WAL_OK) {
        options.flags = WAL_SESSION_CURSOR_LINEAGE;
        options.lineage_of = info.info.id;
        differential_check_list(run, &options, differential_random(run, 3));
        return;
    }
    if (differential_one_in(run, 4)) {
        options.flags = WAL_SESSION_CURSOR_TRASH;
    }
    if (differential_one_in(run, 12)) {
        options.flags = WAL_SESSION_CURSOR_LINEAGE;
        options.lineage_of = differential_slice("nobody");
    } else if (differential_one_in(run, 12)) {
        options.after = differential_slice("no cursor");
    } else if (differential_one_in(run, 2)) {
        options.cwd = differential_text(run, "/work/%u", differential_random(run, 5));
    } else if (differential_one_in(run, 3)) {
        options.project = differential_text(run, "p%u", differential_random(run, 4));
    } else if (differential_one_in(run, 3)) {
        options.prefix = differential_text(run, "id-%u", differential_random(run, 10));
    } else if (differential_one_in(run, 3)) {
        options.source = differential_text(run, "from/%u", differential_random(run, 4));
    } else if (number != 0 && reference_session_status(run->ref, number, &info) == WAL_OK) {
        if (differential_one_in(run, 3)) {
            options.parent = info.info.id;
        } else if (differential_one_in(run, 2)) {
            options.recorded_after = info.info.last_sequence;
        } else {
            options.changed_after = info.info.updated_ms;
        }
    }
    differential_check_list(run, &options, differential_random(run, 4));
}

/* A document, a version that it had, or one that it had not. */
void differential_get_doc(struct differential *run)
{
    struct wal_slice key = differential_key(run);
    uint32_t number = differential_session(run);
    uint64_t version = 0;

    if (number == 0 || differential_one_in(run, 4)) {
        number = REFERENCE_STORE;
    }
    if (differential_one_in(run, 2)) {
        struct reference_doc now;

        version = differential_random(run, (uint32_t)reference_last_sequence(run->ref) + 3);
        if (differential_one_in(run, 2) &&
            reference_doc_get(run->ref, number, key, 0, &now) == WAL_OK) {
            version = now.doc.version;
        }
    }
    differential_check_doc_get(run, number, key, version);
}

void differential_scan_docs(struct differential *run)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0 || differential_one_in(run, 4)) {
        number = REFERENCE_STORE;
    }
    options.flags = differential_random(run, 4);
    if (differential_one_in(run, 2)) {
        options.prefix = differential_text(run, "a/%u", differential_random(run, 12));
    }
    differential_check_docs(run, number, &options);
}

void differential_check(struct differential *run)
{
    differential_check_all(run);
}

/* --- readers -------------------------------------------------------------- */

/*
 * Operations on readers that stay open while others write: they give what was there when they were
 * opened, but for what was redacted since.
 */

void differential_close_iter(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    wal_entry_cursor_close(held->cursor);
    common_free(held->entries);
    held->cursor = NULL;
    held->entries = NULL;
    held->at = 0;
}

void differential_close_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    wal_doc_cursor_close(held->docs);
    common_free(held->expected);
    held->docs = NULL;
    held->expected = NULL;
    held->doc_at = 0;
}

void differential_close_readers(struct differential *run, bool dead)
{
    if (dead) {
        run->readers.cursor = NULL;
        run->readers.docs = NULL;
    }
    differential_close_iter(run);
    differential_close_docs(run);
}

static void open_iter(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0 || differential_handle(run, number) == NULL) {
        return;
    }
    options.flags = differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_REDACTED : 0;
    options.flags |= differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_DELTAS : 0;
    options.mode = differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_ALL : WAL_ENTRY_CURSOR_BRANCH;
    options.last = differential_one_in(run, 2) ? differential_random(run, 12) : 0;
    held->number = number;
    held->flags = options.flags;
    held->opened_at = run->compactions;
    held->limit = reference_last_sequence(run->ref);
    held->opened_sequence = held->limit;
    (void)differential_open_read(run, number, &options, &held->cursor, &held->entries,
                                 &held->count);
    reference_hide_dropped(run->ref);
}

/* The entries that the reader is at when these redactions count for it, of its parent others;
 * false: it is at the end. Deltas that were dropped may be there still. */
static bool find_next(struct differential *run, const struct wal_entry *got, uint64_t limit,
                      uint64_t parent_limit, struct reference_entry *out)
{
    struct differential_readers *held = &run->readers;

    for (held->next = held->at; held->next < held->count; held->next++) {
        uint64_t sequence = held->entries[held->next].entry.sequence;
        bool is_doubtful;
        bool is_dropped = reference_is_dropped(run->ref, sequence, &is_doubtful);
        bool is_here = got != NULL && got->sequence == sequence;

        if (is_here ? is_dropped && differential_was_gone(run, sequence)
                    : is_dropped || is_doubtful) {
            continue;
        }
        /* One that was redacted for a while may be left out since. */
        if (!is_here && (held->flags & WAL_ENTRY_CURSOR_REDACTED) == 0 &&
            reference_was_redacted(run->ref, sequence, held->opened_sequence)) {
            continue;
        }
        if (reference_refresh(run->ref, sequence, held->flags, limit, parent_limit, out)) {
            if (is_here && reference_may_be_parent(run->ref, sequence, got->parent_id, held->flags,
                                                   held->opened_sequence)) {
                out->entry.parent_id = got->parent_id;
                out->entry.flags &= ~(uint32_t)WAL_ENTRY_ROOT;
                out->entry.flags |= got->flags & WAL_ENTRY_ROOT;
            }
            held->next++;
            return true;
        }
    }
    return false;
}

static bool is_at(const struct wal_entry *got, bool more, const struct reference_entry *wanted)
{
    if (got == NULL || !more) {
        return (got == NULL) == !more;
    }
    return got->sequence == wanted->entry.sequence &&
           (got->flags & WAL_ENTRY_REDACTED) == (wanted->entry.flags & WAL_ENTRY_REDACTED) &&
           reference_is_equal(got->parent_id, wanted->entry.parent_id);
}

/* The next entry that the reader may give; false: the end. Redactions of this process count at
 * once, those of another one with the next block of entries, or before; then those that were before
 * it do too (SPEC.md 5.7). A parent is looked up when its entry is read. */
static bool next_expected(struct differential *run, const struct wal_entry *got,
                          struct reference_entry *wanted)
{
    struct differential_readers *held = &run->readers;
    uint64_t last = reference_last_sequence(run->ref);
    uint64_t known = run->is_shared ? run->written : last;
    uint64_t limit;

    held->limit = held->limit > known ? held->limit : known;
    limit = held->limit;
    do {
        uint64_t parent_limit = limit;

        do {
            bool more = find_next(run, got, limit, parent_limit, wanted);

            if (is_at(got, more, wanted)) {
                held->limit = limit;
                return more;
            }
        } while (reference_next_redaction(run->ref, &parent_limit));
    } while (reference_next_redaction(run->ref, &limit));
    return find_next(run, got, last, last, wanted);
}

/* Those that the reader went past and did not give. */
static void pass(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    for (; held->at < held->next; held->at++) {
        bool is_last = held->at + 1 == held->next;

        if (!is_last) {
            differential_learn_gone(run, held->entries[held->at].entry.sequence);
        }
    }
}

void differential_step_iter(struct differential *run)
{
    uint32_t steps = 1 + differential_random(run, 8);

    differential_close_deleted(run);
    if (run->readers.cursor == NULL) {
        open_iter(run);
    }
    for (uint32_t i = 0; i < steps && run->readers.cursor != NULL; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct reference_entry wanted;
        enum wal_status status = wal_entry_cursor_next(run->readers.cursor, &entry, &run->error);
        bool more = next_expected(run, status == WAL_OK ? &entry : NULL, &wanted);

        if (differential_compare_status(run, status, more ? WAL_OK : WAL_END)) {
            differential_check_entry(run, &entry, &wanted);
            pass(run);
        } else {
            differential_close_iter(run);
        }
    }
}

static void open_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct wal_session *session = NULL;

    if (number == 0 || differential_one_in(run, 3)) {
        number = REFERENCE_STORE;
    } else {
        session = differential_handle(run, number);
        if (session == NULL) {
            return;
        }
    }
    held->doc_number = number;
    held->docs_opened_at = run->compactions;
    options.flags = differential_one_in(run, 2) ? WAL_DOC_CURSOR_HISTORY : 0;
    (void)differential_compare_status(
        run, wal_doc_cursor_open(run->store, session, &options, &held->docs, &run->error),
        reference_docs(run->ref, number, &options, &held->expected, &held->doc_count));
}

void differential_step_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    uint32_t steps = 1 + differential_random(run, 4);

    differential_close_deleted(run);
    if (held->docs == NULL) {
        open_docs(run);
    }
    for (uint32_t i = 0; i < steps && held->docs != NULL; i++) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        bool more = held->doc_at < held->doc_count;

        if (differential_compare_status(run, wal_doc_cursor_next(held->docs, &doc, &run->error),
                                        more ? WAL_OK : WAL_END)) {
            differential_check_doc(run, &doc, &held->expected[held->doc_at++], false);
        } else {
            differential_close_docs(run);
        }
    }
}
