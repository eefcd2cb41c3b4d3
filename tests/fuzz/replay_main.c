/*
 * replay_main.c - runs a fuzz target without libFuzzer, as a plain test.
 *
 * Usage: fuzz_NAME CORPUS [FILE]...
 *
 * Every file of the CORPUS folder is given to the target, then RUNS seeded mutations of them. With
 * FILEs, only those are. The same seed makes the same inputs; AGENTWAL_SEED sets it,
 * AGENTWAL_FUZZ_RUNS the number of mutations. An input that kills the target is left as
 * crash-fuzz_NAME in the folder AGENTWAL_BUILD, or in the current one.
 *
 * One thread. Each input is in a block of exactly its size, so that the address sanitizer sees a
 * read beyond its end.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"

/* The runtime of the sanitizer calls it before it exits. */
extern void __sanitizer_set_death_callback(void (*callback)(void));

enum {
    RUNS = 4000,
    RUNS_LONG = 1000000,
    INPUT_SIZE_MAX = 1 << 20,
    CORPUS_COUNT_MAX = 4096,
    ROUNDS_MAX = 5,
};

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[CORPUS_COUNT_MAX];
static size_t corpus_count;

/* What is being run, for the report of a death. */
static struct input current;
static const char *program;
static uint64_t seed;
static uint64_t current_run;

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return rng_next(&random_state);
}

/* A number below limit, which is not 0. */
static size_t random_below(size_t limit)
{
    return (size_t)(random_u64() % limit);
}

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint8_t *allocate(size_t size)
{
    uint8_t *data = malloc(size);

    if (data == NULL && size != 0) {
        die("malloc");
    }
    return data;
}

static void report_death(void)
{
    const char *folder = getenv("AGENTWAL_BUILD");
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/crash-%s", folder != NULL ? folder : ".", program);
    fprintf(stderr, "died: seed %llu, run %llu, input of %zu bytes: %s\n", (unsigned long long)seed,
            (unsigned long long)current_run, current.size, path);
    file = fopen(path, "wb");
    if (file != NULL) {
        fwrite(current.data, 1, current.size, file);
        fclose(file);
    }
}

static void on_signal(int number)
{
    report_death();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_death(void)
{
#if WITH_ADDRESS_SANITIZER
    __sanitizer_set_death_callback(report_death);
#else
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGFPE, on_signal);
#endif
    signal(SIGABRT, on_signal);
}

static void run(const uint8_t *data, size_t size)
{
    current.data = allocate(size);
    current.size = size;
    if (size != 0) {
        memcpy(current.data, data, size);
    }
    (void)LLVMFuzzerTestOneInput(current.data, size);
    free(current.data);
    current.data = NULL;
    current.size = 0;
}

static struct input read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct input input = {allocate(INPUT_SIZE_MAX), 0};

    if (file == NULL) {
        die(path);
    }
    input.size = fread(input.data, 1, INPUT_SIZE_MAX, file);
    if (ferror(file)) {
        die(path);
    }
    fclose(file);
    return input;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of names, so that a seed means the same everywhere. */
static void read_corpus(const char *folder)
{
    struct dirent **entries;
    char path[4096];
    int count = scandir(folder, &entries, is_visible, alphasort);

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (corpus_count < CORPUS_COUNT_MAX) {
            corpus[corpus_count++] = read_file(path);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    if (corpus_count == 0) {
        fprintf(stderr, "%s: no corpus\n", folder);
        exit(EXIT_FAILURE);
    }
}

static void change_bytes(struct input *input)
{
    static const uint64_t edges[] = {0,           1,          0x7f,       0x80,
                                     0xff,        0x7fff,     0xffff,     0x7fffffff,
                                     0x80000000u, 0xffffffff, UINT64_MAX, INT64_MAX};
    static const size_t widths[] = {1, 2, 4, 8};
    size_t at = random_below(input->size);
    size_t width = widths[random_below(4)];
    uint64_t value;

    switch (random_below(4)) {
    case 0:
        input->data[at] ^= (uint8_t)(1u << random_below(8));
        return;
    case 1:
        input->data[at] = (uint8_t)random_u64();
        return;
    case 2:
        value = edges[random_below(sizeof edges / sizeof edges[0])];
        break;
    default:
        value = random_below(input->size + 16);
        break;
    }
    for (size_t i = 0; i < width && at + i < input->size; i++) {
        input->data[at + i] = (uint8_t)(value >> (8 * i));
    }
}

static void erase(struct input *input)
{
    size_t at = random_below(input->size);
    size_t size = 1 + random_below(input->size - at);

    memmove(input->data + at, input->data + at + size, input->size - at - size);
    input->size -= size;
}

/* Puts a piece of any corpus file, or of this input, somewhere. */
static void insert(struct input *input)
{
    const struct input *from = &corpus[random_below(corpus_count)];
    size_t at = random_below(input->size + 1);
    size_t start;
    size_t size;

    if (from->size == 0) {
        return;
    }
    start = random_below(from->size);
    size = 1 + random_below(from->size - start);
    if (size > INPUT_SIZE_MAX - input->size) {
        return;
    }
    memmove(input->data + at + size, input->data + at, input->size - at);
    memcpy(input->data + at, from->data + start, size);
    input->size += size;
}

static void mutate(struct input *input)
{
    size_t rounds = 1 + random_below(ROUNDS_MAX);

    for (size_t i = 0; i < rounds; i++) {
        size_t choice = random_below(10);

        if (input->size == 0 || choice == 0) {
            insert(input);
        } else if (choice == 1) {
            erase(input);
        } else if (choice == 2) {
            input->size = random_below(input->size);
        } else {
            change_bytes(input);
        }
    }
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static void run_mutations(uint64_t runs)
{
    struct input input = {allocate(INPUT_SIZE_MAX), 0};

    random_state = seed;
    for (current_run = 1; current_run <= runs; current_run++) {
        const struct input *from = &corpus[random_below(corpus_count)];

        memcpy(input.data, from->data, from->size);
        input.size = from->size;
        mutate(&input);
        run(input.data, input.size);
    }
    free(input.data);
}

int main(int argc, char **argv)
{
    int is_long = getenv("AGENTWAL_LONG") != NULL;
    uint64_t runs = number_from("AGENTWAL_FUZZ_RUNS", is_long ? RUNS_LONG : RUNS);

    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS [FILE]...\n", argv[0]);
        return 2;
    }
    program = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    seed = number_from("AGENTWAL_SEED", is_long ? (uint64_t)time(NULL) : 1);
    watch_for_death();
    if (argc > 2) {
        for (int i = 2; i < argc; i++) {
            struct input input = read_file(argv[i]);

            run(input.data, input.size);
            free(input.data);
        }
        return 0;
    }
    read_corpus(argv[1]);
    printf("seed %llu, %zu files, %llu mutations\n", (unsigned long long)seed, corpus_count,
           (unsigned long long)runs);
    fflush(stdout);
    run(NULL, 0);
    for (size_t i = 0; i < corpus_count; i++) {
        run(corpus[i].data, corpus[i].size);
    }
    run_mutations(runs);
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].data);
    }
    return 0;
}
