/*
 * picker.c - draw the list, the query and a preview, and obey keys (picker.h).
 *
 * The first frame is drawn when a screenful of sessions is loaded; the others
 * are loaded between keys.
 *
 * Invariant: a text of a session reaches the terminal only as plain text.
 */
#include "tools/resume/picker.h"

#include <stdlib.h>
#include <string.h>

#include "tools/shown/documents.h"
#include "tools/terminal/cell.h"
#include "tools/terminal/utf8.h"
#include "tools/terminal/when.h"
#include "tools/walcat/walcat.h"

enum {
    LOAD_FIRST = 200,
    LOAD_STEP = 1000, /* rows between looks at the keyboard */
    PREVIEW_LINES = 10,
    PREVIEW_WIDTH = 1000, /* columns that are kept of a message */
    DIRECTORY_WIDTH = 28,
    FIXED_WIDTH = 2 + WHEN_AGE_COLUMNS + 2 + 2
};

struct picker {
    struct screen *screen;
    struct wal_store *store;
    struct resume_list *list;
    char query[RESUME_QUERY_SIZE / 2];
    size_t at;  /* index of the selected match */
    size_t top; /* of the first one that is drawn */
    size_t height;
    size_t previewed; /* row; SIZE_MAX: none */
    char *preview;    /* a message a line */
    size_t preview_size;
    int64_t now_ms;
};

/* --- preview ------------------------------------------------------------ */

static void print_documents(struct picker *picker, struct wal_session *session,
                            struct wal_entry_cursor *cursor, FILE *file)
{
    struct shown_documents documents = {.count = 0};
    size_t first;

    if (shown_documents_read(&documents, picker->store, session, cursor,
                             NULL) == WAL_OK) {
        first = documents.count > PREVIEW_LINES
                    ? documents.count - PREVIEW_LINES
                    : 0;
        for (size_t i = first; i < documents.count; i++) {
            walcat_print_preview(file, picker->store, &documents.items[i],
                                 PREVIEW_WIDTH);
            putc('\n', file);
        }
    }
    shown_documents_deinit(&documents);
}

static void print_messages(struct picker *picker, const char *id, FILE *file)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(picker->store, cli_slice(id), &session, NULL);
    size_t count = 0;

    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE;
    options.last = PREVIEW_LINES;
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &cursor, NULL);
    }
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_OK) {
            walcat_print_preview(file, picker->store, &entry, PREVIEW_WIDTH);
            putc('\n', file);
            count++;
        }
    }
    if (count == 0 && cursor != NULL) {
        print_documents(picker, session, cursor, file);
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

static void load_preview(struct picker *picker, size_t row)
{
    FILE *file;

    if (row == picker->previewed) {
        return;
    }
    free(picker->preview);
    picker->preview = NULL;
    picker->preview_size = 0;
    picker->previewed = row;
    file = open_memstream(&picker->preview, &picker->preview_size);
    if (file != NULL) {
        print_messages(picker, picker->list->rows[row].id, file);
        (void)fclose(file);
    }
}

/* The last lines of the preview that fit. */
static void draw_preview(struct picker *picker, size_t lines)
{
    struct screen *screen = picker->screen;
    const char *end = picker->preview + picker->preview_size;
    const char *at = end;
    size_t count = 0;

    screen_put_style(screen, TERMINAL_DIM);
    for (size_t i = 0; i < screen->columns; i++) {
        fputs("\xE2\x94\x80", screen->file); /* a horizontal line */
    }
    screen_put_style(screen, TERMINAL_PLAIN);
    screen_end_line(screen);
    while (picker->preview_size > 0 && at > picker->preview && count < lines) {
        at--;
        while (at > picker->preview && at[-1] != '\n') {
            at--;
        }
        count++;
    }
    while (picker->preview_size > 0 && at < end && screen_has_room(screen)) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t size = next != NULL ? (size_t)(next - at) : (size_t)(end - at);

        cell_print(screen->file, at, size, screen->columns, 0);
        screen_end_line(screen);
        at += size + 1;
    }
}

/* --- frames ------------------------------------------------------------- */

static void draw_query(const struct picker *picker)
{
    struct screen *screen = picker->screen;
    char count[80];

    snprintf(count, sizeof(count), "%zu/%zu%s", picker->list->match_count,
             picker->list->count, picker->list->is_complete ? "" : "+");
    screen_put_style(screen, TERMINAL_STRONG);
    fputs("> ", screen->file);
    cell_print(screen->file, picker->query, strlen(picker->query),
               screen->columns > 40 ? screen->columns - 30 : 10, CELL_KEEP_END);
    screen_put_inverse(screen, true);
    putc(' ', screen->file);
    screen_put_inverse(screen, false);
    screen_put_style(screen, TERMINAL_PLAIN);
    screen_put_style(screen, TERMINAL_DIM);
    fprintf(screen->file, "  %s", count);
    screen_put_style(screen, TERMINAL_PLAIN);
    screen_end_line(screen);
}

static void draw_row(const struct picker *picker, size_t match)
{
    struct screen *screen = picker->screen;
    const struct resume_row *row =
        &picker->list->rows[picker->list->matches[match]];
    size_t width =
        screen->columns > FIXED_WIDTH + 2 ? screen->columns - FIXED_WIDTH : 2;
    size_t directory =
        width / 3 < DIRECTORY_WIDTH ? width / 3 : DIRECTORY_WIDTH;
    char age[WHEN_SIZE];

    when_age(row->updated_ms, picker->now_ms, age);
    if (match == picker->at) {
        screen_put_inverse(screen, true);
    }
    fprintf(screen->file, "%s %-*s  ", match == picker->at ? ">" : " ",
            WHEN_AGE_COLUMNS, age);
    cell_print(screen->file, row->title, strlen(row->title), width - directory,
               CELL_PAD);
    fputs("  ", screen->file);
    if (directory > 0) {
        cell_print(screen->file, row->cwd, strlen(row->cwd), directory,
                   CELL_PAD | CELL_KEEP_END);
    }
    if (match == picker->at) {
        screen_put_inverse(screen, false);
    }
    screen_end_line(screen);
}

