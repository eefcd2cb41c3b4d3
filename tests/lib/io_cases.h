/*
 * io_cases.h - tests that hold for every table of io.h, and calls that must succeed on the one
 * under test.
 */
#ifndef AGENTWAL_TESTS_LIB_IO_CASES_H
#define AGENTWAL_TESTS_LIB_IO_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/io.h"
#include "tests/lib/test.h"

/* Sets the table under test, before each test. */
void io_case_set_io(const struct wal__io *table);

struct wal__file *io_case_open(const char *path, int flags);
void io_case_open_fails(const char *path, int flags, enum wal_status status, int error);
/* Writes a text of 256 bytes at most. */
void io_case_write(struct wal__file *file, const char *text, uint64_t offset);
struct wal__io_stat io_case_stat(struct wal__file *file);
enum wal_status io_case_lock(struct wal__file *file, uint64_t offset, enum wal__io_lock mode);
/* Checks that allocating keeps the content and appends zeros. */
void io_case_check_allocate(const char *path);

/* Runs the tests, each between enter, which sets the table and an empty current directory, and
 * leave. How many failed. */
int io_cases_run(const char *group, CMFixtureFunction enter, CMFixtureFunction leave);

#endif
