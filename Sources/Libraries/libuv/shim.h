#pragma once
#include <sys/socket.h>
#include <uv.h>

// accept4 is a GNU extension that Glibc's module does not show.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
static inline int reel_accept(int fd) {
    return accept4(fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// As this one of malloc.h is.
extern int malloc_trim(size_t);
static inline void reel_give_memory_back(void) {
    malloc_trim(0);
}
