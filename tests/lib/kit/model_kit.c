/*
 * model_kit.c - sessions of any dialect in memory, read, written and compared.
 */
#include "tests/lib/kit/model_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"
#include "tests/lib/test.h"

static const struct wal__json_span none = {NULL, 0};

/* ------------------------------------------------------------- files --- */

/* Room for one item more; until the test ends, as all that the kit allocates. */
static void *grown(void *items, size_t count, size_t size)
{
    void *more;

    if ((count & (count - 1)) != 0) {
        return items;
    }
    more = test_memory((2 * count + 1) * size);
    if (count > 0) {
        memcpy(more, items, count * size);
    }
    return more;
}

static struct model_kit_file *add_file(struct model_kit_files *files, const char *path,
                                       bool is_document)
{
    struct model_kit_file *file;

    files->items = grown(files->items, files->count, sizeof(*file));
    file = &files->items[files->count++];
    *file = (struct model_kit_file){.is_document = is_document, .data = test_memory(1)};
    file->path = strcpy(test_memory(strlen(path) + 1), path);
    return file;
}

static void append(struct model_kit_file *file, const void *data, size_t size)
{
    if (file->size + size + 1 > file->capacity) {
        file->capacity = 2 * (file->size + size + 1);
        file->data = memcpy(test_memory(file->capacity), file->data, file->size);
    }
    memcpy(file->data + file->size, data, size);
    file->size += size;
    file->data[file->size] = '\0';
}

void model_kit_files_add(struct model_kit_files *files, const char *path, bool is_document,
                         const void *data, size_t size)
{
    append(add_file(files, path, is_document), data, size);
}

const struct model_kit_file *model_kit_files_find(const struct model_kit_files *files,
                                                  const char *end)
{
    for (size_t i = 0; i < files->count; i++) {
        size_t size = strlen(files->items[i].path);
        if (size >= strlen(end) && strcmp(files->items[i].path + size - strlen(end), end) == 0) {
            return &files->items[i];
        }
    }
    return NULL;
}

static bool choose_file(void *ctx, const char *path, enum wal__output_kind kind)
{
    bool is_document = kind != WAL__OUTPUT_LINES;
    struct model_kit_files *files = ctx;

    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path) == 0) {
            assert_int_equal(files->items[i].is_document, is_document);
            files->items[i].size = is_document ? 0 : files->items[i].size;
            files->chosen = i;
            return !files->fails;
        }
    }
    add_file(files, path, is_document);
    files->chosen = files->count - 1;
    return !files->fails;
}

static bool put_bytes(void *ctx, const void *data, size_t size)
{
    struct model_kit_files *files = ctx;

    assert_true(files->chosen < files->count);
    append(&files->items[files->chosen], data, size);
    return !files->fails;
}

/* ------------------------------------------------------------ memory --- */

/* Exactly the requested size, so that sanitizers detect overruns. */
static void *more(void *ctx, size_t size, size_t *got)
{
    void *memory = malloc(size > 0 ? size : 1);

    (void)ctx;
    *got = size;
    test_at_end(free, memory);
    return memory;
}

/* ----------------------------------------------------------- reading --- */

struct reading {
    struct model_kit *kit;
    const struct wal__dialect *dialect;
    struct wal__model_reader reader;
    struct wal__model_table ids;
    struct wal__json_span before;
    struct wal__json_span main;      /* the last line that moves the head */
    struct wal__model_table parents; /* of lines, by hash of id */
    struct wal__json_span head;      /* of the log */
    struct wal__json_span last;      /* item of the line */
    bool has_mainline;
    const struct model_kit_files *files;
};

static void merge_session(struct wal__model_session *to, const struct wal__model_session *from)
{
    struct wal__model_session found = *from;

#define KEEP(field)              \
    if (found.field.size == 0) { \
        found.field = to->field; \
    }
    KEEP(id)
    KEEP(cwd)
    KEEP(title)
    KEEP(time)
    KEEP(updated)
    KEEP(parent)
    KEEP(project)
    KEEP(provider)
    KEEP(model)
    KEEP(thinking_level)
    KEEP(agent)
    KEEP(exit_reason)
    KEEP(metadata)
#undef KEEP
    *to = found;
}

