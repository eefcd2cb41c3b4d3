/*
 * harness.cc - arguments, numbers, fresh processes and the main function.
 */
#include "bench/harness/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace bench
{

namespace
{

run_length scale = run_length::normal;
int answer_file = -1;
int turns_now = 0;

const char *const scale_flags[] = {"--quick", "--normal", "--long"};

/* The console reporter, without what it says about the machine: run.sh says that once. */
class console : public benchmark::ConsoleReporter
{
  public:
    console() : ConsoleReporter(OO_None)
    {
    }
    bool ReportContext(const Context &context) override
    {
        name_field_width_ = context.name_field_width;
        printed_header_ = false;
        return true;
    }
};

int run_as_child(int argc, char **argv, const std::map<std::string, child> &children)
{
    auto found = children.find(argv[3]);

    require(found != children.end(), std::string("no child ") + argv[3]);
    answer_file = atoi(argv[2]);
    for (int i = 0; i < 3; i++) {
        if (strcmp(argv[4], scale_flags[i]) == 0) {
            scale = static_cast<run_length>(i);
        }
    }
    found->second(arguments(argv + 5, argv + argc));
    return 0;
}

} // namespace

run_length asked()
{
    return scale;
}

std::string asked_name()
{
    return scale_flags[static_cast<int>(scale)] + 2;
}

double now()
{
    timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

double used_seconds()
{
    rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double anonymous_memory()
{
    std::ifstream status("/proc/self/status");
    std::string word;

    while (status >> word) {
        if (word == "RssAnon:") {
            double kibibytes;

            status >> kibibytes;
            return kibibytes * 1024;
        }
    }
    return 0;
}

void require(bool ok, const std::string &what)
{
    if (!ok) {
        fprintf(stderr, "bench: %s\n", what.c_str());
        exit(1);
    }
}

/* --- numbers ------------------------------------------------------------ */

void series::add(double value)
{
    values.push_back(value);
}

double series::quantile(double part) const
{
    std::vector<double> sorted = values;
    size_t at;

    require(!sorted.empty(), "a series is empty");
    at = static_cast<size_t>(part * static_cast<double>(sorted.size()));
    at = std::min(at, sorted.size() - 1);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(at), sorted.end());
    return sorted[at];
}

double series::median() const
{
    return quantile(0.5);
}

size_t series::count() const
{
    return values.size();
}

series series::over(const series &other) const
{
    series made;

    require(values.size() == other.values.size(), "turns are missing");
    for (size_t i = 0; i < values.size(); i++) {
        made.add(values[i] / other.values[i]);
    }
    return made;
}

/* --- fresh processes ---------------------------------------------------- */

std::vector<double> run_child(const std::string &name, const arguments &given)
{
    std::string flag = scale_flags[static_cast<int>(scale)];
    std::string received;
    std::string number;
    char bytes[4096];
    int ends[2];
    ssize_t got;
    int status;
    pid_t pid;

    require(pipe(ends) == 0, "pipe failed");
    number = std::to_string(ends[1]);
    std::vector<std::string> words = {"bench", "--child", number, name, flag};
    words.insert(words.end(), given.begin(), given.end());
    std::vector<char *> argv;
    for (std::string &word : words) {
        argv.push_back(&word[0]);
    }
    argv.push_back(nullptr);
    pid = fork();
    require(pid >= 0, "fork failed");
    if (pid == 0) {
        close(ends[0]);
        execv("/proc/self/exe", argv.data());
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], bytes, sizeof(bytes))) > 0) {
        received.append(bytes, static_cast<size_t>(got));
    }
    close(ends[0]);
    require(waitpid(pid, &status, 0) == pid, "waitpid failed");
    require((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
            "the child " + name + " failed");

    std::vector<double> numbers;
    char *at = &received[0];
    for (char *end = at;; at = end) {
        double value = strtod(at, &end);
        if (end == at) {
            return numbers;
        }
        numbers.push_back(value);
    }
}

void answer(const std::vector<double> &numbers)
{
    for (double number : numbers) {
        dprintf(answer_file, "%.9f\n", number);
    }
}

void die()
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

/* --- the program -------------------------------------------------------- */

void add(const std::string &name, int turns, const std::function<void(benchmark::State &)> &body)
{
    benchmark::RegisterBenchmark(name.c_str(),
                                 [body, turns](benchmark::State &state) {
                                     turns_now = turns;
                                     body(state);
                                 })
        ->UseManualTime()
        ->Iterations(turns)
        ->Unit(benchmark::kMicrosecond);
}

int current_repetitions()
{
    return turns_now;
}

int run(int argc, char **argv, void (*setup)(), const std::map<std::string, child> &children)
{
    std::vector<char *> rest = {argv[0]};
    std::string results_path;

    if (argc >= 5 && strcmp(argv[1], "--child") == 0) {
        return run_as_child(argc, argv, children);
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            scale = run_length::quick;
        } else if (strcmp(argv[i], "--long") == 0) {
            scale = run_length::complete;
        } else if (strcmp(argv[i], "--sync-cost") == 0) {
            printf("%.0f\n", sync_cost() * 1e6);
            return 0;
        } else if (strncmp(argv[i], "--results=", 10) == 0) {
            results_path = argv[i] + 10;
        } else {
            rest.push_back(argv[i]);
        }
    }
    argc = static_cast<int>(rest.size());
    rest.push_back(nullptr);
    setup();
    benchmark::Initialize(&argc, rest.data());
    if (benchmark::ReportUnrecognizedArguments(argc, rest.data())) {
        return 2;
    }
    console reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    write_results(results_path);
    return 0;
}

} // namespace bench
