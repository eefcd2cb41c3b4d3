/*
 * fts_set.c - keeps the indexes of a store's segments up to date (fts_set.h): fills them, and makes
 * and lists their files. docs/search.md, Files, has the rules.
 *
 * Invariants: a slot belongs to a segment that the log had at the last update, and its database has
 * the records up to head.last_sequence. A file that is being made is locked by its maker, and has a
 * name that no other maker uses.
 */
#include "search/index/fts_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentwal/record.h"
#include "engine/base/descriptor.h"
#include "engine/base/io.h"
#include "engine/base/system.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

struct wal__build {
    struct wal_store *store;
    const struct wal_segment_info *segment;
    struct wal__database *database;
    struct wal__message_columns *columns;
    struct wal__build_progress *progress;
};

/* A file that is being made. Zeroed, with fd -1: none. */
struct wal__fts_draft {
    int directory; /* descriptor of index/ */
    int fd;
    char name[WAL__SEARCH_FILE_NAME]; /* that it gets */
    char temporary[WAL__SEARCH_FILE_NAME];
};

/* Removes the drafts that killed processes left, and the files of which `is_live` is false. */
typedef bool wal__fts_is_live_fn(void *ctx, const struct wal__search_file *file);

/* --- filling -------------------------------------------------------------- */

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
static bool has_text(const struct wal__unit *unit, enum wal__search_kind kind, uint64_t *size)
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
    adding->status = wal__database_add(adding->build->database, (int64_t)head->rows + 1, &row, unit,
                                       adding->error);
    if (adding->status != WAL_OK) {
        return false;
    }
    if (unit->time_ms != 0) {
        head->time_min =
            head->time_min == 0 || unit->time_ms < head->time_min ? unit->time_ms : head->time_min;
        head->time_max = unit->time_ms > head->time_max ? unit->time_ms : head->time_max;
    }
    head->rows++;
    head->text_size += size;
    adding->build->progress->text_bytes += size;
    return true;
}

static enum wal_status report(struct wal__build_progress *progress, uint64_t bytes,
                              struct wal_error *error)
{
    int32_t result = progress->call == NULL
                         ? 0
                         : progress->call(progress->ctx, progress->done + bytes, progress->total);

    return result == 0
               ? WAL_OK
               : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0, "stopped by the caller");
}

