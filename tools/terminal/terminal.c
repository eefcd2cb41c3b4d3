/*
 * terminal.c - the terminal on standard output, and texts, sizes and times for people (terminal.h).
 */
#include "tools/terminal/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* --- the characters of a text ------------------------------------------- */

void utf8_init(void)
{
    /* wcwidth knows the characters of the locale only, whatever the user's. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
}

size_t utf8_size(const uint8_t *data, size_t size)
{
    uint8_t lead = data[0];
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t count;

    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    count = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0xE0) {
        low = 0xA0;
    } else if (lead == 0xED) {
        high = 0x9F;
    } else if (lead == 0xF0) {
        low = 0x90;
    } else if (lead == 0xF4) {
        high = 0x8F;
    }
    if (size < count || data[1] < low || data[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((data[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return count;
}

uint32_t utf8_decode(const uint8_t *data)
{
    uint32_t lead = data[0];

    if (lead < 0x80) {
        return lead;
    }
    if (lead < 0xE0) {
        return (lead & 0x1F) << 6 | (data[1] & 0x3Fu);
    }
    if (lead < 0xF0) {
        return (lead & 0x0F) << 12 | (data[1] & 0x3Fu) << 6 | (data[2] & 0x3Fu);
    }
    return (lead & 0x07) << 18 | (data[1] & 0x3Fu) << 12 | (data[2] & 0x3Fu) << 6 |
           (data[3] & 0x3Fu);
}

bool utf8_is_control(const uint8_t *data)
{
    uint32_t code;

    if (data[0] < 0x7F) {
        return data[0] < 0x20;
    }
    code = utf8_decode(data);
    return code < 0xA0 || code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

size_t utf8_columns(const uint8_t *data)
{
    int columns = data[0] < 0x80 ? 1 : wcwidth((wchar_t)utf8_decode(data));

    return columns < 0 ? 1 : (size_t)columns;
}

/* --- standard output ---------------------------------------------------- */

enum { COLUMNS_UNKNOWN = 80, COLUMNS_MAX = 100000 };

static size_t find_columns(bool is_terminal)
{
    const char *text = getenv("COLUMNS");
    long columns = text != NULL ? strtol(text, NULL, 10) : 0;
    struct winsize size;

    if (columns > 0 && columns <= COLUMNS_MAX) {
        return (size_t)columns;
    }
    if (!is_terminal) {
        return 0;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return COLUMNS_UNKNOWN;
}

static bool may_colour(void)
{
    const char *off = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return (off == NULL || off[0] == '\0') && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

void terminal_init(struct terminal *terminal, bool no_colour)
{
    utf8_init();
    terminal->is_terminal = isatty(STDOUT_FILENO) == 1;
    terminal->has_colour = terminal->is_terminal && !no_colour && may_colour();
    terminal->columns = find_columns(terminal->is_terminal);
    terminal->pager = 0;
}

const char *terminal_style_code(enum terminal_style style)
{
    static const char *const codes[] = {
        [TERMINAL_PLAIN] = "\033[0m",  [TERMINAL_ID] = "\033[33m",   [TERMINAL_DIM] = "\033[2m",
        [TERMINAL_STRONG] = "\033[1m", [TERMINAL_HEAD] = "\033[32m", [TERMINAL_ALARM] = "\033[31m",
    };

    return codes[style];
}

void terminal_put_style(const struct terminal *terminal, enum terminal_style style)
{
    if (terminal->has_colour) {
        fputs(terminal_style_code(style), stdout);
    }
}

/* Whether the first word of a command is a program in PATH, or names a file that can be run. */
static bool can_run(const char *command)
{
    size_t size = strcspn(command, " \t");
    const char *path = getenv("PATH");
    char file[4096];

    if (memchr(command, '/', size) != NULL) {
        path = "";
    }
    while (path != NULL) {
        size_t length = strcspn(path, ":");
        const char *slash = length > 0 ? "/" : "";
        int count = snprintf(file, sizeof(file), "%.*s%s%.*s", (int)length, path, slash, (int)size,
                             command);
        if (count > 0 && (size_t)count < sizeof(file) && access(file, X_OK) == 0) {
            return true;
        }
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return false;
}

/* Returns the command of the pager, or NULL for none. */
static const char *find_pager(void)
{
    const char *command = getenv("PAGER");

    if (command == NULL) {
        command = "less -FRX";
    }
    if (command[0] == '\0' || strcmp(command, "cat") == 0 || !can_run(command)) {
        return NULL;
    }
    return command;
}

/* In the child: becomes the pager. */
static _Noreturn void run_pager(const char *command, const int *ends)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    /* For a pager that is less without options of the user's. */
    (void)setenv("LESS", "FRX", 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

void terminal_start_pager(struct terminal *terminal)
{
    const char *command = terminal->is_terminal ? find_pager() : NULL;
    int ends[2];

    if (command == NULL || terminal->pager != 0 || pipe(ends) != 0) {
        return;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fflush(stdout);
    terminal->pager = fork();
    if (terminal->pager == 0) {
        run_pager(command, ends);
    }
    close(ends[0]);
    if (terminal->pager < 0) {
        terminal->pager = 0;
    } else {
        (void)dup2(ends[1], STDOUT_FILENO);
        /* The pager decides what an interrupt ends. */
        (void)signal(SIGINT, SIG_IGN);
    }
    close(ends[1]);
}

void terminal_wait_pager(struct terminal *terminal)
{
    if (terminal->pager == 0) {
        return;
    }
    (void)close(STDOUT_FILENO);
    while (waitpid(terminal->pager, NULL, 0) < 0 && errno == EINTR) {
    }
    terminal->pager = 0;
}

/* --- texts in columns --------------------------------------------------- */

static const char ellipsis[] = "\xE2\x80\xA6"; /* one column */

static bool is_space(uint8_t byte)
{
    return byte == '\n' || byte == '\r' || byte == '\t';
}

/* The bytes of the character at data, and its columns when printed. */
static size_t measure(const uint8_t *data, size_t size, size_t *columns)
{
    size_t step = utf8_size(data, size);

    if (step > 0 && is_space(data[0])) {
        *columns = 1;
    } else if (step == 0 || utf8_is_control(data)) {
        step = step > 0 ? step : 1;
        *columns = 4 * step;
    } else {
        *columns = utf8_columns(data);
    }
    return step;
}

size_t cell_width(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    size_t width = 0;
    size_t columns;

    for (size_t at = 0; at < size; width += columns) {
        at += measure(bytes + at, size - at, &columns);
    }
    return width;
}

size_t cell_print_char(FILE *file, const uint8_t *data, size_t size, size_t columns,
                       size_t *printed)
{
    size_t width;
    size_t step = measure(data, size, &width);

    if (width > columns) {
        return 0;
    }
    if (is_space(data[0])) {
        putc_unlocked(' ', file);
    } else if (width == 4 * step) {
        for (size_t i = 0; i < step; i++) {
            fprintf(file, "\\x%02x", data[i]);
        }
    } else {
        fwrite(data, 1, step, file);
    }
    *printed += width;
    return step;
}

/* The offset of the end of a text that fits in the columns. */
static size_t find_end(const uint8_t *data, size_t size, size_t width, size_t columns)
{
    size_t at = 0;
    size_t step;

    while (at < size && width > columns) {
        at += measure(data + at, size - at, &step);
        width -= step;
    }
    return at;
}

size_t cell_print(FILE *file, const void *data, size_t size, size_t columns, unsigned flags)
{
    const uint8_t *bytes = data;
    size_t width = columns > 0 ? cell_width(data, size) : 0;
    bool is_cut = width > columns;
    size_t room = columns > 0 ? columns : SIZE_MAX;
    size_t printed = 0;
    size_t at = 0;

    if (is_cut && (flags & CELL_KEEP_END) != 0) {
        fputs(ellipsis, file);
        printed = 1;
        at = find_end(bytes, size, width, columns - 1);
    } else if (is_cut) {
        room--;
    }
    while (at < size) {
        size_t step = cell_print_char(file, bytes + at, size - at, room - printed, &printed);
        if (step == 0) {
            break;
        }
        at += step;
    }
    if (is_cut && (flags & CELL_KEEP_END) == 0) {
        fputs(ellipsis, file);
        printed++;
    }
    if ((flags & CELL_PAD) != 0 && printed < columns) {
        fprintf(file, "%*s", (int)(columns - printed), "");
        printed = columns;
    }
    return printed;
}

/* --- sizes and times ---------------------------------------------------- */

/* Three digits of a number from 1000 on, and the unit. */
static void scale_text(uint64_t number, const char *const units[], char text[SIZE_TEXT])
{
    size_t unit = 0;
    uint64_t tenths = number / 100;

    while (tenths >= 10000) {
        tenths /= 1000;
        unit++;
    }
    if (tenths >= 1000) {
        snprintf(text, SIZE_TEXT, "%u%s", (unsigned)(tenths / 10), units[unit]);
    } else {
        snprintf(text, SIZE_TEXT, "%u.%u%s", (unsigned)(tenths / 10), (unsigned)(tenths % 10),
                 units[unit]);
    }
}

void size_text(uint64_t size, char text[SIZE_TEXT])
{
    static const char *const units[] = {" kB", " MB", " GB", " TB", " PB", " EB"};

    if (size < 1000) {
        snprintf(text, SIZE_TEXT, "%u %s", (unsigned)size, size == 1 ? "byte" : "bytes");
    } else {
        scale_text(size, units, text);
    }
}

void count_text(uint64_t count, char text[SIZE_TEXT])
{
    static const char *const units[] = {"k", "M", "G", "T", "P", "E"};

    if (count < 1000) {
        snprintf(text, SIZE_TEXT, "%u", (unsigned)count);
    } else {
        scale_text(count, units, text);
    }
}

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS, DAY_MS = 24 * HOUR_MS, WEEK_DAYS = 7 };

static void format_time(int64_t unix_ms, const char *form, char text[WHEN_SIZE])
{
    /* Rounded down for times before 1970 too. */
    time_t seconds = (time_t)(unix_ms / 1000 - (unix_ms % 1000 < 0 ? 1 : 0));
    struct tm tm;

    if (localtime_r(&seconds, &tm) == NULL || strftime(text, WHEN_SIZE, form, &tm) == 0) {
        snprintf(text, WHEN_SIZE, "-");
    }
}

void when_text(int64_t unix_ms, char text[WHEN_SIZE])
{
    format_time(unix_ms, "%Y-%m-%d %H:%M", text);
}

void when_clock(int64_t unix_ms, char text[WHEN_SIZE])
{
    format_time(unix_ms, "%H:%M:%S", text);
}

void when_age(int64_t unix_ms, int64_t now_ms, char text[WHEN_SIZE])
{
    int64_t age = now_ms > unix_ms ? now_ms - unix_ms : 0;

    /* A clock that is a minute late is not the future. */
    if (unix_ms - now_ms > MINUTE_MS || age / DAY_MS >= WEEK_DAYS) {
        format_time(unix_ms, "%Y-%m-%d", text);
    } else if (age < MINUTE_MS) {
        snprintf(text, WHEN_SIZE, "now");
    } else if (age < HOUR_MS) {
        snprintf(text, WHEN_SIZE, "%d min ago", (int)(age / MINUTE_MS));
    } else if (age < DAY_MS) {
        snprintf(text, WHEN_SIZE, "%d h ago", (int)(age / HOUR_MS));
    } else {
        snprintf(text, WHEN_SIZE, "%d d ago", (int)(age / DAY_MS));
    }
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t when_now_ms(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t when_steady_ms(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* --- progress ----------------------------------------------------------- */

#define FIRST_MS 500

#define AGAIN_MS 100

void progress_init(struct progress *progress, bool is_wanted)
{
    progress->is_on = is_wanted && isatty(STDERR_FILENO) == 1;
    progress->is_shown = false;
    progress->next_ms = progress->is_on ? when_steady_ms() + FIRST_MS : 0;
}

bool progress_is_due(struct progress *progress)
{
    int64_t now;

    if (!progress->is_on) {
        return false;
    }
    now = when_steady_ms();
    if (now < progress->next_ms) {
        return false;
    }
    progress->next_ms = now + AGAIN_MS;
    return true;
}

void progress_show(struct progress *progress, const char *what, const char *text)
{
    progress->is_shown = true;
    fprintf(stderr, "\r\033[K%s: %s", what, text);
    fflush(stderr);
}

void progress_update(struct progress *progress, const char *what, uint64_t done, uint64_t total,
                     const char *unit)
{
    if (!progress_is_due(progress)) {
        return;
    }
    progress->is_shown = true;
    if (total > 0) {
        fprintf(stderr, "\r\033[K%s: %llu of %llu %s", what, (unsigned long long)done,
                (unsigned long long)total, unit);
    } else {
        fprintf(stderr, "\r\033[K%s: %llu %s", what, (unsigned long long)done, unit);
    }
    fflush(stderr);
}

void progress_update_sizes(struct progress *progress, const char *what, uint64_t done,
                           uint64_t total)
{
    char text[2 * SIZE_TEXT + 8];
    char sizes[2][SIZE_TEXT];

    if (progress_is_due(progress)) {
        size_text(done, sizes[0]);
        size_text(total, sizes[1]);
        snprintf(text, sizeof(text), "%s of %s", sizes[0], sizes[1]);
        progress_show(progress, what, text);
    }
}

void progress_clear(struct progress *progress)
{
    if (progress->is_shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->is_shown = false;
    }
}
