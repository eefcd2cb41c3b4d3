/*
 * writer_start.c - how a writer begins (writer.h): in its own epoch when
 * nothing was on the way, else in a new one; with the past of the remote only.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/ship/writer.h"

/* What helps a store that has another past than the remote. */
#define ADVICE                                                               \
    "; `agentwal remote pull --take-over URL DIR` goes on with what the "    \
    "remote has: with the directory of this store if it did not go on by "   \
    "itself, else with another one, into which `agentwal --store DIR merge " \
    "--keep-both STORE` takes this one"

static const uint64_t default_part_size = 8 * 1024 * 1024;

enum {
    FLOW_BYTES = 1024 * 1024 /* on the way at first */
};

enum wal_status wal__writer_verify(const struct wal__part_source *source,
                                   const struct wal__position *position,
                                   bool is_known, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    enum wal_status status;

    if (wal__position_is_empty(position)) {
        return WAL_OK;
    }
    status = source->next(source->ctx, position, 0, NULL, &info, error);
    if (status == WAL_END) {
        return WAL_OK;
    }
    if (status == WAL_OK && !is_known && (info.flags & WAL_PART_SEGMENT) != 0) {
        return wal__fail(
            error, WAL_ECONFLICT,
            "the store was compacted where the remote ends, at "
            "sequence number %llu, so that it cannot be known "
            "whether it has the same past" ADVICE,
            (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    if (status == WAL_ECONFLICT) {
        return wal__fail(
            error, WAL_ECONFLICT,
            "the store lacks what the remote has up to sequence "
            "number %llu: it is older, or went on from an earlier "
            "state" ADVICE,
            (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    return status;
}

/* --- what the writer knows ---------------------------------------------- */

/* Sets mark->digest to that at the end of the last part. */
static enum wal_status read_mark(struct wal_remote_writer *writer,
                                 const struct wal__history *history,
                                 struct wal_remote_mark *mark,
                                 struct wal_error *error)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART,
                                     .epoch = history->part_epoch,
                                     .number = history->part};

    *mark = (struct wal_remote_mark){.epoch = history->part_epoch,
                                     .part = history->part};
    memcpy(part.uuid, writer->uuid, sizeof(part.uuid));
    return history->part == 0
               ? WAL_OK
               : wal__history_digest(writer->remote, &part, history->part_size,
                                     mark->digest, error);
}

/* Whether the last part is one that the writer has sent. */
static bool has_mark(const struct wal_remote_writer *writer,
                     const struct wal_remote_mark *last)
{
    for (uint64_t i = 0; i < writer->mark_count; i++) {
        if (memcmp(&writer->marks[i], last, sizeof(*last)) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether nothing can be on the way in the newest epoch, which is the writer's:
 * the part that it sent last is the last one. */
static bool can_go_on(const struct wal_remote_writer *writer,
                      const struct wal__history *history)
{
    const bool is_last =
        writer->mark_count == 0
            ? history->part == 0
            : writer->mark_count == 1 && has_mark(writer, &writer->last);

    return writer->keep != NULL && is_last && !history->end.is_fenced &&
           !history->end.has_more;
}

/* --- starting ----------------------------------------------------------- */

static enum wal_status enter_epoch(struct wal_remote_writer *writer,
                                   struct wal__history *history, bool is_own,
                                   struct wal_error *error)
{
    if (!is_own || writer->begins_epoch || !can_go_on(writer, history)) {
        return wal__takeover(writer->remote, writer->source.info, writer->uuid,
                             writer->writer, history, error);
    }
    /* It may have stopped before all others were fenced. */
    return history->end.number > 0
               ? WAL_OK
               : wal__takeover_fence(writer->remote, writer->source.info,
                                     writer->uuid, history, error);
}

/* Reads what the remote has: by the mark, where nothing was on the way. */
static enum wal_status read_history(const struct wal_remote_writer *writer,
                                    struct wal__history *history,
                                    struct wal_error *error)
{
    const struct wal_remote_mark *mark = &writer->marks[0];
    enum wal_status status = WAL_END;

    if (writer->keep != NULL && writer->mark_count == 1) {
        status = wal__history_read_last(writer->remote, writer->source.info,
                                        writer->uuid, mark->epoch, mark->part,
                                        history, error);
    }
    return status == WAL_END
               ? wal__history_read(writer->remote, writer->source.info,
                                   writer->uuid, history, error)
               : status;
}

/* Verifies that the log has the past of the remote. */
static enum wal_status verify(struct wal_remote_writer *writer,
                              const struct wal__history *history,
                              struct wal_error *error)
{
    enum wal_status status = read_mark(writer, history, &writer->last, error);

    return status == WAL_OK
               ? wal__writer_verify(&writer->source, &history->position,
                                    has_mark(writer, &writer->last), error)
               : status;
}

enum wal_status wal__writer_start(struct wal_remote_writer *writer,
                                  bool takes_over, struct wal_error *error)
{
    struct wal_remote *remote = writer->remote;
    struct wal__history history = {.last_epoch = 0};
    struct wal__history before;
    enum wal_status status;
    bool is_own;

    if (writer->part_size == 0) {
        writer->part_size = default_part_size;
    }
    if (writer->parallel == 0) {
        writer->parallel = WAL__PART_WINDOW;
    }
    wal__flow_init(&writer->flow, FLOW_BYTES,
                   writer->parallel * writer->part_size);
    writer->looked_ms = remote->now_ms();
    status = read_history(writer, &history, error);
    if (status != WAL_OK) {
        return status;
    }
    is_own = history.last_epoch > 0 &&
             memcmp(history.writer.writer, writer->writer, 16) == 0;
    if (history.last_epoch > 0 && !is_own && !takes_over) {
        return wal__takeover_report(&history, error);
    }
    /* Before anything changes there. */
    before = history;
    status = verify(writer, &history, error);
    if (status == WAL_OK) {
        status = enter_epoch(writer, &history, is_own, error);
    }
    if (status == WAL_OK && history.end.is_fenced) {
        status = wal__takeover_report(&history, error);
    }
    /* The former writer may have sent more meanwhile. */
    if (status == WAL_OK && (history.part_epoch != before.part_epoch ||
                             history.part != before.part)) {
        status = verify(writer, &history, error);
    }
    if (status == WAL_OK) {
        writer->epoch = history.last_epoch;
        writer->position = history.position;
        writer->sent = history.position;
        writer->looked_part = history.end.number;
        wal__window_init(&writer->window, remote, history.end.number + 1);
    }
    return status;
}

enum wal_status wal__writer_begin_epoch(struct wal_remote_writer *writer,
                                        struct wal_error *error)
{
    enum wal_status status;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    wal__window_deinit(&writer->window);
    writer->begins_epoch = true;
    status = wal__writer_start(writer, false, error);
    writer->begins_epoch = false;
    return status;
}

void wal__writer_deinit(struct wal_remote_writer *writer)
{
    wal__window_deinit(&writer->window);
}
