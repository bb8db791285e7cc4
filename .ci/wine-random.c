/* bcryptprimitives.dll for a wine that lacks it (before 8.19): its only function that Rust's standard library calls.
   `.ci/windows` compiles it and puts it next to the tests; nothing of it is shipped. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return RtlGenRandom(bytes, (ULONG)size);
}
