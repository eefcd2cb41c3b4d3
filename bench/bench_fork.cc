/*
 * bench_fork.cc - does a fork cost the same whatever the session's length?
 * Forks of a session of a million entries and of one of ten in turns: the time
 * and the bytes of log of each.
 */
#include <cmath>

#include "bench/fill.h"

namespace
{

const uint64_t few = 10;

struct forks {
    wal_session *session;
    bench::series times, bytes;

    void fork(wal_store *store)
    {
        uint64_t before = bench::store_status(store).log_bytes;
        wal_session *copy = nullptr;
        wal_slice head = {};
        double begin = bench::now();

        bench::require(
            wal_session_fork(session, head, nullptr, &copy, nullptr) == WAL_OK,
            "cannot fork");
        times.add(bench::now() - begin);
        bytes.add(
            static_cast<double>(bench::store_status(store).log_bytes - before));
        wal_session_close(copy);
    }
};

void fork_sessions(benchmark::State &state)
{
    const uint64_t many = bench::pick<uint64_t>(100000, 1000000, 1000000);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    bench::source source(4);
    forks large = {bench::create_session(store, "a"), {}, {}};
    forks small = {bench::create_session(store, "b"), {}, {}};

    bench::fill_session(large.session, 0, many, 200, source);
    bench::fill_session(small.session, 0, few, 200, source);
    bench::require(wal_sync(store, nullptr) == WAL_OK, "cannot sync");
    large.fork(store);
    small.fork(store);
    large.times = small.times = large.bytes = small.bytes = {};
    for (auto _ : state) {
        large.fork(store);
        small.fork(store);
        state.SetIterationTime(large.times.median());
    }
    wal_session_close(large.session);
    wal_session_close(small.session);
    bench::close_store(store);

    std::string name = "fork of " + std::to_string(many) +
                       " entries to one of " + std::to_string(few);
    bench::report({name + ", time", bench::micros(large.times.median()),
                   bench::micros(small.times.median()),
                   large.times.median() / small.times.median(),
                   bench::wanted::at_most, 1.25, "x"});
    bench::report(
        {name + ", bytes of log",
         std::to_string(static_cast<int>(large.bytes.median())) + " B",
         std::to_string(static_cast<int>(small.bytes.median())) + " B",
         large.bytes.median() / small.bytes.median(), bench::wanted::at_most,
         1.1, "x"});
}

void setup()
{
    bench::add("fork", bench::pick(50, 100, 500), fork_sessions);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
