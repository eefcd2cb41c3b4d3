/*
 * list.c - walking the catalogue (SPEC.md 5.4).
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/session/text.h"

/* Copies the filter's texts; they must outlive the cursor. */
static enum wal_status set_filter(struct wal_list *list,
                                  const struct wal_list_options *options,
                                  struct wal__catalogue_filter *filter,
                                  struct wal_error *error)
{
    const struct {
        const struct wal_slice *slice;
        struct wal__span *span;
        const char *what;
    } texts[] = {
        {&options->cwd, &filter->cwd, "cwd"},
        {&options->project, &filter->project, "project id"},
        {&options->prefix, &filter->prefix, "id's prefix"},
        {&options->source, &filter->source, "source"},
        {&options->parent, &filter->parent_id, "parent id"},
    };
    const size_t count = sizeof(texts) / sizeof(texts[0]);
    uint8_t *room;

    memset(filter, 0, sizeof(*filter));
    if (options->struct_size != sizeof(*options) || options->flags != 0) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the list's options are not valid");
    }
    if (wal__buf_reserve(&list->filter, count * WAL__TEXT_MAX, &room) !=
        WAL_OK) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    for (size_t i = 0; i < count; i++) {
        enum wal_status status =
            wal__text_check(*texts[i].slice, WAL__TEXT_MAX, texts[i].what,
                            texts[i].span, error);

        if (status != WAL_OK) {
            return status;
        }
        if (texts[i].span->size > 0) {
            memcpy(room, texts[i].span->data, texts[i].span->size);
            texts[i].span->data = room;
            room += texts[i].span->size;
        }
    }
    return WAL_OK;
}

/* Begins at the newest session; under the state lock. */
static enum wal_status begin(struct wal_list *list)
{
    struct wal__core *core = list->core;
    enum wal_status status = wal__catalogue_cursor_init(
        &list->cursor, &core->catalogue, &list->wanted);

    if (status == WAL_OK) {
        list->generation = core->generation;
    }
    return status;
}

/* The indexes were loaded anew: a cursor on those, where the old one stood. */
static enum wal_status begin_again(struct wal_list *list)
{
    struct wal__summary summary;
    enum wal_status status;

    wal__catalogue_cursor_deinit(&list->cursor);
    memset(&list->cursor, 0, sizeof(list->cursor));
    list->cursor.heap = list->core->env.heap;
    status = begin(list);
    for (uint64_t i = 0; i < list->given && status == WAL_OK; i++) {
        status = wal__catalogue_cursor_next(&list->cursor,
                                            &list->core->catalogue, &summary);
    }
    return status;
}

static enum wal_status tell(enum wal_status status, struct wal_error *error)
{
    return status >= 0
               ? status
               : wal__fail(error, status, 0, NULL, 0, "the catalogue: %s",
                           wal_status_text(status));
}

enum wal_status wal__list_open(struct wal__core *core,
                               const struct wal_list_options *options,
                               struct wal_list **list, struct wal_error *error)
{
    const struct wal_list_options none = {.struct_size = sizeof(none)};
    struct wal_list *opened;
    enum wal_status status;

    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    opened->core = core;
    opened->cursor.heap = core->env.heap;
    wal__buf_init(&opened->filter, core->env.heap);
    wal__buf_init(&opened->texts, core->env.heap);
    status = set_filter(opened, options == NULL ? &none : options,
                        &opened->wanted, error);
    if (status == WAL_OK) {
        status = wal__core_read_lock(core, error);
        if (status == WAL_OK) {
            status = tell(begin(opened), error);
            wal__core_unlock(core);
        }
    }
    if (status != WAL_OK) {
        wal__list_close(opened);
        return status;
    }
    *list = opened;
    return WAL_OK;
}

enum wal_status wal__list_next(struct wal_list *list,
                               struct wal_session_info *info,
                               struct wal_error *error)
{
    struct wal__core *core = list->core;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    if (list->generation != core->generation) {
        status = begin_again(list);
    }
    if (status == WAL_OK) {
        status = wal__catalogue_cursor_next(&list->cursor, &core->catalogue,
                                            &summary);
    }
    if (status == WAL_OK) {
        status = wal__session_describe(&summary, &list->texts, info);
        list->given += status == WAL_OK;
    }
    wal__core_unlock(core);
    return tell(status, error);
}

void wal__list_close(struct wal_list *list)
{
    if (list == NULL) {
        return;
    }
    wal__catalogue_cursor_deinit(&list->cursor);
    wal__buf_deinit(&list->filter);
    wal__buf_deinit(&list->texts);
    wal__heap_free(list->core->env.heap, list);
}
