/*
 * first_text.c - the beginning of a user's message (first_text.h).
 *
 * One pass over the tokens. A longer payload is truncated to WAL__FIRST_TEXT_SCAN_MAX bytes: the
 * truncation may cut a long text or an image; what precedes it counts.
 *
 * Invariant: `text` is what is between the quotes of a string, or up to the truncation, and valid.
 */
#include "format/payload/first_text.h"

#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"

/* An object that may be the message. */
struct message {
    struct wal__json_token role; /* kind NONE if it is not a string */
    struct wal__json_span text;  /* characters without quotes; data is NULL: none */
    struct wal__json_span part;  /* the same of an object without a type in `content` */
    struct wal__json_span input; /* the same of the prompt of a turn */
    bool is_of_client;           /* its source is not a person */
};

struct reader {
    struct wal__json_scan scan;
    const uint8_t *end;
    bool is_truncated;
    bool is_meta;
    bool is_sidechain;
    struct wal__json_token type;  /* of the payload; kind NONE if it is not a string */
    struct wal__json_span source; /* the same; or empty */
};

/*
 * Returns the next token. A string value that the truncation cuts is returned up to there, without
 * its closing quote; the next call fails.
 */
static enum wal__json_status next_token(struct reader *reader, struct wal__json_token *token)
{
    const uint8_t *at = reader->scan.at;

    enum wal__json_status status = wal__json_scan_next(&reader->scan, token);
    if (status != WAL__JSON_TRUNCATED || !reader->is_truncated) {
        return status;
    }
    while (at < reader->end && *at != '"') {
        at++;
    }
    if (at == reader->end || reader->scan.at != reader->end) {
        return status;
    }
    /* A truncated key is a string too; no caller uses it. */
    WAL__ASSERT(at >= reader->scan.begin && at < reader->end);
    *token = (struct wal__json_token){.kind = WAL__JSON_STRING};
    token->span.data = at;
    token->span.size = (size_t)(reader->end - at);
    reader->end = at;
    return WAL__JSON_OK;
}

/* Skips the rest of the value that begins with `token`. */
static enum wal__json_status skip_rest(struct reader *reader, const struct wal__json_token *token)
{
    enum wal__json_status status = WAL__JSON_OK;
    struct wal__json_token part;

    while (status == WAL__JSON_OK && reader->scan.depth > token->depth) {
        status = wal__json_scan_next(&reader->scan, &part);
    }
    return status;
}

/* The characters of a string, which the truncation may have cut. */
static struct wal__json_span characters_of(const struct reader *reader,
                                           const struct wal__json_token *token)
{
    size_t quotes = token->span.data < reader->end ? 2 : 1;

    return token->kind == WAL__JSON_STRING
               ? (struct wal__json_span){token->span.data + 1, token->span.size - quotes}
               : (struct wal__json_span){NULL, 0};
}

/* Unicode's white space and control characters. */
static bool is_space_or_control(uint32_t code_point)
{
    return code_point <= ' ' || (code_point >= 0x7f && code_point <= 0xa0) ||
           code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200a) ||
           code_point == 0x2028 || code_point == 0x2029 || code_point == 0x202f ||
           code_point == 0x205f || code_point == 0x3000;
}

static size_t copy_text(struct wal__json_span text, uint8_t out[WAL__FIRST_TEXT_MAX])
{
    const uint8_t *at = text.data;
    const uint8_t *end = at + text.size;
    size_t size = 0;
    bool has_gap = false;
    uint32_t code_point;

    while (at < end && wal__json_character_read(&at, end, &code_point)) {
        uint8_t character[4];
        if (is_space_or_control(code_point)) {
            has_gap = size > 0;
            continue;
        }
        size_t width = wal__json_character_write(code_point, character);
        if (size + has_gap + width > WAL__FIRST_TEXT_MAX) {
            break;
        }
        if (has_gap) {
            out[size++] = ' ';
        }
        WAL__ASSERT(size + width <= WAL__FIRST_TEXT_MAX);
        memcpy(out + size, character, width);
        size += width;
        has_gap = false;
    }
    return size;
}

