/*
 * bench_append.cc - what does an append cost that is on stable storage when
 * it is acknowledged? One writer is held against a bare write and sync of as
 * many bytes as its group has; 1, 4, 16 and 64 writers, each with a session
 * of its own, against a bare loop that syncs batches of exactly as many
 * entries, and against what agents use instead.
 */
#include "bench/crowd.h"
#include "bench/peers/agentwal.h"

namespace
{

const size_t crowds[] = {1, 4, 16, 64};
const uint64_t bare_size = 64 << 20;
const size_t step = 3; /* from who begins a turn to who begins the next */
const bench::shape &mixed = bench::shapes[0];

/* What a contest may take of the disk at most. */
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
    bench::bare_log bare(place / "bare", bare_size);
    bench::engine_peer store(place / "store", bench::promise::durable);
    std::unique_ptr<bench::peer_session> session = store.create("s");
    std::vector<std::string> payloads = bench::make_payloads(shape, 1);
    timed engine, limit;
    bench::series ratios, slow;
    uint64_t count = 0;

    for (auto _ : state) {
        std::vector<uint64_t> sizes;

        engine.block = {};
        limit.block = {};
        for (int i = 0; i < block; i++) {
            uint64_t before = store.status().log_bytes;
            double begin = bench::now();

            session->append(count, payloads[count % payloads.size()]);
            engine.add(begin);
            count++;
            sizes.push_back(store.status().log_bytes - before);
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
    session.reset();

    std::string name = std::string("durable append, 1 thread, ") + shape.name;
    bench::report_sync_ratios(name + ", p50 to a bare write + sync",
                              bench::micros(engine.all.median()),
                              bench::micros(limit.all.median()), ratios,
                              &shape == &mixed ? bench::wanted::at_most
                                               : bench::wanted::nothing,
                              1.10);
    bench::report_sync_ratios(name + ", p99 to that",
                              bench::micros(engine.all.quantile(0.99)),
                              bench::micros(limit.all.quantile(0.99)), slow,
                              bench::wanted::nothing, 0);
}

/* --- so many writers ---------------------------------------------------- */

/* Batches of so many entries, each batch written and synced at once. */
double bare_rate(bench::bare_log &bare, double entry_size, size_t count,
                 double duration)
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
struct contest {
    size_t threads;
    std::string name;
    std::vector<std::vector<std::string>> payloads;
    bench::bare_log by_call, by_flag;
    bench::crowd engine;
    std::vector<std::unique_ptr<bench::crowd>> peers;
    bench::series calls, flags;
    size_t turns = 0;

    contest(const bench::folder &place, size_t count, const bench::shape &shape,
            bool with_peers)
        : threads(count),
          name("durable append, " + std::to_string(count) +
               (count == 1 ? " thread, " : " threads, ") + shape.name),
          payloads(bench::crowd_payloads(shape, count)),
          by_call(place / "bare", bare_size),
          by_flag(place / "flag", bare_size, bench::synced_by::flag),
          engine(bench::engine_kind(bench::promise::durable), place / "store",
                 count, payloads)
    {
        for (const bench::peer_kind &kind : bench::peer_kinds()) {
            if (with_peers && kind.promise == bench::promise::durable) {
                peers.push_back(std::make_unique<bench::crowd>(
                    kind, place / kind.name, count, payloads));
            }
        }
    }

    /* Each once, but every turn another begins, and none while the system
     * still writes what the one before it left. */
    double run(const bench::folder &place, double duration)
    {
        std::vector<std::function<void()>> all = {
            [&] { engine.run_for(duration); },
            [&] { calls.add(bare_rate(by_call, log(), threads, duration)); },
            [&] { flags.add(bare_rate(by_flag, log(), threads, duration)); }};

        for (std::unique_ptr<bench::crowd> &peer : peers) {
            all.push_back([&] { peer->run_for(duration); });
        }
        for (size_t i = 0; i < all.size(); i++) {
            bench::settle(place.path());
            all[(i + turns * step) % all.size()]();
        }
        turns++;
        return engine.of(&bench::turn::rate).median();
    }

    /* Bytes that the log grows by for an entry. */
    double log() const
    {
        return engine.of(&bench::turn::log).median();
    }

    void check()
    {
        engine.check();
        for (std::unique_ptr<bench::crowd> &peer : peers) {
            peer->check();
        }
    }
};

std::string latency_text(const bench::crowd &crowd)
{
    return "p50 " + bench::micros(crowd.of(&bench::turn::p50).median()) +
           ", p99 " + bench::micros(crowd.of(&bench::turn::p99).median()) +
           ", max " + bench::millis(crowd.latencies().quantile(1));
}

/* Bytes to storage for a byte of payload. */
double stored(const bench::crowd &crowd)
{
    return crowd.sum(&bench::turn::sent) / crowd.sum(&bench::turn::bytes);
}

/* What the targets are for so many threads, entries as generated. */
struct aims {
    size_t threads;
    double bare, used, grouped;
};

const aims all_aims[] = {{16, 0.5, 1.8, 1.3}, {64, 0.6, 3.5, 2.0}};

aims aims_of(const contest &contest)
{
    for (const aims &each : all_aims) {
        if (each.threads == contest.threads && !contest.peers.empty()) {
            return each;
        }
    }
    return {contest.threads, 0, 0, 0};
}

bench::wanted at_least(double target)
{
    return target > 0 ? bench::wanted::at_least : bench::wanted::nothing;
}

void report_bare(const contest &contest)
{
    bench::series rates = contest.engine.of(&bench::turn::rate);
    double target = aims_of(contest).bare;
    std::string measured = bench::per_second(rates.median());

    bench::report_sync_ratios(
        contest.name + ", to bare batches, fdatasync", measured,
        bench::per_second(contest.calls.median()), rates.over(contest.calls),
        at_least(target), target);
    bench::report_sync_ratios(
        contest.name + ", to bare batches, RWF_DSYNC", measured,
        bench::per_second(contest.flags.median()), rates.over(contest.flags),
        bench::wanted::nothing, 0);
    bench::report({contest.name + ", latency", latency_text(contest.engine), "",
                   std::nan(""), bench::wanted::nothing, 0, ""});
    bench::report({contest.name + ", syncs for an acknowledgement", "", "",
                   contest.engine.of(&bench::turn::syncs).median(),
                   bench::wanted::nothing, 0, "syncs"});
    bench::report({contest.name + ", bytes to storage for a payload byte", "",
                   "", stored(contest.engine), bench::wanted::nothing, 0,
                   "bytes"});
}

void report_rate(const contest &contest, const bench::crowd &peer,
                 const std::string &what, double target)
{
    bench::series rates = contest.engine.of(&bench::turn::rate);
    bench::series others = peer.of(&bench::turn::rate);

    bench::report_sync_ratios(
        contest.name + ", to " + what, bench::per_second(rates.median()),
        peer.kind().name + ": " + bench::per_second(others.median()),
        rates.over(others), at_least(target), target);
}

/* Not the best peer's: that one may be slower, and fairer. */
void report_lowest(const contest &contest)
{
    bench::series own = contest.engine.of(&bench::turn::p99);
    const bench::crowd *lowest = nullptr;
    auto p99 = [](const bench::crowd &crowd) {
        return crowd.of(&bench::turn::p99).median();
    };

    for (const std::unique_ptr<bench::crowd> &peer : contest.peers) {
        if (peer->kind().grouping == bench::grouping::own &&
            (lowest == nullptr || p99(*peer) < p99(*lowest))) {
            lowest = peer.get();
        }
    }
    bench::series others = lowest->of(&bench::turn::p99);
    bench::report_sync_ratios(
        contest.name + ", p99 to the lowest of the peers as they are used",
        bench::micros(own.median()),
        lowest->kind().name + ": " + bench::micros(others.median()),
        own.over(others), bench::wanted::nothing, 0);
}

void report_peers(const contest &contest)
{
    auto used = [](const bench::peer_kind &kind) {
        return kind.grouping == bench::grouping::own;
    };
    auto grouped = [](const bench::peer_kind &kind) {
        return kind.grouping == bench::grouping::application;
    };
    const bench::crowd *best_used = bench::best(contest.peers, used);
    const bench::crowd *best_grouped = bench::best(contest.peers, grouped);
    bench::series slow = contest.engine.of(&bench::turn::p99);
    aims aims = aims_of(contest);

    report_rate(contest, *best_used, "the best peer as it is used", aims.used);
    if (best_grouped != nullptr) {
        report_rate(contest, *best_grouped,
                    "the best peer grouped by its application", aims.grouped);
    }
    bench::series others = best_used->of(&bench::turn::p99);
    bench::report_sync_ratios(
        contest.name + ", p99 to that of the best peer as it is used",
        bench::micros(slow.median()),
        best_used->kind().name + ": " + bench::micros(others.median()),
        slow.over(others),
        contest.threads == 64 ? bench::wanted::at_most : bench::wanted::nothing,
        0.4);
    report_lowest(contest);
}

void report_each(const contest &contest)
{
    bench::series rates = contest.engine.of(&bench::turn::rate);

    for (const std::unique_ptr<bench::crowd> &peer : contest.peers) {
        bench::series others = peer->of(&bench::turn::rate);
        char bytes[32];

        snprintf(bytes, sizeof(bytes), ", %.1f x its bytes", stored(*peer));
        bench::report_sync_ratios(contest.name + ", to " + peer->kind().name,
                                  bench::per_second(rates.median()),
                                  bench::per_second(others.median()) + ", " +
                                      latency_text(*peer) + bytes,
                                  rates.over(others), bench::wanted::nothing,
                                  0);
    }
}

void plot(const contest &contest)
{
    auto threads = static_cast<double>(contest.threads);
    std::vector<const bench::crowd *> all = {&contest.engine};

    for (const std::unique_ptr<bench::crowd> &peer : contest.peers) {
        all.push_back(peer.get());
    }
    bench::plot("threads", "bare batches", threads, contest.calls.median());
    for (const bench::crowd *each : all) {
        bench::plot("threads", each->kind().name, threads,
                    each->of(&bench::turn::rate).median());
    }
    for (const bench::crowd *each : all) {
        for (double part : {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995,
                            0.999, 0.9999}) {
            if (contest.threads == 64) {
                bench::plot("latency", each->kind().name, part,
                            1e3 * each->latencies().quantile(part));
            }
        }
    }
}

void many_writers(benchmark::State &state, const bench::shape &shape,
                  size_t threads)
{
    const double duration =
        threads < 16 ? bench::pick(0.05, 0.2, 1.0) : bench::pick(0.1, 0.2, 1.0);
    const bool with_peers = &shape == &mixed;
    bench::folder place;

    if (!bench::has_room(state, "appends of many threads", place,
                         disk_size())) {
        return;
    }
    contest contest(place, threads, shape, with_peers);

    for (auto _ : state) {
        state.SetIterationTime(1 / contest.run(place, duration));
    }
    contest.check();
    report_bare(contest);
    if (with_peers) {
        report_peers(contest);
        report_each(contest);
        plot(contest);
    }
}

void setup()
{
    for (const bench::shape &shape : bench::shapes) {
        /* Shortly, only entries as generated. */
        if (&shape != &mixed && bench::asked() == bench::extent::quick) {
            continue;
        }
        std::string name = shape.name;

        bench::add(
            "append/1 thread, bare sizes/" + name, bench::pick(5, 9, 15),
            [&shape](benchmark::State &state) { one_writer(state, shape); });
        for (size_t threads : crowds) {
            if (&shape != &mixed && threads < 16) {
                continue;
            }
            bench::add("append/" + std::to_string(threads) + " threads/" + name,
                       bench::pick(5, 7, 7),
                       [&shape, threads](benchmark::State &state) {
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
