/*
 * find.c - searches the store for canaries, and compares the hits with the reference (model.h).
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentwal/search.h"
#include "search/index/database.h"
#include "tests/model/model.h"

/* A query of one canary, or of the beginning that all have. */
struct query {
    struct wal_search_query options;
    uint32_t canary; /* 0: any */
    uint32_t number; /* of the session that is searched; 0: all */
};

/* Of this process; null: closed. */
static struct wal_search *search;

/* The linker gives the library these in place of the calls by which it writes index files. */
extern ssize_t real_pwrite(int fd, const void *data, size_t size,
                           off_t offset) __asm__("__real_pwrite");
extern int real_renameat(int from, const char *old, int to,
                         const char *name) __asm__("__real_renameat");
extern ssize_t counted_pwrite(int fd, const void *data, size_t size,
                              off_t offset) __asm__("__wrap_pwrite");
extern int counted_renameat(int from, const char *old, int to,
                            const char *name) __asm__("__wrap_renameat");

ssize_t counted_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    model_count_call();
    return real_pwrite(fd, data, size, offset);
}

int counted_renameat(int from, const char *old, int to, const char *name)
{
    model_count_call();
    return real_renameat(from, old, to, name);
}

static void choose_query(struct differential *run, bool is_whole, struct query *query)
{
    uint32_t records = (uint32_t)reference_last_sequence(run->ref);
    uint32_t sessions = reference_session_count(run->ref);
    struct reference_info info;
    struct wal_slice id;
    struct wal_slice text;

    *query = (struct query){.options = {.struct_size = sizeof(query->options),
                                        .text = differential_slice("canary*"),
                                        .session_limit = UINT32_MAX,
                                        .hits_limit = UINT32_MAX}};
    query->options.flags = differential_one_in(run, 2) ? WAL_SEARCH_DEEP : 0;
    for (int i = 0; !is_whole && i < 4 && query->canary == 0; i++) {
        uint64_t sequence = 1 + differential_random(run, records + 1);

        if (sequence <= records) {
            (void)reference_is_found(run->ref, sequence, 0, &text, &id);
            (void)differential_next_canary(&text, &query->canary);
        }
    }
    if (query->canary != 0) {
        query->options.text = differential_text(run, "canary%08u", query->canary);
    }
    if (differential_one_in(run, 4)) {
        query->options.flags |= WAL_SEARCH_SUBSTRING;
        query->options.text.size -= query->canary == 0; /* the star */
    }
    query->number = 1 + differential_random(run, 4 * sessions + 1);
    if (is_whole || query->number > sessions ||
        reference_session_status(run->ref, query->number, &info) != WAL_OK) {
        query->number = 0;
    } else {
        query->options.session = info.info.id;
    }
}

/* Whether the text has the word. */
static bool has_word(struct wal_slice text, uint32_t canary)
{
    uint32_t number;

    while (differential_next_canary(&text, &number)) {
        if (canary == 0 || number == canary) {
            return true;
        }
    }
    return false;
}

/* While others write: a reader of the session has the entry with the word that is shown, or it is
 * gone by now. */
static void check_readable(struct differential *run, const struct wal_search_hit *hit)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = NULL;
    struct wal_slice shown = hit->snippet;
    uint32_t canary;
    enum wal_status status = wal_session_open(run->store, hit->session_id, &session, &run->error);

    if (status == WAL_OK && hit->entry_id.size > 0) {
        status = wal_entry_get(session, hit->entry_id, &entry, &run->error);
        if (status == WAL_OK && differential_next_canary(&shown, &canary) &&
            !has_word(entry.payload, canary)) {
            differential_fail(run, "the entry of a hit lacks canary%08u", canary);
        }
    }
    wal_session_close(session);
    if (status != WAL_OK && status != WAL_ENOTFOUND && status != WAL_ETRASHED &&
        status != WAL_EREDACTED) {
        differential_fail(run, "reading a hit answers %d (%s)", status, wal_status_text(status));
    }
}

static int by_sequence(const void *a, const void *b)
{
    uint64_t left = ((const struct wal_search_hit *)a)->sequence;
    uint64_t right = ((const struct wal_search_hit *)b)->sequence;

    return left < right ? -1 : left > right;
}

/* Each record that the reference finds is one hit, and no other is. */
static void compare_hits(struct differential *run, const struct query *query,
                         const struct wal_search_hit *hits, uint32_t count)
{
    uint64_t records = reference_last_sequence(run->ref);
    uint32_t at = 0;

    for (uint64_t sequence = 1; sequence <= records; sequence++) {
        struct wal_slice text;
        struct wal_slice id;
        uint32_t number = 0;
        bool is_found = reference_is_found(run->ref, sequence, query->number, &text, &id);
        bool is_wanted = is_found && has_word(text, query->canary);
        bool is_hit = at < count && hits[at].sequence == sequence;

        if (is_hit != is_wanted) {
            differential_fail(run, "record %" PRIu64 " is %s hit of %.*s: %.*s", sequence,
                              is_hit ? "a" : "no", WAL_ARG(query->options.text),
                              text.size < 200 ? (int)text.size : 200, (const char *)text.data);
        }
        if (!is_hit) {
            continue;
        }
        if (reference_session_open(run->ref, hits[at].session_id, &number) != WAL_OK ||
            (query->number != 0 && number != query->number) ||
            !reference_is_found(run->ref, sequence, number, &text, &id)) {
            differential_fail(run, "record %" PRIu64 " is a hit of session %u", sequence, number);
        }
        differential_check_slice(run, "the entry of a hit", hits[at].entry_id, id);
        at++;
    }
    differential_check_number(run, "hits", count, at);
}

