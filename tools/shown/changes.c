/*
 * changes.c - what checkpoints of a session differ in, as patches: hunks of a unified diff
 * (shown.h).
 *
 * Invariant: applied to the first text the hunks give the second. They are minimal unless the texts
 * differ in more than PATCH_EDITS lines; then one hunk replaces all between the first and the last
 * difference.
 *
 * The greedy algorithm of Myers, An O(ND) Difference Algorithm: for each number of edits d and each
 * diagonal k (a position in the first text minus one in the second) it keeps how far one gets; the
 * edits are read from those rows backwards.
 */
#include "tools/shown/shown.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"

enum {
    PATCH_EDITS = 1000, /* lines removed and added, of a minimal patch */
    PATCH_CONTEXT = 3   /* equal lines around a difference */
};

struct lines {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
};

struct diff {
    struct lines a;
    struct lines b;
    bool *removed; /* of each line of a */
    bool *added;   /* of each line of b */
};

static void split(struct lines *lines, struct wal_slice text)
{
    const char *at = text.data;
    uint64_t left = text.size;

    while (left > 0) {
        const char *newline = memchr(at, '\n', (size_t)left);
        uint64_t size = newline == NULL ? left : (uint64_t)(newline - at) + 1;

        *CLI_ADD(lines) = (struct wal_slice){at, size};
        at += size;
        left -= size;
    }
}

static bool is_equal(const struct diff *diff, size_t a, size_t b)
{
    return cli_slice_equal(diff->a.items[a], diff->b.items[b]);
}

/* --- the edits ---------------------------------------------------------- */

/* A part of the two texts that begins and ends with a difference. */
struct middle {
    const struct diff *diff;
    size_t from;
    long a_count;
    long b_count;
    long *rows; /* row d: 2d + 1 positions, from diagonal -d to d */
};

static long *row_of(const struct middle *middle, long edits)
{
    return middle->rows + edits * edits;
}

/* The furthest position in the first text on a diagonal with `edits` edits. */
static long reach(const struct middle *middle, long edits, long diagonal)
{
    const long *row;
    long x = 0;

    if (edits > 0) {
        row = row_of(middle, edits - 1) + edits - 1; /* row[k]: diagonal k */
        if (diagonal == -edits || (diagonal != edits && row[diagonal - 1] < row[diagonal + 1])) {
            x = row[diagonal + 1];
        } else {
            x = row[diagonal - 1] + 1;
        }
    }
    while (
        x < middle->a_count && x - diagonal < middle->b_count &&
        is_equal(middle->diff, middle->from + (size_t)x, middle->from + (size_t)(x - diagonal))) {
        x++;
    }
    return x;
}

/* Finds the least number of edits; -1: more than PATCH_EDITS. */
static long search(struct middle *middle)
{
    size_t capacity = 0;

    for (long edits = 0; edits <= PATCH_EDITS; edits++) {
        size_t size = (size_t)((edits + 1) * (edits + 1));
        while (capacity < size) {
            middle->rows = cli_reserve(middle->rows, capacity, &capacity, sizeof(middle->rows[0]));
        }
        memset(row_of(middle, edits), 0, (size_t)(2 * edits + 1) * sizeof(middle->rows[0]));
        for (long k = -edits; k <= edits; k += 2) {
            long x = reach(middle, edits, k);
            row_of(middle, edits)[edits + k] = x;
            if (x >= middle->a_count && x - k >= middle->b_count) {
                return edits;
            }
        }
    }
    return -1;
}

/* Marks the lines that are removed and added, from the last edit on. */
static void mark(const struct middle *middle, const struct diff *diff, long edits)
{
    long k = middle->a_count - middle->b_count;

    for (; edits > 0; edits--) {
        const long *row = row_of(middle, edits - 1) + edits - 1;
        bool is_added = k == -edits || (k != edits && row[k - 1] < row[k + 1]);
        long x = is_added ? row[k + 1] : row[k - 1];

        if (is_added) {
            k++;
            diff->added[middle->from + (size_t)(x - k)] = true;
        } else {
            k--;
            diff->removed[middle->from + (size_t)x] = true;
        }
    }
}

static void compare(struct diff *diff)
{
    size_t least = diff->a.count < diff->b.count ? diff->a.count : diff->b.count;
    size_t prefix = 0;
    size_t suffix = 0;
    struct middle middle = {.diff = diff};
    long edits;

    while (prefix < least && is_equal(diff, prefix, prefix)) {
        prefix++;
    }
    while (suffix < least - prefix &&
           is_equal(diff, diff->a.count - suffix - 1, diff->b.count - suffix - 1)) {
        suffix++;
    }
    middle.from = prefix;
    middle.a_count = (long)(diff->a.count - prefix - suffix);
    middle.b_count = (long)(diff->b.count - prefix - suffix);
    edits = search(&middle);
    if (edits >= 0) {
        mark(&middle, diff, edits);
    } else {
        memset(diff->removed + prefix, true, (size_t)middle.a_count);
        memset(diff->added + prefix, true, (size_t)middle.b_count);
    }
    free(middle.rows);
}