static bool take_item(void *ctx, struct wal__model_item *item)
{
    struct reading *reading = ctx;
    struct model_kit *kit = reading->kit;

    if (item->kind == WAL__ITEM_HEADER && item->session != NULL) {
        merge_session(&kit->session, item->session);
    }
    kit->items = grown(kit->items, kit->count, sizeof(*item));
    kit->items[kit->count++] = *item;
    if (!item->is_off_branch && item->stream == 0) {
        reading->last = item->id;
    }
    return true;
}

static bool is_taken(const struct reading *reading, struct wal__json_span id)
{
    struct wal__json_span found;

    return id.size > 2 &&
           wal__model_table_get(&reading->ids, wal__model_string_hash(0, id), &found);
}

static struct wal__json_span generated_id(struct reading *reading, struct wal__json_span own,
                                          size_t number)
{
    char text[512];
    struct wal__json_span span = {(const uint8_t *)text, 0};
    int size = own.size > 2 ? snprintf(text, sizeof(text), "%.*s~%zu\"", (int)own.size - 1,
                                       (const char *)own.data, number)
                            : snprintf(text, sizeof(text), "\"line-%zu\"", number);

    span.size = (size_t)size;
    return wal__arena_copy(&reading->kit->memory, span);
}

/* What the log makes of a line. */
static void resolve_line(struct reading *reading, const struct wal__line_info *line, size_t number,
                         struct wal__model_line *out)
{
    bool goes_under = line->link == WAL__LINK_HEAD;

    out->id = line->id;
    out->is_exact = out->id.size > 2 && !is_taken(reading, out->id);
    if (!out->is_exact) {
        out->id = generated_id(reading, line->id, number);
    }
    out->parent = none;
    if (line->link == WAL__LINK_BEFORE && is_taken(reading, line->parent)) {
        (void)wal__model_table_get(&reading->parents, wal__model_string_hash(0, line->parent),
                                   &out->parent);
    } else if (line->link == WAL__LINK_MAIN) {
        out->parent = reading->main;
    } else if (line->link == WAL__LINK_EXPLICIT && is_taken(reading, line->parent)) {
        out->parent = line->parent;
    } else if (line->link == WAL__LINK_HEAD) {
        out->parent = reading->head;
    } else if (line->link != WAL__LINK_ROOT &&
               (line->link != WAL__LINK_BEFORE || wal__json_span_equal(line->parent, line->id))) {
        out->parent = reading->before;
        out->is_exact = out->is_exact && line->link != WAL__LINK_EXPLICIT;
    }
    goes_under |= out->parent.size == reading->head.size &&
                  (out->parent.size == 0 || wal__json_characters_equal(out->parent, reading->head));
    if (out->stream == 0 &&
        (line->head == WAL__HEAD_MOVE || (line->head == WAL__HEAD_EXTEND && goes_under) ||
         (!reading->has_mainline && line->is_sidechain))) {
        reading->head = out->id;
        reading->main = out->id;
    }
    reading->before = out->id;
    assert_true(
        wal__model_table_put(&reading->parents, wal__model_string_hash(0, out->id), out->parent));
    assert_true(wal__model_table_put(&reading->ids, wal__model_string_hash(0, out->id), out->id));
}

