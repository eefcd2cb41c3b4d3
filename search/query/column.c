/*
 * column.c - what the columns of rows are to a query (query.h).
 */
#include "search/query/query.h"

uint32_t wal__column_role(enum wal__column column)
{
    static const uint32_t roles[WAL__COLUMN_COUNT] = {
        [WAL__COLUMN_USER] = WAL_SEARCH_USER,
        [WAL__COLUMN_ASSISTANT] = WAL_SEARCH_ASSISTANT,
        [WAL__COLUMN_TOOL] = WAL_SEARCH_TOOL,
        [WAL__COLUMN_PATH] = WAL_SEARCH_TOOL,
        [WAL__COLUMN_TITLE] = WAL_SEARCH_TITLE,
        [WAL__COLUMN_SUMMARY] = WAL_SEARCH_SUMMARY,
        [WAL__COLUMN_RESULT] = WAL_SEARCH_RESULT,
    };

    return roles[column];
}

float wal__column_weight(enum wal__column column)
{
    static const float weights[WAL__COLUMN_COUNT] = {
        [WAL__COLUMN_USER] = 2.0F,   [WAL__COLUMN_ASSISTANT] = 1.0F,
        [WAL__COLUMN_TOOL] = 1.0F,   [WAL__COLUMN_PATH] = 1.0F,
        [WAL__COLUMN_TITLE] = 4.0F,  [WAL__COLUMN_SUMMARY] = 2.0F,
        [WAL__COLUMN_RESULT] = 0.5F,
    };

    return weights[column];
}
