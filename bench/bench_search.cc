/*
 * bench_search.cc - what does the index of search cost, and how long does a query take? Sessions of
 * Claude Code with words as frequent as in a natural language; one byte in five is text of
 * messages, the rest results of tools. They are imported by agentwal as a separate process. The
 * peer is rg -l for one of the two words, over the files, or grep -rl where rg is not found; all of
 * it is in memory.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bench/harness/harness.h"

#ifdef AGENTWAL_HAVE_SEARCH

#include "agentwal/search.h"

namespace
{

const uint64_t session_size = 2000000; /* bytes of a file */
const uint64_t vocabulary = 50000;     /* words */
const int queries = 40;
const double most_index = 0.10; /* of the bytes of the sessions */
const double least_build = 25;  /* MB of text in a second */
const double most_time = 30;    /* ms, of a query for two common words */
const double most_ratio = 0.3;  /* to the peer */

std::string tool(const char *name)
{
    return (std::filesystem::canonical("/proc/self/exe").parent_path() / "../bin" / name).string();
}

/* A word of a rank, made of syllables. */
std::string word(uint64_t rank)
{
    static const char *const syllables[] = {"ka", "to", "mi", "re", "su", "na", "lo",
                                            "ve", "di", "po", "ra", "se", "bu", "fi",
                                            "go", "he", "ju", "le", "my", "ti"};
    std::string made;
    uint64_t number = rank + 20;

    while (number > 0) {
        made += syllables[number % 20];
        number /= 20;
    }
    return made;
}

/* Words, the one of rank r about as often as 1 / r. */
std::string sentence(bench::source &source, size_t size)
{
    std::string made;

    while (made.size() < size) {
        double part = static_cast<double>(source.next(1 << 30)) / static_cast<double>(1 << 30);
        auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(vocabulary), part));

        made += word(rank) + (source.next(12) == 0 ? ". " : " ");
    }
    return made;
}

/* Output of a tool: words of a program, without order. */
std::string output(bench::source &source, size_t size)
{
    std::string made;

    while (made.size() < size) {
        made += word(source.next(vocabulary * 4)) + "_" + std::to_string(source.next(100000)) +
                (source.next(8) == 0 ? "\\n    " : " ");
    }
    return made;
}

/* One row of a transcript. */
std::string row(bench::source &source, const std::string &session, uint64_t number)
{
    char head[300];
    std::string message;

    snprintf(head, sizeof(head),
             "{\"uuid\":\"%s-%06llu\",\"parentUuid\":%s%s%s,\"sessionId\":"
             "\"%s\",\"cwd\":\"/home/user/project\",\"timestamp\":\"2026-%02u-"
             "%02uT%02u:00:00.000Z\",",
             session.c_str(), static_cast<unsigned long long>(number), number == 0 ? "null" : "\"",
             number == 0 ? "" : (session + "-").c_str(),
             number == 0 ? ""
                         : (std::string(6 - std::to_string(number - 1).size(), '0') +
                            std::to_string(number - 1) + "\"")
                               .c_str(),
             session.c_str(), static_cast<unsigned>(source.next(12) + 1),
             static_cast<unsigned>(source.next(28) + 1), static_cast<unsigned>(source.next(24)));
    switch (number % 4) {
    case 0:
        message = "\"type\":\"user\",\"message\":{\"role\":\"user\","
                  "\"content\":\"" +
                  sentence(source, 200 + source.next(400)) + "\"}}";
        break;
    case 1:
        message = "\"type\":\"assistant\",\"message\":{\"role\":\"assistant\","
                  "\"content\":[{\"type\":\"text\",\"text\":\"" +
                  sentence(source, 300 + source.next(1000)) + "\"}]}}";
        break;
    case 2:
        message = "\"type\":\"assistant\",\"message\":{\"role\":\"assistant\","
                  "\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":"
                  "\"Read\",\"input\":{\"file_path\":\"/home/user/project/" +
                  word(source.next(2000)) + "/" + word(source.next(2000)) + ".c\"}}]}}";
        break;
    default:
        message = "\"type\":\"user\",\"message\":{\"role\":\"user\","
                  "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                  "\"t\",\"content\":\"" +
                  output(source, 2000 + source.next(6000)) + "\"}]}}";
        break;
    }
    return head + message + "\n";
}

void make_session(const std::string &path, uint64_t number)
{
    bench::source source(number);
    std::string session = bench::number_id("session", number);
    FILE *file = fopen(path.c_str(), "w");
    uint64_t size = 0;

    bench::require(file != nullptr, "cannot write " + path);
    for (uint64_t i = 0; size < session_size; i++) {
        std::string made = row(source, session, i);

        bench::require(fwrite(made.data(), 1, made.size(), file) == made.size(), "no space");
        size += made.size();
    }
    bench::require(fclose(file) == 0, "no space");
}

void run_shell(const std::string &command)
{
    int status = system((command + " >/dev/null 2>&1").c_str());

    bench::require(WIFEXITED(status) && WEXITSTATUS(status) <= 1, command + " failed");
}

double time_shell(const std::string &command)
{
    double begin = bench::now();

    run_shell(command);
    return bench::now() - begin;
}

/* --- searching ---------------------------------------------------------- */

