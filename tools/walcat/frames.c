/*
 * frames.c - prints every frame of a store or of one segment file in file
 * order (SPEC.md 2.3), and the headers of CHUNK and BLOB records (SPEC.md 2.18,
 * 2.19).
 *
 * No recovery rule is applied: a frame is judged by its own checksums alone. After bytes that are
 * not a frame, the next frame is searched at every 8-byte boundary.
 *
 * Invariant: every byte after the segment header is printed as part of a frame, of zeros, or of
 * damage. Of a record only its names are printed, never its content, so that redacted content is
 * not shown.
 */
#include "tools/walcat/walcat.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/care/damaged_store.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/record_blob.h"
#include "format/segment/segment_fmt.h"
#include "tools/cli/json.h"
#include "tools/cli/key.h"

/* The header of a record of the blob stream. */
struct content {
    char digest[2 * WAL__DIGEST_SIZE + 1];
    char base[2 * WAL__DIGEST_SIZE + 1]; /* empty: none */
    uint64_t size;
    const char *encoding; /* null: a BLOB */
    uint64_t depth;       /* of a BLOB: number of its chunks */
};

static bool decode_content(const struct wal__frame *frame, const uint8_t *bytes,
                           struct content *content)
{
    static const char *const encodings[] = {"raw", "lz4", "delta"};
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;

    *content = (struct content){.size = 0};
    if (bytes == NULL) {
        return false;
    }
    if (frame->type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(payload, &chunk) == WAL__FMT_OK) {
        wal__hex_write(chunk.digest.bytes, WAL__DIGEST_SIZE, content->digest);
        if (chunk.encoding == WAL__CHUNK_DELTA) {
            wal__hex_write(chunk.base.bytes, WAL__DIGEST_SIZE, content->base);
        }
        content->size = chunk.size;
        content->encoding = encodings[chunk.encoding];
        content->depth = chunk.depth;
        return true;
    }
    if (frame->type == WAL__FRAME_BLOB && wal__blob_record_decode(payload, &blob) == WAL__FMT_OK) {
        wal__hex_write(blob.digest.bytes, WAL__DIGEST_SIZE, content->digest);
        content->size = blob.size;
        content->depth = blob.chunk_count;
        return true;
    }
    return false;
}

/* Writes them as members of the open object. */
static void blob_json(struct wal__json_out *json, const struct wal__frame *frame,
                      const uint8_t *payload)
{
    struct content content;

    if (!decode_content(frame, payload, &content)) {
        return;
    }
    cli_json_member_text(json, "digest", cli_slice(content.digest));
    wal__json_out_member_count(json, "contentSize", content.size);
    if (content.encoding != NULL) {
        cli_json_member_text(json, "encoding", cli_slice(content.encoding));
    }
    wal__json_out_member_count(json, content.encoding != NULL ? "depth" : "chunkCount",
                               content.depth);
    if (content.base[0] != '\0') {
        cli_json_member_text(json, "base", cli_slice(content.base));
    }
}

/* Prints them at the end of a line. */
static void blob_text(const struct wal__frame *frame, const uint8_t *payload)
{
    struct content content;

    if (!decode_content(frame, payload, &content)) {
        return;
    }
    printf("  sha256 %s  size %" PRIu64, content.digest, content.size);
    if (content.encoding == NULL) {
        printf("  chunks %" PRIu64, content.depth);
    } else {
        printf("  %s  depth %" PRIu64, content.encoding, content.depth);
    }
    if (content.base[0] != '\0') {
        printf("  base %s", content.base);
    }
}

/* A name in a record. */
struct walcat_name {
    const char *key;
    struct wal__span text;
};

enum { WALCAT_NAMES_MAX = 2 };

/* Fills `names` with the names of a record and returns their number. `version` is its segment's;
 * bytes null: it is not whole. */
static size_t record_names(uint32_t version, const struct wal__frame *frame, const uint8_t *bytes,
                           struct walcat_name names[WALCAT_NAMES_MAX])
{
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__session_record session;
    struct wal__entry_record entry;
    struct wal__fork_record fork;
    struct wal__head_record head;
    struct wal__doc_record doc;
    struct wal__redact_record redact;

