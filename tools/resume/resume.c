/*
 * resume.c - the verb resume: pick a session, see to it that a client has it, and print or run the
 * command that continues it.
 *
 * A client has a session when its file has all that the store has. One that it deleted, or that has
 * less, is written as an export does; so is that of another client (--in), and of a session that no
 * client wrote. The command then names the id that the client knows the session by.
 *
 * Invariant: the only files that change are those of the one session whose command is printed, and
 * a file with other content is not changed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wctype.h>

#include "convert/clients/client.h"
#include "convert/source/source_name.h"
#include "engine/base/directory.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/convert/convert.h"
#include "tools/shown/shown.h"
#include "tools/terminal/screen.h"
#include "tools/walcat/walcat.h"

/* --- load and filter sessions --------------------------------------------- */

/*
 * A query is words; each must be in the title, the first text, the directory, the project or the
 * id, whatever its case.
 *
 * Invariant: matches are in the order of the list, and among the rows that were loaded.
 */

enum {
    RESUME_QUERY_SIZE = 256, /* bytes of a query with its terminator */
    RESUME_WORDS = 32
};

/* A session. Its texts are those of one block of memory. */
struct resume_row {
    const char *id;
    const char *title;
    const char *cwd;
    const char *source;
    const char *folded; /* the texts that words are looked for in */
    size_t folded_size;
    int64_t updated_ms;
    uint64_t entries;
};

/* Zeroed: no rows, and a query that all match. */
struct resume_list {
    struct resume_row *rows;
    size_t count;
    size_t capacity;
    size_t *matches; /* indexes of rows */
    size_t match_count;
    bool is_complete; /* all rows were loaded */
    /* private */
    size_t match_capacity;
    struct wal_store *store;
    struct wal_session_cursor *cursor;
    struct wal__directory *directory; /* of all rows; NULL: any */
    char query[RESUME_QUERY_SIZE];    /* folded */
    char words[RESUME_QUERY_SIZE];    /* each with its terminator */
    const char *word[RESUME_WORDS];
    size_t word_count;
};

/* --- folding ------------------------------------------------------------ */

static size_t encode(uint32_t code, char *out)
{
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

static char fold_byte(char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return (char)(byte - 'A' + 'a');
    }
    if (byte >= '\0' && byte <= ' ') {
        return ' ';
    }
    return byte;
}

/* Writes the text in lower case, and white space as blanks. Returns its size, which is at most
 * twice that of the text. */
static size_t fold(const char *text, size_t size, char *out)
{
    const uint8_t *data = (const void *)text;
    size_t used = 0;

    for (size_t at = 0; at < size;) {
        size_t step = data[at] < 0x80 ? 1 : utf8_size(data + at, size - at);
        uint32_t code = step > 1 ? utf8_decode(data + at) : data[at];
        uint32_t lower = step > 1 ? (uint32_t)towlower((wint_t)code) : code;

        if (step > 1 && lower != code && lower >= 0x80) {
            used += encode(lower, out + used);
        } else if (step > 1) {
            memcpy(out + used, data + at, step);
            used += step;
        } else {
            out[used++] = fold_byte(text[at]);
        }
        at += step > 0 ? step : 1;
    }
    return used;
}

/* --- rows --------------------------------------------------------------- */

static const char *put(char **at, struct wal_slice text)
{
    char *copy = *at;

    if (text.size > 0) {
        memcpy(copy, text.data, (size_t)text.size);
    }
    copy[text.size] = '\0';
    *at += text.size + 1;
    return copy;
}

static void add_row(struct resume_list *list, const struct wal_session_info *info)
{
    char text[CLI_TEXT_MAX];
    struct wal_slice title = cli_session_title(list->store, info, text);
    const struct wal_slice folded[] = {title, info->first_text, info->cwd, info->project, info->id};
    size_t size = 4 + (size_t)(info->id.size + title.size + info->cwd.size + info->source.size);
    struct resume_row *row;
    char *at;

    for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++) {
        size += 2 * (size_t)folded[i].size + 1;
    }
    row = CLI_PUSH(list->rows, list->count, list->capacity);
    at = cli_alloc(size);
    row->id = put(&at, info->id);
    row->title = put(&at, title);
    row->cwd = put(&at, info->cwd);
    row->source = put(&at, info->source);
    row->folded = at;
    for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++) {
        at += fold(folded[i].data, (size_t)folded[i].size, at);
        *at++ = '\n'; /* no word has it */
    }
    row->folded_size = (size_t)(at - row->folded);
    row->updated_ms = info->updated_ms;
    row->entries = info->entries;
}

