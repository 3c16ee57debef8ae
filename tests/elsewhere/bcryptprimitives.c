/* Stands in for a library of Windows that Debian 12's Wine lacks: Rust's libraries ask it for the random numbers of hash maps,
   which no result of a simulation depends on. */
#include <stddef.h>

unsigned char __stdcall SystemFunction036(void *to, unsigned long size); /* RtlGenRandom */

__declspec(dllexport) int __stdcall ProcessPrng(void *to, size_t size)
{
    return SystemFunction036(to, (unsigned long)size);
}
