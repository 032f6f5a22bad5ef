#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Clients that do no good: some stop reading, some read a little now and then, some publish without end.

enum { sip = 256, sips_per_second = 10, rounds_per_second = 500 };

struct floor_harm {
    int count, stopped, slow, flooding, per_second, site;
    int *fds;
    pthread_t thread;
    atomic_int is_over, failed;
    long long number, said;
};

static void pause_for(double seconds) {
    struct timespec t = {.tv_sec = 0, .tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, 0);
}

// What a flooding client has got rid of by now, as its share of the rate; what the server does not take waits.
static void flood(floor_harm *harm, double since, char *buffer) {
    long long due = (long long)(since * harm->per_second / harm->flooding);
    for (; harm->number < due; harm->number++) {
        for (int i = 0; i < harm->flooding; i++) {
            char frame[2 * message_max];
            int fd = harm->fds[harm->stopped + harm->slow + i];
            int size = make_message(frame, floor_reel, 1 + i, harm->site + i, harm->number, harm->number);
            // Half a frame would be another message: it goes whole or, where the kernel is full, blocks.
            set_blocking(fd, 1);
            if (write(fd, frame, size) != size) harm->failed = 1;
            set_blocking(fd, 0);
            while (read(fd, buffer, 1 << 16) > 0) {}
            harm->said++;
        }
        if (harm->is_over) return;
    }
}

static void *run(void *argument) {
    floor_harm *harm = argument;
    char *buffer = malloc(1 << 16);
    double begin = now(), next_sip = begin;
    while (!harm->is_over) {
        if (now() >= next_sip) {
            next_sip += 1.0 / sips_per_second;
            for (int i = harm->stopped; i < harm->stopped + harm->slow; i++) {
                if (read(harm->fds[i], buffer, sip) == 0) harm->failed = 1;
            }
        }
        flood(harm, now() - begin, buffer);
        pause_for(1.0 / rounds_per_second);
    }
    free(buffer);
    return 0;
}

floor_harm *floor_harm_begin(int port, int stopped, int slow, int flooding, int per_second) {
    static int sites = 1 << 28;
    floor_harm *harm = calloc(1, sizeof *harm);
    harm->count = stopped + slow + flooding;
    harm->stopped = stopped;
    harm->slow = slow;
    harm->flooding = flooding;
    harm->per_second = per_second;
    harm->site = sites;
    sites += flooding;
    harm->fds = malloc(sizeof(int) * harm->count);
    for (int i = 0; i < harm->count; i++) {
        int reads_little = i < stopped + slow, small = 4096;
        harm->fds[i] = open_socket(floor_reel, port, 1);
        if (harm->fds[i] < 0) goto refused;
        if (reads_little) setsockopt(harm->fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        if (reads_little && !subscribe(harm->fds[i], floor_reel, 0, i)) goto refused;
        set_blocking(harm->fds[i], 0);
        continue;
    refused:
        harm->count = i + (harm->fds[i] >= 0);
        harm->failed = 1;
        break;
    }
    if (!harm->failed && pthread_create(&harm->thread, 0, run, harm) == 0) return harm;
    for (int i = 0; i < harm->count; i++) close(harm->fds[i]);
    free(harm->fds);
    free(harm);
    return 0;
}

long long floor_harm_end(floor_harm *harm) {
    harm->is_over = 1;
    pthread_join(harm->thread, 0);
    long long said = harm->failed ? -1 : harm->said;
    for (int i = 0; i < harm->count; i++) close(harm->fds[i]);
    free(harm->fds);
    free(harm);
    return said;
}
