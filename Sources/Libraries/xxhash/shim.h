#pragma once
// Only the header is used, with inline functions, so no library is linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t reel_xxh3(const void *bytes, size_t count) { return XXH3_64bits(bytes, count); }

// Returns the hash of two numbers. It extends the hash `first` by the next part.
static inline uint64_t reel_xxh3_pair(uint64_t first, uint64_t second) {
    uint64_t pair[2] = {first, second};
    return XXH3_64bits(pair, sizeof pair);
}
