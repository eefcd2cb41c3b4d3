/*
 * prices.c - list prices of models (usage.h): the table of the program or of a file, and what an
 * answer costs by it.
 *
 * A table is a JSON object with a member for each model, as that of LiteLLM
 * (model_prices_and_context_window.json): prices are US dollars for a token. Members of a model
 * that are not in rate_names are not read; a model without prices of input and output has none.
 * The member `about` has the date and the source of the table.
 *
 * Invariant: a name that is not in the table has no price.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/usage/usage.h"

enum {
    PRICES_MAX = 64 << 20, /* bytes of a file; that of LiteLLM has 2 MB */
    NAME_SIZE = 256        /* bytes of a model's name with its NUL */
};

/* Above this no price for a token is meant. */
static const double RATE_MAX = 0.01;

static const char *const rate_names[USAGE_RATES] = {
    [USAGE_RATE_INPUT] = "input_cost_per_token",
    [USAGE_RATE_OUTPUT] = "output_cost_per_token",
    [USAGE_RATE_READ] = "cache_read_input_token_cost",
    [USAGE_RATE_WRITE] = "cache_creation_input_token_cost",
    [USAGE_RATE_WRITE_1H] = "cache_creation_input_token_cost_above_1hr",
    [USAGE_RATE_REASONING] = "output_cost_per_reasoning_token",
};

/* --- the table ------------------------------------------------------------ */

/* A table that is being read. */
struct table {
    const struct cli *cli;
    const char *path; /* in errors */
    struct wal__json_span text;
    struct usage_prices *prices;
    struct cli_texts texts;
};

/* Ends the process with the error of a line. */
static _Noreturn void refuse(const struct table *table, const uint8_t *at, const char *model,
                             const char *why)
{
    size_t line = 1;

    for (const uint8_t *byte = table->text.data; byte < at; byte++) {
        line += *byte == '\n' ? 1 : 0;
    }
    cli_fail(table->cli, CLI_USAGE, table->path, "line %zu: %s%s%s", line, model,
             model[0] != '\0' ? ": " : "", why);
}

/* Copies a name with its capital letters of ASCII made small. False: it is too long. */
static bool fold_name(struct wal_slice name, char folded[NAME_SIZE])
{
    const char *text = name.data;

    if (name.size >= NAME_SIZE) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        folded[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    }
    folded[name.size] = '\0';
    return true;
}

/* Reads "..._above_200k_tokens" after the name of a price; the bytes end with the quote of the key.
 * Returns false for any other text. */
static bool read_above(const char *text, size_t size, uint64_t *above)
{
    static const char before[] = "_above_";
    static const char after[] = "k_tokens\"";
    size_t digits = 0;

    *above = 0;
    if (size == 1) {
        return true;
    }
    if (size < strlen(before) || memcmp(text, before, strlen(before)) != 0) {
        return false;
    }
    text += strlen(before);
    size -= strlen(before);
    for (; digits < size && digits < 6 && text[digits] >= '0' && text[digits] <= '9'; digits++) {
        *above = *above * 10 + (uint64_t)(text[digits] - '0') * 1000;
    }
    return digits > 0 && *above > 0 && size - digits == strlen(after) &&
           memcmp(text + digits, after, strlen(after)) == 0;
}

/* Finds which price a key, in quotes, is of. */
static bool find_rate(struct wal__json_span key, enum usage_rate *rate, uint64_t *above)
{
    const char *text = (const char *)key.data + 1;

    for (int i = 0; i < USAGE_RATES; i++) {
        size_t size = strlen(rate_names[i]);

        if (key.size >= size + 2 && memcmp(text, rate_names[i], size) == 0 &&
            read_above(text + size, key.size - 1 - size, above)) {
            *rate = (enum usage_rate)i;
            return true;
        }
    }
    return false;
}

/* Returns the tier of the model from there on, added in its place if it is new; NULL: there are too
 * many. */
static struct usage_tier *find_tier(struct usage_price *price, uint64_t above)
{
    size_t at = 0;

    while (at < price->tier_count && price->tiers[at].above < above) {
        at++;
    }
    if (at < price->tier_count && price->tiers[at].above == above) {
        return &price->tiers[at];
    }
    if (price->tier_count == USAGE_TIERS) {
        return NULL;
    }
    memmove(&price->tiers[at + 1], &price->tiers[at],
            (price->tier_count - at) * sizeof(price->tiers[0]));
    price->tier_count++;
    price->tiers[at] = (struct usage_tier){.above = above};
    for (int i = 0; i < USAGE_RATES; i++) {
        price->tiers[at].rates[i] = -1;
    }
    return &price->tiers[at];
}

/* Reads a number that is not below 0. */
static bool read_number(const struct wal__json_token *value, double *number)
{
    char text[64];

    if (value->kind != WAL__JSON_NUMBER || value->span.size >= sizeof(text)) {
        return false;
    }
    memcpy(text, value->span.data, value->span.size);
    text[value->span.size] = '\0';
    *number = strtod(text, NULL);
    return isfinite(*number) && *number >= 0;
}