/* --- matching ----------------------------------------------------------- */

static bool matches(const struct resume_list *list, const struct resume_row *row)
{
    for (size_t i = 0; i < list->word_count; i++) {
        if (memmem(row->folded, row->folded_size, list->word[i], strlen(list->word[i])) == NULL) {
            return false;
        }
    }
    return true;
}

static void match_row(struct resume_list *list, size_t index)
{
    if (matches(list, &list->rows[index])) {
        *CLI_PUSH(list->matches, list->match_count, list->match_capacity) = index;
    }
}

/* Loads at most `count` more rows. */
static enum wal_status resume_list_load(struct resume_list *list, size_t count,
                                        struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && count-- > 0 && !list->is_complete) {
        status = cli_session_next(list->store, list->cursor, &info, error);
        if (status == WAL_OK &&
            (list->directory == NULL || wal__directory_is(list->directory, info.cwd))) {
            add_row(list, &info);
            match_row(list, list->count - 1);
        }
        list->is_complete = status == WAL_END;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Splits the query into words. */
static void set_words(struct resume_list *list)
{
    char *at = list->words;

    memcpy(list->words, list->query, sizeof(list->words));
    list->word_count = 0;
    while (list->word_count < RESUME_WORDS) {
        at += strspn(at, " ");
        if (*at == '\0') {
            break;
        }
        list->word[list->word_count++] = at;
        at += strcspn(at, " ");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
}

/* Sets the query; of a longer one the rest is left out. */
static void resume_list_filter(struct resume_list *list, const char *query)
{
    char folded[2 * RESUME_QUERY_SIZE];
    size_t size = strlen(query);
    size_t old_size = strlen(list->query);
    size_t kept = 0;

    size = size < RESUME_QUERY_SIZE / 2 ? size : RESUME_QUERY_SIZE / 2 - 1;
    size = fold(query, size, folded);
    folded[size] = '\0';
    if (size >= old_size && memcmp(folded, list->query, old_size) == 0) {
        /* What did not match does not match a longer query. */
        memcpy(list->query, folded, size + 1);
        set_words(list);
        for (size_t i = 0; i < list->match_count; i++) {
            if (matches(list, &list->rows[list->matches[i]])) {
                list->matches[kept++] = list->matches[i];
            }
        }
        list->match_count = kept;
        return;
    }
    memcpy(list->query, folded, size + 1);
    set_words(list);
    list->match_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        match_row(list, i);
    }
}

/* --- draw the list, the query and a preview, and obey keys ---------------- */

/*
 * The first frame is drawn when a screenful of sessions is loaded; the others are loaded between
 * keys.
 *
 * Invariant: a text of a session reaches the terminal only as plain text.
 */

enum {
    LOAD_FIRST = 200,
    LOAD_STEP = 1000, /* rows between looks at the keyboard */
    PREVIEW_LINES = 10,
    PREVIEW_ENTRIES = 100, /* that are read for them: many have no text */
    PREVIEW_WIDTH = 1000,  /* columns that are kept of a message */
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

    if (shown_documents_read(&documents, picker->store, session, cursor, NULL) == WAL_OK) {
        first = documents.count > PREVIEW_LINES ? documents.count - PREVIEW_LINES : 0;
        for (size_t i = first; i < documents.count; i++) {
            walcat_print_preview(file, picker->store, &documents.items[i], PREVIEW_WIDTH);
            putc('\n', file);
        }
    }
    shown_documents_deinit(&documents);
}

static void print_messages(struct picker *picker, const char *id, FILE *file)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(picker->store, cli_slice(id), &session, NULL);
    size_t count = 0;

    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE;
    options.last = PREVIEW_ENTRIES;
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &cursor, NULL);
    }
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_OK && !cli_entry_is_repeated(session, &entry)) {
            long begin = ftell(file);

            walcat_print_preview(file, picker->store, &entry, PREVIEW_WIDTH);
            if (ftell(file) > begin) {
                putc('\n', file);
            }
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
    file = cli_open_memory(&picker->preview, &picker->preview_size);
    print_messages(picker, picker->list->rows[row].id, file);
    (void)fclose(file);
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

    snprintf(count, sizeof(count), "%zu/%zu%s", picker->list->match_count, picker->list->count,
             picker->list->is_complete ? "" : "+");
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
    const struct resume_row *row = &picker->list->rows[picker->list->matches[match]];
    size_t width = screen->columns > FIXED_WIDTH + 2 ? screen->columns - FIXED_WIDTH : 2;
    size_t directory = width / 3 < DIRECTORY_WIDTH ? width / 3 : DIRECTORY_WIDTH;
    char age[WHEN_SIZE];

    when_age(row->updated_ms, picker->now_ms, age);
    if (match == picker->at) {
        screen_put_inverse(screen, true);
    }
    fprintf(screen->file, "%s %-*s  ", match == picker->at ? ">" : " ", WHEN_AGE_COLUMNS, age);
    cell_print(screen->file, row->title, strlen(row->title), width - directory, CELL_PAD);
    fputs("  ", screen->file);
    if (directory > 0) {
        cell_print(screen->file, row->cwd, strlen(row->cwd), directory, CELL_PAD | CELL_KEEP_END);
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
    if (preview > 0 && count > 0 && picker->previewed == picker->list->matches[picker->at]) {
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
    while (kind == KEY_BACKSPACE && size > 0 && ((unsigned char)query[--size] & 0xC0) == 0x80) {
    }
    query[size] = '\0';
}

static void edit(struct picker *picker, const struct key *key)
{
    if (key->kind != KEY_TEXT) {
        erase(picker->query, key->kind);
    } else if (strlen(picker->query) + strlen(key->text) < sizeof(picker->query)) {
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
        picker->at = picker->at + step < count ? picker->at + step : count > 0 ? count - 1 : 0;
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
static enum wal_status wait_for_key(struct picker *picker, struct key *key, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    draw(picker);
    while (status == WAL_OK && !picker->list->is_complete && !screen_has_key(picker->screen)) {
        status = resume_list_load(picker->list, LOAD_STEP, error);
        if (status == WAL_OK && picker->list->is_complete) {
            draw(picker);
        }
    }
    if (status == WAL_OK && picker->list->match_count > 0 && !screen_has_key(picker->screen)) {
        load_preview(picker, picker->list->matches[picker->at]);
        draw(picker);
    }
    if (status == WAL_OK) {
        screen_read_key(picker->screen, -1, key);
    }
    return status;
}

/* Lets the user pick. *index is that of a row, or SIZE_MAX when the user gave up. `query` is what
 * was typed already. */
static enum wal_status resume_pick(struct screen *screen, struct wal_store *store,
                                   struct resume_list *list, const char *query, size_t *index,
                                   struct wal_error *error)
{
    static struct picker picker = {.previewed = SIZE_MAX};
    struct key key = {.kind = KEY_NONE};
    enum wal_status status;

    picker.screen = screen;
    picker.store = store;
    picker.list = list;
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
    return status;
}

/* --- the client has the session ------------------------------------------- */

enum {
    PARENTS_MAX = 64 /* that are looked at for the client of a fork */
};

struct continued {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_session_info info;
    const struct wal__client *client; /* NULL: none continues the session */
    const char *below;                /* path of its source in the client's folder; or NULL */
    struct wal__source source;
    char root[WAL__CLIENT_PATH_SIZE];
    char id[WAL_ID_SIZE]; /* that the client knows it by */
};

/* Whether sessions of the client are files that are written for it. */
static bool takes_files(const struct wal__client *client)
{
    return client->resume != NULL && client->writes != NULL && client->directories[0] == NULL;
}

/* Returns the client with a dialect, or ends the process. */
static const struct wal__client *find_client(const struct cli *cli, const char *name)
{
    const struct wal__client *client;
    char names[256] = "";
    size_t size = 0;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (!takes_files(client)) {
            continue;
        }
        if (strcmp(client->dialect, name) == 0) {
            return client;
        }
        size += (size_t)snprintf(names + size, sizeof(names) - size, "%s%s", size > 0 ? ", " : "",
                                 client->dialect);
    }
    cli_fail(cli, CLI_USAGE, "--in", "'%s' is none of %s", name, names);
}

/* Finds the client of the session, or of the one that it was forked from. */
static void find_own_client(struct continued *continued)
{
    struct wal_session_info info = continued->info;
    struct wal_session *parent = NULL;
    bool is_own = true;

    for (int i = 0; i < PARENTS_MAX && info.source.size == 0 && info.parent_id.size > 0; i++) {
        struct wal_session *next = NULL;
        bool is_read = wal_session_open(continued->store, info.parent_id, &next, NULL) == WAL_OK &&
                       wal_session_get_info(next, &info, NULL) == WAL_OK;

        wal_session_close(parent);
        parent = next;
        is_own = false;
        if (!is_read) {
            break;
        }
    }
    if (wal__source_parse(info.source, &continued->source)) {
        continued->client = wal__client_of_source(continued->source.dialect, continued->source.path,
                                                  &continued->below);
    }
    wal_session_close(parent);
    if (!is_own) {
        continued->below = NULL;
    }
}

/* Whether the session's source is one file of lines where its client looks for sessions. */
static bool has_client_file(const struct continued *continued)
{
    const char *end = continued->below != NULL ? strrchr(continued->below, '.') : NULL;

    return end != NULL && strncmp(end, ".json", 5) == 0 &&
           wal__client_matches(continued->client->files, continued->below);
}

/* Prints what was written and, of a view, what its dialect left out, on standard error. */
static void note_lines(const struct continued *continued, const char *path, uint64_t lines,
                       const struct wal_view *view)
{
    const char *text = cli_keep(cli_format("%s added", cli_counted(lines, "line", "lines")));
    const char *what;
    uint64_t count;

    for (uint32_t i = 0; view != NULL && wal_view_loss(view, i, &what, &count, NULL) == WAL_OK;
         i++) {
        text = cli_keep(
            cli_format("%s%s%" PRIu64 " %s", text, i == 0 ? "; left out: " : ", ", count, what));
    }
    if (lines > 0) {
        cli_error(continued->cli, CLI_OK, path, "%s", text);
    }
}

/* Sets the id that a view's file gives the session. */
static void set_id_of_view(struct continued *continued, const char *path)
{
    size_t root = strlen(continued->root);
    const char *below = strncmp(path, continued->root, root) == 0 ? path + root + 1 : path;
    struct wal_slice id = wal__client_read_path(continued->client, below).id;
    char file[WAL__FILE_ID_SIZE];

    if (id.size == 0 && wal__source_file_id(path, file)) {
        id = cli_slice(file);
    }
    if (id.size > 0 && id.size < sizeof(continued->id)) {
        snprintf(continued->id, sizeof(continued->id), "%.*s", (int)id.size, (const char *)id.data);
    }
}

/* Writes the session as a file of the client, or what that lacks. `is_complete`: the file has what
 * the client wrote; what it has more is then no error. Returns an exit code. */
static int write_view(struct continued *continued, bool is_complete)
{
    const struct convert_view target = {.cli = continued->cli,
                                        .store = continued->store,
                                        .store_path = continued->cli->items[1],
                                        .dialect = continued->client->dialect,
                                        .root = continued->root};
    struct wal_view_flush_result result = WAL_INIT(wal_view_flush_result);
    struct wal_view *view = NULL;
    const char *name = cli_keep_slice(continued->info.id);
    const char *path = NULL;
    uint64_t missing;
    enum wal_status status =
        convert_view_open(&target, continued->session, &view, continued->cli->error);
    int code = CLI_OK;

    if (status == WAL_OK) {
        status = convert_view_flush(&target, view, &result, continued->cli->error);
    }
    if (status == WAL_ECHANGED && is_complete) {
        cli_note(continued->cli, name,
                 "its client went on with it; import takes that into the store");
    } else if (status == WAL_ECHANGED && continued->below != NULL) {
        const char *fork = cli_keep(cli_command(continued->cli, "fork", &name, 1));
        const char *resume = cli_keep(cli_command(continued->cli, "resume", NULL, 0));

        code = cli_error_status(continued->cli, status, name,
                                "its client's file has other content; to continue a copy: "
                                "%s \"$(%s)\"",
                                resume, fork);
    } else if (status != WAL_OK) {
        code = view != NULL ? convert_view_fail(&target, name, status, continued->cli->error)
                            : cli_report(continued->cli, name, status);
    } else if (wal_view_path(view, 0, &path, NULL) == WAL_OK) {
        set_id_of_view(continued, path);
        note_lines(continued, path, result.lines, view);
        code = convert_file_history_export(&target, continued->session, view, name, &missing);
    }
    wal_view_close(view);
    return code;
}

/* Sees to it that the session's own client has all of it. Returns an exit code. */
static int complete_file(struct continued *continued)
{
    const char *path = cli_keep(cli_format("%s/%s", continued->root, continued->below));
    const char *packed = cli_keep(cli_format("%s.zst", path));
    const struct convert_source source = {.cli = continued->cli,
                                          .store = continued->store,
                                          .session = continued->session,
                                          .root = continued->root,
                                          .path = continued->below,
                                          .name = path};
    struct convert_outcome outcome = {.added = 0};
    enum convert_file_state state;
    uint64_t size;
    int code = convert_source_compare(&source, &state, &size, &outcome);
    bool is_packed = state == CONVERT_FILE_MISSING && access(packed, F_OK) == 0;
    bool is_there;

    if (is_packed) {
        code = cli_worse_code(code, convert_source_count(&source, &outcome));
    }
    /* A file that has what is redacted here is the session's, too. A compressed one cannot take
     * more: the plain one that is written counts while both are there. */
    is_there = state == CONVERT_FILE_COMPLETE ||
               (state == CONVERT_FILE_DIFFERENT && outcome.redacted > 0) ||
               (is_packed && outcome.native_count == 0);
    /* Without the number that a second session of its id has. */
    continued->id[strcspn(continued->id, "~")] = '\0';
    if (code < CLI_USAGE && takes_files(continued->client) &&
        (!is_there || outcome.native_count > 0)) {
        code = write_view(continued, is_there);
    } else if (code < CLI_USAGE && !is_there) {
        code = convert_source_write(&source, &outcome);
        if (code == CLI_OK) {
            note_lines(continued, path, outcome.added, NULL);
        }
    }
    return code;
}

/* Prints the session's directory if it is gone. */
static void note_directory(const struct continued *continued)
{
    const char *cwd = cli_keep_slice(continued->info.cwd);
    struct stat stat_of;

    if (cwd[0] != '\0' && (stat(cwd, &stat_of) != 0 || !S_ISDIR(stat_of.st_mode))) {
        cli_note(continued->cli, cwd, "the session's directory is gone; make it first (mkdir -p)");
    }
}

/* Sees to it that the client has the session, and sets *command. Returns an exit code. */
static int continue_session(const struct cli *cli, struct wal_store *store, const char *name,
                            const struct wal__client *client, char **command)
{
    struct continued continued = {.cli = cli, .store = store, .info = WAL_INIT(wal_session_info)};
    enum wal_status status =
        wal_session_open(store, cli_slice(name), &continued.session, cli->error);
    bool is_subagent = strstr(name, "~agent-") != NULL;
    int code = CLI_OK;

    if (status == WAL_OK) {
        status = wal_session_get_info(continued.session, &continued.info, cli->error);
    }
    if (status != WAL_OK) {
        wal_session_close(continued.session);
        return cli_report(cli, name, status);
    }
    snprintf(continued.id, sizeof(continued.id), "%s", name);
    find_own_client(&continued);
    if (client != NULL && client != continued.client) {
        continued.client = client;
        continued.below = NULL;
    } else if (is_subagent || (continued.client != NULL && continued.client->resume == NULL)) {
        continued.client = NULL;
    }
    if (continued.client != NULL &&
        wal__client_folder(continued.client, &continued.client->folders[0], continued.root)) {
        if (has_client_file(&continued)) {
            code = complete_file(&continued);
        } else if (takes_files(continued.client)) {
            code = write_view(&continued, false);
        }
    }
    if (continued.client != NULL && code == CLI_OK) {
        note_directory(&continued);
    }
    *command = cli_keep(shown_command(cli, continued.client, &continued.info, continued.id));
    wal_session_close(continued.session);
    return code;
}

/* --- resume --------------------------------------------------------------- */

enum {
    LIMIT = 20,
    GAVE_UP = 130 /* as fzf, and as a shell after Ctrl-C */
};

struct arguments {
    const char *project;
    const char *cwd;
    const char *in;
    const struct wal__client *client; /* of `in` */
    uint64_t limit;
    bool run;
};

static char *make_command(const struct cli *cli, const struct resume_row *row)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    info.id = cli_slice(row->id);
    info.cwd = cli_slice(row->cwd);
    info.source = cli_slice(row->source);
    return shown_resume(cli, &info);
}

static void write_row(const struct resume_row *row, const char *command)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "sessionId", cli_slice(row->id));
    cli_json_member_time(&json, "updated", row->updated_ms);
    cli_json_member_text_or_null(&json, "title", cli_slice(row->title));
    cli_json_member_text_or_null(&json, "cwd", cli_slice(row->cwd));
    cli_json_member_text(&json, "command", cli_slice(command));
    wal__json_out_close_line(&json);
}

