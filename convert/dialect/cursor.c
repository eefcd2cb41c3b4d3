/*
 * cursor.c - reads the transcripts of Cursor's CLI.
 *
 * A line is {role, message: {content}}, with the blocks of Anthropic's API, or an event such as
 * {type: "turn_ended"}. It has no id, no model and no token counts; its parent is the previous
 * line. Its time is a member, or in a tag of the text, with a zone; a time without one is not
 * known. The session is known by the path of the file.
 *
 * A user's text has the words of a person in the tag user_query, after what the client adds for the
 * model (format/payload/first_text.h).
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
#include "format/payload/first_text.h"
#include "format/payload/timestamp.h"

/* --- tags in a text ------------------------------------------------------ */

static const uint8_t *find(struct wal__json_span text, const char *part)
{
    return text.size > 0 ? memmem(text.data, text.size, part, strlen(part)) : NULL;
}

/* Sets *time to what is in the first tag timestamp. Returns false if there is none. */
static bool find_time(struct wal__json_span text, struct wal__json_span *time)
{
    const uint8_t *begin = find(text, "<timestamp>");
    const uint8_t *end;

    if (begin == NULL) {
        return false;
    }
    begin += strlen("<timestamp>");
    text.size -= (size_t)(begin - text.data);
    text.data = begin;
    end = find(text, "</timestamp>");
    *time = (struct wal__json_span){begin, end != NULL ? (size_t)(end - begin) : 0};
    return end != NULL;
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

/* Reads a time as "Friday, Sep 4, 2026, 2:21 AM (UTC+8)", or (UTC); 0 if it is none. */
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
    if (is_west || take(&rest, "+")) {
        if (!take_number(&rest, &numbers[5]) ||
            (take(&rest, ":") && !take_number(&rest, &numbers[6]))) {
            return 0;
        }
    }
    if (!take(&rest, ")")) {
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
        find_time(members[LINE_CONTENT].value.span, &tag)) {
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

/* Leaves the words of a person in a user's message; one without any is not by a person. False: no
 * memory. */
static bool read_words(struct wal__arena *arena, struct wal__model_item *item)
{
    size_t kept = 0;

    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block block = item->blocks[i];
        struct wal__json_span words;

        if (block.kind == WAL__BLOCK_TEXT && block.text.size > 2) {
            struct wal__json_span all = {block.text.data + 1, block.text.size - 2};

            if (!wal__user_words(all, &words)) {
                continue;
            }
            item->fields += words.size < all.size ? 1 : 0; /* what the client added */
            block.text = words.size < all.size ? wal__arena_quote(arena, words) : block.text;
            if (block.text.data == NULL) {
                return false;
            }
        }
        item->blocks[kept++] = block;
    }
    item->is_meta = kept == 0 && item->block_count > 0;
    if (!item->is_meta) {
        item->fields += (uint32_t)(item->block_count - kept);
        item->block_count = kept;
    }
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
