/*
 * catalogue.c - checks index/catalogue: its pages, its orders, and each
 * summary against the log at the catalogue's position (SPEC.md 2.13).
 *
 * Invariant: no section is read before the page table and every page are
 * verified.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "tools/walcheck/walcheck.h"

static const char name[] = "index/catalogue";
static const char rebuilt[] = "; it is derived, and is built again when needed";
static const char believed[] = "; it is derived: remove the directory index/ "
                               "while no process has the store open";

static void report_damage(struct check_store *store, uint64_t offset,
                          uint64_t size, const char *what)
{
    check_damage_add_note(&store->damages, name, offset, size, "%s%s", what,
                          rebuilt);
}

/* The checksums are valid: readers use it. */
static void report_difference(struct check_store *store, uint64_t offset,
                              uint64_t size, const char *what)
{
    check_damage_add_redundant(&store->damages, name, offset, size, "%s%s",
                               what, believed);
}

static bool check_pages(struct check_store *store, const uint8_t *bytes,
                        const struct wal__catalogue_layout *layout,
                        uint32_t table_crc)
{
    const uint8_t *table = bytes + layout->table;
    uint64_t pages = layout->table / WAL__CATALOGUE_PAGE;
    bool sound = true;

    if (wal__crc32(0, table, (size_t)(layout->size - layout->table)) !=
        table_crc) {
        report_damage(store, layout->table, layout->size - layout->table,
                      "the page table is damaged");
        return false;
    }
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t front = i == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;
        const uint8_t *page = bytes + i * WAL__CATALOGUE_PAGE;

        if (wal__crc32(0, page + front, WAL__CATALOGUE_PAGE - front) !=
            wal__get32(table + i * sizeof(uint32_t))) {
            report_damage(store, i * WAL__CATALOGUE_PAGE, WAL__CATALOGUE_PAGE,
                          "a page is damaged");
            sound = false;
        }
    }
    return sound;
}

/* Decodes header and layout and verifies all checksums; reports what is not
 * valid. */
static bool decode(struct check_store *store, struct check_catalogue *catalogue)
{
    struct wal__span bytes = {catalogue->bytes, catalogue->size};
    enum wal__fmt fmt = wal__catalogue_header_decode(bytes, &catalogue->header);

    if (fmt == WAL__FMT_VERSION) {
        return false; /* as in the engine, another version counts as missing */
    }
    if (fmt != WAL__FMT_OK) {
        report_damage(store, 0, WAL__CATALOGUE_HEADER_SIZE, wal__fmt_text(fmt));
        return false;
    }
    if (wal__catalogue_layout(&catalogue->header, &catalogue->layout) !=
            WAL__FMT_OK ||
        catalogue->layout.size != catalogue->size) {
        report_damage(store, 0, catalogue->size,
                      "its sizes do not add up to the file");
        return false;
    }
    if (store->reader.uuid_known &&
        memcmp(catalogue->header.uuid, store->reader.uuid,
               sizeof(store->reader.uuid)) != 0) {
        report_damage(store, 48, sizeof(store->reader.uuid),
                      "belongs to another store");
        return false;
    }
    return check_pages(store, catalogue->bytes, &catalogue->layout,
                       catalogue->header.table_crc);
}

void check_catalogue_load(struct check_store *store)
{
    struct check_catalogue *catalogue = &store->catalogue;
    char *path = check_path(store, name);
    struct cli_file file;
    int error = cli_file_open(&file, path);

    free(path);
    if (error != 0) {
        if (error != ENOENT) {
            check_damage_add_note(&store->damages, name, 0, 0,
                                  "cannot be opened: %s%s",
                                  cli_file_error(error), rebuilt);
        }
        return;
    }
    if (file.size == 0) {
        report_damage(store, 0, 0, "is empty");
    } else if (cli_file_fetch(&file, 0, file.size) == NULL) {
        check_damage_add_note(&store->damages, name, file.error_offset, 0,
                              "cannot be read: %s%s",
                              cli_file_error(file.error), rebuilt);
    } else {
        catalogue->size = (size_t)file.size;
        catalogue->bytes = cli_alloc(catalogue->size);
        memcpy(catalogue->bytes, file.window, catalogue->size);
        if (!decode(store, catalogue)) {
            free(catalogue->bytes);
            catalogue->bytes = NULL;
        }
    }
    cli_file_close(&file);
}