static void put_row(struct table *table, const struct resume_row *row, const char *command)
{
    table_put(table, cli_slice(row->id));
    table_put_age(table, row->updated_ms, when_now_ms());
    table_put(table, cli_slice(row->title));
    table_put(table, cli_slice(command));
}

/* Without a terminal: the newest sessions that match. */
static int print_list(const struct cli *cli, const char *cwd, struct resume_list *list,
                      const char *query, uint64_t limit)
{
    enum wal_status status = WAL_OK;
    struct table table;
    size_t printed = 0;

    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ANY("SESSION", 0, 0, 0), TABLE_TIME("UPDATED"),
                             TABLE_TEXT("TITLE", TABLE_ID_MAX), TABLE_ANY("COMMAND", 0, 0, 0)));
    resume_list_filter(list, query);
    while (status == WAL_OK && (limit == 0 || printed < limit) &&
           (!list->is_complete || printed < list->match_count)) {
        if (printed == list->match_count) {
            status = resume_list_load(list, 1, cli->error);
            continue;
        }
        const struct resume_row *row = &list->rows[list->matches[printed++]];
        char *command = make_command(cli, row);

        if (cli->json) {
            write_row(row, command);
        } else {
            put_row(&table, row, command);
        }
        free(command);
    }
    table_finish(&table);
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status);
    }
    if (list->count == 0 && cwd != NULL) {
        cli_note(cli, cwd, "no session of this directory");
    }
    return printed == 0 && query[0] != '\0' ? CLI_NEGATIVE : CLI_OK;
}

