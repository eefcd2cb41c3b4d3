/*
 * index.c - compares INDEX, SEAL and trailer of a segment, and its file in index/, with the log
 * (SPEC.md 2.10, 2.12), finds the files of index/ without a segment, and checks index/catalogue:
 * its pages, its orders, and each summary against the log at the catalogue's position (2.13).
 *
 * All of these are derived: their damage loses no record and is a note. One that differs from the
 * log with valid checksums is damage: readers use it. Where the log lost records, a valid index
 * names the lost ones. An index of another index version counts as missing, as in the engine.
 *
 * Invariant: check_indexes is called once for a segment, when the log is replayed exactly to the
 * segment's end. A valid index of the log above its tail whose segment is missing proves that
 * records are lost; any other index without a segment is redundant. No section of the catalogue is
 * read before the page table and every page are verified.
 *
 * Threads: the main thread.
 */
#include "engine/base/containers.h"
#include "tools/walcheck/walcheck.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

/* --- files of index/ ---------------------------------------------------- */

/* Of an index file that is not encrypted by a key of the store. */
enum { NOT_AUTHENTIC = EBADMSG };

static const char *why(int error)
{
    return error == NOT_AUTHENTIC ? "it was not encrypted by a key of this store, or changed since"
                                  : cli_file_error(error);
}

/* All bytes of an index file, decrypted; the caller frees them. Null if it cannot be read;
 * *error is then the errno. */
static uint8_t *index_read(const struct check_store *store, const char *name, uint64_t *size,
                           int *error)
{
    struct wal__damaged_file file;
    uint8_t *bytes = NULL;
    struct wal__span found;
    bool is_locked;

    *error = check_file_open(store, name, &file);
    if (*error != 0) {
        return NULL;
    }
    found = wal__damaged_file_load(&file, name, &is_locked);
    *size = found.data != NULL ? found.size : file.size;
    if (found.data != NULL || file.size == 0) {
        bytes = cli_alloc(found.size + 1);
        memcpy(bytes, found.data != NULL ? found.data : (const void *)"", found.size);
    } else {
        *error = file.error != 0 ? file.error : NOT_AUTHENTIC;
    }
    wal__damaged_file_close(&file);
    return bytes;
}

enum { INDEX_NAME = 40 };

/* The name of a segment's index below the store. */
static void index_name(uint64_t id, bool is_pack, char out[INDEX_NAME])
{
    snprintf(out, INDEX_NAME, "index/%s%016" PRIx64 ".idx", is_pack ? "pack-" : "", id);
}

/* Decodes the header of an index; false if the index is not valid. */
static bool read_header(struct wal__span bytes, bool is_pack, struct wal__index_header *header)
{
    struct wal__pack_index pack = {.header = {0}};
    struct wal__index index = {.header = {0}};
    bool valid;

    if (is_pack) {
        valid = wal__pack_index_decode(bytes, &pack) == WAL__FMT_OK;
        *header = pack.header;
    } else {
        valid = wal__index_decode_any(bytes, &index) == WAL__FMT_OK;
        *header = index.header;
    }
    return valid;
}

/* The durable end that a segment's file in index/ records, or 0. index_file.c */
static uint64_t index_end(const struct check_store *store, uint64_t id, bool is_pack)
{
    struct wal__index_header header;
    char name[INDEX_NAME];
    uint64_t size = 0;
    uint64_t end = 0;
    uint8_t *bytes;
    int error;

    index_name(id, is_pack, name);
    bytes = index_read(store, name, &size, &error);
    if (bytes != NULL && read_header((struct wal__span){bytes, (size_t)size}, is_pack, &header) &&
        header.id == id && store->reader.uuid_known &&
        memcmp(header.uuid, store->reader.uuid, sizeof(store->reader.uuid)) == 0) {
        end = header.end;
    }
    free(bytes);
    return end;
}

/* Reports a missing newest segment by means of its index. */
static void report_missing_segment(struct check_store *store, uint64_t id,
                                   const struct wal__index *index)
{
    struct check_damage *damage;
    struct wal__summary summary;
    char name[INDEX_NAME];

    snprintf(name, sizeof(name), "log/%016" PRIx64 ".seg", id);
    damage = check_damage_add(&store->damages, CHECK_LOSS, name, 0, index->header.end,
                              "the segment is missing");
    damage->first_sequence = index->header.first_sequence;
    damage->last_sequence = index->header.last_sequence;
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        if (wal__index_summary(index, i, &summary) == WAL__FMT_OK) {
            check_damage_session(damage, summary.number);
            check_model_add_from_index(&store->model, &summary);
        }
    }
    store->records_lost = true;
}