static void read_line(struct reading *reading, struct wal__json_span text, size_t number,
                      uint32_t stream)
{
    struct wal__model_line out = {.text = text, .stream = stream};
    struct wal__json_span head = reading->head;
    struct wal__line_info line;

    if (wal__line_is_blank(text.data, text.size) ||
        wal__line_read(reading->dialect, text.data, text.size, &line, NULL) != WAL__JSON_OK) {
        reading->kit->damaged += text.size > 0 ? 1 : 0;
        return;
    }
    resolve_line(reading, &line, number, &out);
    out.time = line.time;
    if (out.time.size == 0 && line.time_ms > 0) {
        uint8_t time[WAL__MODEL_TIME_SIZE];

        out.time =
            wal__arena_copy(&reading->kit->memory, wal__model_time_write(line.time_ms, time));
    }
    reading->last = none;
    if (reading->dialect->read_ops->line(&reading->reader, &out) != WAL__JSON_OK) {
        fail_msg("%s refuses line %zu: %.*s", reading->dialect->name, number, (int)text.size,
                 (const char *)text.data);
    }
    if (reading->last.size > 0 && (head.data != reading->head.data)) {
        reading->kit->head = reading->last;
    }
}

static void each_line(struct reading *reading, const struct model_kit_file *file, uint32_t stream,
                      bool only_looks)
{
    const char *at = file->data;
    size_t number = 0;

    while (at < file->data + file->size) {
        size_t left = (size_t)(file->data + file->size - at);
        const char *end = memchr(at, '\n', left);
        size_t size = end != NULL ? (size_t)(end - at) : left;
        struct wal__json_span text = wal__line_text(at, size);
        struct wal__line_info line;
        if (!only_looks) {
            read_line(reading, text, ++number, stream);
        } else if (wal__line_read(reading->dialect, text.data, text.size, &line, NULL) ==
                   WAL__JSON_OK) {
            reading->has_mainline |= line.is_in_conversation && !line.is_sidechain;
        }
        at += size + 1;
    }
}

static bool get_document(void *ctx, const char *key, struct wal__json_span *value)
{
    struct reading *reading = ctx;

    for (size_t i = 0; i < reading->files->count; i++) {
        const struct model_kit_file *file = &reading->files->items[i];
        if (file->is_document && strcmp(file->path, key) == 0) {
            *value = (struct wal__json_span){(uint8_t *)file->data, file->size};
            return true;
        }
    }
    return false;
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(const struct model_kit_file *const *)a)->path,
                  (*(const struct model_kit_file *const *)b)->path);
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    struct reading *reading = ctx;
    const struct model_kit_file **found = test_memory(reading->files->count * sizeof(*found));
    size_t count = 0;
    bool goes_on = true;

    for (size_t i = 0; i < reading->files->count; i++) {
        const struct model_kit_file *file = &reading->files->items[i];
        if (file->is_document && strncmp(file->path, prefix, strlen(prefix)) == 0) {
            found[count++] = file;
        }
    }
    qsort(found, count, sizeof(*found), by_path);
    for (size_t i = 0; i < count && goes_on; i++) {
        struct wal__json_span value = {(const uint8_t *)found[i]->data, found[i]->size};
        goes_on = each(each_ctx, found[i]->path, value);
    }
    return goes_on;
}

static void find_live(struct model_kit *kit)
{
    struct wal__json_span id = kit->head;

    kit->is_live = test_memory(kit->count * sizeof(kit->is_live[0]));
    for (size_t i = kit->count; i-- > 0;) {
        struct wal__model_item *item = &kit->items[i];
        if (item->is_off_branch || item->kind == WAL__ITEM_HEADER) {
            kit->is_live[i] = true;
        } else if (id.size > 0 && wal__json_characters_equal(item->id, id)) {
            kit->is_live[i] = true;
            id = item->parent;
        }
    }
}

