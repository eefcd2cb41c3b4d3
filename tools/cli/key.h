/*
 * key.h - keys of encrypted stores as the command line names them: a file, a command, the keyring
 * of Linux, a passphrase, a recovery code.
 *
 * Invariant: what is secret is in memory that is neither swapped nor in core files, which this
 * process makes none of, and is cleared when it ends. It is in no message.
 */
#ifndef AGENTWAL_TOOLS_CLI_KEY_H
#define AGENTWAL_TOOLS_CLI_KEY_H

#include "tools/cli/cli.h"

/* Whether the options name a key. */
bool cli_key_is_given(const struct cli_key_options *options);

/* Reads the key that the options or, without one, the environment name. NULL: neither does. Ends
 * the process after an error, as the following do. The key is valid until the process ends. */
const struct wal_key *cli_key_read(const struct cli *cli, const struct cli_key_options *options);

/* The same of a key that is to be added to a store, with a label or NULL. A file that does not
 * exist is made with a random key, a recovery code is made, and is `code` then; without any key a
 * passphrase is asked for, twice. */
enum { CLI_RECOVERY_CODE_SIZE = 40 };
const struct wal_key *cli_key_make(const struct cli *cli, const struct cli_key_options *options,
                                   const char *label, char code[CLI_RECOVERY_CODE_SIZE]);

/* Sets the key that opens the store at a path, or makes the copy that a verb creates there, as the
 * verb's store has it; none where the store is not encrypted. Whether there is such a store. */
bool cli_use_key(const struct cli *cli, const char *path, struct wal_open_options *options);

#endif
