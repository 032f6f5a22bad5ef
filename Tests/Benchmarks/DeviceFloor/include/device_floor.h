#pragma once

// The floors of the device's benchmarks: bare SQLite in C with the same table, sizes, transactions and durability as a
// device's file. Seconds are negative if SQLite fails.

/// The number of pairs of a file, and the mean sizes of their keys and values in bytes.
typedef struct { long long pairs; int key_bytes, value_bytes; } reel_device_pairs;

/// Reads the sizes of all pairs of a device's file. Returns 0, or -1 if SQLite fails.
int reel_device_floor_sizes(const char *path, reel_device_pairs *sizes);

/// Writes pairs of these sizes to a new file in ascending order, with `rows` pairs a commit that does not wait for the
/// disk. Returns the processor time of this thread in seconds.
double reel_device_floor_load(const char *path, reel_device_pairs sizes, int rows);

/// Opens a device's file, reads the pair of each of its `kinds` letters, and closes it. Returns seconds.
double reel_device_floor_open(const char *path, const char *kinds);

/// Reads pairs of a device's file by keys that are spread over all pairs, and stores the microseconds of each read.
/// Returns 0, or -1 if SQLite fails.
int reel_device_floor_reads(const char *path, int count, double *micros);

/// Writes pairs of these sizes to a file one by one, each in a commit that waits for the disk. Returns seconds.
double reel_device_floor_commits(const char *path, reel_device_pairs sizes);

/// Reads pairs of a file in order, and removes them in commits of `rows` pairs that wait for the disk. Returns seconds.
double reel_device_floor_drain(const char *path, int rows);
