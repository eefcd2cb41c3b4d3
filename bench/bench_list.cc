/*
 * bench_list.cc - what does it cost to find a session to resume, in stores of different sizes?
 * Sessions of 20 entries of 100 bytes; a fresh process opens the store, lists the newest 50, lists
 * all, finds the newest of a directory and reads 100 sessions: once after the store was closed, and
 * once after a process that wrote was killed. Without a store it looks at the times of all files
 * and reads the beginnings of 50. Then what an empty store takes on disk.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/fill.h"

namespace
{

const uint64_t entries = 20;
const size_t entry_size = 100;
const uint64_t folders = 500;
const uint64_t page = 50;
const size_t in_use = 100;
const uint64_t aimed = 100000;      /* sessions that the targets are for */
const uint64_t disk_size = 12000;   /* bytes of disk for a session, at most */
const uint64_t most_files = 100000; /* making and removing more takes minutes */

std::string folder_name(uint64_t number)
{
    return bench::number_id("/home/user/work/project", number % folders);
}

/* Lists up to `count` sessions; how many there were. */
uint64_t list(wal_store *store, uint64_t count)
{
    wal_session_info info = {};
    wal_session_cursor *list = nullptr;
    uint64_t found = 0;

    info.struct_size = sizeof(info);
    bench::require(wal_session_cursor_open(store, nullptr, &list, nullptr) == WAL_OK,
                   "cannot list");
    while (found < count && wal_session_cursor_next(list, &info, nullptr) == WAL_OK) {
        found++;
    }
    wal_session_cursor_close(list);
    return found;
}

/* Opens sessions all over the store and reads them; the handles stay open. */
std::vector<wal_session *> use_sessions(wal_store *store, uint64_t count)
{
    std::vector<wal_session *> sessions;

    for (uint64_t i = 0; i < in_use; i++) {
        wal_session *session =
            bench::open_session(store, bench::number_id("s", i * (count / in_use)));
        wal_entry_cursor *cursor = nullptr;
        wal_entry entry = {};
        uint64_t found = 0;

        entry.struct_size = sizeof(entry);
        bench::require(wal_entry_cursor_open(session, nullptr, &cursor, nullptr) == WAL_OK,
                       "cannot open an iterator");
        while (wal_entry_cursor_next(cursor, &entry, nullptr) == WAL_OK) {
            found++;
        }
        bench::require(found >= entries, "a session lost entries");
        wal_entry_cursor_close(cursor);
        sessions.push_back(session);
    }
    return sessions;
}

/* --- children ----------------------------------------------------------- */