wal_search *open_search(wal_store *store)
{
    wal_search *search = nullptr;

    bench::require(wal_search_open(store, nullptr, &search, nullptr) == WAL_OK,
                   "cannot open a search");
    return search;
}

/* The time of a query; the records that match in *matches. */
double time_query(wal_search *search, const std::string &words, uint64_t *matches)
{
    wal_search_query query = WAL_INIT(wal_search_query);
    wal_search_summary summary = WAL_INIT(wal_search_summary);
    wal_search_cursor *cursor = nullptr;
    double begin = bench::now();

    query.text = bench::slice(words);
    bench::require(wal_search_find(search, &query, &cursor, &summary, nullptr) == WAL_OK,
                   "cannot search");
    bench::require(summary.hits > 0, "no hit for " + words);
    wal_search_cursor_close(cursor);
    *matches = summary.matches;
    return bench::now() - begin;
}

/* Queries for a word of a rank from `first` on with one from `second` on. */
bench::series time_queries(wal_search *search, uint64_t first, uint64_t second, uint64_t *matches)
{
    bench::series times;

    for (int i = 0; i < queries; i++) {
        auto rank = static_cast<uint64_t>(i);
        std::string words = word(first + rank) + " " + word(second + rank % 10);

        times.add(time_query(search, words, matches));
    }
    return times;
}

/* Makes the sessions and imports them; their bytes. */
uint64_t make_store(const std::string &files, const std::string &store)
{
    uint64_t total = bench::pick<uint64_t>(20, 200, 1000) * 1000000;
    uint64_t count = total / session_size;

    std::filesystem::create_directory(files);
    for (uint64_t i = 0; i < count; i++) {
        make_session(files + "/" + bench::number_id("s", i) + ".jsonl", i);
    }
    bench::close_store(bench::open_store(store));
    run_shell(tool("agentwal") + " --store " + store + " import --no-progress --all-files " +
              files);
    return total;
}

void measure_index(wal_store *store, uint64_t total)
{
    wal_search_update_result result = WAL_INIT(wal_search_update_result);
    wal_search *search = open_search(store);
    double begin = bench::now();
    double time;

    bench::require(wal_search_update(search, nullptr, &result, nullptr) == WAL_OK, "cannot index");
    time = bench::now() - begin;
    wal_search_close(search);
    double share = static_cast<double>(result.index_bytes) / static_cast<double>(total);
    double rate = static_cast<double>(result.text_bytes) / time / 1e6;

    bench::report({"index of the sessions",
                   bench::mebibytes(static_cast<double>(result.index_bytes)),
                   bench::mebibytes(static_cast<double>(total)), share, bench::wanted::at_most,
                   most_index, "x"});
    bench::report({"indexing, text in a second", bench::megabytes_per_second(rate * 1e6), "", rate,
                   bench::wanted::at_least, least_build, "MB/s"});
}

void measure_queries(wal_store *store, const std::string &files, const std::string &store_path,
                     uint64_t total)
{
    std::string peer = system("rg --version >/dev/null 2>&1") == 0 ? "rg -l" : "grep -rl";
    wal_search *search = open_search(store);
    std::string size = bench::mebibytes(static_cast<double>(total));
    uint64_t matches = 0;
    bench::series peers;
    bench::series tools;

    (void)time_queries(search, 30, 37, &matches);
    bench::series common = time_queries(search, 30, 37, &matches);
    bench::series rare = time_queries(search, 3000, 1, &matches);
    for (int i = 0; i < 9; i++) {
        auto rank = static_cast<uint64_t>(i);

        peers.add(time_shell(peer + " " + word(30 + rank) + " '" + files + "'"));
        tools.add(time_shell(tool("agentwal") + " --store '" + store_path + "' search --no-pager " +
                             word(30 + rank) + " " + word(37 + rank * 2)));
    }
    wal_search_close(search);
    bench::report({"two common words in " + size, bench::millis(common.median()), "",
                   common.median() * 1e3, bench::wanted::at_most, most_time, "ms"});
    bench::report({"the same, to " + peer + " for one", bench::millis(common.median()),
                   bench::millis(peers.median()), common.median() / peers.median(),
                   bench::wanted::at_most, most_ratio, "x"});
    bench::report({"the same by agentwal search, a process", bench::millis(tools.median()),
                   bench::millis(peers.median()), tools.median() / peers.median(),
                   bench::wanted::nothing, 0, "x"});
    bench::report({"a rare and a common word in " + size, bench::millis(rare.median()), "",
                   rare.median() * 1e3, bench::wanted::nothing, 0, "ms"});
}

void search(benchmark::State &state)
{
    bench::folder place;
    std::string path = place / "store";
    std::string files = place / "files";

    if (!bench::has_room(state, "search", place, UINT64_C(4000000000))) {
        return;
    }
    for (auto ignored : state) {
        uint64_t total = make_store(files, path);
        wal_store *store = bench::open_store(path);

        measure_index(store, total);
        measure_queries(store, files, path, total);
        bench::close_store(store);
        state.SetIterationTime(1);
    }
}

void setup()
{
    bench::add("search", 1, search);
}

} // namespace

#else

namespace
{

void setup()
{
    bench::report_skipped("search", "SQLite was not found");
}

} // namespace

#endif

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
