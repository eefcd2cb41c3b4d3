/*
 * rules.c - reads rules of secrets (secrets.h), compiles their expressions, and indexes the words
 * that begin them.
 *
 * The index has the first three bytes of each word in lower case, as a hash: a bit says whether a
 * word may begin, a list which. A word of two bytes is there with each third one.
 *
 * Invariant: expressions are compiled and run as bytes, in the C locale, and have no reference to a
 * group, so that a match takes time in proportion to the text.
 */
#include "tools/secrets/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/system.h"

enum {
    RULES_MAX = 4 << 20,   /* bytes of a file */
    EXPRESSION_MAX = 2048, /* bytes of one */
    WORD_MIN = 2
};

static const char *const kind_names[SECRETS_KIND_COUNT] = {
    [SECRETS_TOKEN] = "token",   [SECRETS_PRIVATE_KEY] = "private key", [SECRETS_URL] = "URL",
    [SECRETS_HEADER] = "header", [SECRETS_VARIABLE] = "variable",
};

static const char *const part_names[SECRETS_PARTS] = {
    [SECRETS_THEN] = "then", [SECRETS_LEAD] = "before",   [SECRETS_STRONG] = "strong",
    [SECRETS_WEAK] = "weak", [SECRETS_EXCEPT] = "except", [SECRETS_EMPTY] = "placeholder",
};

/* --- expressions ---------------------------------------------------------- */

/* Compiles an expression, anchored as it is used. Returns 0 or an error of regcomp. */
static int compile(struct secrets_expression *expression, enum secrets_part part)
{
    const bool is_then = part == SECRETS_THEN;
    const bool is_lead = part == SECRETS_LEAD;
    char *text = cli_format("%s%s%s%s", is_then ? "^" : "", is_lead ? "(" : "", expression->text,
                            is_lead ? ")$" : "");
    int code = wal__system_compile(&expression->compiled, text,
                                   REG_EXTENDED | (is_then || is_lead ? 0 : REG_NOSUB));

    free(text);
    expression->is_compiled = code == 0;
    return code;
}

bool secrets_matches(struct secrets_rule *rule, enum secrets_part part, struct wal_slice text,
                     regmatch_t *match)
{
    struct secrets_expression *expression = &rule->parts[part];
    char window[SECRETS_WINDOW + 1];
    const char *data = text.data;

    if (expression->text == NULL || (!expression->is_compiled && compile(expression, part) != 0)) {
        return false;
    }
    /* A NUL would end the text; bytes of other characters are in no set that is not negated. */
    for (size_t i = 0; i < text.size; i++) {
        window[i] = (char)(data[i] == '\0' || (data[i] & 0x80) != 0 ? '\x7f' : data[i]);
    }
    window[text.size] = '\0';
    return regexec(&expression->compiled, window, match != NULL ? SECRETS_GROUPS : 0, match, 0) ==
           0;
}

/* --- the index ------------------------------------------------------------ */

static void add_word(struct secrets *secrets, size_t rule, size_t word, const unsigned char *bytes)
{
    uint32_t at = secrets_hash(bytes);

    *CLI_PUSH(secrets->words, secrets->word_count, secrets->word_capacity) =
        (struct secrets_word){(uint32_t)rule, (uint32_t)word, secrets->first[at]};
    secrets->first[at] = (uint32_t)secrets->word_count;
    secrets->is_first[at >> 6] |= (uint64_t)1 << (at & 63);
}

/* Adds the words of a rule, before those that are there. */
static void index_rule(struct secrets *secrets, size_t rule)
{
    for (size_t i = secrets->items[rule].word_count; i > 0; i--) {
        struct wal_slice word = secrets->items[rule].words[i - 1];
        unsigned char bytes[3] = {0};

        memcpy(bytes, word.data, word.size < 3 ? (size_t)word.size : 3);
        if (word.size > WORD_MIN) {
            add_word(secrets, rule, i - 1, bytes);
            continue;
        }
        for (unsigned third = 0; third < 256; third++) {
            bytes[2] = (unsigned char)third;
            if ((third & 0x20) != 0) {
                add_word(secrets, rule, i - 1, bytes);
            }
        }
    }
}

