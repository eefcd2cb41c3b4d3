/*
 * doc.c - the verbs doc put, get, delete, list and scan: JSON documents of a session or of the
 * store; and head: lists, shows and moves named heads.
 *
 * Invariant: a version is printed after it is durable, the previous value of a head after its move
 * is. A value is printed as the bytes that were put, without the white space around them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

/* --- heads -------------------------------------------------------------- */

struct head_request {
    const char *name;     /* null: all heads */
    const char *entry;    /* null: show; empty: remove */
    const char *expected; /* null: any value */
    const char *note;
    uint32_t stream;
    bool has_stream;
};

static void print_head(const struct cli *cli, const struct wal_head *head)
{
    struct wal__json_out json;

    if (!cli->json) {
        cli_print_name(stdout, head->name);
        fputs("  ", stdout);
        cli_print_name(stdout, head->entry_id);
        if (head->stream != 0) {
            printf("  (stream %" PRIu32 ")", head->stream);
        }
        if (head->note.size > 0) {
            fputs("  ", stdout);
            cli_print_text(stdout, head->note, 0, false);
        }
        putchar('\n');
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "name", head->name);
    wal__json_out_member_count(&json, "stream", head->stream);
    cli_json_member_text(&json, "entryId", head->entry_id);
    cli_json_member_text_or_null(&json, "note", head->note);
    wal__json_out_member_count(&json, "version", head->version);
    wal__json_out_close_line(&json);
}

/* Prints all heads, or those of one stream. */
static int list_heads(const struct cli *cli, const struct head_request *request)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *heads = NULL;
    enum wal_status status = wal_head_cursor_open(cli->session, &heads, cli->error);

    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_head_cursor_next(heads, &head, cli->error)) == WAL_OK) {
        if (!request->has_stream || head.stream == request->stream) {
            print_head(cli, &head);
        }
    }
    wal_head_cursor_close(heads);
    return status == WAL_OK || status == WAL_END ? CLI_OK : cli_report(cli, cli->items[2], status);
}

static void print_entry(const struct cli *cli, const struct head_request *request, const char *key,
                        const char *entry)
{
    struct wal__json_out json;

    if (!cli->json) {
        fputs(entry, stdout);
        fputs(entry[0] != '\0' ? "\n" : "", stdout);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "name", cli_slice(request->name));
    if (request->entry != NULL) {
        cli_json_member_text_or_null(&json, "entryId", cli_slice(request->entry));
    }
    cli_json_member_text_or_null(&json, key, cli_slice(entry));
    wal__json_out_close_line(&json);
}

static int show(const struct cli *cli, const struct head_request *request)
{
    char entry[256];
    enum wal_status status =
        wal_head_get(cli->session, request->stream, cli_slice(request->name), entry, cli->error);

    cli_check(cli, request->name, status);
    print_entry(cli, request, "entryId", entry);
    return CLI_OK;
}

static int move(const struct cli *cli, const struct head_request *request)
{
    struct wal_head head = {
        .struct_size = sizeof(head),
        .flags = request->expected != NULL ? WAL_HEAD_EXPECT : 0,
        .stream = request->stream,
        .name = cli_slice(request->name),
        .entry_id = cli_slice(request->entry),
        .note = cli_slice(request->note),
        .expected = cli_slice(request->expected),
    };
    char previous[256];
    enum wal_status status = wal_head_move(cli->session, &head, previous, cli->error);

    if (status == WAL_ECONFLICT) {
        cli_print_conflict(cli, head.expected, cli_slice(cli->error->actual));
    }
    cli_check(cli, request->name, status);
    print_entry(cli, request, "previous", previous);
    return CLI_OK;
}

int verb_head(struct cli *cli, int argc, char **argv)
{
    struct head_request request = {.name = NULL};
    uint64_t stream = UINT64_MAX;
    const struct cli_option options[] = {
        {.name = "expect", .value = &request.expected, .max = CLI_ID_MAX, .may_be_empty = true},
        {.name = "note", .value = &request.note, .max = CLI_TEXT_MAX, .may_be_empty = true},
        {.name = "stream", .number = &stream, .max = 255},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 3, 5);
    request.has_stream = stream != UINT64_MAX;
    request.stream = request.has_stream ? (uint32_t)stream : 0;
    request.name = cli->count > 3 ? cli->items[3] : NULL;
    request.entry = cli->count > 4 ? cli->items[4] : NULL;
    if (request.name != NULL && request.name[0] == '\0') {
        cli_fail(cli, CLI_USAGE, "NAME", "is empty");
    }
    if (request.entry == NULL && (request.expected != NULL || request.note != NULL)) {
        cli_fail(cli, CLI_USAGE, request.note != NULL ? "--note" : "--expect",
                 "allowed only with NAME and ENTRY");
    }
    cli_check_id(cli, "NAME", request.name);
    cli_check_id(cli, "ENTRY", request.entry);
    cli_open(cli, request.entry != NULL ? 0 : WAL_OPEN_READ_ONLY);
    if (request.entry == NULL) {
        cli_complete_name(cli, request.stream, CLI_NAME_HEAD, &request.name);
        return request.name == NULL ? list_heads(cli, &request) : show(cli, &request);
    }
    /* The name of a head that is moved may be new: it is not completed. */
    cli_complete_name(cli, request.stream, CLI_NAME_ENTRY, &request.entry);
    cli_complete_name(cli, request.stream, CLI_NAME_ENTRY, &request.expected);
    return move(cli, &request);
}

