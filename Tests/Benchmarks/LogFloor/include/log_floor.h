#pragma once

// The floors under the log's benchmarks: what a bare C program reaches with the same file layout, the same groups and
// the same waits.

/// Appends `groups` groups of `depth` records of `record_bytes` to a new SQLite file at `path`, each group one durable
/// transaction with one row. Returns seconds, or a negative number if SQLite or the system refused.
double reel_floor_groups(
    const char *path, int page_bytes, int wal_frames, int depth, int groups, int record_bytes);

/// Appends `count` blocks of 4 KiB to a new file, each with an fdatasync; stores the microseconds of each.
/// Returns 0, or -1 if the system refused.
int reel_floor_blocks(const char *path, int count, double *micros);