/* --- the hunks ---------------------------------------------------------- */

static void put_line(FILE *file, char mark, struct wal_slice line)
{
    const char *text = line.data;

    putc(mark, file);
    fwrite(text, 1, (size_t)line.size, file);
    if (text[line.size - 1] != '\n') {
        fputs("\n\\ No newline at end of file\n", file);
    }
}

/* Positions in both texts, where the same lines follow. */
struct place {
    size_t a;
    size_t b;
};

static bool is_equal_at(const struct diff *diff, struct place at)
{
    return at.a < diff->a.count && at.b < diff->b.count && !diff->removed[at.a] &&
           !diff->added[at.b];
}

static bool is_end(const struct diff *diff, struct place at)
{
    return at.a == diff->a.count && at.b == diff->b.count;
}

/* Returns the end of a hunk: the place after the last difference that has no more than twice the
 * context before the next one. */
static struct place hunk_end(const struct diff *diff, struct place at)
{
    struct place end = at;
    size_t equal = 0;

    while (!is_end(diff, at) && equal <= 2 * (size_t)PATCH_CONTEXT) {
        if (is_equal_at(diff, at)) {
            at.a++;
            at.b++;
            equal++;
            continue;
        }
        equal = 0;
        if (at.a < diff->a.count && diff->removed[at.a]) {
            at.a++;
        } else {
            at.b++;
        }
        end = at;
    }
    for (int i = 0; i < PATCH_CONTEXT && is_equal_at(diff, end); i++) {
        end.a++;
        end.b++;
    }
    return end;
}

static void put_range(FILE *file, char mark, size_t from, size_t count)
{
    fprintf(file, "%c%zu,%zu", mark, count > 0 ? from + 1 : from, count);
}

static void put_hunk(FILE *file, const struct diff *diff, struct place from, struct place end)
{
    fputs("@@ ", file);
    put_range(file, '-', from.a, end.a - from.a);
    putc(' ', file);
    put_range(file, '+', from.b, end.b - from.b);
    fputs(" @@\n", file);
    while (from.a < end.a || from.b < end.b) {
        if (from.a < end.a && diff->removed[from.a]) {
            put_line(file, '-', diff->a.items[from.a++]);
        } else if (from.b < end.b && diff->added[from.b]) {
            put_line(file, '+', diff->b.items[from.b++]);
        } else {
            put_line(file, ' ', diff->a.items[from.a++]);
            from.b++;
        }
    }
}

void shown_patch(FILE *file, struct wal_slice before, struct wal_slice after)
{
    struct diff diff = {.removed = NULL};
    struct place at = {0, 0};

    split(&diff.a, before);
    split(&diff.b, after);
    diff.removed = cli_alloc(diff.a.count + 1);
    diff.added = cli_alloc(diff.b.count + 1);
    compare(&diff);
    while (!is_end(&diff, at)) {
        struct place from = at;
        struct place end;

        if (is_equal_at(&diff, at)) {
            at.a++;
            at.b++;
            continue;
        }
        for (int i = 0; i < PATCH_CONTEXT && from.a > 0 && from.b > 0; i++) {
            from.a--;
            from.b--;
        }
        end = hunk_end(&diff, at);
        put_hunk(file, &diff, from, end);
        at = end;
    }
    free(diff.a.items);
    free(diff.b.items);
    free(diff.removed);
    free(diff.added);
}

/* --- checkpoints -------------------------------------------------------- */

enum {
    PATCH_MAX = 256 << 10, /* bytes of a patch */
    CONTENT_MAX = 2 << 20  /* bytes of a file that is compared */
};

enum wal_status shown_checkpoints_read(struct cli_texts *ids, struct wal_session *session,
                                       struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &cursor, error);

    while (status == WAL_OK) {
        status = wal_checkpoint_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            cli_texts_add(ids, info.id);
        }
    }
    wal_checkpoint_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static void put_checkpoint(struct shown *shown, const struct wal_checkpoint_info *info)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(shown->json, "id", info->id);
    shown_member(shown, "root", info->root);
    shown_time(shown, "time", info->created_ms);
    wal__json_out_member_count(shown->json, "files", info->files);
    wal__json_out_member_count(shown->json, "bytes", info->bytes);
    cli_json_member_text_or_null(shown->json, "entryId", info->entry_id);
    wal__json_out_close(shown->json, '}');
}

enum wal_status shown_checkpoints_write(struct shown *shown, struct wal_session *session,
                                        struct wal_error *error)
{
    struct cli_texts list = {.items = NULL};
    enum wal_status status = shown_checkpoints_read(&list, session, error);