/* Reads one member of a model. */
static void read_rate(const struct table *table, const char *model, struct usage_price *price,
                      const struct wal__json_token *key, const struct wal__json_token *value)
{
    struct usage_tier *tier;
    enum usage_rate rate;
    uint64_t above;
    double number;

    if (!find_rate(key->span, &rate, &above) || value->kind == WAL__JSON_NULL) {
        return;
    }
    if (!read_number(value, &number)) {
        refuse(table, value->span.data, model,
               "a price is a number of US dollars for a token, 0 or more");
    }
    if (number > RATE_MAX) {
        refuse(table, value->span.data, model,
               "more than a cent for a token; $3 for a million tokens is 3e-06");
    }
    tier = find_tier(price, above);
    if (tier == NULL) {
        refuse(table, key->span.data, model, "more than 4 sizes of a request have prices");
    }
    if (tier->rates[rate] >= 0) {
        refuse(table, key->span.data, model, "states a price twice");
    }
    tier->rates[rate] = number;
}

static void read_model(const struct table *table, const struct wal__json_token *key,
                       struct wal__json_span object)
{
    struct wal__json_member fast = {.parent = "provider_specific_entry", .key = "fast"};
    struct wal__json_token text = *key;
    struct usage_price price = {.tier_count = 0};
    struct wal__json_scan scan;
    struct wal__json_token member;
    struct wal__json_token value;
    struct cli_texts texts = {.items = NULL};
    char name[NAME_SIZE];
    uint32_t *number;

    text.kind = WAL__JSON_STRING;
    if (!fold_name(cli_unescape(&text, &texts), name)) {
        refuse(table, key->span.data, "", "the name of a model is longer than 255 bytes");
    }
    cli_texts_deinit(&texts);
    (void)find_tier(&price, 0);
    wal__json_scan_init(&scan, object.data, object.size);
    while (wal__json_scan_next(&scan, &member) == WAL__JSON_OK && member.kind != WAL__JSON_END) {
        if (member.kind == WAL__JSON_KEY && wal__json_scan_skip(&scan, &value) == WAL__JSON_OK) {
            read_rate(table, name, &price, &member, &value);
        }
    }
    if (price.tiers[0].rates[USAGE_RATE_INPUT] < 0 || price.tiers[0].rates[USAGE_RATE_OUTPUT] < 0) {
        return;
    }
    if (wal__json_members(object.data, object.size, &fast, 1, NULL) == WAL__JSON_OK &&
        !read_number(&fast.value, &price.fast)) {
        price.fast = 0;
    }
    number = cli_ids_get_or_add(&table->prices->numbers, cli_slice(name));
    if (*number != 0) {
        refuse(table, key->span.data, name, "this model is in the table twice");
    }
    *CLI_ADD(table->prices) = price;
    *number = (uint32_t)table->prices->count;
}

static void read_table(struct table *table)
{
    struct wal__json_member date = {.parent = "about", .key = "date"};
    struct wal__json_scan scan;
    struct wal__json_token key;
    struct wal__json_token value;
    size_t offset = 0;
    enum wal__json_status status =
        wal__json_members(table->text.data, table->text.size, &date, 1, &offset);

    if (status != WAL__JSON_OK) {
        refuse(table, table->text.data + offset, "",
               status == WAL__JSON_NOT_OBJECT
                   ? "a table of prices is a JSON object with a member for each model"
                   : wal__json_status_text(status));
    }
    if (date.value.kind == WAL__JSON_STRING) {
        table->prices->date = cli_copy_slice(cli_unescape(&date.value, &table->texts));
    }
    wal__json_scan_init(&scan, table->text.data, table->text.size);
    while (wal__json_scan_next(&scan, &key) == WAL__JSON_OK && key.kind != WAL__JSON_END) {
        if (key.kind != WAL__JSON_KEY || wal__json_scan_skip(&scan, &value) != WAL__JSON_OK) {
            continue;
        }
        if (value.kind != WAL__JSON_OBJECT) {
            refuse(table, key.span.data, "", "a member is no object with prices of a model");
        }
        read_model(table, &key, value.span);
    }
    if (table->prices->count == 0) {
        cli_fail(table->cli, CLI_USAGE, table->path,
                 "no model has an input_cost_per_token and an output_cost_per_token");
    }
}

void usage_prices_open(struct usage_prices *prices, const struct cli *cli, const char *path)
{
    struct table table = {.cli = cli, .path = path, .prices = prices};
    char *input = NULL;

    if (path == NULL) {
        table.path = "the table of prices";
        table.text = (struct wal__json_span){usage_prices_bytes, usage_prices_bytes_size};
    } else {
        input = cli_read_file(cli, path, PRICES_MAX, " for a table of prices", &table.text.size);
        table.text.data = (const uint8_t *)input;
    }
    prices->path = path;
    read_table(&table);
    cli_texts_deinit(&table.texts);
    free(input);
}