/* Whether a segment's file exists now. */
static bool segment_exists(const struct check_store *store, uint64_t id, bool is_pack)
{
    char name[INDEX_NAME];
    char *path;
    bool exists;

    snprintf(name, sizeof(name), "%s/%016" PRIx64 ".seg", is_pack ? "pack" : "log", id);
    path = check_path(store, name);
    exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

/* Returns whether the file of a segment has one of the other stream. */
static bool is_foreign(const struct wal__damaged_segment *head)
{
    return head->header_fmt == WAL__FMT_OK &&
           head->header.class != (head->is_pack ? (uint32_t)WAL__CLASS_PACK : WAL__CLASS_LOG);
}

static void check_orphan(struct check_store *store, uint64_t id, bool is_pack)
{
    const struct check_segments *segments = is_pack ? &store->pack : &store->log;
    struct wal__index index;
    uint64_t size = 0;
    bool misnamed = false;
    char name[INDEX_NAME];
    int error;
    uint8_t *bytes;

    for (size_t i = 0; i < segments->count; i++) {
        const struct wal__damaged_segment *head = segments->items[i]->head;

        if (head->id == id && !is_foreign(head)) {
            return;
        }
        misnamed = misnamed || head->is_misnamed || is_foreign(head);
    }
    index_name(id, is_pack, name);
    bytes = index_read(store, name, &size, &error);
    if (bytes == NULL && error == ENOENT) {
        return;
    }
    if (!misnamed && segment_exists(store, id, is_pack)) {
        free(bytes); /* both were created after the listing */
        return;
    }
    if (!is_pack && bytes != NULL && (store->log.tail == NULL || id > store->log.tail->head->id) &&
        wal__index_decode_any((struct wal__span){bytes, (size_t)size}, &index) == WAL__FMT_OK &&
        memcmp(index.header.uuid, store->reader.uuid, sizeof(store->reader.uuid)) == 0) {
        report_missing_segment(store, id, &index);
    } else {
        check_damage_add(&store->damages, CHECK_NOTE, name, 0, size,
                         "is the index of a segment that does not exist");
    }
    free(bytes);
}

void check_index_orphans(struct check_store *store)
{
    char *path = check_path(store, "index");
    struct dirent *entry;
    int error;
    DIR *directory = cli_directory_open(path, &error);

    free(path);
    if (directory == NULL && error != ENOENT) {
        check_damage_add(&store->damages, CHECK_REDUNDANT, "index", 0, 0,
                         "the directory cannot be read: %s; it is derived: no record is lost",
                         cli_file_error(error));
    }
    if (directory == NULL) {
        return; /* the directory is derived and may be missing */
    }
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        bool is_pack = strncmp(entry->d_name, "pack-", 5) == 0;
        const char *text = entry->d_name + (is_pack ? 5 : 0);
        char *end = NULL;
        uint64_t id = strtoull(text, &end, 16);

        if (strlen(text) == 20 && end == text + 16 && strcmp(end, ".idx") == 0) {
            check_orphan(store, id, is_pack);
        }
    }
    closedir(directory);
}

/* --- a segment's index -------------------------------------------------- */

static const char rebuilt[] = "; it is derived, and is built again when needed";

struct index_check {
    struct check_store *store;
    struct check_segment *segment;
    struct wal__index index;
    const char *file;
    uint64_t offset;
    uint64_t size;
};

static void report_damage(const struct index_check *index_check, const char *what)
{
    check_damage_add(&index_check->store->damages, CHECK_NOTE, index_check->file,
                     index_check->offset, index_check->size, "%s%s", what, rebuilt);
}

/* The checksums are valid: readers use it. */
static void report_difference(const struct index_check *index_check, const char *what)
{
    check_damage_add(&index_check->store->damages, CHECK_REDUNDANT, index_check->file,
                     index_check->offset, index_check->size, "%s; it is derived: no record is lost",
                     what);
}

/* --- postings ------------------------------------------------------------- */

