/*
 * sqlite.cc - SQLite in WAL mode: one connection for each thread, prepared statements, reads
 * through a map; synchronous FULL, which syncs each commit, and NORMAL, which does not. Writers of
 * one process take turns by a lock: with the busy timeout alone some of them would sleep for
 * seconds.
 *
 * One table, and a key of session and id that sorts in the order of the entries. WITHOUT ROWID
 * would keep rows of many KiB in the tree of the keys, and commit half as many in a second.
 */
#include "bench/peers/peer.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <mutex>

namespace bench
{

namespace
{

const int busy_timeout_ms = 60000;

const char schema[] = "CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY,"
                      " payload TEXT NOT NULL)";

/* A connection and what it prepared. */
class connection
{
  public:
    connection(const std::string &path, guarantee guarantee)
    {
        require(sqlite3_open_v2(path.c_str(), &db,
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                nullptr) == SQLITE_OK,
                "cannot open " + path);
        check(sqlite3_busy_timeout(db, busy_timeout_ms));
        run("PRAGMA journal_mode=WAL");
        run("PRAGMA mmap_size=1073741824");
        run(guarantee == guarantee::durable ? "PRAGMA synchronous=FULL"
                                            : "PRAGMA synchronous=NORMAL");
        run(schema);
        insert = prepare("INSERT INTO entry VALUES (?1, ?2)");
    }
    ~connection()
    {
        sqlite3_finalize(insert);
        sqlite3_finalize(select);
        sqlite3_close(db);
    }
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;

    void run(const char *sql)
    {
        check(sqlite3_exec(db, sql, nullptr, nullptr, nullptr));
    }

    void put(const std::string &key, const std::string &payload)
    {
        bind(insert, 1, key);
        bind(insert, 2, payload);
        require(sqlite3_step(insert) == SQLITE_DONE, sqlite3_errmsg(db));
        check(sqlite3_reset(insert));
    }

    bool get(const std::string &key, const visitor &visit)
    {
        int status;

        if (select == nullptr) {
            select = prepare("SELECT payload FROM entry WHERE key = ?1");
        }
        bind(select, 1, key);
        status = sqlite3_step(select);
        if (status == SQLITE_ROW) {
            visit_row(select, visit);
        }
        check(sqlite3_reset(select));
        return status == SQLITE_ROW;
    }

    uint64_t scan(const std::string &session, const visitor &visit)
    {
        std::string from = session + "/";
        std::string to = session + "0"; /* the character after '/' */
        sqlite3_stmt *all = prepare("SELECT payload FROM entry"
                                    " WHERE key >= ?1 AND key < ?2 ORDER BY key");
        uint64_t count = 0;

        bind(all, 1, from);
        bind(all, 2, to);
        while (sqlite3_step(all) == SQLITE_ROW) {
            visit_row(all, visit);
            count++;
        }
        check(sqlite3_finalize(all));
        return count;
    }

  private:
    sqlite3_stmt *prepare(const char *sql)
    {
        sqlite3_stmt *made = nullptr;

        check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr));
        return made;
    }
    void bind(sqlite3_stmt *statement, int place, const std::string &text)
    {
        check(sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()),
                                SQLITE_STATIC));
    }
    static void visit_row(sqlite3_stmt *row, const visitor &visit)
    {
        const void *data = sqlite3_column_blob(row, 0);
        int size = sqlite3_column_bytes(row, 0);

        visit(static_cast<const char *>(data), static_cast<size_t>(size));
    }
    void check(int status)
    {
        require(status == SQLITE_OK, sqlite3_errmsg(db));
    }

    sqlite3 *db = nullptr;
    sqlite3_stmt *insert = nullptr;
    sqlite3_stmt *select = nullptr;
};

class sqlite_peer : public batch_peer
{
  public:
    sqlite_peer(const std::string &folder, guarantee how)
        : path(folder + ".sqlite"), guarantee(how), own(path, how)
    {
    }
    std::unique_ptr<peer_session> create(const std::string &name) override
    {
        return std::make_unique<session>(*this, name);
    }
    void commit(const std::vector<record> &records) override
    {
        own.run("BEGIN IMMEDIATE");
        for (const record &each : records) {
            own.put(record_key(*each.session, each.number), *each.payload);
        }
        own.run("COMMIT");
    }
    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        return own.scan(name, visit);
    }
    bool read(const std::string &, const std::string &key, const visitor &visit) override
    {
        return own.get(key, visit);
    }

  private:
    class session : public peer_session
    {
      public:
        session(sqlite_peer &owner, const std::string &text)
            : store(owner), name(text), own(owner.path, owner.guarantee)
        {
        }
        void append(uint64_t number, const std::string &payload) override
        {
            std::lock_guard<std::mutex> hold(store.writing);

            own.put(record_key(name, number), payload);
        }

      private:
        sqlite_peer &store;
        std::string name;
        connection own;
    };

    std::string path;
    enum guarantee guarantee;
    connection own;
    std::mutex writing;
};

peer_kind plain(const char *name, guarantee guarantee)
{
    return {name, guarantee, grouping::own, false, true, [guarantee](const std::string &path) {
                return std::make_unique<sqlite_peer>(path, guarantee);
            }};
}

} // namespace

std::vector<peer_kind> sqlite_kinds()
{
    return {plain("sqlite-full", guarantee::durable),
            {"sqlite-full-grouped", guarantee::durable, grouping::application, false, true,
             [](const std::string &path) {
                 return make_grouped(std::make_unique<sqlite_peer>(path, guarantee::durable));
             }},
            plain("sqlite-normal", guarantee::written)};
}

} // namespace bench
