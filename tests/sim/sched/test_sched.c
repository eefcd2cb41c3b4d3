/*
 * test_sched.c - schedules of two and three processes. Each test is one of ctest.
 */
#include "tests/lib/test.h"
#include "tests/sim/sched/sched.h"

/* Two processes; who runs changes often. */
TEST(sched_two)
{
    static const uint64_t known[] = {1000710, 1033164};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 1000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true};

    assert_int_equal(sched_main("test_sched_two", &options), 0);
}

/* Who runs changes seldom. */
TEST(sched_two_few)
{
    static const uint64_t known[] = {2153492, 2203581};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 2000000,
                                          .processes = 2,
                                          .few_switches = true,
                                          .append_heals = true};

    assert_int_equal(sched_main("test_sched_two_few", &options), 0);
}

TEST(sched_three)
{
    static const uint64_t known[] = {3012348, 3194041, 3146345};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 3000000,
                                          .processes = 3,
                                          .few_switches = false,
                                          .append_heals = true};

    assert_int_equal(sched_main("test_sched_three", &options), 0);
}

TEST(sched_three_few)
{
    static const uint64_t known[] = {4218201, 4227379, 4012610, 4094981, 4106841};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 4000000,
                                          .processes = 3,
                                          .few_switches = true,
                                          .append_heals = true};

    assert_int_equal(sched_main("test_sched_three_few", &options), 0);
}

/* Larger payloads are out of line: what a record refers to can be read wherever the record can. */
TEST(sched_contents)
{
    static const uint64_t known[] = {5194346};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 5000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .with_blobs = true};

    assert_int_equal(sched_main("test_sched_contents", &options), 0);
}

/* While one process replaces segments, the other appends, reads, recovers, heals and dies. */
TEST(sched_compact)
{
    static const uint64_t known[] = {6005506, 6007374, 6153234, 6184248,
                                     6228824, 6139335, 6101193, 6032102};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 6000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true};

    assert_int_equal(sched_main("test_sched_compact", &options), 0);
}

/* The pack is compacted too, while the other process is about to name what it holds. */
TEST(sched_compact_contents)
{
    static const uint64_t known[] = {7004651, 7007272, 7009673, 7011356,
                                     7027142, 7002299, 7057062, 7076561};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 7000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .with_blobs = true,
                                          .compacts = true};

    assert_int_equal(sched_main("test_sched_compact_contents", &options), 0);
}

/* Of three processes one replaces segments, another ends the tail meanwhile, and each writes the
 * catalogue of what it has loaded. */
TEST(sched_compact_fold)
{
    static const uint64_t known[] = {6000597, 6184248};
    const struct sched_options options = {.known = known,
                                          .known_count = sizeof(known) / sizeof(known[0]),
                                          .seed = 10000000,
                                          .processes = 3,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true,
                                          .folds = true};

    assert_int_equal(sched_main("test_sched_compact_fold", &options), 0);
}

/* Processes redact entries and undo that, next to compactions that erase. */
TEST(sched_restore)
{
    const struct sched_options options = {.seed = 11000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true,
                                          .restores = true};

    assert_int_equal(sched_main("test_sched_restore", &options), 0);
}

/* An importer that deletes a session and creates it again, and a retainer that moves it to the
 * trash, while others append to it. */
TEST(sched_replace)
{
    const struct sched_options options = {.seed = 8000000,
                                          .processes = 3,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .replaces = true};

    assert_int_equal(sched_main("test_sched_replace", &options), 0);
}

/* The same next to compactions; erasing empties the trash. */
TEST(sched_replace_compact)
{
    const struct sched_options options = {.seed = 9000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true,
                                          .replaces = true};

    assert_int_equal(sched_main("test_sched_replace_compact", &options), 0);
}
