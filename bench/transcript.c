/*
 * transcript.c - rows of a transcript (transcript.h).
 *
 * Threads: one at a time per transcript.
 */
#include "bench/transcript.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct out {
    char *row;
    size_t size;
};

uint64_t transcript_draw(struct transcript *transcript, uint64_t bound)
{
    uint64_t value;

    transcript->state += UINT64_C(0x9e3779b97f4a7c15);
    value = transcript->state;
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return (value ^ value >> 31) % bound;
}

static void put(struct out *out, const char *text)
{
    size_t size = strlen(text);

    memcpy(out->row + out->size, text, size);
    out->size += size;
}

__attribute__((format(printf, 2, 3))) static void putf(struct out *out, const char *format, ...)
{
    va_list given;
    int size;

    va_start(given, format);
    size = vsnprintf(out->row + out->size, TRANSCRIPT_ROW_MAX - out->size, format, given);
    va_end(given);
    out->size += (size_t)size;
}

static void make_uuid(struct transcript *transcript, char uuid[37])
{
    snprintf(uuid, 37, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-a%03" PRIx64 "-%012" PRIx64,
             transcript_draw(transcript, UINT64_C(1) << 32), transcript_draw(transcript, 1 << 16),
             transcript_draw(transcript, 1 << 12), transcript_draw(transcript, 1 << 12),
             transcript_draw(transcript, UINT64_C(1) << 48));
}

/* A name as the API gives them: a prefix and 22 letters. */
static void make_name(struct transcript *transcript, const char *prefix, char name[33])
{
    static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrst"
                                  "uvwxyz123456789";
    size_t size = (size_t)snprintf(name, 33, "%s_01", prefix);

    while (size < 29) {
        name[size++] = letters[transcript_draw(transcript, sizeof(letters) - 1)];
    }
    name[size] = '\0';
}

/* Text inside a string: words, and what breaks a plain run of them. */
static void put_text(struct transcript *transcript, struct out *out, size_t size)
{
    static const char *const words[] = {
        "the",          "of ",        "function",  "return",   "session", "is",
        "(self, ",      "error",      "value",     "    ",     "append",  "import",
        "test",         "const ",     "struct",    "file",     "to",      "and ",
        "=> {",         "store.open", "**done**",  "src/main", "message", "timeout",
        "committed to", "if (",       "elif name", "while",    "a",       "previous_version"};
    static const char *const breaks[] = {"\\n",  "\\n",  "\\n    ",   "\\n\\t",
                                         "\\\"", "\\\"", "\\n\\n",    "\\u001b[",
                                         "\\\\", "—",    "\\n   12→", "é"};
    const size_t word_count = sizeof(words) / sizeof(words[0]);
    const size_t break_count = sizeof(breaks) / sizeof(breaks[0]);
    size_t end = out->size + size;

    while (out->size < end) {
        uint64_t pick = transcript_draw(transcript, 1 << 20);

        put(out, words[pick % word_count]);
        pick >>= 8;
        put(out, pick % 7 == 0 ? breaks[(pick >> 4) % break_count] : " ");
    }
}

static void put_time(const struct transcript *transcript, struct out *out)
{
    uint64_t second = transcript->rows / 4;

    putf(out, "\"timestamp\":\"2026-%02u-%02uT%02u:%02u:%02u.%03uZ\"",
         (unsigned)(second / 2419200 % 12 + 1), (unsigned)(second / 86400 % 28 + 1),
         (unsigned)(second / 3600 % 24), (unsigned)(second / 60 % 60), (unsigned)(second % 60),
         (unsigned)(transcript->rows % 4 * 250));
}

/* What every row of the conversation begins with. */
static void put_head(const struct transcript *transcript, struct out *out)
{
    if (transcript->last[0] == '\0') {
        put(out, "{\"parentUuid\":null");
    } else {
        putf(out, "{\"parentUuid\":\"%s\"", transcript->last);
    }
    putf(out,
         ",\"isSidechain\":false,\"userType\":\"external\",\"cwd\":"
         "\"/home/user/work/project\",\"sessionId\":\"%s\",\"version\":"
         "\"2.1.14\",\"gitBranch\":\"main\",",
         transcript->session);
}

/* And ends with. */
static void put_tail(struct transcript *transcript, struct out *out)
{
    make_uuid(transcript, transcript->last);
    putf(out, ",\"uuid\":\"%s\",", transcript->last);
    put_time(transcript, out);
    put(out, "}\n");
}

