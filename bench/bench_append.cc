/*
 * bench_append.cc - what does an append cost that is on stable storage when it is acknowledged? One
 * writer is held against a bare write and sync of as many bytes as its group has; 1, 4, 16 and 64
 * writers, each with its session, against a bare loop that syncs batches of exactly as many
 * entries, and against what agents use instead.
 */
#include "bench/peers/agentwal.h"
#include "bench/writer_pool.h"

namespace
{

const size_t writer_counts[] = {1, 4, 16, 64};
const uint64_t bare_size = 64 << 20;
const size_t step = 3; /* from who begins a repetition to who begins the next */
const bench::shape &mixed = bench::shapes[0];

/* What a comparison may take of the disk at most. */
uint64_t disk_size()
{
    return bench::pick<uint64_t>(1, 2, 16) << 30;
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
    bench::raw_log bare(place / "bare", bare_size);
    bench::engine_peer store(place / "store", bench::guarantee::durable);
    std::unique_ptr<bench::peer_session> session = store.create("s");
    std::vector<std::string> payloads = bench::make_payloads(shape, 1);
    timed engine, limit;
    bench::series ratios, slow;
    uint64_t count = 0;

    for (auto _ : state) {
        /* Nothing in between: a device that is idle for some microseconds may take longer to
         * answer. */
        const uint64_t first = count;
        const uint64_t before = store.status().log_bytes;
        uint64_t written = 0;

        engine.block = {};
        limit.block = {};
        for (int i = 0; i < block; i++) {
            double begin = bench::now();

            session->append(count, payloads[count % payloads.size()]);
            engine.add(begin);
            count++;
        }
        for (uint64_t i = first; i < count; i++) {
            written += payloads[i % payloads.size()].size();
        }
        /* What the log adds to each payload. */
        const uint64_t frame = (store.status().log_bytes - before - written) / (count - first);

        for (uint64_t i = first; i < count; i++) {
            double begin = bench::now();

            bare.append(payloads[i % payloads.size()].size() + frame);
            limit.add(begin);
        }
        ratios.add(engine.block.median() / limit.block.median());
        slow.add(engine.block.quantile(0.99) / limit.block.quantile(0.99));
        state.SetIterationTime(engine.block.median());
    }
    session.reset();

    std::string name = std::string("durable append, 1 thread, ") + shape.name;
    bench::report_sync_ratios(
        name + ", p50 to a bare write + sync", bench::micros(engine.all.median()),
        bench::micros(limit.all.median()), ratios,
        &shape == &mixed ? bench::wanted::at_most : bench::wanted::nothing, 1.05);
    bench::report_sync_ratios(name + ", p99 to that", bench::micros(engine.all.quantile(0.99)),
                              bench::micros(limit.all.quantile(0.99)), slow, bench::wanted::nothing,
                              0);
}

/* --- writers ----------------------------------------------------------- */

/* Batches of `count` entries, each batch written and synced at once. */
double bare_rate(bench::raw_log &bare, double entry_size, size_t count, double duration)
{
    auto batch = static_cast<uint64_t>(entry_size * static_cast<double>(count));
    double begin = bench::now();
    double entries = 0;

    while (bench::now() - begin < duration) {
        bare.append(batch);
        entries += static_cast<double>(count);
    }
    return entries / (bench::now() - begin);
}

/* The engine, the bare limits and the peers, in turns. */
struct comparison {
    size_t threads;
    std::string name;
    std::vector<std::vector<std::string>> payloads;
    bench::raw_log by_call, by_flag;
    bench::writer_pool engine;
    std::vector<std::unique_ptr<bench::writer_pool>> peers;
    bench::series calls, flags;
    size_t turns = 0;

    comparison(const bench::folder &place, size_t count, const bench::shape &shape, bool with_peers)
        : threads(count), name("durable append, " + std::to_string(count) +
                               (count == 1 ? " thread, " : " threads, ") + shape.name),
          payloads(bench::writer_payloads(shape, count)), by_call(place / "bare", bare_size),
          by_flag(place / "flag", bare_size, bench::synced_by::flag),
          engine(bench::engine_kind(bench::guarantee::durable), place / "store", count, payloads)
    {
        for (const bench::peer_kind &kind : bench::peer_kinds()) {
            if (with_peers && kind.guarantee == bench::guarantee::durable) {
                peers.push_back(
                    std::make_unique<bench::writer_pool>(kind, place / kind.name, count, payloads));
            }
        }
    }

