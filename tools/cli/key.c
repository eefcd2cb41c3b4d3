/*
 * key.c - reads and makes keys of encrypted stores (key.h).
 */
#include "tools/cli/key.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "agentwal/keys.h"
#include "engine/base/command.h"
#include "engine/base/descriptor.h"
#include "engine/base/system.h"

enum {
    SECRET_MAX = 4096,
    KEY_SIZE = 32,      /* random bytes of a key file */
    RECOVERY_SIZE = 20, /* and of a recovery code */
    COMMAND_TIMEOUT_MS = 30 * 1000
};

/* --- memory --------------------------------------------------------------- */

struct secret {
    struct secret *next;
    struct wal_key key;
    uint8_t bytes[SECRET_MAX + 2]; /* one more than is permitted, and a NUL */
};

static struct secret *secrets;

static void clear_secrets(void)
{
    while (secrets != NULL) {
        struct secret *secret = secrets;

        secrets = secret->next;
        wal__system_wipe(secret, sizeof(*secret));
        wal__system_secret_free(secret, sizeof(*secret));
    }
}

static struct secret *make_secret(uint32_t kind)
{
    static const struct rlimit none = {0, 0};
    struct secret *secret = wal__system_secret_alloc(sizeof(*secret));

    if (secret == NULL) {
        fputs("agentwal: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    /* What is read of the store is in memory too. */
    (void)setrlimit(RLIMIT_CORE, &none);
    if (secrets == NULL) {
        (void)atexit(clear_secrets);
    }
    secret->next = secrets;
    secrets = secret;
    secret->key = (struct wal_key)WAL_INIT(wal_key);
    secret->key.kind = kind;
    secret->key.bytes.data = secret->bytes;
    return secret;
}

static _Noreturn void fail_key(const struct cli *cli, const char *what, const char *why,
                               const char *detail)
{
    cli_end(cli, cli_error_status(cli, WAL_EKEY, what, "%s%s%s", why, detail[0] == '\0' ? "" : ": ",
                                  detail));
}

/* Takes the end of a line off, and checks the size. */
static const struct wal_key *finish(const struct cli *cli, const char *what, struct secret *secret,
                                    size_t size)
{
    if (size > 0 && secret->bytes[size - 1] == '\n') {
        size--;
        size -= size > 0 && secret->bytes[size - 1] == '\r';
    }
    if (size == 0) {
        fail_key(cli, what, "it is empty", "");
    }
    if (size > SECRET_MAX) {
        fail_key(cli, what, "it is longer than 4096 bytes", "");
    }
    secret->key.bytes.size = size;
    return &secret->key;
}

/* --- a file --------------------------------------------------------------- */

/* Reads until the end of the file, or a line of it; at most one byte more than is permitted. */
static size_t read_bytes(const struct cli *cli, const char *what, int fd, bool reads_line,
                         struct secret *secret)
{
    const size_t step = reads_line ? 1 : SECRET_MAX + 1;
    size_t size = 0;
    ssize_t got = 1;

    while (got > 0 && size <= SECRET_MAX &&
           !(reads_line && size > 0 && secret->bytes[size - 1] == '\n')) {
        const size_t room = SECRET_MAX + 1 - size;

        WAL__RETRY_EINTR(got, read(fd, secret->bytes + size, step < room ? step : room));
        if (got < 0) {
            fail_key(cli, what, "it cannot be read", strerror(errno));
        }
        size += (size_t)got;
    }
    return size;
}

static const struct wal_key *read_file(const struct cli *cli, const char *path)
{
    struct secret *secret = make_secret(WAL_KEY_SECRET);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    size_t size;

    if (fd < 0) {
        fail_key(cli, path, "the key file cannot be opened", strerror(errno));
    }
    size = read_bytes(cli, path, fd, false, secret);
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
        cli_note(cli, path, "warning: other users may read this key; chmod 600 prevents that");
    }
    (void)close(fd);
    return finish(cli, path, secret, size);
}

/* Writes the digits of random bytes, `bits` of them each. */
static void encode(const uint8_t *bytes, size_t size, unsigned bits, const char *digits, char *text)
{
    unsigned left = 0;
    uint32_t word = 0;

    for (size_t i = 0; i < size; i++) {
        word = word << 8 | bytes[i];
        for (left += 8; left >= bits; left -= bits) {
            *text++ = digits[word >> (left - bits) & ((1U << bits) - 1)];
        }
    }
    if (left > 0) {
        *text++ = digits[word << (bits - left) & ((1U << bits) - 1)];
    }
    *text = '\0';
}

/* Writes a random key to a new file, in base64. */
static void make_file(const struct cli *cli, const char *path, int fd)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct secret *random = make_secret(WAL_KEY_SECRET);
    struct secret *text = make_secret(WAL_KEY_SECRET);
    const char *slash = strrchr(path, '/');
    char *directory =
        slash == NULL ? cli_copy_text(".", 1) : cli_copy_text(path, (size_t)(slash - path) + 1);
    const int parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t size;

