#pragma once
// No header here declares a type that Swift's Glibc module declares, such as `struct stat`: its members would belong to
// one module or the other, by which of them a batch of files imports first, and a clean build would fail by chance.
#include <linux/stat.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// In <unistd.h> and <fcntl.h>, which declare such types.
extern long syscall(long number, ...);
static const int reel_working_folder = -100;

// Linux calls that Swift's Glibc module does not show; prctl is variadic.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// fcntl's F_OFD_GETLK and F_OFD_SETLK: locks of an open file instead of a process.
static const int reel_open_file_getlk = 36;
static const int reel_open_file_setlk = 37;

// What statx says of a file: glibc shows it to GNU sources alone. `born_ns` is 0 where none is kept.
static inline int reel_file_identity(const char *path, int64_t *inode, int64_t *born_ns, int64_t *names) {
    struct statx found;
    if (syscall(SYS_statx, reel_working_folder, path, 0, STATX_INO | STATX_NLINK | STATX_BTIME, &found) != 0) return -1;
    *inode = (int64_t)found.stx_ino;
    *born_ns = (int64_t)found.stx_btime.tv_sec * 1000000000 + found.stx_btime.tv_nsec;
    if (!(found.stx_mask & STATX_BTIME)) *born_ns = 0;
    *names = found.stx_nlink;
    return 0;
}