/* Index files are open only while hits are looked for. */
static void check_closed(struct differential *run)
{
    for (int fd = 3; fd < 256; fd++) {
        char path[32];
        char target[MODEL_PATH * 2];
        ssize_t size;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        size = readlink(path, target, sizeof(target));
        if (size > 0 && memmem(target, (size_t)size, ".fts", 4) != NULL) {
            differential_fail(run, "%.*s stays open", (int)size, target);
        }
    }
}

/* is_new: all index files are there then. */
static void update(struct differential *run, bool is_new)
{
    const struct wal_search_update_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_SEARCH_UPDATE_DEEP};
    struct wal_search_update_result result = {.struct_size = sizeof(result)};

    (void)differential_compare_status(
        run, wal_search_update(search, &options, &result, &run->error), WAL_OK);
    differential_check_number(run, "damaged", result.damaged, 0);
    if (is_new && (run->open_flags & WAL_OPEN_READ_ONLY) == 0) {
        differential_check_number(run, "unwritten", result.unwritten, 0);
    }
}

void model_find(struct model *model, struct differential *run, bool is_whole)
{
    bool is_concurrent = atomic_load(&model->is_concurrent);
    bool is_new = search == NULL;
    struct wal_search_summary summary = {.struct_size = sizeof(summary)};
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_hit *hits;
    struct query query;
    enum wal_status wanted = WAL_OK;
    enum wal_status status;

    choose_query(run, is_whole, &query);
    if (is_new) {
        (void)differential_compare_status(
            run, wal_search_open(run->store, NULL, &search, &run->error), WAL_OK);
    }
    if (differential_one_in(run, 2)) {
        update(run, is_new && !is_concurrent);
        query.options.flags |= WAL_SEARCH_NO_UPDATE;
    }
    status = wal_search_find(search, &query.options, &cursor, &summary, &run->error);
    if (query.number != 0 && is_concurrent && (status == WAL_ENOTFOUND || status == WAL_ETRASHED)) {
        wanted = status;
    } else if (query.number != 0 && reference_is_trashed(run->ref, query.number)) {
        wanted = WAL_ETRASHED;
    }
    (void)differential_compare_status(run, status, wanted);
    hits = calloc(summary.hits + 1, sizeof(*hits));
    WAL__ASSERT(hits != NULL);
    for (uint32_t i = 0; i < summary.hits; i++) {
        hits[i].struct_size = sizeof(hits[i]);
        (void)differential_compare_status(
            run, wal_search_cursor_next(cursor, &hits[i], &run->error), WAL_OK);
        if (is_concurrent) {
            check_readable(run, &hits[i]);
        }
    }
    if (!is_concurrent && status == WAL_OK) {
        differential_check_number(run, "complete", summary.complete, 1);
        differential_check_number(run, "matches", summary.matches, summary.hits);
        qsort(hits, summary.hits, sizeof(*hits), by_sequence);
        compare_hits(run, &query, hits, summary.hits);
        model->tally.hits += summary.hits;
    }
    free(hits);
    wal_search_cursor_close(cursor);
    check_closed(run);
    if (differential_one_in(run, 8)) {
        model_close_search();
    }
}

void model_close_search(void)
{
    wal_search_close(search);
    search = NULL;
}

void model_visit_words(const char *root, store_bytes_fn *see, void *ctx)
{
    char path[MODEL_PATH + 2 * WAL__SEARCH_FILE_NAME];
    struct dirent *entry;
    DIR *opened;

    (void)snprintf(path, sizeof(path), "%s/index", root);
    opened = opendir(path);
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        struct wal__database database = {.db = NULL};
        struct wal__search_file head;
        enum wal__search_kind kind;
        bool is_temporary;
        uint64_t id;

        if (!wal__search_file_is_name(entry->d_name, &id, &kind, &is_temporary)) {
            continue;
        }
        WAL__ASSERT(!is_temporary); /* erasing removes those */
        (void)snprintf(path, sizeof(path), "%s/index/%.60s", root, entry->d_name);
        WAL__ASSERT(wal__database_open(&database, kind, NULL, path, &head, NULL) == WAL_OK &&
                    sqlite3_exec(database.db,
                                 "CREATE VIRTUAL TABLE temp.vocabulary USING "
                                 "fts5vocab('main', 'text', 'row')",
                                 NULL, NULL, NULL) == SQLITE_OK &&
                    sqlite3_prepare_v2(database.db, "SELECT term FROM temp.vocabulary", -1,
                                       &database.vocabulary, NULL) == SQLITE_OK);
        while (sqlite3_step(database.vocabulary) == SQLITE_ROW) {
            see(ctx, path, sqlite3_column_text(database.vocabulary, 0),
                (size_t)sqlite3_column_bytes(database.vocabulary, 0));
        }
        wal__database_close(&database);
    }
    if (opened != NULL) {
        (void)closedir(opened);
    }
}
