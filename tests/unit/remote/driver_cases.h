/*
 * driver_cases.h - what every driver must do (remote/driver/driver.h): one set of tests, which runs
 * over the remote that a URL names.
 */
#ifndef AGENTWAL_TESTS_UNIT_REMOTE_DRIVER_CASES_H
#define AGENTWAL_TESTS_UNIT_REMOTE_DRIVER_CASES_H

/* Runs the cases with cmocka, and returns the number of those that failed. What they leave is below
 * a name that no other run has. */
int driver_cases_run(const char *url);

#endif
