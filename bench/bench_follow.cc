/*
 * bench_follow.cc - how soon does a reader in another process see an entry that was acknowledged as
 * durable, and what does it cost to wait? The reader sleeps in wal_store_wait on an idle store; the
 * writer appends now and then. The limit is a byte through a pipe between two processes that sleep.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "bench/harness/harness.h"

namespace
{

const auto pause = std::chrono::milliseconds(3);
const auto settling = std::chrono::milliseconds(200);

/* PATH COUNT: when each of COUNT entries was seen. */
void watch(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], WAL_OPEN_READ_ONLY);
    size_t count = std::stoul(given[1]);
    uint64_t sequence = bench::store_status(store).last_sequence;
    uint64_t last = sequence;
    wal_error error = {};
    std::vector<double> seen;

    error.struct_size = sizeof(error);
    while (seen.size() < count) {
        bench::check(wal_store_wait(store, &sequence, WAL_DURABLE, 60000, &error), error);
        /* Where the reader was late, several entries came at once. */
        for (double at = bench::now(); last < sequence; last++) {
            seen.push_back(at);
        }
    }
    bench::answer(seen);
    bench::close_store(store);
}

/* PATH SECONDS: processor time of a handle that waits so long in vain. */
void idle(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0]);
    uint64_t sequence = UINT64_MAX;
    int64_t time = std::stol(given[1]) * 1000;
    double used;

    std::this_thread::sleep_for(settling);
    used = bench::used_seconds();
    bench::require(wal_store_wait(store, &sequence, WAL_DURABLE, time, nullptr) == WAL_EBUSY,
                   "nothing comes");
    bench::answer({bench::used_seconds() - used});
    bench::close_store(store);
}

/* How long a byte takes to a process that waits for it. */
bench::series measure_pipe(size_t count)
{
    bench::series times;
    int there[2], back[2];

    bench::require(pipe(there) == 0 && pipe(back) == 0, "pipes");
    pid_t child = fork();
    bench::require(child >= 0, "fork");
    if (child == 0) {
        char byte;

        while (count-- > 0 && read(there[0], &byte, 1) == 1) {
            double seen = bench::now();

            if (write(back[1], &seen, sizeof(seen)) != sizeof(seen)) {
                _exit(1);
            }
        }
        _exit(0);
    }
    for (size_t i = 0; i < count; i++) {
        double seen = 0;

        std::this_thread::sleep_for(pause);
        double sent = bench::now();
        bench::require(write(there[1], "x", 1) == 1 &&
                           read(back[0], &seen, sizeof(seen)) == sizeof(seen),
                       "pipe");
        times.add(seen - sent);
    }
    waitpid(child, nullptr, 0);
    for (int end = 0; end < 2; end++) {
        close(there[end]);
        close(back[end]);
    }
    return times;
}

/* The time from an append to its arrival in a waiting process. */
bench::series measure_entries(const std::string &path, size_t count)
{
    wal_store *store = bench::open_store(path);
    wal_session *session = bench::create_session(store, "s");
    std::vector<double> seen, appended;
    bench::series times;

    std::thread watcher([&] { seen = bench::run_child("watch", {path, std::to_string(count)}); });
    std::this_thread::sleep_for(settling);
    for (size_t i = 0; i < count; i++) {
        std::string id = bench::number_id("e", i), payload = "{}";
        wal_entry entry = bench::entry(id, payload);

        std::this_thread::sleep_for(pause);
        bench::append(session, &entry, 1);
        appended.push_back(bench::now());
    }
    watcher.join();
    for (size_t i = 0; i < count; i++) {
        times.add(seen[i] > appended[i] ? seen[i] - appended[i] : 0);
    }
    wal_session_close(session);
    bench::close_store(store);
    return times;
}

void report(const std::string &part, const bench::series &times, const bench::series &pipes,
            bench::wanted sense)
{
    bench::report({"durable entry seen by another process, " + part, bench::micros(times.median()),
                   bench::micros(pipes.median()) + " (a byte in a pipe)", times.median() * 1e3,
                   sense, 1, "ms", times.quantile(0) * 1e3, times.quantile(1) * 1e3});
}

void follow(benchmark::State &state)
{
    const auto count = bench::pick<size_t>(60, 100, 200);
    bench::series median, rare, pipe_median, pipe_rare;

    for (auto _ : state) {
        bench::folder folder;
        bench::series pipes = measure_pipe(count);
        bench::series times = measure_entries(folder / "store", count);

        median.add(times.median());
        rare.add(times.quantile(0.99));
        pipe_median.add(pipes.median());
        pipe_rare.add(pipes.quantile(0.99));
        state.SetIterationTime(times.median());
    }
    report("median", median, pipe_median, bench::wanted::at_most);
    report("99 of 100", rare, pipe_rare, bench::wanted::nothing);
}

/* Several wait at the same time: what each uses is its own. */
void wait(benchmark::State &state)
{
    bench::folder folder;
    std::string path = folder / "store";
    std::vector<double> used(static_cast<size_t>(bench::current_repetitions()));
    std::vector<std::thread> children;
    bench::series times;

    bench::close_store(bench::open_store(path));
    for (double &each : used) {
        children.emplace_back([&] { each = bench::run_child("idle", {path, "2"})[0]; });
    }
    for (std::thread &child : children) {
        child.join();
    }
    size_t repetition = 0;
    for (auto _ : state) {
        times.add(used[repetition]);
        state.SetIterationTime(used[repetition]);
        repetition++;
    }
    bench::report({"processor time of 2 s of waiting", bench::micros(times.median()), "",
                   times.median() * 1e3, bench::wanted::at_most, 5, "ms", times.quantile(0) * 1e3,
                   times.quantile(1) * 1e3});
}

void setup()
{
    bench::add("follow", 5, follow);
    bench::add("follow/wait", 5, wait);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"watch", watch}, {"idle", idle}});
}
