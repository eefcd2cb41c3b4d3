/*
 * harness_rows.cc - what a program found: rows of the table and points of the plots, as text and as
 * JSON.
 */
#include <cstdio>

#include "bench/harness/harness.h"

namespace bench
{

namespace
{

struct point {
    std::string plot;
    std::string line;
    double x;
    double y;
};

/* A row, and the number of its measurements. */
struct found_row {
    row what;
    int turns;
};

struct omission {
    std::string what;
    std::string why;
};

std::vector<found_row> rows;
std::vector<point> points;
std::vector<omission> omissions;

std::string format(const char *pattern, double value)
{
    char text[64];

    snprintf(text, sizeof(text), pattern, value);
    return text;
}

std::string ratio_text(const row &row, double value)
{
    std::string unit = row.unit;

    return format(value < 100 ? "%.2f" : "%.0f", value) + (unit == "x" ? "" : " ") + unit;
}

const char *sense_text(const row &row)
{
    return row.sense == wanted::at_most ? "<=" : row.sense == wanted::at_least ? ">=" : "";
}

std::string verdict(const row &row)
{
    if (row.sense == wanted::nothing || std::isnan(row.ratio)) {
        return "";
    }
    bool met = row.sense == wanted::at_most ? row.ratio <= row.target : row.ratio >= row.target;
    return met ? "met" : "missed";
}

std::string or_dash(const std::string &text)
{
    return text.empty() ? "-" : text;
}

/* question, measured, against, ratio, target, verdict, turns; by tabs. */
std::string as_text(const found_row &found)
{
    const row &row = found.what;
    std::string ratio = std::isnan(row.ratio) ? "" : ratio_text(row, row.ratio);
    std::string target = row.sense == wanted::nothing
                             ? ""
                             : std::string(sense_text(row)) + " " + ratio_text(row, row.target);

    return row.question + "\t" + or_dash(row.measured) + "\t" + or_dash(row.against) + "\t" +
           or_dash(ratio) + "\t" + or_dash(target) + "\t" + or_dash(verdict(row)) + "\t" +
           std::to_string(found.turns) + "\n";
}

std::string quoted(const std::string &text)
{
    std::string made = "\"";

    for (char each : text) {
        if (each == '"' || each == '\\') {
            made += '\\';
        }
        made += each;
    }
    return made + "\"";
}

std::string number(double value)
{
    return std::isfinite(value) ? format("%.9g", value) : "null";
}

std::string as_json(const found_row &found)
{
    const row &row = found.what;
    bool aims = row.sense != wanted::nothing;

    return "{\"question\":" + quoted(row.question) + ",\"measured\":" + quoted(row.measured) +
           ",\"against\":" + quoted(row.against) + ",\"ratio\":" + number(row.ratio) +
           ",\"low\":" + number(row.low) + ",\"high\":" + number(row.high) +
           ",\"unit\":" + quoted(row.unit) + ",\"sense\":" + quoted(sense_text(row)) +
           ",\"target\":" + (aims ? number(row.target) : "null") +
           ",\"verdict\":" + quoted(verdict(row)) + ",\"turns\":" + std::to_string(found.turns) +
           ",\"run\":" + quoted(asked_name()) + "}\n";
}

std::string as_json(const point &point)
{
    return "{\"plot\":" + quoted(point.plot) + ",\"line\":" + quoted(point.line) +
           ",\"x\":" + number(point.x) + ",\"y\":" + number(point.y) + "}\n";
}

std::string as_json(const omission &omission)
{
    return "{\"left_out\":" + quoted(omission.what) + ",\"why\":" + quoted(omission.why) + "}\n";
}

template <typename list> void write_each(FILE *file, const list &items)
{
    for (const auto &item : items) {
        fputs(as_json(item).c_str(), file);
    }
}

} // namespace

std::string micros(double seconds)
{
    return format(seconds < 10e-6 ? "%.2f us" : "%.0f us", seconds * 1e6);
}

std::string millis(double seconds)
{
    return format(seconds < 0.1 ? "%.2f ms" : "%.0f ms", seconds * 1e3);
}

std::string per_second(double rate)
{
    return format("%.0f /s", rate);
}

std::string mebibytes(double bytes)
{
    return format("%.1f MiB", bytes / 1048576);
}

std::string megabytes_per_second(double rate)
{
    return format("%.0f MB/s", rate * 1e-6);
}

std::string gigabytes_per_second(double rate)
{
    return format("%.2f GB/s", rate * 1e-9);
}

void report(const row &row)
{
    rows.push_back({row, current_repetitions()});
}

void report_ratios(const std::string &question, const std::string &measured,
                   const std::string &against, const series &ratios, wanted sense, double target)
{
    report({question, measured, against, ratios.median(), sense, target, "x", ratios.quantile(0),
            ratios.quantile(1)});
}

void report_sync_ratios(const std::string &question, const std::string &measured,
                        const std::string &against, const series &ratios, wanted sense,
                        double target)
{
    if (sync_is_free()) {
        report({question, measured, against, std::nan(""), sense, target, "x"});
    } else {
        report_ratios(question, measured, against, ratios, sense, target);
    }
}

void plot(const std::string &plot, const std::string &line, double x, double y)
{
    points.push_back({plot, line, x, y});
}

void report_skipped(const std::string &what, const std::string &why)
{
    omissions.push_back({what, why});
}

void write_results(const std::string &path)
{
    FILE *file = path.empty() ? stdout : fopen(path.c_str(), "a");

    require(file != nullptr, "cannot write " + path);
    if (path.empty()) {
        for (const found_row &row : rows) {
            fputs(as_text(row).c_str(), file);
        }
        require(fflush(file) == 0, "cannot write the results");
        return;
    }
    write_each(file, rows);
    write_each(file, points);
    write_each(file, omissions);
    require(ferror(file) == 0 && fclose(file) == 0, "cannot write " + path);
}

} // namespace bench