    if (bytes == NULL || (frame->flags & WAL__FRAME_LZ4) != 0) {
        return 0;
    }
    switch (frame->type) {
    case WAL__FRAME_SESSION:
        if (wal__session_record_decode(payload, version, &session) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"id", session.id};
        return 1;
    case WAL__FRAME_ENTRY:
        if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"id", entry.id};
        return 1;
    case WAL__FRAME_FORK:
        if (wal__fork_record_decode(payload, &fork) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"source", fork.source_id};
        names[1] = (struct walcat_name){"target", fork.entry_id};
        return 2;
    case WAL__FRAME_HEAD:
        if (wal__head_record_decode(payload, &head) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"head", head.name};
        names[1] = (struct walcat_name){"target", head.entry_id};
        return 2;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        if (wal__doc_record_decode(payload, &doc) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"key", doc.key};
        return 1;
    case WAL__FRAME_REDACT:
        if (wal__redact_record_decode(payload, &redact) != WAL__FMT_OK) {
            return 0;
        }
        names[0] = (struct walcat_name){"target", redact.target_id};
        names[1] = (struct walcat_name){"redaction", redact.entry_id};
        return 2;
    default:
        return 0;
    }
}

/* --- frames ------------------------------------------------------------- */

enum {
    TYPE_WIDTH = 10 /* of the column */
};

struct listing {
    const struct cli *cli;
    const char *name; /* printed name of the segment */
    struct wal__damaged_file file;
    struct wal__segment_header header;
    uint64_t limit;
    struct wal__damaged_block block; /* the last one */
};

/* The frame, zeros or damage at an offset. */
struct frame_state {
    uint64_t offset;
    uint64_t size;
    const char *type;
    const char *state;
    struct wal__frame frame; /* zeros if there is no frame */
    const uint8_t *payload;  /* valid until the next fetch; null: not whole */
    uint64_t block;          /* of a record in a BLOCK: the BLOCK's offset */
    uint32_t records;        /* of a BLOCK */
};

static struct wal_slice slice_of(struct wal__span text)
{
    return (struct wal_slice){text.data, text.size};
}

static void put_json(const struct listing *listing, const struct frame_state *frame_state)
{
    const struct wal__frame *frame = &frame_state->frame;
    struct walcat_name names[WALCAT_NAMES_MAX];
    struct wal__json_out json;
    size_t count;

    cli_json_begin(&json);
    cli_json_member_text(&json, "file", cli_slice(listing->name));
    wal__json_out_member_count(&json, "offset", frame_state->offset);
    wal__json_out_member_count(&json, "size", frame_state->size);
    cli_json_member_text(&json, "type", cli_slice(frame_state->type));
    if (frame->type != WAL__FRAME_NONE) {
        const struct cli_count fields[] = {
            {"code", frame->type},        {"flags", frame->flags},
            {"stream", frame->stream},    {"kind", frame->kind},
            {"session", frame->session},  {"sequence", frame->sequence},
            {"parent", frame->parent},    {"storedSize", frame->stored_size},
            {"rawSize", frame->raw_size},
        };

        cli_json_counts(&json, fields, sizeof(fields) / sizeof(fields[0]));
    }
    if (frame_state->block != 0) {
        wal__json_out_member_count(&json, "block", frame_state->block);
    }
    if (frame_state->records != 0) {
        wal__json_out_member_count(&json, "records", frame_state->records);
    }
    cli_json_member_text(&json, "state", cli_slice(frame_state->state));
    count = record_names(listing->header.version, frame, frame_state->payload, names);
    for (size_t i = 0; i < count; i++) {
        cli_json_member_text_or_null(&json, names[i].key, slice_of(names[i].text));
    }
    blob_json(&json, frame, frame_state->payload);
    wal__json_out_close_line(&json);
}

