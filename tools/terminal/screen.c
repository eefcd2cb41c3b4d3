/*
 * screen.c - keys, raw mode, and the alternate screen (screen.h).
 */
#include "tools/terminal/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
    ESC = 0x1B,
    SEQUENCE_MAX = 32 /* bytes of an escape sequence */
};

static enum key_kind control(uint8_t byte)
{
    switch (byte) {
    case 0x03:
        return KEY_INTERRUPT;
    case 0x08:
    case 0x7F:
        return KEY_BACKSPACE;
    case '\n': /* Ctrl-J */
    case 0x0E:
        return KEY_DOWN;
    case 0x0B:
    case 0x10:
        return KEY_UP;
    case '\r':
        return KEY_ENTER;
    case 0x15:
        return KEY_ERASE_LINE;
    case 0x17:
        return KEY_ERASE_WORD;
    default:
        return KEY_NONE;
    }
}

/* The key of CSI PARAMETERS FINAL, or SS3 FINAL. */
static enum key_kind sequence(const uint8_t *parameters, uint8_t final)
{
    switch (final) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'H':
        return KEY_HOME;
    case 'F':
        return KEY_END;
    case '~':
        return parameters[0] == '5'   ? KEY_PAGE_UP
               : parameters[0] == '6' ? KEY_PAGE_DOWN
               : parameters[0] == '1' ? KEY_HOME
               : parameters[0] == '4' ? KEY_END
                                      : KEY_NONE;
    default:
        return KEY_NONE;
    }
}

static size_t parse_escape(const uint8_t *data, size_t size, bool is_all, struct key *key)
{
    size_t at = 2;

    if (size == 1 || data[1] == ESC) {
        key->kind = KEY_ESCAPE;
        return size > 1 || is_all ? 1 : 0;
    }
    if (data[1] != '[' && data[1] != 'O') {
        return 2; /* Alt and a key */
    }
    while (at < size && at < SEQUENCE_MAX && (data[at] < 0x40 || data[at] > 0x7E)) {
        at++;
    }
    if (at == size && at < SEQUENCE_MAX) {
        return is_all ? size : 0;
    }
    key->kind = sequence(data + 2, data[at < size ? at : size - 1]);
    return at < size ? at + 1 : size;
}

size_t key_parse(const uint8_t *data, size_t size, bool is_all, struct key *key)
{
    size_t count;

    memset(key, 0, sizeof(*key));
    if (size == 0) {
        return 0;
    }
    if (data[0] == ESC) {
        return parse_escape(data, size, is_all, key);
    }
    count = utf8_size(data, size);
    if (count == 0) {
        /* The rest of a character, or no UTF-8. */
        return data[0] >= 0xC2 && size < 4 && !is_all ? 0 : 1;
    }
    if (data[0] < 0x20 || data[0] == 0x7F) {
        key->kind = control(data[0]);
    } else if (!utf8_is_control(data)) {
        key->kind = KEY_TEXT;
        memcpy(key->text, data, count);
    }
    return count;
}

/* --- the terminal ------------------------------------------------------- */

enum {
    ESCAPE_MS = 50, /* after ESC, until it is a key */
    ROWS_UNKNOWN = 24,
    COLUMNS_UNKNOWN = 80
};

/* The alternate screen; lines are cut, not wrapped; no cursor. */
static const char enter[] = "\033[?1049h\033[?7l\033[?25l";

static const char leave[] = "\033[?25h\033[?7h\033[?1049l";

/* Of the open screen, for signal handlers. */
static struct termios saved_mode;

static volatile sig_atomic_t saved_fd = -1;

static volatile sig_atomic_t was_resized;

/* Async-signal-safe. */
static void restore(void)
{
    int fd = saved_fd;
    int error = errno;

    if (fd < 0) {
        return;
    }
    saved_fd = -1;
    (void)!write(fd, leave, sizeof(leave) - 1);
    (void)tcsetattr(fd, TCSANOW, &saved_mode);
    errno = error;
}

static void on_end(int number)
{
    restore();
    (void)raise(number); /* the handler was reset */
}

static void on_resize(int number)
{
    (void)number;
    was_resized = 1;
}

/* SIGWINCH is blocked but during waits, so that none is missed. */
static void block_resize(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    (void)sigprocmask(how, &set, NULL);
}

static void set_handlers(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS};
    struct sigaction end = {.sa_handler = on_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    struct sigaction resize = {.sa_handler = on_resize};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)sigaction(ends[i], &end, NULL);
    }
    (void)sigaction(SIGWINCH, &resize, NULL);
    block_resize(SIG_BLOCK);
    (void)signal(SIGTSTP, SIG_IGN);
}