/* --- orders --------------------------------------------------------------- */

static bool summary_at(const struct check_catalogue *catalogue, uint32_t rank,
                       struct wal__summary *summary)
{
    const struct wal__span texts = {
        catalogue->bytes + catalogue->layout.texts,
        (size_t)catalogue->header.text_size,
    };

    return rank < catalogue->header.session_count &&
           wal__summary_decode(catalogue->bytes + catalogue->layout.summaries +
                                   (size_t)rank * WAL__SUMMARY_SIZE,
                               texts, summary) == WAL__FMT_OK;
}

/* Whether a comes before b in one of by_id, by_recent and by_cwd. */
typedef bool before(const struct wal__summary *a, const struct wal__summary *b,
                    bool lower_rank);

static bool before_by_id(const struct wal__summary *a,
                         const struct wal__summary *b, bool lower_rank)
{
    return a->id_hash < b->id_hash || (a->id_hash == b->id_hash && lower_rank);
}

static bool before_by_recent(const struct wal__summary *a,
                             const struct wal__summary *b, bool lower_rank)
{
    if (a->updated_ms != b->updated_ms) {
        return a->updated_ms > b->updated_ms;
    }
    return a->last_sequence > b->last_sequence ||
           (a->last_sequence == b->last_sequence && lower_rank);
}

static bool before_by_cwd(const struct wal__summary *a,
                          const struct wal__summary *b, bool lower_rank)
{
    uint64_t x = wal__id_hash(a->cwd.data, a->cwd.size);
    uint64_t y = wal__id_hash(b->cwd.data, b->cwd.size);

    return x < y || (x == y && before_by_recent(a, b, lower_rank));
}

/* Strictly ascending ranks that are all in range are a permutation. */
static bool check_order(const struct check_catalogue *catalogue, uint64_t at,
                        before *is_before)
{
    struct wal__summary last = {0};
    uint32_t last_rank = 0;

    for (uint32_t i = 0; i < catalogue->header.session_count; i++) {
        uint32_t rank =
            wal__get32(catalogue->bytes + at + (size_t)i * sizeof(rank));
        struct wal__summary summary;

        if (!summary_at(catalogue, rank, &summary) ||
            (i > 0 && !is_before(&last, &summary, last_rank < rank))) {
            return false;
        }
        last = summary;
        last_rank = rank;
    }
    return true;
}

static void check_orders(struct check_store *store)
{
    const struct check_catalogue *catalogue = &store->catalogue;
    const struct wal__catalogue_layout *layout = &catalogue->layout;
    uint64_t size = (uint64_t)catalogue->header.session_count * 4;

    if (!check_order(catalogue, layout->by_id, before_by_id)) {
        report_difference(store, layout->by_id, size,
                          "the order by id is wrong");
    }
    if (!check_order(catalogue, layout->by_recent, before_by_recent)) {
        report_difference(store, layout->by_recent, size,
                          "the order by time is wrong");
    }
    if (!check_order(catalogue, layout->by_cwd, before_by_cwd)) {
        report_difference(store, layout->by_cwd, size,
                          "the order by directory is wrong");
    }
}

/* --- against the log ------------------------------------------------------ */

/* Marks a session that another one refers to; true when it was not marked. */
static bool mark(const struct check_model *model, uint32_t number)
{
    struct check_session *session =
        number == 0 ? NULL : check_model_find(model, number);
    bool is_new = session != NULL && !session->is_kept;

    if (is_new) {
        session->is_kept = true;
    }
    return is_new;
}

/* Marks the sessions that a catalogue must have: those that are not deleted,
 * and what they refer to. Returns their number. */
static size_t mark_kept(const struct check_model *model)
{
    bool changed = true;
    size_t count = 0;

    for (size_t i = 0; i < model->session_count; i++) {
        struct check_session *session = model->sessions[i];

        session->is_kept = (session->state.flags & WAL__SUMMARY_DELETED) == 0 &&
                           session->has_record;
    }
    while (changed) {
        changed = false;
        for (size_t i = model->session_count; i > 0; i--) {
            const struct check_session *session = model->sessions[i - 1];
            const struct wal__summary *state = &session->state;

            if (session->is_kept) {
                changed |= mark(model, state->fork_owner);
                changed |= mark(model, state->fork_source);
                changed |= mark(model, state->first_owner);
            }
        }
    }
    for (size_t i = 0; i < model->session_count; i++) {
        count += model->sessions[i]->is_kept;
    }
    return count;
}

