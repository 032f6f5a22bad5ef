#include "log_floor.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int frames_in_wal = 0;

static int committed(void *context, sqlite3 *db, const char *name, int frames) {
    (void)context, (void)db, (void)name;
    frames_in_wal = frames;
    return SQLITE_OK;
}

static int run(sqlite3_stmt *statement) {
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE || result == SQLITE_ROW ? 0 : -1;
}

// Gives the WAL its full length before the first commit, so that commits never extend a file.
static int lengthen_wal(const char *path, long bytes) {
    char name[4096];
    snprintf(name, sizeof name, "%s-wal", path);
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return -1;
    char *zeros = calloc(1, 1 << 16);
    long end = lseek(file, 0, SEEK_END);
    while (end < bytes) {
        ssize_t written = pwrite(file, zeros, 1 << 16, end);
        if (written <= 0) break;
        end += written;
    }
    free(zeros);
    int result = end >= bytes ? fsync(file) : -1;
    close(file);
    return result;
}

double reel_floor_groups(
    const char *path, int page_bytes, int wal_frames, int depth, int groups, int record_bytes) {
    char sql[512];
    sqlite3 *db = NULL;
    sqlite3_stmt *begin, *commit, *last, *insert;
    snprintf(sql, sizeof sql, "%s.lock", path);
    int lock = open(sql, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || sqlite3_open(path, &db) != SQLITE_OK) return -1;
    snprintf(
        sql, sizeof sql,
        "PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF;"
        "CREATE TABLE records_0 (last INTEGER PRIMARY KEY, count INTEGER NOT NULL, records BLOB NOT NULL)",
        page_bytes);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) return -1;
    sqlite3_wal_hook(db, committed, NULL);
    if (lengthen_wal(path, (long)wal_frames * (page_bytes + 24)) != 0) return -1;
    sqlite3_prepare_v2(db, "BEGIN IMMEDIATE", -1, &begin, NULL);
    sqlite3_prepare_v2(db, "COMMIT", -1, &commit, NULL);
    sqlite3_prepare_v2(db, "SELECT max(last) FROM records_0", -1, &last, NULL);
    sqlite3_prepare_v2(db, "INSERT INTO records_0 VALUES (?, ?, ?)", -1, &insert, NULL);

    int bytes = depth * record_bytes;
    char *source = malloc(bytes);
    char *row = malloc(bytes);
    memset(source, 'x', bytes);
    int failed = 0;
    double start = seconds();
    for (int group = 0; group < groups && !failed; group++) {
        for (int i = 0; i < depth; i++) memcpy(row + i * record_bytes, source + i * record_bytes, record_bytes);
        flock(lock, LOCK_EX);
        failed |= run(begin);
        sqlite3_step(last);
        long long next = sqlite3_column_type(last, 0) == SQLITE_NULL ? 0 : sqlite3_column_int64(last, 0) + 1;
        sqlite3_reset(last);
        sqlite3_bind_int64(insert, 1, next + depth - 1);
        sqlite3_bind_int64(insert, 2, depth);
        sqlite3_bind_blob(insert, 3, row, bytes, SQLITE_STATIC);
        failed |= run(insert);
        failed |= run(commit);
        if (frames_in_wal >= wal_frames) {
            sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
            frames_in_wal = 0;
        }
        flock(lock, LOCK_UN);
    }
    double taken = seconds() - start;
    free(source);
    free(row);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(last);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    close(lock);
    return failed ? -1 : taken;
}

int reel_floor_blocks(const char *path, int count, double *micros) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return -1;
    char block[4096];
    memset(block, 'x', sizeof block);
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        double start = seconds();
        if (pwrite(file, block, sizeof block, (off_t)i * (off_t)sizeof block) != sizeof block) result = -1;
        if (fdatasync(file) != 0) result = -1;
        micros[i] = (seconds() - start) * 1e6;
    }
    close(file);
    return result;
}
