/*
 * checkpoint_kit.c - a work tree and its checkpoints, for tests.
 */
#include "tests/lib/kit/checkpoint_kit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/blob.h"

enum { PATHS_MAX = 64, TEXT_MAX = 65536 };

/* --- work tree ----------------------------------------------------------- */

static void open_store(struct kit_work *work, uint32_t flags)
{
    work->store = kit_open("store", flags);
}

struct kit_work kit_work_begin(uint32_t flags)
{
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct kit_work work = {0};

    assert_int_equal(mkdir("work", 0755), 0);
    assert_non_null(getcwd(work.root, sizeof(work.root) - 5));
    strcat(work.root, "/work");
    open_store(&work, flags | WAL_OPEN_CREATE);
    options.id = kit_text("s");
    options.cwd = kit_text(work.root);
    work.session = kit_create_with(work.store, &options);
    return work;
}

void kit_work_end(struct kit_work *work)
{
    wal_session_close(work->session);
    kit_close(work->store);
}

void kit_work_reopen(struct kit_work *work, uint32_t flags)
{
    kit_work_end(work);
    open_store(work, flags);
    work->session = kit_session(work->store, "s");
}

const char *kit_path(const struct kit_work *work, const char *path)
{
    static char full[8192];

    snprintf(full, sizeof(full), "%s/%s", work->root, path);
    return full;
}

void kit_write_bytes(const struct kit_work *work, const char *path, const void *data, size_t size)
{
    char full[8192];
    FILE *file;

    snprintf(full, sizeof(full), "%s", kit_path(work, path));
    for (char *at = full + strlen(work->root) + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(full, 0755);
            *at = '/';
        }
    }
    file = fopen(full, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fchmod(fileno(file), 0644), 0);
    assert_int_equal(fclose(file), 0);
}

void kit_write(const struct kit_work *work, const char *path, const char *content)
{
    kit_write_bytes(work, path, content, strlen(content));
}

void kit_wait_past_mtime(void)
{
    usleep(60000);
}

/* --- making -------------------------------------------------------------- */

/* Cuts a copy of the text at blanks. */
static uint32_t split_paths(char *text, struct wal_slice *out)
{
    uint32_t count = 0;
    char *rest = text;
    char *part;

    while ((part = strsep(&rest, " ")) != NULL) {
        if (*part != '\0') {
            assert_true(count < PATHS_MAX);
            out[count++] = kit_text(part);
        }
    }
    return count;
}

static enum wal_status create(struct kit_work *work, const char *id, const char *paths,
                              struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_CHECKPOINT_ALL_OR_NONE};
    struct wal_slice slices[PATHS_MAX];
    char *copy = strdup(paths);
    enum wal_status status;

    options.id = kit_text(id == NULL ? "" : id);
    status = wal_checkpoint_create(work->session, slices, split_paths(copy, slices), &options,
                                   checkpoint, error);
    free(copy);
    return status;
}

struct wal_checkpoint_info kit_checkpoint(struct kit_work *work, const char *id, const char *paths)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint = NULL;
    struct wal_error error = KIT_ERROR;
    enum wal_status status = create(work, id, paths, &checkpoint, &error);

    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    wal_file_cursor_close(checkpoint);
    return info;
}

enum wal_status kit_try_checkpoint(struct kit_work *work, const char *id, const char *paths,
                                   struct wal_error *error)
{
    struct wal_file_cursor *checkpoint = (void *)work;
    enum wal_status status = create(work, id, paths, &checkpoint, error);

    assert_int_not_equal(status, WAL_OK);
    assert_ptr_equal(checkpoint, work);
    return status;
}

/* --- reading ------------------------------------------------------------- */

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *text, const char *format, ...)
{
    size_t size = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + size, TEXT_MAX - size, format, arguments);
    va_end(arguments);
}

