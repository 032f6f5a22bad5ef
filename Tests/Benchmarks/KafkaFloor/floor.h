#pragma once
#include "kafka_floor.h"
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

// The state of the bare program, for the relay that puts a socket in front of it.

struct kafka_floor {
    rd_kafka_t *producer, *consumer;
    rd_kafka_queue_t *reports, *records;
    char *topic;
    int partition;
    pthread_t report_thread, tail_thread;
    atomic_int stops;

    // The state of one run. Each record contains the number of its run and its own number.
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t run;
    int count, through, failed;
    unsigned char *halves;
    double *due, *micros;
    double last_through, longest;

    // A function that is called for each complete record, and with -1 after the last record of a batch; may be NULL. It
    // is called with the lock held.
    void (*tell)(void *context, int number);
    void *context;
};

// Begins a run of `count` records. The lock must be held.
void floor_begin_run(kafka_floor *floor, int count, double *micros);

// Ends the run. The lock must be held.
void floor_end_run(kafka_floor *floor);

// Passes a record of the run to the producer. `value` has `bytes` bytes, at least eight.
void floor_produce(kafka_floor *floor, uint32_t run, int number, char *value, int bytes);
