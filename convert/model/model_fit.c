/*
 * model_fit.c - removes the features of an item that a dialect cannot carry.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/model_fit.h"

#include "format/bytes/assert.h"

struct fit {
    uint64_t carries;
    const struct wal__dialect *target;
    const struct wal__model_item *item;
    struct wal__model_block *summary_block;
    uint64_t *losses;
};

/* Counts a loss unless the dialect carries the feature; whether it did. */
static bool count_loss(const struct fit *fit, enum wal__feature feature)
{
    WAL__ASSERT(feature < WAL__FEATURE_COUNT);
    bool is_lost = (fit->carries & (UINT64_C(1) << feature)) == 0;

    fit->losses[feature] += is_lost ? 1 : 0;
    return is_lost;
}

static void drop_field(const struct fit *fit, enum wal__feature feature,
                       struct wal__json_span *field)
{
    if (field->size > 0 && count_loss(fit, feature)) {
        field->size = 0;
    }
}

static bool is_native(const struct fit *fit)
{
    return fit->target != NULL && fit->item->dialect == fit->target;
}

/* Whether to keep the block. */
static bool fit_block(const struct fit *fit, struct wal__model_block *block)
{
    bool is_result = fit->item->role == WAL__ROLE_TOOL;

    switch (block->kind) {
    case WAL__BLOCK_TEXT:
    case WAL__BLOCK_TOOL_CALL:
        return true;
    case WAL__BLOCK_THINKING:
        if (count_loss(fit, WAL__FEATURE_THINKING)) {
            return false;
        }
        drop_field(fit, WAL__FEATURE_SIGNATURES, &block->signature);
        return !block->is_redacted || block->signature.size > 0;
    case WAL__BLOCK_IMAGE:
        return !count_loss(fit, is_result ? WAL__FEATURE_RESULT_IMAGES
                                          : WAL__FEATURE_IMAGES);
    case WAL__BLOCK_RAW:
        if (!is_native(fit) && block->raw.data[0] != '{') {
            fit->losses[WAL__FEATURE_BLOCKS]++; /* not a block anywhere */
            return false;
        }
        return is_native(fit) || !count_loss(fit, WAL__FEATURE_BLOCKS);
    }
    return true;
}

static void fit_blocks(const struct fit *fit, struct wal__model_item *item)
{
    size_t kept = 0;

    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block block = item->blocks[i];
        if (fit_block(fit, &block)) {
            item->blocks[kept++] = block;
        }
    }
    WAL__ASSERT(kept <= item->block_count);
    item->block_count = kept;
}

static void fit_usage(const struct fit *fit, struct wal__model_usage *usage)
{
    const struct wal__json_span cost = usage->cost;

    drop_field(fit, WAL__FEATURE_REASONING, &usage->reasoning);
    if (usage->input.size + usage->output.size + usage->cache_read.size +
                usage->cache_write.size + usage->reasoning.size >
            0 &&
        count_loss(fit, WAL__FEATURE_USAGE)) {
        *usage = (struct wal__model_usage){.cost = cost};
    }
    drop_field(fit, WAL__FEATURE_COSTS, &usage->cost);
}

static bool fit_message(const struct fit *fit, struct wal__model_item *item)
{
    fit_blocks(fit, item);
    fit_usage(fit, &item->usage);
    drop_field(fit, WAL__FEATURE_MODELS, &item->model);
    drop_field(fit, WAL__FEATURE_PROVIDERS, &item->provider);
    if (item->stop == WAL__STOP_OTHER) {
        fit->losses[WAL__FEATURE_STOP_REASONS]++; /* client-specific */
        item->stop = WAL__STOP_NONE;
    } else if (item->stop != WAL__STOP_NONE &&
               count_loss(fit, WAL__FEATURE_STOP_REASONS)) {
        item->stop = WAL__STOP_NONE;
    }
    if (item->role == WAL__ROLE_TOOL) {
        drop_field(fit, WAL__FEATURE_TOOL_NAMES, &item->name);
        if (item->is_error && count_loss(fit, WAL__FEATURE_TOOL_ERRORS)) {
            item->is_error = false;
        }
        return true; /* even without content */
    }
    if (item->is_meta) {
        drop_field(fit, WAL__FEATURE_META_NAMES, &item->name);
        if (count_loss(fit, WAL__FEATURE_META)) {
            item->is_meta = false;
            item->name.size = 0;
        }
    }
    return item->block_count > 0 || !count_loss(fit, WAL__FEATURE_EMPTY);
}

