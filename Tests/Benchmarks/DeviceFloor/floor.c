#include "device_floor.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { wal_frames_max = 1000, key_max = 512 };

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit;
    int wal_frames;
} store;

static int committed(void *context, sqlite3 *db, const char *name, int frames) {
    (void)db, (void)name;
    ((store *)context)->wal_frames = frames;
    return SQLITE_OK;
}

static sqlite3_stmt *prepare(store *s, const char *sql) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);
    return statement;
}

static int run(sqlite3_stmt *statement) {
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE || result == SQLITE_ROW ? 0 : -1;
}

static void end(store *s) {
    sqlite3_finalize(s->begin);
    sqlite3_finalize(s->commit);
    sqlite3_close(s->db);
}

// Opens a file. A new one gets the table of a device's file.
static int begin(store *s, const char *path, int durable) {
    memset(s, 0, sizeof *s);
    if (sqlite3_open(path, &s->db) != SQLITE_OK) return -1;
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = %s;"
        "CREATE TABLE IF NOT EXISTS pair (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        durable ? "FULL" : "NORMAL");
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) return -1;
    sqlite3_wal_hook(s->db, committed, s);
    s->begin = prepare(s, "BEGIN IMMEDIATE");
    s->commit = prepare(s, "COMMIT");
    return s->begin != NULL && s->commit != NULL ? 0 : -1;
}

static int commit(store *s) {
    if (run(s->commit) != 0) return -1;
    if (s->wal_frames < wal_frames_max) return 0;
    sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    s->wal_frames = 0;
    return 0;
}

int reel_device_floor_sizes(const char *path, reel_device_pairs *sizes) {
    store s;
    int result = begin(&s, path, 0);
    sqlite3_stmt *all = prepare(&s, "SELECT count(*), avg(length(key)), avg(length(value)) FROM pair");
    if (result == 0 && all != NULL && sqlite3_step(all) == SQLITE_ROW) {
        sizes->pairs = sqlite3_column_int64(all, 0);
        sizes->key_bytes = (int)(sqlite3_column_double(all, 1) + 0.5);
        sizes->value_bytes = (int)(sqlite3_column_double(all, 2) + 0.5);
    } else {
        result = -1;
    }
    sqlite3_finalize(all);
    end(&s);
    return result;
}

// Writes `rows` pairs a commit. Returns 0, or -1 if SQLite fails.
static int write_pairs(store *s, reel_device_pairs sizes, int rows) {
    if (sizes.key_bytes < 16 || sizes.key_bytes > key_max || sizes.value_bytes < 0) return -1;
    sqlite3_stmt *put = prepare(s, "INSERT OR REPLACE INTO pair VALUES (?, ?)");
    char key[key_max + 1];
    char *value = malloc(sizes.value_bytes + 1);
    memset(value, 'x', sizes.value_bytes);
    int failed = put == NULL;
    for (long long pair = 0; pair < sizes.pairs && !failed; pair++) {
        if (pair % rows == 0) failed |= run(s->begin);
        snprintf(key, sizeof key, "o%0*lld", sizes.key_bytes - 1, pair);
        sqlite3_bind_blob(put, 1, key, sizes.key_bytes, SQLITE_STATIC);
        sqlite3_bind_blob(put, 2, value, sizes.value_bytes, SQLITE_STATIC);
        failed |= run(put);
        if (pair % rows == rows - 1 || pair == sizes.pairs - 1) failed |= commit(s);
    }
    free(value);
    sqlite3_finalize(put);
    return failed ? -1 : 0;
}

double reel_device_floor_load(const char *path, reel_device_pairs sizes, int rows) {
    store s;
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    int result = begin(&s, path, 0);
    if (result == 0) result = write_pairs(&s, sizes, rows);
    double taken = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    end(&s);
    return result == 0 ? taken : -1;
}