void model_kit_read(struct model_kit *kit, const char *dialect, const struct model_kit_files *files)
{
    struct reading reading = {.kit = kit, .files = files};
    struct wal__model_documents tree = {
        .ctx = &reading, .get = get_document, .scan = scan_documents};
    const struct wal__dialect_read_ops *from;
    uint32_t stream = 0;

    *kit = (struct model_kit){.memory = {.alloc_block = more}};
    kit->session.id =
        wal__arena_copy(&kit->memory, (struct wal__json_span){(const uint8_t *)"\"session\"", 9});
    reading.dialect = wal__dialect_find(dialect);
    assert_non_null(reading.dialect);
    from = reading.dialect->read_ops;
    reading.ids.arena = &kit->memory;
    reading.parents.arena = &kit->memory;
    reading.reader = (struct wal__model_reader){
        .dialect = reading.dialect,
        .arena = &kit->memory,
        .scratch = &kit->memory,
        .sink = take_item,
        .dialects = wal__dialect_list(),
        .ctx = &reading,
    };
    if (from->documents != NULL) {
        assert_int_equal(from->documents(&reading.reader, &tree), WAL__JSON_OK);
        kit->head = from->stream == NULL ? reading.last : kit->head;
    }
    for (size_t i = 0; from->line != NULL && i < files->count; i++) {
        stream = 0;
        if (files->items[i].is_document ||
            (from->stream != NULL && !from->stream(files->items[i].path, &stream))) {
            continue;
        }
        each_line(&reading, &files->items[i], stream, true);
        each_line(&reading, &files->items[i], stream, false);
    }
    if (from->finish != NULL) {
        reading.last = none;
        assert_int_equal(from->finish(&reading.reader), WAL__JSON_OK);
        if (reading.last.size > 0) {
            kit->head = reading.last;
        }
    }
    find_live(kit);
}

void model_kit_read_text(struct model_kit *kit, const char *dialect, const char *text)
{
    struct model_kit_files files = {.items = NULL};

    model_kit_files_add(&files, "file", false, text, strlen(text));
    model_kit_read(kit, dialect, &files);
}

/* ----------------------------------------------------------- writing --- */

bool model_kit_write(const struct model_kit *kit, const char *dialect,
                     struct model_kit_files *files, uint64_t *losses)
{
    struct wal__model_output output = {.ctx = files, .file = choose_file, .put = put_bytes};
    struct wal__arena memory = {.alloc_block = more};
    struct wal__model_writer writer = {
        .dialect = wal__dialect_find(dialect), .session = &kit->session, .output = &output};
    bool has_branches;
    bool is_done;

    writer.arena = &memory;
    writer.scratch = &memory;
    assert_non_null(writer.dialect);
    assert_non_null(writer.dialect->write_ops);
    has_branches = (writer.dialect->write_ops->carries & WAL__CARRIES(BRANCHES)) != 0;
    is_done = wal__model_write_begin(&writer);
    for (size_t i = 0; is_done && i < kit->count; i++) {
        struct wal__model_item item = kit->items[i];
        struct wal__model_block *blocks =
            wal__arena_alloc(&memory, (item.block_count + 1) * sizeof(blocks[0]));
        if (item.block_count > 0) {
            memcpy(blocks, item.blocks, item.block_count * sizeof(blocks[0]));
        }
        item.blocks = blocks;
        if (!has_branches && !kit->is_live[i]) {
            writer.losses[item.is_sidechain ? WAL__FEATURE_SIDECHAINS : WAL__FEATURE_BRANCHES]++;
            continue;
        }
        is_done = wal__model_write_item(&writer, &item);
    }
    is_done = is_done && wal__model_write_end(&writer, kit->head);
    if (losses != NULL) {
        memcpy(losses, writer.losses, sizeof(writer.losses));
    }
    return is_done;
}

/* ------------------------------------------------------------ checks --- */

void assert_is(struct wal__json_span span, const char *text)
{
    if (text == NULL) {
        assert_int_equal(span.size, 0);
    } else {
        assert_true(wal__json_string_is(span, text));
    }
}

void assert_number(struct wal__json_span span, const char *digits)
{
    assert_int_equal(span.size, strlen(digits));
    assert_memory_equal(span.data, digits, span.size);
}

struct wal__line_info model_kit_line(const struct wal__dialect *dialect, const char *text)
{
    struct wal__line_info line;

    assert_int_equal(wal__line_read(dialect, text, strlen(text), &line, NULL), WAL__JSON_OK);
    return line;
}
