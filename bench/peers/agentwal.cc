/*
 * agentwal.cc - the engine, measured like its peers.
 */
#include "bench/peers/agentwal.h"

#include <map>

namespace bench
{

namespace
{

const char *name_of(guarantee guarantee)
{
    return guarantee == guarantee::durable   ? "agentwal"
           : guarantee == guarantee::written ? "agentwal-written"
                                             : "agentwal-queued";
}

wal_durability durability_of(guarantee guarantee)
{
    return guarantee == guarantee::durable   ? WAL_DURABLE
           : guarantee == guarantee::written ? WAL_WRITTEN
                                             : WAL_QUEUED;
}

class engine_session : public peer_session
{
  public:
    engine_session(wal_session *handle, wal_durability how) : session(handle), durability(how)
    {
    }
    ~engine_session() override
    {
        wal_session_close(session);
    }
    engine_session(const engine_session &) = delete;
    engine_session &operator=(const engine_session &) = delete;

    void append(uint64_t number, const std::string &payload) override
    {
        std::string id = number_id("e", number);
        wal_entry made = entry(id, payload);

        bench::append(session, &made, 1, durability);
    }

  private:
    wal_session *session;
    wal_durability durability;
};

} // namespace

engine_peer::engine_peer(const std::string &path, guarantee guarantee)
    : store(open_store(path)), durability(durability_of(guarantee))
{
}

engine_peer::~engine_peer()
{
    wal_entry_cursor_close(cursor);
    wal_session_close(reading);
    close_store(store);
}

void engine_peer::flush()
{
    require(wal_flush(store, nullptr) == WAL_OK, "cannot flush");
}

std::unique_ptr<peer_session> engine_peer::create(const std::string &name)
{
    return std::make_unique<engine_session>(create_session(store, name), durability);
}

wal_entry_cursor *engine_peer::open_iter(wal_session *session)
{
    wal_entry_cursor *made = nullptr;

    require(wal_entry_cursor_open(session, nullptr, &made, nullptr) == WAL_OK,
            "cannot open an iterator");
    return made;
}

uint64_t engine_peer::replay(const std::string &name, const visitor &visit)
{
    wal_session *session = open_session(store, name);
    wal_entry_cursor *all = open_iter(session);
    wal_entry found = {};
    uint64_t count = 0;
    wal_status status;

    found.struct_size = sizeof(found);
    while ((status = wal_entry_cursor_next(all, &found, nullptr)) == WAL_OK) {
        visit(static_cast<const char *>(found.payload.data), found.payload.size);
        count++;
    }
    require(status == WAL_END, "an entry cannot be read");
    wal_entry_cursor_close(all);
    wal_session_close(session);
    return count;
}

std::string engine_peer::key(const std::string &, uint64_t number) const
{
    return number_id("e", number);
}

bool engine_peer::read(const std::string &name, const std::string &key, const visitor &visit)
{
    wal_entry found = {};

    if (cursor == nullptr || name != reading_name) {
        wal_entry_cursor_close(cursor);
        wal_session_close(reading);
        reading = open_session(store, name);
        cursor = open_iter(reading);
        reading_name = name;
    }
    found.struct_size = sizeof(found);
    if (wal_entry_cursor_get(cursor, slice(key), &found, nullptr) != WAL_OK) {
        return false;
    }
    visit(static_cast<const char *>(found.payload.data), found.payload.size);
    return true;
}

wal_store_info engine_peer::status() const
{
    return store_status(store);
}

const peer_kind &engine_kind(guarantee guarantee)
{
    static std::map<enum guarantee, peer_kind> kinds;
    peer_kind &kind = kinds[guarantee];

    if (kind.name.empty()) {
        kind = {name_of(guarantee),
                guarantee,
                grouping::own,
                true,
                true,
                [guarantee](const std::string &path) {
                    return std::make_unique<engine_peer>(path, guarantee);
                }};
    }
    return kind;
}

} // namespace bench
