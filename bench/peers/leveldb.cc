/*
 * leveldb.cc - LevelDB: its log synced with each write, by its group commit. Sizes as RocksDB has
 * them; no compression, since reading is measured.
 */
#include "bench/peers/lsm.h"

#include <leveldb/c.h>

namespace bench
{

namespace
{

void check(char *error)
{
    require(error == nullptr, error == nullptr ? "" : error);
}

struct leveldb_api {
    using options = leveldb_options_t;
    using db = leveldb_t;
    using writing = leveldb_writeoptions_t;
    using reading = leveldb_readoptions_t;
    using batch = leveldb_writebatch_t;
    using iterator = leveldb_iterator_t;

    static options *make_options()
    {
        options *made = leveldb_options_create();

        static leveldb_cache_t *cache = leveldb_cache_create_lru(lsm_cache);

        leveldb_options_set_create_if_missing(made, 1);
        leveldb_options_set_write_buffer_size(made, lsm_buffer);
        leveldb_options_set_cache(made, cache);
        leveldb_options_set_compression(made, leveldb_no_compression);
        return made;
    }
    static db *open(options *how, const std::string &path)
    {
        char *error = nullptr;
        db *made = leveldb_open(how, path.c_str(), &error);

        check(error);
        return made;
    }
    static writing *write_options(bool sync)
    {
        writing *made = leveldb_writeoptions_create();

        leveldb_writeoptions_set_sync(made, sync);
        return made;
    }
    static reading *read_options()
    {
        reading *made = leveldb_readoptions_create();

        leveldb_readoptions_set_verify_checksums(made, 1);
        return made;
    }

    static void put(db *to, writing *how, const std::string &key, const std::string &value)
    {
        char *error = nullptr;

        leveldb_put(to, how, key.data(), key.size(), value.data(), value.size(), &error);
        check(error);
    }
    static batch *make_batch()
    {
        return leveldb_writebatch_create();
    }
    static void put(batch *to, const std::string &key, const std::string &value)
    {
        leveldb_writebatch_put(to, key.data(), key.size(), value.data(), value.size());
    }
    static void write(db *to, writing *how, batch *what)
    {
        char *error = nullptr;

        leveldb_write(to, how, what, &error);
        check(error);
    }

    static bool get(db *from, reading *how, const std::string &key, const visitor &visit)
    {
        char *error = nullptr;
        size_t size = 0;
        char *found = leveldb_get(from, how, key.data(), key.size(), &size, &error);

        check(error);
        if (found == nullptr) {
            return false;
        }
        visit(found, size);
        leveldb_free(found);
        return true;
    }
    static iterator *seek(db *in, reading *how, const std::string &first)
    {
        iterator *made = leveldb_create_iterator(in, how);

        leveldb_iter_seek(made, first.data(), first.size());
        return made;
    }
    static bool valid(iterator *at)
    {
        return leveldb_iter_valid(at) != 0;
    }
    static void next(iterator *at)
    {
        leveldb_iter_next(at);
    }
    static const char *key(iterator *at, size_t *size)
    {
        return leveldb_iter_key(at, size);
    }
    static const char *value(iterator *at, size_t *size)
    {
        return leveldb_iter_value(at, size);
    }
    static void finish(iterator *at)
    {
        char *error = nullptr;

        leveldb_iter_get_error(at, &error);
        check(error);
        leveldb_iter_destroy(at);
    }

    static void close(db *what)
    {
        leveldb_close(what);
    }
    static void free(options *what)
    {
        leveldb_options_destroy(what);
    }
    static void free(writing *what)
    {
        leveldb_writeoptions_destroy(what);
    }
    static void free(reading *what)
    {
        leveldb_readoptions_destroy(what);
    }
    static void free(batch *what)
    {
        leveldb_writebatch_destroy(what);
    }
};

} // namespace

std::vector<peer_kind> leveldb_kinds()
{
    return lsm_kinds<leveldb_api>("leveldb");
}

} // namespace bench
