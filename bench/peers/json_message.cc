/*
 * json_message.cc - a JSON file for each entry, in a folder for each session: written under a
 * temporary name and renamed; with the syncs of file and folder that make that durable, or without.
 */
#include "bench/peers/peer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace bench
{

namespace
{

const char before[] = "{\"type\":\"message\",\"message\":";

void make_folder(const std::string &path)
{
    require(mkdir(path.c_str(), 0700) == 0 || errno == EEXIST, "cannot make " + path);
}

/* Whole, or cut before the closing brace: a file's payload. */
void visit_file(const std::string &path, const visitor &visit)
{
    std::string text = read_file(path);
    size_t begin = sizeof(before) - 1;

    require(text.size() > begin, path + " is cut short");
    visit(text.data() + begin, text.size() - begin - 1);
}

class message_session : public peer_session
{
  public:
    message_session(const std::string &root, const std::string &session, guarantee how)
        : path(root + "/" + session), name(session), guarantee(how)
    {
        make_folder(path);
        folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        require(folder >= 0, "cannot open " + path);
        if (guarantee == guarantee::durable) {
            sync_file(root);
        }
    }
    ~message_session() override
    {
        close(folder);
    }
    message_session(const message_session &) = delete;
    message_session &operator=(const message_session &) = delete;

    void append(uint64_t number, const std::string &payload) override
    {
        std::string target = path + record_key("", number) + ".json";
        std::string temporary = target + ".tmp";
        std::string text = before + payload + "}";
        int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        require(file >= 0 &&
                    write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
                "cannot write " + temporary);
        if (guarantee == guarantee::durable) {
            require(fsync(file) == 0, "cannot sync " + temporary);
        }
        close(file);
        require(rename(temporary.c_str(), target.c_str()) == 0, "cannot rename " + temporary);
        if (guarantee == guarantee::durable) {
            require(fsync(folder) == 0, "cannot sync " + path);
        }
    }

  private:
    std::string path;
    std::string name;
    enum guarantee guarantee;
    int folder;
};

class message_peer : public peer
{
  public:
    message_peer(const std::string &folder, guarantee how) : path(folder), guarantee(how)
    {
        make_folder(path);
    }

    std::unique_ptr<peer_session> create(const std::string &name) override
    {
        return std::make_unique<message_session>(path, name, guarantee);
    }

    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        std::string folder = path + "/" + name;
        uint64_t count = 0;

        for (const std::string &file : names(folder)) {
            if (file.size() > 5 && file.compare(file.size() - 5, 5, ".json") == 0) {
                visit_file(folder + "/" + file, visit);
                count++;
            }
        }
        return count;
    }

    bool read(const std::string &, const std::string &key, const visitor &visit) override
    {
        visit_file(path + "/" + key + ".json", visit);
        return true;
    }

  private:
    std::string path;
    enum guarantee guarantee;
};

peer_kind kind(const char *name, guarantee guarantee)
{
    return {name, guarantee, grouping::own, false, true, [guarantee](const std::string &path) {
                return std::make_unique<message_peer>(path, guarantee);
            }};
}

} // namespace

std::vector<peer_kind> json_message_kinds()
{
    return {kind("json-message", guarantee::durable),
            kind("json-message-written", guarantee::written)};
}

} // namespace bench