static void user_row(struct transcript *transcript, struct out *out)
{
    put_head(transcript, out);
    put(out, "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"");
    put_text(transcript, out, 20 + transcript_draw(transcript, 700));
    put(out, "\"}");
    put_tail(transcript, out);
}

static void put_tool_use(struct transcript *transcript, struct out *out)
{
    bool is_edit = transcript_draw(transcript, 3) == 0;

    make_name(transcript, "toolu", transcript->tool);
    putf(out, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":", transcript->tool,
         is_edit ? "Edit" : "Bash");
    if (is_edit) {
        put(out, "{\"file_path\":\"/home/user/work/project/src/main.c\","
                 "\"old_string\":\"");
        put_text(transcript, out, 100 + transcript_draw(transcript, 1000));
        put(out, "\",\"new_string\":\"");
        put_text(transcript, out, 100 + transcript_draw(transcript, 1000));
        put(out, "\",\"replace_all\":false}}");
        return;
    }
    put(out, "{\"command\":\"");
    put_text(transcript, out, 20 + transcript_draw(transcript, 150));
    put(out, "\",\"description\":\"run the tests\"}}");
}

static void put_thinking(struct transcript *transcript, struct out *out)
{
    char name[33];

    put(out, "{\"type\":\"thinking\",\"thinking\":\"");
    put_text(transcript, out, 100 + transcript_draw(transcript, 1500));
    put(out, "\",\"signature\":\"");
    for (uint64_t i = 8 + transcript_draw(transcript, 16); i > 0; i--) {
        make_name(transcript, "Ev", name);
        put(out, name);
    }
    put(out, "\"}");
}

static void assistant_row(struct transcript *transcript, struct out *out)
{
    uint64_t kind = transcript_draw(transcript, 10);
    char name[33];

    put_head(transcript, out);
    make_name(transcript, "msg", name);
    putf(out,
         "\"type\":\"assistant\",\"message\":{\"id\":\"%s\",\"type\":"
         "\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4\","
         "\"content\":[",
         name);
    if (kind < 6) {
        put_tool_use(transcript, out);
    } else if (kind < 7) {
        put_thinking(transcript, out);
    } else {
        put(out, "{\"type\":\"text\",\"text\":\"");
        put_text(transcript, out, 40 + transcript_draw(transcript, 900));
        put(out, "\"}");
    }
    putf(out,
         "],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{"
         "\"input_tokens\":%" PRIu64 ",\"cache_creation_input_tokens\":%" PRIu64
         ",\"cache_read_input_tokens\":%" PRIu64
         ",\"cache_creation\":{\"ephemeral_5m_input_tokens\":0,"
         "\"ephemeral_1h_input_tokens\":0},\"output_tokens\":%" PRIu64
         ",\"service_tier\":\"standard\"}},",
         transcript_draw(transcript, 100), transcript_draw(transcript, 30000),
         transcript_draw(transcript, 150000), transcript_draw(transcript, 2000));
    make_name(transcript, "req", name);
    putf(out, "\"requestId\":\"%s\"", name);
    put_tail(transcript, out);
}

static size_t result_size(struct transcript *transcript)
{
    uint64_t kind = transcript_draw(transcript, 1000);

    if (kind < 5) {
        return 100000;
    }
    return kind < 500 ? 20 + (size_t)transcript_draw(transcript, 600)
                      : 600 + (size_t)transcript_draw(transcript, 13400);
}

/* The result of the tool that was called; the client keeps it twice. */
static void tool_row(struct transcript *transcript, struct out *out)
{
    size_t begin;
    size_t size;

    put_head(transcript, out);
    putf(out,
         "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{"
         "\"tool_use_id\":\"%s\",\"type\":\"tool_result\",\"content\":\"",
         transcript->tool);
    begin = out->size;
    put_text(transcript, out, result_size(transcript));
    size = out->size - begin;
    put(out, "\",\"is_error\":false}]},\"toolUseResult\":{\"stdout\":\"");
    if (size < 10000) {
        memcpy(out->row + out->size, out->row + begin, size);
        out->size += size;
    }
    put(out, "\",\"stderr\":\"\",\"interrupted\":false,\"isImage\":false}");
    put_tail(transcript, out);
    transcript->tool[0] = '\0';
}

/* What the client keeps in addition to the conversation. */
static void aside_row(struct transcript *transcript, struct out *out)
{
    char uuid[37];

    if (transcript_draw(transcript, 8) == 0) {
        put(out, "{\"type\":\"ai-title\",\"aiTitle\":\"");
        put_text(transcript, out, 30);
        putf(out, "\",\"sessionId\":\"%s\"}\n", transcript->session);
        return;
    }
    make_uuid(transcript, uuid);
    putf(out,
         "{\"type\":\"file-history-snapshot\",\"messageId\":\"%s\","
         "\"snapshot\":{\"messageId\":\"%s\",\"trackedFileBackups\":{},",
         uuid, uuid);
    put_time(transcript, out);
    put(out, "},\"isSnapshotUpdate\":false}\n");
}

void transcript_init(struct transcript *transcript, uint64_t seed)
{
    *transcript = (struct transcript){.state = seed};
    make_uuid(transcript, transcript->session);
}

size_t transcript_row(struct transcript *transcript, char *row)
{
    struct out out = {.row = row};
    uint64_t kind = transcript_draw(transcript, 100);

    if (transcript->tool[0] != '\0') {
        tool_row(transcript, &out);
    } else if (transcript->rows == 0 || kind < 8) {
        user_row(transcript, &out);
    } else if (kind < 11) {
        aside_row(transcript, &out);
    } else {
        assistant_row(transcript, &out);
    }
    transcript->rows++;
    return out.size;
}
