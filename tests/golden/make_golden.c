/*
 * make_golden.c - makes small stores, damages each in one way, and writes them as golden files
 * (tests/lib/golden.h) into the folder that is named.
 *
 * Clock and random numbers are the simulated disk's, so that the same library makes the same files.
 * The committed files never change: a later format gets new files.
 *
 * golden_content.h lists the contents of the stores.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/heap.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/golden/golden_content.h"
#include "tests/golden/make_golden.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/golden.h"

/* --- building ------------------------------------------------------------- */

/* A process with the store open. */
struct maker {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena;
    struct wal_store *store;
};

static void check(enum wal_status status)
{
    WAL__ASSERT(status == WAL_OK);
}

static void maker_open(struct maker *maker, struct sim_disk *disk)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_CREATE,
    };

    maker->disk = disk;
    maker->process = sim_process_create(disk);
    arena_heap_init(&maker->arena);
    check(wal__store_open(ROOT, &options, &maker->arena.heap, sim_process_io(maker->process),
                          &maker->store, NULL));
}

static void maker_close(struct maker *maker)
{
    check(wal_close(maker->store, NULL));
    sim_process_destroy(maker->process);
    arena_heap_deinit(&maker->arena);
}

/* Ends the process without closing. */
static void maker_kill(struct maker *maker)
{
    sim_process_destroy(maker->process);
    arena_heap_deinit(&maker->arena);
}

static struct wal_session *session_of(struct maker *maker, const char *id)
{
    struct wal_session *session = NULL;
    struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = {id, strlen(id)},
        .cwd = {"/srv/golden", 11},
        .title = {id, strlen(id)},
        .metadata = {"{\"golden\":true}", 15},
    };

    if (wal_session_open(maker->store, options.id, &session, NULL) != WAL_OK) {
        check(wal_session_create(maker->store, &options, &session, NULL));
    }
    return session;
}

static enum wal_status append(struct maker *maker, const char *session_id, const char *id,
                              uint32_t durability)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = durability,
    };
    struct wal_session *session = session_of(maker, session_id);
    char *payload = golden_payload(id);
    const char *type = golden_type(id);
    const struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .id = {id, strlen(id)},
        .type = {type, strlen(type)},
        .timestamp = {GOLDEN_TIME, strlen(GOLDEN_TIME)},
        .payload = {payload, strlen(payload)},
    };
    enum wal_status status = wal_append(session, &entry, 1, &options, NULL, NULL);

    wal_session_close(session);
    free(payload);
    return status;
}

/* Makes a fork of a session at an entry. */
static void make_fork(struct maker *maker, const char *source_id, const char *at, const char *id)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = {id, strlen(id)},
    };
    struct wal_session *source = session_of(maker, source_id);
    struct wal_session *fork = NULL;

    check(wal_session_fork(source, (struct wal_slice){at, strlen(at)}, &options, &fork, NULL));
    wal_session_close(fork);
    wal_session_close(source);
}

/* Puts a document of a session, or with null of the store; a null value deletes it. */
static void put(struct maker *maker, const char *session_id, const char *key, const char *value)
{
    struct wal_session *session = session_id == NULL ? NULL : session_of(maker, session_id);
    struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .key = {key, strlen(key)},
    };

    if (value != NULL) {
        doc.value = (struct wal_slice){value, strlen(value)};
        check(wal_doc_put(maker->store, session, &doc, NULL, NULL));
    } else {
        check(wal_doc_delete(maker->store, session, &doc, NULL, NULL));
    }
    wal_session_close(session);
}

static void set_head(struct maker *maker, const char *session_id, const char *name,
                     const char *entry_id)
{
    const struct wal_head head = {
        .struct_size = sizeof(head),
        .name = {name, strlen(name)},
        .entry_id = {entry_id, strlen(entry_id)},
        .note = {"golden", 6},
    };
    struct wal_session *session = session_of(maker, session_id);

    check(wal_head_move(session, &head, NULL, NULL));
    wal_session_close(session);
}