/* --- what a client writes into a user's text ----------------------------- */

static const struct {
    const char *name;
    enum wal__user_tag tag;
    bool is_alone; /* only where nothing else is in the text: people write this tag too */
} tags[] = {
    {"command-name", WAL__TAG_COMMAND, false},
    {"command-args", WAL__TAG_ARGUMENTS, false},
    {"command-message", WAL__TAG_REPEATED, false},
    {"bash-input", WAL__TAG_COMMAND, false},
    {"user_query", WAL__TAG_WORDS, false},
    {"USER_REQUEST", WAL__TAG_WORDS, false},
    {"user-memory-input", WAL__TAG_WORDS, false},
    {"bash-stdout", WAL__TAG_NOTE, false},
    {"bash-stderr", WAL__TAG_NOTE, false},
    {"local-command-stdout", WAL__TAG_NOTE, false},
    {"local-command-stderr", WAL__TAG_NOTE, false},
    {"local-command-caveat", WAL__TAG_NOTE, false},
    {"system-reminder", WAL__TAG_NOTE, false},
    {"task-notification", WAL__TAG_NOTE, false},
    {"ide_opened_file", WAL__TAG_NOTE, false},
    {"ide_selection", WAL__TAG_NOTE, false},
    {"ide_diagnostics", WAL__TAG_NOTE, false},
    {"environment_context", WAL__TAG_NOTE, false},
    {"user_instructions", WAL__TAG_NOTE, false},
    {"permissions instructions", WAL__TAG_NOTE, false},
    {"collaboration_mode", WAL__TAG_NOTE, false},
    {"user_shell_command", WAL__TAG_NOTE, false},
    {"turn_aborted", WAL__TAG_NOTE, false},
    {"subagent_notification", WAL__TAG_NOTE, false},
    {"INSTRUCTIONS", WAL__TAG_NOTE, false},
    {"skill", WAL__TAG_NOTE, false},
    {"session_context", WAL__TAG_NOTE, false},
    {"hook_context", WAL__TAG_NOTE, false},
    {"user_info", WAL__TAG_NOTE, false},
    {"system_reminder", WAL__TAG_NOTE, false},
    {"system_notification", WAL__TAG_NOTE, false},
    {"attached_files", WAL__TAG_NOTE, false},
    {"open_and_recently_viewed_files", WAL__TAG_NOTE, false},
    {"manually_attached_skills", WAL__TAG_NOTE, false},
    {"agent_transcripts", WAL__TAG_NOTE, false},
    {"context", WAL__TAG_NOTE, true},
    {"ADDITIONAL_METADATA", WAL__TAG_NOTE, false},
    {"USER_SETTINGS_CHANGE", WAL__TAG_NOTE, false},
    {"EPHEMERAL_MESSAGE", WAL__TAG_NOTE, false},
};

enum { TAG_COUNT = sizeof(tags) / sizeof(tags[0]) };

/* Size of an escape of white space, or of a space, at the end of the text; 0: there is none. */
static size_t space_before(struct wal__json_span text)
{
    const uint8_t *last = text.data + text.size - 1;

    if (text.size == 0 || *last == ' ') {
        return text.size == 0 ? 0 : 1;
    }
    /* Not the end of an escaped backslash. */
    return text.size > 1 && last[-1] == '\\' && strchr("nrt", *last) != NULL &&
                   (text.size == 2 || last[-2] != '\\')
               ? 2
               : 0;
}

struct wal__json_span wal__user_trim(struct wal__json_span text)
{
    for (bool is_space = true; is_space && text.size > 0;) {
        bool is_escape =
            text.size > 1 && text.data[0] == '\\' && strchr("nrt", text.data[1]) != NULL;

        is_space = is_escape || text.data[0] == ' ';
        text.data += is_escape ? 2 : is_space ? 1 : 0;
        text.size -= is_escape ? 2 : is_space ? 1 : 0;
    }
    for (size_t size; (size = space_before(text)) > 0;) {
        text.size -= size;
    }
    return text;
}

