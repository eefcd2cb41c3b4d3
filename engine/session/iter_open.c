/*
 * iter_open.c - opening an iterator (SPEC.md 5.5): its path is found, cut
 * where reading begins and ends, and freed of what is hidden. Any thread; the
 * state lock is taken here.
 */
#include "engine/base/error.h"
#include "engine/session/heads.h"
#include "engine/session/iter.h"
#include "engine/session/text.h"

/* What the options say, checked. */
struct wanted {
    const struct wal_iter_options *options;
    struct wal__span up_to;
    struct wal__span head;
};

/* Reverses the parts: a path comes newest first. */
static void reverse(struct wal__buf *path)
{
    struct wal__path_part *items = (void *)path->data;
    size_t count = path->size / sizeof(*items);

    for (size_t i = 0; i < count / 2; i++) {
        struct wal__path_part swapped = items[i];

        items[i] = items[count - 1 - i];
        items[count - 1 - i] = swapped;
    }
}

/* What a fork shares. Where the fork point was lost that is nothing: the
 * session's own entries are left. */
static enum wal_status add_shared(struct wal_iter *iter, uint64_t fork_point,
                                  struct wal__buf *path,
                                  struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__core_path(
        iter->core, iter->session, iter->stream, fork_point, path, &own);

    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    reverse(path);
    return status;
}

static enum wal_status add_all(struct wal_iter *iter, struct wal__buf *path,
                               struct wal_error *error)
{
    struct wal__branch_slot *slot;
    const struct wal__stream *stream;
    struct wal__path_part part = {iter->session, 0, 0};
    enum wal_status status =
        wal__core_branch(iter->core, iter->session, &slot, error);

    if (status == WAL_OK && slot->branch.fork_sequence != 0 &&
        slot->branch.fork_stream == iter->stream) {
        status = add_shared(iter, slot->branch.fork_sequence, path, error);
        if (status == WAL_OK) {
            /* Looking through ancestors may have dropped it. */
            status = wal__core_branch(iter->core, iter->session, &slot, error);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = wal__branch_stream(&slot->branch, iter->stream);
    part.count = stream == NULL ? 0 : stream->entry_count;
    return part.count == 0 ? WAL_OK
                           : wal__buf_append(path, &part, sizeof(part));
}

/* The entry that the branch ends with; 0: the branch is empty. */
static enum wal_status find_end(struct wal_iter *iter,
                                const struct wanted *wanted, uint64_t *sequence,
                                struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__found found;
    enum wal_status status;

    if (wanted->up_to.size == 0) {
        status = wal__core_branch(iter->core, iter->session, &slot, error);
        if (status != WAL_OK) {
            return status;
        }
        *sequence = wal__head_target(slot, iter->stream, wanted->head);
        if (*sequence == 0 && !wal__head_is_main(wanted->head)) {
            status = wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                               "stream %u has no head \"%.*s\"", iter->stream,
                               (int)wanted->head.size,
                               (const char *)wanted->head.data);
        }
        return status;
    }
    status = wal__core_find_id(iter->core, iter->session, wanted->up_to, &found,
                               error);
    if (status == WAL_OK && found.stream != iter->stream) {
        status = wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                           "the entry is in stream %u, not %u", found.stream,
                           iter->stream);
    }
    if (status == WAL_OK) {
        *sequence = found.sequence;
    }
    return status;
}

static enum wal_status add_path(struct wal_iter *iter,
                                const struct wanted *wanted,
                                struct wal__buf *path, struct wal_error *error)
{
    uint64_t sequence = 0;
    enum wal_status status = find_end(iter, wanted, &sequence, error);

    if (status == WAL_OK && sequence != 0) {
        status = wal__core_path(iter->core, iter->session, iter->stream,
                                sequence, path, error);
        reverse(path);
    }
    return status;
}

/* Leaves out what lies beyond the limit: it is at the end, since every entry
 * lies behind those before it. */
static enum wal_status trim(struct wal_iter *iter, struct wal__buf *path,
                            struct wal_error *error)
{
    struct wal__path_part *parts = (void *)path->data;
    size_t left = path->size / sizeof(*parts);

    while (iter->limit != UINT64_MAX && left > 0) {
        struct wal__path_part *part = &parts[left - 1];
        const struct wal__stream *stream;
        struct wal__branch_slot *slot;
        enum wal_status status =
            wal__core_branch(iter->core, part->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, iter->stream);
        while (part->count > 0 &&
               stream->entries[part->first + part->count - 1].position >=
                   iter->limit) {
            part->count--;
        }
        if (part->count > 0) {
            break;
        }
        left--;
    }
    path->size = left * sizeof(*parts);
    return WAL_OK;
}

/* The path's entries but for the first `cut` and those that are hidden. */
static enum wal_status lay_out(struct wal_iter *iter,
                               const struct wal__buf *path, uint64_t cut,
                               struct wal_error *error)
{
    const struct wal__path_part *parts = (const void *)path->data;
    size_t count = path->size / sizeof(*parts);
    enum wal_status status = WAL_OK;
    uint64_t depth = 0;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__iter_part part = {depth, parts[i].session, parts[i].first,
                                      parts[i].count};
        uint64_t before = cut < depth ? 0 : cut - depth;

