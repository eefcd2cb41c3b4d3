/*
 * resume.c - commands of clients (resume.h).
 *
 * Invariant: every text of a session is quoted as sh, its kin and fish read it,
 * or consists of characters that no shell treats specially; a directory with
 * characters that a terminal obeys is left out.
 */
#include "tools/shown/resume.h"

#include <string.h>

struct writer {
    char *text;
    size_t size;
};

static void put(struct writer *writer, const char *text, size_t size)
{
    size_t room = SHOWN_RESUME_SIZE - 1 - writer->size;

    size = size < room ? size : room;
    memcpy(writer->text + writer->size, text, size);
    writer->size += size;
    writer->text[writer->size] = '\0';
}

static void put_literal(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static bool is_plain(struct wal_slice text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._/~+@:,=-";
    const char *at = text.data;

    /* zsh replaces a word that begins with '=' by the path of a command. */
    if (text.size == 0 || at[0] == '-' || at[0] == '~' || at[0] == '=') {
        return false;
    }
    for (uint64_t i = 0; i < text.size; i++) {
        if (at[i] == '\0' || strchr(plain, at[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* Whether a terminal obeys a character, as it does when it is pasted. */
static bool has_control(struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t step;

    for (uint64_t at = 0; at < text.size; at += step) {
        step = utf8_size(data + at, (size_t)(text.size - at));
        if (step == 0 || utf8_is_control(data + at)) {
            return true;
        }
    }
    return false;
}

/* Writes a text as one word of a shell, which is no option. Backslashes are
 * outside of the single quotes: fish takes one inside as an escape of what
 * follows, sh does not. */
static void put_word(struct writer *writer, struct wal_slice text)
{
    const char *at = text.data;

    if (text.size > 0 && at[0] == '-') {
        put_literal(writer, "-- ");
    }
    if (is_plain(text)) {
        put(writer, at, (size_t)text.size);
        return;
    }
    put_literal(writer, "'");
    for (uint64_t i = 0; i < text.size; i++) {
        if (at[i] == '\'' || at[i] == '\\') {
            const char escaped[] = {'\'', '\\', at[i], '\''};

            put(writer, escaped, sizeof(escaped));
        } else {
            put(writer, &at[i], 1);
        }
    }
    put_literal(writer, "'");
}

static bool has_dialect(struct wal_slice source, const char *name)
{
    size_t size = strlen(name);

    return source.size > size && memcmp(source.data, name, size) == 0 &&
           ((const char *)source.data)[size] == ' ';
}

/* Whether the client knows the session by its id: it has none with a number,
 * and none without a text. */
static bool is_client_id(struct wal_slice id)
{
    return is_plain(id) && memchr(id.data, '~', (size_t)id.size) == NULL;
}

void shown_resume_text(const struct wal_session_info *info,
                       char text[SHOWN_RESUME_SIZE])
{
    static const struct {
        const char *dialect;
        const char *command;
    } clients[] = {
        {"claude", "claude --resume "},
        {"codex", "codex resume "},
        {"pi", "pi --session "},
        {"opencode", "opencode -s "},
    };
    struct writer writer = {.text = text};
    const char *command = NULL;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        if (has_dialect(info->source, clients[i].dialect) &&
            is_client_id(info->id)) {
            command = clients[i].command;
        }
    }
    if (command == NULL) {
        put_literal(&writer, "agentwal cat --text ");
    } else {
        if (info->cwd.size > 0 && !has_control(info->cwd)) {
            put_literal(&writer, "cd ");
            put_word(&writer, info->cwd);
            put_literal(&writer, " && ");
        }
        put_literal(&writer, command);
    }
    put_word(&writer, info->id);
}