    wal__system_random(random->bytes, KEY_SIZE);
    encode(random->bytes, KEY_SIZE, 6, digits, (char *)text->bytes);
    size = strlen((char *)text->bytes);
    memcpy(text->bytes + size, "=\n", 2);
    size += 2;
    if (write(fd, text->bytes, size) != (ssize_t)size || wal__system_sync_whole(fd) != 0 ||
        parent < 0 || wal__system_sync_whole(parent) != 0) {
        const int error = errno;

        (void)unlink(path);
        cli_fail(cli, CLI_FAILED, path, "the key file cannot be written: %s", strerror(error));
    }
    (void)close(parent);
    free(directory);
    cli_note(cli, path, "made this key file; without it the store cannot be read: keep a copy");
}

static const struct wal_key *make_or_read_file(const struct cli *cli, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno != EEXIST) {
        cli_fail(cli, CLI_FAILED, path, "the key file cannot be made: %s", strerror(errno));
    }
    if (fd >= 0) {
        make_file(cli, path, fd);
        (void)close(fd);
    }
    return read_file(cli, path);
}

/* --- a command, the keyring ------------------------------------------------ */

static const struct wal_key *run_command(const struct cli *cli, const char *command)
{
    static const char what[] = "key command";
    struct secret *secret = make_secret(WAL_KEY_SECRET);
    struct wal_error error = CLI_ERROR_INIT;
    const uint8_t *newline;
    size_t size = 0;

    fflush(stdout);
    if (wal__command_run("it", command, COMMAND_TIMEOUT_MS, secret->bytes, sizeof(secret->bytes),
                         &size, &error) != WAL_OK) {
        fail_key(cli, what, error.text, "");
    }
    newline = memchr(secret->bytes, '\n', size);
    if (newline != NULL && newline + 1 != secret->bytes + size) {
        fail_key(cli, what, "it printed more than one line", "");
    }
    if (size == 0 || newline == secret->bytes) {
        fail_key(cli, what, "it printed nothing", "");
    }
    return finish(cli, what, secret, size);
}

static const struct wal_key *read_keyring(const struct cli *cli, const char *name)
{
    struct secret *secret = make_secret(WAL_KEY_SECRET);
    const ssize_t size = wal__system_keyring_read(name, secret->bytes, SECRET_MAX + 1);

    if (size < 0 && errno == ENOTSUP) {
        fail_key(cli, "--key-keyring", "this system has no keyring that agentwal can read", "");
    }
    if (size < 0) {
        fail_key(cli, name,
                 "the keyring has no such key of type user (keyctl padd user NAME @u adds one)",
                 strerror(errno));
    }
    if (size == 0 || size > SECRET_MAX) {
        fail_key(cli, name, size == 0 ? "it is empty" : "it is longer than 4096 bytes", "");
    }
    secret->key.bytes.size = (uint64_t)size;
    return &secret->key;
}

/* --- a passphrase, a recovery code ----------------------------------------- */

/* The mode of the terminal, for signal handlers; valid while the descriptor is. */
static struct termios saved_mode;

static volatile sig_atomic_t saved_fd = -1;

static void restore_echo(void)
{
    const int fd = saved_fd;

    if (fd >= 0) {
        saved_fd = -1;
        (void)tcsetattr(fd, TCSAFLUSH, &saved_mode);
    }
}

static void on_signal(int number)
{
    restore_echo();
    (void)raise(number); /* the handler was reset */
}

