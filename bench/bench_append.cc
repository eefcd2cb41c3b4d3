/*
 * bench_append.cc - what does an append cost that is on stable storage when
 * it is acknowledged? One writer is held against a bare write and sync of as
 * many bytes as its group has; 64 writers against one, and against a bare
 * loop that syncs batches of 64 entries.
 */
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

#include "bench/harness.h"

namespace
{

const int writers = 64;
const uint64_t seed = 20260101;
const uint64_t bare_size = 64 << 20;

/* A session that one thread appends to. */
class writer
{
  public:
    writer(wal_store *store, const bench::shape &shape, uint64_t number)
        : session(bench::create_session(store, bench::number_id("s", number))),
          payloads(bench::make_payloads(shape, seed + number))
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

/* The row, without a ratio where a sync is no sync. */
void report(const std::string &question, const std::string &measured,
            const std::string &bare, double ratio, bench::wanted sense,
            double target)
{
    bench::report({question, measured, bare,
                   bench::sync_is_free() ? std::nan("") : ratio, sense, target,
                   "x"});
}

/* --- one writer --------------------------------------------------------- */

struct timed {
    bench::series all;
    bench::series block;

    void add(double begin)
    {
        double gone = bench::now() - begin;

        all.add(gone);
        block.add(gone);
    }
};

void one_writer(benchmark::State &state, const bench::shape &shape)
{
    const int block = bench::pick(100, 500, 2000);
    bench::folder place;
    bench::bare_log bare(place / "bare", bare_size);
    wal_store *store = bench::open_store(place / "store");
    auto one = std::make_unique<writer>(store, shape, 0);
    timed engine;
    timed limit;
    bench::series ratios;
    bench::series slow;

    for (auto _ : state) {
        std::vector<uint64_t> sizes;

        engine.block = {};
        limit.block = {};
        for (int i = 0; i < block; i++) {
            uint64_t before = bench::store_status(store).log_bytes;
            double begin = bench::now();

            one->append();
            engine.add(begin);
            sizes.push_back(bench::store_status(store).log_bytes - before);
        }
        for (uint64_t size : sizes) {
            double begin = bench::now();

            bare.append(size);
            limit.add(begin);
        }
        ratios.add(engine.block.median() / limit.block.median());
        slow.add(engine.block.quantile(0.99) / limit.block.quantile(0.99));
        state.SetIterationTime(engine.block.median());
    }
    one.reset();
    bench::close_store(store);

    std::string name = std::string("append, 1 writer, ") + shape.name;
    report(name + ", p50", bench::micros(engine.all.median()),
           bench::micros(limit.all.median()), ratios.median(),
           bench::wanted::at_most, 1.25);
    report(name + ", p99", bench::micros(engine.all.quantile(0.99)),
           bench::micros(limit.all.quantile(0.99)), slow.median(),
           bench::wanted::nothing, 0);
}

/* --- many writers ------------------------------------------------------- */

/* Appends with so many threads for a while; acknowledgements per second. */
double append_rate(const std::vector<std::unique_ptr<writer>> &all,
                   size_t count, double duration)
{
    std::vector<std::thread> threads;
    std::atomic<uint64_t> done = {0};
    double begin = bench::now();

    for (size_t i = 0; i < count; i++) {
        threads.emplace_back([&, i] {
            uint64_t own = 0;

            while (bench::now() - begin < duration) {
                all[i]->append();
                own++;
            }
            done += own;
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    return static_cast<double>(done) / (bench::now() - begin);
}

/* Batches of 64 entries, each written and synced at once. */
double bare_rate(bench::bare_log &bare, uint64_t batch, double duration)
{
    double begin = bench::now();
    double entries = 0;

    while (bench::now() - begin < duration) {
        bare.append(batch);
        entries += writers;
    }
    return entries / (bench::now() - begin);
}

void many_writers(benchmark::State &state, const bench::shape &shape)
{
    const double duration = bench::pick(0.3, 1.0, 5.0);
    bench::folder place;
    bench::bare_log bare(place / "bare", bare_size);
    wal_store *store = bench::open_store(place / "store");
    std::vector<std::unique_ptr<writer>> all;
    bench::series ones, manies, bares, to_one, to_bare, per_ack;

    for (uint64_t i = 0; i < writers; i++) {
        all.push_back(std::make_unique<writer>(store, shape, i));
    }
    for (auto _ : state) {
        double one = append_rate(all, 1, duration);
        wal_store_info before = bench::store_status(store);
        double many = append_rate(all, writers, duration);
        wal_store_info after = bench::store_status(store);
        double acks =
            static_cast<double>(after.acknowledged - before.acknowledged);
        double bytes = static_cast<double>(after.log_bytes - before.log_bytes);
        double limit = bare_rate(
            bare, static_cast<uint64_t>(bytes / acks * writers), duration);

        ones.add(one);
        manies.add(many);
        bares.add(limit);
        to_one.add(many / one);
        to_bare.add(many / limit);
        per_ack.add(static_cast<double>(after.syncs - before.syncs) / acks);
        state.SetIterationTime(1 / many);
    }
    all.clear();
    bench::close_store(store);

    std::string name = std::string("append, 64 writers, ") + shape.name;
    report(name + ", to 1 writer", bench::per_second(manies.median()),
           bench::per_second(ones.median()), to_one.median(),
           bench::wanted::at_least, 12);
    report(name + ", to bare batches", bench::per_second(manies.median()),
           bench::per_second(bares.median()), to_bare.median(),
           bench::wanted::at_least, 0.45);
    bench::report({name + ", syncs for an acknowledgement", "", "",
                   per_ack.median(), bench::wanted::nothing, 0, "syncs"});
}

void setup()
{
    for (const bench::shape &shape : bench::shapes) {
        std::string name = shape.name;

        bench::add(
            "append/1 writer/" + name, bench::pick(5, 9, 15),
            [&shape](benchmark::State &state) { one_writer(state, shape); });
        bench::add(
            "append/64 writers/" + name, bench::pick(5, 7, 9),
            [&shape](benchmark::State &state) { many_writers(state, shape); });
    }
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