static const struct check_record *find_record(const struct check_segment *segment,
                                              uint64_t sequence)
{
    size_t rank =
        wal__lower_bound(segment->records, segment->record_count, sizeof(segment->records[0]),
                         offsetof(struct check_record, posting.sequence), sequence);

    return rank < segment->record_count && segment->records[rank].posting.sequence == sequence
               ? &segment->records[rank]
               : NULL;
}

/* A posting has no record: the record is lost. */
static void report_lost_record(const struct index_check *index_check,
                               const struct wal__posting *posting, uint32_t session)
{
    const struct check_segment *segment = index_check->segment;

    for (size_t i = 0; i < segment->damages.count; i++) {
        struct check_damage *damage = &segment->damages.items[i];

        if (posting->sequence >= damage->first_sequence &&
            posting->sequence <= damage->last_sequence) {
            check_damage_session(damage, session);
            break;
        }
    }
}

static bool posting_matches(const struct check_record *record, const struct wal__posting *posting,
                            uint32_t session)
{
    const struct wal__posting *own = &record->posting;

    return record->session == session && own->offset == posting->offset &&
           own->type == posting->type && own->flags == posting->flags &&
           own->stream == posting->stream && own->kind == posting->kind &&
           own->parent == posting->parent && own->id_hash == posting->id_hash;
}

static bool check_postings(const struct index_check *index_check,
                           const struct wal__summary *summary)
{
    const struct check_segment *segment = index_check->segment;

    for (uint32_t i = 0; i < summary->posting_count; i++) {
        const struct check_record *record;
        struct wal__posting posting;

        wal__posting_decode(index_check->index.postings +
                                ((size_t)summary->first_posting + i) * WAL__POSTING_SIZE,
                            &posting);
        record = find_record(segment, posting.sequence);
        if (record == NULL && wal__segment_is_rewritten(&segment->head->header)) {
            if (!check_block_lost(index_check->segment, &posting, summary->number)) {
                report_difference(index_check, "a posting names a record that is not there");
                return false;
            }
        } else if (record == NULL && segment->has_lost_records) {
            report_lost_record(index_check, &posting, summary->number);
        } else if (record == NULL || !posting_matches(record, &posting, summary->number)) {
            report_difference(index_check, "a posting differs from its frame");
            return false;
        }
    }
    return true;
}

/* A session that is deleted later may have lost records to compaction. */
static void report_summary(const struct index_check *index_check,
                           const struct wal__summary *summary, const char *field)
{
    struct check_store *store = index_check->store;
    struct check_damage *damage = check_damage_add(
        &store->damages, CHECK_REDUNDANT, index_check->file, index_check->offset, index_check->size,
        "the %s of session %" PRIu32 " differs from the log; it is derived: no record is lost",
        field, summary->number);

    damage->if_live = store->has_rewritten ? summary->number : 0;
}

/* Compares a summary with its session. Returns the name of the first field that differs, or
 * null. */
static const char *check_session_summary(const struct index_check *index_check,
                                         const struct wal__summary *summary)
{
    struct check_store *store = index_check->store;
    struct check_segment *segment = index_check->segment;
    struct check_session *session = check_model_find(&store->model, summary->number);
    bool is_loose = wal__segment_is_rewritten(&segment->head->header) || store->is_approximate;
    const char *field;

    if (session == NULL) {
        /* Its records were left out, or are in a later segment. */
        return store->has_rewritten && summary->posting_count == 0 ? NULL : "number";
    }
    field = check_summary(store, session, summary, segment, is_loose);
    if (is_loose) {
        check_summary_adopt(store, session, summary, segment);
    }
    return field;
}

static void check_index_summaries(struct index_check *index_check)
{
    const struct wal__index_header *header = &index_check->index.header;
    uint64_t postings = 0;

    for (uint32_t i = 0; i < header->session_count; i++) {
        const struct check_session *session;
        struct wal__summary summary;
        const char *field = NULL;

        if (wal__index_summary(&index_check->index, i, &summary) != WAL__FMT_OK) {
            report_difference(index_check, "a summary is not valid");
            return;
        }
        if (!check_postings(index_check, &summary)) {
            return;
        }
        postings += summary.posting_count;
        session = check_model_find(&index_check->store->model, summary.number);
        if (index_check->store->records_lost || (session != NULL && session->damaged)) {
            if (session == NULL || !session->has_record ||
                ((summary.flags & WAL__SUMMARY_DELETED) != 0 &&
                 !check_session_is_deleted(session))) {
                check_model_add_from_index(&index_check->store->model, &summary);
            }
            continue;
        }
        field = check_session_summary(index_check, &summary);
        if (field != NULL) {
            report_summary(index_check, &summary, field);
        }
        if (field != NULL && !index_check->store->has_rewritten) {
            return;
        }
    }
    index_check->segment->has_summaries = true;
    if (postings < index_check->segment->record_count) {
        report_difference(index_check, "records of the log have no posting");
    }
}

