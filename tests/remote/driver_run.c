/*
 * driver_run.c - the cases of every driver over a remote that is there:
 *
 *   remote_driver_run URL
 */
#include <stdio.h>

#include "tests/unit/remote/driver_cases.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fputs("usage: URL\n", stderr);
        return 2;
    }
    return driver_cases_run(argv[1]);
}