static bool is_hidden(const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_DELETED) != 0 ||
           summary->number == WAL__STORE_NUMBER;
}

/* Compares the summary of a rank with the log; false after a report. *last is
 * the number of the rank before. */
static bool check_rank(struct check_store *store, uint32_t rank, uint32_t *last,
                       struct wal__summary *summary)
{
    const struct check_catalogue *catalogue = &store->catalogue;
    uint64_t at = catalogue->layout.summaries + rank * WAL__SUMMARY_SIZE;
    struct check_session *session;
    const char *field = "number";

    if (!summary_at(catalogue, rank, summary) || summary->number <= *last) {
        report_difference(store, at, WAL__SUMMARY_SIZE,
                          "a summary is not valid");
        return false;
    }
    *last = summary->number;
    session = check_model_find(&store->model, summary->number);
    if (session != NULL) {
        field = check_summary(store, session, summary, NULL, false);
    } else if (store->has_rewritten &&
               (summary->flags & WAL__SUMMARY_DELETED) != 0) {
        field = NULL;
    }
    if (field != NULL) {
        check_damage_add_redundant(&store->damages, name, at, WAL__SUMMARY_SIZE,
                                   "the %s of session %" PRIu32
                                   " differs from the log%s",
                                   field, summary->number, believed);
        return false;
    }
    return true;
}

static void check_summaries(struct check_store *store)
{
    const struct check_catalogue *catalogue = &store->catalogue;
    size_t missing = mark_kept(&store->model);
    uint32_t hidden = 0;
    uint32_t last = 0;

    for (uint32_t i = 0; i < catalogue->header.session_count; i++) {
        const struct check_session *session;
        struct wal__summary summary;

        if (!check_rank(store, i, &last, &summary)) {
            return;
        }
        hidden += is_hidden(&summary);
        session = check_model_find(&store->model, summary.number);
        missing -= session != NULL && session->is_kept;
    }
    if (missing > 0) {
        report_difference(store, 12, 4, "it lacks sessions of the log");
    } else if (catalogue->header.hidden_count != hidden) {
        report_difference(store, 68, 4,
                          "its count of hidden sessions is wrong");
    }
}

void check_catalogue_compare(struct check_store *store,
                             const struct check_segment *segment)
{
    struct check_catalogue *catalogue = &store->catalogue;
    const struct wal__catalogue_header *header = &catalogue->header;
    uint64_t end = check_segment_original_end(segment);

    if (catalogue->bytes == NULL || catalogue->compared ||
        catalogue->outdated ||
        wal__position_segment(header->position) != segment->head->id) {
        return;
    }
    catalogue->compared = true;
    if (wal__segment_is_rewritten(&segment->head->header) &&
        wal__position_offset(header->position) != end) {
        return; /* readers ignore it */
    }
    if (wal__position_offset(header->position) > end) {
        report_difference(store, 24, 8, "its position is after the log's end");
        return;
    }
    check_orders(store);
    /* If the log continues after the catalogue's position, the model is newer
     * than the catalogue and cannot be compared. */
    if (store->records_lost || store->is_approximate ||
        check_segment_last_sequence(segment) != header->last_sequence) {
        return;
    }
    if (wal__position_offset(header->position) == end &&
        header->chain != check_segment_chain(segment)) {
        report_difference(store, 40, 4, "its chain differs from the log's");
        return;
    }
    check_summaries(store);
}

void check_catalogue_finish(struct check_store *store)
{
    struct check_catalogue *catalogue = &store->catalogue;

    if (catalogue->bytes != NULL && !catalogue->compared &&
        !catalogue->outdated && !store->records_lost) {
        report_difference(store, 24, 8,
                          "its position is in no segment of the log");
    }
    free(catalogue->bytes);
    catalogue->bytes = NULL;
}
