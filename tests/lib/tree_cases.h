/*
 * tree_cases.h - tests that hold for every table of tree.h.
 */
#ifndef AGENTWAL_TESTS_LIB_TREE_CASES_H
#define AGENTWAL_TESTS_LIB_TREE_CASES_H

#include "tests/lib/kit/tree_kit.h"

/* Runs the tests, each between enter, which calls tree_case_set_up, and leave,
 * which calls tree_case_tear_down. How many failed. */
int tree_cases_run(const char *group, CMFixtureFunction enter,
                   CMFixtureFunction leave);

#endif
