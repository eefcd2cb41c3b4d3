/*
 * small_log.c - a log of numbers in memory (small_log.h).
 */
#include "tests/lib/remote/small_log.h"

#include "engine/base/error.h"

static const char magic[8] = "SMALLPRT";

const uint8_t small_uuid[16] = {0xa1, 2, 3, [15] = 4};

/* magic | info | zeros | entries | digest; larger than a fence, as all are */
enum { HEAD_SIZE = sizeof(magic) + sizeof(struct wal_part_info) + 64 };

void small_log_init(struct small_log *log)
{
    *log = (struct small_log){.identity = 7};
    log->entries = calloc(SMALL_LOG_MAX, sizeof(log->entries[0]));
    log->chain = calloc(SMALL_LOG_MAX + 1, sizeof(log->chain[0]));
    log->part = calloc(1, HEAD_SIZE + SMALL_PART_MAX * sizeof(uint64_t) + WAL_DIGEST_SIZE);
    assert_true(log->entries != NULL && log->chain != NULL && log->part != NULL);
}

void small_log_deinit(struct small_log *log)
{
    free(log->entries);
    free(log->chain);
    free(log->part);
}

static uint32_t chain_of(uint32_t before, uint64_t entry)
{
    return before * 31 + (uint32_t)(entry * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

void small_log_append(struct small_log *log, uint64_t entry)
{
    assert_true(log->count < SMALL_LOG_MAX);
    log->entries[log->count++] = entry;
    log->chain[log->count] = chain_of(log->chain[log->count - 1], entry);
}

void small_log_cut(struct small_log *log, uint64_t count)
{
    assert_true(count <= log->count);
    log->count = count;
}

void assert_logs_equal(const struct small_log *a, const struct small_log *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->entries, b->entries, (size_t)a->count * sizeof(a->entries[0]));
}

static struct wal__position position_of(const struct small_log *log, uint64_t count)
{
    struct wal__position position = {{{0}}};

    if (count > 0) {
        position.places[WAL_PART_LOG] = (struct wal_part_place){.segment = 1,
                                                                .identity = log->identity,
                                                                .offset = 8 * count,
                                                                .sequence = count,
                                                                .chain = log->chain[count]};
    }
    return position;
}

static void fill_digest(uint8_t digest[WAL_DIGEST_SIZE], uint32_t chain)
{
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i += sizeof(chain)) {
        memcpy(digest + i, &chain, sizeof(chain));
    }
}

/* Makes the part of the entries from `first` on. */
static void make_part(struct small_log *log, uint64_t first, uint64_t count, uint32_t flags,
                      struct wal_slice *part, struct wal_part_info *info)
{
    struct wal_part_info made = WAL_INIT(wal_part_info);
    struct wal__position before;
    struct wal__position after;

    assert_true(count <= SMALL_PART_MAX);
    made.flags = flags;
    memcpy(made.uuid, small_uuid, sizeof(made.uuid));
    made.size = HEAD_SIZE + count * sizeof(uint64_t) + WAL_DIGEST_SIZE;
    before = position_of(log, first);
    after = position_of(log, first + count);
    memcpy(made.before, before.places, sizeof(made.before));
    memcpy(made.after, after.places, sizeof(made.after));
    memcpy(log->part, magic, sizeof(magic));
    memcpy(log->part + sizeof(magic), &made, sizeof(made));
    memcpy(log->part + HEAD_SIZE, log->entries + first, (size_t)count * sizeof(uint64_t));
    fill_digest(log->part + made.size - WAL_DIGEST_SIZE, log->chain[first + count]);
    if (part != NULL) {
        *part = (struct wal_slice){log->part, made.size};
    }
    if (info != NULL) {
        *info = made;
    }
}

static enum wal_status next(void *ctx, const struct wal__position *position, uint64_t max_size,
                            struct wal_slice *part, struct wal_part_info *info,
                            struct wal_error *error)
{
    struct small_log *log = ctx;
    uint64_t first = position != NULL ? position->places[WAL_PART_LOG].sequence : 0;
    uint64_t count;

    (void)max_size;
    if (first > log->count ||
        (first > 0 && log->chain[first] != position->places[WAL_PART_LOG].chain)) {
        return wal__fail(error, WAL_ECONFLICT, "another past");
    }
    if (first < log->compacted) {
        make_part(log, first, log->compacted - first, WAL_PART_SEGMENT, part, info);
        return WAL_OK;
    }
    if (first == log->count) {
        return WAL_END;
    }
    count = log->count - first;
    if (log->per_part > 0 && count > log->per_part) {
        count = log->per_part;
    }
    make_part(log, first, count, 0, part, info);
    return WAL_OK;
}

static enum wal_status next_to(void *ctx, const struct wal__position *position,
                               const struct wal__position *end, uint64_t max_size,
                               struct wal_slice *part, struct wal_part_info *info,
                               struct wal_error *error)
{
    struct small_log *log = ctx;
    const struct wal_part_place *last = &end->places[WAL_PART_LOG];
    const struct small_log whole = *log;
    enum wal_status status;

    if (last->sequence > log->count || log->chain[last->sequence] != last->chain) {
        return wal__fail(error, WAL_ECONFLICT, "another past than the end");
    }
    if (last->sequence < log->compacted) {
        return wal__fail(error, WAL_EBUSY, "the end was compacted");
    }
    log->count = last->sequence;
    log->per_part = log->per_base;
    status = next(ctx, position, max_size, part, info, error);
    log->count = whole.count;
    log->per_part = whole.per_part;
    return status;
}