    wal__json_out_member_open(shown->json, "checkpoints", '[');
    for (size_t i = list.count; i > 0 && status == WAL_OK; i--) {
        struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
        struct wal_file_cursor *cursor = NULL;

        status = wal_file_cursor_open(session, cli_slice(list.items[i - 1]), &cursor, error);
        if (status == WAL_OK) {
            status = wal_checkpoint_get_info(cursor, &info, error);
        }
        if (status == WAL_OK) {
            put_checkpoint(shown, &info);
        }
        wal_file_cursor_close(cursor);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK; /* deleted meanwhile */
        }
    }
    wal__json_out_close(shown->json, ']');
    cli_texts_deinit(&list);
    return status;
}

/* --- contents ----------------------------------------------------------- */

enum wal_status shown_content(struct wal_store *store, struct wal_file_cursor *files,
                              struct wal_slice path, uint64_t limit, struct wal_slice *content,
                              struct wal_error *error)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_blob *blob = NULL;
    enum wal_status status = wal_file_cursor_next(files, &file, error);
    char *data;

    *content = (struct wal_slice){NULL, 0};
    while (status == WAL_OK && !cli_slice_equal(file.path, path)) {
        status = wal_file_cursor_next(files, &file, error);
    }
    if (status == WAL_OK && file.size > limit) {
        status = WAL_ETOOBIG;
    }
    if (status != WAL_OK || file.size == 0) {
        return status;
    }
    data = cli_alloc((size_t)file.size);
    content->data = data;
    status = wal_blob_open(store, file.digest, &blob, error);
    if (status == WAL_OK) {
        status = wal_blob_read(blob, 0, data, file.size, &content->size, error);
    }
    wal_blob_close(blob);
    return status;
}

/* --- differences -------------------------------------------------------- */

/* What is compared. Changes are in the order of the files of both. */
struct pair {
    struct wal_store *store;
    struct wal_file_cursor *sides[2];
};

static void put_patch(struct shown *shown, const struct pair *pair, struct wal_slice path)
{
    struct wal_slice contents[2];
    bool is_read = true;
    char *text = NULL;
    size_t size = 0;

    for (int i = 0; i < 2; i++) {
        is_read = shown_content(pair->store, pair->sides[i], path, CONTENT_MAX, &contents[i],
                                NULL) == WAL_OK &&
                  is_read;
    }
    if (is_read) {
        FILE *file = cli_open_memory(&text, &size);

        shown_patch(file, contents[0], contents[1]);
        (void)fclose(file);
    }
    if (size > PATCH_MAX) {
        size = 0;
    }
    shown_member(shown, "patch", (struct wal_slice){text, size});
    free(text);
    free((void *)(uintptr_t)contents[0].data);
    free((void *)(uintptr_t)contents[1].data);
}

static void put_change(struct shown *shown, const struct pair *pair,
                       const struct wal_file_change *change)
{
    bool is_binary = (change->flags & WAL_FILE_CHANGE_BINARY) != 0;
    const char *word = change->kind_before == WAL_FILE_ABSENT  ? "added"
                       : change->kind_after == WAL_FILE_ABSENT ? "deleted"
                                                               : "modified";

    wal__json_out_open(shown->json, '{');
    shown_member(shown, "path", change->path);
    cli_json_member_text(shown->json, "change", cli_slice(word));
    wal__json_out_member_count(shown->json, "added", change->insertions);
    wal__json_out_member_count(shown->json, "removed", change->deletions);
    wal__json_out_member_bool(shown->json, "binary", is_binary);
    if (is_binary) {
        shown_null(shown, "patch");
    } else {
        put_patch(shown, pair, change->path);
    }
    wal__json_out_close(shown->json, '}');
}

static enum wal_status put_changes(struct shown *shown, const struct pair *pair,
                                   struct wal_file_change_cursor *cursor, struct wal_error *error)
{
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status;

    wal__json_out_member_open(shown->json, "files", '[');
    while ((status = wal_file_change_cursor_next(cursor, &change, error)) == WAL_OK) {
        put_change(shown, pair, &change);
    }
    wal__json_out_close(shown->json, ']');
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status shown_diff(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_slice before,
                           struct wal_slice after, struct wal_error *error)
{
    struct pair pair = {.store = store};
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_diff(session, before, after, &cursor, error);

    for (int i = 0; i < 2 && status == WAL_OK; i++) {
        status = wal_file_cursor_open(session, i == 0 ? before : after, &pair.sides[i], error);
    }
    if (status == WAL_OK) {
        status = put_changes(shown, &pair, cursor, error);
    }
    wal_file_change_cursor_close(cursor);
    wal_file_cursor_close(pair.sides[0]);
    wal_file_cursor_close(pair.sides[1]);
    return status;
}
