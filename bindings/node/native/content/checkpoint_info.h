/*
 * checkpoint_info.h - checkpoints as JavaScript has them.
 */
#ifndef AGENTWAL_NODE_CHECKPOINT_INFO_H
#define AGENTWAL_NODE_CHECKPOINT_INFO_H

#include <agentwal/checkpoint.h>

#include "bindings/node/native/base/call.h"

/* The object of a checkpoint; null when checkpoints are off. */
napi_value checkpoint_make_info(struct call *call,
                                const struct wal_checkpoint_info *info);

#endif
