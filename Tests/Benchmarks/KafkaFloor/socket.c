#define _GNU_SOURCE
#include "clock.h"
#include "kafka_floor.h"
#include "fan_out_floor.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// A minimal publisher on a gateway's socket: one thread writes the due events, and one thread reads acks.

typedef struct {
    int fd, count, through, failed;
    double *due, *micros, last_through, longest;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} publisher;

static int whole(int fd, char *bytes, size_t count, ssize_t (*move)(int, char *, size_t)) {
    for (size_t done = 0; done < count;) {
        ssize_t n = move(fd, bytes + done, count - done);
        if (n <= 0) return -1;
        done += n;
    }
    return 0;
}

static ssize_t get(int fd, char *bytes, size_t count) { return read(fd, bytes, count); }
static ssize_t put(int fd, char *bytes, size_t count) { return write(fd, bytes, count); }

// Reads the ops in the text of an ack. A refused event ends the run.
static void acked(publisher *p, const char *text, double at) {
    int is_ack = strstr(text, "\"t\":\"ack\"") != NULL;
    pthread_mutex_lock(&p->lock);
    if (!is_ack && strstr(text, "\"code\":")) p->failed = 1;
    for (const char *place = text; is_ack && (place = strstr(place, "\"op\":"));) {
        place += 5;
        long op = strtol(place, NULL, 10);
        if (op < 0 || op >= p->count) continue;
        p->through++;
        if (p->micros) p->micros[op] = at - p->due[op];
        if (at - p->last_through > p->longest) p->longest = at - p->last_through;
        p->last_through = at;
    }
    pthread_cond_signal(&p->moved);
    pthread_mutex_unlock(&p->lock);
}

static void *hear(void *context) {
    publisher *p = context;
    char *text = malloc(1 << 24);
    unsigned char head[10];
    while (whole(p->fd, (char *)head, 2, get) == 0) {
        size_t size = head[1] & 127;
        int more = size == 126 ? 2 : size == 127 ? 8 : 0;
        if (more && whole(p->fd, (char *)head + 2, more, get)) break;
        if (more) size = 0;
        for (int i = 0; i < more; i++) size = size << 8 | head[2 + i];
        if (size >= 1 << 24 || whole(p->fd, text, size, get)) break;
        text[size] = 0;
        if ((head[0] & 15) == 1) acked(p, text, now());
    }
    pthread_mutex_lock(&p->lock);
    p->failed |= p->through < p->count;
    pthread_cond_signal(&p->moved);
    pthread_mutex_unlock(&p->lock);
    free(text);
    return NULL;
}

// Turns a text into a masked frame with a zero mask, and returns the start of the frame. The text must have `head_max`
// free bytes before it.
enum { head_max = 14 };
static char *frame(char *text, size_t size) {
    int more = size < 126 ? 0 : size < 65536 ? 2 : 8;
    unsigned char *head = (unsigned char *)text - 6 - more;
    head[0] = 0x81;
    head[1] = 0x80 | (more == 0 ? size : more == 2 ? 126 : 127);
    for (int i = 0; i < more; i++) head[2 + i] = size >> (8 * (more - 1 - i));
    memset(head + 2 + more, 0, 4);
    return (char *)head;
}

int kafka_floor_publish_socket(int port, int count, int bytes, int depth, int per_frame, int per_second,
                               double *micros, kafka_floor_run *run) {
    static int runs;
    publisher p = {.fd = floor_open_gateway(port), .count = count, .micros = micros};
    if (p.fd < 0) return -1;
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.moved, NULL);
    p.due = calloc(count, sizeof(double));
    char *message = malloc(head_max + 256 + (size_t)per_frame * (bytes + 300)), *text = message + head_max;
    char fill[65536];
    // The members of an event besides its text, with those that the gateway adds.
    int bare = (int)strlen("{\"at\":1795285748235,\"base\":100000,\"fields\":{\"f\":\"\"},\"id\":\"o\",\"model\":\"m\",\"op\":100000,"
                           "\"site\":\"00000000-0000-4000-8000-000000000000\",\"type\":\"insert\"}");
    int pad = bytes > bare ? bytes - bare : 1;
    memset(fill, 'x', sizeof fill);
    int site = __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
    double begin = now();
    p.last_through = begin;
    pthread_t ears;
    pthread_create(&ears, NULL, hear, &p);
    for (int i = 0; i < count && !p.failed; i += per_frame) {
        if (per_second) {
            sleep_until(begin + i * (1e6 / per_second));
        } else {
            pthread_mutex_lock(&p.lock);
            while (i + per_frame - p.through > depth && !p.failed) pthread_cond_wait(&p.moved, &p.lock);
            pthread_mutex_unlock(&p.lock);
        }
        size_t size = sprintf(text, "{\"t\":\"publish\",\"stream\":\"bench\",\"events\":[");
        double sent = now();
        pthread_mutex_lock(&p.lock);
        for (int op = i; op < i + per_frame && op < count; op++) {
            p.due[op] = per_second ? begin + i * (1e6 / per_second) : sent;
            size += sprintf(text + size,
                            "%s{\"fields\":{\"f\":\"%.*s\"},\"id\":\"o\",\"model\":\"m\",\"op\":%d,"
                            "\"site\":\"%08x-%04x-4000-8000-000000000000\",\"type\":\"insert\"}",
                            op > i ? "," : "", pad, fill, op, (unsigned)getpid(), site & 0xffff);
        }
        pthread_mutex_unlock(&p.lock);
        size += sprintf(text + size, "]}");
        char *start = frame(text, size);
        if (whole(p.fd, start, text + size - start, put)) break;
    }
    pthread_mutex_lock(&p.lock);
    while (p.through < count && !p.failed) pthread_cond_wait(&p.moved, &p.lock);
    run->seconds = (now() - begin) / 1e6;
    run->longest_pause_ms = p.longest / 1e3;
    int result = p.failed ? -1 : 0;
    pthread_mutex_unlock(&p.lock);
    shutdown(p.fd, SHUT_RDWR);
    pthread_join(ears, NULL);
    close(p.fd);
    free(message);
    free(p.due);
    return result;
}