/* The sessions zeta, delta and epsilon, and the store's own document. */
static void fill_more(struct maker *maker)
{
    struct wal_session *delta;

    check(append(maker, "zeta", "z1", WAL_DURABLE));
    check(append(maker, "zeta", "z2", WAL_DURABLE));
    put(maker, "zeta", "notes", "{\"v\":1}");
    put(maker, "zeta", "gone", "{\"v\":1}");
    set_head(maker, "zeta", "kept", "z1");
    put(maker, "zeta", "gone", NULL);
    put(maker, NULL, "config", "{\"v\":1}");
    check(append(maker, "zeta", "zr", WAL_DURABLE));
    check(append(maker, "zeta", "zd", WAL_DURABLE));
    put(maker, "zeta", "notes", "{\"v\":2}");
    check(append(maker, "delta", "d1", WAL_DURABLE));
    check(append(maker, "delta", "d2", WAL_DURABLE));
    make_fork(maker, "delta", "d1", "epsilon");
    delta = session_of(maker, "delta");
    check(wal_session_delete(delta, NULL));
    wal_session_close(delta);
    check(append(maker, "epsilon", "e1", WAL_DURABLE));
}

/* The sessions alpha, beta, and gamma, which is a fork of alpha at a3; with
 * `more` also the others, before it. */
static void fill_most(struct maker *maker, bool more)
{
    for (int i = 1; i <= 5; i++) {
        char id[8];

        snprintf(id, sizeof(id), "a%d", i);
        check(append(maker, "alpha", id, WAL_DURABLE));
        snprintf(id, sizeof(id), "b%d", i);
        check(append(maker, "beta", id, WAL_DURABLE));
    }
    if (more) {
        fill_more(maker);
    }
    make_fork(maker, "alpha", "a3", "gamma");
}

/* Gamma's entries too. */
static void fill(struct maker *maker, bool more)
{
    fill_most(maker, more);
    check(append(maker, "gamma", "g1", WAL_DURABLE));
    check(append(maker, "gamma", "g2", WAL_DURABLE));
}

static struct sim_disk *make_closed(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct maker maker;

    maker_open(&maker, disk);
    fill(&maker, true);
    maker_close(&maker);
    return disk;
}

/* The session eta is in the trash, and theta is a fork of it at t1. */
static struct sim_disk *make_trashed(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct wal_session *eta;
    struct maker maker;

    maker_open(&maker, disk);
    fill(&maker, true);
    check(append(&maker, "eta", "t1", WAL_DURABLE));
    check(append(&maker, "eta", "t2", WAL_DURABLE));
    make_fork(&maker, "eta", "t1", "theta");
    check(append(&maker, "theta", "h1", WAL_DURABLE));
    eta = session_of(&maker, "eta");
    check(wal_session_trash(eta, NULL));
    wal_session_close(eta);
    maker_close(&maker);
    return disk;
}

/* The sync of the last group failed; what was beyond the durable end went to another segment when
 * it was sent again. */
static struct sim_disk *make_healed(void)
{
    const struct sim_fault fault = {.call = SIM_SYNC, .path = ".seg", .sys_errno = EIO};
    struct sim_disk *disk = sim_disk_create(1);
    struct maker maker;

    maker_open(&maker, disk);
    fill_most(&maker, true);
    check(append(&maker, "gamma", "g1", WAL_WRITTEN));
    sim_process_add_fault(maker.process, &fault);
    check(append(&maker, "gamma", "g2", WAL_DURABLE));
    maker_close(&maker);
    return disk;
}

/* The last group is not marked. */
static struct sim_disk *make_open(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct maker maker;

    maker_open(&maker, disk);
    fill(&maker, true);
    maker_kill(&maker);
    return disk;
}

/* The tail has a commit mark, and there is no index file for it. */
static struct sim_disk *make_marked_with(bool more)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct maker maker;

    maker_open(&maker, disk);
    fill(&maker, more);
    check(wal__store_commit_mark(maker.store, NULL));
    maker_kill(&maker);
    return disk;
}

static struct sim_disk *make_marked(void)
{
    return make_marked_with(true);
}

/* Three segments, the entries of the first two large. The library that wrote them kept payloads of
 * that size in the log. */
static struct sim_disk *make_long(void)
{
    struct sim_disk *disk = sim_disk_create(1);

    golden_load_named(disk, "index_version_2");
    golden_raise_index(disk);
    return disk;
}

/* One more append, cut off after `bytes` bytes in that file. */
static void append_torn(struct sim_disk *disk, const char *id, const char *path, size_t bytes)
{
    const struct sim_fault fault = {
        .call = SIM_PWRITEV,
        .path = path,
        .effect = SIM_KILL_BEFORE,
        .put = bytes,
    };
    struct maker maker;

    maker_open(&maker, disk);
    sim_process_add_fault(maker.process, &fault);
    WAL__ASSERT(append(&maker, "beta", id, WAL_DURABLE) != WAL_OK);
    maker_kill(&maker);
}