static void index_rules(struct secrets *secrets)
{
    secrets->is_first = cli_keep(cli_alloc((1U << SECRETS_HASH_BITS) / 8));
    secrets->first = cli_keep(cli_alloc((1U << SECRETS_HASH_BITS) * sizeof(secrets->first[0])));
    for (size_t i = secrets->count; i > 0; i--) {
        if (!secrets->items[i - 1].is_replaced) {
            index_rule(secrets, i - 1);
        }
    }
    (void)cli_keep(secrets->words);
}

/* --- the file --------------------------------------------------------------- */

/* A file that is being read. */
struct reading {
    const struct cli *cli;
    const char *path; /* in errors; NULL: the rules of the program */
    struct wal__json_span text;
    struct secrets *secrets;
    struct cli_texts texts;
};

/* Ends the process with the error of a line. */
static _Noreturn void refuse(const struct reading *reading, const uint8_t *at, const char *what,
                             const char *why)
{
    size_t line = 1;

    for (const uint8_t *byte = reading->text.data; byte < at; byte++) {
        line += *byte == '\n' ? 1 : 0;
    }
    cli_fail(reading->cli, CLI_USAGE, reading->path != NULL ? reading->path : "rules.json",
             "line %zu: %s%s%s", line, what, what[0] != '\0' ? ": " : "", why);
}

static const char *read_text(struct reading *reading, const struct wal__json_token *value)
{
    struct wal_slice text = cli_unescape(value, &reading->texts);

    if (value->kind != WAL__JSON_STRING || memchr(text.data, '\0', (size_t)text.size) != NULL) {
        refuse(reading, value->span.data, "", "is no text");
    }
    return cli_keep_slice(text);
}

static void read_words(struct reading *reading, struct secrets_rule *rule,
                       const struct wal__json_token *value)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_scan_init(&scan, value->span.data, value->span.size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_STRING) {
            struct wal_slice word = cli_slice(read_text(reading, &token));

            if (word.size < WORD_MIN || word.size > SECRETS_BEFORE) {
                refuse(reading, token.span.data, "begins", "a word has 2 to 128 bytes");
            }
            *CLI_PUSH(rule->words, rule->word_count, rule->word_capacity) = word;
        }
    }
}

/* Whether a backslash is before a digit: a reference to a group. */
static bool has_reference(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
            if (*text >= '0' && *text <= '9') {
                return true;
            }
        }
    }
    return false;
}

static void read_expression(struct reading *reading, struct secrets_rule *rule,
                            enum secrets_part part, const struct wal__json_token *value)
{
    struct secrets_expression *expression = &rule->parts[part];
    char why[256];
    int code = 0;

    expression->text = read_text(reading, value);
    if (strlen(expression->text) > EXPRESSION_MAX || has_reference(expression->text)) {
        refuse(reading, value->span.data, part_names[part],
               "an expression has at most 2,048 bytes and no reference to a group");
    }
    if (reading->path != NULL && (code = compile(expression, part)) != 0) {
        (void)regerror(code, &expression->compiled, why, sizeof(why));
        refuse(reading, value->span.data, part_names[part], why);
    }
}

/* Returns the index of a name in a list, or `count`. */
static int find_name(const char *const *list, int count, const char *name)
{
    int i = 0;

    while (i < count && strcmp(list[i], name) != 0) {
        i++;
    }
    return i;
}

/* Reads a member of a rule. Examples are for tests. */
static void read_member(struct reading *reading, struct secrets_rule *rule, const char *key,
                        const struct wal__json_token *value)
{
    int part = find_name(part_names, SECRETS_PARTS, key);
    int64_t group = -1;

    if (part < SECRETS_PARTS) {
        read_expression(reading, rule, (enum secrets_part)part, value);
    } else if (strcmp(key, "name") == 0) {
        rule->name = read_text(reading, value);
    } else if (strcmp(key, "vendor") == 0) {
        rule->vendor = read_text(reading, value);
    } else if (strcmp(key, "begins") == 0) {
        read_words(reading, rule, value);
    } else if (strcmp(key, "digit") == 0) {
        rule->needs_digit = value->kind == WAL__JSON_TRUE;
    } else if (strcmp(key, "kind") == 0) {
        int kind = find_name(kind_names, SECRETS_KIND_COUNT, read_text(reading, value));

        if (kind == SECRETS_KIND_COUNT) {
            refuse(reading, value->span.data, "kind", "is no kind of rule");
        }
        rule->kind = (enum secrets_kind)kind;
    } else if (strcmp(key, "group") == 0) {
        if (value->kind != WAL__JSON_NUMBER ||
            wal__json_integer(value->span, &group) != WAL__JSON_OK || group < 0 ||
            group >= SECRETS_GROUPS) {
            refuse(reading, value->span.data, "group", "is a number from 0 to 4");
        }
        rule->group = (uint64_t)group;
    } else if (strcmp(key, "finds") != 0 && strcmp(key, "leaves") != 0) {
        refuse(reading, value->span.data, key, "is no member of a rule");
    }
}

