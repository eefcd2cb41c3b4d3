/*
 * cursor.c - reads the transcripts of Cursor's CLI.
 *
 * A line is {role, message: {content}}, with the blocks of Anthropic's API, or an event such as
 * {type: "turn_ended"}. It has no id, no model and no token counts; its parent is the previous
 * line. Its time is a member, or in a tag of the text, with a zone; a time without one is not
 * known. The session is known by the path of the file.
 *
 * A user's text has the words of a person in the tag user_query, after what the client adds for the
 * model. A text that is one other tag is not a person's.
 *
 * Invariant: every line moves the head. The client's other files are its own, so that nothing can
 * be written for it.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- tags in a text ------------------------------------------------------ */

static const uint8_t *find(struct wal__json_span text, const char *part)
{
    return text.size > 0 ? memmem(text.data, text.size, part, strlen(part)) : NULL;
}

/* Sets *inner to what is between the first tag of the name and its last end. The characters are as
 * in the JSON string. Returns false if there is no such tag. */
static bool find_tag(struct wal__json_span text, const char *name, struct wal__json_span *inner)
{
    char open[32] = "<";
    char close[32] = "</";
    const uint8_t *begin;
    const uint8_t *end = NULL;
    struct wal__json_span rest;

    strncat(strncat(open, name, 24), ">", 2);
    strncat(strncat(close, name, 24), ">", 2);
    begin = find(text, open);
    if (begin == NULL) {
        return false;
    }
    begin += strlen(open);
    rest = (struct wal__json_span){begin, text.size - (size_t)(begin - text.data)};
    for (const uint8_t *at; (at = find(rest, close)) != NULL;) {
        end = at;
        at += strlen(close);
        rest.size -= (size_t)(at - rest.data);
        rest.data = at;
    }
    if (end == NULL) {
        return false;
    }
    *inner = (struct wal__json_span){begin, (size_t)(end - begin)};
    return true;
}

/* Whether all of a JSON string is in one tag. */
static bool is_tag(struct wal__json_span string)
{
    const uint8_t *end = string.size > 5 ? memchr(string.data, '>', string.size) : NULL;
    size_t size;

    if (end == NULL || string.data[1] != '<' || string.data[string.size - 2] != '>') {
        return false;
    }
    size = (size_t)(end - string.data) - 1; /* of "<name" */
    return size > 1 && string.size >= 2 * size + 6 &&
           memcmp(string.data + 2, string.data + string.size - 1 - size, size - 1) == 0 &&
           memcmp(string.data + string.size - 3 - size, "</", 2) == 0;
}

/* Advances past the text; false if the next characters are others. */
static bool take(struct wal__json_span *rest, const char *text)
{
    size_t size = strlen(text);

    if (rest->size < size || memcmp(rest->data, text, size) != 0) {
        return false;
    }
    rest->data += size;
    rest->size -= size;
    return true;
}

/* Advances past a number of at most four digits. */
static bool take_number(struct wal__json_span *rest, unsigned *number)
{
    size_t size = 0;

    *number = 0;
    while (size < rest->size && size < 4 && rest->data[size] >= '0' && rest->data[size] <= '9') {
        *number = *number * 10 + (unsigned)(rest->data[size++] - '0');
    }
    rest->data += size;
    rest->size -= size;
    return size > 0;
}

static void put_number(char *to, unsigned number, size_t digits)
{
    for (size_t i = digits; i-- > 0; number /= 10) {
        to[i] = (char)('0' + number % 10);
    }
}

static bool take_month(struct wal__json_span *rest, unsigned *month)
{
    static const char *const months[] = {"Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ",
                                         "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "};

    for (*month = 1; *month <= 12; (*month)++) {
        if (take(rest, months[*month - 1])) {
            return true;
        }
    }
    return false;
}

