/*
 * process.h - whether this process is the one that opened a store.
 */
#ifndef AGENTWAL_PYTHON_CORE_PROCESS_H
#define AGENTWAL_PYTHON_CORE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Counts calls of fork() from now on. Called when the module is loaded; false:
 * no memory. Any thread. */
bool process_watch(void);

/* How many forks lie between the first process that loaded the module and this
 * one: a handle is of this process when the number is that of its making. Asked
 * by every call, which getpid(2), a system call, is too slow for. Any thread;
 * also in the child of a process with threads. */
uint32_t process_generation(void);

#endif