/* Sets the index of the rule's name. */
static void add_name(struct secrets *secrets, struct secrets_rule *rule)
{
    size_t i = 0;

    while (i < secrets->name_count && strcmp(secrets->names[i], rule->name) != 0) {
        i++;
    }
    if (i == secrets->name_count) {
        *CLI_PUSH(secrets->names, secrets->name_count, secrets->name_capacity) = rule->name;
    }
    rule->kind_index = i;
}

static void add_rule(struct reading *reading, struct secrets_rule *rule, const uint8_t *at)
{
    struct secrets *secrets = reading->secrets;

    if (rule->name == NULL || rule->name[0] == '\0' || rule->word_count == 0 ||
        (rule->kind == SECRETS_TOKEN && rule->parts[SECRETS_THEN].text == NULL)) {
        refuse(reading, at, "", "a rule has a name, words in \"begins\", and \"then\"");
    }
    rule->is_built_in = reading->path == NULL;
    for (size_t i = 0; !rule->is_built_in && i < secrets->count; i++) {
        struct secrets_rule *other = &secrets->items[i];

        other->is_replaced |= other->is_built_in && strcmp(other->name, rule->name) == 0;
    }
    add_name(secrets, rule);
    *CLI_ADD(secrets) = *rule;
}

static void read_rule(struct reading *reading, struct wal__json_span object)
{
    struct secrets_rule rule = {.vendor = ""};
    struct wal__json_scan scan;
    struct wal__json_token key;
    struct wal__json_token value;

    wal__json_scan_init(&scan, object.data, object.size);
    while (wal__json_scan_next(&scan, &key) == WAL__JSON_OK && key.kind != WAL__JSON_END) {
        if (key.kind == WAL__JSON_KEY && wal__json_scan_skip(&scan, &value) == WAL__JSON_OK) {
            key.kind = WAL__JSON_STRING;
            read_member(reading, &rule, read_text(reading, &key), &value);
        }
    }
    (void)cli_keep(rule.words);
    add_rule(reading, &rule, object.data);
}

static void read_rules(struct reading *reading)
{
    struct wal__json_token rules = {.kind = WAL__JSON_NONE};
    struct wal__json_member wanted = {.key = "rules"};
    struct wal__json_scan scan;
    struct wal__json_token value;
    size_t offset = 0;
    enum wal__json_status status =
        wal__json_members(reading->text.data, reading->text.size, &wanted, 1, &offset);

    if (status == WAL__JSON_OK) {
        rules = wanted.value;
    }
    if (rules.kind != WAL__JSON_ARRAY) {
        refuse(reading, reading->text.data + offset, "",
               status == WAL__JSON_OK ? "rules are {\"rules\":[{...},...]}"
                                      : wal__json_status_text(status));
    }
    wal__json_scan_init(&scan, rules.span.data, rules.span.size);
    (void)!wal__json_scan_next(&scan, &value); /* the bracket */
    while (wal__json_scan_skip(&scan, &value) == WAL__JSON_OK &&
           value.kind != WAL__JSON_ARRAY_END) {
        if (value.kind != WAL__JSON_OBJECT) {
            refuse(reading, value.span.data, "", "a rule is an object");
        }
        read_rule(reading, value.span);
    }
}

void secrets_open(struct secrets *secrets, const struct cli *cli, const char *path)
{
    struct reading reading = {.cli = cli, .secrets = secrets};

    reading.text = (struct wal__json_span){secrets_rules_bytes, secrets_rules_bytes_size};
    read_rules(&reading);
    if (path != NULL) {
        reading.path = path;
        reading.text.data = cli_keep(
            cli_read_file(cli, path, RULES_MAX, " for rules of secrets", &reading.text.size));
        read_rules(&reading);
    }
    cli_texts_deinit(&reading.texts);
    index_rules(secrets);
    (void)cli_keep(secrets->items);
    (void)cli_keep(secrets->names);
}