/* Returns the size of the name of a tag at the beginning of the text; 0: there is none. */
static size_t tag_name(struct wal__json_span text)
{
    const uint8_t *end = text.size > 2 && text.data[0] == '<'
                             ? memchr(text.data, '>', text.size < 64 ? text.size : 64)
                             : NULL;
    size_t size = end != NULL ? (size_t)(end - text.data) - 1 : 0;

    for (size_t i = 0; i < size; i++) {
        uint8_t byte = text.data[1 + i];
        bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';

        if (!is_letter && (i == 0 || strchr("0123456789_- ", byte) == NULL)) {
            return 0;
        }
    }
    return size;
}

/* Returns the characters before the end tag of that name, the last one if `is_last`; data is NULL
 * if there is none. */
static struct wal__json_span before_end(struct wal__json_span text, const uint8_t *name,
                                        size_t size, bool is_last)
{
    struct wal__json_span found = {NULL, 0};
    const uint8_t *end = text.data + text.size;
    const uint8_t *at = text.data;

    while ((found.data == NULL || is_last) &&
           (at = memmem(at, (size_t)(end - at), "</", 2)) != NULL) {
        if ((size_t)(end - at) >= size + 3 && memcmp(at + 2, name, size) == 0 &&
            at[size + 2] == '>') {
            found = (struct wal__json_span){text.data, (size_t)(at - text.data)};
        }
        at += 2;
    }
    return found;
}

/* Removes a note at the end of a person's words, in the tag of the words. */
static struct wal__json_span without_note(struct wal__json_span words)
{
    for (size_t i = 0; i < TAG_COUNT; i++) {
        const size_t size = strlen(tags[i].name);
        const uint8_t *last = words.data + words.size - size - 1;
        const uint8_t *at = words.data;
        const uint8_t *begin = NULL;

        if (tags[i].tag != WAL__TAG_NOTE || words.size < 2 * size + 5 || last[size] != '>' ||
            memcmp(last, tags[i].name, size) != 0 || memcmp(last - 2, "</", 2) != 0) {
            continue;
        }
        while (begin == NULL && (at = memchr(at, '<', (size_t)(last - 2 - at))) != NULL) {
            begin = at[size + 1] == '>' && memcmp(at + 1, tags[i].name, size) == 0 ? at : NULL;
            at++;
        }
        if (begin != NULL) {
            words.size = (size_t)(begin - words.data);
            return wal__user_trim(words);
        }
    }
    return words;
}

enum wal__user_tag wal__user_tag_read(struct wal__json_span *text, struct wal__json_span *inner)
{
    static const char query[] = "</user_query>";
    const struct wal__json_span all = wal__user_trim(*text);
    const size_t size = tag_name(all);
    const bool has_query =
        all.size >= sizeof(query) &&
        memcmp(all.data + all.size - sizeof(query) + 1, query, sizeof(query) - 1) == 0;
    enum wal__user_tag tag = has_query ? WAL__TAG_NOTE : WAL__TAG_NONE;
    bool is_alone = false;
    struct wal__json_span found;

    if (size == 0) {
        return WAL__TAG_NONE;
    }
    for (size_t i = 0; i < TAG_COUNT; i++) {
        if (strlen(tags[i].name) == size && memcmp(tags[i].name, all.data + 1, size) == 0) {
            tag = tags[i].tag;
            is_alone = tags[i].is_alone && !has_query;
        }
    }
    if (tag == WAL__TAG_NONE) {
        return WAL__TAG_NONE;
    }
    found = before_end((struct wal__json_span){all.data + size + 2, all.size - size - 2},
                       all.data + 1, size, tag == WAL__TAG_WORDS);
    if (found.data == NULL ||
        (is_alone && found.data + found.size + size + 3 < all.data + all.size)) {
        return WAL__TAG_NONE;
    }
    *inner = wal__user_trim(found);
    if (tag == WAL__TAG_WORDS) {
        *inner = without_note(*inner);
    }
    text->data = found.data + found.size + size + 3;
    text->size = (size_t)(all.data + all.size - text->data);
    return tag;
}