/* Reads a time as "Friday, Sep 4, 2026, 2:21 AM (UTC+8)"; 0 if it is none. */
static int64_t read_time(struct wal__json_span rest)
{
    char iso[] = "0000-00-00T00:00:00+00:00";
    const uint8_t *comma = rest.size > 0 ? memchr(rest.data, ',', rest.size) : NULL;
    unsigned numbers[7] = {0}; /* year, month, day, hour, minute, hour and minute of the zone */
    static const size_t places[] = {0, 5, 8, 11, 14, 20, 23};
    bool is_afternoon = false;
    bool is_west = false;
    int64_t ms = 0;

    if (comma == NULL) {
        return 0;
    }
    rest.size -= (size_t)(comma - rest.data);
    rest.data = comma;
    if (!take(&rest, ", ") || !take_month(&rest, &numbers[1]) || !take_number(&rest, &numbers[2]) ||
        !take(&rest, ", ") || !take_number(&rest, &numbers[0]) || !take(&rest, ", ") ||
        !take_number(&rest, &numbers[3]) || !take(&rest, ":") || !take_number(&rest, &numbers[4])) {
        return 0;
    }
    is_afternoon = take(&rest, " PM (UTC");
    if ((!is_afternoon && !take(&rest, " AM (UTC")) || numbers[3] == 0 || numbers[3] > 12) {
        return 0;
    }
    numbers[3] = numbers[3] % 12 + (is_afternoon ? 12 : 0);
    is_west = take(&rest, "-");
    if ((!is_west && !take(&rest, "+")) || !take_number(&rest, &numbers[5]) ||
        (take(&rest, ":") && !take_number(&rest, &numbers[6])) || !take(&rest, ")")) {
        return 0;
    }
    for (size_t i = 0; i < 7; i++) {
        if (numbers[i] > 99 && i > 0) {
            return 0;
        }
        put_number(iso + places[i], numbers[i], i == 0 ? 4 : 2);
    }
    iso[19] = is_west ? '-' : '+';
    (void)wal__model_time_read_text((struct wal__json_span){(const uint8_t *)iso, sizeof(iso) - 1},
                                    &ms);
    return ms;
}

/* --- lines --------------------------------------------------------------- */

enum {
    LINE_TYPE,
    LINE_ROLE,
    LINE_TIME,
    LINE_MESSAGE,
    LINE_CONTENT,
    LINE_ID,
    LINE_UUID,
    LINE_COUNT
};

static const struct wal__json_member line_wanted[LINE_COUNT] = {
    [LINE_TYPE] = {.key = "type"},
    [LINE_ROLE] = {.key = "role"},
    [LINE_TIME] = {.key = "timestamp"},
    [LINE_MESSAGE] = {.key = "message"},
    [LINE_CONTENT] = {.parent = "message", .key = "content"},
    [LINE_ID] = {.key = "id"},
    [LINE_UUID] = {.key = "uuid"},
};

static bool cursor_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[LINE_COUNT];

    (void)is_first;
    return wal__line_read(data, size, line_wanted, members, LINE_COUNT, NULL, NULL) ==
               WAL__JSON_OK &&
           (wal__line_string_is(&members[LINE_ROLE], "user") ||
            wal__line_string_is(&members[LINE_ROLE], "assistant")) &&
           members[LINE_MESSAGE].value.kind == WAL__JSON_OBJECT &&
           members[LINE_CONTENT].value.kind != WAL__JSON_NONE &&
           members[LINE_TYPE].value.kind == WAL__JSON_NONE &&
           members[LINE_ID].value.kind == WAL__JSON_NONE &&
           members[LINE_UUID].value.kind == WAL__JSON_NONE;
}

static enum wal__json_status cursor_read(const void *data, size_t size, struct wal__line_info *line,
                                         size_t *error_offset)
{
    struct wal__json_member members[LINE_COUNT];
    struct wal__json_span tag;
    enum wal__json_status status =
        wal__line_read(data, size, line_wanted, members, LINE_COUNT, line, error_offset);

    if (status != WAL__JSON_OK) {
        return status;
    }
    line->type = wal__member_string(&members[LINE_TYPE]);
    line->time = wal__member_string(&members[LINE_TIME]);
    line->is_message = members[LINE_ROLE].value.kind == WAL__JSON_STRING;
    if (line->time.size == 0) {
        (void)wal__model_time_read(wal__member_number(&members[LINE_TIME]), &line->time_ms);
    }
    if (line->time.size == 0 && line->time_ms == 0 &&
        wal__line_string_is(&members[LINE_ROLE], "user") &&
        members[LINE_CONTENT].value.kind != WAL__JSON_NONE &&
        find_tag(members[LINE_CONTENT].value.span, "timestamp", &tag)) {
        line->time_ms = read_time(tag);
    }
    return WAL__JSON_OK;
}