    /* Each once, but every repetition another begins, and none while the system still writes what
     * the one before it left. */
    double run(const bench::folder &place, double duration)
    {
        std::vector<std::function<void()>> all = {
            [&] { engine.run_for(duration); },
            [&] { calls.add(bare_rate(by_call, log(), threads, duration)); },
            [&] { flags.add(bare_rate(by_flag, log(), threads, duration)); }};

        for (std::unique_ptr<bench::writer_pool> &peer : peers) {
            all.push_back([&] { peer->run_for(duration); });
        }
        for (size_t i = 0; i < all.size(); i++) {
            bench::sync_file_system(place.path());
            all[(i + turns * step) % all.size()]();
        }
        turns++;
        return engine.of(&bench::repetition::rate).median();
    }

    /* Bytes that the log grows by for an entry. */
    double log() const
    {
        return engine.of(&bench::repetition::log).median();
    }

    void check()
    {
        engine.check();
        for (std::unique_ptr<bench::writer_pool> &peer : peers) {
            peer->check();
        }
    }
};

std::string latency_text(const bench::writer_pool &writer_pool)
{
    return "p50 " + bench::micros(writer_pool.of(&bench::repetition::p50).median()) + ", p99 " +
           bench::micros(writer_pool.of(&bench::repetition::p99).median()) + ", max " +
           bench::millis(writer_pool.latencies().quantile(1));
}

/* Bytes to storage for a byte of payload. */
double write_amplification(const bench::writer_pool &writer_pool)
{
    return writer_pool.sum(&bench::repetition::sent) / writer_pool.sum(&bench::repetition::bytes);
}

/* The targets for a number of threads, entries as generated. */
struct targets {
    size_t threads;
    double bare, used, grouped;
};

const targets all_aims[] = {{16, 0.5, 1.8, 1.3}, {64, 0.6, 3.5, 2.0}};

targets targets_of(const comparison &comparison)
{
    for (const targets &each : all_aims) {
        if (each.threads == comparison.threads && !comparison.peers.empty()) {
            return each;
        }
    }
    return {comparison.threads, 0, 0, 0};
}

bench::wanted at_least(double target)
{
    return target > 0 ? bench::wanted::at_least : bench::wanted::nothing;
}

void report_bare(const comparison &comparison)
{
    bench::series rates = comparison.engine.of(&bench::repetition::rate);
    double target = targets_of(comparison).bare;
    std::string measured = bench::per_second(rates.median());

    bench::report_sync_ratios(comparison.name + ", to bare batches, fdatasync", measured,
                              bench::per_second(comparison.calls.median()),
                              rates.over(comparison.calls), at_least(target), target);
    bench::report_sync_ratios(comparison.name + ", to bare batches, RWF_DSYNC", measured,
                              bench::per_second(comparison.flags.median()),
                              rates.over(comparison.flags), bench::wanted::nothing, 0);
    bench::report({comparison.name + ", latency", latency_text(comparison.engine), "", std::nan(""),
                   bench::wanted::nothing, 0, ""});
    bench::report({comparison.name + ", syncs for an acknowledgement", "", "",
                   comparison.engine.of(&bench::repetition::syncs).median(), bench::wanted::nothing,
                   0, "syncs"});
    bench::report({comparison.name + ", bytes to storage for a payload byte", "", "",
                   write_amplification(comparison.engine), bench::wanted::nothing, 0, "bytes"});
}

void report_rate(const comparison &comparison, const bench::writer_pool &peer,
                 const std::string &what, double target)
{
    bench::series rates = comparison.engine.of(&bench::repetition::rate);
    bench::series others = peer.of(&bench::repetition::rate);

    bench::report_sync_ratios(comparison.name + ", to " + what, bench::per_second(rates.median()),
                              peer.kind().name + ": " + bench::per_second(others.median()),
                              rates.over(others), at_least(target), target);
}

/* Not the best peer's: that one may be slower, and fairer. */
void report_lowest(const comparison &comparison)
{
    bench::series own = comparison.engine.of(&bench::repetition::p99);
    const bench::writer_pool *lowest = nullptr;
    auto p99 = [](const bench::writer_pool &writer_pool) {
        return writer_pool.of(&bench::repetition::p99).median();
    };

    for (const std::unique_ptr<bench::writer_pool> &peer : comparison.peers) {
        if (peer->kind().grouping == bench::grouping::own &&
            (lowest == nullptr || p99(*peer) < p99(*lowest))) {
            lowest = peer.get();
        }
    }
    bench::series others = lowest->of(&bench::repetition::p99);
    bench::report_sync_ratios(comparison.name + ", p99 to the lowest of the peers as they are used",
                              bench::micros(own.median()),
                              lowest->kind().name + ": " + bench::micros(others.median()),
                              own.over(others), bench::wanted::nothing, 0);
}

void report_peers(const comparison &comparison)
{
    auto used = [](const bench::peer_kind &kind) { return kind.grouping == bench::grouping::own; };
    auto grouped = [](const bench::peer_kind &kind) {
        return kind.grouping == bench::grouping::application;
    };
    const bench::writer_pool *best_used = bench::best(comparison.peers, used);
    const bench::writer_pool *best_grouped = bench::best(comparison.peers, grouped);
    bench::series slow = comparison.engine.of(&bench::repetition::p99);
    targets targets = targets_of(comparison);

    report_rate(comparison, *best_used, "the best peer as it is used", targets.used);
    if (best_grouped != nullptr) {
        report_rate(comparison, *best_grouped, "the best peer grouped by its application",
                    targets.grouped);
    }
    bench::series others = best_used->of(&bench::repetition::p99);
    bench::report_sync_ratios(
        comparison.name + ", p99 to that of the best peer as it is used",
        bench::micros(slow.median()),
        best_used->kind().name + ": " + bench::micros(others.median()), slow.over(others),
        comparison.threads == 64 ? bench::wanted::at_most : bench::wanted::nothing, 0.4);
    report_lowest(comparison);
}

void report_each(const comparison &comparison)
{
    bench::series rates = comparison.engine.of(&bench::repetition::rate);

    for (const std::unique_ptr<bench::writer_pool> &peer : comparison.peers) {
        bench::series others = peer->of(&bench::repetition::rate);
        char bytes[32];

        snprintf(bytes, sizeof(bytes), ", %.1f x its bytes", write_amplification(*peer));
        bench::report_sync_ratios(
            comparison.name + ", to " + peer->kind().name, bench::per_second(rates.median()),
            bench::per_second(others.median()) + ", " + latency_text(*peer) + bytes,
            rates.over(others), bench::wanted::nothing, 0);
    }
}

void plot(const comparison &comparison)
{
    auto threads = static_cast<double>(comparison.threads);
    std::vector<const bench::writer_pool *> all = {&comparison.engine};

    for (const std::unique_ptr<bench::writer_pool> &peer : comparison.peers) {
        all.push_back(peer.get());
    }
    bench::plot("threads", "bare batches", threads, comparison.calls.median());
    for (const bench::writer_pool *each : all) {
        bench::plot("threads", each->kind().name, threads,
                    each->of(&bench::repetition::rate).median());
    }
    for (const bench::writer_pool *each : all) {
        for (double part : {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999}) {
            if (comparison.threads == 64) {
                bench::plot("latency", each->kind().name, part,
                            1e3 * each->latencies().quantile(part));
            }
        }
    }
}

void many_writers(benchmark::State &state, const bench::shape &shape, size_t threads)
{
    const double duration = threads < 16 ? bench::pick(0.05, 0.2, 1.0) : bench::pick(0.1, 0.2, 1.0);
    const bool with_peers = &shape == &mixed;
    bench::folder place;

    if (!bench::has_room(state, "appends of many threads", place, disk_size())) {
        return;
    }
    comparison comparison(place, threads, shape, with_peers);

    for (auto _ : state) {
        state.SetIterationTime(1 / comparison.run(place, duration));
    }
    comparison.check();
    report_bare(comparison);
    if (with_peers) {
        report_peers(comparison);
        report_each(comparison);
        plot(comparison);
    }
}

void setup()
{
    for (const bench::shape &shape : bench::shapes) {
        /* Shortly, only entries as generated. */
        if (&shape != &mixed && bench::asked() == bench::run_length::quick) {
            continue;
        }
        std::string name = shape.name;

        bench::add("append/1 thread, bare sizes/" + name, bench::pick(5, 9, 15),
                   [&shape](benchmark::State &state) { one_writer(state, shape); });
        for (size_t threads : writer_counts) {
            if (&shape != &mixed && threads < 16) {
                continue;
            }
            bench::add("append/" + std::to_string(threads) + " threads/" + name,
                       bench::pick(5, 7, 7), [&shape, threads](benchmark::State &state) {
                           many_writers(state, shape, threads);
                       });
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
