/*
 * shadow.h - completes a copy of a store whose backup was cut short after its
 * commit point (SPEC.md 3.11). One thread, which is alone in the copy.
 */
#ifndef AGENTWAL_ENGINE_STORE_SHADOW_H
#define AGENTWAL_ENGINE_STORE_SHADOW_H

#include "engine/store/manifest.h"

/* Gives the shadow segments of both streams their names and removes the guards,
 * durably, while MANIFEST has `shadow`. Once, by the process that set it. */
enum wal_status wal__shadow_move(const struct wal__env *env,
                                 const uint8_t uuid[16],
                                 struct wal_error *error) WAL_MUST_USE;

/* The same, however far another process came, and takes `shadow` from
 * *manifest, which has it. Can be repeated. */
enum wal_status wal__shadow_finish(const struct wal__env *env,
                                   struct wal__manifest *manifest,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