/* PATH COUNT: fills with many threads, since each session is made durably. */
void fill(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0]);
    uint64_t count = std::stoull(given[1]);
    std::vector<std::thread> threads;
    std::atomic<uint64_t> next = {0};

    for (int i = 0; i < 64; i++) {
        threads.emplace_back([&, i] {
            bench::source source(static_cast<uint64_t>(i));
            uint64_t number;

            while ((number = next++) < count) {
                wal_session *session = bench::create_session(store, bench::number_id("s", number),
                                                             folder_name(number));

                bench::fill_session(session, 0, entries, entry_size, source);
                wal_session_close(session);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    bench::close_store(store);
}

/* PATH COUNT: opens, lists and reads; the times, memory, and the log's size. */
void open_and_list(const bench::arguments &given)
{
    uint64_t count = std::stoull(given[1]);
    std::string folder = folder_name(7);
    wal_session *latest = nullptr;
    double times[5];

    times[0] = bench::now();
    wal_store *store = bench::open_store(given[0], 0);
    times[1] = bench::now();
    uint64_t newest = list(store, page);
    times[2] = bench::now();
    uint64_t all = list(store, UINT64_MAX);
    times[3] = bench::now();
    wal_status status = wal_session_open_latest(store, bench::slice(folder), &latest, nullptr);
    times[4] = bench::now();
    bench::require(newest == page && all == count && status == WAL_OK, "sessions are missing");
    std::vector<wal_session *> used = use_sessions(store, count);
    bench::answer({times[1] - times[0], times[2] - times[1], times[3] - times[2],
                   times[4] - times[3], bench::anonymous_memory(),
                   static_cast<double>(bench::store_status(store).log_bytes)});
    for (wal_session *session : used) {
        wal_session_close(session);
    }
    wal_session_close(latest);
    bench::close_store(store);
}

/* PATH: appends to some sessions, and dies. */
void append_and_die(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    uint64_t before = bench::store_status(store).last_sequence;
    const std::string payload = "{}";

    for (uint64_t i = 0; i < page; i++) {
        std::string id = "again-" + std::to_string(before);
        wal_entry entry = bench::entry(id, payload);

        bench::append(bench::open_session(store, bench::number_id("s", i)), &entry, 1);
    }
    bench::die();
}

/* FOLDER COUNT: a file for each session. */
void fill_files(const bench::arguments &given)
{
    bench::source source(1);
    std::string line = source.message(300) + "\n";

    for (uint64_t i = 0; i < std::stoull(given[1]); i++) {
        std::ofstream(given[0] + "/" + bench::number_id("s", i) + ".jsonl") << line;
    }
}

/* FOLDER: finds the newest 50 files and reads their beginnings; the time. */
void list_files(const bench::arguments &given)
{
    std::vector<std::pair<double, std::string>> found;
    std::vector<char> bytes(4096);
    double begin = bench::now();

    for (const auto &item : std::filesystem::directory_iterator(given[0])) {
        struct stat facts;

        bench::require(stat(item.path().c_str(), &facts) == 0, "stat failed");
        found.emplace_back(static_cast<double>(facts.st_mtim.tv_sec) +
                               static_cast<double>(facts.st_mtim.tv_nsec) * 1e-9,
                           item.path().string());
    }
    std::partial_sort(found.begin(), found.begin() + page, found.end(), std::greater<>());
    for (uint64_t i = 0; i < page; i++) {
        int file = open(found[i].second.c_str(), O_RDONLY | O_CLOEXEC);

        bench::require(file >= 0 && read(file, bytes.data(), bytes.size()) > 0,
                       "cannot read a file");
        close(file);
    }
    bench::answer({bench::now() - begin});
}

/* PATH: makes an empty store. */
void make_empty(const bench::arguments &given)
{
    bench::close_store(bench::open_store(given[0]));
}

/* --- measuring ---------------------------------------------------------- */

/* The results of the children in all rounds. */
struct findings {
    bench::series open, newest, all, latest, memory, both;
    double log = 0;

    void add(const std::vector<double> &results)
    {
        open.add(results[0]);
        newest.add(results[1]);
        all.add(results[2]);
        latest.add(results[3]);
        memory.add(results[4]);
        both.add(results[0] + results[1]);
        log = results[5];
    }
};

void report_time(const std::string &what, const bench::series &times, double target)
{
    bench::report({what, bench::micros(times.median()), "", times.median() * 1e3,
                   target > 0 ? bench::wanted::at_most : bench::wanted::nothing, target, "ms",
                   times.quantile(0) * 1e3, times.quantile(1) * 1e3});
}

void report_findings(const std::string &name, const findings &found, bool aims)
{
    report_time(name + ": open", found.open, aims ? 2 : 0);
    report_time(name + ": list the newest 50", found.newest, aims ? 1 : 0);
    report_time(name + ": list all", found.all, aims ? 12 : 0);
    report_time(name + ": latest of a directory", found.latest, aims ? 0.1 : 0);
}

void list_sessions(benchmark::State &state, uint64_t count)
{
    const std::string number = std::to_string(count);
    bench::folder place;
    std::string path = place / "store", files = place / "files";
    findings closed, killed;
    bench::series scans;

    if (!bench::has_room(state, number + " sessions", place, count * disk_size + (1 << 29))) {
        return;
    }
    std::filesystem::create_directory(files);
    std::thread writer([&] {
        if (count <= most_files) {
            bench::run_child("fill_files", {files, number});
        }
    });
    bench::run_child("fill", {path, number});
    writer.join();
    for (auto _ : state) {
        closed.add(bench::run_child("open_and_list", {path, number}));
        bench::run_child("append_and_die", {path});
        killed.add(bench::run_child("open_and_list", {path, number}));
        if (count <= most_files) {
            scans.add(bench::run_child("list_files", {files})[0]);
        }
        state.SetIterationTime(closed.both.median());
    }
    auto x = static_cast<double>(count);
    std::string name = number + " sessions";
    report_findings(name + ", closed", closed, count == aimed);
    report_findings(name + ", killed", killed, false);
    if (scans.count() > 0) {
        bench::report_ratios(name + ": open, newest 50, to looking at all files",
                             bench::millis(closed.both.median()), bench::millis(scans.median()),
                             closed.both.over(scans), bench::wanted::nothing, 0);
        bench::plot("size", "jsonl files", x, scans.median() * 1e3);
    }
    bench::report({name + ": log", bench::mebibytes(closed.log), "", std::nan(""),
                   bench::wanted::nothing, 0, ""});
    bench::report({name + ": anonymous memory, 100 in use",
                   bench::mebibytes(closed.memory.median()), "", closed.memory.median() / 1048576,
                   count < aimed ? bench::wanted::nothing : bench::wanted::at_most, 64, "MiB"});
    bench::plot("size", "agentwal", x, closed.both.median() * 1e3);
    bench::plot("size", "agentwal, killed", x, killed.both.median() * 1e3);
}

void empty_store(benchmark::State &state)
{
    bench::folder place;
    std::string path = place / "store";
    double bytes = 0;

    for (auto _ : state) {
        double begin = bench::now();

        bench::run_child("make_empty", {path});
        state.SetIterationTime(bench::now() - begin);
    }
    for (const auto &item : std::filesystem::recursive_directory_iterator(path)) {
        struct stat facts;

        bench::require(stat(item.path().c_str(), &facts) == 0, "stat failed");
        bytes += static_cast<double>(facts.st_blocks) * 512;
    }
    bench::report({"an empty store on disk", bench::mebibytes(bytes), "", bytes / 1048576,
                   bench::wanted::at_most, 2, "MiB"});
}

void setup()
{
    std::vector<uint64_t> counts = {aimed / 100, aimed / 10, aimed};

    if (bench::asked() == bench::run_length::complete) {
        counts.push_back(10 * aimed);
    } else {
        bench::report_skipped(std::to_string(10 * aimed) + " sessions", "only with --long");
    }
    for (uint64_t count : counts) {
        bench::add("list/" + std::to_string(count), bench::pick(5, 7, 7),
                   [count](benchmark::State &state) { list_sessions(state, count); });
    }
    bench::add("empty", 1, empty_store);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"fill", fill},
                       {"open_and_list", open_and_list},
                       {"append_and_die", append_and_die},
                       {"fill_files", fill_files},
                       {"list_files", list_files},
                       {"make_empty", make_empty}});
}
