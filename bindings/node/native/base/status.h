/*
 * status.h - names of the codes of errors.
 */
#ifndef AGENTWAL_NODE_STATUS_H
#define AGENTWAL_NODE_STATUS_H

#include <stdint.h>

/* The name of a status as the header has it, such as "WAL_EINVAL"; "WAL_OK" for
 * one that is none of a failure. Any thread. */
const char *status_code(int32_t status);

#endif
