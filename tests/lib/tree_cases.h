/*
 * tree_cases.h - tests that hold for every table of tree.h.
 */
#ifndef WAL_TESTS_LIB_TREE_CASES_H
#define WAL_TESTS_LIB_TREE_CASES_H

#include "tests/lib/tree_kit.h"

/* Runs the tests, each between enter, which calls tree_case_use, and leave,
 * which calls tree_case_leave. How many failed. */
int tree_cases_run(const char *group, CMFixtureFunction enter,
                   CMFixtureFunction leave);

#endif
