#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Deliveries of old messages to one client.

int floor_jetstream_begin(int port) {
    static const char config[] = "{\"name\":\"FAN\",\"subjects\":[\"fan0\"],\"storage\":\"file\",\"num_replicas\":1}";
    char text[message_max];
    int fd = open_socket(floor_jetstream, port, 0);
    snprintf(text, sizeof text, "SUB in.s 1\r\nPUB $JS.API.STREAM.CREATE.FAN in.s %zu\r\n%s\r\n", strlen(config), config);
    int begun = fd >= 0 && say(fd, text) && await(fd, "\"created\"");
    if (fd >= 0) close(fd);
    return begun ? 0 : -1;
}

// Writes the request for an ordered consumer: all messages from the first one, in order, with the server's flow
// control.
static int ask_for_all(char *text, floor_server server) {
    static const char config[] =
        "{\"stream_name\":\"FAN\",\"config\":{\"deliver_subject\":\"all\",\"ack_policy\":\"none\",\"deliver_policy\":"
        "\"all\",\"flow_control\":true,\"idle_heartbeat\":5000000000,\"max_deliver\":1,\"mem_storage\":true}}";
    if (server == floor_reel) return sprintf(text, "{\"t\":\"subscribe\",\"stream\":\"bench\",\"after\":-1}");
    return sprintf(text, "SUB all 1\r\nSUB in.c 2\r\nPUB $JS.API.CONSUMER.CREATE.FAN in.c %zu\r\n%s\r\n", strlen(config),
                   config);
}

// Confirms the position of a consumer if the server asks for it. The subject of the answer starts with "$JS.FC.".
static int answer_flow_control(int fd, const char *bytes, ssize_t size) {
    static const char asks[] = "$JS.FC.";
    const char *place = memmem(bytes, size, asks, sizeof asks - 1);
    if (!place) return 1;
    char text[message_max];
    int length = 0;
    while (place + length < bytes + size && place[length] > ' ') length++;
    if (place + length == bytes + size || length > 200) return 1;
    snprintf(text, sizeof text, "PUB %.*s 0\r\n\r\n", length, place);
    return say(fd, text);
}

int floor_jetstream_fill(int port, long long count) {
    enum { window = 4096 };
    char text[2 * message_max], frame[2 * message_max], fill[payload + 1], *buffer = malloc(1 << 16);
    int fd = open_socket(floor_jetstream, port, 0), failed = fd < 0 || !say(fd, "SUB in.p 1\r\n");
    memset(fill, 'x', sizeof fill);
    fill[0] = mark;
    int length = snprintf(text, sizeof text, "PUB fan0 in.p %d\r\n%.*s\r\n", payload, payload, fill);
    int size = make_frame(frame, text, length);
    long long sent = 0, acked = 0;
    while (acked < count && !failed) {
        while (sent < count && sent - acked < window && !failed) failed = write(fd, frame, size) != size || !++sent;
        ssize_t got = read(fd, buffer, 1 << 16);
        failed |= got <= 0;
        // An ack is one small JSON object.
        for (ssize_t i = 0; i < got; i++) acked += buffer[i] == '}';
    }
    if (fd >= 0) close(fd);
    free(buffer);
    return failed ? -1 : 0;
}

double floor_replay(floor_server server, int port, long long count) {
    char text[2 * message_max], *buffer = malloc(1 << 20);
    int fd = open_socket(server, port, 1), failed = fd < 0 || !ask_for_all(text, server);
    double start = now();
    failed |= !say(fd, text);
    long long seen = 0;
    while (seen < count && !failed) {
        ssize_t got = read(fd, buffer, 1 << 20);
        failed |= got <= 0;
        if (got > 0) seen += count_marks(buffer, got);
        if (server == floor_jetstream) failed |= !answer_flow_control(fd, buffer, got);
    }
    double taken = now() - start;
    if (fd >= 0) close(fd);
    free(buffer);
    return failed ? -1 : taken;
}

// The entries of a Redis stream have the ids 1-1, 1-2, …, so a request can be sent before the answer to the last one.
enum { entries_each = 1000, asked_ahead = 8 };

static int write_whole(int fd, const char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(fd, bytes + done, size - done);
        if (wrote <= 0) return 0;
        done += wrote;
    }
    return 1;
}

int floor_redis_fill(int port, long long count) {
    char *commands = malloc((size_t)entries_each * message_max), *buffer = malloc(1 << 16), id[32], fill[payload + 1];
    int fd = socket(AF_INET, SOCK_STREAM, 0), failed = !connect_to(fd, port);
    memset(fill, 'x', sizeof fill);
    fill[0] = mark;
    for (long long added = 0; added < count && !failed;) {
        size_t size = 0;
        long long end = added + entries_each < count ? added + entries_each : count, lines = 2 * (end - added);
        while (added < end) {
            int length = sprintf(id, "1-%lld", ++added);
            size += sprintf(commands + size,
                            "*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$%d\r\n%s\r\n$1\r\nv\r\n$%d\r\n%.*s\r\n",
                            length, id, payload, payload, fill);
        }
        failed = !write_whole(fd, commands, size);
        // A reply has two lines: its length, and the number of the entry. An error has one line, so too few lines
        // arrive.
        while (lines > 0 && !failed) {
            ssize_t got = read(fd, buffer, 1 << 16);
            failed = got <= 0;
            for (ssize_t i = 0; i < got; i++) lines -= buffer[i] == '\n';
        }
    }
    if (fd >= 0) close(fd);
    free(commands);
    free(buffer);
    return failed ? -1 : 0;
}

static int ask_for_entries(int fd, long long after) {
    char id[32], text[message_max];
    int length = sprintf(id, "1-%lld", after);
    int size = sprintf(text,
                       "*6\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$4\r\n%d\r\n$7\r\nSTREAMS\r\n$1\r\ns\r\n"
                       "$%d\r\n%s\r\n",
                       entries_each, length, id);
    return write(fd, text, size) == size;
}

double floor_redis_replay(int port, long long count) {
    char *buffer = malloc(1 << 20);
    int fd = socket(AF_INET, SOCK_STREAM, 0), failed = !connect_to(fd, port);
    long long asked = 0, seen = 0;
    double start = now();
    while (seen < count && !failed) {
        while (asked < count && asked - seen <= entries_each * (asked_ahead - 1) && !failed) {
            failed = !ask_for_entries(fd, asked);
            asked += entries_each;
        }
        ssize_t got = failed ? -1 : read(fd, buffer, 1 << 20);
        failed |= got <= 0;
        if (got > 0) seen += count_marks(buffer, got);
    }
    double taken = now() - start;
    if (fd >= 0) close(fd);
    free(buffer);
    return failed ? -1 : taken;
}