static void put_text(const struct listing *listing, const struct frame_state *frame_state)
{
    const struct wal__frame *frame = &frame_state->frame;
    struct walcat_name names[WALCAT_NAMES_MAX];
    size_t count = record_names(listing->header.version, frame, frame_state->payload, names);
    char session[16] = "store";

    if (frame->session != WAL__STORE_NUMBER) {
        snprintf(session, sizeof(session), "%" PRIu32, frame->session);
    }
    printf("%10" PRIu64 " %s%-*s %9" PRIu64 " %8s %6d %9" PRIu64 " %9" PRIu32 " %9" PRIu32 "  %s",
           frame_state->offset, frame_state->block != 0 ? "- " : "",
           frame_state->block != 0 ? TYPE_WIDTH - 2 : TYPE_WIDTH, frame_state->type,
           frame->sequence, session, frame->stream, frame->parent, frame->stored_size,
           frame->raw_size, frame_state->state);
    if (frame_state->records != 0) {
        printf("  records %" PRIu32, frame_state->records);
    }
    for (size_t i = 0; i < count; i++) {
        printf("  %s ", names[i].key);
        cli_print_text(stdout, names[i].text.size == 0 ? cli_slice("-") : slice_of(names[i].text),
                       0, false);
    }
    blob_text(frame, frame_state->payload);
    putchar('\n');
}

static void put_item(const struct listing *listing, const struct frame_state *frame_state)
{
    if (listing->cli->json) {
        put_json(listing, frame_state);
    } else if (frame_state->frame.type != WAL__FRAME_NONE) {
        put_text(listing, frame_state);
    } else {
        printf("%10" PRIu64 " %-10s %9s %8s %6s %9s %9" PRIu64 " %9s  %s\n", frame_state->offset,
               frame_state->type, "-", "-", "-", "-", frame_state->size, "-", frame_state->state);
    }
}

static int report_unreadable(const struct listing *listing)
{
    return cli_error(listing->cli, CLI_FAILED, listing->name,
                     "cannot be read at offset %" PRIu64 ": %s", listing->file.error_offset,
                     strerror(listing->file.error));
}

/* The state of a frame whose header is not valid. */
static const char *header_state(enum wal__fmt fmt)
{
    if (fmt == WAL__FMT_HEADER_CRC) {
        return "header crc";
    }
    if (fmt == WAL__FMT_SHORT) {
        return "beyond the end";
    }
    return wal__fmt_text(fmt);
}

/* Decodes the frame at `offset`; *fmt says why there is none. *frame is set for WAL__FMT_OK and
 * WAL__FMT_DATA_CRC, *payload then too, until the next fetch. False if the bytes cannot be read. */
static bool decode_at(struct listing *listing, uint64_t offset, struct wal__frame *frame,
                      const uint8_t **payload, enum wal__fmt *fmt)
{
    uint64_t left = listing->limit - offset;
    const uint8_t *at;

    *fmt = WAL__FMT_SHORT;
    if (left < WAL__FRAME_SIZE) {
        return true;
    }
    at = wal__damaged_file_fetch(&listing->file, offset, WAL__FRAME_SIZE);
    if (at == NULL) {
        return false;
    }
    *fmt = wal__frame_decode(at, left, listing->header.salt, offset, frame);
    if (*fmt != WAL__FMT_OK) {
        return true;
    }
    at = wal__damaged_file_fetch(&listing->file, offset, wal__frame_total_size(frame->stored_size));
    if (at == NULL) {
        return false;
    }
    *fmt = wal__frame_check_data(frame, at + WAL__FRAME_SIZE);
    *payload = at + WAL__FRAME_SIZE;
    return true;
}

/* Finds the end of the zeros at `offset`. */
static bool end_of_zeros(struct listing *listing, uint64_t offset, uint64_t *end)
{
    static const uint8_t zeros[WAL__FRAME_ALIGN];

    while (offset < listing->limit) {
        uint64_t size = listing->limit - offset;
        const uint8_t *at;

        size = size < sizeof(zeros) ? size : sizeof(zeros);
        at = wal__damaged_file_fetch(&listing->file, offset, size);
        if (at == NULL) {
            return false;
        }
        if (memcmp(at, zeros, (size_t)size) != 0) {
            break;
        }
        offset += size;
    }
    *end = offset;
    return true;
}

