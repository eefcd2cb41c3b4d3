/*
 * x86_64.c - what __builtin_cpu_supports() reads: the runtime library of zig has it not. Of all
 * bits these are the ones that agentwal asks for.
 */
#include <cpuid.h>
#include <stdint.h>

/* The names, and the numbers of the bits, are of the compilers' runtime. */
enum { AVX2 = 10, PCLMUL = 19, AVX512VL = 20, VPCLMULQDQ = 33 };
struct {
    uint32_t vendor, type, subtype, features;
} __cpu_model;
uint32_t __cpu_features2[3];

/* Of CPUID; and the registers that the system keeps when it changes threads, of XCR0. */
enum { OSXSAVE = 1 << 27, KEPT_YMM = 1 << 1 | 1 << 2, KEPT_ZMM = KEPT_YMM | 7 << 5 };

__attribute__((constructor)) static void ask(void)
{
    uint32_t a, b, d, one_c = 0, seven_b = 0, seven_c = 0, kept = 0;

    if (__get_cpuid(1, &a, &b, &one_c, &d) != 0 && (one_c & OSXSAVE) != 0) {
        __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    }
    (void)__get_cpuid_count(7, 0, &a, &seven_b, &seven_c, &d);
    __cpu_model.features = (one_c >> 1 & 1) << PCLMUL;
    if ((kept & KEPT_YMM) == KEPT_YMM) {
        __cpu_model.features |= (seven_b >> 5 & 1) << AVX2;
        __cpu_features2[0] = (seven_c >> 10 & 1) << (VPCLMULQDQ - 32);
    }
    if ((kept & KEPT_ZMM) == KEPT_ZMM) {
        __cpu_model.features |= (seven_b >> 31 & 1) << AVX512VL;
    }
}
