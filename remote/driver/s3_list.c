/*
 * s3_list.c - reads the XML of S3 (s3_list.h) with Expat.
 *
 * Elements are known by their whole path, and each may occur once in its parent. Unknown ones are
 * ignored. A document type is refused, so that there are no entities to expand.
 *
 * Invariant: memory is bounded by the size of the XML. Threads: one per struct.
 */
#include "remote/driver/s3_list.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

enum { PATH_MAX_SIZE = 128, DEPTH_MAX = 32 };

enum field {
    FIELD_NONE,
    FIELD_ROOT,
    FIELD_CONTENTS,
    FIELD_KEY,
    FIELD_SIZE,
    FIELD_TRUNCATED,
    FIELD_TOKEN,
    FIELD_CODE
};

static const struct {
    const char *path;
    enum field field;
} fields[] = {
    {"/ListBucketResult", FIELD_ROOT},
    {"/ListBucketResult/Contents", FIELD_CONTENTS},
    {"/ListBucketResult/Contents/Key", FIELD_KEY},
    {"/ListBucketResult/Contents/Size", FIELD_SIZE},
    {"/ListBucketResult/IsTruncated", FIELD_TRUNCATED},
    {"/ListBucketResult/NextContinuationToken", FIELD_TOKEN},
    {"/Error", FIELD_ROOT},
    {"/Error/Code", FIELD_CODE},
};

struct reader {
    XML_Parser parser;
    struct wal__s3_page *page; /* of a list */
    const char *root;          /* the element that is expected */
    char path[PATH_MAX_SIZE];
    size_t path_size;
    uint32_t depth;
    uint32_t ignored; /* depth inside an element that is unknown; 0: none */
    enum field field; /* whose text is read */
    struct wal__buf text;
    uint32_t seen; /* bits of fields in their parent */
    bool has_code; /* of an error: nothing more is read */
    enum wal_status status;
    const char *fault;
};

static void stop(struct reader *reader, enum wal_status status, const char *fault)
{
    if (reader->status == WAL_OK) {
        reader->status = status;
        reader->fault = fault;
        (void)XML_StopParser(reader->parser, XML_FALSE);
    }
}

static enum field field_of(const struct reader *reader)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(fields[i].path, reader->path) == 0) {
            return fields[i].field;
        }
    }
    return FIELD_NONE;
}

static uint32_t bit(enum field field)
{
    return UINT32_C(1) << field;
}

/* A new key, whose name and size follow. */
static void begin_contents(struct reader *reader)
{
    struct wal__s3_page *page = reader->page;

    if (!WAL__HEAP_GROW(page->heap, page->keys, page->count, page->capacity)) {
        stop(reader, WAL_ENOMEM, "no memory");
        return;
    }
    page->keys[page->count] = (struct wal__s3_key){0};
    reader->seen &= ~(bit(FIELD_KEY) | bit(FIELD_SIZE));
}

static void XMLCALL begin_element(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = ctx;
    size_t size = strlen(name);
    enum field field = FIELD_NONE;

    (void)attributes;
    if (reader->status != WAL_OK) {
        return;
    }
    if (++reader->depth > DEPTH_MAX) {
        stop(reader, WAL_EREMOTE, "its elements are nested too deeply");
        return;
    }
    if (reader->ignored == 0 && reader->path_size + size + 2 <= sizeof(reader->path)) {
        reader->path[reader->path_size] = '/';
        memcpy(reader->path + reader->path_size + 1, name, size + 1);
        field = field_of(reader);
    }
    if (reader->depth == 1 && strcmp(name, reader->root) != 0) {
        stop(reader, WAL_EREMOTE, "it is about something else");
    } else if (reader->field > FIELD_CONTENTS) {
        stop(reader, WAL_EREMOTE, "an element is in a text");
    } else if (reader->ignored > 0 || field == FIELD_NONE) {
        reader->path[reader->path_size] = '\0';
        reader->ignored++;
    } else if (field != FIELD_CONTENTS && (reader->seen & bit(field)) != 0) {
        stop(reader, WAL_EREMOTE, "an element occurs twice");
    } else {
        reader->path_size += size + 1;
        reader->field = field;
        reader->seen |= bit(field);
        reader->text.size = 0;
        if (field == FIELD_CONTENTS) {
            begin_contents(reader);
        }
    }
}

static void XMLCALL add_text(void *ctx, const XML_Char *text, int size)
{
    struct reader *reader = ctx;

    if (reader->status != WAL_OK || reader->ignored > 0 || reader->field <= FIELD_CONTENTS) {
        return;
    }
    if (reader->text.size + (size_t)size > WAL__S3_TOKEN_MAX) {
        stop(reader, WAL_EREMOTE, "a text is too long");
    } else if (wal__buf_append(&reader->text, text, (size_t)size) != WAL_OK) {
        stop(reader, WAL_ENOMEM, "no memory");
    }
}

