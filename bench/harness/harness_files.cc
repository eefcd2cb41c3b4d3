/*
 * harness_files.cc - temporary folders, and the bare limits: what a write
 * with its sync, and a map, cost without an engine.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "bench/harness/harness.h"

namespace bench
{

namespace
{

const double free_sync = 50e-6; /* a sync below this reaches no device */

std::string program_folder()
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path));

    require(size > 0, "cannot read /proc/self/exe");
    return std::filesystem::path(std::string(path, static_cast<size_t>(size)))
        .parent_path()
        .string();
}

void write_all(int file, const char *bytes, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t done = pwrite(file, bytes, size, static_cast<off_t>(offset));

        require(done > 0, "a bare write failed");
        bytes += done;
        size -= static_cast<size_t>(done);
        offset += static_cast<uint64_t>(done);
    }
}

} // namespace

folder::folder()
{
    const char *parent = getenv("TMPDIR");
    std::string pattern =
        (parent != nullptr && *parent != '\0' ? std::string(parent) : program_folder()) +
        "/agentwal-bench.XXXXXX";

    require(mkdtemp(&pattern[0]) != nullptr, "cannot make " + pattern);
    name = pattern;
}

folder::~folder()
{
    remove_all(name);
}

std::string folder::operator/(const std::string &file) const
{
    return name + "/" + file;
}

const std::string &folder::path() const
{
    return name;
}

uint64_t free_bytes(const std::string &path)
{
    struct statvfs facts;

    require(statvfs(path.c_str(), &facts) == 0, "statvfs failed");
    return static_cast<uint64_t>(facts.f_bavail) * facts.f_frsize;
}

bool has_room(benchmark::State &state, const std::string &what, const folder &place, uint64_t bytes)
{
    uint64_t room = free_bytes(place.path());

    if (room < bytes) {
        report_skipped(what, "it needs " + mebibytes(static_cast<double>(bytes)) +
                                 " of disk, there are " + mebibytes(static_cast<double>(room)));
        state.SkipWithError("the disk has no room");
    }
    return room >= bytes;
}

std::vector<std::string> names(const std::string &path)
{
    std::vector<std::string> found;

    for (const auto &item : std::filesystem::directory_iterator(path)) {
        found.push_back(item.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
}

void remove_all(const std::string &path)
{
    std::error_code ignored;

    std::filesystem::remove_all(path, ignored);
}

void copy_file(const std::string &from, const std::string &to)
{
    std::vector<char> bytes(1 << 20);
    int in = open(from.c_str(), O_RDONLY | O_CLOEXEC);
    int out = open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    uint64_t offset = 0;

    require(in >= 0 && out >= 0, "cannot copy " + from);
    for (;;) {
        ssize_t got = read(in, bytes.data(), bytes.size());

        require(got >= 0, "cannot read " + from);
        if (got == 0) {
            break;
        }
        write_all(out, bytes.data(), static_cast<size_t>(got), offset);
        offset += static_cast<uint64_t>(got);
    }
    require(ftruncate(out, static_cast<off_t>(offset)) == 0, "cannot cut " + to);
    close(in);
    close(out);
}

std::string read_file(const std::string &path)
{
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts;

    require(file >= 0 && fstat(file, &facts) == 0, "cannot open " + path);
    std::string bytes(static_cast<size_t>(facts.st_size), '\0');
    for (size_t at = 0; at < bytes.size();) {
        ssize_t got = read(file, &bytes[at], bytes.size() - at);

        require(got > 0, "cannot read " + path);
        at += static_cast<size_t>(got);
    }
    close(file);
    return bytes;
}

void sync_file(const std::string &path)
{
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);

    require(file >= 0 && fsync(file) == 0, "cannot sync " + path);
    close(file);
}

void sync_file_system(const std::string &path)
{
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);

    require(file >= 0 && syncfs(file) == 0, "cannot sync " + path);
    close(file);
}

/* --- bare limits -------------------------------------------------------- */

raw_log::raw_log(const std::string &path, uint64_t size, synced_by how)
    : file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)), way(how), capacity(size),
      bytes(1 << 20, '\0')
{
    require(file >= 0, "cannot make " + path);
    for (uint64_t at = 0; at < size; at += bytes.size()) {
        write_all(file, bytes.data(), bytes.size(), at);
    }
    require(fsync(file) == 0, "a bare sync failed");
    std::fill(bytes.begin(), bytes.end(), 'x');
}

raw_log::~raw_log()
{
    close(file);
}

void raw_log::append(uint64_t size)
{
    if (size > bytes.size()) {
        bytes.resize(size, 'x');
    }
    if (offset + size > capacity) {
        offset = 0;
    }
    if (way == synced_by::flag) {
        iovec all = {&bytes[0], size};

        require(pwritev2(file, &all, 1, static_cast<off_t>(offset), RWF_DSYNC) ==
                    static_cast<ssize_t>(size),
                "a bare write failed");
    } else {
        write_all(file, bytes.data(), size, offset);
        require(fdatasync(file) == 0, "a bare sync failed");
    }
    offset += size;
}

mapped_file::mapped_file(const std::string &path, bool populate)
{
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts;

    require(file >= 0 && fstat(file, &facts) == 0, "cannot open " + path);
    length = static_cast<size_t>(facts.st_size);
    bytes = mmap(nullptr, length, PROT_READ, MAP_SHARED | (populate ? MAP_POPULATE : 0), file, 0);
    require(bytes != MAP_FAILED, "cannot map " + path);
    close(file);
}

mapped_file::~mapped_file()
{
    munmap(bytes, length);
}

const uint8_t *mapped_file::data() const
{
    return static_cast<const uint8_t *>(bytes);
}

size_t mapped_file::size() const
{
    return length;
}

double sync_cost()
{
    static double cost = 0;

    if (cost == 0) {
        folder place;
        raw_log log(place / "bare", 4 << 20);
        series times;

        for (int i = 0; i < 300; i++) {
            double begin = now();

            log.append(512);
            times.add(now() - begin);
        }
        cost = times.median();
    }
    return cost;
}

bool sync_is_free()
{
    return sync_cost() < free_sync;
}

} // namespace bench