static int pick(const struct cli *cli, struct screen *screen, struct wal_store *store,
                struct resume_list *list, const char *query, const char **id)
{
    size_t index = SIZE_MAX;
    enum wal_status status = resume_pick(screen, store, list, query, &index, cli->error);

    screen_close(screen);
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status);
    }
    if (index == SIZE_MAX) {
        return GAVE_UP;
    }
    *id = cli_keep_text(list->rows[index].id);
    return CLI_OK;
}

/* Without a terminal: sets *id if one session matches; otherwise prints the list, unless the
 * command is to be run. */
static int choose(const struct cli *cli, const struct arguments *arguments,
                  struct resume_list *list, const char *query, const char **id)
{
    enum wal_status status = WAL_OK;

    resume_list_filter(list, query);
    while (status == WAL_OK && !cli->json && !list->is_complete && list->match_count < 2) {
        status = resume_list_load(list, 1, cli->error);
    }
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status);
    }
    if (!cli->json && list->match_count == 1) {
        *id = cli_keep_text(list->rows[list->matches[0]].id);
        return CLI_OK;
    }
    if (arguments->run || arguments->in != NULL) {
        return cli_error(cli, list->match_count == 0 ? CLI_NEGATIVE : CLI_USAGE, "resume",
                         list->match_count == 0 ? "no session has these words"
                                                : "several sessions have these words; without a "
                                                  "terminal to pick one, name one by its id");
    }
    return print_list(cli, arguments->cwd, list, query, arguments->limit);
}

