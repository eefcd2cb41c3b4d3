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

struct cursor_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span role;
    struct wal__json_span time; /* a number */
    struct wal__json_span message;
    struct wal__json_span content;
    bool has_other; /* a member of other clients */
};

#define CURSOR_AT(field) offsetof(struct cursor_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"type", .at = CURSOR_AT(has_other), .kind = WAL__FIELD_IS_THERE},
    {"role", .at = CURSOR_AT(role)},
    {"role", .at = WAL__LINE_AT(is_message), .kind = WAL__FIELD_IS_STRING},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"timestamp", .at = CURSOR_AT(time), .kind = WAL__FIELD_NUMBER},
    {"message", .at = CURSOR_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"content", .parent = "message", .at = CURSOR_AT(content), .kind = WAL__FIELD_RAW},
    {"id", .at = CURSOR_AT(has_other), .kind = WAL__FIELD_IS_THERE},
    {"uuid", .at = CURSOR_AT(has_other), .kind = WAL__FIELD_IS_THERE},
    {.key = NULL},
};

static bool cursor_recognise(const void *text, bool is_first)
{
    const struct cursor_line *line = text;

    (void)is_first;
    return (wal__model_text_is(line->role, "user") ||
            wal__model_text_is(line->role, "assistant")) &&
           line->message.size > 0 && line->message.data[0] == '{' && line->content.size > 0 &&
           !line->has_other;
}

static void cursor_judge(void *text)
{
    struct cursor_line *line = text;
    struct wal__json_span tag;

    if (line->info.time.size == 0) {
        (void)wal__model_time_read(line->time, &line->info.time_ms);
    }
    if (line->info.time.size == 0 && line->info.time_ms == 0 &&
        wal__model_text_is(line->role, "user") && line->content.size > 0 &&
        find_time(line->content, &tag)) {
        line->info.time_ms = read_time(tag);
    }
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
    struct wal__entry entry = wal__entry_begin(reader, line);
    struct wal__model_item *item = &entry.item;
    enum wal__json_status status = wal__fields_read(line->text, line_fields, &entry, &item->fields);
    bool is_user = wal__model_text_is(entry.role, "user");

    if (status != WAL__JSON_OK) {
        return status;
    }
    if (entry.content.kind == WAL__JSON_NONE ||
        (!is_user && !wal__model_text_is(entry.role, "assistant"))) {
        return wal__entry_emit_line(&entry) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
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
    .line_fields = known_fields,
    .line_size = sizeof(struct cursor_line),
    .recognise = cursor_recognise,
    .judge = cursor_judge,
    .read_ops = &cursor_read_ops,
};
