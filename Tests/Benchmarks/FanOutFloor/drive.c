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

// What is said behind the handshake, what shows that it was understood, and how a refused message shows.
typedef struct {
    const char *subscriber_path, *publisher_path, *hello, *subscribe, *subscribed, *refused;
} speech;

static const speech speeches[] = {
    [floor_bare] = {"/sub", "/pub", 0, 0, 0, 0},
    [floor_reel] = {"/v1/socket", "/v1/socket", "{\"t\":\"hello\",\"client\":\"bench/1\"}",
                    "{\"t\":\"subscribe\",\"stream\":\"fan\",\"after\":\"now\"}", "\"subscribed\"", "\"code\""},
    [floor_load] = {"/v1/socket", 0, "{\"t\":\"hello\",\"client\":\"bench/1\"}",
                    "{\"t\":\"subscribe\",\"stream\":\"load\",\"after\":\"now\"}", "\"subscribed\"", "\"code\""},
    [floor_nats] = {"/", "/", "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n", "SUB fan 1\r\nPING\r\n", "PONG",
                    "-ERR"},
};

enum { payload = 200, frame_max = 512 };

// Stands once in each message, however a server wraps it, and nowhere else.
static const char mark = '#';

// A masked text frame; the mask is zero, which is legal and spares the reader's core.
static int make_frame(char *frame, const char *text, int length) {
    int size = 0;
    frame[size++] = (char)0x81;
    if (length < 126) {
        frame[size++] = (char)(0x80 | length);
    } else {
        frame[size++] = (char)(0x80 | 126);
        frame[size++] = (char)(length >> 8);
        frame[size++] = (char)length;
    }
    memset(frame + size, 0, 4);
    memcpy(frame + size + 4, text, length);
    return size + 4 + length;
}

// A message of 200 bytes; of Reel the event as it stands in the log, with the stamps that the gateway adds.
static int make_message(char *frame, floor_server server, int site, long long number) {
    char text[frame_max], fill[payload];
    memset(fill, 'x', sizeof fill);
    fill[0] = mark;
    int length;
    switch (server) {
    case floor_bare:
        length = snprintf(text, sizeof text, "%.*s", payload, fill);
        break;
    case floor_reel:
        length = snprintf(text, sizeof text,
                          "{\"t\":\"publish\",\"stream\":\"fan\",\"events\":[{\"fields\":{\"a\":\"%.55s\"},\"id\":\"1\","
                          "\"model\":\"m\",\"op\":%lld,\"site\":\"00000000-0000-4000-8000-%012x\",\"type\":\"insert\"}]}",
                          fill, number, site);
        break;
    case floor_load:
        return 0;
    case floor_nats:
        length = snprintf(text, sizeof text, "PUB fan %d\r\n%.*s\r\n", payload, payload, fill);
        break;
    }
    return make_frame(frame, text, length);
}

static int say(int fd, const char *text) {
    char frame[frame_max];
    int size = make_frame(frame, text, strlen(text));
    return write(fd, frame, size) == size;
}

// Reads until a text has come; what follows it in the same read is dropped.
static int await(int fd, const char *text) {
    char bytes[4096];
    size_t have = 0;
    while (have < sizeof bytes) {
        ssize_t got = read(fd, bytes + have, sizeof bytes - have);
        if (got <= 0) return 0;
        have += got;
        if (memmem(bytes, have, text, strlen(text))) return 1;
    }
    return 0;
}

// A WebSocket on a blocking socket, switched to non-blocking at the end; -1 if it was refused.
static int open_socket(int port, const char *path, const speech *speech, int subscribes) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, have = 0;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    char head[512];
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) goto refused;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int size = snprintf(head, sizeof head,
                        "GET %s HTTP/1.1\r\nHost: floor\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                        "Sec-WebSocket-Protocol: reel.v1\r\n\r\n", path);
    if (write(fd, head, size) != size) goto refused;
    while (have < 4 || memcmp(head + have - 4, "\r\n\r\n", 4) != 0) {
        if (have == sizeof head || read(fd, head + have, 1) != 1) goto refused;
        have++;
    }
    if (memcmp(head, "HTTP/1.1 101", 12) != 0) goto refused;
    if (speech->hello && !say(fd, speech->hello)) goto refused;
    if (subscribes && speech->subscribe && !(say(fd, speech->subscribe) && await(fd, speech->subscribed))) goto refused;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
refused:
    if (fd >= 0) close(fd);
    return -1;
}

int floor_open(int port, const char *path) { return open_socket(port, path, &speeches[floor_bare], 0); }

int floor_open_gateway(int port) {
    int fd = open_socket(port, speeches[floor_reel].publisher_path, &speeches[floor_reel], 0);
    if (fd >= 0) fcntl(fd, F_SETFL, 0);
    return fd;
}

static long long count_marks(const char *bytes, ssize_t size) {
    long long count = 0;
    for (ssize_t i = 0; i < size; i++) count += bytes[i] == mark;
    return count;
}

int floor_drive(floor_server server, int port, int sockets, int window, double seconds, floor_result *result) {
    static int runs;
    const speech *speech = &speeches[server];
    int burst = window / 2, epoll = epoll_create1(0), failed = 0, site = runs++;
    char *buffer = malloc(1 << 18), *frames = malloc((size_t)burst * frame_max);
    int *fds = malloc(sizeof(int) * (sockets + 1));
    for (int i = 0; i <= sockets; i++) fds[i] = -1;
    for (int i = 0; i <= sockets && !failed; i++) {
        int subscribes = i < sockets;
        fds[i] = open_socket(port, subscribes ? speech->subscriber_path : speech->publisher_path, speech, subscribes);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        failed = fds[i] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
    }
    long long published = 0, delivered = 0, delivered_before = 0;
    double warm = now() + seconds / 5, end = warm + seconds, started = 0;
    size_t size = 0, written = 0; // of a burst
    while (!failed) {
        double time = now();
        if (!started && time >= warm) { started = time; delivered_before = delivered; }
        if (time >= end) { result->seconds = time - started; break; }
        if (written == size && published - delivered / sockets + burst <= window) {
            written = size = 0;
            for (int i = 0; i < burst; i++) size += make_message(frames + size, server, site, published++);
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
            if (got > 0 && fd != fds[sockets]) delivered += count_marks(buffer, got);
            if (got > 0 && fd == fds[sockets] && speech->refused) {
                failed |= memmem(buffer, got, speech->refused, strlen(speech->refused)) != 0;
            }
        }
    }
    result->deliveries = delivered - delivered_before;
    for (int i = 0; i <= sockets; i++) if (fds[i] >= 0) close(fds[i]);
    close(epoll);
    free(buffer);
    free(frames);
    free(fds);
    return failed ? -1 : 0;
}

int floor_read(int port, int sockets, double seconds, floor_result *result) {
    const speech *speech = &speeches[floor_load];
    int epoll = epoll_create1(0), failed = 0;
    char *buffer = malloc(1 << 18);
    int *fds = malloc(sizeof(int) * sockets);
    for (int i = 0; i < sockets; i++) fds[i] = -1;
    for (int i = 0; i < sockets && !failed; i++) {
        fds[i] = open_socket(port, speech->subscriber_path, speech, 1);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        failed = fds[i] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
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
