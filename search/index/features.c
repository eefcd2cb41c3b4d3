/*
 * features.c - the function `features` (features.h).
 */
#include "search/index/features.h"

#include "search/text/extract.h"
#include "search/text/tokenizer.h"

enum {
    COUNTED_MAX = 16 /* occurrences of a phrase; more do not rank higher */
};

/* By column; those of the deep index have column 0. */
static const float weights[WAL__COLUMN_RESULT] = {
    [WAL__COLUMN_USER] = 2.0F,  [WAL__COLUMN_ASSISTANT] = 1.0F,
    [WAL__COLUMN_TOOL] = 1.0F,  [WAL__COLUMN_PATH] = 1.0F,
    [WAL__COLUMN_TITLE] = 4.0F, [WAL__COLUMN_SUMMARY] = 2.0F,
};

static int count_phrase(const Fts5ExtensionApi *api, Fts5Context *context,
                        int phrase, float *feature)
{
    int columns = api->xColumnCount(context);
    Fts5PhraseIter iterator;
    int column = 0;
    int offset = 0;
    int counted = 0;
    int code = api->xPhraseFirst(context, phrase, &iterator, &column, &offset);

    *feature = 0;
    while (code == SQLITE_OK && column >= 0 && counted < COUNTED_MAX) {
        *feature += columns == 1 || column >= WAL__COLUMN_RESULT
                        ? 0.5F
                        : weights[column];
        counted++;
        api->xPhraseNext(context, &iterator, &column, &offset);
    }
    return code;
}

static void features(const Fts5ExtensionApi *api, Fts5Context *context,
                     sqlite3_context *result, int count, sqlite3_value **values)
{
    float out[WAL__FEATURES_MAX];
    int phrases = api->xPhraseCount(context);
    int code = SQLITE_OK;

    (void)count;
    (void)values;
    phrases = phrases < WAL__FEATURES_MAX ? phrases : WAL__FEATURES_MAX;
    for (int i = 0; i < phrases && code == SQLITE_OK; i++) {
        code = count_phrase(api, context, i, &out[i]);
    }
    if (code != SQLITE_OK) {
        sqlite3_result_error_code(result, code);
        return;
    }
    sqlite3_result_blob(result, out, phrases * (int)sizeof(out[0]),
                        SQLITE_TRANSIENT);
}

int wal__features_register(sqlite3 *db)
{
    fts5_api *api = wal__tokenizer_api(db);

    return api == NULL
               ? SQLITE_ERROR
               : api->xCreateFunction(api, "features", NULL, features, NULL);
}