/* --- documents ---------------------------------------------------------- */

/* Larger than any value that the engine accepts. */
#define VALUE_MAX ((size_t)64 << 20)

struct request {
    const struct cli *cli;
    const char *key;      /* or prefix; empty: all keys */
    const char *expected; /* --if-version, or null */
    const char *at;       /* --at, or null */
    uint64_t version;     /* parsed from `expected` or `at` */
    bool of_store;
    bool history;
};

static int fail(const struct request *request, enum wal_status status)
{
    const char *what = request->key[0] != '\0' ? request->key : "doc";

    return cli_report(request->cli, what, status);
}

/* Prints {"conflict"} with the versions as numbers. */
static void print_stale(const struct request *request)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_open(&json, "conflict", '{');
    wal__json_out_member_count(&json, "expected", request->version);
    wal__json_out_member_count(&json, "actual", strtoull(request->cli->error->actual, NULL, 10));
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
    fflush(stdout);
}

static void write_key(struct wal__json_out *json, struct wal_slice key, uint64_t version)
{
    wal__json_out_open(json, '{');
    cli_json_member_text(json, "key", key);
    wal__json_out_member_count(json, "version", version);
}

/* Prints the result of a put or a delete. */
static int finish(const struct request *request, enum wal_status status, uint64_t version)
{
    struct wal__json_out json;

    if (status == WAL_ECONFLICT) {
        print_stale(request);
    }
    if (status != WAL_OK) {
        return fail(request, status);
    }
    cli_json_init(&json, stdout);
    write_key(&json, cli_slice(request->key), version);
    wal__json_out_close_line(&json);
    return CLI_OK;
}

static struct wal_doc document(const struct request *request)
{
    struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .key = cli_slice(request->key),
    };

    if (request->expected != NULL) {
        doc.flags = WAL_DOC_EXPECT;
        doc.version = request->version;
    }
    return doc;
}

static int put(const struct request *request)
{
    struct wal_doc doc = document(request);
    struct wal__json_scan scan;
    struct wal__json_token value = {0};
    struct wal__json_token end = {0};
    uint64_t version = 0;
    size_t size = 0;
    char *input = cli_keep(cli_read_file(request->cli, NULL, VALUE_MAX, " for a document", &size));
    enum wal__json_status json_status;
    enum wal_status status;

    wal__json_scan_init(&scan, input, size);
    json_status = wal__json_scan_skip(&scan, &value);
    if (json_status == WAL__JSON_OK) {
        json_status = wal__json_scan_next(&scan, &end);
    }
    if (json_status != WAL__JSON_OK) {
        cli_fail(request->cli, CLI_NEGATIVE, request->key,
                 "is not JSON: %s at byte %zu; nothing was stored",
                 wal__json_status_text(json_status), wal__json_scan_offset(&scan));
    }
    doc.value.data = value.span.data;
    doc.value.size = value.span.size;
    status = wal_doc_put(request->cli->store, request->cli->session, &doc, &version,
                         request->cli->error);
    return finish(request, status, version);
}

static int delete (const struct request *request)
{
    struct wal_doc doc = document(request);
    uint64_t version = 0;
    enum wal_status status = wal_doc_delete(request->cli->store, request->cli->session, &doc,
                                            &version, request->cli->error);

    return finish(request, status, version);
}

static void print_document(const struct wal_doc *doc)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    write_key(&json, doc->key, doc->version);
    cli_json_member_time(&json, "modified", doc->modified_ms);
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        wal__json_out_member_bool(&json, "deleted", true);
    } else {
        wal__json_out_key(&json, "value");
        cli_json_raw(&json, doc->value);
    }
    wal__json_out_close_line(&json);
}

static void print_value(struct wal_slice value)
{
    struct wal__json_out json;
    struct cli_json_pieces pieces = {.out = &json, .keeps_breaks = true};

    cli_json_init(&json, stdout);
    cli_json_raw_continue(&pieces, value);
    wal__json_out_newline(&json);
}

