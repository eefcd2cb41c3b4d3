/*
 * model_fit: an item without what a dialect cannot carry.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/jsonl/model_fit.h"

struct fit {
    uint64_t carries;
    const struct wal__dialect *target;
    const struct wal__model_item *item;
    struct wal__model_block *spare;
    uint64_t *losses;
};

/* Whether the feature must go, which is counted. */
static bool loses(const struct fit *fit, enum wal__feature feature)
{
    bool goes = (fit->carries & (UINT64_C(1) << feature)) == 0;

    fit->losses[feature] += goes ? 1 : 0;
    return goes;
}

static void drop(const struct fit *fit, enum wal__feature feature,
                 struct wal__json_span *field)
{
    if (field->size > 0 && loses(fit, feature)) {
        field->size = 0;
    }
}

static bool is_own(const struct fit *fit)
{
    return fit->target != NULL && fit->item->dialect == fit->target;
}

/* Whether the block stays. */
static bool fit_block(const struct fit *fit, struct wal__model_block *block)
{
    bool is_result = fit->item->role == WAL__ROLE_TOOL;

    switch (block->kind) {
    case WAL__BLOCK_TEXT:
    case WAL__BLOCK_TOOL_CALL:
        return true;
    case WAL__BLOCK_THINKING:
        if (loses(fit, WAL__FEATURE_THINKING)) {
            return false;
        }
        drop(fit, WAL__FEATURE_SIGNATURES, &block->signature);
        return !block->is_redacted || block->signature.size > 0;
    case WAL__BLOCK_IMAGE:
        return !loses(fit, is_result ? WAL__FEATURE_RESULT_IMAGES
                                     : WAL__FEATURE_IMAGES);
    case WAL__BLOCK_RAW:
        if (!is_own(fit) && block->raw.data[0] != '{') {
            fit->losses[WAL__FEATURE_BLOCKS]++; /* a block to nobody */
            return false;
        }
        return is_own(fit) || !loses(fit, WAL__FEATURE_BLOCKS);
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
    item->block_count = kept;
}

static void fit_usage(const struct fit *fit, struct wal__model_usage *usage)
{
    const struct wal__json_span cost = usage->cost;

    drop(fit, WAL__FEATURE_REASONING, &usage->reasoning);
    if (usage->input.size + usage->output.size + usage->cache_read.size +
                usage->cache_write.size + usage->reasoning.size >
            0 &&
        loses(fit, WAL__FEATURE_USAGE)) {
        *usage = (struct wal__model_usage){.cost = cost};
    }
    drop(fit, WAL__FEATURE_COSTS, &usage->cost);
}

static bool fit_message(const struct fit *fit, struct wal__model_item *item)
{
    fit_blocks(fit, item);
    fit_usage(fit, &item->usage);
    drop(fit, WAL__FEATURE_MODELS, &item->model);
    drop(fit, WAL__FEATURE_PROVIDERS, &item->provider);
    if (item->stop == WAL__STOP_OTHER) {
        fit->losses[WAL__FEATURE_STOP_REASONS]++; /* of the client's own */
        item->stop = WAL__STOP_NONE;
    } else if (item->stop != WAL__STOP_NONE &&
               loses(fit, WAL__FEATURE_STOP_REASONS)) {
        item->stop = WAL__STOP_NONE;
    }
    if (item->role == WAL__ROLE_TOOL) {
        drop(fit, WAL__FEATURE_TOOL_NAMES, &item->name);
        if (item->is_error && loses(fit, WAL__FEATURE_TOOL_ERRORS)) {
            item->is_error = false;
        }
        return true; /* a result without content is a result */
    }
    if (item->is_meta) {
        drop(fit, WAL__FEATURE_META_NAMES, &item->name);
        if (loses(fit, WAL__FEATURE_META)) {
            item->is_meta = false;
            item->name.size = 0;
        }
    }
    return item->block_count > 0 || !loses(fit, WAL__FEATURE_EMPTY);
}

/* Makes the item a message with its text. */
static bool as_message(const struct fit *fit, struct wal__model_item *item)
{
    *fit->spare =
        (struct wal__model_block){.kind = WAL__BLOCK_TEXT, .text = item->text};
    item->kind = WAL__MODEL_MESSAGE;
    item->role = WAL__ROLE_USER;
    item->is_meta = (fit->carries & WAL__CARRIES(META)) != 0;
    item->blocks = fit->spare;
    item->block_count = 1;
    item->name.size = 0;
    item->target.size = 0;
    item->tokens.size = 0;
    return item->text.size > 2;
}

static bool fit_compaction(const struct fit *fit, struct wal__model_item *item)
{
    if (loses(fit, WAL__FEATURE_COMPACTIONS)) {
        return as_message(fit, item);
    }
    drop(fit, WAL__FEATURE_KEPT_RANGES, &item->target);
    drop(fit, WAL__FEATURE_TOKENS_BEFORE, &item->tokens);
    return true;
}

static bool fit_summary(const struct fit *fit, struct wal__model_item *item)
{
    if (loses(fit, WAL__FEATURE_SUMMARIES)) {
        return as_message(fit, item);
    }
    drop(fit, WAL__FEATURE_SUMMARY_SOURCES, &item->target);
    return true;
}

static bool fit_kind(const struct fit *fit, struct wal__model_item *item)
{
    switch (item->kind) {
    case WAL__MODEL_HEADER:
        return true;
    case WAL__MODEL_HEAD:
        return false;
    case WAL__MODEL_MESSAGE:
        return fit_message(fit, item);
    case WAL__MODEL_CHANGE:
        if (loses(fit, WAL__FEATURE_MODEL_CHANGES)) {
            return false;
        }
        drop(fit, WAL__FEATURE_PROVIDERS, &item->provider);
        return true;
    case WAL__MODEL_THINKING_LEVEL:
        return !loses(fit, WAL__FEATURE_THINKING_LEVELS);
    case WAL__MODEL_COMPACTION:
        return fit_compaction(fit, item);
    case WAL__MODEL_BRANCH_SUMMARY:
        return fit_summary(fit, item);
    case WAL__MODEL_LABEL:
        return !loses(fit, WAL__FEATURE_LABELS);
    case WAL__MODEL_TITLE:
        return !loses(fit, WAL__FEATURE_TITLES);
    case WAL__MODEL_CUSTOM:
        return !loses(fit, WAL__FEATURE_CUSTOM);
    case WAL__MODEL_LINE:
        if (item->is_echo) {
            return false;
        }
        return is_own(fit) || !loses(fit, WAL__FEATURE_LINES);
    }
    return true;
}

bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target,
                    struct wal__model_block *spare,
                    uint64_t losses[WAL__FEATURE_COUNT])
{
    const struct fit fit = {carries, target, item, spare, losses};

    if (item->stream != 0 && loses(&fit, WAL__FEATURE_STREAMS)) {
        return false;
    }
    if (item->is_sidechain && loses(&fit, WAL__FEATURE_SIDECHAINS)) {
        item->is_sidechain = false; /* a branch like others */
    }
    if (item->raw.size > 0 && is_own(&fit)) {
        return item->kind != WAL__MODEL_HEAD;
    }
    if (item->kind != WAL__MODEL_LINE) {
        losses[WAL__FEATURE_FIELDS] += item->fields;
    }
    drop(&fit, WAL__FEATURE_TIMES, &item->time);
    return fit_kind(&fit, item);
}
