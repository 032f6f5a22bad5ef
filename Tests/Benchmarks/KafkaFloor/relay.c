#define _GNU_SOURCE
#include "floor.h"
#include "clock.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// The minimum between a publisher's socket and librdkafka. One thread reads events from the socket and passes them to
// the producer. The thread of librdkafka that completes a record writes its ack.

enum { relay_bytes = 200, ops_max = 1 << 20, acks_room = 1 << 16 };

typedef struct {
    kafka_floor *floor;
    int fd, size;
    char acks[acks_room];
} socket_of_run;

static void send_acks(socket_of_run *s) {
    for (int done = 0; done < s->size;) {
        ssize_t n = send(s->fd, s->acks + done, s->size - done, MSG_NOSIGNAL);
        if (n <= 0) break;
        done += n;
    }
    s->size = 0;
}

static void ack(void *context, int number) {
    socket_of_run *s = context;
    // A refused record ends the run, because it gets no ack.
    if (s->floor->failed) shutdown(s->fd, SHUT_RDWR);
    if (number < 0 || s->size > acks_room - 128) send_acks(s);
    if (number < 0) return;
    char *frame = s->acks + s->size;
    int length = snprintf(frame + 2, 120, "{\"t\":\"ack\",\"acks\":[{\"op\":%d}]}", number);
    frame[0] = (char)0x81;
    frame[1] = (char)length;
    s->size += 2 + length;
}

static int whole(int fd, char *bytes, size_t count) {
    while (count > 0) {
        ssize_t n = recv(fd, bytes, count, 0);
        if (n <= 0) return 0;
        bytes += n;
        count -= n;
    }
    return 1;
}

// Answers any HTTP request with a successful upgrade.
static int upgrade(int fd) {
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    char last[4] = "";
    while (memcmp(last, "\r\n\r\n", 4) != 0) {
        memmove(last, last + 1, 3);
        if (!whole(fd, last + 3, 1)) return 0;
    }
    return send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) == sizeof answer - 1;
}

// Reads the text of the next frame. Returns 0 if there is none.
static int next_text(int fd, char *text, size_t room) {
    unsigned char head[8];
    if (!whole(fd, (char *)head, 2)) return 0;
    size_t length = head[1] & 127;
    if (length == 126) {
        if (!whole(fd, (char *)head, 2)) return 0;
        length = head[0] << 8 | head[1];
    }
    if (length >= room || !whole(fd, (char *)head, 4) || !whole(fd, text, length)) return 0;
    for (size_t i = 0; i < length; i++) text[i] ^= head[i & 3];
    text[length] = 0;
    return 1;
}

// Serves one publisher until it disconnects. Each publisher is a run of its own.
static void serve(kafka_floor *f, int fd) {
    char text[4096], value[relay_bytes];
    socket_of_run acks = {.floor = f, .fd = fd};
    memset(value, 'x', sizeof value);
    pthread_mutex_lock(&f->lock);
    floor_begin_run(f, ops_max, NULL);
    f->tell = ack;
    f->context = &acks;
    pthread_mutex_unlock(&f->lock);
    while (next_text(fd, text, sizeof text)) {
        const char *op = strstr(text, "\"op\":");
        if (op) floor_produce(f, f->run, atoi(op + 5), value, sizeof value);
    }
    pthread_mutex_lock(&f->lock);
    f->tell = NULL;
    floor_end_run(f);
    pthread_mutex_unlock(&f->lock);
}

static void run(int listener, const char *const *producer, const char *const *consumer, const char *topic,
                int partition) {
    char error[512];
    int on = 1;
    kafka_floor *floor = kafka_floor_open(producer, consumer, topic, partition, error, sizeof error);
    if (!floor) {
        fprintf(stderr, "the bare relay: %s\n", error);
        _exit(1);
    }
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (upgrade(fd)) serve(floor, fd);
        close(fd);
    }
}

int kafka_floor_relay(const char *const *producer, const char *const *consumer, const char *topic, int partition,
                      int *process) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *process = -1;
    if (bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0) *process = fork();
    if (*process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(listener, producer, consumer, topic, partition);
    }
    getsockname(listener, (struct sockaddr *)&at, &size);
    close(listener);
    return *process < 0 ? -1 : ntohs(at.sin_port);
}
