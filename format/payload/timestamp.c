/*
 * timestamp.c - converts times between JSON and Unix milliseconds.
 */
#include "format/payload/timestamp.h"

#include "format/json/json_text.h"

#define DAY_MS      INT64_C(86400000)
#define YEARS_END   INT64_C(253402300800000) /* the year 10000 */
#define YEARS_BEGIN (-INT64_C(62167219200000))

/* Returns the days from 1970-01-01 to a date. Years begin in March here, so that a leap day is the
 * last day of its year. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    int64_t era_year = year - (month <= 2 ? 1 : 0) + 400; /* never negative */
    int64_t era = era_year / 400;
    int64_t of_era = era_year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return (era - 1) * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct text {
    const uint8_t *at;
    const uint8_t *end;
};

static bool read_digits(struct text *text, unsigned count, int64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < count; i++, text->at++) {
        if (text->at == text->end || *text->at < '0' || *text->at > '9') {
            return false;
        }
        *value = *value * 10 + (*text->at - '0');
    }
    return true;
}

static bool accept(struct text *text, char wanted)
{
    if (text->at == text->end || *text->at != (uint8_t)wanted) {
        return false;
    }
    text->at++;
    return true;
}

/* Reads a fraction of a second in milliseconds, rounded down. */
static bool read_fraction(struct text *text, int64_t *ms)
{
    int64_t unit = 100;

    *ms = 0;
    if (!accept(text, '.') && !accept(text, ',')) {
        return true;
    }
    if (text->at == text->end || *text->at < '0' || *text->at > '9') {
        return false;
    }
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        *ms += unit * (*text->at - '0');
        unit /= 10;
    }
    return true;
}

/* Reads the offset from UTC in minutes. */
static bool read_offset(struct text *text, int64_t *minutes)
{
    int64_t hours = 0;
    int64_t rest = 0;
    int64_t sign;

    *minutes = 0;
    if (accept(text, 'Z') || accept(text, 'z') || text->at == text->end) {
        return true;
    }
    if (*text->at != '+' && *text->at != '-') {
        return false;
    }
    sign = *text->at++ == '-' ? -1 : 1;
    if (!read_digits(text, 2, &hours)) {
        return false;
    }
    (void)accept(text, ':');
    if (text->at < text->end && !read_digits(text, 2, &rest)) {
        return false;
    }
    *minutes = sign * (60 * hours + rest);
    return hours < 24 && rest < 60;
}

static bool read_iso8601(struct text text, int64_t *ms)
{
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t part;
    int64_t zone;

    if (!read_digits(&text, 4, &year) || !accept(&text, '-') || !read_digits(&text, 2, &month) ||
        !accept(&text, '-') || !read_digits(&text, 2, &day) ||
        (!accept(&text, 'T') && !accept(&text, ' ')) || !read_digits(&text, 2, &hour) ||
        !accept(&text, ':') || !read_digits(&text, 2, &minute) || !accept(&text, ':') ||
        !read_digits(&text, 2, &second) || !read_fraction(&text, &part) ||
        !read_offset(&text, &zone) || text.at != text.end) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    if (month < 12 && days_from_civil(year, month, day) >= days_from_civil(year, month + 1, 1)) {
        return false; /* the month is shorter */
    }
    *ms = days_from_civil(year, month, day) * DAY_MS +
          ((hour * 60 + minute - zone) * 60 + second) * 1000 + part;
    return true;
}

/* Sets *ms to a time of the years 0 to 9999. */
static bool set_time(int64_t value, int64_t *ms)
{
    if (value < YEARS_BEGIN || value >= YEARS_END) {
        return false;
    }
    *ms = value;
    return true;
}

bool wal__model_time_read_text(struct wal__json_span text, int64_t *ms)
{
    int64_t value = 0;

    return text.size > 0 && read_iso8601((struct text){text.data, text.data + text.size}, &value) &&
           set_time(value, ms);
}

bool wal__model_time_read(struct wal__json_span time, int64_t *ms)
{
    int64_t value = 0;

    if (time.size > 2 && time.data[0] == '"') {
        return wal__model_time_read_text((struct wal__json_span){time.data + 1, time.size - 2}, ms);
    }
    return time.size > 0 && wal__json_integer(time, &value) == WAL__JSON_OK && set_time(value, ms);
}

static void write_digits(uint8_t *at, unsigned count, int64_t value)
{
    while (count > 0) {
        at[--count] = (uint8_t)('0' + value % 10);
        value /= 10;
    }
}

struct wal__json_span wal__model_time_write(int64_t ms, uint8_t text[WAL__MODEL_TIME_SIZE])
{
    static const char pattern[] = "\"0000-00-00T00:00:00.000Z\"";
    int64_t since = ms - YEARS_BEGIN; /* never negative */
    int64_t days = since / DAY_MS + 719468 - 719528 + 146097;
    int64_t rest = since % DAY_MS;
    int64_t era = days / 146097;
    int64_t of_era = days % 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t month = (5 * of_year + 2) / 153;

    for (size_t i = 0; i < WAL__MODEL_TIME_SIZE; i++) {
        text[i] = (uint8_t)pattern[i];
    }
    write_digits(text + 1, 4, years + (era - 1) * 400 + (month >= 10 ? 1 : 0));
    write_digits(text + 6, 2, month < 10 ? month + 3 : month - 9);
    write_digits(text + 9, 2, of_year - (153 * month + 2) / 5 + 1);
    write_digits(text + 12, 2, rest / 3600000);
    write_digits(text + 15, 2, rest / 60000 % 60);
    write_digits(text + 18, 2, rest / 1000 % 60);
    write_digits(text + 21, 3, rest % 1000);
    return (struct wal__json_span){text, WAL__MODEL_TIME_SIZE};
}

int64_t wal__session_time_believed(int64_t time_ms, int64_t stored_ms)
{
    return time_ms < 0 || time_ms - DAY_MS > stored_ms ? stored_ms : time_ms;
}

int64_t wal__session_time_of_entry(struct wal__span text, int64_t stored_ms)
{
    const struct wal__json_span time = {text.data, text.size};
    int64_t time_ms = 0;

    return wal__model_time_read_text(time, &time_ms)
               ? wal__session_time_believed(time_ms, stored_ms)
               : stored_ms;
}