double reel_device_floor_commits(const char *path, reel_device_pairs sizes) {
    store s;
    int result = begin(&s, path, 1);
    double start = seconds(CLOCK_MONOTONIC);
    if (result == 0) result = write_pairs(&s, sizes, 1);
    double taken = seconds(CLOCK_MONOTONIC) - start;
    end(&s);
    return result == 0 ? taken : -1;
}

double reel_device_floor_open(const char *path, const char *kinds) {
    double start = seconds(CLOCK_MONOTONIC);
    store s;
    int result = begin(&s, path, 1);
    sqlite3_stmt *first = prepare(&s, "SELECT key, value FROM pair WHERE key >= ? ORDER BY key LIMIT 1");
    if (first == NULL) result = -1;
    for (const char *kind = kinds; *kind != 0 && result == 0; kind++) {
        sqlite3_bind_blob(first, 1, kind, 1, SQLITE_STATIC);
        result = run(first);
    }
    sqlite3_finalize(first);
    end(&s);
    return result == 0 ? seconds(CLOCK_MONOTONIC) - start : -1;
}

int reel_device_floor_reads(const char *path, int count, double *micros) {
    store s;
    int result = begin(&s, path, 0);
    sqlite3_stmt *keys = prepare(&s, "SELECT key FROM pair WHERE key >= x'6f' AND key < x'70'");
    sqlite3_stmt *one = prepare(&s, "SELECT value FROM pair WHERE key = ?");
    if (keys == NULL || one == NULL) result = -1;
    reel_device_pairs sizes = {0};
    if (result == 0) result = reel_device_floor_sizes(path, &sizes);
    long long step = sizes.pairs / (count > 0 ? count : 1);
    if (step < 1) result = -1;
    char *found = calloc(count, key_max);
    int *lengths = calloc(count, sizeof *lengths);
    int filled = 0;
    for (long long pair = 0; filled < count && result == 0 && sqlite3_step(keys) == SQLITE_ROW; pair++) {
        int length = sqlite3_column_bytes(keys, 0);
        if (pair % step != 0 || length > key_max) continue;
        memcpy(found + (size_t)filled * key_max, sqlite3_column_blob(keys, 0), length);
        lengths[filled++] = length;
    }
    if (filled < count) result = -1;
    for (int i = 0; i < count && result == 0; i++) {
        // A prime step spreads the reads over the file.
        int at = (int)((long long)i * 7919 % count);
        double start = seconds(CLOCK_MONOTONIC);
        sqlite3_bind_blob(one, 1, found + (size_t)at * key_max, lengths[at], SQLITE_STATIC);
        result = run(one);
        micros[i] = (seconds(CLOCK_MONOTONIC) - start) * 1e6;
    }
    free(found);
    free(lengths);
    sqlite3_finalize(keys);
    sqlite3_finalize(one);
    end(&s);
    return result;
}

double reel_device_floor_drain(const char *path, int rows) {
    store s;
    int result = begin(&s, path, 1);
    sqlite3_stmt *page = prepare(&s, "SELECT key, value FROM pair ORDER BY key LIMIT ?");
    sqlite3_stmt *removal = prepare(&s, "DELETE FROM pair WHERE key <= ?");
    if (page == NULL || removal == NULL) result = -1;
    double start = seconds(CLOCK_MONOTONIC);
    int left = 1;
    while (result == 0 && left) {
        char last[key_max];
        int length = 0;
        left = 0;
        sqlite3_bind_int(page, 1, rows);
        while (sqlite3_step(page) == SQLITE_ROW) {
            left++;
            length = sqlite3_column_bytes(page, 0);
            if (length > key_max) length = key_max;
            memcpy(last, sqlite3_column_blob(page, 0), length);
        }
        sqlite3_reset(page);
        if (left == 0) break;
        result |= run(s.begin);
        sqlite3_bind_blob(removal, 1, last, length, SQLITE_STATIC);
        result |= run(removal);
        result |= commit(&s);
    }
    double taken = seconds(CLOCK_MONOTONIC) - start;
    sqlite3_finalize(page);
    sqlite3_finalize(removal);
    end(&s);
    return result == 0 ? taken : -1;
}
