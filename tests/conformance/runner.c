/*
 * runner.c - runs the cases of bindings/conformance.json by the C library:
 *
 *   conformance FILE    in the current directory; reports each case that fails
 *
 * bindings/conformance.md describes the file.
 */
#include "tests/conformance/runner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS(name) [-(name)] = #name
static const char *const status_names[] = {
    STATUS(WAL_EINVAL),    STATUS(WAL_ENOTFOUND), STATUS(WAL_EEXISTS),     STATUS(WAL_ECONFLICT),
    STATUS(WAL_ETOOBIG),   STATUS(WAL_ENOSPACE),  STATUS(WAL_EIO),         STATUS(WAL_ETORN),
    STATUS(WAL_ECORRUPT),  STATUS(WAL_EVERSION),  STATUS(WAL_ELOCKED),     STATUS(WAL_EPOISONED),
    STATUS(WAL_ENOMEM),    STATUS(WAL_EBUSY),     STATUS(WAL_EREADONLY),   STATUS(WAL_ENOTSTORE),
    STATUS(WAL_EFORKED),   STATUS(WAL_ENOPARENT), STATUS(WAL_EBADJSON),    STATUS(WAL_EDAMAGED),
    STATUS(WAL_ENETWORK),  STATUS(WAL_ECALLBACK), STATUS(WAL_EDEPENDENCY), STATUS(WAL_ESCHEMA),
    STATUS(WAL_EREDACTED), STATUS(WAL_ECLAIMED),  STATUS(WAL_ELIMIT),      STATUS(WAL_ELOCKFILE),
    STATUS(WAL_EOUTSIDE),  STATUS(WAL_ECHANGED),  STATUS(WAL_EACCESS),     STATUS(WAL_ENOTFILE),
    STATUS(WAL_ECLOSED),   STATUS(WAL_ETRASHED),  STATUS(WAL_EREMOTE),     STATUS(WAL_EFENCED)};

void runner_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(1);
}

void *runner_keep(struct runner *runner, void *piece)
{
    if (piece == NULL || runner->piece_count == PIECES) {
        runner_fail("out of memory");
    }
    runner->pieces[runner->piece_count++] = piece;
    return piece;
}

static struct wal_session *find(struct runner *runner, const char *id)
{
    for (size_t i = runner->session_count; i > 0; i--) {
        if (strcmp(runner->sessions[i - 1].id, id) == 0) {
            return runner->sessions[i - 1].session;
        }
    }
    return NULL;
}

struct wal_session *runner_session(struct runner *runner, const json_t *step)
{
    const char *id = json_string_value(json_object_get(step, "session"));
    struct wal_session *session = id == NULL ? NULL : find(runner, id);

    if (session == NULL) {
        runner_fail("no session %s is open", id == NULL ? "" : id);
    }
    return session;
}

void runner_add(struct runner *runner, const char *id, struct wal_session *session)
{
    if (runner->session_count == SESSIONS) {
        runner_fail("too many sessions in one case");
    }
    runner->sessions[runner->session_count].id = runner_keep(runner, strdup(id));
    runner->sessions[runner->session_count++].session = session;
}

static struct wal_slice repeat(struct runner *runner, const json_t *pair)
{
    const char *text = json_string_value(json_array_get(pair, 0));
    size_t count = (size_t)json_integer_value(json_array_get(pair, 1));
    size_t size = strlen(text);
    char *made = runner_keep(runner, malloc(size * count + 1));

    for (size_t i = 0; i < count; i++) {
        memcpy(made + i * size, text, size);
    }
    return (struct wal_slice){made, size * count};
}

static struct wal_slice from_hex(struct runner *runner, const char *digits)
{
    size_t size = strlen(digits) / 2;
    unsigned char *made = runner_keep(runner, malloc(size + 1));

    for (size_t i = 0; i < size; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};

        made[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return (struct wal_slice){made, size};
}

struct wal_slice runner_text(struct runner *runner, const json_t *step, const char *name)
{
    const json_t *value = json_object_get(step, name);

    if (json_is_string(value)) {
        return (struct wal_slice){json_string_value(value), json_string_length(value)};
    }
    if (json_object_get(value, "repeat") != NULL) {
        return repeat(runner, json_object_get(value, "repeat"));
    }
    if (json_object_get(value, "hex") != NULL) {
        return from_hex(runner, json_string_value(json_object_get(value, "hex")));
    }
    return (struct wal_slice){NULL, 0};
}

struct wal_slice runner_json(struct runner *runner, const json_t *step, const char *name)
{
    const json_t *value = json_object_get(step, name);
    char *text;

    if (value == NULL) {
        return (struct wal_slice){NULL, 0};
    }
    text = runner_keep(runner, json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT));
    return (struct wal_slice){text, strlen(text)};
}

uint64_t runner_number(const struct runner *runner, const json_t *step, const char *name)
{
    const json_t *value = json_object_get(step, name);

    if (json_is_string(value)) {
        value = json_object_get(runner->saved, json_string_value(value) + 1);
    }
    return (uint64_t)json_integer_value(value);
}

json_t *runner_string(struct wal_slice slice)
{
    return slice.size == 0 ? json_null() : json_stringn(slice.data, (size_t)slice.size);
}