/* Asks for a line, which the terminal does not show. */
static size_t ask(const struct cli *cli, const char *question, struct secret *secret)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before[sizeof(numbers) / sizeof(numbers[0])];
    const int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    struct termios silent;
    size_t size;

    if (fd < 0 || tcgetattr(fd, &saved_mode) != 0) {
        fail_key(cli, question,
                 "there is no terminal to ask for it; name the key: --key-file, --key-command, "
                 "--key-keyring or --passphrase-fd",
                 "");
    }
    silent = saved_mode;
    silent.c_lflag &= (tcflag_t) ~(ECHO | ECHOE | ECHOK | ECHONL);
    silent.c_lflag |= ICANON | ISIG;
    saved_fd = fd;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)sigaction(numbers[i], &action, &before[i]);
    }
    (void)tcsetattr(fd, TCSAFLUSH, &silent);
    (void)dprintf(fd, "%s: ", question);
    size = read_bytes(cli, question, fd, true, secret);
    restore_echo();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)sigaction(numbers[i], &before[i], NULL);
    }
    (void)dprintf(fd, "\n");
    (void)close(fd);
    return size;
}

/* Reads a line from a descriptor, or asks for it; twice when it is new. */
static struct secret *read_line(const struct cli *cli, const char *fd_text, const char *question,
                                bool is_new, size_t *size)
{
    struct secret *secret = make_secret(WAL_KEY_PASSPHRASE);
    struct secret *again;
    uint64_t fd = 0;

    if (fd_text != NULL) {
        cli_parse_number(cli, "--passphrase-fd", fd_text, INT32_MAX, &fd);
        *size = read_bytes(cli, question, (int)fd, true, secret);
        return secret;
    }
    *size = ask(cli, question, secret);
    if (is_new) {
        again = make_secret(WAL_KEY_PASSPHRASE);
        if (ask(cli, "Again", again) != *size || memcmp(again->bytes, secret->bytes, *size) != 0) {
            fail_key(cli, question, "the two are not the same", "");
        }
    }
    return secret;
}

static const char code_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* Where in code_digits a digit is; 0, 1 and 8, which are not there, count as the letters that look
 * like them. NULL: it is no digit. */
static const char *find_digit(uint8_t byte)
{
    const int digit = toupper(byte);

    return strchr(code_digits, digit == '0'   ? 'O'
                               : digit == '1' ? 'I'
                               : digit == '8' ? 'B'
                                              : digit);
}

/* Decodes a recovery code, in which blanks and dashes do not count. */
static const struct wal_key *decode_code(const struct cli *cli, const struct secret *text,
                                         size_t size)
{
    struct secret *secret = make_secret(WAL_KEY_SECRET);
    bool is_valid = true;
    uint32_t word = 0;
    unsigned left = 0;
    size_t count = 0;

    for (size_t i = 0; i < size && is_valid; i++) {
        const char *digit = find_digit(text->bytes[i]);

        if (strchr(" -\t\r\n", text->bytes[i]) != NULL) {
            continue;
        }
        is_valid = digit != NULL && count < RECOVERY_SIZE;
        if (is_valid) {
            word = word << 5 | (uint32_t)(digit - code_digits);
            left += 5;
        }
        if (left >= 8) {
            left -= 8;
            secret->bytes[count++] = (uint8_t)(word >> left);
        }
    }
    if (!is_valid || count != RECOVERY_SIZE) {
        fail_key(cli, "Recovery code", "it has 32 letters and digits 2 to 7", "");
    }
    secret->key.bytes.size = RECOVERY_SIZE;
    return &secret->key;
}

static const struct wal_key *make_code(char code[CLI_RECOVERY_CODE_SIZE])
{
    struct secret *secret = make_secret(WAL_KEY_SECRET);
    struct secret *digits = make_secret(WAL_KEY_SECRET);
    char *text = (char *)digits->bytes;

    wal__system_random(secret->bytes, RECOVERY_SIZE);
    secret->key.bytes.size = RECOVERY_SIZE;
    encode(secret->bytes, RECOVERY_SIZE, 5, code_digits, text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        *code = text[i];
        code += 1;
        if (i % 4 == 3 && text[i + 1] != '\0') {
            *code++ = '-';
        }
    }
    *code = '\0';
    return &secret->key;
}

/* --- which one ------------------------------------------------------------- */

