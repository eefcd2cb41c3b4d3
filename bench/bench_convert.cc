/*
 * bench_convert.cc - what does it cost to take a transcript into a store, and to give it back?
 * agentwal as a separate process on one processor, with the file in the page cache: import, import
 * of a file that is known, of one that grew by ten lines, export of the source, and as its client
 * has it, then with ten lines more. Next to each the bare limit: the same bytes copied with one
 * sync, or read twice and compared. Then the most anonymous memory that it takes, also of one line
 * of 100 MB. Then a home with the sessions of five clients: import, import again, the time from an
 * append to the report of a follow; and an import of many sessions of three lines.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/harness/harness.h"
#include "bench/transcript.h"

namespace
{

const size_t piece = 1 << 20;
const size_t line_size = 100000000;
const int added_lines = 10;
const uint64_t client_size = 79000000;
const uint64_t session_size = 1000000;
const int small_sessions = 1000;
const int appends = 20;

uint64_t transcript_size()
{
    return bench::pick<uint64_t>(100000000, 200000000, 2700000000);
}

std::string agentwal()
{
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../bin/agentwal")
        .string();
}

double seconds(const timeval &time)
{
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/* --- processes ---------------------------------------------------------- */

/* What running a command took. */
struct run {
    double time = 0; /* from start to end */
    double used = 0; /* of a processor */
    double peak = 0; /* anonymous bytes, where that was asked for */
};

/* The processor that all is measured on: the last one there is. */
void pin_to_cpu()
{
    cpu_set_t set;
    int last = 0;

    bench::require(sched_getaffinity(0, sizeof(set), &set) == 0, "affinity");
    for (int i = 0; i < CPU_SETSIZE; i++) {
        last = CPU_ISSET(i, &set) ? i : last;
    }
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    bench::require(sched_setaffinity(0, sizeof(set), &set) == 0, "affinity");
}

pid_t start(const std::vector<std::string> &words)
{
    std::vector<char *> argv;

    for (const std::string &word : words) {
        argv.push_back(const_cast<char *>(word.c_str()));
    }
    argv.push_back(nullptr);
    pid_t pid = fork();
    bench::require(pid >= 0, "fork failed");
    if (pid == 0) {
        int nothing = open("/dev/null", O_WRONLY);

        pin_to_cpu();
        dup2(nothing, STDOUT_FILENO);
        execv(argv[0], argv.data());
        _exit(127);
    }
    return pid;
}

double anonymous(pid_t pid)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string word;
    double kibibytes = 0;

    while (status >> word) {
        if (word == "RssAnon:") {
            status >> kibibytes;
        }
    }
    return kibibytes * 1024;
}

