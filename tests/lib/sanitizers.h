/*
 * sanitizers.h - which sanitizer the tests are built with.
 */
#ifndef AGENTWAL_TESTS_SANITIZERS_H
#define AGENTWAL_TESTS_SANITIZERS_H

#if defined(__has_feature)
#define SANITIZERS_FEATURE(name) __has_feature(name)
#else
#define SANITIZERS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_FEATURE(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#else
#define WITH_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZERS_FEATURE(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#else
#define WITH_THREAD_SANITIZER 0
#endif

#endif
