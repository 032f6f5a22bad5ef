#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

int floor_drive(floor_server server, int port, int sockets, int window, double seconds, floor_result *result) {
    static int runs;
    const char *refused = refusal_of(server);
    int burst = window / 2, epoll = epoll_create1(0), failed = 0, site = runs++;
    char *buffer = malloc(1 << 18), *frames = malloc((size_t)burst * message_max);
    int *fds = malloc(sizeof(int) * (sockets + 1));
    for (int i = 0; i <= sockets; i++) fds[i] = -1;
    for (int i = 0; i <= sockets && !failed; i++) {
        int subscribes = i < sockets;
        fds[i] = open_socket(server, port, subscribes);
        failed = fds[i] < 0 || (subscribes && !subscribe(fds[i], server, 0, site * (sockets + 1) + i));
        set_blocking(fds[i], 0);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        failed |= epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
    }
    long long published = 0, delivered = 0, delivered_before = 0, bytes = 0, bytes_before = 0;
    // The measurement starts when each client has received a message. With a consumer for each client, this takes
    // seconds.
    double warm = now() + seconds / 5, patience = warm + 60, started = 0;
    size_t size = 0, written = 0; // of a burst, in bytes
    while (!failed) {
        double time = now();
        if (!started && time >= warm && delivered >= sockets) {
            started = time;
            delivered_before = delivered;
            bytes_before = bytes;
        }
        if (started && time >= started + seconds) { result->seconds = time - started; break; }
        failed |= !started && time >= patience;
        if (written == size && published - delivered / sockets + burst <= window) {
            written = size = 0;
            for (int i = 0; i < burst; i++) size += make_message(frames + size, server, 0, site, published++, 0);
        }
        if (written < size) {
            ssize_t wrote = write(fds[sockets], frames + written, size - written);
            if (wrote > 0) written += wrote;
            failed = wrote < 0 && errno != EAGAIN;
        }
        struct epoll_event events[512];
        int count = epoll_wait(epoll, events, 512, 1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            ssize_t got = read(fd, buffer, 1 << 18);
            failed |= got == 0 || (got < 0 && errno != EAGAIN);
            if (got > 0 && fd != fds[sockets]) { delivered += count_marks(buffer, got); bytes += got; }
            if (got > 0 && fd == fds[sockets] && refused) {
                failed |= memmem(buffer, got, refused, strlen(refused)) != 0;
            }
        }
    }
    result->deliveries = delivered - delivered_before;
    result->bytes = bytes - bytes_before;
    for (int i = 0; i <= sockets; i++) if (fds[i] >= 0) close(fds[i]);
    close(epoll);
    free(buffer);
    free(frames);
    free(fds);
    return failed ? -1 : 0;
}

int floor_read(int port, int sockets, double seconds, floor_result *result) {
    int epoll = epoll_create1(0), failed = 0;
    char *buffer = malloc(1 << 18);
    int *fds = malloc(sizeof(int) * sockets);
    for (int i = 0; i < sockets; i++) fds[i] = -1;
    for (int i = 0; i < sockets && !failed; i++) {
        fds[i] = open_socket(floor_load, port, 1);
        failed = fds[i] < 0 || !subscribe(fds[i], floor_load, 0, i);
        set_blocking(fds[i], 0);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        failed |= epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
    }
    long long delivered = 0, delivered_before = 0;
    double warm = now() + seconds / 5, end = warm + seconds, started = 0;
    while (!failed) {
        double time = now();
        if (!started && time >= warm) { started = time; delivered_before = delivered; }
        if (time >= end) { result->seconds = time - started; break; }
        struct epoll_event events[512];
        int count = epoll_wait(epoll, events, 512, 1);
        for (int i = 0; i < count; i++) {
            ssize_t got = read(events[i].data.fd, buffer, 1 << 18);
            failed |= got == 0 || (got < 0 && errno != EAGAIN);
            if (got > 0) delivered += count_marks(buffer, got);
        }
    }
    result->deliveries = delivered - delivered_before;
    for (int i = 0; i < sockets; i++) if (fds[i] >= 0) close(fds[i]);
    close(epoll);
    free(buffer);
    free(fds);
    return failed ? -1 : 0;
}
