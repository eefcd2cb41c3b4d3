/*
 * bench_checkpoint.cc - what do checkpoints of a work tree cost, and a rewind? 2,000 source files,
 * all named each time: the first checkpoint, 20 more with 20 files edited before each, what they
 * take on disk, and rewinds of 20 files; with git and a copy of every file as peers. Everything is
 * measured in turns, on one tree. Edits are 60 ms old when a checkpoint begins.
 */
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "agentwal/checkpoint.h"
#include "bench/harness/work_tree.h"

namespace
{

const size_t file_count = 2000;
const uint64_t tree_bytes = 30000000;
const size_t edited_count = 20;
const int checkpoint_count = 20;
const unsigned threads_max = 8; /* as many as the engine takes by itself */

wal_error fresh_error()
{
    wal_error error = {};

    error.struct_size = sizeof(error);
    return error;
}

unsigned thread_count()
{
    return std::max(1u, std::min(std::thread::hardware_concurrency(), threads_max));
}

/* The engine, on a separate store. */
class subject
{
  public:
    subject(const std::string &path, const bench::work_tree &of)
        : tree(of), store(bench::open_store(path)),
          session(bench::create_session(store, "s", of.path()))
    {
        for (const std::string &name : tree.files()) {
            paths.push_back(bench::slice(name));
        }
    }

    ~subject()
    {
        wal_session_close(session);
        bench::close_store(store);
    }

    void checkpoint(const std::string &id)
    {
        wal_error error = fresh_error();
        wal_checkpoint_options options = {};

        options.struct_size = sizeof(options);
        options.id = bench::slice(id);
        bench::check(
            wal_checkpoint_create(session, paths.data(), paths.size(), &options, nullptr, &error),
            error);
    }

    /* Files that were changed. */
    uint64_t rewind(const std::string &id)
    {
        wal_error error = fresh_error();
        wal_rewind_result result = {};

        result.struct_size = sizeof(result);
        bench::check(wal_rewind(session, bench::slice(id), nullptr, &result, nullptr, &error),
                     error);
        bench::require(result.can_rewind == 1, result.error);
        return result.files_changed;
    }

    wal_store_info status() const
    {
        return bench::store_status(store);
    }

  private:
    const bench::work_tree &tree;
    wal_store *store;
    wal_session *session;
    std::vector<wal_slice> paths;
};

/* Times, and those of the bare limits, repetition by repetition. */
struct measure {
    bench::series own, bare, strict;

    void add(double own_time, double bare_time, double strict_time)
    {
        own.add(own_time);
        bare.add(bare_time);
        strict.add(strict_time);
    }
};

template <typename F> double timed(const F &body)
{
    double begin = bench::now();

    body();
    return bench::now() - begin;
}

/* Everything on one tree; the benchmarks below run in this order. */
struct state {
    bench::folder place;
    bench::work_tree tree{place / "tree", file_count, tree_bytes};
    std::unique_ptr<subject> engine;
    std::unique_ptr<bench::git_peer> git;
    std::unique_ptr<bench::copy_peer> copies;
    int repetition = 0;

    std::string fresh(const std::string &name)
    {
        bench::remove_all(place / name);
        return place / name;
    }

