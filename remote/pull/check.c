/*
 * check.c - verifies bases, parts and the list of sessions (check.h).
 */
#include "remote/pull/check.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/history/fetch.h"
#include "remote/layout/layout.h"

/* Whether the status is that of damaged bytes, and not of a remote that did not answer. */
static inline bool check_is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_EVERSION;
}

/* Reports damage of an object. WAL_OK, or WAL_ECALLBACK. */
static enum wal_status check_report(struct wal__check *check, const char *name,
                                    enum wal_status status, const char *text,
                                    struct wal_error *error)
{
    struct wal_error damage = WAL_INIT(wal_error);
    int32_t answer = 0;

    (void)!wal__fail_at(&damage, status, 0, name, 0, "%s", text);
    if (check->result.damage++ == 0) {
        wal__error_copy(&check->first, &damage);
    }
    if (check->report != NULL) {
        answer = check->report(check->report_ctx, &damage);
    }
    if (answer != 0) {
        (void)!wal__fail(error, WAL_ECALLBACK, "the callback stopped");
        if (error != NULL) {
            error->sys_errno = answer;
        }
        return WAL_ECALLBACK;
    }
    return WAL_OK;
}

/* Ends the check of an object: damage is reported, another failure ends the check. */
static enum wal_status conclude(struct wal__check *check, const char *name, enum wal_status status,
                                const struct wal_error *own, struct wal_error *error)
{
    if (check_is_damage(status)) {
        return check_report(check, name, status, own->text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, own);
    }
    return status;
}

/* Verifies the bytes of a part; *is_sound says whether *info is to be believed. Reports damage. */
static enum wal_status verify_part(struct wal__check *check, struct wal_slice part,
                                   const char *name, bool *is_sound, struct wal_part_info *info,
                                   struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    enum wal_status status = check->verify(part, info, &own);

    check->result.bytes += part.size;
    *is_sound = status == WAL_OK;
    if (status == WAL_OK && memcmp(info->uuid, check->uuid, sizeof(info->uuid)) != 0) {
        *is_sound = false;
        return check_report(check, name, WAL_ECORRUPT, "the part is of another store", error);
    }
    return conclude(check, name, status, &own, error);
}

/* --- epochs ------------------------------------------------------------- */

/* Reads the epoch; reports it when it is damaged or lost. */
static enum wal_status check_epoch_object(struct wal__check *check, uint64_t epoch,
                                          struct wal_error *error)
{
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_EPOCH, check->uuid, epoch, 0);
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__epoch decoded;
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, check->remote->heap);
    status = wal__remote_get(check->remote, name, WAL__EPOCH_JSON_MAX, &bytes, &own);
    if (status == WAL_OK) {
        status =
            wal__epoch_decode((struct wal_slice){bytes.data, bytes.size}, name, &decoded, &own);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ENOTFOUND) {
        return check_report(check, name, WAL_ENOTFOUND, "the remote has lost the epoch", error);
    }
    return conclude(check, name, status, &own, error);
}

static enum wal_status check_epochs(struct wal__check *check, struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_EPOCH, check->uuid, 0, 0);
    enum wal_status status;

    status = wal__remote_last(check->remote, &object, &check->last_epoch, error);
    if (status == WAL_OK && check->last_epoch == 0) {
        return wal__fail(error, WAL_ENOTFOUND, "the remote has no store of this id");
    }
    for (uint64_t epoch = 1; status == WAL_OK && epoch <= check->last_epoch; epoch++) {
        status = check_epoch_object(check, epoch, error);
    }
    check->result.epochs = check->last_epoch;
    return status;
}

/* --- the list of sessions ----------------------------------------------- */

static int32_t pass_over(void *ctx, const char *host, const struct wal_session_info *session)
{
    (void)ctx;
    (void)host;
    (void)session;
    return 0;
}