/* Returns the id of the session that the only word names: by its id, or an ending or a beginning
 * that is as long as a short id. NULL: the words are those of a query. */
static const char *find_named(const struct cli *cli, struct wal_store *store)
{
    const char *name = cli->count == 3 ? cli->items[2] : "";
    struct cli_match match = {.name = name};
    struct wal_session *session = NULL;
    struct cli_sessions list;
    const char *id = NULL;

    if (strcmp(name, "@latest") == 0 || strchr(name, '/') != NULL) {
        return cli_session_id(cli, store, name);
    }
    if (name[0] != '\0' && wal_session_open(store, cli_slice(name), &session, NULL) == WAL_OK) {
        wal_session_close(session);
        return name;
    }
    if (strlen(name) < CLI_SHORT_SIZE) {
        return NULL;
    }
    for (cli_sessions_open(&list, store, NULL, cli->error); cli_sessions_next(&list);) {
        cli_match_add(&match, list.info.id);
    }
    cli_check(cli, cli->items[1], list.status);
    if (match.prefix_count + match.ending_count == 1) {
        id = cli_keep_text(match.prefix_count == 1 ? match.prefixes[0] : match.endings[0]);
    }
    cli_match_deinit(&match);
    return id;
}

/* Joins the words of the command line. */
static void join(const struct cli *cli, char query[RESUME_QUERY_SIZE])
{
    size_t size = 0;

    query[0] = '\0';
    for (int i = 2; i < cli->count && size < RESUME_QUERY_SIZE; i++) {
        size += (size_t)snprintf(query + size, RESUME_QUERY_SIZE - size, "%s%s", i > 2 ? " " : "",
                                 cli->items[i]);
    }
}

