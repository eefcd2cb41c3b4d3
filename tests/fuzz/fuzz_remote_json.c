/*
 * fuzz_remote_json.c - any bytes as the objects of a remote that are JSON, as the end of a part's
 * object, and as the name of one.
 *
 * What is decoded is encoded again, and decoded to the same.
 */
#include <string.h>

#include "remote/layout/layout.h"
#include "tests/fuzz/fuzz.h"

static struct wal_slice slice_of(const struct wal__buf *buf)
{
    return (struct wal_slice){buf->data, buf->size};
}

static void check_epoch(struct wal_slice json, struct wal__buf *buf)
{
    struct wal__epoch epoch;
    struct wal__epoch again;

    buf->size = 0;
    if (wal__epoch_decode(json, "", &epoch, NULL) == WAL_OK) {
        check(wal__epoch_encode(&epoch, buf) == WAL_OK);
        check(wal__epoch_decode(slice_of(buf), "", &again, NULL) == WAL_OK);
        check(strcmp(epoch.host, again.host) == 0 && epoch.started_ms == again.started_ms);
    }
}

static void check_fence(struct wal_slice json, struct wal__buf *buf)
{
    uint64_t epoch = 0;
    uint64_t again = 0;

    buf->size = 0;
    if (wal__fence_decode(json, "", &epoch, NULL) == WAL_OK && epoch != 0) {
        check(wal__fence_encode(epoch, buf) == WAL_OK);
        check(wal__fence_decode(slice_of(buf), "", &again, NULL) == WAL_OK);
        check(again == epoch);
    }
}

static void check_own(struct wal_slice json, struct wal__buf *buf)
{
    struct wal__own own;
    struct wal__own again;

    buf->size = 0;
    if (wal__own_decode(json, "", &own, NULL) == WAL_OK) {
        check(wal__own_encode(&own, buf) == WAL_OK);
        check(wal__own_decode(slice_of(buf), "", &again, NULL) == WAL_OK);
        check(strcmp(own.session, again.session) == 0 && strcmp(own.host, again.host) == 0 &&
              strcmp(own.entry, again.entry) == 0 && own.move == again.move &&
              own.sequence == again.sequence && own.claimed_ms == again.claimed_ms &&
              memcmp(own.store, again.store, sizeof(own.store)) == 0);
    }
}

static void check_base(struct wal_slice json, struct wal__buf *buf)
{
    struct wal__base_list list;
    struct wal__base_list again;

    buf->size = 0;
    wal__base_list_init(&list, &wal__heap_libc);
    wal__base_list_init(&again, &wal__heap_libc);
    if (wal__base_list_decode(json, "", &list, NULL) == WAL_OK) {
        check(wal__base_list_encode(&list, buf) == WAL_OK);
        check(wal__base_list_decode(slice_of(buf), "", &again, NULL) == WAL_OK);
        check(list.created_ms == again.created_ms && list.epoch == again.epoch &&
              list.part == again.part && list.segments.size == again.segments.size &&
              memcmp(list.segments.data, again.segments.data, list.segments.size) == 0);
    }
    wal__base_list_deinit(&list);
    wal__base_list_deinit(&again);
}

static int32_t add_session(void *ctx, const char *host, const struct wal_session_info *session)
{
    enum wal_status status = wal__session_list_add(ctx, session);

    (void)host;
    check(status == WAL_OK || status == WAL_END);
    return 0;
}

/* A list is sorted when it is encoded, so that only the second encoding has the bytes of the first
 * one. */
static void check_sessions(struct wal_slice json, struct wal__buf *buf)
{
    struct wal__session_list list;
    struct wal__buf again;

    buf->size = 0;
    wal__buf_init(&again, &wal__heap_libc);
    wal__session_list_init(&list, &wal__heap_libc);
    if (wal__session_list_decode(json, "", &wal__heap_libc, add_session, &list, NULL) == WAL_OK) {
        check(wal__session_list_encode(&list, "h", buf) == WAL_OK);
        wal__session_list_deinit(&list);
        check(wal__session_list_decode(slice_of(buf), "", &wal__heap_libc, add_session, &list,
                                       NULL) == WAL_OK);
        check(wal__session_list_encode(&list, "h", &again) == WAL_OK);
        check(again.size == buf->size && memcmp(again.data, buf->data, again.size) == 0);
    }
    wal__session_list_deinit(&list);
    wal__buf_deinit(&again);
}

static void check_part(struct wal_slice object, struct wal__buf *buf)
{
    struct wal_slice part;
    uint64_t floor;

    buf->size = 0;
    if (object.size >= WAL__PART_TRAILER_SIZE &&
        wal__part_object_open(object, "", object.size - WAL__PART_TRAILER_SIZE, &part, &floor,
                              NULL) == WAL_OK) {
        check(wal__buf_append(buf, part.data, (size_t)part.size) == WAL_OK);
        check(wal__part_object_seal(buf, floor) == WAL_OK);
        check(memcmp(buf->data, object.data, buf->size) == 0);
    }
}

static void check_name(const uint8_t *data, size_t size)
{
    struct wal__store_object object;
    char text[WAL__STORE_OBJECT_SIZE];
    char name[256];

    if (size < sizeof(name)) {
        memcpy(name, data, size);
        name[size] = '\0';
        if (wal__store_object_parse(name, &object)) {
            wal__store_object_format(&object, text);
            check(strcmp(text, name) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wal_slice json = {data, size};
    struct wal__buf buf;

    wal__buf_init(&buf, &wal__heap_libc);
    check_epoch(json, &buf);
    check_fence(json, &buf);
    check_own(json, &buf);
    check_base(json, &buf);
    check_sessions(json, &buf);
    check_part(json, &buf);
    wal__buf_deinit(&buf);
    if (size > 0) {
        check_name(data, size);
    }
    return 0;
}
