#pragma once
// The header alone, inline: there is no library to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t reel_xxh3(const void *bytes, size_t count) { return XXH3_64bits(bytes, count); }

// The hash of two numbers; it continues a hash with the next part.
static inline uint64_t reel_xxh3_pair(uint64_t first, uint64_t second) {
    uint64_t pair[2] = {first, second};
    return XXH3_64bits(pair, sizeof pair);
}
