/* Switches planted bugs on, one at a time, in the build of run.sh. The product does not include
 * this file: apply.py adds it to the files that it patches.
 *
 * It includes nothing, so that it can be the first line of any file, before the macros that select
 * the features of the C library. */
#ifndef AGENTWAL_TESTS_MUTANT_H
#define AGENTWAL_TESTS_MUTANT_H

extern char *getenv(const char *name);

/* Returns 1 if mutant 'number' is the one that AGENTWAL_MUTANT names. Threads that come here first
 * together read the same value. */
static inline int wal__mutant(int number)
{
    static int known = -1;

    if (known < 0) {
        const char *text = getenv("AGENTWAL_MUTANT");
        int value = 0;

        while (text && *text >= '0' && *text <= '9') {
            value = value * 10 + (*text++ - '0');
        }
        known = value;
    }
    return known == number;
}

#endif