/* Whether a text begins with what a client adds to a user's message, or sends as one. */
static bool is_injected(struct wal__json_span text)
{
    static const char *const beginnings[] = {
        "<local-command-",
        "<skill-context",
        "# AGENTS.md",
        "# CLAUDE.md",
        "Caveat: The messages below were generated by the user while running",
        "[Request interrupted by user",
    };
    const size_t name = tag_name(wal__user_trim(text)); /* of a tag without an end */
    uint8_t out[WAL__FIRST_TEXT_MAX];
    size_t size = copy_text(text, out);

    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        size_t prefix_size = strlen(beginnings[i]);
        if (size >= prefix_size && memcmp(out, beginnings[i], prefix_size) == 0) {
            return true;
        }
    }
    for (size_t i = 0; name > 0 && i < TAG_COUNT; i++) {
        if (tags[i].tag != WAL__TAG_WORDS && !tags[i].is_alone && strlen(tags[i].name) == name &&
            memcmp(out + 1, tags[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool wal__user_words(struct wal__json_span text, struct wal__json_span *words)
{
    struct wal__json_span rest = text;
    struct wal__json_span inner;
    enum wal__user_tag tag;

    while ((tag = wal__user_tag_read(&rest, &inner)) == WAL__TAG_NOTE) {
    }
    *words = tag == WAL__TAG_WORDS ? inner : rest.size < text.size ? wal__user_trim(rest) : text;
    return (tag == WAL__TAG_NONE || tag == WAL__TAG_WORDS) && words->size > 0 &&
           !is_injected(*words);
}

enum wal__step_author wal__step_author(struct wal__json_span source, struct wal__json_span type)
{
    static const struct {
        const char *source;
        const char *type; /* of what the author says itself */
        enum wal__step_author author;
        enum wal__step_author other; /* of steps of another type */
    } authors[] = {
        {"USER_EXPLICIT", "USER_INPUT", WAL__STEP_PERSON, WAL__STEP_CLIENT},
        {"user", "USER_INPUT", WAL__STEP_PERSON, WAL__STEP_CLIENT},
        {"MODEL", "PLANNER_RESPONSE", WAL__STEP_MODEL, WAL__STEP_TOOL},
        {"planner", "PLANNER_RESPONSE", WAL__STEP_MODEL, WAL__STEP_TOOL},
        {"SYSTEM", "", WAL__STEP_CLIENT, WAL__STEP_CLIENT},
        {"USER_IMPLICIT", "", WAL__STEP_CLIENT, WAL__STEP_CLIENT},
    };

    for (size_t i = 0; i < sizeof(authors) / sizeof(authors[0]); i++) {
        if (source.size > 0 && wal__json_string_is(source, authors[i].source)) {
            return type.size == 0 || wal__json_string_is(type, authors[i].type) ? authors[i].author
                                                                                : authors[i].other;
        }
    }
    return WAL__STEP_UNKNOWN;
}

bool wal__first_text_is_injected(struct wal__json_span string)
{
    return string.size > 2 &&
           is_injected((struct wal__json_span){string.data + 1, string.size - 2});
}

bool wal__first_text_is_client_source(struct wal__json_span string)
{
    static const char *const sources[] = {"skill-",   "agent-",    "system",
                                          "command-", "schedule-", "jit-"};

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        size_t size = strlen(sources[i]);
        if (string.size > size + 1 && memcmp(string.data + 1, sources[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads the next member of the open object, but of its value only the beginning. False: there is
 * none, or *status is a failure. */
static bool next_member(struct reader *reader, struct wal__json_token *key,
                        struct wal__json_token *value, enum wal__json_status *status)
{
    if (*status == WAL__JSON_OK) {
        *status = next_token(reader, key);
    }
    if (*status != WAL__JSON_OK || key->kind != WAL__JSON_KEY) {
        return false;
    }
    *status = next_token(reader, value);
    return *status == WAL__JSON_OK;
}

/* Reads the text of the open object: *text if it is a text block, *part if it has no type and is no
 * thought. */
static enum wal__json_status read_block(struct reader *reader, struct wal__json_span *text,
                                        struct wal__json_span *part)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};
    struct wal__json_span candidate = {NULL, 0};
    bool has_type = false;
    bool is_text = true;
    enum wal__json_status status = WAL__JSON_OK;

    while (next_member(reader, &key, &value, &status)) {
        if (wal__json_string_is(key.span, "type")) {
            has_type = true;
            is_text = wal__json_string_is(value.span, "text") ||
                      wal__json_string_is(value.span, "input_text");
        } else if (wal__json_string_is(key.span, "thought")) {
            is_text &= value.kind != WAL__JSON_TRUE;
        } else if (wal__json_string_is(key.span, "text")) {
            candidate = characters_of(reader, &value);
        }
        status = skip_rest(reader, &value);
    }
    text = has_type ? text : part;
    if (is_text && text->data == NULL && candidate.data != NULL) {
        *text = wal__user_words(candidate, &candidate) ? candidate : *text;
    }
    return status;
}

/* Finds the first text in the open array, and the first text of an object without a type. */
static enum wal__json_status read_items(struct reader *reader, struct wal__json_span *text,
                                        struct wal__json_span *part)
{
    struct wal__json_token item = {0};

    enum wal__json_status status = next_token(reader, &item);
    while (status == WAL__JSON_OK && item.kind != WAL__JSON_ARRAY_END) {
        if (text->data == NULL && item.kind == WAL__JSON_OBJECT) {
            status = read_block(reader, text, part);
        } else if (text->data == NULL) {
            *text = characters_of(reader, &item);
        }
        if (status == WAL__JSON_OK) {
            status = skip_rest(reader, &item);
        }
        if (status == WAL__JSON_OK) {
            status = next_token(reader, &item);
        }
    }
    return status;
}

/* Reads the prompt of a turn, a text or blocks. */
static enum wal__json_status read_input(struct reader *reader, const struct wal__json_token *value,
                                        struct message *message)
{
    message->input = characters_of(reader, value);
    return value->kind == WAL__JSON_ARRAY ? read_items(reader, &message->input, &message->input)
                                          : skip_rest(reader, value);
}

/* Reads the prompt of a turn, in the open object: {user_input}. */
static enum wal__json_status read_turn(struct reader *reader, struct message *message)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};
    enum wal__json_status status = WAL__JSON_OK;

    while (next_member(reader, &key, &value, &status)) {
        status = wal__json_string_is(key.span, "user_input") ? read_input(reader, &value, message)
                                                             : skip_rest(reader, &value);
    }
    return status;
}

/* Reads a member of a message. */
static enum wal__json_status read_member(struct reader *reader, const struct wal__json_token *key,
                                         const struct wal__json_token *value,
                                         struct message *message)
{
    if (wal__json_string_is(key->span, "role")) {
        message->role = *value;
        if (value->kind != WAL__JSON_STRING) {
            message->role.kind = WAL__JSON_NONE;
        }
    } else if (wal__json_string_is(key->span, "content")) {
        message->text = characters_of(reader, value);
        if (value->kind == WAL__JSON_ARRAY) {
            return read_items(reader, &message->text, &message->part);
        }
    } else if (wal__json_string_is(key->span, "parts") && value->kind == WAL__JSON_ARRAY) {
        return read_items(reader, &message->text, &message->text);
    } else if (wal__json_string_is(key->span, "input")) {
        return read_input(reader, value, message);
    } else if (wal__json_string_is(key->span, "payload") && value->kind == WAL__JSON_OBJECT) {
        return read_turn(reader, message);
    } else if (wal__json_string_is(key->span, "source") && value->kind == WAL__JSON_STRING) {
        message->is_of_client = wal__first_text_is_client_source(value->span);
    }
    return skip_rest(reader, value);
}

/* Reads the open object of the member `message`, `payload` or `data`. */
static enum wal__json_status read_message(struct reader *reader, struct message *message)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};
    enum wal__json_status status = WAL__JSON_OK;

    while (next_member(reader, &key, &value, &status)) {
        status = read_member(reader, &key, &value, message);
    }
    return status;
}

/* Finds the first message in the open array that has the type of a user's and a text. */
static enum wal__json_status read_list(struct reader *reader, struct message *found)
{
    struct wal__json_token item = {0};

    enum wal__json_status status = next_token(reader, &item);
    while (status == WAL__JSON_OK && item.kind != WAL__JSON_ARRAY_END) {
        struct message message = {0};
        struct wal__json_token type = {0};
        struct wal__json_token key = {0};
        struct wal__json_token value = {0};
        bool is_object = item.kind == WAL__JSON_OBJECT && found->text.data == NULL;

        while (is_object && next_member(reader, &key, &value, &status)) {
            if (wal__json_string_is(key.span, "type")) {
                type = value;
            }
            status = read_member(reader, &key, &value, &message);
        }
        if (type.kind == WAL__JSON_STRING && wal__json_string_is(type.span, "user")) {
            reader->type = type;
            found->text = message.text.data != NULL ? message.text : message.part;
        }
        if (status == WAL__JSON_OK && !is_object) {
            status = skip_rest(reader, &item);
        }
        if (status == WAL__JSON_OK) {
            status = next_token(reader, &item);
        }
    }
    return status;
}

/* Finds the same in the member `messages` of the open object. */
static enum wal__json_status read_set(struct reader *reader, struct message *found)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};
    enum wal__json_status status = WAL__JSON_OK;

    while (next_member(reader, &key, &value, &status)) {
        status = wal__json_string_is(key.span, "messages") && value.kind == WAL__JSON_ARRAY
                     ? read_list(reader, found)
                     : skip_rest(reader, &value);
    }
    return status;
}

