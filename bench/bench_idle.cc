/*
 * bench_idle.cc - what does one agent cost the machine that appends one small durable entry a
 * second? Bytes that reach the device, wake-ups of all threads and processor time, next to a
 * process that writes and syncs as many bytes to a file of zeros at the same pace.
 *
 * An hour has 3,600 equal seconds and, in about 2 MB of log, two segments that are zeroed ahead.
 * The short runs measure some seconds, and add a zero for each byte of log. --long runs the hour:
 * what was charged to the process needs no addition then, but the second of the device does.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "bench/harness/harness.h"

namespace
{

const size_t payload_size = 300;
const size_t warm_entries = 4;
const double quiet_bytes = 64 << 10; /* a second, of a bare write and sync */
const auto settling = std::chrono::milliseconds(500);

/* --- what a process has used -------------------------------------------- */

/* The number after `key` in a file of /proc; 0 without it. */
double read_counter(const std::string &path, const std::string &key)
{
    std::ifstream file(path);
    std::string word;
    double value = 0;

    while (file >> word) {
        if (word == key && file >> value) {
            return value;
        }
    }
    return 0;
}

/* Voluntary context switches of the threads that live. */
double wakeups()
{
    const std::string tasks = "/proc/self/task";
    DIR *folder = opendir(tasks.c_str());
    double sum = 0;

    bench::require(folder != nullptr, "cannot read " + tasks);
    while (const dirent *entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            sum +=
                read_counter(tasks + "/" + entry->d_name + "/status", "voluntary_ctxt_switches:");
        }
    }
    closedir(folder);
    return sum;
}

struct usage {
    double bytes;
    double wakeups;
    double processor;
};

usage used_now()
{
    return {read_counter("/proc/self/io", "write_bytes:"), wakeups(), bench::used_seconds()};
}

/* Calls `append` once a second; returns what a second used. */
std::vector<double> run_paced(size_t count, const std::function<void(size_t)> &append)
{
    std::this_thread::sleep_for(settling);
    usage begin = used_now();
    auto next = std::chrono::steady_clock::now();
    double seconds = static_cast<double>(count);

    for (size_t i = 0; i < count; i++) {
        append(i);
        next += std::chrono::seconds(1);
        std::this_thread::sleep_until(next);
    }
    usage end = used_now();
    return {(end.bytes - begin.bytes) / seconds, (end.wakeups - begin.wakeups) / seconds,
            (end.processor - begin.processor) / seconds};
}

/* --- the two processes -------------------------------------------------- */

/* PATH COUNT: appends; answers also by how much the log grew for an entry. */
void agent(const bench::arguments &given)
{
    size_t count = std::stoul(given[1]);
    wal_store *store = bench::open_store(given[0]);
    wal_session *session = bench::create_session(store, "s");
    bench::source source(1);
    auto append = [&](size_t i) {
        std::string id = bench::number_id("e", i);
        std::string payload = source.message(payload_size);
        wal_entry entry = bench::entry(id, payload);

        bench::append(session, &entry, 1);
    };

    for (size_t i = 0; i < warm_entries; i++) {
        append(i);
    }
    auto size = static_cast<double>(bench::store_status(store).log_bytes);
    std::vector<double> used = run_paced(count, [&](size_t i) { append(warm_entries + i); });
    used.push_back((static_cast<double>(bench::store_status(store).log_bytes) - size) /
                   static_cast<double>(count));
    wal_session_close(session);
    bench::close_store(store);
    bench::answer(used);
}

/* FOLDER COUNT SIZE: a write and a sync of SIZE bytes a second. */
void bare(const bench::arguments &given)
{
    bench::raw_log log(given[0] + "/zeros", 1 << 20);
    size_t size = std::stoul(given[2]);

    for (size_t i = 0; i < warm_entries; i++) {
        log.append(size);
    }
    bench::answer(run_paced(std::stoul(given[1]), [&](size_t) { log.append(size); }));
}

/* --- the device --------------------------------------------------------- */

/* Bytes that the device of a path was given, by any process; NaN where the device has no
 * counters. */
double device_bytes(const std::string &path)
{
    struct stat info;
    double value = std::nan("");

    bench::require(stat(path.c_str(), &info) == 0, "cannot stat " + path);
    std::ifstream file("/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                       std::to_string(minor(info.st_dev)) + "/stat");
    for (int field = 0; field < 7; field++) { /* the 7th: sectors written */
        if (!(file >> value)) {
            return std::nan("");
        }
    }
    return value * 512;
}

struct result {
    std::vector<double> used; /* what the child answered */
    double device;            /* bytes that the device was given in a second */
};

/* Runs a child, and reads the device's count each second. A second in which little was written, the
 * tenth of ten, leaves out what other processes write now and then; with it a journal that is
 * written every few seconds. On a machine where others write all the time the count says
 * nothing. */
result run_counted(const std::string &name, const bench::arguments &given, const std::string &path)
{
    std::atomic<bool> running{true};
    bench::series seconds;
    result found;

    std::thread child([&] {
        found.used = bench::run_child(name, given);
        running = false;
    });
    std::this_thread::sleep_for(2 * settling);
    for (double before = device_bytes(path); running;) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        double after = device_bytes(path);

        seconds.add(after - before);
        before = after;
    }
    child.join();
    found.device = seconds.quantile(0.1);
    return found;
}

/* --- the rows ----------------------------------------------------------- */

std::string kibibytes(double bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f KiB", bytes / 1024);
    return text;
}

std::string a_second(double count)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f /s", count);
    return text;
}

void report(const std::string &question, const std::string &measured, const std::string &against,
            double ratio, double target)
{
    bench::report({"1 durable append of 300 B a second, " + question, measured, against, ratio,
                   std::isnan(ratio) ? bench::wanted::nothing : bench::wanted::at_most, target,
                   "x"});
}

void idle(benchmark::State &state)
{
    const auto count = bench::pick<size_t>(20, 60, 3600);
    const auto bare_count = bench::pick<size_t>(20, 60, 60);

    for (auto _ : state) {
        bench::folder folder;
        result engine =
            run_counted("agent", {folder / "store", std::to_string(count)}, folder.path());
        double growth = engine.used[3];
        result limit = run_counted("bare",
                                   {folder.path(), std::to_string(bare_count),
                                    std::to_string(static_cast<size_t>(growth))},
                                   folder.path());
        double charged = engine.used[0];
        double written = engine.device + growth;

        if (bench::asked() != bench::run_length::complete) {
            charged += growth;
        }
        if (limit.device < quiet_bytes) {
            report("bytes written to the device", kibibytes(written), kibibytes(limit.device),
                   written / limit.device, 1.25);
        } else {
            bench::report_skipped("idle, bytes written to the device",
                                  "others write to it, or it has no count");
        }
        /* The kernel charges whole folios of the page cache, and those of a file of zeros are
         * larger than what is written. */
        report("bytes charged to the process", kibibytes(charged), "", std::nan(""), 0);
        report("wake-ups of all threads", a_second(engine.used[1]), a_second(limit.used[1]),
               engine.used[1] / limit.used[1], 1.25);
        report("processor time of a second", bench::micros(engine.used[2]),
               bench::micros(limit.used[2]), engine.used[2] / limit.used[2], 2);
        state.SetIterationTime(static_cast<double>(count));
    }
}

void setup()
{
    bench::add("idle", 1, idle);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"agent", agent}, {"bare", bare}});
}