/* Whether the index belongs to this segment and to its present end. */
static bool index_is_of_segment(const struct index_check *index_check,
                                const struct wal__index_header *header)
{
    const struct check_segment *segment = index_check->segment;
    const struct wal__scan_result *facts = segment->facts;

    if (memcmp(header->uuid, index_check->store->reader.uuid, sizeof(header->uuid)) != 0 ||
        header->id != segment->head->id) {
        report_damage(index_check, "the index belongs to another segment or store");
        return false;
    }
    if (!segment->has_lost_records &&
        (header->end != facts->end || header->last_sequence != facts->last_sequence ||
         /* Rebuilt indexes of older segments record no COMMIT. */
         (header->commit_offset != 0 &&
          (header->chain != facts->chain || header->commit_offset != facts->commit_offset ||
           header->epoch != facts->epoch)))) {
        if (header->end < facts->end) {
            report_damage(index_check, "the index ends before the log");
        } else if (!check_segment_has_grown(segment)) {
            report_damage(index_check, "the index ends where the log does not");
        }
        return false;
    }
    return true;
}

/* Decodes an index and compares it if it is valid. */
static enum wal__fmt check_bytes(struct index_check *index_check, struct wal__span bytes)
{
    struct wal__pack_index pack;
    const char *fault;
    enum wal__fmt fmt;

    if (!index_check->segment->head->is_pack) {
        fmt = wal__index_decode(bytes, &index_check->index);
        if (fmt == WAL__FMT_OK && index_is_of_segment(index_check, &index_check->index.header)) {
            check_index_summaries(index_check);
        }
        return fmt;
    }
    fmt = wal__pack_index_decode(bytes, &pack);
    if (fmt == WAL__FMT_OK && index_is_of_segment(index_check, &pack.header)) {
        fault = check_pack_index(index_check->segment, &pack);
        if (fault != NULL) {
            report_difference(index_check, fault);
        }
    }
    return fmt;
}

/* --- INDEX, SEAL, trailer ------------------------------------------------- */

/* Reads the frame at an offset. False unless it is whole, authentic and has that type. The payload
 * is valid until the next fetch; null: the keys are not known. */
static bool read_frame(struct index_check *index_check, struct wal__damaged_file *file, uint64_t at,
                       uint8_t type, struct wal__span *payload)
{
    const struct check_segment *segment = index_check->segment;
    struct wal__frame frame;
    const uint8_t *bytes = wal__damaged_file_fetch(file, at, WAL__FRAME_SIZE);
    enum wal_status status;

    index_check->offset = at;
    index_check->size = WAL__FRAME_SIZE;
    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - at, segment->head->header.salt, at, &frame) !=
            WAL__FMT_OK ||
        frame.type != type) {
        return false;
    }
    index_check->size = wal__frame_total_size(frame.stored_size);
    bytes = wal__damaged_file_fetch(file, at, index_check->size);
    if (bytes == NULL || wal__frame_check_data(&frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return false;
    }
    bytes += WAL__FRAME_SIZE;
    status = wal__damaged_file_decrypt(file, at, &frame, &bytes);
    *payload = status == WAL_OK ? (struct wal__span){bytes, frame.stored_size}
                                : (struct wal__span){NULL, 0};
    return status == WAL_OK || index_check->store->is_locked;
}

static void report_index_frame(const struct index_check *index_check)
{
    const struct check_segment *segment = index_check->segment;

    if (index_end(index_check->store, segment->head->id, segment->head->is_pack) ==
        segment->head->known_end) {
        check_damage_add(&index_check->store->damages, CHECK_NOTE, index_check->file,
                         index_check->offset, index_check->size,
                         "the INDEX frame is damaged; the segment's file in index/ replaces it");
    } else {
        report_damage(index_check, "the INDEX frame is damaged");
    }
}