void usage_prices_deinit(struct usage_prices *prices)
{
    free(prices->items);
    free(prices->date);
    cli_ids_deinit(&prices->numbers);
    *prices = (struct usage_prices){.items = NULL};
}

/* --- costs ---------------------------------------------------------------- */

/* Returns the bytes of "-20260203" or "-2026-02-03" at the end of a name; 0: it has no date. */
static size_t date_size(const char *name, size_t size)
{
    static const char *const forms[] = {"-00000000", "-0000-00-00"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t form_size = strlen(forms[i]);
        const char *end = size > form_size ? name + size - form_size : "";
        size_t at = 0;

        while (at < form_size &&
               (forms[i][at] == '0' ? end[at] >= '0' && end[at] <= '9' : end[at] == forms[i][at])) {
            at++;
        }
        if (at == form_size) {
            return form_size;
        }
    }
    return 0;
}

/* Finds the price of a model: by its name, without what a provider puts before it ("openai/"), and
 * without the date of its version. */
static const struct usage_price *find_price(const struct usage_prices *prices, const char *model)
{
    char name[NAME_SIZE];
    const char *slash;

    if (!fold_name(cli_slice(model), name)) {
        return NULL;
    }
    slash = strrchr(name, '/');
    for (int i = 0; i < 4; i++) {
        const char *start = i % 2 == 1 && slash != NULL ? slash + 1 : name;
        size_t size = strlen(start);
        const uint32_t *number;

        size -= i >= 2 ? date_size(start, size) : 0;
        number = cli_ids_find(&prices->numbers, (struct wal_slice){start, size});
        if (number != NULL) {
            return &prices->items[*number - 1];
        }
    }
    return NULL;
}

/* The price of a kind for a request of that tier. A kind without one costs what the kind costs that
 * it is a part of. */
static double rate_of(const struct usage_price *price, const struct usage_tier *tier,
                      enum usage_rate rate)
{
    static const enum usage_rate parts[USAGE_RATES] = {
        [USAGE_RATE_READ] = USAGE_RATE_INPUT,
        [USAGE_RATE_WRITE] = USAGE_RATE_INPUT,
        [USAGE_RATE_WRITE_1H] = USAGE_RATE_WRITE,
        [USAGE_RATE_REASONING] = USAGE_RATE_OUTPUT,
    };

    while (tier->rates[rate] < 0 && price->tiers[0].rates[rate] < 0) {
        rate = parts[rate];
    }
    return tier->rates[rate] >= 0 ? tier->rates[rate] : price->tiers[0].rates[rate];
}

/* What an answer costs: each of its tokens by the tier of the whole request. Of a sum of requests
 * the size of each is not known: it has the first tier. */
static double cost_of(const struct usage_price *price, const struct usage_tokens *tokens,
                      bool is_sum)
{
    const struct usage_tier *tier = &price->tiers[0];
    double input = (double)tokens->input + (double)tokens->cache_read + (double)tokens->cache_write;
    double size = is_sum ? 0 : input;
    double others = input + (double)tokens->output; /* what is in the total only is reasoning */
    double apart = (double)tokens->total > others ? (double)tokens->total - others : 0;
    double reasoning = (double)tokens->reasoning > apart ? (double)tokens->reasoning : apart;
    double output = (double)tokens->output + apart;
    double cost = 0;

    reasoning = reasoning < output ? reasoning : output;
    for (size_t i = 1; i < price->tier_count && size > (double)price->tiers[i].above; i++) {
        tier = &price->tiers[i];
    }
    cost += (double)tokens->input * rate_of(price, tier, USAGE_RATE_INPUT);
    cost += (double)tokens->cache_read * rate_of(price, tier, USAGE_RATE_READ);
    cost += (double)(tokens->cache_write - tokens->cache_write_1h) *
            rate_of(price, tier, USAGE_RATE_WRITE);
    cost += (double)tokens->cache_write_1h * rate_of(price, tier, USAGE_RATE_WRITE_1H);
    cost += (output - reasoning) * rate_of(price, tier, USAGE_RATE_OUTPUT);
    cost += reasoning * rate_of(price, tier, USAGE_RATE_REASONING);
    return cost;
}

void usage_answers_price(struct usage_answers *answers, const struct usage_prices *prices)
{
    size_t count = answers->models.count;
    const struct usage_price **found = cli_alloc((count + 1) * sizeof(const struct usage_price *));

    for (size_t i = 0; i < count; i++) {
        found[i] = find_price(prices, answers->models.items[i].text);
    }
    for (size_t i = 0; i < answers->count; i++) {
        struct usage_answer *answer = &answers->items[i];
        const struct usage_price *price = found[answer->model];

        if (answer->has_cost || !answer->is_request || price == NULL ||
            (answer->is_fast && price->fast == 0)) {
            continue;
        }
        answer->cost = cost_of(price, &answer->tokens, answer->others > 0) *
                       (answer->is_fast ? price->fast : 1);
        answer->is_computed = answer->tokens.total > 0;
    }
    free(found);
}