static int resume(const struct cli *cli, const struct arguments *arguments, struct wal_store *store,
                  char **command)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal__directory directory;
    static struct resume_list list;
    struct screen screen = {.file = NULL};
    char query[RESUME_QUERY_SIZE];
    const char *id = NULL;
    enum wal_status status;
    int code;

    list.store = store;
    list.directory = arguments->cwd != NULL ? &directory : NULL;
    join(cli, query);
    options.project = cli_slice(arguments->project);
    wal__directory_init(&directory, cli_slice(arguments->cwd));
    status = wal_session_cursor_open(store, &options, &list.cursor, cli->error);
    if (status != WAL_OK) {
        code = cli_report(cli, cli->items[1], status);
    } else if (!cli->json && (id = find_named(cli, store)) != NULL) {
        code = CLI_OK;
    } else if (!cli->json && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 &&
               screen_open(&screen, cli->no_colour)) {
        code = pick(cli, &screen, store, &list, query, &id);
    } else {
        code = choose(cli, arguments, &list, query, &id);
    }
    wal_session_cursor_close(list.cursor);
    return code == CLI_OK && id != NULL
               ? continue_session(cli, store, id, arguments->client, command)
               : code;
}

int resume_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.limit = LIMIT};
    const struct cli_option options[] = {
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .directory = &arguments.cwd},
        {.name = "in", .value = &arguments.in},
        {.name = "limit", .number = &arguments.limit, .max = UINT64_MAX},
        {.name = "run", .flag = &arguments.run},
        {.name = NULL},
    };
    char *command = NULL;
    struct wal_store *store;
    int code;

    cli_parse(cli, argc, argv, options);
    arguments.client = arguments.in != NULL ? find_client(cli, arguments.in) : NULL;
    store = cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
    code = cli_close_store(cli, cli->items[1], store, resume(cli, &arguments, store, &command));
    if (code == CLI_OK && command != NULL && !arguments.run) {
        if (isatty(STDOUT_FILENO) == 1) {
            cli_print_name(stdout, cli_slice(command));
        } else {
            fputs(command, stdout);
        }
        putchar('\n');
    } else if (code == CLI_OK && command != NULL) {
        /* The hooks of a client use the store that --store named; its directory is another. */
        if (setenv("AGENTWAL_STORE", cli_keep_absolute(cli->items[1]), 1) != 0) {
            return cli_error(cli, CLI_FAILED, "AGENTWAL_STORE", "cannot be set");
        }
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        code = cli_error(cli, CLI_FAILED, "/bin/sh", "cannot be run");
    }
    return code;
}