/* --- damaging ------------------------------------------------------------- */

static void flip(struct sim_disk *disk, const char *path, uint64_t offset)
{
    sim_file_flip_bit(disk, path, offset, 3);
}

static void unlink_file(struct sim_disk *disk, const char *path)
{
    struct sim_process *process = sim_process_create(disk);
    const struct wal__io *io = sim_process_io(process);
    int err = 0;

    check(io->unlink(io->ctx, path, &err));
    check(io->sync_directory(io->ctx, path[7] == 'l' ? ROOT "/log" : ROOT "/index", &err));
    sim_process_destroy(process);
}

static bool is_wanted(const struct wal__frame *frame, uint8_t type, const char *id)
{
    return frame->type == type && (id == NULL || frame->id_hash == wal__id_hash(id, strlen(id)));
}

/* The last frame of that type, and of that entry, key or name unless it is null; the first one when
 * `first`. */
static uint64_t find_one(struct sim_disk *disk, const char *path, uint8_t type, const char *id,
                         bool first)
{
    struct golden_file file = golden_take(disk, path);
    struct wal__frame frame;
    uint64_t at = golden_next_frame(&file, HEADER, &frame);
    uint64_t found = 0;

    while (at != 0 && !(first && found != 0)) {
        found = is_wanted(&frame, type, id) ? at : found;
        at = golden_next_frame(&file, at + wal__frame_total_size(frame.stored_size), &frame);
    }
    WAL__ASSERT(found != 0);
    free(file.bytes);
    return found;
}

static uint64_t find(struct sim_disk *disk, const char *path, uint8_t type, const char *id)
{
    return find_one(disk, path, type, id, true);
}

static uint64_t find_last(struct sim_disk *disk, const char *path, uint8_t type, const char *id)
{
    return find_one(disk, path, type, id, false);
}

static uint64_t find_entry(struct sim_disk *disk, const char *id)
{
    return find(disk, SEG1, WAL__FRAME_ENTRY, id);
}

static void none(struct sim_disk *disk)
{
    (void)disk;
}

static void flip_payload_of_a3(struct sim_disk *disk)
{
    flip(disk, SEG1, find_entry(disk, "a3") + WAL__FRAME_SIZE + 30);
}

static void flip_header_of_b2(struct sim_disk *disk)
{
    flip(disk, SEG1, find_entry(disk, "b2") + 24);
}

static void flip_payload_of_g2(struct sim_disk *disk)
{
    flip(disk, SEG1, find_entry(disk, "g2") + WAL__FRAME_SIZE + 30);
}

static void flip_header_of_g2(struct sim_disk *disk)
{
    flip(disk, SEG1, find_entry(disk, "g2") + 8);
}

static void flip_session_alpha(struct sim_disk *disk)
{
    flip(disk, SEG1, find(disk, SEG1, WAL__FRAME_SESSION, "alpha") + WAL__FRAME_SIZE + 40);
}

static void flip_commit_of_a3(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG1);
    struct wal__frame frame;
    uint64_t at = find_entry(disk, "a3");

    golden_next_frame(&file, at, &frame);
    at = golden_next_frame(&file, at + wal__frame_total_size(frame.stored_size), &frame);
    WAL__ASSERT(frame.type == WAL__FRAME_COMMIT);
    free(file.bytes);
    flip(disk, SEG1, at + WAL__FRAME_SIZE + 16);
}

/* The newest version of the document. */
static void flip_doc(struct sim_disk *disk, const char *key)
{
    uint64_t at = find_last(disk, SEG1, WAL__FRAME_DOC, key);

    flip(disk, SEG1, at + WAL__FRAME_SIZE + 20);
}

static void flip_doc_notes(struct sim_disk *disk)
{
    flip_doc(disk, "notes");
}

static void flip_doc_config(struct sim_disk *disk)
{
    flip_doc(disk, "config");
}

static void flip_redact(struct sim_disk *disk)
{
    flip(disk, SEG1, find(disk, SEG1, WAL__FRAME_REDACT, "zr") + WAL__FRAME_SIZE + 9);
}

static void flip_tombstone(struct sim_disk *disk)
{
    flip(disk, SEG1, find(disk, SEG1, WAL__FRAME_TOMBSTONE, NULL) + 24);
}