/* Returns the expected offset of SEAL, or 0 if it is unknown. */
static uint64_t check_index_frame(struct index_check *index_check, struct wal__damaged_file *file)
{
    uint64_t at = index_check->segment->head->known_end;
    struct wal__span payload;
    enum wal__fmt fmt;

    if (!read_frame(index_check, file, at, WAL__FRAME_INDEX, &payload)) {
        report_index_frame(index_check);
        return index_check->segment->head->has_trailer
                   ? index_check->segment->head->trailer.seal_offset
                   : 0;
    }
    fmt = payload.data == NULL ? WAL__FMT_OK : check_bytes(index_check, payload);
    if (fmt != WAL__FMT_OK && fmt != WAL__FMT_VERSION) {
        report_damage(index_check, "the INDEX frame's payload is not valid");
    }
    return index_check->offset + index_check->size;
}

static void check_seal_frame(struct index_check *index_check, struct wal__damaged_file *file,
                             uint64_t at)
{
    const struct check_segment *segment = index_check->segment;
    struct wal__span payload;
    struct wal__seal_record seal;

    if (at == 0 || at + WAL__FRAME_SIZE > file->size) {
        return;
    }
    if (!read_frame(index_check, file, at, WAL__FRAME_SEAL, &payload) ||
        wal__seal_record_decode(payload, &seal) != WAL__FMT_OK) {
        report_damage(index_check, "the SEAL frame is damaged");
        return;
    }
    if (seal.end != segment->head->known_end || seal.index_offset != seal.end ||
        (!segment->has_lost_records && (seal.last_sequence != segment->facts->last_sequence ||
                                        seal.chain != segment->facts->chain))) {
        report_difference(index_check, "the SEAL frame differs from the log");
    }
}

static void check_trailer(struct index_check *index_check, struct wal__damaged_file *file)
{
    const struct check_segment *segment = index_check->segment;
    const struct wal__trailer *trailer = &segment->head->trailer;

    if (segment->head->size < segment->head->header.capacity) {
        return; /* truncated: already reported */
    }
    index_check->offset = segment->head->header.capacity - WAL__TRAILER_SIZE;
    index_check->size = WAL__TRAILER_SIZE;
    if (!segment->head->has_trailer) {
        static const uint8_t zeros[WAL__TRAILER_SIZE];
        const uint8_t *bytes =
            wal__damaged_file_fetch(file, index_check->offset, index_check->size);

        /* A crash between SEAL and trailer leaves a tail without trailer. */
        if (segment->next != NULL || bytes == NULL || memcmp(bytes, zeros, sizeof(zeros)) != 0) {
            report_damage(index_check, "the trailer is damaged");
        }
        return;
    }
    if (trailer->end != segment->head->known_end ||
        (!segment->has_lost_records && (trailer->last_sequence != segment->facts->last_sequence ||
                                        trailer->chain != segment->facts->chain))) {
        report_difference(index_check, "the trailer differs from the log");
    }
}

/* The bytes between SEAL and trailer are never written. */
static void check_gap(struct index_check *index_check, struct wal__damaged_file *file)
{
    const struct check_segment *segment = index_check->segment;
    uint64_t at = segment->head->trailer.seal_offset + WAL__FRAME_SIZE + WAL__SEAL_SIZE;
    uint64_t end = segment->head->header.capacity - WAL__TRAILER_SIZE;

    if (!segment->head->has_trailer || end > file->size) {
        return;
    }
    for (; at + 8 <= end; at += 8) {
        static const uint8_t zeros[8];
        const uint8_t *bytes = wal__damaged_file_fetch(file, at, sizeof(zeros));

        if (bytes == NULL || memcmp(bytes, zeros, sizeof(zeros)) != 0) {
            check_damage_add(&index_check->store->damages, CHECK_NOTE, index_check->file, at, 8,
                             bytes == NULL ? "cannot be read; no record is there"
                                           : "bytes that are never written are not zero; no record "
                                             "is there");
            return;
        }
    }
}

