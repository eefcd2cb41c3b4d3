/*
 * bench_follow.cc - how soon does a reader in another process see an entry
 * that was acknowledged as durable, and what does it cost to wait? The reader
 * sleeps in wal_store_wait on an idle store; the writer appends now and then.
 * The limit is a byte through a pipe between two processes that sleep.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "bench/harness.h"

namespace
{

const auto pause = std::chrono::milliseconds(3);
const auto settling = std::chrono::milliseconds(500);

double used_seconds()
{
    rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec +
                               usage.ru_stime.tv_usec) *
               1e-6;
}

/* PATH COUNT: when each of so many entries was seen. */
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
        bench::check(
            wal_store_wait(store, &sequence, WAL_DURABLE, 60000, &error),
            error);
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
    used = used_seconds();
    bench::require(wal_store_wait(store, &sequence, WAL_DURABLE, time,
                                  nullptr) == WAL_EBUSY,
                   "nothing comes");
    bench::answer({used_seconds() - used});
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

void measure(size_t count)
{
    bench::folder folder;
    bench::series bare = measure_pipe(count), times;
    std::string path = folder / "store";
    wal_store *store = bench::open_store(path);
    wal_session *session = bench::create_session(store, "s");
    std::vector<double> seen, told;

    std::thread watcher([&] {
        seen = bench::run_child("watch", {path, std::to_string(count)});
    });
    std::this_thread::sleep_for(settling);
    for (size_t i = 0; i < count; i++) {
        std::string id = bench::number_id("e", i), payload = "{}";
        wal_entry entry = bench::entry(id, payload);

        std::this_thread::sleep_for(pause);
        bench::append(session, &entry, 1);
        told.push_back(bench::now());
    }
    watcher.join();
    for (size_t i = 0; i < count; i++) {
        times.add(seen[i] > told[i] ? seen[i] - told[i] : 0);
    }
    wal_session_close(session);
    bench::close_store(store);
    bench::report({"durable entry seen by another process, median",
                   bench::micros(times.median()), bench::micros(bare.median()),
                   times.median() * 1e3, bench::wanted::at_most, 1, "ms"});
    bench::report({"the same, 99 of 100", bench::micros(times.quantile(0.99)),
                   bench::micros(bare.quantile(0.99)),
                   times.quantile(0.99) * 1e3, bench::wanted::nothing, 0,
                   "ms"});
    double used = bench::run_child("idle", {path, "2"})[0];
    bench::report({"processor time of 2 s of waiting", bench::micros(used), "0",
                   used * 1e3, bench::wanted::at_most, 5, "ms"});
}

void follow(benchmark::State &state)
{
    for (auto _ : state) {
        double begin = bench::now();

        measure(bench::pick<size_t>(100, 300, 1000));
        state.SetIterationTime(bench::now() - begin);
    }
}

void setup()
{
    bench::add("follow", 1, follow);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"watch", watch}, {"idle", idle}});
}
