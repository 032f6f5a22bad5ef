#define _GNU_SOURCE
#include "fan_out_floor.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// A WebSocket on a blocking socket, switched to non-blocking behind the handshake; -1 if it was refused.
int floor_open(int port, const char *path) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char head[512];
    int size = snprintf(head, sizeof head,
                        "GET %s HTTP/1.1\r\nHost: floor\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path);
    if (write(fd, head, size) != size) return -1;
    int have = 0;
    while (have < 4 || memcmp(head + have - 4, "\r\n\r\n", 4) != 0) {
        if (have == sizeof head || read(fd, head + have, 1) != 1) return -1;
        have++;
    }
    if (memcmp(head, "HTTP/1.1 101", 12) != 0) return -1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

// A masked text frame; the mask is zero, which is legal and spares the reader's core.
static int make_frame(char *frame, int payload) {
    int size = 0;
    frame[size++] = (char)0x81;
    if (payload < 126) {
        frame[size++] = (char)(0x80 | payload);
    } else {
        frame[size++] = (char)(0x80 | 126);
        frame[size++] = (char)(payload >> 8);
        frame[size++] = (char)payload;
    }
    memset(frame + size, 0, 4);
    memset(frame + size + 4, 'x', payload);
    return size + 4 + payload;
}

int floor_drive(int port, int sockets, int payload, int window, double seconds, floor_result *result) {
    int burst = window / 2;
    char *buffer = malloc(1 << 18), *frames = malloc((size_t)burst * (payload + 14));
    int *fds = malloc(sizeof(int) * (sockets + 1)), epoll = epoll_create1(0), failed = 0, frame = 0;
    for (int i = 0; i < burst; i++) frame = make_frame(frames + (size_t)i * frame, payload);
    for (int i = 0; i <= sockets && !failed; i++) {
        fds[i] = floor_open(port, i < sockets ? "/sub" : "/pub");
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        failed = fds[i] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
    }
    int delivered_frame = frame - 4; // the same frame without a mask
    long long published = 0, bytes = 0, start_bytes = 0;
    double start = now(), warm = start + seconds / 5, end = warm + seconds, started = 0;
    size_t half = 0; // bytes of a burst that are still to be written
    while (!failed) {
        double time = now();
        if (!started && time >= warm) { started = time; start_bytes = bytes; }
        if (time >= end) { result->seconds = time - started; break; }
        long long under_way = published - bytes / delivered_frame / sockets;
        if (half > 0 || under_way + burst <= window) {
            if (half == 0) { half = (size_t)burst * frame; published += burst; }
            ssize_t wrote = write(fds[sockets], frames + (size_t)burst * frame - half, half);
            if (wrote > 0) half -= wrote;
            failed = wrote < 0 && errno != EAGAIN;
        }
        struct epoll_event events[512];
        int count = epoll_wait(epoll, events, 512, 1);
        for (int i = 0; i < count; i++) {
            ssize_t got = read(events[i].data.fd, buffer, 1 << 18);
            if (got > 0) bytes += got;
            failed |= got == 0 || (got < 0 && errno != EAGAIN);
        }
    }
    result->deliveries = (bytes - start_bytes) / delivered_frame;
    for (int i = 0; i <= sockets; i++) if (fds[i] >= 0) close(fds[i]);
    close(epoll);
    free(buffer);
    free(frames);
    free(fds);
    return failed ? -1 : 0;
}