static bool is_sealed(struct check_segment *segment, struct wal__damaged_file *file)
{
    uint64_t at = segment->facts->end;
    const uint8_t *bytes;
    struct wal__frame frame;

    if (segment->head->has_trailer || segment->index != NULL || segment->facts->sealed_end != 0 ||
        segment->facts->index_offset != 0) {
        return true;
    }
    if (segment->head->known_end == 0 || at + WAL__FRAME_SIZE > file->size) {
        return false;
    }
    bytes = wal__damaged_file_fetch(file, at, WAL__FRAME_SIZE);
    return bytes != NULL &&
           wal__frame_decode(bytes, file->size - at, segment->head->header.salt, at, &frame) ==
               WAL__FMT_OK &&
           frame.type == WAL__FRAME_INDEX;
}

static void check_sealed(struct index_check *index_check)
{
    struct check_segment *segment = index_check->segment;
    struct wal__damaged_file file;
    uint64_t seal;

    index_check->file = segment->head->name;
    if (check_segment_open(segment, &file) != 0) {
        return; /* the scan reported it */
    }
    if (segment->head->known_end != 0 && is_sealed(segment, &file) &&
        segment->head->known_end + WAL__FRAME_SIZE <= file.size) {
        /* A crash while sealing leaves INDEX without SEAL and trailer. */
        if (segment->next == NULL && !segment->head->has_trailer &&
            segment->facts->sealed_end == 0) {
            wal__damaged_file_close(&file);
            return;
        }
        seal = check_index_frame(index_check, &file);
        check_seal_frame(index_check, &file, seal);
        check_trailer(index_check, &file);
        check_gap(index_check, &file);
    }
    wal__damaged_file_close(&file);
}

/* --- index/ID.idx --------------------------------------------------------- */

static void check_index_file(struct index_check *index_check)
{
    uint64_t size = 0;
    char name[INDEX_NAME];
    uint8_t *bytes;
    enum wal__fmt fmt;
    int error;

    index_name(index_check->segment->head->id, index_check->segment->head->is_pack, name);
    index_check->file = name;
    index_check->offset = 0;
    bytes = index_read(index_check->store, name, &size, &error);
    index_check->size = size;
    if (bytes == NULL && error != ENOENT) {
        check_damage_add(&index_check->store->damages, CHECK_NOTE, name, 0, size,
                         "cannot be read: %s%s", why(error), rebuilt);
    } else if (bytes != NULL) {
        fmt = check_bytes(index_check, (struct wal__span){bytes, (size_t)size});
        if (fmt != WAL__FMT_OK && fmt != WAL__FMT_VERSION) {
            report_damage(index_check, wal__fmt_text(fmt));
        }
    }
    free(bytes);
}

void check_indexes(struct check_store *store, struct check_segment *segment)
{
    struct index_check index_check = {.store = store, .segment = segment};

    check_sealed(&index_check);
    if (!store->is_locked) {
        check_index_file(&index_check);
    }
    if (wal__segment_is_rewritten(&segment->head->header) && !segment->has_summaries) {
        store->is_approximate = true;
    }
    for (size_t i = 0; i < segment->damages.count; i++) {
        check_damage_sort_sequences(&segment->damages.items[i]);
    }
}

/* --- the catalogue ------------------------------------------------------ */

static const char name[] = "index/catalogue";

static const char believed[] = "; it is derived: remove the directory index/ "
                               "while no process has the store open";

static void report_catalogue_damage(struct check_store *store, uint64_t offset, uint64_t size,
                                    const char *what)
{
    check_damage_add(&store->damages, CHECK_NOTE, name, offset, size, "%s%s", what, rebuilt);
}

/* The checksums are valid: readers use it. */
static void report_catalogue_difference(struct check_store *store, uint64_t offset, uint64_t size,
                                        const char *what)
{
    check_damage_add(&store->damages, CHECK_REDUNDANT, name, offset, size, "%s%s", what, believed);
}

static bool check_pages(struct check_store *store, const uint8_t *bytes,
                        const struct wal__catalogue_layout *layout, uint32_t table_crc)
{
    const uint8_t *table = bytes + layout->table;
    uint64_t pages = layout->table / WAL__CATALOGUE_PAGE;
    bool sound = true;

    if (wal__crc32(0, table, (size_t)(layout->size - layout->table)) != table_crc) {
        report_catalogue_damage(store, layout->table, layout->size - layout->table,
                                "the page table is damaged");
        return false;
    }
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t front = i == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;
        const uint8_t *page = bytes + i * WAL__CATALOGUE_PAGE;

        if (wal__crc32(0, page + front, WAL__CATALOGUE_PAGE - front) !=
            wal__get32(table + i * sizeof(uint32_t))) {
            report_catalogue_damage(store, i * WAL__CATALOGUE_PAGE, WAL__CATALOGUE_PAGE,
                                    "a page is damaged");
            sound = false;
        }
    }
    return sound;
}