run measure(const std::vector<std::string> &words, bool is_watched = false)
{
    double begin = bench::now();
    pid_t pid = start(words);
    rusage usage;
    run result;
    int status;

    while (is_watched && wait4(pid, &status, WNOHANG, &usage) == 0) {
        result.peak = std::max(result.peak, anonymous(pid));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    bench::require(is_watched || wait4(pid, &status, 0, &usage) == pid, "wait4 failed");
    bench::require(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                   words[0] + " " + words[3] + " failed");
    result.time = bench::now() - begin;
    result.used = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return result;
}

run import(const std::string &store, const std::string &file, bool is_watched = false)
{
    return measure({agentwal(), "--store", store, "import", "--no-progress", "--all-files", file},
                   is_watched);
}

run export_as(const char *dialect, const std::string &store, const std::string &out,
              bool is_watched = false)
{
    return measure(
        {agentwal(), "--store", store, "export", "--no-progress", "--dialect", dialect, out},
        is_watched);
}

/* --- files -------------------------------------------------------------- */

/* Appends rows of a transcript until it has that number of bytes or rows. */
void add_rows(const std::string &path, transcript *made, uint64_t bytes, uint64_t rows)
{
    std::vector<char> row(TRANSCRIPT_ROW_MAX);
    FILE *file = fopen(path.c_str(), "a");
    uint64_t done = 0;

    bench::require(file != nullptr, "cannot write " + path);
    for (uint64_t i = 0; i < rows && done < bytes; i++) {
        size_t size = transcript_row(made, row.data());

        bench::require(fwrite(row.data(), 1, size, file) == size, "no space");
        done += size;
    }
    bench::require(fclose(file) == 0, "no space");
}

void make_line(const std::string &path)
{
    const std::string head = "{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":"
                             "\"s\",\"message\":{\"role\":\"user\",\"content\":"
                             "\"";
    transcript random;
    FILE *file = fopen(path.c_str(), "w");

    transcript_init(&random, 1);
    bench::require(file != nullptr, "cannot write " + path);
    fputs(head.c_str(), file);
    for (size_t size = 0; size < line_size; size += 8) {
        fprintf(file, "%07llu ",
                static_cast<unsigned long long>(transcript_draw(&random, 10000000)));
    }
    fputs("\"}}\n", file);
    bench::require(fclose(file) == 0, "no space");
}

/* --- bare limits -------------------------------------------------------- */

/* FROM TO: copies with one sync; the time. */
void copy(const bench::arguments &given)
{
    std::vector<char> bytes(piece);
    double begin = bench::now();
    int in = open(given[0].c_str(), O_RDONLY | O_CLOEXEC);
    int out = open(given[1].c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t got;

    pin_to_cpu();
    bench::require(in >= 0 && out >= 0, "cannot copy");
    while ((got = read(in, bytes.data(), bytes.size())) > 0) {
        bench::require(write(out, bytes.data(), static_cast<size_t>(got)) == got, "cannot write");
    }
    bench::require(fdatasync(out) == 0, "cannot sync");
    bench::answer({bench::now() - begin});
}

/* FILE: reads it and a second time, and compares; the time. */
void compare(const bench::arguments &given)
{
    std::vector<char> one(piece), other(piece);
    double begin = bench::now();
    int file = open(given[0].c_str(), O_RDONLY | O_CLOEXEC);
    off_t at = 0;
    ssize_t got;

    pin_to_cpu();
    bench::require(file >= 0, "cannot read");
    while ((got = pread(file, one.data(), piece, at)) > 0) {
        bench::require(pread(file, other.data(), piece, at) == got &&
                           memcmp(one.data(), other.data(), static_cast<size_t>(got)) == 0,
                       "a file changed");
        at += got;
    }
    bench::answer({bench::now() - begin});
}

/* --- measuring ---------------------------------------------------------- */

/* One of the questions, over all turns. */
struct question {
    const char *name;
    double target; /* MB/s, or ms at most; 0: none */
    bool is_time;
    bench::series times, used, bares;

    void add(const run &run, double bare)
    {
        times.add(run.time);
        used.add(run.used);
        bares.add(bare);
    }
};

void report_row(const question &question, uint64_t bytes)
{
    double megabytes = static_cast<double>(bytes) * 1e-6;
    double time = question.times.median();
    double bare = question.bares.median();
    char ratio[32];
    double used = question.used.median();
    std::string measured = bench::millis(time);
    std::string against;

    snprintf(ratio, sizeof(ratio), " (%.1f x)", time / bare);
    if (used > 0) {
        measured += " (processor " + bench::millis(used) + ")";
    }
    if (bare > 0) {
        against = bench::millis(bare) + ratio;
    }
    bench::report({std::string("convert, ") + question.name, measured, against,
                   question.is_time ? time * 1e3 : megabytes / time,
                   question.is_time      ? bench::wanted::at_most
                   : question.target > 0 ? bench::wanted::at_least
                                         : bench::wanted::nothing,
                   question.target, question.is_time ? "ms" : "MB/s"});
}

void report_memory(const std::string &name, double peak)
{
    bench::report({"convert, " + name + ", anonymous memory", bench::mebibytes(peak), "",
                   peak / 1048576, bench::wanted::at_most, 64, "MiB"});
}

/* One repetition in a separate folder. */
void repetition(const bench::folder &place, const std::string &file, transcript made,
                std::vector<question> &questions)
{
    std::string store = place / "store", out = place / "out";
    std::string copied = place / "copied", grown = place / "grown.jsonl";
    uint64_t bytes = std::filesystem::file_size(file);

    bench::remove_all(store);
    bench::remove_all(out);
    bench::remove_all(copied);
    bench::copy_file(file, grown);
    bench::close_store(bench::open_store(store));
    bench::sync_file_system(place.path());

    /* A file that was just written is not known without being read. */
    std::this_thread::sleep_for(std::chrono::seconds(3));
    double bare = bench::run_child("copy", {file, copied})[0];
    questions[0].add(import(store, grown), bare);
    double read = bench::run_child("compare", {file})[0];
    questions[1].add(import(store, grown), read);
    add_rows(grown, &made, UINT64_MAX, added_lines);
    questions[2].add(import(store, grown), read);
    bench::sync_file_system(place.path());
    bench::remove_all(copied);
    bare = bench::run_child("copy", {file, copied})[0];
    questions[3].add(export_as("source", store, out), bare);
    questions[4].add(export_as("source", store, out), read);
    bench::require(std::filesystem::file_size(out + "/grown.jsonl") > bytes, "not all came out");
    bench::remove_all(out);
    bench::sync_file_system(place.path());
    questions[5].add(export_as("claude", store, out), bare);
    add_rows(grown, &made, UINT64_MAX, added_lines);
    import(store, grown);
    bench::sync_file_system(place.path());
    questions[6].add(export_as("claude", store, out), read);
}

void convert(benchmark::State &state)
{
    bench::folder place;
    std::string file = place / "transcript.jsonl";
    transcript made;
    std::vector<question> questions = {
        {"import", 200, false, {}, {}, {}},
        {"import again, nothing new", 2000, false, {}, {}, {}},
        {"import again, 10 lines more", 0, false, {}, {}, {}},
        {"export of the source", 500, false, {}, {}, {}},
        {"export again, nothing new", 0, false, {}, {}, {}},
        {"export for its client", 500, false, {}, {}, {}},
        {"export for its client, 10 lines more", 20, true, {}, {}, {}},
    };

    if (!bench::has_room(state, "converting", place, transcript_size() * 6)) {
        return;
    }
    transcript_init(&made, 1);
    add_rows(file, &made, transcript_size(), UINT64_MAX);
    for (auto _ : state) {
        double begin = bench::now();

        repetition(place, file, made, questions);
        state.SetIterationTime(bench::now() - begin);
    }
    for (const question &question : questions) {
        report_row(question, std::filesystem::file_size(file));
    }
}

/* Imports and exports, and reports its peak of memory. */
void watch(const bench::folder &place, const std::string &name, const std::string &file)
{
    std::string store = place / "store", out = place / "out";

    bench::remove_all(store);
    bench::remove_all(out);
    bench::close_store(bench::open_store(store));
    report_memory("import of " + name, import(store, file, true).peak);
    report_memory("import again of " + name, import(store, file, true).peak);
    report_memory("export of " + name, export_as("source", store, out, true).peak);
}

void memory(benchmark::State &state)
{
    bench::folder place;
    std::string file = place / "transcript.jsonl", line = place / "line.jsonl";
    transcript made;

    if (!bench::has_room(state, "converting", place, transcript_size() * 6)) {
        return;
    }
    transcript_init(&made, 1);
    add_rows(file, &made, transcript_size(), UINT64_MAX);
    make_line(line);
    for (auto _ : state) {
        double begin = bench::now();

        watch(place, bench::mebibytes(static_cast<double>(transcript_size())), file);
        watch(place, "a line of 100 MB", line);
        state.SetIterationTime(bench::now() - begin);
    }
}

/* --- clients ------------------------------------------------------------ */

std::string path_of(const std::string &folder, const transcript &made)
{
    return folder + "/" + made.session + ".jsonl";
}

/* Makes sessions of Claude Code in the folder, each from its own seed. Returns the last. */
transcript make_sessions(const std::string &folder, uint64_t seed, uint64_t count, uint64_t bytes,
                         uint64_t rows)
{
    transcript made = {};

    std::filesystem::create_directories(folder);
    for (uint64_t i = 0; i < count; i++) {
        transcript_init(&made, seed + i);
        add_rows(path_of(folder, made), &made, bytes, rows);
    }
    return made;
}

const char *const projects = "/.claude/projects/-home-user-work-project";

run import_home(const std::string &store, const std::string &home)
{
    return measure({agentwal(), "--store", store, "import", "--no-progress", home});
}

/* Makes a home with sessions of five clients, and a file with all of their bytes. Returns one of
 * Claude Code. */
transcript make_home(const bench::folder &place, const std::string &home, const std::string &all)
{
    const char *const clients[][2] = {
        {"codex", ".codex"}, {"pi", ".pi/agent"}, {"gemini", ".gemini"}, {"qwen", ".qwen"}};
    const uint64_t count = client_size / session_size;
    std::string made = place / "made", store = place / "made-store";
    transcript last = make_sessions(home + projects, 1, count, session_size, UINT64_MAX);
    uint64_t seed = 1;

    for (const auto &client : clients) {
        seed += count;
        bench::remove_all(made);
        bench::remove_all(store);
        make_sessions(made, seed, count, session_size, UINT64_MAX);
        bench::close_store(bench::open_store(store));
        import(store, made);
        export_as(client[0], store, home + "/" + client[1]);
    }
    bench::remove_all(made);
    bench::remove_all(store);
    std::ofstream out(all, std::ios::binary);
    for (const auto &entry : std::filesystem::recursive_directory_iterator(home)) {
        if (entry.is_regular_file()) {
            out << std::ifstream(entry.path(), std::ios::binary).rdbuf();
        }
    }
    out.close();
    bench::require(out.good(), "no space");
    return last;
}

/* A follow of a folder, whose reports are read. */
struct follower {
    pid_t pid;
    FILE *reports;

    follower(const std::string &store, const std::string &folder)
    {
        std::string program = agentwal();
        int ends[2];

        bench::require(pipe(ends) == 0 && (pid = fork()) >= 0, "fork failed");
        if (pid == 0) {
            dup2(ends[1], STDOUT_FILENO);
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
            close(ends[0]);
            execl(program.c_str(), program.c_str(), "--store", store.c_str(), "import", "--json",
                  "--no-progress", "--follow", folder.c_str(), nullptr);
            _exit(127);
        }
        close(ends[1]);
        reports = fdopen(ends[0], "r");
    }

    ~follower()
    {
        kill(pid, SIGTERM);
        waitpid(pid, nullptr, 0);
        fclose(reports);
    }

    /* Waits for the report of one new entry. */
    void wait()
    {
        std::vector<char> line(TRANSCRIPT_ROW_MAX);

        do {
            bench::require(fgets(line.data(), static_cast<int>(line.size()), reports) != nullptr,
                           "a follow ended");
        } while (strstr(line.data(), "\"appended\":1,") == nullptr);
    }
};

/* Appends lines to a session of Claude Code in a home that is followed. */
void follow(const std::string &store, const std::string &home, transcript made, question &question)
{
    std::string path = path_of(home + projects, made);
    follower follower(store, home);

    add_rows(path, &made, UINT64_MAX, 1); /* the first is of the first import */
    follower.wait();
    for (int i = 0; i < appends; i++) {
        double begin = bench::now();

        add_rows(path, &made, UINT64_MAX, 1);
        follower.wait();
        question.add({bench::now() - begin, 0, 0}, 0);
    }
}

void clients(benchmark::State &state)
{
    bench::folder place;
    std::string home = place / "home", all = place / "all", small = place / "small";
    std::string store = place / "store", copied = place / "copied";
    std::vector<question> questions = {
        {"import of five clients, 300 MB", 200, false, {}, {}, {}},
        {"import again of five clients", 2000, false, {}, {}, {}},
        {"append to report of a follow", 50, true, {}, {}, {}},
        {"import of 1,000 sessions of three lines", 1000, true, {}, {}, {}},
    };

    if (!bench::has_room(state, "converting", place, client_size * 25)) {
        return;
    }
    transcript last = make_home(place, home, all);
    make_sessions(small + projects, 100000, small_sessions, UINT64_MAX, 3);
    /* A file that was just written is not known without being read. */
    std::this_thread::sleep_for(std::chrono::seconds(3));
    for (auto _ : state) {
        double begin = bench::now();

        for (const std::string &folder : {small, home}) {
            bench::remove_all(store);
            bench::remove_all(copied);
            bench::close_store(bench::open_store(store));
            bench::sync_file_system(place.path());
            if (folder == small) {
                questions[3].add(import_home(store, small), 0);
                continue;
            }
            double bare = bench::run_child("copy", {all, copied})[0];
            bench::sync_file_system(place.path());
            questions[0].add(import_home(store, home), bare);
            questions[1].add(import_home(store, home), bench::run_child("compare", {all})[0]);
        }
        state.SetIterationTime(bench::now() - begin);
    }
    follow(store, home, last, questions[2]);
    for (const question &question : questions) {
        report_row(question, std::filesystem::file_size(all));
    }
}

void setup()
{
    bench::add("convert", bench::pick(5, 7, 5), convert);
    bench::add("convert/clients", bench::pick(3, 5, 3), clients);
    bench::add("convert/memory", 1, memory);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"copy", copy}, {"compare", compare}});
}