static enum wal_status add_records(struct adding *adding, struct wal_record_cursor *cursor,
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
        if (status == WAL_OK && record.sequence <= build->segment->last_sequence) {
            adding->status = WAL_OK;
            status = wal__extract(extractor, &record, add_unit, adding);
            status = adding->status != WAL_OK ? adding->status : status;
            bytes += record.kind == WAL_RECORD_ENTRY ? record.entry->payload.size : 0;
        }
        if (status == WAL_OK && count % PROGRESS_STEP == 0) {
            status =
                report(build->progress, bytes < build->segment->end ? bytes : build->segment->end,
                       adding->error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/*
 * Adds the records of the segment after head->last_sequence; head has the counts of what the
 * database holds already, and gets the new ones. WAL_OK when all of them are there, except those
 * that cannot be read. WAL_ENOTFOUND when the log has no such segment any more, WAL_ECALLBACK,
 * WAL_ENOMEM.
 */
static enum wal_status build_add(const struct wal__build *build, struct wal__search_file *head,
                                 struct wal_error *error)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct adding adding = {.build = build, .head = head, .error = error};
    struct wal_record_cursor *cursor = NULL;
    struct wal__extractor extractor;
    uint32_t rows = head->rows;
    enum wal_status status;

    /* A redaction may be undone. */
    options.flags = WAL_RECORD_CURSOR_DELETED | WAL_RECORD_CURSOR_REDACTED;
    options.payload_limit = WAL__EXTRACT_PAYLOAD_MAX;
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

/* --- files ---------------------------------------------------------------- */

enum { PAGE = WAL__SEARCH_FILE_PAGE };

static bool set_lock(int fd)
{
    return wal__descriptor_lock(fd, 0, WAL__IO_LOCK_EXCLUSIVE, false) == 0;
}

static int open_name(int directory, const char *name, int flags)
{
    return openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

/* --- drafts ------------------------------------------------------------- */

/* Closes the file, and removes it unless it has its name. */
static void fts_draft_close(struct wal__fts_draft *draft)
{
    if (draft->fd >= 0) {
        (void)unlinkat(draft->directory, draft->temporary, 0);
        close(draft->fd);
        draft->fd = -1;
    }
}

/* Creates and locks the file. WAL_EREADONLY when index/ may not be written or has no room. */
static enum wal_status fts_draft_open(struct wal__fts_draft *draft, int directory, uint64_t id,
                                      enum wal__search_kind kind)
{
    uint64_t random = 0;

    draft->directory = directory;
    draft->fd = -1;
    if (directory < 0) {
        return WAL_EREADONLY;
    }
    wal__system_random(&random, sizeof(random));
    wal__search_file_name(id, kind, draft->name);
    snprintf(draft->temporary, sizeof(draft->temporary), "%.40s.new-%016" PRIx64, draft->name,
             random);
    draft->fd = open_name(directory, draft->temporary, O_RDWR | O_CREAT | O_EXCL);
    if (draft->fd < 0) {
        return WAL_EREADONLY;
    }
    if (!set_lock(draft->fd)) {
        fts_draft_close(draft);
        return WAL_EREADONLY;
    }
    return WAL_OK;
}

static bool write_full(int fd, const void *data, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t written =
            pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));

        if (written <= 0) {
            if (written < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

/* Writes a header, then what is encrypted: the header again and the pages. */
static bool write_encrypted(const struct wal__fts_draft *draft, struct wal_store *store,
                            const unsigned char *pages, size_t size, const uint8_t header[PAGE])
{
    const size_t plain_size = WAL__SEARCH_FILE_HEADER + size;
    const size_t stored_size = plain_size + (size_t)wal_derived_overhead(store);
    uint8_t *plain = malloc(plain_size + stored_size);
    uint8_t *stored = plain == NULL ? NULL : plain + plain_size;
    bool is_written = false;

    if (plain != NULL) {
        memcpy(plain, header, WAL__SEARCH_FILE_HEADER);
        memcpy(plain + WAL__SEARCH_FILE_HEADER, pages, size);
        is_written = wal_derived_encrypt(store, draft->name, (struct wal_slice){plain, plain_size},
                                         stored, NULL) == WAL_OK &&
                     write_full(draft->fd, stored, stored_size, PAGE) &&
                     write_full(draft->fd, header, PAGE, 0);
    }
    free(plain);
    return is_written;
}

/* Writes a database with this header; page_count and table_crc are set in
 * *head. WAL_EREADONLY, WAL_ENOMEM. */
static enum wal_status fts_draft_write(struct wal__fts_draft *draft, struct wal_store *store,
                                       struct wal__database *database,
                                       struct wal__search_file *head)
{
    uint64_t size = 0;
    bool is_copy = false;
    bool is_written = false;
    uint8_t bytes[PAGE] = {0};
    unsigned char *pages = wal__database_bytes(database, &size, &is_copy);
    uint32_t count = (uint32_t)(size / PAGE);
    uint8_t *table = calloc((size_t)count + 1, 4);

    if (pages != NULL && size % PAGE == 0 && wal_derived_overhead(store) != 0) {
        head->page_count = count;
        head->table_crc = 0;
        wal__search_file_encode(head, bytes);
        is_written = write_encrypted(draft, store, pages, (size_t)size, bytes);
    } else if (pages != NULL && table != NULL && size % PAGE == 0) {
        for (uint32_t i = 0; i < count; i++) {
            wal__put32(table + (size_t)i * 4, wal__crc32(0, pages + (size_t)i * PAGE, PAGE));
        }
        head->page_count = count;
        head->table_crc = wal__crc32(0, table, (size_t)count * 4);
        wal__search_file_encode(head, bytes);
        /* The header last: without it the rest is nothing. */
        is_written = write_full(draft->fd, pages, (size_t)size, wal__search_file_pages(head)) &&
                     write_full(draft->fd, table, (size_t)count * 4, PAGE) &&
                     write_full(draft->fd, bytes, PAGE, 0);
    }
    if (is_copy) {
        sqlite3_free(pages);
    }
    free(table);
    return is_written ? WAL_OK : pages == NULL || table == NULL ? WAL_ENOMEM : WAL_EREADONLY;
}

/* Gives the file its name. WAL_ENOTFOUND: the draft was removed. */
static enum wal_status fts_draft_commit(struct wal__fts_draft *draft)
{
    if (renameat(draft->directory, draft->temporary, draft->directory, draft->name) != 0) {
        return errno == ENOENT ? WAL_ENOTFOUND : WAL_EREADONLY;
    }
    close(draft->fd);
    draft->fd = -1;
    return WAL_OK;
}

/* --- the directory ------------------------------------------------------ */

/* Returns false to stop. */
typedef bool name_fn(void *ctx, int directory, const char *name, uint64_t id,
                     enum wal__search_kind kind, bool is_temporary);

static void visit_names(int directory, name_fn *each, void *ctx)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;

    if (stream == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        return;
    }
    while ((entry = readdir(stream)) != NULL) {
        enum wal__search_kind kind;
        bool is_temporary;
        uint64_t id;

        if (wal__search_file_is_name(entry->d_name, &id, &kind, &is_temporary) &&
            !each(ctx, directory, entry->d_name, id, kind, is_temporary)) {
            break;
        }
    }
    closedir(stream);
}

/* Whether another process holds the lock of a draft. */
static bool is_locked(int directory, const char *name)
{
    int fd = open_name(directory, name, O_RDWR);
    bool locked;

    if (fd < 0) {
        return false;
    }
    locked = !set_lock(fd) && (errno == EAGAIN || errno == EACCES);
    close(fd);
    return locked;
}

struct wanted {
    uint64_t id;
    enum wal__search_kind kind;
    bool is_found;
};

static bool find_draft(void *ctx, int directory, const char *name, uint64_t id,
                       enum wal__search_kind kind, bool is_temporary)
{
    struct wanted *wanted = ctx;

    if (is_temporary && id == wanted->id && kind == wanted->kind && is_locked(directory, name)) {
        wanted->is_found = true;
    }
    return !wanted->is_found;
}

/* Whether a process makes an index of the segment. */
static bool fts_is_being_made(int directory, uint64_t id, enum wal__search_kind kind)
{
    struct wanted wanted = {.id = id, .kind = kind};

    if (directory >= 0) {
        visit_names(directory, find_draft, &wanted);
    }
    return wanted.is_found;
}

static bool read_named(const struct wal_search *search, const char *name, uint64_t id,
                       enum wal__search_kind kind, struct wal__search_file *file)
{
    int fd = open_name(search->directory, name, O_RDONLY);
    bool is_valid;

    if (fd < 0) {
        return false;
    }
    is_valid = wal__fts_read_head(fd, wal_derived_overhead(search->store), file, NULL) &&
               file->id == id && file->kind == (unsigned)kind;
    close(fd);
    return is_valid;
}

/* Reads the header of the file of a segment. False when there is no valid one. */
static bool fts_read(const struct wal_search *search, uint64_t id, enum wal__search_kind kind,
                     struct wal__search_file *file)
{
    char name[WAL__SEARCH_FILE_NAME];

    if (search->directory < 0) {
        return false;
    }
    wal__search_file_name(id, kind, name);
    return read_named(search, name, id, kind, file);
}

struct removal {
    const struct wal_search *search;
    wal__fts_is_live_fn *is_live;
    void *ctx;
};

static bool consider(void *ctx, int directory, const char *name, uint64_t id,
                     enum wal__search_kind kind, bool is_temporary)
{
    struct removal *removal = ctx;
    struct wal__search_file file;

    if (is_temporary) {
        if (!is_locked(directory, name)) {
            (void)unlinkat(directory, name, 0);
        }
    } else if (!read_named(removal->search, name, id, kind, &file) ||
               !removal->is_live(removal->ctx, &file)) {
        (void)unlinkat(directory, name, 0);
    }
    return true;
}

static void fts_remove_stale(const struct wal_search *search, wal__fts_is_live_fn *is_live,
                             void *ctx)
{
    struct removal removal = {.search = search, .is_live = is_live, .ctx = ctx};

    if (search->directory >= 0) {
        visit_names(search->directory, consider, &removal);
    }
}

/* --- the set -------------------------------------------------------------- */

enum {
    ATTEMPTS = 4 /* updates, while compaction replaces segments */
};

/* The segments of the log. */
struct segments {
    struct wal_segment_info *items; /* ascending by id */
    size_t count;
};

/* An update at work. */
struct update {
    struct wal_search *search;
    struct segments segments;
    struct wal__build_progress *progress;
    struct wal_search_update_result *result;
    bool was_replaced; /* a segment was, meanwhile */
};

/* --- segments ----------------------------------------------------------- */

static enum wal_status list_segments(struct wal_store *store, struct segments *segments,
                                     struct wal_error *error)
{
    struct wal_segment_cursor *cursor = NULL;
    struct wal_segment_info info = WAL_INIT(wal_segment_info);
    size_t capacity = 0;
    enum wal_status status = wal_segment_cursor_open(store, &cursor, error);

    while (status == WAL_OK) {
        status = wal_segment_cursor_next(cursor, &info, error);
        if (status == WAL_OK && segments->count == capacity) {
            void *grown;

            capacity = capacity * 2 + 64;
            grown = realloc(segments->items, capacity * sizeof(*segments->items));
            if (grown == NULL) {
                status = wal__no_memory(error);
                break;
            }
            segments->items = grown;
        }
        if (status == WAL_OK) {
            segments->items[segments->count++] = info;
        }
    }
    wal_segment_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static const struct wal_segment_info *find_segment(const struct segments *in, uint64_t id,
                                                   uint64_t identity)
{
    for (size_t i = 0; i < in->count; i++) {
        if (in->items[i].id == id && in->items[i].identity == identity) {
            return &in->items[i];
        }
    }
    return NULL;
}

/* Whether the log still has the segment. */
static bool is_in_log(struct wal_store *store, const struct wal_segment_info *segment)
{
    struct segments now = {.items = NULL};
    bool found = list_segments(store, &now, NULL) == WAL_OK &&
                 find_segment(&now, segment->id, segment->identity) != NULL;

    free(now.items);
    return found;
}

static bool is_file_live(void *ctx, const struct wal__search_file *file)
{
    const struct segments *segments = ctx;
    const struct wal_segment_info *segment = find_segment(segments, file->id, file->identity);

    return segment != NULL && file->last_sequence <= segment->last_sequence;
}

/* --- slots -------------------------------------------------------------- */

static struct wal__fts_slot *find_slot(struct wal_search *search,
                                       const struct wal_segment_info *segment,
                                       enum wal__search_kind kind)
{
    for (size_t i = 0; i < search->count; i++) {
        struct wal__fts_slot *slot = &search->slots[i];

        if (slot->id == segment->id && slot->identity == segment->identity &&
            slot->head.kind == (unsigned)kind) {
            return slot;
        }
    }
    return NULL;
}

static void remove_slot(struct wal_search *search, struct wal__fts_slot *slot)
{
    size_t rank = (size_t)(slot - search->slots);

    wal__database_close(&slot->database);
    search->count--;
    memmove(slot, slot + 1, (search->count - rank) * sizeof(*slot));
}

/* Adds a slot, in the order of the segments. NULL: no memory. */
static struct wal__fts_slot *add_slot(struct wal_search *search,
                                      const struct wal_segment_info *segment,
                                      enum wal__search_kind kind)
{
    size_t rank = 0;

    if (search->count == search->capacity) {
        size_t capacity = search->capacity * 2 + 64;
        void *grown = realloc(search->slots, capacity * sizeof(*search->slots));

        if (grown == NULL) {
            return NULL;
        }
        search->slots = grown;
        search->capacity = capacity;
    }
    while (rank < search->count && search->slots[rank].id > segment->id) {
        rank++;
    }
    memmove(&search->slots[rank + 1], &search->slots[rank],
            (search->count - rank) * sizeof(*search->slots));
    search->count++;
    search->slots[rank] = (struct wal__fts_slot){
        .id = segment->id,
        .identity = segment->identity,
        .head = {.kind = (uint32_t)kind, .id = segment->id, .identity = segment->identity}};
    return &search->slots[rank];
}

static void slot_path(const struct wal_search *search, const struct wal__fts_slot *slot, char *path,
                      size_t size)
{
    char name[WAL__SEARCH_FILE_NAME];

    wal__search_file_name(slot->id, (enum wal__search_kind)slot->head.kind, name);
    snprintf(path, size, "%s/%s", search->index_path, name);
}

enum wal_status wal__fts_slot_open(struct wal_search *search, struct wal__fts_slot *slot,
                                   struct wal_error *error)
{
    struct wal__search_file head;
    char path[4096 + WAL__SEARCH_FILE_NAME];
    enum wal_status status;

    if (slot->database.db != NULL) {
        return WAL_OK;
    }
    if (!slot->has_file) {
        return wal__fail(error, WAL_ECORRUPT, "a search index is missing");
    }
    slot_path(search, slot, path, sizeof(path));
    status = wal__database_open(&slot->database, (enum wal__search_kind)slot->head.kind,
                                search->store, path, &head, error);
    if (status != WAL_OK) {
        return status;
    }
    /* A process that has not seen yet that the segment was replaced, or that it grew, may have
     * given its index the name. */
    if (head.id != slot->id || head.identity != slot->identity ||
        head.last_sequence < slot->head.last_sequence) {
        wal__database_close(&slot->database);
        return wal__fail(error, WAL_ECORRUPT, "a search index was replaced");
    }
    return WAL_OK;
}

/* --- making ------------------------------------------------------------- */

/* Makes the database of a slot ready for more rows. The file may have been extended by another
 * process since it was looked at: the rows that it has are those of the header that is loaded with
 * it. */
static enum wal_status prepare_slot(struct wal_search *search, struct wal__fts_slot *slot,
                                    const struct wal_segment_info *segment, struct wal_error *error)
{
    enum wal__search_kind kind = (enum wal__search_kind)slot->head.kind;
    struct wal__search_file head;
    char path[4096 + WAL__SEARCH_FILE_NAME];

    if (slot->database.is_memory && slot->unread == 0) {
        return WAL_OK;
    }
    wal__database_close(&slot->database);
    if (slot->has_file) {
        slot_path(search, slot, path, sizeof(path));
        if (wal__database_load(&slot->database, kind, search->store, path, &head, NULL) == WAL_OK) {
            if (head.id == slot->id && head.identity == slot->identity &&
                head.last_sequence <= segment->last_sequence) {
                slot->head = head;
                return WAL_OK;
            }
            wal__database_close(&slot->database);
        }
    }
    slot->head = (struct wal__search_file){
        .kind = (uint32_t)kind, .id = slot->id, .identity = slot->identity};
    slot->has_file = false;
    return wal__database_create(&slot->database, kind, error);
}

/* Writes the database of a slot to the draft and names it, unless the log has lost the segment.
 * Failures leave the index in memory. */
static void write_slot(struct wal_search *search, struct wal__fts_slot *slot,
                       const struct wal_segment_info *segment, struct wal__fts_draft *draft)
{
    if (draft->fd < 0 ||
        fts_draft_write(draft, search->store, &slot->database, &slot->head) != WAL_OK ||
        !is_in_log(search->store, segment) || fts_draft_commit(draft) != WAL_OK) {
        return;
    }
    slot->has_file = true;
}

/* Adds the records that the index of a slot lacks. */
static enum wal_status extend_slot(struct update *update, struct wal__fts_slot *slot,
                                   const struct wal_segment_info *segment, struct wal_error *error)
{
    struct wal_search *search = update->search;
    const struct wal__build build = {.store = search->store,
                                     .segment = segment,
                                     .database = &slot->database,
                                     .columns = &search->columns,
                                     .progress = update->progress};
    struct wal__fts_draft draft = {.fd = -1};
    const uint64_t unread = update->progress->unread;
    enum wal_status status = WAL_OK;

    if (search->writes) {
        (void)!fts_draft_open(&draft, search->directory, slot->id,
                              (enum wal__search_kind)slot->head.kind);
    }
    status = prepare_slot(search, slot, segment, error);
    slot->has_file = false; /* the one that is there has fewer records */
    if (status == WAL_OK) {
        status = build_add(&build, &slot->head, error);
    }
    if (status == WAL_OK) {
        slot->unread = update->progress->unread - unread;
        if (slot->unread == 0) {
            write_slot(search, slot, segment, &draft);
        }
        update->result->built++;
        update->result->read_bytes += segment->end;
    }
    fts_draft_close(&draft);
    return status;
}

static bool is_complete(const struct wal__fts_slot *slot, const struct wal_segment_info *segment)
{
    return slot != NULL && slot->unread == 0 &&
           slot->head.last_sequence == segment->last_sequence &&
           (slot->has_file || slot->database.db != NULL);
}

/* Finds the file of a segment, which may have been made by another process. */
static struct wal__fts_slot *find_file(struct wal_search *search,
                                       const struct wal_segment_info *segment,
                                       enum wal__search_kind kind)
{
    struct wal__search_file file;
    struct wal__fts_slot *slot;

    if (!fts_read(search, segment->id, kind, &file) || file.identity != segment->identity ||
        file.last_sequence > segment->last_sequence) {
        return NULL;
    }
    slot = add_slot(search, segment, kind);
    if (slot != NULL) {
        slot->head = file;
        slot->has_file = true;
    }
    return slot;
}

/* Makes the index of a segment. A segment that cannot be read has none. */
static enum wal_status make(struct update *update, const struct wal_segment_info *segment,
                            enum wal__search_kind kind, struct wal_error *error)
{
    struct wal_search *search = update->search;
    struct wal__fts_slot *slot = find_slot(search, segment, kind);
    enum wal_status status;

    if (slot == NULL) {
        slot = find_file(search, segment, kind);
    }
    if (is_complete(slot, segment)) {
        return WAL_OK;
    }
    if (slot == NULL) {
        slot = add_slot(search, segment, kind);
    }
    if (slot == NULL) {
        return wal__no_memory(error);
    }
    status = extend_slot(update, slot, segment, error);
    if (status == WAL_OK) {
        if (slot->has_file && (segment->flags & WAL_SEGMENT_TAIL) == 0) {
            wal__database_close(&slot->database); /* read from the file */
        }
        return WAL_OK;
    }
    remove_slot(search, slot);
    if (status == WAL_ENOTFOUND) {
        update->was_replaced = true;
    } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
        update->progress->damaged++;
    } else {
        return status;
    }
    return WAL_OK;
}

enum wal_status wal__fts_slot_rebuild(struct wal_search *search, struct wal__fts_slot *slot,
                                      struct wal_error *error)
{
    struct wal__build_progress progress = {.call = NULL};
    struct wal_search_update_result result;
    struct update update = {.search = search, .progress = &progress, .result = &result};
    const struct wal_segment_info *segment;
    enum wal_status status = list_segments(search->store, &update.segments, error);

    memset(&result, 0, sizeof(result));
    segment = find_segment(&update.segments, slot->id, slot->identity);
    if (status == WAL_OK && segment == NULL) {
        status = wal__fail(error, WAL_ENOTFOUND, "the segment was replaced");
    }
    wal__database_close(&slot->database);
    slot->has_file = false;
    if (status == WAL_OK) {
        status = extend_slot(&update, slot, segment, error);
    }
    if (status != WAL_OK) {
        wal__database_close(&slot->database);
        slot->head.last_sequence = 0;
    }
    free(update.segments.items);
    return status;
}

/* --- the update --------------------------------------------------------- */

static bool needs_index(struct wal_search *search, const struct wal_segment_info *segment,
                        enum wal__search_kind kind)
{
    struct wal__fts_slot *slot = find_slot(search, segment, kind);

    if (slot == NULL) {
        slot = find_file(search, segment, kind);
    }
    return !is_complete(slot, segment);
}

/* Removes the slots of segments that are gone, and closes the databases of those that have ended
 * meanwhile: they are read from their files. */
static void drop_stale_slots(struct update *update)
{
    struct wal_search *search = update->search;

    for (size_t i = search->count; i > 0; i--) {
        struct wal__fts_slot *slot = &search->slots[i - 1];
        const struct wal_segment_info *segment =
            find_segment(&update->segments, slot->id, slot->identity);

        if (segment == NULL || slot->head.last_sequence > segment->last_sequence) {
            remove_slot(search, slot);
        } else if (slot->has_file && slot->database.is_memory &&
                   (segment->flags & WAL_SEGMENT_TAIL) == 0 &&
                   slot->head.last_sequence == segment->last_sequence) {
            wal__database_close(&slot->database);
        }
    }
}

/* Makes the indexes of a kind, the newest segment first. `again`: also those that another process
 * is making. */
static enum wal_status make_all(struct update *update, enum wal__search_kind kind, bool again,
                                struct wal_error *error)
{
    struct wal_search *search = update->search;
    enum wal_status status = WAL_OK;

    for (size_t i = update->segments.count; i > 0 && status == WAL_OK; i--) {
        const struct wal_segment_info *segment = &update->segments.items[i - 1];

        if (!needs_index(search, segment, kind) ||
            (!again && search->writes && fts_is_being_made(search->directory, segment->id, kind))) {
            continue;
        }
        status = make(update, segment, kind, error);
        update->progress->done += segment->end;
    }
    return status;
}

static enum wal_status update_once(struct update *update, bool deep, struct wal_error *error)
{
    static const enum wal__search_kind kinds[] = {WAL__SEARCH_TEXT, WAL__SEARCH_DEEP};
    struct wal_search *search = update->search;
    struct wal__build_progress *progress = update->progress;
    size_t count = deep ? 2 : 1;
    enum wal_status status = list_segments(search->store, &update->segments, error);

    if (status != WAL_OK) {
        return status;
    }
    drop_stale_slots(update);
    progress->done = 0;
    progress->total = 0;
    for (size_t i = 0; i < update->segments.count; i++) {
        for (size_t k = 0; k < count; k++) {
            progress->total += needs_index(search, &update->segments.items[i], kinds[k])
                                   ? update->segments.items[i].end
                                   : 0;
        }
    }
    if (search->writes && (progress->total > 0 || !search->is_swept)) {
        fts_remove_stale(search, is_file_live, &update->segments);
        search->is_swept = true;
    }
    for (size_t pass = 0; pass < 2 && progress->total > 0; pass++) {
        for (size_t k = 0; k < count && status == WAL_OK; k++) {
            status = make_all(update, kinds[k], pass == 1, error);
        }
    }
    return status;
}

void wal__fts_set_count(struct wal_search *search, struct wal_search_update_result *result)
{
    result->segments = 0;
    result->index_bytes = 0;
    result->unwritten = 0;
    for (size_t i = 0; i < search->count; i++) {
        struct wal__fts_slot *slot = &search->slots[i];

        result->segments += slot->head.kind == WAL__SEARCH_TEXT ? 1 : 0;
        result->unwritten += slot->has_file ? 0 : 1;
        result->index_bytes +=
            slot->has_file ? wal__fts_file_size(&slot->head, wal_derived_overhead(search->store))
                           : wal__database_size(&slot->database);
    }
}

enum wal_status wal__fts_set_update(struct wal_search *search, bool deep,
                                    struct wal__build_progress *progress,
                                    struct wal_search_update_result *result,
                                    struct wal_error *error)
{
    struct update update = {
        .search = search, .progress = progress, .result = result, .was_replaced = true};
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS && status == WAL_OK && update.was_replaced; i++) {
        update.was_replaced = false;
        update.segments.count = 0;
        free(update.segments.items);
        update.segments.items = NULL;
        status = update_once(&update, deep, error);
    }
    result->text_bytes = progress->text_bytes;
    result->damaged = progress->damaged;
    for (size_t i = 0; i < search->count; i++) {
        result->damaged += search->slots[i].unread;
    }
    free(update.segments.items);
    return status;
}

void wal__fts_set_close_files(struct wal_search *search)
{
    for (size_t i = 0; i < search->count; i++) {
        struct wal__fts_slot *slot = &search->slots[i];

        if (!slot->database.is_memory) {
            wal__database_close(&slot->database);
        }
    }
}

void wal__fts_set_close(struct wal_search *search)
{
    for (size_t i = 0; i < search->count; i++) {
        wal__database_close(&search->slots[i].database);
    }
    free(search->slots);
    wal__tokenizer_close(search->tokenizer);
    wal__message_columns_deinit(&search->columns);
    if (search->directory >= 0) {
        close(search->directory);
    }
    free(search->index_path);
}