        depth += part.count;
        if (before >= part.count) {
            continue;
        }
        part.depth += before;
        part.first += (uint32_t)before;
        part.count -= (uint32_t)before;
        status =
            wal__iter_add(iter, &part, &iter->parts, &iter->remaining, error);
    }
    return status;
}

/* Leaves out the first `count` entries. */
static void leave_out(struct wal_iter *iter, uint64_t count)
{
    const struct wal__iter_part *parts = (const void *)iter->parts.data;

    if (count > iter->remaining) {
        count = iter->remaining;
    }
    iter->remaining -= count;
    while (count > 0) {
        uint32_t left = parts[iter->part].count - iter->part_at;

        if (count < left) {
            iter->part_at += (uint32_t)count;
            return;
        }
        count -= left;
        iter->part++;
        iter->part_at = 0;
    }
}

static enum wal_status fill_parts(struct wal_iter *iter,
                                  const struct wanted *wanted,
                                  struct wal_error *error)
{
    struct wal__summary summary;
    struct wal__buf path;
    uint64_t cut = 0;
    enum wal_status status =
        wal__session_find(iter->core, iter->session, &summary, error);

    wal__buf_init(&path, iter->core->env.heap);
    if (status == WAL_OK) {
        status = iter->all ? add_all(iter, &path, error)
                           : add_path(iter, wanted, &path, error);
    }
    if (status == WAL_OK) {
        status = trim(iter, &path, error);
    }
    if (status == WAL_OK && !iter->all &&
        (iter->flags & WAL_ITER_SINCE_COMPACTION) != 0) {
        status = wal__iter_compacted(iter, &path, &cut, error);
    }
    if (status == WAL_OK) {
        status = lay_out(iter, &path, cut, error);
    }
    if (status == WAL_OK) {
        leave_out(iter, wanted->options->skip);
    }
    wal__buf_deinit(&path);
    return status;
}

static enum wal_status check_options(struct wanted *wanted,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_ITER_OUT_OF_LINE | WAL_ITER_SINCE_COMPACTION |
                           WAL_ITER_DURABLE | WAL_ITER_DELTAS |
                           WAL_ITER_REDACTED;
    const struct wal_iter_options *options = wanted->options;
    enum wal_status status;

    if (options->struct_size != sizeof(*options) ||
        options->mode > WAL_ITER_ALL || (options->flags & ~known) != 0 ||
        options->stream > 255) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the iterator's options are not valid");
    }
    status = wal__text_check(options->up_to, WAL__ID_MAX, "entry's id",
                             &wanted->up_to, error);
    if (status == WAL_OK) {
        status = wal__text_check(options->head, WAL__ID_MAX, "head's name",
                                 &wanted->head, error);
    }
    if (status == WAL_OK && wanted->up_to.size > 0 && wanted->head.size > 0) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "a branch ends with an entry or at a head: name "
                           "one of them");
    }
    return status;
}

static struct wal_iter *create(const struct wal_session *session,
                               const struct wal_iter_options *options)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct wal_iter *iter = wal__heap_zalloc(heap, sizeof(*iter));

    if (iter != NULL) {
        iter->core = session->core;
        iter->session = session->number;
        iter->stream = options->stream;
        iter->flags = options->flags;
        iter->all = options->mode == WAL_ITER_ALL;
        iter->limit = UINT64_MAX;
        wal__buf_init(&iter->parts, heap);
        wal__buf_init(&iter->scratch, heap);
        wal__buf_init(&iter->other_scratch, heap);
        wal__buf_init(&iter->told, heap);
        wal__buf_init(&iter->body, heap);
    }
    return iter;
}

enum wal_status wal__iter_open(struct wal_session *session,
                               const struct wal_iter_options *options,
                               struct wal_iter **iter, struct wal_error *error)
{
    const struct wal_iter_options none = {.struct_size = sizeof(none)};
    struct wanted wanted = {.options = options == NULL ? &none : options};
    struct wal__core *core = session->core;
    struct wal_iter *opened;
    enum wal_status status = check_options(&wanted, error);

    if (status != WAL_OK) {
        return status;
    }
    opened = create(session, wanted.options);
    if (opened == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    if (core->noop) {
        *iter = opened;
        return WAL_OK;
    }
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        if ((opened->flags & WAL_ITER_DURABLE) != 0) {
            opened->limit = atomic_load(&core->log.shared->durable);
        }
        opened->redactions = atomic_load(&core->redactions);
        status = fill_parts(opened, &wanted, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__iter_close(opened);
        return status == WAL_ENOMEM
                   ? wal__fail(error, status, 0, NULL, 0, "no memory")
                   : status;
    }
    *iter = opened;
    return WAL_OK;
}

void wal__iter_close(struct wal_iter *iter)
{
    if (iter == NULL) {
        return;
    }
    wal__buf_deinit(&iter->parts);
    wal__buf_deinit(&iter->scratch);
    wal__buf_deinit(&iter->other_scratch);
    wal__buf_deinit(&iter->told);
    wal__buf_deinit(&iter->body);
    wal__heap_free(iter->core->env.heap, iter);
}
