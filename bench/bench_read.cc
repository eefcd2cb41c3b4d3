/*
 * bench_read.cc - how fast does a process that has just started read a session, and single entries
 * by their ids, against what agents use instead? Each payload is copied to where a reader keeps it.
 * Only some of the peers verify what they read: which, the rows say.
 */
#include <cstring>

#include "bench/peers/peer.h"

namespace
{

const uint64_t seed = 3;
const char session[] = "s";

/* The kinds that are filled fast; reading is the same for their others. */
const char *const readers[] = {"jsonl-open-written", "json-message-written", "sqlite-normal",
                               "lmdb-written",       "rocksdb-written",      "leveldb-written"};

uint64_t entry_count()
{
    return bench::pick<uint64_t>(10000, 100000, 100000);
}

/* Copies what it is given, over what came before. */
class keeper
{
  public:
    bench::visitor visitor()
    {
        return [this](const char *data, size_t size) {
            if (size > bytes.size()) {
                bytes.resize(size);
            }
            memcpy(bytes.data(), data, size);
            benchmark::DoNotOptimize(bytes.data());
            total += static_cast<double>(size);
        };
    }
    double total = 0;

  private:
    std::vector<char> bytes = std::vector<char>(1 << 16);
};

std::string family(const std::string &kind)
{
    return kind.substr(0, kind.rfind('-'));
}

/* --- children ----------------------------------------------------------- */

/* KIND PATH: fills a session. */
void fill(const bench::arguments &given)
{
    std::unique_ptr<bench::peer> store = bench::find_kind(given[0]).open(given[1]);
    std::unique_ptr<bench::peer_session> one = store->create(session);
    bench::source source(seed);

    for (uint64_t i = 0; i < entry_count(); i++) {
        one->append(i, source.mixed());
    }
    one.reset();
}

/* Reads entries at random; seconds of each. */
bench::series read_by_id(bench::peer &store)
{
    const int reads = bench::pick(5000, 20000, 20000);
    bench::source source(seed + 1);
    bench::series times;
    keeper keeper;
    bench::visitor keep = keeper.visitor();

    for (int i = 0; i < reads; i++) {
        std::string key = store.key(session, source.next(entry_count()));
        double begin = bench::now();
        bool found = store.read(session, key, keep);

        times.add(bench::now() - begin);
        bench::require(found, "an entry is lost");
    }
    return times;
}

/* KIND PATH: reads the session twice, then single entries; bytes per second of both passes, seconds
 * for an entry, at the median and for 99 of 100. */
void read_all(const bench::arguments &given)
{
    const bench::peer_kind &kind = bench::find_kind(given[0]);
    std::unique_ptr<bench::peer> store = kind.open(given[1]);
    std::vector<double> results;

    for (int pass = 0; pass < 2; pass++) {
        keeper keeper;
        double begin = bench::now();
        uint64_t count = store->replay(session, keeper.visitor());
        double gone = bench::now() - begin;

        bench::require(count == entry_count(), given[0] + " lost entries");
        results.push_back(keeper.total / gone);
    }
    if (kind.reads_ids) {
        bench::series times = read_by_id(*store);

        results.push_back(times.median());
        results.push_back(times.quantile(0.99));
    }
    bench::answer(results);
}

/* --- measuring ---------------------------------------------------------- */

struct reader {
    const bench::peer_kind *kind;
    std::string path;
    bench::series first, second, one, rare;

    void repetition()
    {
        std::vector<double> results = bench::run_child("read_all", {kind->name, path});

        first.add(results[0]);
        second.add(results[1]);
        if (kind->reads_ids) {
            one.add(results[2]);
            rare.add(results[3]);
        }
    }
};

std::vector<reader> make_readers(const bench::folder &place)
{
    std::vector<reader> all;
    std::string engine = bench::engine_kind(bench::guarantee::written).name;

    all.push_back({&bench::find_kind(engine), place / engine, {}, {}, {}, {}});
    for (const bench::peer_kind &kind : bench::peer_kinds()) {
        for (const char *name : readers) {
            if (kind.name == name) {
                all.push_back({&kind, place / name, {}, {}, {}, {}});
            }
        }
    }
    for (const reader &each : all) {
        bench::run_child("fill", {each.kind->name, each.path});
    }
    bench::sync_file_system(place.path());
    return all;
}

void report_replay(const reader &engine, const reader &peer)
{
    bool bare = family(peer.kind->name) == "lmdb";
    double target = peer.kind->verifies ? 1 : bare ? 0.85 : 0;
    std::string name = "replay, " + std::to_string(entry_count()) + " entries, fresh process, to " +
                       family(peer.kind->name) + (peer.kind->verifies ? " (verifies)" : "");

    bench::report_ratios(name, bench::gigabytes_per_second(engine.first.median()),
                         bench::gigabytes_per_second(peer.first.median()),
                         engine.first.over(peer.first),
                         target > 0 ? bench::wanted::at_least : bench::wanted::nothing, target);
}

void report_second(const reader &engine, const reader &peer)
{
    bench::report_ratios("replay, second pass, to " + family(peer.kind->name),
                         bench::gigabytes_per_second(engine.second.median()),
                         bench::gigabytes_per_second(peer.second.median()),
                         engine.second.over(peer.second), bench::wanted::nothing, 0);
}

void report_reads(const reader &engine, const reader &peer)
{
    bench::report_ratios("read by id, to " + family(peer.kind->name),
                         bench::micros(engine.one.median()), bench::micros(peer.one.median()),
                         engine.one.over(peer.one), bench::wanted::nothing, 0);
}

void read(benchmark::State &state)
{
    bench::folder place;
    std::vector<reader> all = make_readers(place);
    const reader &engine = all[0];

    for (auto _ : state) {
        for (reader &each : all) {
            each.repetition();
        }
        state.SetIterationTime(1 / engine.first.median());
    }
    for (size_t i = 1; i < all.size(); i++) {
        report_replay(engine, all[i]);
    }
    for (size_t i = 1; i < all.size(); i++) {
        report_second(engine, all[i]);
    }
    bench::report({"read by id, verified before, median", bench::micros(engine.one.median()), "",
                   engine.one.median() * 1e6, bench::wanted::at_most, 1, "us",
                   engine.one.quantile(0) * 1e6, engine.one.quantile(1) * 1e6});
    bench::report({"read by id, verified before, 99 of 100", bench::micros(engine.rare.median()),
                   "", engine.rare.median() * 1e6, bench::wanted::nothing, 0, "us"});
    for (size_t i = 1; i < all.size(); i++) {
        if (all[i].kind->reads_ids) {
            report_reads(engine, all[i]);
        }
    }
}

void setup()
{
    bench::add("read", bench::pick(5, 7, 9), read);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"fill", fill}, {"read_all", read_all}});
}