static void draw(struct picker *picker)
{
    struct screen *screen = picker->screen;
    size_t rows = screen->rows;
    size_t preview = rows >= 12 ? rows / 3 : 0;
    size_t count = picker->list->match_count;

    if (preview > PREVIEW_LINES) {
        preview = PREVIEW_LINES;
    }
    picker->height = rows > preview + 2 ? rows - preview - 2 : 1;
    picker->at = picker->at < count ? picker->at : count > 0 ? count - 1 : 0;
    if (picker->at < picker->top) {
        picker->top = picker->at;
    } else if (picker->at >= picker->top + picker->height) {
        picker->top = picker->at - picker->height + 1;
    }
    picker->now_ms = when_now_ms();
    screen_begin(screen);
    draw_query(picker);
    for (size_t i = picker->top; i < picker->top + picker->height; i++) {
        if (i < count) {
            draw_row(picker, i);
        } else {
            screen_end_line(screen);
        }
    }
    if (preview > 0 && count > 0 &&
        picker->previewed == picker->list->matches[picker->at]) {
        draw_preview(picker, preview);
    }
    screen_end(screen);
}

/* --- keys --------------------------------------------------------------- */

/* Removes the last character, or word, or all. */
static void erase(char *query, enum key_kind kind)
{
    size_t size = strlen(query);

    if (kind == KEY_ERASE_LINE) {
        size = 0;
    }
    while (kind == KEY_ERASE_WORD && size > 0 && query[size - 1] == ' ') {
        size--;
    }
    while (kind == KEY_ERASE_WORD && size > 0 && query[size - 1] != ' ') {
        size--;
    }
    while (kind == KEY_BACKSPACE && size > 0 &&
           ((unsigned char)query[--size] & 0xC0) == 0x80) {
    }
    query[size] = '\0';
}

static void edit(struct picker *picker, const struct key *key)
{
    if (key->kind != KEY_TEXT) {
        erase(picker->query, key->kind);
    } else if (strlen(picker->query) + strlen(key->text) <
               sizeof(picker->query)) {
        strcat(picker->query, key->text);
    }
    resume_list_filter(picker->list, picker->query);
    picker->at = 0;
    picker->top = 0;
}

static void move(struct picker *picker, enum key_kind kind)
{
    size_t count = picker->list->match_count;
    size_t step = kind == KEY_PAGE_UP || kind == KEY_PAGE_DOWN ? picker->height
                  : kind == KEY_HOME || kind == KEY_END        ? count
                                                               : 1;

    if (kind == KEY_UP || kind == KEY_PAGE_UP || kind == KEY_HOME) {
        picker->at = picker->at > step ? picker->at - step : 0;
    } else {
        picker->at = picker->at + step < count ? picker->at + step
                     : count > 0               ? count - 1
                                               : 0;
    }
}

/* Returns false when the user is done; *index is what was picked. */
static bool obey(struct picker *picker, const struct key *key, size_t *index)
{
    switch (key->kind) {
    case KEY_TEXT:
    case KEY_BACKSPACE:
    case KEY_ERASE_WORD:
    case KEY_ERASE_LINE:
        edit(picker, key);
        return true;
    case KEY_UP:
    case KEY_DOWN:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
    case KEY_HOME:
    case KEY_END:
        move(picker, key->kind);
        return true;
    case KEY_ENTER:
        if (picker->list->match_count > 0) {
            *index = picker->list->matches[picker->at];
            return false;
        }
        return true;
    case KEY_ESCAPE:
    case KEY_INTERRUPT:
    case KEY_CLOSED:
        return false;
    case KEY_NONE:
    case KEY_RESIZE:
        break;
    }
    return true;
}

/* Draws, and loads more rows or the preview until a key is typed. */
static enum wal_status wait_for_key(struct picker *picker, struct key *key,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    draw(picker);
    while (status == WAL_OK && !picker->list->is_complete &&
           !screen_has_key(picker->screen)) {
        status = resume_list_load(picker->list, LOAD_STEP, error);
        if (status == WAL_OK && picker->list->is_complete) {
            draw(picker);
        }
    }
    if (status == WAL_OK && picker->list->match_count > 0 &&
        !screen_has_key(picker->screen)) {
        load_preview(picker, picker->list->matches[picker->at]);
        draw(picker);
    }
    if (status == WAL_OK) {
        screen_read_key(picker->screen, -1, key);
    }
    return status;
}

enum wal_status resume_pick(struct screen *screen, struct wal_store *store,
                            struct resume_list *list, const char *query,
                            size_t *index, struct wal_error *error)
{
    struct picker picker = {
        .screen = screen, .store = store, .list = list, .previewed = SIZE_MAX};
    struct key key = {.kind = KEY_NONE};
    enum wal_status status;

    *index = SIZE_MAX;
    snprintf(picker.query, sizeof(picker.query), "%s", query);
    resume_list_filter(list, picker.query);
    status = resume_list_load(list, LOAD_FIRST, error);
    while (status == WAL_OK) {
        status = wait_for_key(&picker, &key, error);
        if (status == WAL_OK && !obey(&picker, &key, index)) {
            break;
        }
    }
    free(picker.preview);
    return status;
}