static void zero_sector_of_a3(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG1);
    uint64_t at = find_entry(disk, "a3") / SECTOR * SECTOR;

    memset(file.bytes + at, 0, SECTOR);
    golden_put_back(&file);
}

static void append_written_and_flip(struct sim_disk *disk)
{
    struct maker maker;

    maker_open(&maker, disk);
    check(append(&maker, "beta", "b6", WAL_WRITTEN));
    maker_kill(&maker);
    flip(disk, SEG1, find_entry(disk, "b6") + WAL__FRAME_SIZE + 30);
}

static void tear_group(struct sim_disk *disk)
{
    append_torn(disk, "b6", SEG1, 100);
}

static void tear_open(struct sim_disk *disk)
{
    append_torn(disk, "L2", "0000000000000002.seg", 60);
}

static void zero_segment_2(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG2);

    memset(file.bytes, 0, file.size);
    golden_put_back(&file);
}

static void zero_segment_3(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG3);

    memset(file.bytes, 0, file.size);
    golden_put_back(&file);
}

static void remove_segment_2(struct sim_disk *disk)
{
    unlink_file(disk, SEG2);
}

static void remove_segment_3(struct sim_disk *disk)
{
    unlink_file(disk, SEG3);
}

static void swap_segments(struct sim_disk *disk)
{
    struct golden_file first = golden_take(disk, SEG1);
    struct golden_file second = golden_take(disk, SEG2);

    first.path = SEG2;
    second.path = SEG1;
    golden_put_back(&first);
    golden_put_back(&second);
}

static void take_foreign_segment(struct sim_disk *disk)
{
    struct sim_disk *other = sim_disk_create(2);
    struct golden_file file;

    golden_load_named(other, "segment_of_another_store");
    file = golden_take(other, SEG2);
    file.disk = disk;
    golden_put_back(&file);
    sim_disk_destroy(other);
}

static void double_segment(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG3);

    file.path = SEG4;
    golden_put_back(&file);
}

static void cut_segment(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG2);

    file.size = file.size / 2;
    golden_put_back(&file);
}

static void extend_segment(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, SEG2);

    file.bytes = realloc(file.bytes, file.size + 4096);
    WAL__ASSERT(file.bytes != NULL);
    memset(file.bytes + file.size, 0x5a, 4096);
    file.size += 4096;
    golden_put_back(&file);
}

/* Writes both slots, the second one newer. */
static void write_slots(struct sim_disk *disk, uint32_t version, uint32_t incompat)
{
    struct golden_file file = golden_take(disk, ROOT "/MANIFEST");
    struct wal__manifest manifest;
    uint8_t *second = file.bytes + WAL__MANIFEST_SLOT_SIZE;

    WAL__ASSERT(wal__manifest_decode(file.bytes, &manifest) == WAL__FMT_OK);
    manifest.generation = 2;
    wal__manifest_encode(&manifest, second);
    if (version != 0) {
        wal__put32(second + 8, version);
        wal__put32(second + 20, incompat);
        wal__put32(second + 60, wal__crc32(0, second, 60));
    }
    golden_put_back(&file);
}

static void damage_slot(struct sim_disk *disk)
{
    write_slots(disk, 0, 0);
    flip(disk, ROOT "/MANIFEST", 30);
}

static void damage_slots(struct sim_disk *disk)
{
    damage_slot(disk);
    flip(disk, ROOT "/MANIFEST", 4096 + 40);
}

static void raise_version(struct sim_disk *disk)
{
    write_slots(disk, 2, 0);
}

static void set_incompat(struct sim_disk *disk)
{
    write_slots(disk, 1, 0x40);
}

static void damage_header_copy(struct sim_disk *disk)
{
    flip(disk, SEG1, 57);
}

static void damage_headers(struct sim_disk *disk)
{
    flip(disk, SEG2, 57);
    flip(disk, SEG2, WAL__SEGMENT_HEADER_COPY + 12);
}

static void damage_trailer(struct sim_disk *disk)
{
    flip(disk, SEG1, sim_file_size(disk, SEG1) - 20);
}

static void damage_seal(struct sim_disk *disk)
{
    flip(disk, SEG1, find(disk, SEG1, WAL__FRAME_SEAL, NULL) + 50);
}

static void damage_index_frame(struct sim_disk *disk)
{
    flip(disk, SEG1, find(disk, SEG1, WAL__FRAME_INDEX, NULL) + 200);
}

