/*
 * time.c - reads times (time.h).
 */
#include "tools/cli/time.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/payload/timestamp.h"
#include "tools/terminal/when.h"

/* Reads NUMBER and a unit as an age. */
static bool read_age(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'m', 60000},
                 {'h', 3600000},
                 {'d', 86400000},
                 {'w', 7 * INT64_C(86400000)}};
    char *end = NULL;
    unsigned long count = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || count > 100000 || *end == '\0' ||
        end[1] != '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (*end == units[i].unit) {
            *ms = when_now_ms() - (int64_t)count * units[i].ms;
            return true;
        }
    }
    return false;
}

/* Reads a date, or a date and time, of the local zone. */
static bool read_local(const char *text, int64_t *ms)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%dT%H:%M:%S"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm parts;
        const char *end;
        time_t seconds;
        int day;

        memset(&parts, 0, sizeof(parts));
        parts.tm_isdst = -1;
        end = strptime(text, forms[i], &parts);
        if (end == NULL || *end != '\0') {
            continue;
        }
        day = parts.tm_mday;
        seconds = mktime(&parts);
        *ms = (int64_t)seconds * 1000;
        return seconds != (time_t)-1 && parts.tm_mday == day;
    }
    return false;
}

int cli_parse_time(const struct cli *cli, const char *option, const char *text,
                   int64_t *ms)
{
    struct wal__json_span span = {(const uint8_t *)text,
                                  text == NULL ? 0 : strlen(text)};

    if (text == NULL || read_age(text, ms) || read_local(text, ms) ||
        wal__model_time_read_text(span, ms)) {
        return CLI_CONTINUE;
    }
    return cli_error(cli, CLI_USAGE, option,
                     "\"%s\" is no time; use 2026-11-20, 2026-11-20T14:03, or "
                     "an age such as 12h or 7d",
                     text);
}
