#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// Clients that connect as fast as possible, and stay connected.

enum { connecting, upgrading, subscribing, there };

// The number of clients that start to connect before the events of the others are handled.
enum { at_once = 32 };

typedef struct {
    int fd, state, have;
    char in[message_max];
} client;

static int send_whole(int fd, const char *bytes, int size) { return write(fd, bytes, size) == size; }

static int begin(client *c, int port, int epoll, int index) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0) return 0;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) return 0;
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = index};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

// Continues the handshake of a client. Returns 0 if the server fails.
static int step(client *c, floor_server server, int epoll, int index) {
    char text[message_max], frame[2 * message_max];
    if (c->state == connecting) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
        int size = make_head(text, sizeof text, server, 1);
        c->state = upgrading;
        return send_whole(c->fd, text, size) && epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
    }
    ssize_t got = read(c->fd, c->in + c->have, sizeof c->in - 1 - c->have);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    c->have += got;
    c->in[c->have] = 0;
    if (c->state == upgrading && memmem(c->in, c->have, "\r\n\r\n", 4)) {
        if (memcmp(c->in, "HTTP/1.1 101", 12) != 0) return 0;
        const char *hello = hello_of(server);
        int size = hello ? make_frame(frame, hello, strlen(hello)) : 0;
        size += make_frame(frame + size, text, make_subscription(text, server, 0, index));
        c->state = subscribing;
        c->have = 0;
        return send_whole(c->fd, frame, size);
    }
    if (c->state == subscribing && memmem(c->in, c->have, subscribed_of(server), strlen(subscribed_of(server)))) {
        c->state = there;
        c->have = 0;
    } else if (c->state == there || c->have == sizeof c->in - 1) {
        // The text that is searched for may be split between two reads.
        int keep = c->state == there ? 0 : 64;
        memmove(c->in, c->in + c->have - keep, keep);
        c->have = keep;
    }
    return 1;
}

int floor_herd(floor_server server, int port, int count, int *fds, double *seconds) {
    int epoll = epoll_create1(0), begun = 0, done = 0, failed = 0;
    client *clients = calloc(count, sizeof *clients);
    double start = now(), end = start + 60;
    while (done < count && !failed && now() < end) {
        // Each client continues as soon as it can, and does not wait for the others. Clients on separate machines do
        // the same.
        for (int i = 0; i < at_once && begun < count && !failed; i++, begun++) {
            failed = !begin(&clients[begun], port, epoll, begun);
        }
        struct epoll_event events[512];
        int ready = epoll_wait(epoll, events, 512, begun < count ? 0 : 100);
        for (int i = 0; i < ready; i++) {
            client *c = &clients[events[i].data.u32];
            int was = c->state;
            failed |= !step(c, server, epoll, events[i].data.u32);
            done += was != there && c->state == there;
        }
    }
    *seconds = now() - start;
    failed |= done < count;
    for (int i = 0; i < count; i++) {
        fds[i] = clients[i].fd;
        if (failed && fds[i] > 0) close(fds[i]);
    }
    close(epoll);
    free(clients);
    return failed ? -1 : 0;
}
