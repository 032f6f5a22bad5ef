#pragma once
#include "kafka_floor.h"
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

// The bare program's own state, for what puts a socket in front of it.

struct kafka_floor {
    rd_kafka_t *producer, *consumer;
    rd_kafka_queue_t *reports, *records;
    char *topic;
    int partition;
    pthread_t report_thread, tail_thread;
    atomic_int stops;

    // One run. A record carries the run's number and its own.
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t run;
    int count, through, failed;
    unsigned char *halves;
    double *due, *micros;
    double last_through, longest;

    // If not NULL, called for each record that is through, and with -1 behind the last one of a batch; with the lock
    // held.
    void (*tell)(void *context, int number);
    void *context;
};

// Begins a run of so many records, with the lock held.
void floor_begin_run(kafka_floor *floor, int count, double *micros);

// Ends it, with the lock held.
void floor_end_run(kafka_floor *floor);

// Hands the run's record of this number to the producer; `value` has room for `bytes`, at least eight.
void floor_produce(kafka_floor *floor, uint32_t run, int number, char *value, int bytes);