/* --- items --------------------------------------------------------------- */

static const struct wal__field line_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .parent = "message", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

/* Returns a JSON string of characters that are those of one, without the line feeds and spaces
 * around them. Data is NULL without memory. */
static struct wal__json_span quote(struct wal__arena *arena, struct wal__json_span inner)
{
    uint8_t *text;

    for (size_t width; inner.size > 0; inner.data += width, inner.size -= width) {
        width = inner.data[0] == ' ' ? 1 : 2;
        if (width == 2 && (inner.size < 2 || memcmp(inner.data, "\\n", 2) != 0)) {
            break;
        }
    }
    for (size_t width; inner.size > 0; inner.size -= width) {
        const uint8_t *last = inner.data + inner.size - 1;
        width = *last == ' ' ? 1 : 2;
        /* Not the end of an escaped backslash. */
        if (width == 2 && (inner.size < 2 || memcmp(last - 1, "\\n", 2) != 0 ||
                           (inner.size > 2 && last[-2] == '\\'))) {
            break;
        }
    }
    text = wal__arena_alloc(arena, inner.size + 2);
    if (text == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    text[0] = '"';
    if (inner.size > 0) {
        memcpy(text + 1, inner.data, inner.size);
    }
    text[inner.size + 1] = '"';
    return (struct wal__json_span){text, inner.size + 2};
}

/* Leaves the words of a person in a user's message. False: no memory. */
static bool read_words(struct wal__arena *arena, struct wal__model_item *item)
{
    bool is_meta = item->block_count > 0;

    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block *block = &item->blocks[i];
        struct wal__json_span inner;

        is_meta &= block->kind == WAL__BLOCK_TEXT && is_tag(block->text);
        if (block->kind == WAL__BLOCK_TEXT && find_tag(block->text, "user_query", &inner)) {
            is_meta = false;
            item->fields++; /* what the client added */
            block->text = quote(arena, inner);
            if (block->text.data == NULL) {
                return false;
            }
        }
    }
    item->is_meta = is_meta;
    return true;
}

static enum wal__json_status cursor_line(struct wal__model_reader *reader,
                                         const struct wal__model_line *line)
{
    struct wal__content_pieces pieces = {.arena = reader->scratch};
    struct wal__entry entry = {
        .item = {
            .stream = line->stream, .id = line->id, .parent = line->parent, .time = line->time}};
    struct wal__model_item *item = &entry.item;
    enum wal__json_status status = wal__fields_read(line->text, line_fields, &entry, &item->fields);
    bool is_user = wal__model_text_is(entry.role, "user");

    if (status != WAL__JSON_OK) {
        return status;
    }
    if (entry.content.kind == WAL__JSON_NONE ||
        (!is_user && !wal__model_text_is(entry.role, "assistant"))) {
        item->kind = WAL__ITEM_LINE;
        item->data = line->text;
        return wal__model_emit(reader, item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = is_user ? WAL__ROLE_USER : WAL__ROLE_ASSISTANT;
    if (!wal__content_split(&pieces, item, entry.content)) {
        return WAL__JSON_NO_SPACE;
    }
    for (size_t i = 0; i < pieces.count; i++) {
        if (pieces.items[i].role == WAL__ROLE_USER &&
            !read_words(reader->scratch, &pieces.items[i])) {
            return WAL__JSON_NO_SPACE;
        }
    }
    return wal__content_emit(&pieces, item->parent, reader) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops cursor_read_ops = {.line = cursor_line};

const struct wal__dialect wal__dialect_cursor = {
    .name = "cursor",
    .summary = "transcripts of Cursor's CLI, subagents too",
    .recognise = cursor_recognise,
    .read = cursor_read,
    .read_ops = &cursor_read_ops,
};
