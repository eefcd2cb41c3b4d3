/*
 * cpu_pause.h - what a spinning thread does between two looks: it leaves the
 * processor's shared parts to others for some cycles. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_CPU_PAUSE_H
#define AGENTWAL_ENGINE_BASE_CPU_PAUSE_H

static inline void wal__cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