static void add_content(struct wal_store *store, const struct wal_file *file, char *text)
{
    struct wal_blob *blob;
    char data[1024];
    uint64_t got = 0;

    assert_ok(wal_blob_open(store, file->digest, &blob, NULL));
    assert_int_equal(wal_blob_size(blob), file->size);
    assert_ok(wal_blob_read(blob, 0, data, sizeof(data), &got, NULL));
    wal_blob_close(blob);
    add(text, "%.*s", (int)got, data);
}

static void add_file(struct wal_store *store, const struct wal_file *file, char *text)
{
    add(text, "%s%.*s", text[0] == '\0' ? "" : " ", (int)file->path.size,
        (const char *)file->path.data);
    if (file->kind == WAL_FILE_ABSENT) {
        add(text, "-");
        return;
    }
    if (file->kind == WAL_FILE_SYMLINK) {
        add(text, "->");
    } else if (file->mode != 0644) {
        add(text, "(%o)=", file->mode);
    } else {
        add(text, "=");
    }
    add_content(store, file, text);
}

const char *kit_files(struct kit_work *work, struct wal_session *session, const char *id)
{
    static char text[TEXT_MAX];
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_file_cursor *checkpoint;
    enum wal_status status;

    text[0] = '\0';
    assert_ok(wal_file_cursor_open(session, kit_text(id), &checkpoint, NULL));
    while ((status = wal_file_cursor_next(checkpoint, &file, NULL)) == WAL_OK) {
        add_file(work->store, &file, text);
    }
    assert_int_equal(status, WAL_END);
    wal_file_cursor_close(checkpoint);
    return text;
}

const char *kit_checkpoints(struct wal_session *session)
{
    static char text[TEXT_MAX];
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *checkpoints;
    enum wal_status status;

    text[0] = '\0';
    assert_ok(wal_checkpoint_cursor_open(session, &checkpoints, NULL));
    while ((status = wal_checkpoint_cursor_next(checkpoints, &info, NULL)) == WAL_OK) {
        add(text, "%s%.*s", text[0] == '\0' ? "" : " ", (int)info.id.size,
            (const char *)info.id.data);
    }
    assert_int_equal(status, WAL_END);
    wal_checkpoint_cursor_close(checkpoints);
    return text;
}

static void add_change(const struct wal_file_change *change, char *text)
{
    add(text, "%s%.*s +%llu -%llu%s%s%s", text[0] == '\0' ? "" : ", ", (int)change->path.size,
        (const char *)change->path.data, (unsigned long long)change->insertions,
        (unsigned long long)change->deletions,
        (change->flags & WAL_FILE_CHANGE_BINARY) != 0 ? " binary" : "",
        (change->flags & WAL_FILE_CHANGE_MODE) != 0 ? " mode" : "",
        (change->flags & WAL_FILE_CHANGE_CONTENT) != 0 ? "" : " same");
}

const char *kit_changes(struct wal_file_change_cursor *changes)
{
    static char text[TEXT_MAX];
    struct wal_file_changes_info info = {.struct_size = sizeof(info)};
    struct wal_file_change change = {.struct_size = sizeof(change)};
    uint64_t insertions = 0;
    uint64_t deletions = 0;
    uint64_t files = 0;
    enum wal_status status;

    text[0] = '\0';
    while ((status = wal_file_change_cursor_next(changes, &change, NULL)) == WAL_OK) {
        add_change(&change, text);
        insertions += change.insertions;
        deletions += change.deletions;
        files++;
    }
    assert_int_equal(status, WAL_END);
    assert_ok(wal_file_changes_get_info(changes, &info, NULL));
    assert_int_equal(info.files, files);
    assert_int_equal(info.insertions, insertions);
    assert_int_equal(info.deletions, deletions);
    wal_file_change_cursor_close(changes);
    return text;
}

const char *kit_diff(struct wal_session *session, const char *before, const char *after)
{
    struct wal_file_change_cursor *changes;
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        wal_checkpoint_diff(session, kit_text(before), kit_text(after), &changes, &error);

    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    return kit_changes(changes);
}