/* Converts the item to a message with its text. */
static bool convert_to_message(const struct fit *fit,
                               struct wal__model_item *item)
{
    *fit->summary_block =
        (struct wal__model_block){.kind = WAL__BLOCK_TEXT, .text = item->text};
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_USER;
    item->is_meta = (fit->carries & WAL__CARRIES(META)) != 0;
    item->blocks = fit->summary_block;
    item->block_count = 1;
    item->name.size = 0;
    item->target.size = 0;
    item->tokens.size = 0;
    return item->text.size > 2;
}

static bool fit_compaction(const struct fit *fit, struct wal__model_item *item)
{
    if (count_loss(fit, WAL__FEATURE_COMPACTIONS)) {
        return convert_to_message(fit, item);
    }
    drop_field(fit, WAL__FEATURE_KEPT_RANGES, &item->target);
    drop_field(fit, WAL__FEATURE_TOKENS_BEFORE, &item->tokens);
    return true;
}

static bool fit_summary(const struct fit *fit, struct wal__model_item *item)
{
    if (count_loss(fit, WAL__FEATURE_SUMMARIES)) {
        return convert_to_message(fit, item);
    }
    drop_field(fit, WAL__FEATURE_SUMMARY_SOURCES, &item->target);
    return true;
}

static bool fit_kind(const struct fit *fit, struct wal__model_item *item)
{
    switch (item->kind) {
    case WAL__ITEM_HEADER:
        return true;
    case WAL__ITEM_HEAD:
        return false;
    case WAL__ITEM_MESSAGE:
        return fit_message(fit, item);
    case WAL__ITEM_MODEL_CHANGE:
        if (count_loss(fit, WAL__FEATURE_MODEL_CHANGES)) {
            return false;
        }
        drop_field(fit, WAL__FEATURE_PROVIDERS, &item->provider);
        return true;
    case WAL__ITEM_THINKING_LEVEL:
        return !count_loss(fit, WAL__FEATURE_THINKING_LEVELS);
    case WAL__ITEM_COMPACTION:
        return fit_compaction(fit, item);
    case WAL__ITEM_BRANCH_SUMMARY:
        return fit_summary(fit, item);
    case WAL__ITEM_LABEL:
        return !count_loss(fit, WAL__FEATURE_LABELS);
    case WAL__ITEM_TITLE:
        return !count_loss(fit, WAL__FEATURE_TITLES);
    case WAL__ITEM_CUSTOM:
        return !count_loss(fit, WAL__FEATURE_CUSTOM);
    case WAL__ITEM_LINE:
        if (item->is_echo) {
            return false;
        }
        return is_native(fit) || !count_loss(fit, WAL__FEATURE_LINES);
    }
    return true;
}

bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target,
                    struct wal__model_block *summary_block,
                    uint64_t losses[WAL__FEATURE_COUNT])
{
    const struct fit fit = {carries, target, item, summary_block, losses};

    if (item->stream != 0 && count_loss(&fit, WAL__FEATURE_STREAMS)) {
        return false;
    }
    if (item->is_sidechain && count_loss(&fit, WAL__FEATURE_SIDECHAINS)) {
        item->is_sidechain = false; /* an ordinary branch */
    }
    if (item->raw.size > 0 && is_native(&fit)) {
        return item->kind != WAL__ITEM_HEAD;
    }
    if (item->kind != WAL__ITEM_LINE) {
        losses[WAL__FEATURE_FIELDS] += item->fields;
    }
    drop_field(&fit, WAL__FEATURE_TIMES, &item->time);
    return fit_kind(&fit, item);
}
