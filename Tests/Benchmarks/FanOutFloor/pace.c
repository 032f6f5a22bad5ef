#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// Messages at a fixed rate. Each message contains the time at which it was due, and its latency starts at that time. So
// a slow server cannot hide its delay.

enum { digits = 16, micros_max = 1 << 21 };

typedef struct {
    floor_server server;
    int fd, streams, per_second, site, failed;
    double begin, seconds;
    atomic_llong said;
} publisher;

static void sleep_until(double time) {
    struct timespec t = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - (time_t)time) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static void *publish(void *context) {
    publisher *p = context;
    char frame[message_max];
    long long total = (long long)(p->seconds * p->per_second);
    for (long long i = 0; i < total && !p->failed; i++) {
        double due = p->begin + (double)i / p->per_second;
        sleep_until(due);
        // A site numbers its events in each stream from 0.
        int stream = (int)(i % p->streams);
        int size = make_message(frame, p->server, stream, p->site, i / p->streams, (long long)(due * 1e6));
        if (write(p->fd, frame, size) != size) p->failed = 1;
        atomic_store(&p->said, i + 1);
    }
    return NULL;
}

// The bytes of a message whose digits have not all arrived.
typedef struct { char have[digits + 1]; int size; } rest;

static int number(const char *text, long long *value) {
    *value = 0;
    for (int i = 0; i < digits; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        *value = *value * 10 + (text[i] - '0');
    }
    return 1;
}

static void count_one(unsigned *histogram, const char *text, long long at, floor_result *result) {
    long long due;
    if (!number(text, &due)) return;
    long long late = at - due;
    histogram[late < 0 ? 0 : late >= micros_max ? micros_max - 1 : late]++;
    result->deliveries++;
}

static void take(rest *r, const char *bytes, ssize_t size, long long at, unsigned *histogram, floor_result *result) {
    const char *next = bytes, *end = bytes + size;
    if (r->size > 0) {
        int more = digits + 1 - r->size;
        if (more > size) more = size;
        memcpy(r->have + r->size, bytes, more);
        r->size += more;
        if (r->size < digits + 1) return;
        count_one(histogram, r->have + 1, at, result);
        r->size = 0;
        next += more;
    }
    while ((next = memchr(next, mark, end - next))) {
        if (end - next < digits + 1) {
            r->size = end - next;
            memcpy(r->have, next, r->size);
            return;
        }
        count_one(histogram, next + 1, at, result);
        next += digits + 1;
    }
}

static double percentile(const unsigned *histogram, long long count, double part) {
    long long seen = 0;
    for (int i = 0; i < micros_max; i++) {
        seen += histogram[i];
        if (seen > 0 && seen >= count * part) return i;
    }
    return micros_max;
}

int floor_pace(floor_server server, int port, int sockets, int streams, int subscriptions, int per_second,
               double seconds, floor_started started, void *context, floor_result *result) {
    static int runs = 1 << 20;
    int epoll = epoll_create1(0), failed = 0;
    char *buffer = malloc(1 << 18);
    unsigned *histogram = calloc(micros_max, sizeof *histogram);
    rest *rests = calloc(sockets, sizeof *rests);
    int *fds = malloc(sizeof(int) * sockets);
    publisher p = {.server = server, .streams = streams, .per_second = per_second, .site = runs++, .seconds = seconds};
    for (int i = 0; i < sockets; i++) fds[i] = -1;
    for (int i = 0; i < sockets && !failed; i++) {
        fds[i] = open_socket(server, port, 1);
        failed = fds[i] < 0;
        for (int k = 0; k < subscriptions && !failed; k++) {
            failed = !subscribe(fds[i], server, (int)(((long long)i * subscriptions + k) % streams), i);
        }
        set_blocking(fds[i], 0);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        failed |= epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0;
    }
    p.fd = failed ? -1 : open_socket(server, port, 0);
    failed |= p.fd < 0;
    memset(result, 0, sizeof *result);
    pthread_t thread;
    if (!failed) {
        started(context);
        p.begin = now() + 0.1;
        failed = pthread_create(&thread, 0, publish, &p) != 0;
    }
    long long expected = (long long)(seconds * per_second) * ((long long)sockets * subscriptions / streams);
    double end = p.begin + seconds + 10;
    while (!failed && result->deliveries < expected && now() < end) {
        struct epoll_event events[512];
        int count = epoll_wait(epoll, events, 512, 10);
        long long at = (long long)(now() * 1e6);
        for (int i = 0; i < count; i++) {
            int index = events[i].data.u32;
            ssize_t got = read(fds[index], buffer, 1 << 18);
            failed |= got == 0 || (got < 0 && errno != EAGAIN);
            if (got <= 0) continue;
            result->bytes += got;
            take(&rests[index], buffer, got, at, histogram, result);
        }
    }
    failed |= p.failed || result->deliveries < expected;
    p.failed |= failed;
    if (p.fd >= 0 && p.begin > 0) pthread_join(thread, 0);
    result->seconds = now() - p.begin;
    result->p50_micros = percentile(histogram, result->deliveries, 0.5);
    result->p99_micros = percentile(histogram, result->deliveries, 0.99);
    for (int i = 0; i < sockets; i++) if (fds[i] >= 0) close(fds[i]);
    if (p.fd >= 0) close(p.fd);
    close(epoll);
    free(buffer);
    free(histogram);
    free(rests);
    free(fds);
    return failed ? -1 : 0;
}
