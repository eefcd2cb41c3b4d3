/*
 * work_tree.cc - a work tree of real files, bare loops over it, and peers.
 */
#include "bench/harness/work_tree.h"

#include <fcntl.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

namespace bench
{

namespace
{

namespace fs = std::filesystem;

const char *const source_root = "/usr/include";
const uint64_t largest = 256 * 1024;
const uint64_t step = 64;
const auto trusted = std::chrono::milliseconds(60);

struct candidate {
    std::string name;
    uint64_t size;
};

std::vector<candidate> candidates()
{
    std::vector<candidate> found;

    for (const auto &item : fs::recursive_directory_iterator(source_root)) {
        if (item.is_regular_file() && !item.is_symlink() && item.file_size() > 0 &&
            item.file_size() <= largest) {
            found.push_back({fs::relative(item.path(), source_root).string(), item.file_size()});
        }
    }
    std::sort(found.begin(), found.end(),
              [](const candidate &a, const candidate &b) { return a.name < b.name; });
    return found;
}

/* Each content once: otherwise the first checkpoint would find some there. */
std::vector<candidate> distinct(const std::vector<candidate> &all)
{
    std::set<std::string> contents;
    std::vector<candidate> kept;

    for (const candidate &item : all) {
        std::string bytes = read_file(std::string(source_root) + "/" + item.name);

        if (contents
                .insert(std::to_string(bytes.size()) + "-" +
                        std::to_string(std::hash<std::string>()(bytes)))
                .second) {
            kept.push_back(item);
        }
    }
    return kept;
}

/* Evenly spaced ones of those that have at least a number of bytes. */
std::vector<candidate> choose(const std::vector<candidate> &all, size_t count, uint64_t least)
{
    std::vector<candidate> large, chosen;

    for (const candidate &item : all) {
        if (item.size >= least) {
            large.push_back(item);
        }
    }
    require(large.size() >= count, "there are too few files in /usr/include");
    for (size_t i = 0; i < count; i++) {
        chosen.push_back(large[i * large.size() / count]);
    }
    return chosen;
}

uint64_t sum(const std::vector<candidate> &items)
{
    uint64_t bytes = 0;

    for (const candidate &item : items) {
        bytes += item.size;
    }
    return bytes;
}

std::string hexadecimal(const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    std::string made;

    for (size_t i = 0; i < size; i++) {
        made += digits[bytes[i] >> 4];
        made += digits[bytes[i] & 15];
    }
    return made;
}

/* What one thread of a bare loop has. */
struct loop {
    const EVP_MD *algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    std::vector<char> bytes = std::vector<char>(largest * 2);
    std::vector<char> packed =
        std::vector<char>(static_cast<size_t>(LZ4_compressBound(largest * 2)));

