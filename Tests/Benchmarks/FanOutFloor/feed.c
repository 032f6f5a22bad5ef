#define _GNU_SOURCE
#include "fan_out_floor.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// A gateway that only sends: each subscribed reader gets the same frames of events, as fast as the slowest one reads.

enum { reader_max = 16384, head_max = 1024, event_max = 400 };
enum { waiting, greeted, welcome_said, listening };

typedef struct {
    int state;
    char head[head_max];
    size_t head_size, sent;
} reader;

static reader *readers[reader_max];
static int fds[reader_max], count, listener, poller, per_frame;
static char *frame;
static size_t frame_size;
static long long next_seq;

static void drop(int index) {
    close(fds[index]);
    free(readers[index]);
    fds[index] = fds[--count];
    readers[index] = readers[count];
}

static size_t text_frame(char *out, size_t payload) {
    out[0] = (char)0x81;
    if (payload < 126) { out[1] = (char)payload; return 2; }
    if (payload < 65536) { out[1] = 126; out[2] = (char)(payload >> 8); out[3] = (char)payload; return 4; }
    out[1] = 127;
    for (int i = 0; i < 8; i++) out[2 + i] = (char)(payload >> (56 - 8 * i));
    return 10;
}

static void say(int fd, const char *text) {
    char out[1024];
    size_t length = strlen(text), head = text_frame(out, length);
    memcpy(out + head, text, length);
    if (write(fd, out, head + length) < 0) return;
}

static void make_frame(void) {
    static char body[event_max * 256];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long due = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
    int size = sprintf(body, "{\"t\":\"events\",\"stream\":\"load\",\"from\":%lld,\"to\":%lld,\"events\":[", next_seq,
                       next_seq + per_frame - 1);
    for (int i = 0; i < per_frame; i++, next_seq++) {
        size += sprintf(body + size,
                        "%s{\"seq\":%lld,\"at\":1795285748235,\"base\":%lld,\"fields\":{\"due\":%lld,\"fill\":\"#abcdefghij\"},"
                        "\"id\":\"1\",\"model\":\"load\",\"op\":%lld,\"site\":\"00000000-0000-4000-8000-000000000001\","
                        "\"type\":\"update\"}", i ? "," : "", next_seq, next_seq - 1, due, next_seq);
    }
    size += sprintf(body + size, "]}");
    size_t head = text_frame(frame, size);
    memcpy(frame + head, body, size);
    frame_size = head + size;
}

// Returns the size of the handshake, or of the first message after it, whatever it contains. Returns 0 if it is
// incomplete.
static size_t message_size(const reader *r) {
    const unsigned char *head = (const unsigned char *)r->head;
    if (r->state == waiting) {
        const char *end = strstr(r->head, "\r\n\r\n");
        return end ? end + 4 - r->head : 0;
    }
    if (r->head_size < 4) return 0;
    size_t length = head[1] & 127, size = 2 + 4 + length;
    if (length == 126) size = 4 + 4 + (head[2] << 8 | head[3]);
    return r->head_size < size ? 0 : size;
}

static int answer(int index) {
    reader *r = readers[index];
    char text[256];
    if (r->state == waiting) {
        char *key = strcasestr(r->head, "sec-websocket-key: "), joined[128], accept[512];
        unsigned char hash[64], base64[64];
        unsigned hash_size = 0;
        if (!key) return 0;
        int size = snprintf(joined, sizeof joined, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key + 19);
        EVP_Digest(joined, size, hash, &hash_size, EVP_sha1(), 0);
        EVP_EncodeBlock(base64, hash, hash_size);
        size = snprintf(accept, sizeof accept,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: reel.v1\r\n\r\n", base64);
        if (write(fds[index], accept, size) != size) return 0;
        r->state = greeted;
    } else if (r->state == greeted) {
        say(fds[index], "{\"t\":\"welcome\",\"node\":\"feed\",\"epoch\":\"00000000000000aa\",\"partitions\":1,\"limits\":"
            "{\"frame\":1048576,\"event\":262144,\"batch\":1000,\"subscriptions\":1000,\"fetch\":100000},\"ping_s\":30}");
        r->state = welcome_said;
    } else if (r->state == welcome_said) {
        snprintf(text, sizeof text, "{\"t\":\"subscribed\",\"stream\":\"load\",\"epoch\":\"00000000000000aa\","
                 "\"partition\":0,\"first\":0,\"head\":%lld,\"after\":%lld}", next_seq - 1, next_seq - 1);
        say(fds[index], text);
        r->state = listening;
        r->sent = frame_size;
    }
    return 1;
}

// Reads the bytes of a reader, which may contain several messages or a part of one.
static void take(int index) {
    reader *r = readers[index];
    ssize_t got = recv(fds[index], r->head + r->head_size, head_max - 1 - r->head_size, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return drop(index);
    if (got < 0) return;
    r->head_size += got;
    r->head[r->head_size] = 0;
    for (size_t size; r->head_size > 0 && (size = message_size(r)) > 0;) {
        if (!answer(index)) return drop(index);
        r->head_size -= size;
        memmove(r->head, r->head + size, r->head_size + 1);
    }
}

static void *feed(void *unused) {
    struct epoll_event events[1024];
    for (;;) {
        int ready = epoll_wait(poller, events, 1024, 0), left = 0, listeners = 0;
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd != listener) continue;
            int fd, on = 1;
            while (count < reader_max && (fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                readers[count] = calloc(1, sizeof(reader));
                fds[count++] = fd;
            }
        }
        for (int i = count - 1; i >= 0; i--) {
            if (readers[i]->state != listening) { take(i); continue; }
            listeners++;
            if (readers[i]->sent == frame_size) continue;
            ssize_t sent = send(fds[i], frame + readers[i]->sent, frame_size - readers[i]->sent, MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN) { drop(i); continue; }
            if (sent > 0) readers[i]->sent += sent;
            left += readers[i]->sent < frame_size;
        }
        if (!listeners) usleep(500);
        if (left || !listeners) continue;
        make_frame();
        for (int i = 0; i < count; i++) readers[i]->sent = 0;
    }
    return unused;
}

int floor_feed(int events_per_frame) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;
    if (events_per_frame < 1 || events_per_frame > 200) return -1;
    per_frame = events_per_frame;
    frame = malloc(event_max * 256 + 16);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    poller = epoll_create1(0);
    if (bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 4096) < 0) return -1;
    getsockname(listener, (struct sockaddr *)&at, &size);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    return pthread_create(&thread, 0, feed, 0) == 0 ? ntohs(at.sin_port) : -1;
}
