/*
 * open.h - the fields of wal_open_options in the order of a row, and those of
 * wal_migrate_result.
 */
#ifndef AGENTWAL_PYTHON_STORE_OPEN_H
#define AGENTWAL_PYTHON_STORE_OPEN_H

#include "bindings/python/src/core/value.h"

extern const struct value_table open_table;
extern const struct value_table migrate_table;

#endif