/* Reads the list; reports it when it is damaged. There need not be one. */
static enum wal_status check_sessions(struct wal__check *check, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__session_list_name(check->uuid, name);
    wal__buf_init(&bytes, check->remote->heap);
    status = wal__remote_get(check->remote, name, WAL__SESSION_LIST_JSON_MAX, &bytes, &own);
    if (status == WAL_OK) {
        status = wal__session_list_decode((struct wal_slice){bytes.data, bytes.size}, name,
                                          check->remote->heap, pass_over, NULL, &own);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    return conclude(check, name, status, &own, error);
}

/* --- bases ---------------------------------------------------------------- */

/*
 * A segment that several bases name is read once: a base is made of the one before it, so that they
 * are those at its beginning.
 */

/* The base that is checked, and the one before it. */
struct work {
    struct wal__check *check;
    struct wal__base_list last;
    struct wal__buf last_ends; /* struct wal__position, after each segment */
    struct wal__base_list list;
    struct wal__buf list_ends;
};

static const struct wal__position *end_at(const struct wal__buf *ends, size_t at)
{
    return (const struct wal__position *)(const void *)ends->data + at;
}

/* How many segments the list has in common with the last one, of those that were sound. */
static size_t count_known(const struct work *work)
{
    const size_t sound = work->last_ends.size / sizeof(struct wal__position);
    size_t count = wal__base_list_count(&work->list);
    size_t known = 0;

    if (count > sound) {
        count = sound;
    }
    while (known < count &&
           memcmp(wal__base_list_at(&work->list, known), wal__base_list_at(&work->last, known),
                  sizeof(struct wal__base_segment)) == 0) {
        known++;
    }
    return known;
}

static enum wal_status add_end(struct wal__buf *ends, const struct wal__position *end,
                               struct wal_error *error)
{
    return wal__buf_append(ends, end, sizeof(*end)) == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* Verifies a segment that was read. What follows one that is not sound is verified too, but not
 * compared with it. */
static enum wal_status check_segment(struct work *work, struct wal_slice segment, const char *name,
                                     bool *follows, struct wal_error *error)
{
    const size_t count = work->list_ends.size / sizeof(struct wal__position);
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal__position before = {{{0}}};
    struct wal__position after;
    bool is_sound = false;
    enum wal_status status = verify_part(work->check, segment, name, &is_sound, &info, error);

    work->check->result.segments++;
    if (status != WAL_OK || !is_sound || !*follows) {
        *follows = *follows && is_sound;
        return status;
    }
    if (count > 0) {
        before = *end_at(&work->list_ends, count - 1);
    }
    after = wal__position_of(info.before);
    if (!wal__position_equal(&before, &after)) {
        *follows = false;
        return check_report(work->check, name, WAL_ECORRUPT,
                            "the segment does not follow the one before "
                            "it in the base",
                            error);
    }
    after = wal__position_of(info.after);
    return add_end(&work->list_ends, &after, error);
}

static enum wal_status read_segments(struct work *work, const struct wal__fetch_item *items,
                                     size_t count, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__fetch *fetch = NULL;
    struct wal_slice segment = {NULL, 0};
    bool follows = true;
    enum wal_status status = wal__fetch_open(work->check->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = wal__fetch_next(fetch, &segment, &own);
        if (status == WAL_OK) {
            status = check_segment(work, segment, items[i].name, &follows, error);
        } else if (status == WAL_ENOTFOUND || check_is_damage(status)) {
            follows = false;
            status = check_report(
                work->check, items[i].name, status,
                status == WAL_ENOTFOUND ? "the remote has lost the segment" : own.text, error);
        } else {
            wal__error_copy(error, &own);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/* Verifies the indexes that were stored with the segments from the rank `first` on; there need be
 * none. */
static enum wal_status check_indexes(struct work *work, size_t first, struct wal_error *error)
{
    struct wal__check *check = work->check;
    enum wal_status status = WAL_OK;

    for (size_t i = first; i < wal__base_list_count(&work->list) && status == WAL_OK; i++) {
        struct wal_error own = WAL_INIT(wal_error);
        struct wal__store_object object;
        char name[WAL__STORE_OBJECT_SIZE];
        struct wal__buf bytes;

        if (!wal__base_index(check->uuid, &work->list, i, &object)) {
            continue;
        }
        wal__store_object_format(&object, name);
        wal__buf_init(&bytes, check->remote->heap);
        status = wal__remote_get(check->remote, name, WAL__BASE_INDEX_SIZE, &bytes, &own);
        if (status == WAL_OK) {
            check->result.bytes += bytes.size;
            status = check->verify_index((struct wal_slice){bytes.data, bytes.size}, &own);
        }
        wal__buf_deinit(&bytes);
        status = status == WAL_ENOTFOUND ? WAL_OK : conclude(check, name, status, &own, error);
    }
    return status;
}

/* Reads the segments that the base before it does not name. */
static enum wal_status check_segments(struct work *work, struct wal_error *error)
{
    const size_t known = count_known(work);
    struct wal__buf items;
    enum wal_status status = WAL_OK;

    wal__buf_init(&items, work->check->remote->heap);
    work->list_ends.size = 0;
    for (size_t i = 0; i < known && status == WAL_OK; i++) {
        status = add_end(&work->list_ends, end_at(&work->last_ends, i), error);
    }
    if (status == WAL_OK) {
        status = wal__base_items(work->check->uuid, &work->list, known, &items, error);
    }
    if (status == WAL_OK) {
        status = read_segments(work, (const struct wal__fetch_item *)(const void *)items.data,
                               items.size / sizeof(struct wal__fetch_item), error);
    }
    wal__buf_deinit(&items);
    return status == WAL_OK ? check_indexes(work, known, error) : status;
}

/* Reads and checks the base of this number, and makes it the last one. */
static enum wal_status check_base(struct work *work, uint64_t number, struct wal_error *error)
{
    struct wal__check *check = work->check;
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_BASE, check->uuid, 0, number);
    struct wal_error own = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__base_list list;
    struct wal__buf ends;
    enum wal_status status = wal__base_read(check->remote, check->uuid, number, &work->list, &own);

    wal__store_object_format(&object, name);
    check->result.bases++;
    if (check_is_damage(status)) {
        return check_report(check, name, status, own.text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status == WAL_ENOTFOUND ? WAL_OK : status; /* collected */
    }
    status = check_segments(work, error);
    list = work->last;
    ends = work->last_ends;
    work->last = work->list;
    work->last_ends = work->list_ends;
    work->list = list;
    work->list_ends = ends;
    return status;
}

/* Keeps the newest base for the parts after it. */
static void take_last(struct work *work)
{
    struct wal__check *check = work->check;
    const size_t count = work->last_ends.size / sizeof(struct wal__position);

    check->base = work->last;
    check->has_base_end = count > 0 && count == wal__base_list_count(&work->last);
    if (check->has_base_end) {
        check->base_end = *end_at(&work->last_ends, count - 1);
    }
    wal__base_list_init(&work->last, check->remote->heap);
}

/* Checks all bases, and the segments of each. */
static enum wal_status check_bases(struct wal__check *check, struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_BASE, check->uuid, 0, 0);
    struct work work = {.check = check};
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    wal__base_list_init(&work.last, check->remote->heap);
    wal__base_list_init(&work.list, check->remote->heap);
    wal__buf_init(&work.last_ends, check->remote->heap);
    wal__buf_init(&work.list_ends, check->remote->heap);
    while (status == WAL_OK) {
        status = wal__remote_next(check->remote, &object, number, &number, error);
        if (status != WAL_OK || number == 0) {
            break;
        }
        status = check_base(&work, number, error);
    }
    take_last(&work);
    wal__base_list_deinit(&work.last);
    wal__base_list_deinit(&work.list);
    wal__buf_deinit(&work.last_ends);
    wal__buf_deinit(&work.list_ends);
    return status;
}

/* --- parts ---------------------------------------------------------------- */

/*
 * A part that is not there is lost, unless a base has it; or unless the writer may have had it on
 * the way when it ended, together with those after it.
 */

struct walk {
    struct wal__check *check;
    struct wal__store_object at; /* the object that is looked at */
    uint64_t next;               /* the number that comes next in the epoch */
    bool is_fenced;
    bool has_last; /* the part before is known */
    struct wal__position last;
    uint64_t pending[WAL__PART_WINDOW]; /* numbers that may be on the way */
    size_t pending_count;
    struct wal__part_page page;
};

/* --- what is not there -------------------------------------------------- */

/* Whether the object is not there: it may have come since the listing. */
static enum wal_status is_gone(struct walk *walk, const char *name, bool *gone,
                               struct wal_error *error)
{
    struct wal_remote *remote = walk->check->remote;
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name, 0, 1, &bytes, &own);
    wal__buf_deinit(&bytes);
    *gone = status == WAL_ENOTFOUND;
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        wal__error_copy(error, &own);
        return status;
    }
    return WAL_OK;
}

/* Reports `count` objects from `number` of the epoch on. */
static enum wal_status report_lost(struct walk *walk, uint64_t number, uint64_t count,
                                   struct wal_error *error)
{
    struct wal__store_object lost = walk->at;
    struct wal_error text = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    bool gone = false;
    enum wal_status status = WAL_OK;

    for (; status == WAL_OK && !gone && count > 0; number++, count--) {
        lost.number = number;
        wal__store_object_format(&lost, name);
        status = is_gone(walk, name, &gone, error);
    }
    if (status != WAL_OK || !gone) {
        return status;
    }
    if (count == 0) {
        return check_report(walk->check, name, WAL_ENOTFOUND, "the remote has lost the object",
                            error);
    }
    (void)!wal__fail(&text, WAL_ENOTFOUND, "the remote has lost the object, and the %llu after it",
                     (unsigned long long)count);
    return check_report(walk->check, name, WAL_ENOTFOUND, text.text, error);
}

/* All that may be on the way up to this number was stored. */
static enum wal_status end_pending(struct walk *walk, uint64_t stored, struct wal_error *error)
{
    size_t kept = 0;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < walk->pending_count; i++) {
        if (walk->pending[i] > stored) {
            walk->pending[kept++] = walk->pending[i];
        } else if (status == WAL_OK) {
            status = report_lost(walk, walk->pending[i], 1, error);
        }
    }
    walk->pending_count = kept;
    return status;
}

/* Notes the numbers before walk->at that are not there. */
static enum wal_status skip_gap(struct walk *walk, struct wal_error *error)
{
    const struct wal__base_list *base = &walk->check->base;
    const uint64_t end = walk->at.number;
    uint64_t first = walk->next;
    enum wal_status status = WAL_OK;

    if (first < end) {
        walk->has_last = false;
    }
    if (walk->at.epoch < base->epoch) {
        first = end;
    } else if (walk->at.epoch == base->epoch && first <= base->part) {
        first = base->part + 1;
    }
    /* No window is so large. */
    if (end > WAL__PART_WINDOW) {
        status = end_pending(walk, end - WAL__PART_WINDOW, error);
        if (status == WAL_OK && first + WAL__PART_WINDOW <= end) {
            status = report_lost(walk, first, end - WAL__PART_WINDOW - first + 1, error);
            first = end - WAL__PART_WINDOW + 1;
        }
    }
    for (; first < end && status == WAL_OK; first++) {
        walk->pending[walk->pending_count++] = first;
    }
    return status;
}

/* --- one object --------------------------------------------------------- */

/* The parts before, or the base, lead to where the part begins; and it to where the base ends. */
static enum wal_status compare(struct walk *walk, const struct wal_part_info *info,
                               const char *name, struct wal_error *error)
{
    struct wal__check *check = walk->check;
    const struct wal__base_list *base = &check->base;
    const struct wal__position before = wal__position_of(info->before);
    const bool is_base = check->has_base_end && walk->at.epoch == base->epoch;
    enum wal_status status = WAL_OK;

    if (is_base && walk->at.number == base->part + 1) {
        walk->last = check->base_end;
        walk->has_last = true;
    }
    if (walk->has_last && !wal__position_equal(&walk->last, &before)) {
        status = check_report(check, name, WAL_ECORRUPT,
                              "the part does not follow the one before it", error);
    }
    walk->last = wal__position_of(info->after);
    walk->has_last = true;
    if (status == WAL_OK && is_base && walk->at.number == base->part &&
        !wal__position_equal(&walk->last, &check->base_end)) {
        status = check_report(check, name, WAL_ECORRUPT,
                              "the newest base does not lead to the end "
                              "of the part",
                              error);
    }
    return status;
}

/* Verifies a part with its trailer. */
static enum wal_status check_part_object(struct walk *walk, struct wal_slice object,
                                         const char *name, struct wal_error *error)
{
    struct wal__check *check = walk->check;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_error own = WAL_INIT(wal_error);
    struct wal_slice part = {NULL, 0};
    uint64_t floor = 0;
    bool is_sound = false;
    enum wal_status status = check->info(object, &info, &own);

    check->result.parts++;
    if (status == WAL_OK) {
        status = wal__part_object_open(object, name, info.size, &part, &floor, &own);
    }
    if (status != WAL_OK) {
        walk->has_last = false;
        return check_report(check, name, status, own.text, error);
    }
    status = verify_part(check, part, name, &is_sound, &info, error);
    if (status == WAL_OK) {
        status = end_pending(walk, floor, error);
    }
    if (status != WAL_OK || !is_sound) {
        walk->has_last = false;
        return status;
    }
    if (walk->pending_count > 0) {
        return WAL_OK; /* it was not acknowledged */
    }
    check->result.epoch = walk->at.epoch;
    check->result.part = walk->at.number;
    check->result.sequence = info.after[WAL_PART_LOG].sequence;
    return compare(walk, &info, name, error);
}

static enum wal_status check_object(struct walk *walk, struct wal_slice object, const char *name,
                                    struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t fence = 0;
    enum wal_status status = wal__fence_decode(object, name, &fence, &own);

    if (status != WAL_OK) {
        walk->has_last = false;
        return check_report(walk->check, name, status, own.text, error);
    }
    if (fence == 0) {
        return check_part_object(walk, object, name, error);
    }
    walk->is_fenced = true;
    return end_pending(walk, UINT64_MAX, error);
}

/* --- an epoch ----------------------------------------------------------- */

/* Reads the objects of the page, up to a fence. */
static enum wal_status check_page(struct walk *walk, struct wal_error *error)
{
    const struct wal__fetch_item *items = wal__part_page_items(&walk->page);
    const size_t count = walk->page.count;
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__fetch *fetch = NULL;
    struct wal_slice object = {NULL, 0};
    enum wal_status status = wal__fetch_open(walk->check->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK && !walk->is_fenced; i++) {
        walk->at.number = wal__part_page_number(&walk->page, i);
        status = skip_gap(walk, error);
        if (status != WAL_OK) {
            break;
        }
        status = wal__fetch_next(fetch, &object, &own);
        if (status == WAL_OK) {
            status = check_object(walk, object, items[i].name, error);
        } else if (status == WAL_ENOTFOUND) {
            walk->has_last = false; /* collected meanwhile */
            status = WAL_OK;
        } else if (check_is_damage(status)) {
            walk->has_last = false;
            status = check_report(walk->check, items[i].name, status, own.text, error);
        } else {
            wal__error_copy(error, &own);
        }
        walk->next = walk->at.number + 1;
    }
    wal__fetch_close(fetch);
    return status;
}

/* Reports the fence that an epoch must have when a later one has anything. */
static enum wal_status check_end(struct walk *walk, struct wal_error *error)
{
    bool has_later = false;
    enum wal_status status = wal__history_has_later(walk->check->remote, &walk->at,
                                                    walk->check->last_epoch, &has_later, error);

    if (status != WAL_OK || !has_later) {
        return status;
    }
    walk->has_last = false;
    return report_lost(walk, walk->pending_count > 0 ? walk->pending[0] : walk->next, 1, error);
}

static enum wal_status check_epoch(struct walk *walk, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    walk->next = 1;
    walk->is_fenced = false;
    walk->pending_count = 0;
    do {
        walk->at.number = walk->next;
        status = wal__part_page_read(walk->check->remote, &walk->at, &walk->page, error);
        if (status == WAL_OK) {
            status = check_page(walk, error);
        }
        /* What comes meanwhile, which may never end, is not read. */
    } while (status == WAL_OK && walk->page.count == WAL__PART_PAGE_MAX && !walk->is_fenced);
    return status == WAL_OK && !walk->is_fenced ? check_end(walk, error) : status;
}

/* Checks all epochs, and the parts of each. */
static enum wal_status check_parts(struct wal__check *check, struct wal_error *error)
{
    struct walk walk = {
        .check = check, .at = {.kind = WAL__OBJECT_PART, .epoch = 1}, .has_last = true};
    enum wal_status status = WAL_OK;

    memcpy(walk.at.uuid, check->uuid, sizeof(walk.at.uuid));
    wal__part_page_init(&walk.page, check->remote->heap);
    for (; walk.at.epoch <= check->last_epoch && status == WAL_OK; walk.at.epoch++) {
        status = check_epoch(&walk, error);
    }
    wal__part_page_deinit(&walk.page);
    return status;
}

/* --- all of it ---------------------------------------------------------- */

enum wal_status wal__check_run(struct wal__check *check, struct wal_error *error)
{
    enum wal_status status;

    check->first = (struct wal_error)WAL_INIT(wal_error);
    wal__base_list_init(&check->base, check->remote->heap);
    memcpy(check->result.uuid, check->uuid, sizeof(check->result.uuid));
    status = check_epochs(check, error);
    if (status == WAL_OK) {
        status = check_bases(check, error);
    }
    if (status == WAL_OK) {
        status = check_parts(check, error);
    }
    if (status == WAL_OK) {
        status = check_sessions(check, error);
    }
    wal__base_list_deinit(&check->base);
    if (status == WAL_OK && check->result.damage > 0) {
        wal__error_copy(error, &check->first);
        if (error != NULL) {
            error->status = WAL_ECORRUPT;
        }
        status = WAL_ECORRUPT;
    }
    return status;
}
