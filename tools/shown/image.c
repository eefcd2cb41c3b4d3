/*
 * image.c - images in the content of messages (image.h).
 */
#include "tools/shown/image.h"

#include <string.h>

#include "tools/cli/cli.h"

struct image {
    struct wal_slice type;
    struct wal_slice data; /* Base64 */
    struct wal_slice digest;
};

/* Whether a text may be Base64: it then has no secret in another form. */
static bool is_base64(struct wal_slice text)
{
    const unsigned char *at = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        bool is_letter = (at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z';
        if (!is_letter && !(at[i] >= '0' && at[i] <= '9') && at[i] != '+' &&
            at[i] != '/' && at[i] != '=') {
            return false;
        }
    }
    return text.size > 0;
}

static bool is_digest(struct wal_slice text)
{
    const char *at = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        if (at[i] == '\0' || strchr("0123456789abcdef", at[i]) == NULL) {
            return false;
        }
    }
    return text.size == 64;
}

/* Reads "data:TYPE;base64,DATA". */
static bool read_url(struct wal_slice url, struct image *image)
{
    static const char scheme[] = "data:";
    static const char form[] = ";base64,";
    const size_t prefix = sizeof(scheme) - 1;
    const char *text = url.data;
    const char *found;

    if (url.size <= prefix || memcmp(text, scheme, prefix) != 0) {
        return false;
    }
    found = memmem(text + prefix,
                   url.size < 256 ? (size_t)url.size - prefix : 256 - prefix,
                   form, sizeof(form) - 1);
    if (found == NULL) {
        return false;
    }
    image->type =
        (struct wal_slice){text + prefix, (size_t)(found - text) - prefix};
    found += sizeof(form) - 1;
    image->data =
        (struct wal_slice){found, url.size - (uint64_t)(found - text)};
    return true;
}

static bool is_image_type(struct wal_slice type)
{
    static const char prefix[] = "image/";

    return type.size >= sizeof(prefix) - 1 && type.size < 64 &&
           memcmp(type.data, prefix, sizeof(prefix) - 1) == 0;
}

static bool read_image(struct wal__json_span block, struct cli_texts *texts,
                       struct image *image)
{
    enum {
        DATA,
        MIME,
        DIGEST,
        SOURCE_DATA,
        SOURCE_TYPE,
        URL,
        IMAGE_URL,
        NESTED_URL,
        MIME_OF_FILE,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [DATA] = {.key = "data"},
        [MIME] = {.key = "mimeType"},
        [DIGEST] = {.key = "digest"},
        [SOURCE_DATA] = {.parent = "source", .key = "data"},
        [SOURCE_TYPE] = {.parent = "source", .key = "media_type"},
        [URL] = {.key = "url"},
        [IMAGE_URL] = {.key = "image_url"},
        [NESTED_URL] = {.parent = "image_url", .key = "url"},
        [MIME_OF_FILE] = {.key = "mime"},
    };
    struct wal_slice text[COUNT];

    if (wal__json_members(block.data, block.size, m, COUNT, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < COUNT; i++) {
        text[i] = cli_unescape(&m[i].value, texts);
    }
    *image = (struct image){.digest = text[DIGEST]};
    if (!read_url(text[URL], image) && !read_url(text[IMAGE_URL], image) &&
        !read_url(text[NESTED_URL], image)) {
        bool has_source = text[SOURCE_DATA].size > 0;
        image->data = text[has_source ? SOURCE_DATA : DATA];
        image->type = text[has_source ? SOURCE_TYPE : MIME];
        if (image->type.size == 0) {
            image->type = text[MIME_OF_FILE];
        }
    }
    return is_image_type(image->type) &&
           (is_base64(image->data) || is_digest(image->digest));
}

bool shown_image(struct shown *shown, struct wal__json_span block)
{
    struct cli_texts texts = {.items = NULL};
    struct image image;
    bool is_image = read_image(block, &texts, &image);

    if (is_image) {
        wal__json_out_open(shown->json, '{');
        cli_json_member_text(shown->json, "kind", cli_slice("image"));
        shown_member(shown, "mimeType", image.type);
        if (!is_base64(image.data)) {
            cli_json_member_text(shown->json, "digest", image.digest);
        } else if (image.data.size <= SHOWN_IMAGE_MAX) {
            cli_json_member_text(shown->json, "data", image.data);
        }
        wal__json_out_member_count(shown->json, "bytes",
                                   image.data.size / 4 * 3);
        wal__json_out_close(shown->json, '}');
    }
    cli_texts_deinit(&texts);
    return is_image;
}

void shown_images(struct shown *shown, const struct wal__json_token *blocks)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (blocks->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, blocks->span.data, blocks->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        if (token.kind == WAL__JSON_OBJECT) {
            (void)shown_image(shown, token.span);
        }
    }
}
