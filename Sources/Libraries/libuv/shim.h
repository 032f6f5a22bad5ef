#pragma once
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <uv.h>

// accept4 is a GNU extension, which Swift's Glibc module does not export.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
static inline int reel_accept(int fd) {
    return accept4(fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// Returns the number of bytes that were written to a TCP socket and not acknowledged by its peer; -1 if the kernel does
// not report it. Swift cannot import ioctl, because it is variadic.
static inline int reel_unacknowledged(int fd) {
    int count = 0;
    return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : -1;
}

// Like accept4, malloc_trim of malloc.h is an extension.
extern int malloc_trim(size_t);
static inline void reel_give_memory_back(void) {
    malloc_trim(0);
}