static void damage_open(struct sim_disk *disk)
{
    flip(disk, SEG2, HEADER + WAL__FRAME_SIZE + 2);
}

static void damage_catalogue(struct sim_disk *disk)
{
    flip(disk, ROOT "/index/catalogue", 4096 + 20);
}

static void damage_tail_index(struct sim_disk *disk)
{
    flip(disk, ROOT "/index/0000000000000001.idx", 150);
}

static void make_tail_index_stale(struct sim_disk *disk)
{
    struct golden_file index = golden_take(disk, ROOT "/index/0000000000000001.idx");
    struct maker maker;

    maker_open(&maker, disk);
    check(append(&maker, "alpha", "a6", WAL_DURABLE));
    check(wal__store_commit_mark(maker.store, NULL));
    maker_kill(&maker);
    golden_put_back(&index);
}

/* Alters a frame; its checksums follow. */
typedef void alter(struct wal__frame *frame, uint8_t *payload);

/* Writes the frames of a segment anew from one on, with checksums and chain as they must be: that
 * one altered, or the sequence numbers `gap` higher. */
static void rewrite(struct sim_disk *disk, uint64_t from, uint64_t gap, alter *alter_frame)
{
    struct golden_file file = golden_take(disk, SEG1);
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t first = 0; /* sequence number that changes */
    uint32_t chain = 0;
    uint64_t at;

    golden_header(&file, &header);
    at = golden_next_frame(&file, HEADER, &frame);
    while (at != 0) {
        uint64_t next = at + wal__frame_total_size(frame.stored_size);
        uint8_t *payload = file.bytes + at + WAL__FRAME_SIZE;

        if (at >= from) {
            if (at == from && alter_frame != NULL) {
                alter_frame(&frame, payload);
                frame.data_crc = wal__crc32(0, payload, frame.stored_size);
            }
            first = first == 0 ? frame.sequence : first;
            frame.sequence += frame.sequence != 0 ? gap : 0;
            frame.parent += frame.parent >= first ? gap : 0;
            if (frame.type == WAL__FRAME_COMMIT) {
                wal__put64(payload, wal__get64(payload) + gap);
                wal__put32(payload + 16, chain);
                frame.data_crc = wal__crc32(0, payload, frame.stored_size);
            }
            wal__frame_encode(&frame, header.salt, at, file.bytes + at);
        }
        chain = wal__frame_chain_crc(chain, &frame);
        at = golden_next_frame(&file, next, &frame);
    }
    golden_put_back(&file);
}

static void make_hole(struct sim_disk *disk)
{
    rewrite(disk, find_entry(disk, "b4"), 2, NULL);
}

static void alter_type(struct wal__frame *frame, uint8_t *payload)
{
    (void)payload;
    frame->type = 77;
}

static void make_unknown_type(struct sim_disk *disk)
{
    rewrite(disk, find_entry(disk, "b4"), 0, alter_type);
}

static void alter_parent(struct wal__frame *frame, uint8_t *payload)
{
    (void)payload;
    frame->parent--;
}

static void lower_doc_parent(struct sim_disk *disk)
{
    rewrite(disk, find_last(disk, SEG1, WAL__FRAME_DOC, "notes"), 0, alter_parent);
}

/* z1 is right before z2. */
static void lower_redact_parent(struct sim_disk *disk)
{
    rewrite(disk, find(disk, SEG1, WAL__FRAME_REDACT, "zr"), 0, alter_parent);
}

static void alter_fork_source(struct wal__frame *frame, uint8_t *payload)
{
    (void)frame;
    wal__put32(payload + 12, 99);
}

static void raise_fork_source(struct sim_disk *disk)
{
    rewrite(disk, find_last(disk, SEG1, WAL__FRAME_FORK, NULL), 0, alter_fork_source);
}

static void alter_session_id(struct wal__frame *frame, uint8_t *payload)
{
    memcpy(payload + 32, "alpha", 5);
    frame->id_hash = wal__id_hash("alpha", 5);
}

static void take_id_of_alpha(struct sim_disk *disk)
{
    rewrite(disk, find(disk, SEG1, WAL__FRAME_SESSION, "gamma"), 0, alter_session_id);
}

static void alter_session(struct wal__frame *frame, uint8_t *payload)
{
    (void)payload;
    frame->session--; /* delta was made right before epsilon */
}

static void give_e1_to_delta(struct sim_disk *disk)
{
    rewrite(disk, find_entry(disk, "e1"), 0, alter_session);
}

