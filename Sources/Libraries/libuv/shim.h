#pragma once
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <uv.h>

// accept4 is a GNU extension that Glibc's module does not show.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
static inline int reel_accept(int fd) {
    return accept4(fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// Bytes that a TCP socket was given and its far side has not acknowledged; -1 where it does not tell. ioctl is
// variadic.
static inline int reel_unacknowledged(int fd) {
    int count = 0;
    return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : -1;
}

// As accept4 this one of malloc.h is an extension.
extern int malloc_trim(size_t);
static inline void reel_give_memory_back(void) {
    malloc_trim(0);
}
