#pragma once

// The floor under the Kafka benchmarks: what a bare C program reaches with librdkafka alone, with the same settings,
// the same header and the same brokers.

typedef struct kafka_floor kafka_floor;

// A producer and a consumer that tails one partition from its end. Settings are name, value, …, NULL. Returns NULL and
// says why in `error`.
kafka_floor *kafka_floor_open(const char *const *producer, const char *const *consumer, const char *topic,
                              int partition, char *error, int error_bytes);
void kafka_floor_close(kafka_floor *floor);

typedef struct {
    double seconds;
    // The longest time in which nothing was both tailed and reported, in milliseconds.
    double longest_pause_ms;
} kafka_floor_run;

// Produces `count` records of `bytes`, at most `depth` under way, `per_second` of them (0: as many as go). A record is
// through once it was tailed and reported without an error. `micros`, if not NULL, gets for each the time from the
// moment it was due. Returns 0, or -1 if one was reported with an error.
int kafka_floor_publish(kafka_floor *floor, int count, int bytes, int depth, int per_second, double *micros,
                        kafka_floor_run *run);

// Reads `count` records from `first` on with a consumer of its own; returns the seconds from the first record to the
// last, or -1.
double kafka_floor_consume(const char *const *consumer, const char *topic, int partition, long long first, int count);

// Reads ranges of `span` records at random places below `end`, `at_once` at the same time, `each` times; `micros` gets
// at_once * each times. They share eight consumers that are connected already, each of which begins at the range's
// first record, takes what is asked for in one batch, and stops. Returns 0 or -1.
int kafka_floor_reads(const char *const *consumer, const char *topic, int partition, long long end, int span,
                      int at_once, int each, double *micros);

// The same as kafka_floor_publish through a gateway's socket on 127.0.0.1: an event is through once it is acked. The
// events are those of a new site, about `bytes` long as they lie in the log, `per_frame` in a message.
int kafka_floor_publish_socket(int port, int count, int bytes, int depth, int per_frame, int per_second,
                               double *micros, kafka_floor_run *run);

// A process that takes events on a socket as a gateway does, and acks what librdkafka has tailed and reported; it does
// nothing else, for one publisher at a time. Returns its port on 127.0.0.1, or -1; the caller ends it.
int kafka_floor_relay(const char *const *producer, const char *const *consumer, const char *topic, int partition,
                      int *process);