static void measure(struct screen *screen)
{
    struct winsize size;

    screen->rows = ROWS_UNKNOWN;
    screen->columns = COLUMNS_UNKNOWN;
    if (ioctl(screen->fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        screen->rows = size.ws_row;
        screen->columns = size.ws_col;
    }
}

bool screen_open(struct screen *screen, bool no_colour)
{
    static bool is_registered;
    struct termios mode;
    const char *off = getenv("NO_COLOR");
    int copy;

    memset(screen, 0, sizeof(*screen));
    screen->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (screen->fd < 0 || tcgetattr(screen->fd, &saved_mode) != 0) {
        if (screen->fd >= 0) {
            close(screen->fd);
        }
        return false;
    }
    copy = fcntl(screen->fd, F_DUPFD_CLOEXEC, 3);
    screen->file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (screen->file == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        close(screen->fd);
        return false;
    }
    (void)setvbuf(screen->file, NULL, _IOFBF, 65536);
    screen->has_colour = !no_colour && (off == NULL || off[0] == '\0');
    if (!is_registered) {
        is_registered = atexit(restore) == 0;
    }
    saved_fd = screen->fd;
    set_handlers();
    mode = saved_mode;
    mode.c_iflag &= (tcflag_t) ~(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    mode.c_lflag &= (tcflag_t) ~(ECHO | ICANON | IEXTEN | ISIG);
    mode.c_oflag &= (tcflag_t)~OPOST;
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    (void)tcsetattr(screen->fd, TCSANOW, &mode);
    (void)!write(screen->fd, enter, sizeof(enter) - 1);
    measure(screen);
    return true;
}

void screen_close(struct screen *screen)
{
    if (screen->file == NULL) {
        return;
    }
    (void)fclose(screen->file);
    screen->file = NULL;
    restore();
    close(screen->fd);
    /* A program that is run next inherits both. */
    (void)signal(SIGTSTP, SIG_DFL);
    block_resize(SIG_UNBLOCK);
}

/* --- keys --------------------------------------------------------------- */

/* Waits for input. Returns false, with the kind of key that ends the wait, when there is none. */
static bool wait_input(struct screen *screen, int timeout_ms, struct key *key)
{
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = timeout_ms % 1000 * 1000000L};
    fd_set input;
    sigset_t mask;
    ssize_t count;
    int ready;

    FD_ZERO(&input);
    FD_SET(screen->fd, &input);
    (void)sigprocmask(SIG_BLOCK, NULL, &mask);
    sigdelset(&mask, SIGWINCH);
    ready = pselect(screen->fd + 1, &input, NULL, NULL, timeout_ms < 0 ? NULL : &timeout, &mask);

    if (was_resized) {
        was_resized = 0;
        measure(screen);
        key->kind = KEY_RESIZE;
        return false;
    }
    if (ready <= 0) {
        return false;
    }
    count = read(screen->fd, screen->typed + screen->typed_count,
                 sizeof(screen->typed) - screen->typed_count);
    if (count <= 0 && (count == 0 || errno != EINTR)) {
        key->kind = KEY_CLOSED;
    }
    screen->typed_count += count > 0 ? (size_t)count : 0;
    return count > 0;
}

static bool take_key(struct screen *screen, bool is_all, struct key *key)
{
    size_t size = key_parse(screen->typed, screen->typed_count, is_all, key);

    screen->typed_count -= size;
    memmove(screen->typed, screen->typed + size, screen->typed_count);
    return size > 0;
}

bool screen_has_key(const struct screen *screen)
{
    struct pollfd input = {.fd = screen->fd, .events = POLLIN};

    return screen->typed_count > 0 || poll(&input, 1, 0) > 0;
}

void screen_read_key(struct screen *screen, int timeout_ms, struct key *key)
{
    memset(key, 0, sizeof(*key));
    if (take_key(screen, false, key) ||
        (screen->typed_count == 0 && !wait_input(screen, timeout_ms, key))) {
        return;
    }
    while (!take_key(screen, false, key)) {
        struct key end = {.kind = KEY_NONE};

        if (!wait_input(screen, ESCAPE_MS, &end)) {
            if (end.kind != KEY_NONE || !take_key(screen, true, key)) {
                *key = end;
            }
            return;
        }
    }
}

/* --- frames ------------------------------------------------------------- */

void screen_begin(struct screen *screen)
{
    screen->line = 0;
    fputs("\033[H", screen->file);
}

bool screen_has_room(const struct screen *screen)
{
    return screen->line < screen->rows;
}

void screen_end_line(struct screen *screen)
{
    screen->line++;
    fputs(screen->line < screen->rows ? "\033[K\r\n" : "\033[K", screen->file);
}

void screen_end(struct screen *screen)
{
    if (screen->line < screen->rows) {
        fputs("\033[J", screen->file);
    }
    (void)fflush(screen->file);
}

void screen_put_style(const struct screen *screen, enum terminal_style style)
{
    if (screen->has_colour) {
        fputs(terminal_style_code(style), screen->file);
    }
}

void screen_put_inverse(const struct screen *screen, bool is_on)
{
    fputs(is_on ? "\033[7m" : "\033[27m", screen->file);
}
