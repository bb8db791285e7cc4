// A minimal case of the crash of llama.cpp (compiled with -O3) on processors with AMX: the header of GCC 12 declares that
// `_tile_loadconfig` reads 8 bytes. It reads 64, and the compiler removes the stores to the others.
//
//     g++ -O3 -fPIC -march=native benches/amx_tiles.cpp -o amx_tiles && ./amx_tiles             # rows of tile 0: 0, expected 8
//     g++ -O3 -fPIC -fno-dse -march=native benches/amx_tiles.cpp -o amx_tiles && ./amx_tiles    # rows of tile 0: 8, expected 8
//
// The next instruction that uses a tile without rows is illegal. llama.cpp's pull request 26954 proposes a constant configuration.
// Needs Linux and a processor with AMX.

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

constexpr int rows_of_tile_0 = 8;

struct Configuration {
    uint8_t palette = 0, start_row = 0, reserved[14] = {0};
    uint16_t column_bytes[16] = {0};
    uint8_t rows[16] = {0};
};

inline void load() {
    static thread_local bool done = false;
    if (done) return;
    alignas(64) Configuration tiles = {};
    tiles.palette = 1;
    tiles.rows[0] = rows_of_tile_0;
    tiles.column_bytes[0] = 64;
    tiles.rows[1] = 16;
    tiles.column_bytes[1] = 32;
    _tile_loadconfig(&tiles);
    done = true;
}

void work(int times) {
    for (int i = 0; i < times; ++i) load();
}

int main(int count, char **) {
    syscall(SYS_arch_prctl, 0x1023, 18);  // the system's permission to use tiles
    work(count);
    alignas(64) unsigned char loaded[64];
    __asm__ volatile("sttilecfg %0" : "=m"(loaded));
    std::printf("rows of tile 0: %d, expected %d\n", loaded[48], rows_of_tile_0);
    return loaded[48] != rows_of_tile_0;
}