    uint64_t take(int root, const std::string &name, bool compress)
    {
        unsigned char digest[EVP_MAX_MD_SIZE];
        int file = openat(root, name.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat facts;

        require(file >= 0 && fstat(file, &facts) == 0, "cannot open " + name);
        ssize_t got = read(file, bytes.data(), static_cast<size_t>(facts.st_size));
        close(file);
        require(got == facts.st_size, "cannot read " + name);
        require(EVP_Digest(bytes.data(), static_cast<size_t>(got), digest, nullptr, algorithm,
                           nullptr) == 1,
                "no digest");
        return !compress
                   ? static_cast<uint64_t>(got)
                   : static_cast<uint64_t>(LZ4_compress_default(bytes.data(), packed.data(),
                                                                static_cast<int>(got),
                                                                static_cast<int>(packed.size())));
    }
};

} // namespace

/* --- files -------------------------------------------------------------- */

void write_file(const std::string &path, const std::string &bytes)
{
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    require(file >= 0 &&
                write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "cannot write " + path);
    close(file);
}

uint64_t disk_usage(const std::string &path)
{
    struct stat facts;
    require(lstat(path.c_str(), &facts) == 0, "cannot look at " + path);
    uint64_t blocks = static_cast<uint64_t>(facts.st_blocks);

    for (const auto &item : fs::recursive_directory_iterator(path)) {
        require(lstat(item.path().c_str(), &facts) == 0, "cannot look");
        blocks += static_cast<uint64_t>(facts.st_blocks);
    }
    return blocks * 512;
}

uint64_t count_files(const std::string &path)
{
    uint64_t count = 0;

    for (const auto &item : fs::recursive_directory_iterator(path)) {
        count += item.is_regular_file();
    }
    return count;
}

work_tree::work_tree(const std::string &path, size_t count, uint64_t bytes) : root(path)
{
    std::vector<candidate> all = distinct(candidates());
    std::vector<candidate> chosen = choose(all, count, 1);

    for (uint64_t least = step; sum(chosen) < bytes; least += step) {
        chosen = choose(all, count, least);
    }
    for (const candidate &item : chosen) {
        std::string to = root + "/" + item.name;

        fs::create_directories(fs::path(to).parent_path());
        write_file(to, read_file(std::string(source_root) + "/" + item.name));
        names.push_back(item.name);
    }
    sync_file_system(root);
}

const std::string &work_tree::path() const
{
    return root;
}

const std::vector<std::string> &work_tree::files() const
{
    return names;
}

std::vector<std::string> work_tree::directories() const
{
    std::set<std::string> found;

    for (const std::string &name : names) {
        found.insert(fs::path(name).parent_path().string());
    }
    return {found.begin(), found.end()};
}

uint64_t work_tree::bytes() const
{
    uint64_t all = 0;

    for (const std::string &name : names) {
        all += fs::file_size(root + "/" + name);
    }
    return all;
}

std::vector<std::string> work_tree::edit(size_t count)
{
    const size_t stride = 37;
    std::vector<std::string> edited;

    turns++;
    for (size_t i = 0; i < count; i++) {
        std::string name = names[next++ * stride % names.size()];
        std::string bytes = read_file(root + "/" + name);
        size_t line = bytes.find('\n', bytes.size() / 3);

        bytes.insert(line == std::string::npos ? bytes.size() : line + 1,
                     "int edited_" + std::to_string(turns) + "_" + std::to_string(i) + ";\n");
        write_file(root + "/" + name, bytes);
        edited.push_back(name);
    }
    std::this_thread::sleep_for(trusted);
    return edited;
}

/* --- bare loops --------------------------------------------------------- */

uint64_t digest_files(const work_tree &tree, const std::vector<std::string> &files,
                      unsigned threads, bool compress)
{
    int root = open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::atomic<size_t> next(0);
    std::atomic<uint64_t> made(0);
    auto work = [&] {
        loop own;
        uint64_t bytes = 0;

        for (size_t i = next++; i < files.size(); i = next++) {
            bytes += own.take(root, files[i], compress);
        }
        made += bytes;
    };
    std::vector<std::thread> others;

    require(root >= 0, "cannot open the work tree");
    for (unsigned i = 1; i < threads; i++) {
        others.emplace_back(work);
    }
    work();
    for (std::thread &other : others) {
        other.join();
    }
    close(root);
    return made;
}

void stat_files(const work_tree &tree)
{
    int root = open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (const std::string &name : tree.files()) {
        struct stat facts;

        require(fstatat(root, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0,
                "cannot look at " + name);
    }
    close(root);
}

/* --- git ---------------------------------------------------------------- */

bool git_peer::is_there()
{
    return system("git --version >/dev/null 2>&1") == 0;
}

void git_peer::run(const std::string &words) const
{
    std::string line = "GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_DIR='" + git_dir +
                       "' GIT_WORK_TREE='" + tree.path() + "' git " + words + " >/dev/null";

    require(system(line.c_str()) == 0, "git failed: " + line);
}

git_peer::git_peer(const std::string &path, const work_tree &of) : git_dir(path), tree(of)
{
    run("init -q");
    run("config gc.auto 0");
    run("config user.name bench");
    run("config user.email bench@localhost");
}

void git_peer::commit()
{
    run("add -A .");
    run("commit -q -m checkpoint");
}

uint64_t git_peer::disk_bytes() const
{
    return disk_usage(git_dir + "/objects");
}

uint64_t git_peer::file_count() const
{
    return count_files(git_dir + "/objects");
}

/* --- copies ------------------------------------------------------------- */

copy_peer::copy_peer(const std::string &path, const work_tree &of) : folder(path), tree(of)
{
}

void copy_peer::checkpoint()
{
    std::string own = folder + "/" + std::to_string(turns++);
    std::string list = "{\"files\":[";
    const EVP_MD *algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);

    fs::create_directories(own + "/files");
    for (const std::string &name : tree.files()) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        std::string bytes = read_file(tree.path() + "/" + name);

        require(EVP_Digest(bytes.data(), bytes.size(), digest, &size, algorithm, nullptr) == 1,
                "no digest");
        std::string text = hexadecimal(digest, size);
        write_file(own + "/files/" + text, bytes);
        list += "{\"path\":\"" + name + "\",\"exists\":true,\"hash\":\"" + text +
                "\",\"size\":" + std::to_string(bytes.size()) + "},";
    }
    list.back() = ']';
    write_file(own + "/manifest.json", list + "}");
}

uint64_t copy_peer::disk_bytes() const
{
    return disk_usage(folder);
}

uint64_t copy_peer::file_count() const
{
    return count_files(folder);
}

} // namespace bench
