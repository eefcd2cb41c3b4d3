/*
 * view.h - what the files about views share.
 */
#ifndef AGENTWAL_PYTHON_CONVERT_VIEW_H
#define AGENTWAL_PYTHON_CONVERT_VIEW_H

#include "bindings/python/src/core/value.h"

extern const struct value_table view_flush_table;

#endif