/* The trailer is the only structure after the header that is not a frame. */
static bool is_trailer(struct listing *listing, uint64_t offset)
{
    struct wal__trailer trailer;
    const uint8_t *at;

    if (offset + WAL__TRAILER_SIZE != listing->limit) {
        return false;
    }
    at = wal__damaged_file_fetch(&listing->file, offset, WAL__TRAILER_SIZE);
    return at != NULL &&
           wal__trailer_decode(at, listing->header.salt, offset, &trailer) == WAL__FMT_OK;
}

/* Finds the end of bytes that are not a frame: the next frame with a valid header, the trailer, or
 * the segment's end. */
static bool end_of_damage(struct listing *listing, uint64_t offset, uint64_t *end)
{
    struct wal__frame frame;
    const uint8_t *payload;
    enum wal__fmt fmt;

    for (offset += WAL__FRAME_ALIGN; offset < listing->limit; offset += WAL__FRAME_ALIGN) {
        if (is_trailer(listing, offset)) {
            break;
        }
        if (!decode_at(listing, offset, &frame, &payload, &fmt)) {
            return false;
        }
        if (fmt == WAL__FMT_OK || fmt == WAL__FMT_DATA_CRC) {
            break;
        }
    }
    *end = offset < listing->limit ? offset : listing->limit;
    return true;
}

/* Without the key, or where the frame is not authentic, it has no payload. */
static void decrypt(struct listing *listing, struct frame_state *frame_state)
{
    enum wal_status status = WAL_OK;

    if (frame_state->payload != NULL) {
        status = wal__damaged_file_decrypt(&listing->file, frame_state->offset, &frame_state->frame,
                                           &frame_state->payload);
    }
    if (status != WAL_OK) {
        frame_state->payload = NULL;
        frame_state->state = listing->file.env->keyring == NULL ? "encrypted" : "not authentic";
    }
}

/* Classifies the bytes at `offset`; false if they cannot be read. */
static bool classify_at(struct listing *listing, uint64_t offset, struct frame_state *frame_state)
{
    const uint8_t *payload = NULL;
    enum wal__fmt fmt;

    *frame_state = (struct frame_state){.offset = offset, .state = "ok"};
    if (is_trailer(listing, offset)) {
        frame_state->size = WAL__TRAILER_SIZE;
        frame_state->type = "trailer";
        return true;
    }
    if (!decode_at(listing, offset, &frame_state->frame, &payload, &fmt)) {
        return false;
    }
    if (fmt == WAL__FMT_OK || fmt == WAL__FMT_DATA_CRC) {
        frame_state->size = wal__frame_total_size(frame_state->frame.stored_size);
        frame_state->type = wal__frame_type_name(frame_state->frame.type);
        frame_state->state = fmt == WAL__FMT_OK ? "ok" : "data crc";
        frame_state->payload = fmt == WAL__FMT_OK ? payload : NULL;
        decrypt(listing, frame_state);
        return true;
    }
    frame_state->frame = (struct wal__frame){0};
    frame_state->type = fmt == WAL__FMT_ZERO ? "zeros" : "damage";
    frame_state->state = fmt == WAL__FMT_ZERO ? "never written" : header_state(fmt);
    if (fmt == WAL__FMT_ZERO) {
        if (!end_of_zeros(listing, offset, &frame_state->size)) {
            return false;
        }
    } else if (!end_of_damage(listing, offset, &frame_state->size)) {
        return false;
    }
    frame_state->size -= offset;
    return true;
}

/* Prints the records of a BLOCK, which the listing has unpacked. */
static void put_records(struct listing *listing, uint64_t offset)
{
    struct frame_state record = {.state = "ok", .block = offset};
    struct wal__block_cursor cursor;
    struct wal__span payload;
    enum wal__fmt fmt = WAL__FMT_OK;

    wal__block_cursor_begin(&cursor, wal__damaged_block_records(&listing->block),
                            listing->block.count, listing->header.salt, offset);
    while (fmt == WAL__FMT_OK && !cli_output_failed()) {
        record.offset = cursor.offset;
        fmt = wal__block_cursor_next(&cursor, &record.frame, &payload);
        if (fmt == WAL__FMT_OK) {
            record.type = wal__frame_type_name(record.frame.type);
            record.size = wal__frame_total_size(record.frame.stored_size);
            record.payload = payload.data;
            put_item(listing, &record);
        }
    }
    if (fmt != WAL__FMT_OK && fmt != WAL__FMT_ZERO) {
        record.frame = (struct wal__frame){0};
        record.type = "damage";
        record.state = header_state(fmt);
        record.size = cursor.left.size;
        record.payload = NULL;
        put_item(listing, &record);
    }
}

