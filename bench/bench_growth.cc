/*
 * bench_growth.cc - what does a process keep of sessions that it made: of those that were deleted,
 * and of those that live? Memory of the process that made them, the size of the catalogue, the time
 * to list and to close. Then four documents by prefix among many.
 */
#include <sys/stat.h>

#include "bench/fill.h"

namespace
{

const uint64_t in_prefix = 4;

/* Lists all sessions of a number; seconds. */
double list(wal_store *store, uint64_t count)
{
    wal_session_info info = {};
    wal_session_cursor *list = nullptr;
    uint64_t found = 0;

    info.struct_size = sizeof(info);
    double begin = bench::now();
    bench::require(wal_session_cursor_open(store, nullptr, &list, nullptr) == WAL_OK,
                   "cannot list");
    while (wal_session_cursor_next(list, &info, nullptr) == WAL_OK) {
        found++;
    }
    wal_session_cursor_close(list);
    double gone = bench::now() - begin;
    bench::require(found == count, "other sessions were listed");
    return gone;
}

void make_session(wal_store *store, uint64_t number, bool removed)
{
    const std::string id = bench::number_id("e", 0), payload = "{}";
    wal_session *session = bench::create_session(store, bench::number_id("s", number));

    if (removed) {
        wal_entry entry = bench::entry(id, payload);

        bench::append(session, &entry, 1);
        bench::require(wal_session_delete(session, nullptr) == WAL_OK, "cannot delete");
    }
    wal_session_close(session);
}

/* PATH COUNT REMOVED: memory, seconds to list, seconds to close, size of the catalogue in MiB. */
void make_and_measure(const bench::arguments &given)
{
    uint64_t count = std::stoull(given[1]);
    bool removed = given[2] == "removed";
    wal_store *store = bench::open_store(given[0]);
    struct stat facts;

    for (uint64_t i = 0; i < count; i++) {
        make_session(store, i, removed);
    }
    double memory = bench::anonymous_memory() / 1048576;
    double listing = list(store, removed ? 0 : count);
    double begin = bench::now();
    bench::close_store(store);
    double closing = bench::now() - begin;
    if (stat((given[0] + "/index/catalogue").c_str(), &facts) != 0) {
        facts.st_size = 0; /* too little for a catalogue */
    }
    bench::answer({memory, listing, closing, static_cast<double>(facts.st_size) / 1048576});
}

/* PATH COUNT: seconds to list, in a process that only reads. */
void list_closed(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], WAL_OPEN_READ_ONLY);

    bench::answer({list(store, std::stoull(given[1]))});
    bench::close_store(store);
}

void deleted_sessions(benchmark::State &state)
{
    const uint64_t count = bench::pick<uint64_t>(20000, 50000, 200000);
    const std::string name = std::to_string(count) + " sessions made, deleted";
    bench::folder place;
    std::vector<double> found;

    for (auto _ : state) {
        double begin = bench::now();

        found = bench::run_child("make_and_measure",
                                 {place / "store", std::to_string(count), "removed"});
        state.SetIterationTime(bench::now() - begin);
    }
    bench::report(
        {name + ": anonymous memory", "", "", found[0], bench::wanted::at_most, 24, "MiB"});
    bench::report({name + ": catalogue", "", "", found[3], bench::wanted::at_most, 1, "MiB"});
    bench::report({name + ": list of none", bench::micros(found[1]), "", found[1] * 1e3,
                   bench::wanted::at_most, 1, "ms"});
}

/* The store of a number of sessions: what making it found. */
std::vector<double> make_store(const std::string &path, uint64_t count)
{
    return bench::run_child("make_and_measure", {path, std::to_string(count), "live"});
}

void live_sessions(benchmark::State &state)
{
    const uint64_t count = bench::pick<uint64_t>(20000, 100000, 1000000);
    const std::string number = std::to_string(count);
    const std::string tenth = std::to_string(count / 10);
    bench::folder place;
    bench::series many, few;

    if (!bench::has_room(state, number + " sessions", place, count * 2000 + (1 << 29))) {
        return;
    }
    std::vector<double> found = make_store(place / "many", count);
    (void)make_store(place / "few", count / 10);
    for (auto _ : state) {
        many.add(bench::run_child("list_closed", {place / "many", number})[0]);
        few.add(bench::run_child("list_closed", {place / "few", tenth})[0]);
        state.SetIterationTime(many.median());
    }
    bench::report({number + " sessions made: anonymous memory", "", "", found[0],
                   bench::wanted::at_most, 96, "MiB"});
    bench::report({number + " sessions made: close", bench::millis(found[2]), "", found[2],
                   bench::wanted::at_most, 1, "s"});
    bench::report_ratios("list all of " + number + ", to all of " + tenth,
                         bench::millis(many.median()), bench::millis(few.median()), many.over(few),
                         bench::asked() == bench::run_length::complete ? bench::wanted::at_most
                                                                       : bench::wanted::nothing,
                         12);
}

/* --- documents ---------------------------------------------------------- */

std::string document_prefix(uint64_t number)
{
    return bench::number_id("message/ses_", number) + "/";
}

void put_documents(wal_store *store, wal_session *session, uint64_t count)
{
    const std::string value = "{\"a\":1}";

    for (uint64_t i = 0; i < count; i++) {
        std::string key = document_prefix(i / in_prefix) + std::to_string(i % in_prefix);
        wal_doc document = {};

        document.struct_size = sizeof(document);
        document.key = bench::slice(key);
        document.value = bench::slice(value);
        bench::require(wal_doc_put(store, session, &document, nullptr, nullptr) == WAL_OK,
                       "cannot put a document");
    }
}

/* Lists the documents of a prefix; seconds. */
double find(wal_store *store, wal_session *session, uint64_t number)
{
    const std::string prefix = document_prefix(number);
    wal_doc_cursor_options options = {};
    wal_doc_cursor *cursor = nullptr;
    wal_doc document = {};
    uint64_t found = 0;

    options.struct_size = sizeof(options);
    options.prefix = bench::slice(prefix);
    document.struct_size = sizeof(document);
    double begin = bench::now();
    bench::require(wal_doc_cursor_open(store, session, &options, &cursor, nullptr) == WAL_OK,
                   "cannot list documents");
    while (wal_doc_cursor_next(cursor, &document, nullptr) == WAL_OK) {
        found++;
    }
    wal_doc_cursor_close(cursor);
    double gone = bench::now() - begin;
    bench::require(found == in_prefix, "other documents were found");
    return gone;
}

void documents(benchmark::State &state)
{
    const uint64_t count = bench::pick<uint64_t>(20000, 50000, 200000);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    wal_session *session = bench::create_session(store, "s");
    bench::source source(9);
    bench::series times;

    put_documents(store, session, count);
    (void)find(store, session, 0); /* sorts the keys */
    for (auto _ : state) {
        times.add(find(store, session, source.next(count / in_prefix)));
        state.SetIterationTime(times.median());
    }
    wal_session_close(session);
    bench::close_store(store);
    bench::report({"4 documents by prefix among " + std::to_string(count),
                   bench::micros(times.median()), "", times.median() * 1e6, bench::wanted::at_most,
                   50, "µs", times.quantile(0) * 1e6, times.quantile(1) * 1e6});
}

void setup()
{
    bench::add("growth/deleted", 1, deleted_sessions);
    bench::add("growth/live", bench::pick(3, 5, 7), live_sessions);
    bench::add("growth/documents", bench::pick(50, 200, 500), documents);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"make_and_measure", make_and_measure}, {"list_closed", list_closed}});
}
