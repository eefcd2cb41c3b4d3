/*
 * api_record.c - the public functions on segments and their records
 * (agentwal/record.h): arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/read/record_cursor.h"
#include "engine/read/segment_list.h"
#include "engine/store/session.h"

enum {
    PAYLOAD_LIMIT = 16 * 1024 * 1024
};

static const char null_handle[] = "the handle is null";
static const char null_place[] = "the place for the cursor is null";

enum wal_status wal_segment_cursor_open(struct wal_store *store,
                                        struct wal_segment_cursor **cursor,
                                        struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, null_place);
    }
    return status == WAL_OK
               ? wal__segment_cursor_open(&store->core, cursor, error)
               : status;
}

enum wal_status wal_segment_cursor_next(struct wal_segment_cursor *cursor,
                                        struct wal_segment_info *segment,
                                        struct wal_error *error)
{
    struct wal_segment_info own = WAL_INIT(wal_segment_info);
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = wal__check_core(cursor->core, error);
    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_segment_info),
                                          segment, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_cursor_next(cursor, &own);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_segment_info), segment, &own);
    }
    return status;
}

void wal_segment_cursor_close(struct wal_segment_cursor *cursor)
{
    wal__segment_cursor_close(cursor);
}

static enum wal_status load_options(const struct wal_record_cursor_options *in,
                                    struct wal_record_cursor_options *options,
                                    struct wal_error *error)
{
    enum wal_status status = wal__struct_load(
        WAL__STRUCT(wal_record_cursor_options), options, in, error);

    if (status == WAL_OK &&
        (options->flags & ~(uint32_t)WAL_RECORD_CURSOR_DELETED) != 0) {
        status = wal__invalid(error,
                              "the flags of the record options are not valid");
    }
    if (options->payload_limit == 0) {
        options->payload_limit = PAYLOAD_LIMIT;
    }
    return status;
}

enum wal_status wal_record_cursor_open(
    struct wal_store *store, const struct wal_record_cursor_options *options,
    struct wal_record_cursor **cursor, struct wal_error *error)
{
    struct wal_record_cursor_options own = {0};
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, null_place);
    }
    if (status == WAL_OK) {
        status = load_options(options, &own, error);
    }
    return status == WAL_OK
               ? wal__record_cursor_open(&store->core, &own, cursor, error)
               : status;
}

static enum wal_status check_record(struct wal_record_cursor *cursor,
                                    const struct wal_record *record,
                                    struct wal_error *error)
{
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = wal__check_core(cursor->core, error);
    return status == WAL_OK ? wal__struct_check_output(WAL__STRUCT(wal_record),
                                                       record, error)
                            : status;
}

enum wal_status wal_record_cursor_next(struct wal_record_cursor *cursor,
                                       struct wal_record *record,
                                       struct wal_error *error)
{
    struct wal_record own = WAL_INIT(wal_record);
    enum wal_status status = check_record(cursor, record, error);

    if (status == WAL_OK) {
        status = wal__record_cursor_next(cursor, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_record), record, &own);
    }
    return status;
}

enum wal_status wal_record_cursor_get(struct wal_record_cursor *cursor,
                                      uint32_t session_number,
                                      uint64_t sequence,
                                      struct wal_record *record,
                                      struct wal_error *error)
{
    struct wal_record own = WAL_INIT(wal_record);
    enum wal_status status = check_record(cursor, record, error);

    if (status == WAL_OK) {
        status = wal__record_cursor_get(cursor, session_number, sequence, &own,
                                        error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_record), record, &own);
    }
    return status;
}

void wal_record_cursor_close(struct wal_record_cursor *cursor)
{
    wal__record_cursor_close(cursor);
}
