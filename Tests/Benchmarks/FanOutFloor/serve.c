#define _GNU_SOURCE
#include "fan_out_floor.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// A connection: bytes of an incomplete frame, and bytes that the kernel has not accepted yet.
typedef struct {
    char *in, *out;
    size_t in_size, out_size;
    int open, index;
} peer;

enum { max_peers = 4096, read_size = 1 << 16, block = 4096, log_size = 64 << 20 };
static peer peers[max_peers];
static int subscribers[max_peers], subscriber_count, epoll_fd, listen_fd;

// Messages go to the streams in turn; `next_stream` is the next one. Each subscriber has `subscriptions` consecutive
// streams. If both numbers are 1, every subscriber gets every message.
static int streams = 1, subscriptions = 1, next_stream;

// The file to which messages are written before they are sent; -1 without a file.
static int log_fd = -1;
static long log_end;

static void drop(int fd) {
    peer *p = &peers[fd];
    if (p->index >= 0) {
        subscribers[p->index] = subscribers[--subscriber_count];
        peers[subscribers[p->index]].index = p->index;
    }
    free(p->in);
    free(p->out);
    memset(p, 0, sizeof *p);
    close(fd);
}

static void watch(int fd, int operation, int writable) {
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.fd = fd};
    epoll_ctl(epoll_fd, operation, fd, &event);
}

static void put(int fd, const char *bytes, size_t size) {
    peer *p = &peers[fd];
    ssize_t wrote = p->out_size > 0 ? 0 : send(fd, bytes, size, MSG_NOSIGNAL);
    if (wrote < 0) wrote = 0;
    if ((size_t)wrote == size) return;
    if (p->out_size == 0) watch(fd, EPOLL_CTL_MOD, 1);
    p->out = realloc(p->out, p->out_size + size - wrote);
    memcpy(p->out + p->out_size, bytes + wrote, size - wrote);
    p->out_size += size - wrote;
}

static void put_rest(int fd) {
    peer *p = &peers[fd];
    ssize_t wrote = send(fd, p->out, p->out_size, MSG_NOSIGNAL);
    if (wrote <= 0) return;
    p->out_size -= wrote;
    memmove(p->out, p->out + wrote, p->out_size);
    if (p->out_size == 0) watch(fd, EPOLL_CTL_MOD, 0);
}

static void greet(int fd) {
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    peer *p = &peers[fd];
    if (p->in_size < 4 || memcmp(p->in + p->in_size - 4, "\r\n\r\n", 4) != 0) return;
    p->open = 1;
    if (memcmp(p->in, "GET /sub", 8) == 0) {
        p->index = subscriber_count;
        subscribers[subscriber_count++] = fd;
    }
    p->in_size = 0;
    put(fd, answer, sizeof answer - 1);
}

// Writes the bytes in whole blocks and waits for the disk. The file already has its full length. At its end, writing
// starts again at the beginning.
static void keep(const char *bytes, size_t size) {
    size_t length = (size + block - 1) / block * block;
    if (log_end + length > log_size) log_end = 0;
    if (pwrite(log_fd, bytes, length, log_end) != (ssize_t)length || fdatasync(log_fd) != 0) abort();
    log_end += length;
}

static int open_log(const char *path) {
    static char zeros[1 << 20];
    log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < log_size / (int)sizeof zeros; i++) {
        if (write(log_fd, zeros, sizeof zeros) != sizeof zeros) return 0;
    }
    return fsync(log_fd) == 0;
}

// Writes one frame to the subscribers of the next stream.
static void put_to_stream(const char *frame, size_t size) {
    int groups = streams / subscriptions;
    for (int i = next_stream / subscriptions; i < subscriber_count; i += groups) put(subscribers[i], frame, size);
    next_stream = (next_stream + 1) % streams;
}

// Turns all complete frames of a publisher into server frames. With one stream, all frames are one write to each
// subscriber. Otherwise, each frame is written to the subscribers of its stream.
static void broadcast(int fd) {
    static char *out;
    static size_t room;
    peer *p = &peers[fd];
    if (room < p->in_size + block) out = realloc(out, room = p->in_size + block);
    size_t from = 0, to = 0;
    while (p->in_size - from >= 2) {
        unsigned char *f = (unsigned char *)p->in + from;
        size_t length = f[1] & 0x7F, head = length == 126 ? 4 : 2;
        if (p->in_size - from < head + 4) break;
        if (length == 126) length = f[2] << 8 | f[3];
        if (p->in_size - from < head + 4 + length) break;
        memcpy(out + to, f, head);
        out[to + 1] &= 0x7F;
        for (size_t i = 0; i < length; i++) out[to + head + i] = f[head + 4 + i] ^ f[head + (i & 3)];
        from += head + 4 + length;
        to += head + length;
    }
    p->in_size -= from;
    memmove(p->in, p->in + from, p->in_size);
    if (log_fd >= 0 && to > 0) keep(out, to);
    if (streams == 1) {
        for (int i = 0; i < subscriber_count && to > 0; i++) put(subscribers[i], out, to);
        return;
    }
    for (size_t at = 0, size; at < to; at += size) {
        const unsigned char *f = (unsigned char *)out + at;
        size = f[1] == 126 ? 4 + (f[2] << 8 | f[3]) : 2 + f[1];
        put_to_stream(out + at, size);
    }
}

static void take(int fd) {
    peer *p = &peers[fd];
    p->in = realloc(p->in, p->in_size + read_size);
    ssize_t got = recv(fd, p->in + p->in_size, read_size, 0);
    if (got <= 0) return drop(fd);
    p->in_size += got;
    if (p->open) broadcast(fd); else greet(fd);
}

static void *serve(void *unused) {
    struct epoll_event events[512];
    for (;;) {
        int count = epoll_wait(epoll_fd, events, 512, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd, on = 1;
            if (fd == listen_fd) {
                int accepted = accept4(listen_fd, 0, 0, SOCK_NONBLOCK);
                if (accepted < 0 || accepted >= max_peers) continue;
                setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                peers[accepted].index = -1;
                watch(accepted, EPOLL_CTL_ADD, 0);
            } else {
                if (events[i].events & EPOLLOUT) put_rest(fd);
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take(fd);
            }
        }
    }
    return unused;
}

static int begin_listening(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    epoll_fd = epoll_create1(0);
    if (bind(listen_fd, (struct sockaddr *)&at, size) < 0 || listen(listen_fd, 1024) < 0) return -1;
    getsockname(listen_fd, (struct sockaddr *)&at, &size);
    watch(listen_fd, EPOLL_CTL_ADD, 0);
    return ntohs(at.sin_port);
}

int floor_serve(void) {
    pthread_t thread;
    int port = begin_listening();
    return port >= 0 && pthread_create(&thread, 0, serve, 0) == 0 ? port : -1;
}

int floor_serve_apart(int of_streams, int each, const char *log, int *process) {
    *process = -1;
    if (of_streams % each != 0 || (log && !open_log(log))) return -1;
    int port = begin_listening();
    if (port >= 0) *process = fork();
    if (*process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        streams = of_streams;
        subscriptions = each;
        serve(0);
    }
    close(listen_fd);
    close(epoll_fd);
    if (log_fd >= 0) close(log_fd);
    log_fd = -1;
    return *process < 0 ? -1 : port;
}
