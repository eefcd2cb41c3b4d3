/*
 * harness_engine.cc - entries from a seed, and the engine's calls with their errors made fatal.
 */
#include <cinttypes>
#include <cstdio>

#include "bench/harness/harness.h"

namespace bench
{

namespace
{

/* Pieces of what agents say, and of the code and tool output they say it about. Words are made of
 * syllables, since a short list of them would compress better than text does. */
const char *const syllables[] = {"re",  "con", "ter", "in",  "ment", "ver", "tion", "al",
                                 "is",  "com", "per", "ous", "en",   "lo",  "form", "ta",
                                 "dis", "er",  "pro", "ly",  "ed",   "ing", "sta",  "ble",
                                 "mo",  "un",  "s",   "th",  "ate",  "est"};

const char *const phrases[] = {"the",
                               "of",
                               "to",
                               "a",
                               "in",
                               "is",
                               "that",
                               "and",
                               "it",
                               "file",
                               "if (",
                               ") {\\n",
                               "return",
                               "\\n    ",
                               "\\n\\n",
                               "error:",
                               "\\\"name\\\": ",
                               "test",
                               "src/",
                               "= "};

const uint64_t word_count = 6000;

/* A disk that other work keeps busy is no failure. */
const uint32_t lock_timeout = 60000;

template <size_t count> constexpr uint64_t size_of(const char *const (&)[count])
{
    return count;
}

std::vector<std::string> make_words()
{
    source source(1);
    std::vector<std::string> made(word_count);

    for (std::string &word : made) {
        uint64_t parts = 1 + source.next(4);

        for (uint64_t i = 0; i < parts; i++) {
            word += syllables[source.next(size_of(syllables))];
        }
    }
    return made;
}

/* Adds a word or phrase; few are frequent, as in text. */
void add_token(std::string *text, source &source)
{
    static const std::vector<std::string> words = make_words();
    uint64_t which = source.next(100);
    char number[24];

    if (which < 35) {
        *text += phrases[source.next(size_of(phrases))];
    } else if (which < 94) {
        *text += words[source.next(source.next(source.next(word_count) + 1) + 1)];
    } else {
        snprintf(number, sizeof(number), which < 97 ? "%" PRIu64 : "%08" PRIx64,
                 which < 97 ? source.next(1000) : source.next(uint64_t{1} << 32));
        *text += number;
    }
    *text += ' ';
}

wal_error fresh_error()
{
    wal_error error = {};

    error.struct_size = sizeof(error);
    return error;
}

} // namespace

/* --- entries ------------------------------------------------------------ */

source::source(uint64_t seed) : state(seed)
{
}

/* splitmix64 */
uint64_t source::next(uint64_t bound)
{
    uint64_t x = state += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % bound;
}

std::string source::message(size_t size)
{
    std::string made = "{\"role\":\"assistant\",\"content\":\"";

    while (made.size() + 2 < size) {
        add_token(&made, *this);
    }
    return made + "\"}";
}

std::string source::mixed()
{
    uint64_t which = next(100);
    size_t size = which < 60 ? 300 : which < 90 ? 2048 : 16384;

    return message(size - size / 4 + next(size / 2));
}

const shape shapes[2] = {{"mixed", 0}, {"1 KiB", 1024}};

std::vector<std::string> make_payloads(const shape &shape, uint64_t seed)
{
    source source(seed);
    std::vector<std::string> made;

    for (int i = 0; i < 250; i++) {
        made.push_back(shape.fixed == 0 ? source.mixed() : source.message(shape.fixed));
    }
    return made;
}

std::string number_id(const char *prefix, uint64_t number)
{
    char made[64];

    snprintf(made, sizeof(made), "%s-%" PRIx64, prefix, number);
    return made;
}

wal_slice slice(const std::string &text)
{
    return {text.data(), text.size()};
}

std::string text(const wal_slice &slice)
{
    return std::string(static_cast<const char *>(slice.data), slice.size);
}

wal_entry entry(const std::string &id, const std::string &payload)
{
    static const std::string type = "message";
    wal_entry made = {};

    made.struct_size = sizeof(made);
    made.id = slice(id);
    made.type = slice(type);
    made.payload = slice(payload);
    return made;
}

/* --- the engine --------------------------------------------------------- */

void check(wal_status status, const wal_error &error)
{
    require(status == WAL_OK,
            std::string(wal_status_text(status)) + ": " + error.file + ": " + error.text);
}

wal_store *open_store(const std::string &path, uint32_t flags)
{
    wal_error error = fresh_error();
    wal_open_options options = {};
    wal_store *store = nullptr;

    options.struct_size = sizeof(options);
    options.flags = flags;
    options.lock_timeout_ms = lock_timeout;
    check(wal_open(path.c_str(), &options, &store, &error), error);
    return store;
}

void close_store(wal_store *store)
{
    wal_error error = fresh_error();

    check(wal_close(store, &error), error);
}

wal_session *create_session(wal_store *store, const std::string &id, const std::string &cwd)
{
    wal_error error = fresh_error();
    wal_session_options options = {};
    wal_session *session = nullptr;

    options.struct_size = sizeof(options);
    options.id = slice(id);
    options.cwd = slice(cwd);
    check(wal_session_create(store, &options, &session, &error), error);
    return session;
}

wal_session *open_session(wal_store *store, const std::string &id)
{
    wal_error error = fresh_error();
    wal_session *session = nullptr;

    check(wal_session_open(store, slice(id), &session, &error), error);
    return session;
}

wal_store_info store_status(wal_store *store)
{
    wal_error error = fresh_error();
    wal_store_info info = {};

    info.struct_size = sizeof(info);
    check(wal_store_get_info(store, &info, &error), error);
    return info;
}

void append(wal_session *session, const wal_entry *entries, uint32_t count,
            wal_durability durability)
{
    wal_error error = fresh_error();
    wal_append_options options = {};

    options.struct_size = sizeof(options);
    options.durability = durability;
    check(wal_append(session, entries, count, &options, nullptr, &error), error);
}

} // namespace bench
