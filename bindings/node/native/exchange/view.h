/*
 * view.h - views of sessions as JavaScript has them.
 */
#ifndef AGENTWAL_NODE_VIEW_H
#define AGENTWAL_NODE_VIEW_H

#include <agentwal/convert.h>

#include "bindings/node/native/base/call.h"

/* The object of a flush's result. */
napi_value view_make_flush_result(struct call *call,
                                  const struct wal_view_flush_result *result);

#endif
