/*
 * jsonl.cc - a JSONL file for each session, a line for each entry: kept open between lines, or
 * opened, appended to and closed for each; synced, or left to the system. And one file that all
 * sessions share.
 */
#include "bench/peers/peer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace bench
{

namespace
{

const char middle[] = "\",\"type\":\"message\",\"message\":";

struct file_policy {
    const char *name;
    enum guarantee guarantee;
    bool keep_open;
    bool shared; /* one file for all sessions */
};

const file_policy all_habits[] = {{"jsonl-open", guarantee::durable, true, false},
                                  {"jsonl-reopen", guarantee::durable, false, false},
                                  {"jsonl-open-written", guarantee::written, true, false},
                                  {"jsonl-reopen-written", guarantee::written, false, false},
                                  {"jsonl-shared-written", guarantee::written, true, true}};

std::string line_of(const std::string &key, const std::string &payload)
{
    return "{\"id\":\"" + key + middle + payload + "}\n";
}

int open_file(const std::string &path)
{
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    require(file >= 0, "cannot open " + path);
    return file;
}

const char *find(const char *from, const char *end, const char *what)
{
    return static_cast<const char *>(
        memmem(from, static_cast<size_t>(end - from), what, strlen(what)));
}

class jsonl_session : public peer_session
{
  public:
    jsonl_session(const std::string &file_path, const std::string &session, const file_policy &how)
        : path(file_path), name(session), file_policy(how), file(open_file(path))
    {
        if (!file_policy.keep_open) {
            close(file);
            file = -1;
        }
    }
    ~jsonl_session() override
    {
        if (file >= 0) {
            close(file);
        }
    }
    jsonl_session(const jsonl_session &) = delete;
    jsonl_session &operator=(const jsonl_session &) = delete;

    void append(uint64_t number, const std::string &payload) override
    {
        std::string line = line_of(record_key(name, number), payload);
        int to = file_policy.keep_open ? file : open_file(path);

        require(write(to, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
                "a line was not written");
        if (file_policy.guarantee == guarantee::durable) {
            require(fdatasync(to) == 0, "a line was not synced");
        }
        if (!file_policy.keep_open) {
            close(to);
        }
    }

  private:
    std::string path;
    std::string name;
    const struct file_policy &file_policy;
    int file;
};

class jsonl_peer : public peer
{
  public:
    jsonl_peer(const std::string &folder, const file_policy &how) : path(folder), file_policy(how)
    {
        require(mkdir(path.c_str(), 0700) == 0 || errno == EEXIST, "cannot make " + path);
    }

    std::unique_ptr<peer_session> create(const std::string &name) override
    {
        auto made = std::make_unique<jsonl_session>(file_of(name), name, file_policy);

        if (file_policy.guarantee == guarantee::durable) {
            sync_file(path);
        }
        return made;
    }

    /* From a map of the file, line by line. */
    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        std::string file = file_of(name);

        if (std::filesystem::file_size(file) == 0) {
            return 0;
        }
        mapped_file map(file, false);
        std::string begin = "{\"id\":\"" + name + "/";
        const char *at = reinterpret_cast<const char *>(map.data());
        const char *end = at + map.size();
        uint64_t count = 0;

        while (const char *stop = find(at, end, "\n")) {
            if (static_cast<size_t>(stop - at) > begin.size() &&
                memcmp(at, begin.data(), begin.size()) == 0) {
                const char *payload = find(at, stop, middle) + strlen(middle);

                visit(payload, static_cast<size_t>(stop - 1 - payload));
                count++;
            }
            at = stop + 1;
        }
        return count;
    }

  private:
    std::string file_of(const std::string &name) const
    {
        return path + "/" + (file_policy.shared ? "all" : name) + ".jsonl";
    }

    std::string path;
    const struct file_policy &file_policy;
};

} // namespace

std::vector<peer_kind> jsonl_kinds()
{
    std::vector<peer_kind> kinds;

    for (const file_policy &how : all_habits) {
        kinds.push_back(
            {how.name, how.guarantee, grouping::own, false, false,
             [&how](const std::string &path) { return std::make_unique<jsonl_peer>(path, how); }});
    }
    return kinds;
}

} // namespace bench
