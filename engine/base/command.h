/*
 * command.h - runs a command of the shell for what it prints, a secret as a rule.
 *
 * Invariant: no text of an error has a part of the command or of its output. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_COMMAND_H
#define AGENTWAL_ENGINE_BASE_COMMAND_H

#include <stddef.h>

#include "agentwal.h"

/*
 * Runs the command by /bin/sh, in a process group, with standard input closed; out gets the *size
 * bytes that it prints. `name` is what error texts call it. The group is killed when the command
 * does not end within timeout_ms, or prints `room` bytes or more. WAL_EACCESS: that, or it cannot
 * be started, or fails.
 */
enum wal_status wal__command_run(const char *name, const char *command, uint32_t timeout_ms,
                                 uint8_t *out, size_t room, size_t *size,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
