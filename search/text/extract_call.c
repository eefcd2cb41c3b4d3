/*
 * extract_call.c - the texts of a tool's call (extract.h): its name, the texts
 * in its arguments, and those that are paths of files.
 */
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "search/text/extract.h"

struct call {
    struct wal__extractor *extractor;
    struct wal__json_span tool; /* decoded */
    size_t left;                /* bytes of arguments that may be added */
};

static bool is_path_key(const struct wal__json_token *key)
{
    static const char *const keys[] = {
        "path",          "file_path", "filePath", "file",        "filename",
        "notebook_path", "paths",     "files",    "directory",   "workdir",
        "old_path",      "new_path",  "source",   "destination", "target_file"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (wal__json_string_is(key->span, keys[i])) {
            return true;
        }
    }
    return false;
}

/* The first bytes of a text, cut at a character. */
static size_t cut(struct wal__json_span text, size_t limit)
{
    size_t size = text.size < limit ? text.size : limit;

    while (size > 0 && size < text.size && (text.data[size] & 0xc0) == 0x80) {
        size--;
    }
    return size;
}

static void add_argument(struct call *call, struct wal__json_span text)
{
    text.size = cut(text, call->left);
    if (text.size > 0) {
        wal__extract_add(call->extractor, WAL__COLUMN_TOOL, text, call->tool);
        call->left -= text.size;
    }
}

static void add_path(const struct call *call, struct wal__json_span text)
{
    text.size = cut(text, 4096);
    wal__extract_add(call->extractor, WAL__COLUMN_PATH, text, call->tool);
}

/* Adds the paths of a patch of Codex: "*** Update File: PATH". */
static void add_patch_paths(const struct call *call, struct wal__json_span text)
{
    static const char *const heads[] = {"*** Update File: ", "*** Add File: ",
                                        "*** Delete File: ", "*** Move to: "};
    const uint8_t *at = text.data;
    const uint8_t *end = text.data + text.size;

    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *line_end = newline == NULL ? end : newline;

        for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
            size_t size = strlen(heads[i]);

            if ((size_t)(line_end - at) > size &&
                memcmp(at, heads[i], size) == 0) {
                add_path(call, (struct wal__json_span){
                                   at + size, (size_t)(line_end - at) - size});
            }
        }
        at = newline == NULL ? end : newline + 1;
    }
}

/* Adds the strings of a JSON value. */
static void add_value(struct call *call, struct wal__json_span json)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    bool is_path = false;

    wal__json_scan_init(&scan, json.data, json.size);
    while (call->left > 0 &&
           wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_KEY) {
            is_path = is_path_key(&token);
        } else if (token.kind == WAL__JSON_STRING) {
            struct wal__json_span text =
                wal__arena_unescape(&call->extractor->arena.arena, token.span);

            if (text.data == NULL) {
                call->extractor->has_failed = true;
                return;
            }
            if (is_path) {
                add_path(call, text);
            } else {
                add_argument(call, text);
            }
        }
    }
}

void wal__extract_call(struct wal__extractor *extractor,
                       const struct wal__json_token *name,
                       const struct wal__json_token *arguments)
{
    struct call call = {.extractor = extractor,
                        .left = WAL__EXTRACT_ARGUMENTS_MAX};
    struct wal__json_span text;

    if (name->kind != WAL__JSON_STRING) {
        return;
    }
    call.tool = wal__arena_unescape(&extractor->arena.arena, name->span);
    if (call.tool.data == NULL) {
        extractor->has_failed = true;
        return;
    }
    wal__extract_add(extractor, WAL__COLUMN_TOOL, call.tool, call.tool);
    if (arguments->kind != WAL__JSON_STRING) {
        if (arguments->kind != WAL__JSON_NONE) {
            add_value(&call, arguments->span);
        }
        return;
    }
    /* A text that is JSON, or free text. */
    text = wal__arena_unescape(&extractor->arena.arena, arguments->span);
    if (text.data == NULL) {
        extractor->has_failed = true;
    } else if (wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
        add_value(&call, text);
    } else {
        add_argument(&call, text);
        add_patch_paths(&call, text);
    }
}