/* Prints a BLOCK and the records in it. */
static void put_block(struct listing *listing, struct frame_state *frame_state)
{
    enum wal__fmt fmt;

    (void)!wal__damaged_block_unpack(&listing->block, &frame_state->frame, frame_state->payload,
                                     frame_state->offset, &fmt);
    if (fmt != WAL__FMT_OK) {
        frame_state->state = wal__fmt_text(fmt);
        put_item(listing, frame_state);
        return;
    }
    frame_state->records = listing->block.count;
    put_item(listing, frame_state);
    put_records(listing, frame_state->offset);
}

static int put_frames(struct listing *listing)
{
    uint64_t offset = WAL__SEGMENT_HEADER_SIZE;
    struct frame_state frame_state;

    while (offset < listing->limit && !cli_output_failed()) {
        if (!classify_at(listing, offset, &frame_state)) {
            return report_unreadable(listing);
        }
        if (frame_state.frame.type == WAL__FRAME_BLOCK && frame_state.payload != NULL) {
            put_block(listing, &frame_state);
        } else {
            put_item(listing, &frame_state);
        }
        offset += frame_state.size;
    }
    if (listing->file.bad_end != 0) {
        return cli_error(listing->cli, CLI_FAILED, listing->name,
                         "bytes between %" PRIu64 " and %" PRIu64 " cannot be read: %s",
                         listing->file.bad_offset, listing->file.bad_end,
                         strerror(listing->file.error));
    }
    return CLI_OK;
}

/* Prints the segment's header. */
static int put_header(struct listing *listing)
{
    const struct wal__segment_header *header = &listing->header;
    struct wal__json_out json;

    if (!listing->cli->json) {
        printf("%s  version %" PRIu32 "  id %" PRIu64 "  capacity %" PRIu64 "  salt %016" PRIx64
               "  align %" PRIu32 "\n",
               listing->name, header->version, header->id, header->capacity, header->salt,
               header->group_align);
        if (wal__segment_is_rewritten(header)) {
            printf("rewritten  generation %" PRIu32 "  first id %" PRIu64 "  original end %" PRIu64
                   "  last sequence %" PRIu64 "  record bytes %" PRIu64 "\n",
                   header->rewrite.generation, header->rewrite.first_id,
                   header->rewrite.original_end, header->rewrite.last_sequence,
                   header->rewrite.raw_size);
        }
        if (wal__segment_is_encrypted(header)) {
            printf("encrypted  key %" PRIu32 "\n", header->key_id);
        }
        printf("%10s %-10s %9s %8s %6s %9s %9s %9s  %s\n", "offset", "type", "sequence", "session",
               "stream", "parent", "stored", "raw", "state");
        return CLI_OK;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "file", cli_slice(listing->name));
    wal__json_out_member_count(&json, "version", header->version);
    wal__json_out_member_count(&json, "id", header->id);
    wal__json_out_member_count(&json, "capacity", header->capacity);
    wal__json_out_member_count(&json, "groupAlign", header->group_align);
    if (wal__segment_is_rewritten(header)) {
        const struct wal__rewrite *rewrite = &header->rewrite;

        wal__json_out_member_count(&json, "generation", rewrite->generation);
        wal__json_out_member_count(&json, "firstId", rewrite->first_id);
        wal__json_out_member_count(&json, "originalEnd", rewrite->original_end);
        wal__json_out_member_count(&json, "lastSequence", rewrite->last_sequence);
        wal__json_out_member_count(&json, "recordBytes", rewrite->raw_size);
    }
    if (wal__segment_is_encrypted(header)) {
        wal__json_out_member_count(&json, "keyId", header->key_id);
    }
    wal__json_out_close_line(&json);
    return CLI_OK;
}