enum location {
    LOCATION_TOP,
    LOCATION_MESSAGE,
    LOCATION_PAYLOAD,
    LOCATION_DATA,
    LOCATION_COUNT,
};

static enum wal__json_status read_top(struct reader *reader, const struct wal__json_token *key,
                                      struct message messages[LOCATION_COUNT])
{
    struct wal__json_token value = {0};
    enum location location = LOCATION_TOP;

    enum wal__json_status status = next_token(reader, &value);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (wal__json_string_is(key->span, "isMeta")) {
        reader->is_meta = value.kind == WAL__JSON_TRUE;
    } else if (wal__json_string_is(key->span, "isSidechain")) {
        reader->is_sidechain = value.kind == WAL__JSON_TRUE;
    } else if (wal__json_string_is(key->span, "message")) {
        location = LOCATION_MESSAGE;
    } else if (wal__json_string_is(key->span, "payload")) {
        location = LOCATION_PAYLOAD;
    } else if (wal__json_string_is(key->span, "data")) {
        location = LOCATION_DATA;
    } else if (wal__json_string_is(key->span, "$set") && value.kind == WAL__JSON_OBJECT) {
        return read_set(reader, &messages[LOCATION_TOP]);
    } else if (wal__json_string_is(key->span, "messages") && value.kind == WAL__JSON_ARRAY) {
        return read_list(reader, &messages[LOCATION_TOP]);
    } else if (wal__json_string_is(key->span, "source") && value.kind == WAL__JSON_STRING) {
        reader->source = value.span;
    } else if (wal__json_string_is(key->span, "type")) {
        reader->type = value;
        if (value.kind != WAL__JSON_STRING) {
            reader->type.kind = WAL__JSON_NONE;
        }
    }
    if (location == LOCATION_TOP) {
        return read_member(reader, key, &value, &messages[LOCATION_TOP]);
    }
    messages[location] = (struct message){0};
    if (value.kind == WAL__JSON_OBJECT) {
        return read_message(reader, &messages[location]);
    }
    return skip_rest(reader, &value);
}

