/*
 * pi_vocabulary.c - the vocabulary of pi.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/dialect/pi/pi_vocabulary.h"

const struct wal__word wal__pi_entries[] = {
    {"session",
     WAL__ITEM_HEADER,
     {{"id", .at = WAL__SESSION_AT(id)},
      {"timestamp", .at = WAL__SESSION_AT(time)},
      {"cwd", .at = WAL__SESSION_AT(cwd)},
      {"parentSession", .at = WAL__SESSION_AT(parent)},
      {"branchedFrom", .at = WAL__SESSION_AT(parent)},
      {"provider", .at = WAL__SESSION_AT(provider)},
      {"modelId", .at = WAL__SESSION_AT(model)},
      {"thinkingLevel", .at = WAL__SESSION_AT(thinking_level)}}},
    {"message", .value = WAL__ITEM_MESSAGE},
    {"custom_message",
     WAL__ITEM_MESSAGE,
     {{"customType", .at = WAL__ITEM_AT(name)},
      {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN}}},
    {"model_change",
     WAL__ITEM_MODEL_CHANGE,
     {{"provider", .at = WAL__ITEM_AT(provider), .missing = "\"unknown\""},
      {"modelId", .at = WAL__ITEM_AT(model), .missing = "\"unknown\""}}},
    {"thinking_level_change",
     WAL__ITEM_THINKING_LEVEL,
     {{"thinkingLevel", .at = WAL__ITEM_AT(text), .missing = "\"off\""}}},
    {"compaction",
     WAL__ITEM_COMPACTION,
     {{"summary", .at = WAL__ITEM_AT(text), .missing = "\"\""},
      {"firstKeptEntryId", .at = WAL__ITEM_AT(target)},
      {"tokensBefore", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER,
       .missing = "0"}}},
    {"branch_summary",
     WAL__ITEM_BRANCH_SUMMARY,
     {{"fromId", .at = WAL__ITEM_AT(target), .missing = "\"root\""},
      {"summary", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"label",
     WAL__ITEM_LABEL,
     {{"targetId", .at = WAL__ITEM_AT(target)},
      {"label", .at = WAL__ITEM_AT(text)}}},
    {"session_info",
     WAL__ITEM_TITLE,
     {{"name", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"custom",
     WAL__ITEM_CUSTOM,
     {{"customType", .at = WAL__ITEM_AT(name), .missing = "\"custom\""},
      {"data", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_NON_NULL}}},
    {.name = NULL},
};

const struct wal__word wal__pi_stops[] = {
    {"stop", .value = WAL__STOP_END},
    {"stop", .value = WAL__STOP_NONE},
    {"stop", .value = WAL__STOP_SEQUENCE},
    {"stop", .value = WAL__STOP_OTHER},
    {"length", .value = WAL__STOP_LENGTH},
    {"toolUse", .value = WAL__STOP_TOOL},
    {"error", .value = WAL__STOP_ERROR},
    {"error", .value = WAL__STOP_REFUSAL},
    {"aborted", .value = WAL__STOP_ABORTED},
    {.name = NULL},
};

const struct wal__field wal__pi_usage[] = {
    {"input", WAL__USAGE_AT(input), WAL__FIELD_NUMBER, .missing = "0"},
    {"output", WAL__USAGE_AT(output), WAL__FIELD_NUMBER, .missing = "0"},
    {"cacheRead", WAL__USAGE_AT(cache_read), WAL__FIELD_NUMBER, .missing = "0"},
    {"cacheWrite", WAL__USAGE_AT(cache_write), WAL__FIELD_NUMBER,
     .missing = "0"},
    {"total", WAL__USAGE_AT(cost), WAL__FIELD_NUMBER, .parent = "cost"},
    {.key = NULL},
};
