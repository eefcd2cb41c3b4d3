/*
 * driver_s3.c - the cases of every driver over S3: AGENTWAL_TEST_S3 is the URL
 * of a bucket, and the environment has its credentials. Run by s3.sh.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/remote/driver_cases.h"

int main(void)
{
    const char *url = getenv("AGENTWAL_TEST_S3");

    if (url == NULL) {
        (void)fputs("AGENTWAL_TEST_S3 must be the URL of a bucket\n", stderr);
        return 2;
    }
    return driver_cases_run(url);
}