static enum wal__json_status read_payload(struct reader *reader,
                                          struct message messages[LOCATION_COUNT])
{
    struct wal__json_token token = {0};

    enum wal__json_status status = next_token(reader, &token);
    if (status == WAL__JSON_OK && token.kind != WAL__JSON_OBJECT) {
        return WAL__JSON_NOT_OBJECT;
    }
    while (status == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        status = next_token(reader, &token);
        if (status == WAL__JSON_OK && token.kind == WAL__JSON_KEY) {
            status = read_top(reader, &token, messages);
        }
    }
    return status;
}

/* Returns the text of a user's message, or none: the first one with a role decides; without one the
 * source or the type of the payload says that it is the message, or its `data`. */
static struct wal__json_span find_text(const struct reader *reader, const struct message *messages)
{
    const struct wal__json_span none = {NULL, 0};

    for (size_t i = LOCATION_TOP; i <= LOCATION_PAYLOAD; i++) {
        if (messages[i].role.kind != WAL__JSON_NONE) {
            return wal__json_string_is(messages[i].role.span, "user") ? messages[i].text : none;
        }
    }
    if (wal__step_author(reader->source, reader->type.span) == WAL__STEP_PERSON) {
        return messages[LOCATION_TOP].text;
    }
    if (reader->type.kind == WAL__JSON_NONE) {
        return messages[LOCATION_MESSAGE].input;
    }
    if (wal__json_string_is(reader->type.span, "turn.prompt")) {
        return messages[LOCATION_TOP].input;
    }
    if (wal__json_string_is(reader->type.span, "user.message")) {
        return messages[LOCATION_DATA].is_of_client ? none : messages[LOCATION_DATA].text;
    }
    if (!wal__json_string_is(reader->type.span, "user")) {
        return none;
    }
    return messages[LOCATION_TOP].text.data != NULL ? messages[LOCATION_TOP].text
                                                    : messages[LOCATION_TOP].part;
}

