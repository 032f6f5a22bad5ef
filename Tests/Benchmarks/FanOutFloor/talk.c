#define _GNU_SOURCE
#include "talk.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

typedef struct {
    const char *subscriber_path, *publisher_path, *hello, *subscribed, *refused;
} speech;

static const char reel_hello[] = "{\"t\":\"hello\",\"client\":\"bench/1\"}";
static const char nats_hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";

static const speech speeches[] = {
    [floor_bare] = {"/sub", "/pub", 0, 0, 0},
    [floor_reel] = {"/v1/socket", "/v1/socket", reel_hello, "\"subscribed\"", "\"code\""},
    [floor_load] = {"/v1/socket", 0, reel_hello, "\"subscribed\"", "\"code\""},
    [floor_nats] = {"/", "/", nats_hello, "PONG", "-ERR"},
    [floor_jetstream] = {"/", "/", nats_hello, "consumer_create_response", "-ERR"},
};

const char *hello_of(floor_server server) { return speeches[server].hello; }
const char *refusal_of(floor_server server) { return speeches[server].refused; }
const char *subscribed_of(floor_server server) { return speeches[server].subscribed; }

int make_subscription(char *text, floor_server server, int stream, int client) {
    char config[256];
    switch (server) {
    case floor_bare: return 0;
    case floor_reel:
        return sprintf(text, "{\"t\":\"subscribe\",\"stream\":\"fan%d\",\"after\":\"now\"}", stream);
    case floor_load: return sprintf(text, "{\"t\":\"subscribe\",\"stream\":\"load\",\"after\":\"now\"}");
    case floor_nats: return sprintf(text, "SUB fan%d %d\r\nPING\r\n", stream, stream + 1);
    case floor_jetstream: {
        // Each client has a consumer of its own, whose position the server stores. The server removes the consumers of
        // earlier runs after one second.
        int size = sprintf(config,
                           "{\"stream_name\":\"FAN\",\"config\":{\"deliver_subject\":\"to.%d\",\"ack_policy\":\"none\","
                           "\"deliver_policy\":\"new\",\"replay_policy\":\"instant\","
                           "\"inactive_threshold\":1000000000}}", client);
        return sprintf(text, "SUB to.%d 1\r\nSUB in.%d 2\r\nPUB $JS.API.CONSUMER.CREATE.FAN in.%d %d\r\n%s\r\n",
                       client, client, client, size, config);
    }
    }
    return 0;
}

int make_frame(char *frame, const char *text, int length) {
    int size = 0;
    frame[size++] = (char)0x81;
    if (length < 126) {
        frame[size++] = (char)(0x80 | length);
    } else {
        frame[size++] = (char)(0x80 | 126);
        frame[size++] = (char)(length >> 8);
        frame[size++] = (char)length;
    }
    // The mask is zero. This is valid, and saves processor time of the reader.
    memset(frame + size, 0, 4);
    memcpy(frame + size + 4, text, length);
    return size + 4 + length;
}

int make_message(char *frame, floor_server server, int stream, int site, long long number, long long digits) {
    char text[message_max], fill[payload + 1];
    memset(fill, 'x', sizeof fill);
    snprintf(fill, 18, "%c%016lld", mark, digits);
    fill[17] = 'x';
    int length = 0;
    switch (server) {
    case floor_bare:
        length = snprintf(text, sizeof text, "%.*s", payload, fill);
        break;
    case floor_reel:
        length = snprintf(text, sizeof text,
                          "{\"t\":\"publish\",\"stream\":\"fan%d\",\"events\":[{\"fields\":{\"a\":\"%.55s\"},\"id\":\"1\","
                          "\"model\":\"m\",\"op\":%lld,\"site\":\"00000000-0000-4000-8000-%012x\",\"type\":\"insert\"}]}",
                          stream, fill, number, site);
        break;
    case floor_load:
        return 0;
    case floor_nats:
    case floor_jetstream:
        length = snprintf(text, sizeof text, "PUB fan%d %d\r\n%.*s\r\n", stream, payload, payload, fill);
        break;
    }
    return make_frame(frame, text, length);
}

int say(int fd, const char *text) {
    char frame[2 * message_max];
    int size = make_frame(frame, text, strlen(text));
    return write(fd, frame, size) == size;
}

int await(int fd, const char *text) {
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

// A loop over each byte would use more time than the reads, and would limit a replay.
long long count_marks(const char *bytes, size_t size) {
    long long count = 0;
    const char *end = bytes + size;
    while ((bytes = memchr(bytes, mark, end - bytes))) {
        count++;
        bytes++;
    }
    return count;
}

void set_blocking(int fd, int blocks) { fcntl(fd, F_SETFL, blocks ? 0 : O_NONBLOCK); }

int make_head(char *head, size_t size, floor_server server, int subscribes) {
    const speech *speech = &speeches[server];
    return snprintf(head, size,
                    "GET %s HTTP/1.1\r\nHost: floor\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    "Sec-WebSocket-Protocol: reel.v1\r\n\r\n",
                    subscribes ? speech->subscriber_path : speech->publisher_path);
}

int connect_to(int fd, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return 1;
}

int shake_hands(int fd, floor_server server, int subscribes) {
    char head[message_max];
    int have = 0, size = make_head(head, sizeof head, server, subscribes);
    if (write(fd, head, size) != size) return 0;
    while (have < 4 || memcmp(head + have - 4, "\r\n\r\n", 4) != 0) {
        if (have == sizeof head || read(fd, head + have, 1) != 1) return 0;
        have++;
    }
    if (memcmp(head, "HTTP/1.1 101", 12) != 0) return 0;
    return !hello_of(server) || say(fd, hello_of(server));
}

int open_socket(floor_server server, int port, int subscribes) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect_to(fd, port) && shake_hands(fd, server, subscribes)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

int subscribe(int fd, floor_server server, int stream, int client) {
    char text[message_max];
    if (!make_subscription(text, server, stream, client)) return 1;
    return say(fd, text) && await(fd, subscribed_of(server));
}

int floor_open(int port, const char *path) {
    return open_socket(floor_bare, port, strcmp(path, "/sub") == 0);
}

int floor_open_gateway(int port) { return open_socket(floor_reel, port, 0); }
