#pragma once
#include <time.h>

// A monotonic clock in microseconds.

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void sleep_until(double micros) {
    struct timespec t = {.tv_sec = (time_t)(micros / 1e6)};
    t.tv_nsec = (long)((micros - t.tv_sec * 1e6) * 1e3);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
