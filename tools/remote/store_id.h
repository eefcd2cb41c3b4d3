/*
 * store_id.h - the id of a store on the command line.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_STORE_ID_H
#define AGENTWAL_TOOLS_REMOTE_STORE_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Reads 32 hexadecimal digits, with or without hyphens. */
bool remote_parse_store_id(const char *text, uint8_t uuid[16]);

#endif
