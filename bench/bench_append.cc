/*
 * bench_append.cc - what does an append cost that is on stable storage when
 * it is acknowledged? One writer is held against a bare write and sync of as
 * many bytes as its group has; 64 writers against one, and against a bare
 * loop that syncs batches of 64 entries.
 */
#include <atomic>
#include <cmath>
#include <thread>

#include "bench/harness.h"

namespace {

const int writers = 64;
const uint64_t seed = 20260101;
const uint64_t bare_size = 64 << 20;

struct shape {
    const char *name;
    size_t fixed; /* bytes of each payload; 0: mixed */
};

const shape shapes[] = {{"mixed", 0}, {"1 KiB", 1024}};

/* Payloads made before the clock runs. */
std::vector<std::string> make_payloads(const shape &shape, uint64_t from)
{
    bench::source source(from);
    std::vector<std::string> made;

    for (int i = 0; i < 1000; i++) {
        made.push_back(shape.fixed == 0 ? source.mixed()
                                        : source.message(shape.fixed));
    }
    return made;
}

/* A session that one thread appends to. */
class writer {
  public:
    writer(wal_store *store, const shape &shape, uint64_t number)
        : session(bench::create_session(store,
                                        bench::number_id("s", number))),
          payloads(make_payloads(shape, seed + number))
    {
    }
    ~writer()
    {
        wal_session_close(session);
    }
    writer(const writer &) = delete;
    writer &operator=(const writer &) = delete;

    void append()
    {
        std::string id = bench::number_id("e", count);
        const std::string &payload = payloads[count % payloads.size()];
        wal_entry entry = bench::entry(id, payload);

        bench::append(session, &entry, 1);
        count++;
    }

  private:
    wal_session *session;
    std::vector<std::string> payloads;
    uint64_t count = 0;
};

/* --- one writer --------------------------------------------------------- */

void one_writer(benchmark::State &state, const shape &shape)
{
    const int block = bench::pick(100, 400, 2000);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    bench::bare_log bare(place / "bare", bare_size);
    bench::series engine_times;
    bench::series bare_times;
    bench::series ratios;
    bench::series slow_ratios;

    {
        writer writer(store, shape, 0);

        for (auto _ : state) {
            bench::series engine_block;
            bench::series bare_block;
            std::vector<uint64_t> sizes;

            for (int i = 0; i < block; i++) {
                uint64_t before = bench::store_status(store).log_bytes;
                double begin = bench::now();

                writer.append();
                engine_block.add(bench::now() - begin);
                engine_times.add(engine_block.quantile(1));
                sizes.push_back(bench::store_status(store).log_bytes -
                                before);
            }
            for (uint64_t size : sizes) {
                double begin = bench::now();

                bare.append(size);
                bare_block.add(bench::now() - begin);
            }
            ratios.add(engine_block.median() / bare_block.median());
            slow_ratios.add(engine_block.quantile(0.99) /
                            bare_block.quantile(0.99));
            state.SetIterationTime(engine_block.median());
        }
    }
    bench::close_store(store);
    (void)engine_times;
    (void)bare_times;
}

} // namespace