/* Decodes header and layout and verifies all checksums; reports what is not valid. */
static bool decode(struct check_store *store, struct check_catalogue *catalogue)
{
    struct wal__span bytes = {catalogue->bytes, catalogue->size};
    enum wal__fmt fmt = wal__catalogue_header_decode(bytes, &catalogue->header);

    if (fmt == WAL__FMT_VERSION) {
        return false; /* as in the engine, another version counts as missing */
    }
    if (fmt != WAL__FMT_OK) {
        report_catalogue_damage(store, 0, WAL__CATALOGUE_HEADER_SIZE, wal__fmt_text(fmt));
        return false;
    }
    if (wal__catalogue_layout(&catalogue->header, &catalogue->layout) != WAL__FMT_OK ||
        catalogue->layout.size != catalogue->size) {
        report_catalogue_damage(store, 0, catalogue->size, "its sizes do not add up to the file");
        return false;
    }
    if (store->reader.uuid_known &&
        memcmp(catalogue->header.uuid, store->reader.uuid, sizeof(store->reader.uuid)) != 0) {
        report_catalogue_damage(store, 48, sizeof(store->reader.uuid), "belongs to another store");
        return false;
    }
    return check_pages(store, catalogue->bytes, &catalogue->layout, catalogue->header.table_crc);
}

