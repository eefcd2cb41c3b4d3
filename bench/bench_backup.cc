/*
 * bench_backup.cc - what does a backup cost? The first one of a store is held against copying and
 * syncing its segments; a later one, of ten appends, has targets for its time and for the bytes
 * that it writes. A separate process opens the store and backs it up, while another one has it
 * open.
 */
#include "agentwal/admin.h"
#include "bench/fill.h"

namespace
{

const uint64_t appends = 10;
const double entry_bytes = 2600; /* of log, of an entry of mixed size */

double store_bytes()
{
    return bench::pick<double>(1e8, 1e9, 4e9);
}

/* STORE COPY: seconds with opening the store, bytes written, segments. */
void back_up(const bench::arguments &given)
{
    wal_store_backup_result result = WAL_INIT(wal_store_backup_result);
    wal_error error = WAL_INIT(wal_error);
    double begin = bench::now();
    wal_store *store = bench::open_store(given[0], WAL_OPEN_READ_ONLY);

    bench::check(wal_store_backup(store, given[1].c_str(), nullptr, &result, &error), error);
    bench::close_store(store);
    bench::answer({bench::now() - begin, static_cast<double>(result.bytes),
                   static_cast<double>(result.segments)});
}

void append_few(wal_session *session, uint64_t turn)
{
    static const std::string payload =
        "{\"role\":\"user\",\"content\":\"" + std::string(1000, 'x') + "\"}";

    for (uint64_t i = 0; i < appends; i++) {
        std::string id = bench::number_id("b", turn * appends + i);
        wal_entry entry = bench::entry(id, payload);

        bench::append(session, &entry, 1);
    }
}

/* Copies each segment, and syncs it. */
double copy_bare(const std::string &store, const std::string &to)
{
    double begin = bench::now();
    uint64_t number = 0;

    for (const std::string &path : bench::segment_paths(store)) {
        std::string copy = to + std::to_string(number++);

        bench::copy_file(path, copy);
        bench::sync_file(copy);
    }
    return bench::now() - begin;
}

void backups(benchmark::State &state)
{
    bench::folder place;
    std::string store_path = place / "store";
    const std::string size = bench::mebibytes(store_bytes());
    bench::source source(9);
    bench::series first, bare, later, bytes;
    uint64_t turn = 0;

    if (!bench::has_room(state, "a store of " + size, place,
                         static_cast<uint64_t>(4 * store_bytes()) + (1 << 29))) {
        return;
    }
    wal_store *store = bench::open_store(store_path);
    wal_session *session = bench::create_session(store, "s");
    bench::fill_session(session, 0, static_cast<uint64_t>(store_bytes() / entry_bytes), 0, source);
    for (auto _ : state) {
        std::string copy = place / "copy";
        std::string other = place / "bare";

        bench::remove_all(copy);
        first.add(bench::run_child("backup", {store_path, copy})[0]);
        bare.add(copy_bare(store_path, other));
        for (const std::string &name : bench::names(place.path())) {
            if (name.rfind("bare", 0) == 0) {
                bench::remove_all(place / name);
            }
        }
        for (int i = 0; i < 5; i++) {
            append_few(session, turn++);
            std::vector<double> done = bench::run_child("backup", {store_path, copy});
            later.add(done[0]);
            bytes.add(done[1]);
        }
        state.SetIterationTime(later.median());
    }
    wal_session_close(session);
    bench::close_store(store);
    bench::report_ratios("first backup of " + size + ", to copying its segments, a sync each",
                         bench::millis(first.median()), bench::millis(bare.median()),
                         first.over(bare), bench::wanted::at_most, 1.5);
    bench::report({"backup of 10 appends to " + size + ", time", bench::millis(later.median()), "",
                   later.median() * 1e3, bench::wanted::at_most, 100, "ms", later.quantile(0) * 1e3,
                   later.quantile(1) * 1e3});
    bench::report({"backup of 10 appends to " + size + ", bytes written",
                   bench::mebibytes(bytes.median()), "", bytes.median() / 1048576,
                   bench::wanted::at_most, 2, "MiB", bytes.quantile(0) / 1048576,
                   bytes.quantile(1) / 1048576});
}

void setup()
{
    bench::add("backup", bench::pick(2, 3, 5), backups);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"backup", back_up}});
}