static struct sim_disk *make_version_0(void)
{
    struct sim_disk *disk = make_marked_with(false);

    golden_lower(disk);
    return disk;
}

/* --- the stores ----------------------------------------------------------- */

/* One small store that is about to begin its second segment. */
static struct sim_disk *make_full(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct maker maker;

    maker_open(&maker, disk);
    fill(&maker, true);
    check(append(&maker, "beta", "L1", WAL_DURABLE));
    maker_close(&maker);
    return disk;
}

static void flip_entry_in_sealed(struct sim_disk *disk)
{
    flip_payload_of_a3(disk);
}

static const struct {
    const char *name;
    struct sim_disk *(*make)(void);
    void (*damage)(struct sim_disk *disk);
} cases[] = {
    {"intact", make_closed, none},
    {"intact_long", make_long, none},
    {"index_version_2", golden_make_index_2, none},
    {"intact_unmarked", make_open, none},
    {"healed", make_healed, none},
    {"trashed", make_trashed, none},
    {"torn_frame_in_tail", make_open, tear_group},
    {"torn_open", make_full, tear_open},
    {"flipped_entry_below_watermark", make_marked, flip_payload_of_a3},
    {"flipped_header_below_watermark", make_marked, flip_header_of_b2},
    {"flipped_session_record", make_closed, flip_session_alpha},
    {"flipped_document", make_marked, flip_doc_notes},
    {"flipped_store_document", make_marked, flip_doc_config},
    {"flipped_redact", make_marked, flip_redact},
    {"flipped_tombstone", make_marked, flip_tombstone},
    {"flipped_tombstone_with_index", make_closed, flip_tombstone},
    {"flipped_entry_in_unmarked_group", make_open, flip_payload_of_g2},
    {"flipped_entry_in_unpromised_group", make_open, append_written_and_flip},
    {"flipped_entry_in_sealed_segment", make_long, flip_entry_in_sealed},
    {"ambiguous_tail", make_open, flip_header_of_g2},
    {"lost_commit", make_marked, flip_commit_of_a3},
    {"zeroed_sector", make_marked, zero_sector_of_a3},
    {"hole_in_sequence", make_marked, make_hole},
    {"unknown_frame_type", make_marked, make_unknown_type},
    {"wrong_document_version", make_marked, lower_doc_parent},
    {"wrong_redact_target", make_marked, lower_redact_parent},
    {"wrong_fork_source", make_marked, raise_fork_source},
    {"taken_session_id", make_marked, take_id_of_alpha},
    {"entry_of_deleted_session", make_marked, give_e1_to_delta},
    {"zeroed_segment", make_long, zero_segment_2},
    {"zeroed_last_segment", make_long, zero_segment_3},
    {"missing_segment", make_long, remove_segment_2},
    {"missing_last_segment", make_long, remove_segment_3},
    {"swapped_segments", make_long, swap_segments},
    {"segment_of_another_store", make_long, take_foreign_segment},
    {"doubled_segment", make_long, double_segment},
    {"cut_segment", make_long, cut_segment},
    {"extended_segment", make_long, extend_segment},
    {"damaged_header_copy", make_closed, damage_header_copy},
    {"both_headers", make_long, damage_headers},
    {"damaged_open", make_long, damage_open},
    {"damaged_trailer", make_long, damage_trailer},
    {"damaged_seal", make_long, damage_seal},
    {"damaged_index_frame", make_long, damage_index_frame},
    {"catalogue_flipped", make_long, damage_catalogue},
    {"tail_index_flipped", make_closed, damage_tail_index},
    {"tail_index_stale", make_closed, make_tail_index_stale},
    {"damaged_manifest_slot", make_closed, damage_slot},
    {"both_manifest_slots", make_closed, damage_slots},
    {"version_0", make_version_0, none},
    {"newer_version", make_closed, raise_version},
    {"unknown_incompat_bit", make_closed, set_incompat},
};

int main(int argc, char **argv)
{
    char path[512];

    if (argc < 2) {
        fprintf(stderr, "Usage: make_golden FOLDER [NAME]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sim_disk *disk;

        if (argc > 2 && strcmp(argv[2], cases[i].name) != 0) {
            continue;
        }
        disk = cases[i].make();
        cases[i].damage(disk);
        snprintf(path, sizeof(path), "%s/%s.golden", argv[1], cases[i].name);
        golden_save(disk, ROOT, path);
        sim_disk_destroy(disk);
    }
    return 0;
}