    /* Empty stores, of the engine and of its peers. */
    void start()
    {
        engine.reset();
        engine = std::make_unique<subject>(fresh("store"), tree);
        if (bench::git_peer::is_there()) {
            git = std::make_unique<bench::git_peer>(fresh("git"), tree);
        }
        copies = std::make_unique<bench::copy_peer>(fresh("copies"), tree);
        bench::sync_file_system(place.path());
    }
};

std::unique_ptr<state> shared;

std::string facts()
{
    return std::to_string(file_count) + " files, " +
           std::to_string(shared->tree.bytes() / 1000000) + " MB, " +
           std::to_string(shared->tree.directories().size()) + " directories";
}

void report_ratio(const std::string &question, const bench::series &own, const bench::series &other,
                  double target)
{
    bench::report_sync_ratios(question, bench::millis(own.median()), bench::millis(other.median()),
                              own.over(other),
                              target > 0 ? bench::wanted::at_most : bench::wanted::nothing, target);
}

/* Neither git nor the copies are synced. */
void report_peers(const std::string &name, const bench::series &own, const bench::series &git,
                  const bench::series &copies)
{
    if (git.count() > 0) {
        report_ratio(name + ", to git add and commit, not synced", own, git, 0);
    } else {
        bench::report_skipped("git", "it was not found");
    }
    report_ratio(name + ", to copying each file, not synced", own, copies, 0);
}

/* --- the first checkpoint ------------------------------------------------ */

void two_syncs(const std::string &path, uint64_t size)
{
    std::string bytes(size, 'x');
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    for (int i = 0; i < 2; i++) {
        size_t part = i == 0 ? bytes.size() : 512;

        bench::require(file >= 0 && write(file, bytes.data(), part) == static_cast<ssize_t>(part) &&
                           fdatasync(file) == 0,
                       "a bare write failed");
    }
    close(file);
}

void first_of_peers()
{
    if (shared->git != nullptr) {
        shared->git->commit();
    }
    shared->copies->checkpoint();
}

void first(benchmark::State &state)
{
    /* They take most of the time, and are asked again for the next ones. */
    const bool with_peers = bench::asked() != bench::run_length::quick;
    measure times;
    bench::series git, copies;

    shared = std::make_unique<struct state>();
    for (auto _ : state) {
        uint64_t packed = 0;

        shared->start();
        double own = timed([] { shared->engine->checkpoint("0"); });
        bench::sync_file_system(shared->place.path());
        double loop = timed([&] {
            packed = bench::digest_files(shared->tree, shared->tree.files(), thread_count(), true);
        });
        double small = timed([] { two_syncs(shared->fresh("bare"), 512); });
        double large = timed([&] { two_syncs(shared->fresh("bare"), packed); });
        times.add(own, loop + large, loop + small);
        if (with_peers && shared->git != nullptr) {
            git.add(timed([] { shared->git->commit(); }));
        }
        if (with_peers) {
            copies.add(timed([] { shared->copies->checkpoint(); }));
        }
        state.SetIterationTime(own);
    }
    std::string name = "first checkpoint, " + facts();
    report_ratio(name + ", to read, hash, LZ4, write, two syncs", times.own, times.bare, 1.4);
    report_ratio(name + ", to that without writing", times.own, times.strict, 0);
    if (with_peers) {
        report_peers(name, times.own, git, copies);
    } else {
        bench::report_skipped("git's first commit", "not with --quick");
        first_of_peers();
    }
}

/* For the benchmarks that follow, where the first was not asked for. */
void have_first()
{
    if (shared == nullptr) {
        shared = std::make_unique<struct state>();
        shared->start();
        shared->engine->checkpoint("0");
        first_of_peers();
    }
}

/* --- the next ones ------------------------------------------------------- */

/* What a checkpoint of few changed files cannot do without. */
double bare_next(const std::vector<std::string> &edited, bool each)
{
    const bench::work_tree &tree = shared->tree;

    return timed([&] {
        bench::stat_files(tree);
        bench::digest_files(tree, edited, 1, false);
        if (!each) {
            uint64_t bytes = 0;
            for (const std::string &name : edited) {
                bytes += std::filesystem::file_size(tree.path() + "/" + name);
            }
            two_syncs(shared->fresh("bare"), bytes);
            return;
        }
        for (const std::string &name : edited) {
            int file = open((tree.path() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);

            bench::require(file >= 0 && fsync(file) == 0, "cannot sync");
            close(file);
        }
    });
}

void next(benchmark::State &state)
{
    measure times;
    bench::series git, copies;

    have_first();
    for (auto _ : state) {
        std::vector<std::string> edited = shared->tree.edit(edited_count);
        std::string id = std::to_string(++shared->repetition);
        double own = 0, bare = 0;

        auto ask = [&] { own = timed([&] { shared->engine->checkpoint(id); }); };
        auto limit = [&] { bare = bare_next(edited, true); };
        shared->repetition % 2 == 0 ? ask() : limit();
        shared->repetition % 2 == 0 ? limit() : ask();
        times.add(own, bare, bare_next(edited, false));
        if (shared->git != nullptr) {
            git.add(timed([] { shared->git->commit(); }));
        }
        copies.add(timed([] { shared->copies->checkpoint(); }));
        state.SetIterationTime(own);
    }
    std::string name =
        "checkpoint, " + std::to_string(edited_count) + " changed of " + std::to_string(file_count);
    report_ratio(name + ", to stat, read, hash, sync each", times.own, times.bare, 2);
    report_ratio(name + ", to stat, read, hash and two syncs of a file", times.own, times.strict,
                 0);
    report_peers(name, times.own, git, copies);

    double pack = static_cast<double>(shared->engine->status().pack_bytes);
    std::string held = "pack, " + std::to_string(shared->repetition + 1) + " checkpoints";
    uint64_t own_files = bench::count_files(shared->place / "store/pack");
    auto against = [&](const std::string &what, uint64_t disk, uint64_t files, double target) {
        bench::report({held + " (" + std::to_string(own_files) + " files), to " + what + " (" +
                           std::to_string(files) + ")",
                       bench::mebibytes(pack), bench::mebibytes(static_cast<double>(disk)),
                       pack / static_cast<double>(disk), bench::wanted::at_most, target, "x"});
    };
    if (shared->git != nullptr) {
        against("git's loose objects", shared->git->disk_bytes(), shared->git->file_count(), 0.8);
    }
    against("copies", shared->copies->disk_bytes(), shared->copies->file_count(), 0.05);
    shared->copies.reset();
    bench::remove_all(shared->place / "copies");
}

/* --- rewind -------------------------------------------------------------- */

/* As a rewind has to: each in a new file, under the name of the old one. Or over what is there,
 * which creates and frees no file. The files are in the directories of the tree, for the cost of a
 * new one depends on the place. */
void write_files(const std::vector<std::string> &names, const std::vector<std::string> &contents,
                 bool over)
{
    for (size_t i = 0; i < names.size(); i++) {
        std::string path = shared->tree.path() + "/" + names[i] + ".bare";
        std::string made = over ? path : path + ".new";

        bench::write_file(made, contents[i]);
        bench::require(over || rename(made.c_str(), path.c_str()) == 0, "cannot rename " + made);
    }
    int root = open(shared->place.path().c_str(), O_RDONLY | O_CLOEXEC);
    bench::require(root >= 0 && syncfs(root) == 0, "cannot sync");
    close(root);
}

/* There and back. */
void rewind(benchmark::State &state)
{
    have_first();
    std::vector<std::string> edited = shared->tree.edit(edited_count);
    std::vector<std::string> contents;
    std::string before = std::to_string(shared->repetition);
    std::string after = std::to_string(++shared->repetition);
    bool back = true;
    measure times;

    shared->engine->checkpoint(after);
    for (const std::string &name : edited) {
        contents.push_back(bench::read_file(shared->tree.path() + "/" + name));
    }
    write_files(edited, contents, true);
    for (auto _ : state) {
        bench::sync_file_system(shared->place.path());
        double own = timed([&] {
            bench::require(shared->engine->rewind(back ? before : after) == edited_count,
                           "other files were changed");
        });
        bench::sync_file_system(shared->place.path());
        double bare = timed([&] { write_files(edited, contents, false); });
        bench::sync_file_system(shared->place.path());
        double over = timed([&] { write_files(edited, contents, true); });
        times.add(own, bare, over);
        state.SetIterationTime(own);
        back = !back;
    }
    std::string name =
        "rewind of " + std::to_string(edited_count) + " files of " + std::to_string(file_count);
    report_ratio(name + ", to writing new ones, renames and a syncfs", times.own, times.bare, 2);
    report_ratio(name + ", to writing over them and a syncfs", times.own, times.strict, 2);
    shared.reset();
}

void setup()
{
    bench::add("checkpoint/first", bench::pick(5, 7, 15), first);
    bench::add("checkpoint/next", checkpoint_count, next);
    bench::add("checkpoint/rewind", bench::pick(20, 20, 40), rewind);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