static enum wal_status durable(void *ctx, uint64_t *sequence, struct wal_error *error)
{
    (void)error;
    *sequence = ((struct small_log *)ctx)->count;
    return WAL_OK;
}

static enum wal_status get_info(struct wal_slice head, struct wal_part_info *info,
                                struct wal_error *error)
{
    if (head.size < HEAD_SIZE || memcmp(head.data, magic, 8) != 0) {
        return wal__fail(error, WAL_ECORRUPT, "it is no part");
    }
    memcpy(info, (const uint8_t *)head.data + sizeof(magic), sizeof(*info));
    return WAL_OK;
}

enum wal_status small_log_verify(struct wal_slice part, struct wal_part_info *info,
                                 struct wal_error *error)
{
    enum wal_status status = get_info(part, info, error);
    uint8_t digest[WAL_DIGEST_SIZE];
    uint32_t chain;

    if (status != WAL_OK) {
        return status;
    }
    if (info->size != part.size) {
        return wal__fail(error, WAL_ECORRUPT, "it has another size");
    }
    chain = info->before[WAL_PART_LOG].chain;
    for (uint64_t at = HEAD_SIZE; at + WAL_DIGEST_SIZE < part.size; at += sizeof(uint64_t)) {
        uint64_t entry;

        memcpy(&entry, (const uint8_t *)part.data + at, sizeof(entry));
        chain = chain_of(chain, entry);
    }
    fill_digest(digest, chain);
    return chain == info->after[WAL_PART_LOG].chain &&
                   memcmp((const uint8_t *)part.data + part.size - sizeof(digest), digest,
                          sizeof(digest)) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, "its chain is another one");
}

struct wal__part_source small_log_source(struct small_log *log)
{
    return (struct wal__part_source){
        .next = next, .next_to = next_to, .durable = durable, .info = get_info, .ctx = log};
}

static enum wal_status position(void *ctx, struct wal__position *position, struct wal_error *error)
{
    struct small_log *log = ctx;

    (void)error;
    *position = position_of(log, log->count);
    return WAL_OK;
}

static enum wal_status apply(void *ctx, struct wal_slice part, struct wal_error *error)
{
    struct small_log *log = ctx;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    enum wal_status status = get_info(part, &info, error);
    uint64_t first = info.before[WAL_PART_LOG].sequence;
    uint64_t last = info.after[WAL_PART_LOG].sequence;
    uint64_t before;

    if (status != WAL_OK) {
        return status;
    }
    if (info.size != part.size) {
        return wal__fail(error, WAL_ECORRUPT, "it has another size");
    }
    if (last <= log->count && log->chain[last] == info.after[WAL_PART_LOG].chain) {
        return WAL_OK;
    }
    if (first > log->count || log->chain[first] != info.before[WAL_PART_LOG].chain) {
        return wal__fail(error, WAL_ECONFLICT, "it does not follow");
    }
    before = log->count;
    for (uint64_t i = first; i < last; i++) {
        uint64_t entry;

        memcpy(&entry, (const uint8_t *)part.data + HEAD_SIZE + (i - first) * sizeof(entry),
               sizeof(entry));
        if (i < before && log->entries[i] != entry) {
            return wal__fail(error, WAL_ECONFLICT, "it has another past");
        }
        if (i >= before) {
            small_log_append(log, entry);
        }
    }
    if (log->chain[last] != info.after[WAL_PART_LOG].chain) {
        log->count = before;
        return wal__fail(error, WAL_ECORRUPT, "its chain is another one");
    }
    return WAL_OK;
}

static enum wal_status make_durable(void *ctx, struct wal_error *error)
{
    struct small_log *log = ctx;

    (void)error;
    log->synced = log->count;
    return WAL_OK;
}

struct wal__part_target small_log_target(struct small_log *log)
{
    return (struct wal__part_target){
        .position = position, .apply = apply, .sync = make_durable, .info = get_info, .ctx = log};
}

static int32_t keep(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    struct small_log *log = ctx;

    assert_true(count <= WAL_REMOTE_MARKS);
    memcpy(log->marks, marks, (size_t)count * sizeof(marks[0]));
    log->mark_count = count;
    return 0;
}

enum wal_status small_writer_start(struct wal_remote_writer *writer, struct memory_driver *memory,
                                   struct small_log *log, uint64_t id, bool takes_over,
                                   struct wal_error *error)
{
    *writer = (struct wal_remote_writer){.remote = &memory->remote,
                                         .source = small_log_source(log),
                                         .parallel = log->parallel,
                                         .is_inline = true,
                                         .keep = keep,
                                         .keep_ctx = log,
                                         .mark_count = log->mark_count};
    memcpy(writer->marks, log->marks, sizeof(log->marks));
    memcpy(writer->uuid, small_uuid, sizeof(writer->uuid));
    memcpy(writer->writer, &id, sizeof(id));
    return wal__writer_start(writer, takes_over, error);
}

enum wal_status small_pull(struct memory_driver *memory, struct small_log *log,
                           struct wal_remote_pull_result *result, struct wal_error *error)
{
    struct wal__pull pull = {.remote = &memory->remote, .target = small_log_target(log)};
    enum wal_status status;

    memcpy(pull.uuid, small_uuid, sizeof(pull.uuid));
    status = wal__pull_run(&pull, error);
    wal__pull_deinit(&pull);
    if (status == WAL_OK) {
        assert_int_equal(log->synced, log->count);
    }
    if (result != NULL) {
        *result = pull.result;
    }
    return status;
}