static int list_open_file(struct listing *listing)
{
    struct wal__damaged_file *file = &listing->file;
    const uint8_t *at;
    enum wal__fmt fmt;

    if (file->size < WAL__SEGMENT_HEADER_SIZE) {
        return cli_error(listing->cli, CLI_FAILED, listing->name, "is too short to be a segment");
    }
    at = wal__damaged_file_fetch(file, 0, WAL__SEGMENT_HEADER_SIZE);
    if (at == NULL) {
        return report_unreadable(listing);
    }
    fmt = wal__segment_header_decode(at, &listing->header);
    if (fmt != WAL__FMT_OK) {
        return cli_error(listing->cli, CLI_FAILED, listing->name,
                         "has no valid segment header: %s; without its salt no frame can "
                         "be validated",
                         wal__fmt_text(fmt));
    }
    listing->limit = listing->header.capacity < file->size ? listing->header.capacity : file->size;
    put_header(listing);
    return put_frames(listing);
}

/* The operand is `path` itself; a file of a store has a name below that. */
static int list_file(const struct cli *cli, const struct wal__env *env, const char *path,
                     const char *name)
{
    struct listing listing = {.cli = cli, .name = name, .block.records.heap = &cli_heap};
    int code;

    if (wal__damaged_path_open(&listing.file, env, path, name == path ? WAL__IO_FOLLOW : 0) !=
        WAL_OK) {
        return cli_error(cli, CLI_FAILED, path, "%s", cli_file_error(listing.file.error));
    }
    listing.file.header = &listing.header;
    code = list_open_file(&listing);
    wal__buf_deinit(&listing.block.records);
    wal__damaged_file_close(&listing.file);
    return code;
}

static int is_segment(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);

    return size == strlen("0000000000000001.seg") && strcmp(entry->d_name + size - 4, ".seg") == 0;
}

/* Lists the segments of a directory, which may be missing. */
static int list_folder(const struct cli *cli, const struct wal__env *env, const char *folder)
{
    char *path = cli_format("%s/%s", env->root, folder);
    struct dirent **names = NULL;
    int code = CLI_OK;
    int count = 0;
    int error;
    DIR *directory;

    directory = cli_directory_open(path, &error);
    if (directory != NULL) {
        count = scandir(path, &names, is_segment, alphasort);
        error = errno;
        closedir(directory);
    }
    if ((directory == NULL && error != ENOENT) || count < 0) {
        code = cli_error(cli, CLI_FAILED, path, "%s", cli_file_error(error));
    }
    for (int i = 0; i < count; i++) {
        char *name = cli_format("%s/%s", folder, names[i]->d_name);
        char *file = cli_format("%s/%s", env->root, name);

        if (!cli_output_failed()) {
            code = cli_worse_code(code, list_file(cli, env, file, name));
        }
        free(file);
        free(name);
        free(names[i]);
    }
    free(names);
    free(path);
    return code;
}

int walcat_print_frames(const struct cli *cli, const char *path)
{
    struct wal__env env = {.heap = &cli_heap, .io = &wal__io_posix};
    struct wal_open_options options = cli_open_options(cli, 0);
    struct stat status;
    char *log;
    bool is_store;
    int code;

    if (stat(path, &status) != 0) {
        return cli_error(cli, CLI_FAILED, path, "%s", strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) {
        return list_file(cli, &env, path, path);
    }
    log = cli_format("%s/log", path);
    is_store = stat(log, &status) == 0 && S_ISDIR(status.st_mode);
    free(log);
    if (!is_store) {
        return cli_error(cli, CLI_FAILED, path, "is not a store: it has no directory log/");
    }
    if (snprintf(env.root, sizeof(env.root), "%s", path) >= (int)sizeof(env.root)) {
        return cli_error(cli, CLI_FAILED, path, "the path is too long");
    }
    cli_use_key(cli, path, &options);
    cli_check(cli, path, wal__damaged_open_keys(&env, options.key, cli->error));
    code = list_folder(cli, &env, "log");
    code = cli_worse_code(code, list_folder(cli, &env, "pack"));
    wal__keyring_destroy(env.keyring);
    return code;
}
