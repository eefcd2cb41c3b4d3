/*
 * bench_list.cc - what does it cost to find a session to resume? A store of
 * 100,000 sessions of 20 entries that was closed cleanly: a fresh process
 * opens it and lists the newest 50, and finds the newest of one directory.
 * Then what an empty store takes on disk.
 */
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/fill.h"

namespace
{

const uint64_t entries = 20;
const uint64_t folders = 500;

uint64_t session_count()
{
    return bench::pick<uint64_t>(5000, 100000, 100000);
}

std::string folder_name(uint64_t number)
{
    return bench::number_id("/home/user/work/project", number % folders);
}

/* Anonymous memory of this process, in bytes. */
double anonymous()
{
    std::ifstream status("/proc/self/status");
    std::string word;

    while (status >> word) {
        if (word == "RssAnon:") {
            double kibibytes;

            status >> kibibytes;
            return kibibytes * 1024;
        }
    }
    return 0;
}

/* Lists up to `count` sessions; how many there were. */
uint64_t list(wal_store *store, const std::string &cwd, uint64_t count)
{
    wal_list_options options = {};
    wal_session_info info = {};
    wal_list *list = nullptr;
    uint64_t found = 0;

    options.struct_size = sizeof(options);
    options.cwd = bench::slice(cwd);
    info.struct_size = sizeof(info);
    bench::require(wal_list_open(store, &options, &list, nullptr) == WAL_OK,
                   "cannot list");
    while (found < count && wal_list_next(list, &info, nullptr) == WAL_OK) {
        bench::require(cwd.empty() || bench::text(info.cwd) == cwd,
                       "a session of another directory");
        found++;
    }
    wal_list_close(list);
    return found;
}

/* --- children ----------------------------------------------------------- */

/* PATH: fills with many threads, since each session is made durably. */
void fill(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0]);
    std::vector<std::thread> threads;
    std::atomic<uint64_t> next = {0};

    for (int i = 0; i < 64; i++) {
        threads.emplace_back([&, i] {
            bench::source source(static_cast<uint64_t>(i));
            uint64_t number;

            while ((number = next++) < session_count()) {
                wal_session *session = bench::create_session(
                    store, bench::number_id("s", number), folder_name(number));

                bench::fill_session(session, 0, entries, 200, source);
                wal_session_close(session);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    bench::close_store(store);
}

/* PATH: opens and lists; the times, memory used, and the log's size. */
void open_and_list(const bench::arguments &given)
{
    double memory = anonymous();
    double begin = bench::now();
    wal_store *store = bench::open_store(given[0], 0);
    double opened = bench::now();
    uint64_t found = list(store, "", 50);
    double listed = bench::now();

    bench::require(found == 50, "there are not 50 sessions");
    memory = anonymous();
    double latest_begin = bench::now();
    bench::require(list(store, folder_name(7), 1) == 1, "no latest session");
    double latest = bench::now() - latest_begin;
    bench::answer({listed - begin, opened - begin, latest, memory,
                   static_cast<double>(bench::store_status(store).log_bytes)});
    bench::close_store(store);
}

/* PATH: makes an empty store. */
void make_empty(const bench::arguments &given)
{
    bench::close_store(bench::open_store(given[0]));
}

/* --- measuring ---------------------------------------------------------- */

void list_sessions(benchmark::State &state)
{
    bench::folder place;
    std::string path = place / "store";
    bench::series times, opens, latest, memory;
    double bytes = 0;

    bench::run_child("fill", {path});
    for (auto _ : state) {
        std::vector<double> told = bench::run_child("open_and_list", {path});

        times.add(told[0]);
        opens.add(told[1]);
        latest.add(told[2]);
        memory.add(told[3]);
        bytes = told[4];
        state.SetIterationTime(told[0]);
    }
    std::string name = "list, " + std::to_string(session_count()) +
                       " sessions (" + bench::mebibytes(bytes) + ")";
    bench::report({name + ", open and newest 50",
                   bench::millis(times.median()) + " (open " +
                       bench::millis(opens.median()) + ")",
                   "", times.median() * 1e3, bench::wanted::at_most, 20, "ms"});
    bench::report(
        {name + ", anonymous memory", bench::mebibytes(memory.median()), "",
         memory.median() / 1048576, bench::wanted::at_most, 64, "MiB"});
    bench::report({name + ", latest of a directory",
                   bench::micros(latest.median()), "", latest.median() * 1e6,
                   bench::wanted::nothing, 0, "us"});
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
    for (const auto &item :
         std::filesystem::recursive_directory_iterator(path)) {
        struct stat facts;

        bench::require(stat(item.path().c_str(), &facts) == 0, "stat failed");
        bytes += static_cast<double>(facts.st_blocks) * 512;
    }
    bench::report({"an empty store on disk", bench::mebibytes(bytes), "",
                   bytes / 1048576, bench::wanted::at_most, 2, "MiB"});
}

void setup()
{
    bench::add("list", bench::pick(5, 9, 15), list_sessions);
    bench::add("empty", 1, empty_store);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"fill", fill},
                       {"open_and_list", open_and_list},
                       {"make_empty", make_empty}});
}
