/*
 * fts_build.c - fills an index (fts_build.h).
 */
#include "search/index/fts_build.h"

enum {
    PROGRESS_STEP = 256 /* records between two calls */
};

struct adding {
    const struct wal__build *build;
    struct wal__search_file *head;
    const struct wal_record *record;
    enum wal_status status;
    struct wal_error *error;
};

/* Whether a unit has a text of this kind of index; sets its size. */
static bool has_text(const struct wal__unit *unit, enum wal__search_kind kind,
                     uint64_t *size)
{
    *size = 0;
    for (size_t i = 0; i < unit->count; i++) {
        bool is_deep = unit->fields[i].column == WAL__COLUMN_RESULT;

        if (is_deep == (kind == WAL__SEARCH_DEEP)) {
            *size += unit->fields[i].text.size;
        }
    }
    return *size > 0;
}

static bool add_unit(void *ctx, const struct wal__unit *unit)
{
    struct adding *adding = ctx;
    struct wal__search_file *head = adding->head;
    const struct wal_record *record = adding->record;
    const struct wal__row row = {.sequence = record->sequence,
                                 .time_ms = unit->time_ms,
                                 .session = record->session_number,
                                 .unit = unit->number,
                                 .kind = record->kind};
    uint64_t size;

    if (!has_text(unit, adding->build->database->kind, &size)) {
        return true;
    }
    adding->status =
        wal__database_add(adding->build->database, (int64_t)head->rows + 1,
                          &row, unit, adding->error);
    if (adding->status != WAL_OK) {
        return false;
    }
    if (unit->time_ms != 0) {
        head->time_min = head->time_min == 0 || unit->time_ms < head->time_min
                             ? unit->time_ms
                             : head->time_min;
        head->time_max =
            unit->time_ms > head->time_max ? unit->time_ms : head->time_max;
    }
    head->rows++;
    head->text_size += size;
    adding->build->progress->text_bytes += size;
    return true;
}

static enum wal_status report(struct wal__build_progress *progress,
                              uint64_t bytes, struct wal_error *error)
{
    int32_t result = progress->call == NULL
                         ? 0
                         : progress->call(progress->ctx, progress->done + bytes,
                                          progress->total);

    return result == 0 ? WAL_OK
                       : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                                      "stopped by the caller");
}

static enum wal_status add_records(struct adding *adding,
                                   struct wal_record_cursor *cursor,
                                   struct wal__extractor *extractor)
{
    const struct wal__build *build = adding->build;
    struct wal_record record = WAL_INIT(wal_record);
    uint64_t bytes = 0;
    enum wal_status status = WAL_OK;

    adding->record = &record;
    for (uint64_t count = 1; status == WAL_OK; count++) {
        status = wal_record_cursor_next(cursor, &record, adding->error);
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            build->progress->damaged += status == WAL_ECORRUPT ? 1 : 0;
            build->progress->unread += status == WAL_EIO ? 1 : 0;
            status = WAL_OK;
            continue;
        }
        if (status == WAL_OK &&
            record.sequence <= build->segment->last_sequence) {
            adding->status = WAL_OK;
            status = wal__extract(extractor, &record, add_unit, adding);
            status = adding->status != WAL_OK ? adding->status : status;
            bytes += record.kind == WAL_RECORD_ENTRY
                         ? record.entry->payload.size
                         : 0;
        }
        if (status == WAL_OK && count % PROGRESS_STEP == 0) {
            status = report(build->progress,
                            bytes < build->segment->end ? bytes
                                                        : build->segment->end,
                            adding->error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__build_add(const struct wal__build *build,
                               struct wal__search_file *head,
                               struct wal_error *error)
{
    struct wal_record_cursor_options options =
        WAL_INIT(wal_record_cursor_options);
    struct adding adding = {.build = build, .head = head, .error = error};
    struct wal_record_cursor *cursor = NULL;
    struct wal__extractor extractor;
    uint32_t rows = head->rows;
    enum wal_status status;

    options.flags = WAL_RECORD_CURSOR_DELETED;
    options.segment = build->segment->id;
    options.identity = build->segment->identity;
    options.after_sequence = head->last_sequence;
    status = wal_record_cursor_open(build->store, &options, &cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__extractor_init(&extractor, wal__message_column, build->columns);
    status = wal__database_begin(build->database, error);
    if (status == WAL_OK) {
        status = add_records(&adding, cursor, &extractor);
    }
    if (status == WAL_OK) {
        /* What was added to a small index is cheap to merge. */
        bool is_final = head->rows > rows && rows <= head->rows / 2;

        status = wal__database_end(build->database, is_final, error);
    }
    if (status == WAL_OK) {
        head->last_sequence = build->segment->last_sequence;
    }
    wal__extractor_deinit(&extractor);
    wal_record_cursor_close(cursor);
    return status;
}
