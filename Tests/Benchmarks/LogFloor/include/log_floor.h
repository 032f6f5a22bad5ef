#pragma once

// The floors of the log's benchmarks: bare C programs with the same file layout, the same groups and the same waits.

/// Appends `groups` groups of `depth` records of `record_bytes` to a new SQLite file at `path`. Each group is one
/// durable transaction with one row. Returns seconds, or a negative number if SQLite or the system fails.
double reel_floor_groups(
    const char *path, int page_bytes, int wal_frames, int depth, int groups, int record_bytes);

/// Appends `count` blocks of 4 KiB to a new file, each with an fdatasync, and stores the microseconds of each. Returns
/// 0, or -1 if the system fails.
int reel_floor_blocks(const char *path, int count, double *micros);
