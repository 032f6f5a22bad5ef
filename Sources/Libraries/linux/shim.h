#pragma once
// No header here may declare a type that Swift's Glibc module declares too, such as `struct stat`. Its members would
// belong to the module that a batch of files imports first, so a clean build would fail at random.
#include <linux/stat.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Declared in <unistd.h> and <fcntl.h>, which declare such types.
extern long syscall(long number, ...);
static const int reel_working_folder = -100;

// Linux calls that Swift's Glibc module does not export; prctl is variadic.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// fcntl's F_OFD_GETLK and F_OFD_SETLK: locks that belong to an open file instead of a process.
static const int reel_open_file_getlk = 36;
static const int reel_open_file_setlk = 37;

// Reads a file's identity by statx, which glibc declares for GNU sources only. `born_ns` is the time of creation in
// nanoseconds; 0 if the file system does not keep it. `names` is the number of hard links. Returns -1 on failure.
static inline int reel_file_identity(const char *path, int64_t *inode, int64_t *born_ns, int64_t *names) {
    struct statx found;
    if (syscall(SYS_statx, reel_working_folder, path, 0, STATX_INO | STATX_NLINK | STATX_BTIME, &found) != 0) return -1;
    *inode = (int64_t)found.stx_ino;
    *born_ns = (int64_t)found.stx_btime.tv_sec * 1000000000 + found.stx_btime.tv_nsec;
    if (!(found.stx_mask & STATX_BTIME)) *born_ns = 0;
    *names = found.stx_nlink;
    return 0;
}