static int get(const struct request *request)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status = wal_doc_cursor_open(request->cli->store, request->cli->session, NULL,
                                                 &docs, request->cli->error);

    if (status == WAL_OK) {
        status = wal_doc_cursor_get(docs, cli_slice(request->key), request->version, &doc,
                                    request->cli->error);
    }
    if (status == WAL_OK && request->cli->json) {
        print_document(&doc);
    } else if (status == WAL_OK) {
        print_value(doc.value);
    }
    wal_doc_cursor_close(docs);
    return status == WAL_OK ? CLI_OK : fail(request, status);
}

/* Prints a key on one line; control bytes are escaped. */
static void print_key(const struct request *request, const struct wal_doc *doc)
{
    struct wal__json_out json;

    if (request->cli->json) {
        cli_json_init(&json, stdout);
        write_key(&json, doc->key, doc->version);
        cli_json_member_time(&json, "modified", doc->modified_ms);
        wal__json_out_close_line(&json);
        return;
    }
    cli_print_name(stdout, doc->key);
    putchar('\n');
}

static int print_all(const struct request *request, bool values)
{
    struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options),
        .prefix = cli_slice(request->key),
    };
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;

    options.flags =
        (values ? 0U : WAL_DOC_CURSOR_KEYS) | (request->history ? WAL_DOC_CURSOR_HISTORY : 0U);
    status = wal_doc_cursor_open(request->cli->store, request->cli->session, &options, &docs,
                                 request->cli->error);
    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_doc_cursor_next(docs, &doc, request->cli->error)) == WAL_OK) {
        if (values) {
            print_document(&doc);
        } else {
            print_key(request, &doc);
        }
    }
    wal_doc_cursor_close(docs);
    return status == WAL_OK || status == WAL_END ? CLI_OK : fail(request, status);
}

static int list(const struct request *request)
{
    return print_all(request, false);
}

static int scan(const struct request *request)
{
    return print_all(request, true);
}

struct verb {
    const char *name;
    int (*run)(const struct request *request);
    bool writes; /* allows --if-version */
    bool is_one; /* requires a key */
};

static const struct verb verbs[] = {
    {"put", put, true, true},     {"get", get, false, true},    {"delete", delete, true, true},
    {"list", list, false, false}, {"scan", scan, false, false},
};

static const struct verb *find_verb(const struct cli *cli)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (cli->count > 1 && strcmp(verbs[i].name, cli->items[1]) == 0) {
            return &verbs[i];
        }
    }
    cli_fail(cli, CLI_USAGE, cli->count > 1 ? cli->items[1] : "doc",
             "is not put, get, delete, list or scan");
}

/* Reads the operands and refuses options that the verb does not have. */
static void check(const struct cli *cli, struct request *request, const struct verb *verb)
{
    const char *option = request->at != NULL ? "--at" : "--if-version";
    const char *version = request->at != NULL ? request->at : request->expected;
    int before_key = request->of_store ? 3 : 4;

    cli_check_operands(cli, before_key + (verb->is_one ? 1 : 0), before_key + 1);
    request->key = cli->count > before_key ? cli->items[before_key] : "";
    if (request->expected != NULL && !verb->writes) {
        cli_fail(cli, CLI_USAGE, "--if-version", "allowed only with put and delete");
    }
    if (request->at != NULL && verb->run != get) {
        cli_fail(cli, CLI_USAGE, "--at", "allowed only with get");
    }
    if (request->history && verb->run != scan) {
        cli_fail(cli, CLI_USAGE, "--history", "allowed only with scan");
    }
    cli_check_size(cli, verb->is_one ? "KEY" : "PREFIX", request->key, CLI_KEY_MAX);
    if (version != NULL) {
        cli_parse_number(cli, option, version, UINT64_MAX, &request->version);
    }
}

int verb_doc(struct cli *cli, int argc, char **argv)
{
    struct request request = {.cli = cli};
    const struct cli_option options[] = {
        {.name = "store", .flag = &request.of_store},
        {.name = "if-version", .value = &request.expected},
        {.name = "at", .value = &request.at},
        {.name = "history", .flag = &request.history},
        {.name = NULL},
    };
    const struct verb *verb;

    cli_parse(cli, argc, argv, options);
    verb = find_verb(cli);
    check(cli, &request, verb);
    cli->adds_to_store = verb->run == put && request.of_store;
    cli_use_store(cli, cli->items[2], verb->writes ? 0 : WAL_OPEN_READ_ONLY);
    if (!request.of_store) {
        cli_use_session(cli, cli->items[3]);
    }
    return verb->run(&request);
}
