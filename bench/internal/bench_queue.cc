/*
 * bench_queue.cc - what does a queued append cost its caller while the disk is slow? Each write and
 * sync takes 20 ms; at most as many appends as the queue has room for are outstanding.
 */
#include <ctime>

#include "bench/harness/harness.h"

extern "C" {
#include "engine/session/store.h"
}

namespace
{

const int room = 256; /* the queue's default limit */
const size_t size = 300;

wal__io slow_io;
bool slow; /* set while no call is under way */

void pause()
{
    const timespec nap = {0, 20000000};

    if (slow) {
        nanosleep(&nap, nullptr);
    }
}

wal_status slow_write(void *ctx, wal__file *file, const iovec *iov, int count, uint64_t offset,
                      size_t *put, int *sys_errno)
{
    pause();
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

wal_status slow_sync(void *ctx, wal__file *file, int *sys_errno)
{
    pause();
    return wal__io_posix.sync(ctx, file, sys_errno);
}

wal_store *open_slow(const std::string &path)
{
    wal_open_options options = {};
    wal_error error = {};
    wal_store *store = nullptr;

    error.struct_size = sizeof(error);
    options.struct_size = sizeof(options);
    options.flags = WAL_OPEN_CREATE;
    slow_io = wal__io_posix;
    slow_io.pwritev = slow_write;
    slow_io.sync = slow_sync;
    bench::check(wal__store_open(path.c_str(), &options, &wal__heap_libc, &slow_io, &store, &error),
                 error);
    return store;
}

void queued(benchmark::State &state, bool named)
{
    const int rounds = bench::pick(6, 20, 100);
    bench::folder place;
    bench::source source(20260101);
    const std::string payload = source.message(size);
    wal_store *store = open_slow(place / "store");
    wal_session *session = bench::create_session(store, "s");
    bench::series times;
    uint64_t count = 0;

    slow = true;
    for (auto _ : state) {
        bench::series repetition;

        for (int i = 0; i < rounds * room; i++) {
            std::string id = bench::number_id("e", count++);
            wal_entry entry = bench::entry(id, payload);
            double begin;
            double gone;

            if (!named) {
                entry.id = {};
            }
            begin = bench::now();
            bench::append(session, &entry, 1, WAL_QUEUED);
            gone = bench::now() - begin;
            times.add(gone);
            repetition.add(gone);
            if (count % room == 0) {
                bench::require(wal_flush(store, nullptr) == WAL_OK, "flush");
            }
        }
        state.SetIterationTime(repetition.median());
    }
    slow = false;
    wal_session_close(session);
    bench::close_store(store);

    std::string name = std::string("queued append, slow disk, ") + (named ? "id given" : "id made");
    double median = times.median();
    double rare = times.quantile(0.999);
    bench::report(
        {name + ", p50", bench::micros(median), "", median * 1e6, bench::wanted::at_most, 2, "us"});
    bench::report({name + ", p99.9", bench::micros(rare), "", rare * 1e6, bench::wanted::at_most,
                   1000, "us"});
}

void setup()
{
    bench::add("queue/id made", bench::pick(5, 5, 9),
               [](benchmark::State &state) { queued(state, false); });
    bench::add("queue/id given", bench::pick(5, 5, 9),
               [](benchmark::State &state) { queued(state, true); });
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