bool cli_key_is_given(const struct cli_key_options *options)
{
    return options->file != NULL || options->command != NULL || options->keyring != NULL ||
           options->fd != NULL || options->is_passphrase || options->is_code;
}

/* Refuses two of them; a code may come from a descriptor. */
static void check_one(const struct cli *cli, const struct cli_key_options *options)
{
    const int count = (options->file != NULL) + (options->command != NULL) +
                      (options->keyring != NULL) +
                      (options->fd != NULL || options->is_passphrase || options->is_code);

    if (count > 1) {
        cli_fail(cli, CLI_USAGE, "the key", "more than one is named");
    }
}

static const struct wal_key *read_named(const struct cli *cli,
                                        const struct cli_key_options *options, bool is_new)
{
    const char *question = options->is_code ? "Recovery code" : "Passphrase";
    struct secret *line;
    size_t size = 0;

    check_one(cli, options);
    if (options->file != NULL) {
        return is_new ? make_or_read_file(cli, options->file) : read_file(cli, options->file);
    }
    if (options->command != NULL) {
        return run_command(cli, options->command);
    }
    if (options->keyring != NULL) {
        return read_keyring(cli, options->keyring);
    }
    line = read_line(cli, options->fd, question, is_new && !options->is_code, &size);
    return options->is_code ? decode_code(cli, line, size) : finish(cli, question, line, size);
}

/* What the command line names, or else the environment. */
static struct cli_key_options with_environment(const struct cli_key_options *options)
{
    return cli_key_is_given(options)
               ? *options
               : (struct cli_key_options){.file = getenv("AGENTWAL_KEY_FILE"),
                                          .command = getenv("AGENTWAL_KEY_COMMAND")};
}

const struct wal_key *cli_key_read(const struct cli *cli, const struct cli_key_options *options)
{
    const struct cli_key_options named = with_environment(options);

    return cli_key_is_given(&named) ? read_named(cli, &named, false) : NULL;
}

const struct wal_key *cli_key_make(const struct cli *cli, const struct cli_key_options *options,
                                   const char *label, char code[CLI_RECOVERY_CODE_SIZE])
{
    const struct cli_key_options named = with_environment(options);
    const char *kind = named.file != NULL      ? "key file"
                       : named.command != NULL ? "command"
                       : named.keyring != NULL ? "keyring"
                       : named.is_code         ? "recovery code"
                                               : "passphrase";
    const bool makes_code = named.is_code && named.fd == NULL;
    const struct wal_key *key = makes_code ? make_code(code) : read_named(cli, &named, true);

    for (struct secret *secret = secrets; secret != NULL; secret = secret->next) {
        if (&secret->key == key) {
            secret->key.label = cli_slice(label != NULL ? label : kind);
        }
    }
    return key;
}

/* --- the key of a store ----------------------------------------------------- */

/* What of the keys of a store is looked for. */
static int32_t see_passphrase(void *ctx, const struct wal_store_key *key)
{
    bool *has_passphrase = ctx;

    *has_passphrase |= key->kind == WAL_KEY_PASSPHRASE;
    return 0;
}

static bool has_keys(const char *path)
{
    char *keys = cli_format("%s/KEYS", path);
    const bool has = access(keys, F_OK) == 0;

    free(keys);
    return has;
}

bool cli_use_key(const struct cli *cli, const char *path, struct wal_open_options *options)
{
    static const struct wal_key *used; /* of the store that was opened first */
    bool has_passphrase = false;
    enum wal_status status;

    if (cli_is_missing(path)) {
        options->key = cli->new_key != NULL ? cli->new_key : used;
        return false;
    }
    status = wal_store_list_keys(path, see_passphrase, &has_passphrase, NULL);
    if (status == WAL_ENOTFOUND || cli->makes_store) {
        return status == WAL_ENOTFOUND;
    }
    /* Of a damaged store the check decrypts what it can; opening it says what is wrong. */
    if (status != WAL_OK && !has_keys(path)) {
        return false;
    }
    if (used == NULL) {
        used = cli_key_read(cli, &cli->key);
    }
    if (used == NULL && has_passphrase && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        const struct cli_key_options asked = {.is_passphrase = true};

        used = cli_key_read(cli, &asked);
    }
    options->key = used;
    return false;
}