/* Whether a text is a command to the client, such as "/mode", with or without arguments. */
static bool is_command(const uint8_t *text, size_t size)
{
    size_t name = 1;

    while (name < size && ((text[name] >= 'a' && text[name] <= 'z') || text[name] == '-')) {
        name++;
    }
    return size > 1 && text[0] == '/' && name > 1 && (name == size || text[name] == ' ');
}

static bool first_text(struct wal__span payload, bool of_subagent, uint8_t out[WAL__FIRST_TEXT_MAX],
                       size_t *size)
{
    struct message messages[LOCATION_COUNT] = {0};
    struct reader reader = {.is_truncated = payload.size > WAL__FIRST_TEXT_SCAN_MAX};
    size_t scan_size = reader.is_truncated ? WAL__FIRST_TEXT_SCAN_MAX : payload.size;
    size_t mark = payload.size >= 3 && memcmp(payload.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    wal__json_scan_init(&reader.scan, payload.data + mark, scan_size - mark);
    reader.end = reader.scan.end;
    enum wal__json_status status = read_payload(&reader, messages);
    if (status == WAL__JSON_TRUNCATED && reader.is_truncated) {
        status = WAL__JSON_OK;
    }
    if (status != WAL__JSON_OK || reader.is_meta || (reader.is_sidechain && !of_subagent)) {
        return false;
    }
    if (messages[LOCATION_TOP].text.data == NULL &&
        messages[LOCATION_MESSAGE].role.kind == WAL__JSON_NONE) {
        messages[LOCATION_TOP].text = messages[LOCATION_MESSAGE].text; /* the role is outside */
    }
    struct wal__json_span text = find_text(&reader, messages);
    if (text.data == NULL || !wal__user_words(text, &text)) {
        return false;
    }
    uint8_t copy[WAL__FIRST_TEXT_MAX];
    size_t copied = copy_text(text, copy);
    if (copied == 0 || is_command(copy, copied)) {
        return false;
    }
    memcpy(out, copy, copied);
    *size = copied;
    return true;
}

bool wal__first_text(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX], size_t *size)
{
    return first_text(payload, false, out, size);
}

bool wal__first_text_of_subagent(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX],
                                 size_t *size)
{
    return first_text(payload, true, out, size);
}