void runner_session_options(struct runner *runner, const json_t *step,
                            struct wal_session_options *options)
{
    *options = (struct wal_session_options)WAL_INIT(wal_session_options);
    options->id = runner_text(runner, step, "id");
    options->cwd = runner_text(runner, step, "cwd");
    options->project = runner_text(runner, step, "project");
    options->title = runner_text(runner, step, "title");
    options->parent_id = runner_text(runner, step, "parentId");
    options->source = runner_text(runner, step, "source");
    options->metadata = runner_json(runner, step, "metadata");
}

void runner_change(struct runner *runner, const json_t *value, struct wal_session_change *change)
{
    *change = (struct wal_session_change)WAL_INIT(wal_session_change);
    if (json_object_get(value, "title") != NULL) {
        change->fields |= WAL_CHANGE_TITLE;
        change->title = runner_text(runner, value, "title");
    }
    if (json_object_get(value, "metadata") != NULL) {
        change->fields |= WAL_CHANGE_METADATA;
        change->metadata = runner_json(runner, value, "metadata");
    }
}

/* Whether a result has all that is expected: members of objects that are not named may have any
 * value. */
static bool is_expected(const json_t *result, const json_t *expected)
{
    const json_t *member;
    const char *name;
    size_t index;

    if (json_is_object(expected) && json_is_object(result)) {
        json_object_foreach((json_t *)(uintptr_t)expected, name, member)
        {
            if (!is_expected(json_object_get(result, name), member)) {
                return false;
            }
        }
        return true;
    }
    if (json_is_array(expected) && json_is_array(result)) {
        if (json_array_size(result) != json_array_size(expected)) {
            return false;
        }
        json_array_foreach(expected, index, member)
        {
            if (!is_expected(json_array_get(result, index), member)) {
                return false;
            }
        }
        return true;
    }
    return json_equal(result, expected) != 0;
}

static step_fn *find_step(const struct step_kind *kinds, const char *name)
{
    for (; kinds->name != NULL; kinds++) {
        if (strcmp(kinds->name, name) == 0) {
            return kinds->run;
        }
    }
    return NULL;
}

/* The name of what a step did: a status, or null when it succeeded. */
static const char *outcome_of(enum wal_status status)
{
    return status >= 0 ? NULL : status_names[-status];
}

static bool run_step(struct runner *runner, const char *where, const json_t *step)
{
    const char *call = json_string_value(json_object_get(step, "call"));
    const char *wanted = json_string_value(json_object_get(step, "error"));
    const char *name = json_string_value(json_object_get(step, "save"));
    const json_t *expected = json_object_get(step, "returns");
    step_fn *run = find_step(entry_steps, call);
    json_t *result = NULL;
    const char *got;
    bool passed;

    run = run != NULL ? run : find_step(store_steps, call);
#ifdef AGENTWAL_HAVE_SEARCH
    run = run != NULL ? run : find_step(search_steps, call);
#endif
    if (run == NULL) {
        runner_fail("%s: no call %s", where, call);
    }
    runner->error = (struct wal_error)WAL_INIT(wal_error);
    got = outcome_of(run(runner, step, &result));
    if (result == NULL) {
        result = json_null();
    }
    if (name != NULL) {
        json_object_set(runner->saved, name, result);
    }
    passed = wanted != NULL || got != NULL
                 ? wanted != NULL && got != NULL && strcmp(wanted, got) == 0
                 : expected == NULL || is_expected(result, expected);
    if (!passed) {
        char *text = json_dumps(result, JSON_ENCODE_ANY | JSON_COMPACT);

        (void)fprintf(stderr, "%s: %s: %s, %s %s\n", where, call, got == NULL ? "succeeded" : got,
                      text, got == NULL ? "" : runner->error.text);
        free(text);
    }
    json_decref(result);
    return passed;
}

static bool run_case(const json_t *entry, size_t number)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    struct runner *runner = calloc(1, sizeof(*runner));
    struct wal_open_options options = WAL_INIT(wal_open_options);
    const json_t *step;
    bool passed = true;
    size_t index;

    if (runner == NULL) {
        runner_fail("out of memory");
    }
    runner->error = (struct wal_error)WAL_INIT(wal_error);
    runner->saved = json_object();
    (void)snprintf(runner->path, sizeof(runner->path), "store-%zu", number);
    options.flags = WAL_OPEN_CREATE;
    if (wal_open(runner->path, &options, &runner->store, &runner->error) != WAL_OK) {
        runner_fail("%s: %s", name, runner->error.text);
    }
    json_array_foreach(json_object_get(entry, "steps"), index, step)
    {
        char where[512];

        (void)snprintf(where, sizeof(where), "%s, step %zu", name, index + 1);
        if (!run_step(runner, where, step)) {
            passed = false;
            break;
        }
    }
    for (size_t i = 0; i < runner->session_count; i++) {
        wal_session_close(runner->sessions[i].session);
    }
    (void)wal_close(runner->store, NULL);
    for (size_t i = 0; i < runner->piece_count; i++) {
        free(runner->pieces[i]);
    }
    json_decref(runner->saved);
    free(runner);
    return passed;
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *file = json_load_file(argc > 1 ? argv[1] : "", 0, &error);
    size_t failed = 0;
    const json_t *entry;
    size_t number;

    if (file == NULL) {
        runner_fail("%s:%d: %s", argc > 1 ? argv[1] : "no file", error.line, error.text);
    }
    json_array_foreach(json_object_get(file, "cases"), number, entry)
    {
        failed += run_case(entry, number) ? 0 : 1;
    }
    printf("%zu cases, %zu failed\n", number, failed);
    json_decref(file);
    return failed > 0 || number == 0 ? 1 : 0;
}