void check_catalogue_load(struct check_store *store)
{
    struct check_catalogue *catalogue = &store->catalogue;
    uint64_t size = 0;
    int error;

    catalogue->bytes = store->is_locked ? NULL : index_read(store, name, &size, &error);
    catalogue->size = (size_t)size;
    if (store->is_locked) {
        return;
    }
    if (catalogue->bytes == NULL && error != ENOENT) {
        check_damage_add(&store->damages, CHECK_NOTE, name, 0, 0, "cannot be read: %s%s",
                         why(error), rebuilt);
    } else if (catalogue->bytes != NULL && (size == 0 || !decode(store, catalogue))) {
        if (size == 0) {
            report_catalogue_damage(store, 0, 0, "is empty");
        }
        free(catalogue->bytes);
        catalogue->bytes = NULL;
    }
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
typedef bool before(const struct wal__summary *a, const struct wal__summary *b, bool lower_rank);

static bool before_by_id(const struct wal__summary *a, const struct wal__summary *b,
                         bool lower_rank)
{
    return a->id_hash < b->id_hash || (a->id_hash == b->id_hash && lower_rank);
}

static bool before_by_recent(const struct wal__summary *a, const struct wal__summary *b,
                             bool lower_rank)
{
    if (a->updated_ms != b->updated_ms) {
        return a->updated_ms > b->updated_ms;
    }
    return a->last_sequence > b->last_sequence ||
           (a->last_sequence == b->last_sequence && lower_rank);
}

static bool before_by_cwd(const struct wal__summary *a, const struct wal__summary *b,
                          bool lower_rank)
{
    uint64_t x = wal__id_hash(a->cwd.data, a->cwd.size);
    uint64_t y = wal__id_hash(b->cwd.data, b->cwd.size);

    return x < y || (x == y && before_by_recent(a, b, lower_rank));
}

/* Strictly ascending ranks that are all in range are a permutation. */
static bool check_order(const struct check_catalogue *catalogue, uint64_t at, before *is_before)
{
    struct wal__summary last = {0};
    uint32_t last_rank = 0;

    for (uint32_t i = 0; i < catalogue->header.session_count; i++) {
        uint32_t rank = wal__get32(catalogue->bytes + at + (size_t)i * sizeof(rank));
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
        report_catalogue_difference(store, layout->by_id, size, "the order by id is wrong");
    }
    if (!check_order(catalogue, layout->by_recent, before_by_recent)) {
        report_catalogue_difference(store, layout->by_recent, size, "the order by time is wrong");
    }
    if (!check_order(catalogue, layout->by_cwd, before_by_cwd)) {
        report_catalogue_difference(store, layout->by_cwd, size, "the order by directory is wrong");
    }
}

/* --- against the log ------------------------------------------------------ */

/* Marks a session that another one refers to; true when it was not marked. */
static bool mark(const struct check_model *model, uint32_t number)
{
    struct check_session *session = number == 0 ? NULL : check_model_find(model, number);
    bool is_new = session != NULL && !session->is_kept;

    if (is_new) {
        session->is_kept = true;
    }
    return is_new;
}

/* Marks the sessions that a catalogue must have: those that are not deleted, and what they refer
 * to. Returns their number. */
static size_t mark_kept(const struct check_model *model)
{
    bool changed = true;
    size_t count = 0;

    for (size_t i = 0; i < model->session_count; i++) {
        struct check_session *session = model->sessions[i];

        session->is_kept =
            (session->state.flags & WAL__SUMMARY_DELETED) == 0 && session->has_record;
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

/* Compares the summary of a rank with the log; false after a report. *last is the number of the
 * rank before. */
static bool check_rank(struct check_store *store, uint32_t rank, uint32_t *last,
                       struct wal__summary *summary)
{
    const struct check_catalogue *catalogue = &store->catalogue;
    uint64_t at = catalogue->layout.summaries + rank * WAL__SUMMARY_SIZE;
    struct check_session *session;
    const char *field = "number";

    if (!summary_at(catalogue, rank, summary) || summary->number <= *last) {
        report_catalogue_difference(store, at, WAL__SUMMARY_SIZE, "a summary is not valid");
        return false;
    }
    *last = summary->number;
    session = check_model_find(&store->model, summary->number);
    if (session != NULL) {
        field = check_summary(store, session, summary, NULL, false);
    } else if (store->has_rewritten && (summary->flags & WAL__SUMMARY_DELETED) != 0) {
        field = NULL;
    }
    if (field != NULL) {
        check_damage_add(&store->damages, CHECK_REDUNDANT, name, at, WAL__SUMMARY_SIZE,
                         "the %s of session %" PRIu32 " differs from the log%s", field,
                         summary->number, believed);
        return false;
    }
    return true;
}

static void check_catalogue_summaries(struct check_store *store)
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
        hidden +=
            ((summary.flags & WAL__SUMMARY_DELETED) != 0 || summary.number == WAL__STORE_NUMBER);
        session = check_model_find(&store->model, summary.number);
        missing -= session != NULL && session->is_kept;
    }
    if (missing > 0) {
        report_catalogue_difference(store, 12, 4, "it lacks sessions of the log");
    } else if (catalogue->header.hidden_count != hidden) {
        report_catalogue_difference(store, 68, 4, "its count of hidden sessions is wrong");
    }
}

void check_catalogue_compare(struct check_store *store, const struct check_segment *segment)
{
    struct check_catalogue *catalogue = &store->catalogue;
    const struct wal__catalogue_header *header = &catalogue->header;
    uint64_t end = check_segment_original_end(segment);

    if (catalogue->bytes == NULL || catalogue->compared || catalogue->outdated ||
        wal__position_segment(header->position) != segment->head->id) {
        return;
    }
    catalogue->compared = true;
    if (wal__segment_is_rewritten(&segment->head->header) &&
        wal__position_offset(header->position) != end) {
        return; /* readers ignore it */
    }
    if (wal__position_offset(header->position) > end) {
        report_catalogue_difference(store, 24, 8, "its position is after the log's end");
        return;
    }
    check_orders(store);
    /* If the log continues after the catalogue's position, the model is newer than the catalogue
     * and cannot be compared. */
    if (store->records_lost || store->is_approximate ||
        check_segment_last_sequence(segment) != header->last_sequence) {
        return;
    }
    if (wal__position_offset(header->position) == end &&
        header->chain != check_segment_chain(segment)) {
        report_catalogue_difference(store, 40, 4, "its chain differs from the log's");
        return;
    }
    check_catalogue_summaries(store);
}

void check_catalogue_finish(struct check_store *store)
{
    struct check_catalogue *catalogue = &store->catalogue;

    if (catalogue->bytes != NULL && !catalogue->compared && !catalogue->outdated &&
        !store->records_lost) {
        report_catalogue_difference(store, 24, 8, "its position is in no segment of the log");
    }
    free(catalogue->bytes);
    catalogue->bytes = NULL;
}