/* Reads decimal digits that fit in 64 bits. */
static bool read_decimal(const struct wal__buf *text, uint64_t *value)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text->size; i++) {
        uint64_t digit = (uint64_t)text->data[i] - '0';

        if (text->data[i] < '0' || text->data[i] > '9' || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *value = number;
    return text->size > 0;
}

static bool text_is(const struct wal__buf *text, const char *expected)
{
    return text->size == strlen(expected) && memcmp(text->data, expected, text->size) == 0;
}

static enum wal_status append_terminated(struct wal__buf *to, const struct wal__buf *text)
{
    enum wal_status status = text->size == 0 ? WAL_OK : wal__buf_append(to, text->data, text->size);

    return status == WAL_OK ? wal__buf_append(to, "", 1) : status;
}

static void end_field(struct reader *reader, enum field field)
{
    struct wal__s3_page *page = reader->page;
    const uint32_t both = bit(FIELD_KEY) | bit(FIELD_SIZE);
    enum wal_status status = WAL_OK;

    if (field == FIELD_KEY) {
        page->keys[page->count].offset = page->names.size;
        status = append_terminated(&page->names, &reader->text);
    } else if (field == FIELD_TOKEN) {
        status = append_terminated(&page->next, &reader->text);
    } else if (field == FIELD_SIZE && !read_decimal(&reader->text, &page->keys[page->count].size)) {
        stop(reader, WAL_EREMOTE, "a size is not a number");
    } else if (field == FIELD_TRUNCATED) {
        page->is_truncated = text_is(&reader->text, "true");
        if (!page->is_truncated && !text_is(&reader->text, "false")) {
            stop(reader, WAL_EREMOTE, "IsTruncated is not true or false");
        }
    } else if (field == FIELD_CONTENTS) {
        if ((reader->seen & both) != both) {
            stop(reader, WAL_EREMOTE, "an object has no name or no size");
        } else {
            page->count++;
        }
    }
    if (status != WAL_OK) {
        stop(reader, WAL_ENOMEM, "no memory");
    }
}

static void XMLCALL end_element(void *ctx, const XML_Char *name)
{
    struct reader *reader = ctx;

    if (reader->status != WAL_OK) {
        return;
    }
    reader->depth--;
    if (reader->ignored > 0) {
        reader->ignored--;
        return;
    }

    enum field field = field_of(reader);

    if (field == FIELD_CODE) {
        reader->has_code = true;
        (void)XML_StopParser(reader->parser, XML_FALSE);
        return;
    }
    end_field(reader, field);
    reader->path_size -= strlen(name) + 1;
    reader->path[reader->path_size] = '\0';
    reader->field = FIELD_NONE;
}

static void XMLCALL refuse_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
                                   const XML_Char *public, int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    stop(ctx, WAL_EREMOTE, "it has a document type");
}

/* Parses all of it; reader->text is to be deinited. */
static enum wal_status parse(struct reader *reader, const struct wal__heap *heap,
                             struct wal_slice xml)
{
    wal__buf_init(&reader->text, heap);
    reader->parser = XML_ParserCreate("UTF-8");
    if (reader->parser == NULL) {
        return WAL_ENOMEM;
    }
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reader->parser, add_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, refuse_doctype);
    if (XML_Parse(reader->parser, xml.data, (int)xml.size, XML_TRUE) != XML_STATUS_OK &&
        reader->status == WAL_OK && !reader->has_code) {
        reader->status =
            XML_GetErrorCode(reader->parser) == XML_ERROR_NO_MEMORY ? WAL_ENOMEM : WAL_EREMOTE;
        reader->fault = XML_ErrorString(XML_GetErrorCode(reader->parser));
    }
    XML_ParserFree(reader->parser);
    return reader->status;
}

void wal__s3_page_init(struct wal__s3_page *page, const struct wal__heap *heap)
{
    *page = (struct wal__s3_page){.heap = heap};
    wal__buf_init(&page->names, heap);
    wal__buf_init(&page->next, heap);
}

void wal__s3_page_deinit(struct wal__s3_page *page)
{
    wal__buf_deinit(&page->names);
    wal__buf_deinit(&page->next);
    wal__heap_free(page->heap, page->keys);
    *page = (struct wal__s3_page){0};
}

enum wal_status wal__s3_page_parse(struct wal__s3_page *page, struct wal_slice xml,
                                   struct wal_error *error)
{
    struct reader reader = {.page = page, .root = "ListBucketResult"};
    enum wal_status status;

    if (xml.size > WAL__S3_PAGE_MAX) {
        return wal__fail(error, WAL_EREMOTE, "the list is too long");
    }
    status = parse(&reader, page->heap, xml);
    wal__buf_deinit(&reader.text);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    if (status == WAL_OK && (reader.seen & bit(FIELD_TRUNCATED)) == 0) {
        status = WAL_EREMOTE;
        reader.fault = "IsTruncated is missing";
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "the list that the object store sent cannot be read: %s",
                           reader.fault == NULL ? "no memory" : reader.fault);
}

void wal__s3_error_code(struct wal_slice xml, char code[WAL__S3_CODE_SIZE])
{
    struct reader reader = {.root = "Error"};
    size_t size = 0;

    code[0] = '\0';
    if (xml.size == 0 || xml.size > WAL__S3_PAGE_MAX) {
        return;
    }
    if (parse(&reader, &wal__heap_libc, xml) == WAL_OK && reader.text.size < WAL__S3_CODE_SIZE) {
        for (size_t i = 0; i < reader.text.size; i++) {
            uint8_t c = reader.text.data[i];

            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
                code[size++] = (char)c;
            }
        }
        code[size] = '\0';
    }
    wal__buf_deinit(&reader.text);
}
