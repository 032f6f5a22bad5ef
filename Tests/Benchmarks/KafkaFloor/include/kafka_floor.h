#pragma once

// The floor of the Kafka benchmarks: a bare C program that uses librdkafka alone, with the same settings, the same
// header and the same brokers.

typedef struct kafka_floor kafka_floor;

// Opens a producer, and a consumer that tails one partition from its end. Settings are name, value, …, NULL. Returns
// NULL and writes the reason to `error` if it fails.
kafka_floor *kafka_floor_open(const char *const *producer, const char *const *consumer, const char *topic,
                              int partition, char *error, int error_bytes);
void kafka_floor_close(kafka_floor *floor);

typedef struct {
    double seconds;
    // The longest time in which no record was complete (both tailed and reported), in milliseconds.
    double longest_pause_ms;
} kafka_floor_run;

// Produces `count` records of `bytes` bytes with at most `depth` in flight, `per_second` of them; 0 means as fast as
// possible. A record is complete when it was tailed, and reported without an error. If `micros` is not NULL, it gets
// the time of each record since it was due. Returns 0, or -1 if a record was reported with an error.
int kafka_floor_publish(kafka_floor *floor, int count, int bytes, int depth, int per_second, double *micros,
                        kafka_floor_run *run);

// Reads `count` records from `first` on with a new consumer. Returns the seconds from the first record to the last one,
// or -1.
double kafka_floor_consume(const char *const *consumer, const char *topic, int partition, long long first, int count);

// Reads ranges of `span` records at random positions below `end`. There are `at_once` readers, each with `each` ranges,
// and `micros` gets at_once * each times. The readers share eight connected consumers. A consumer starts at the first
// record of the range, takes the range in one batch, and stops. Returns 0 or -1.
int kafka_floor_reads(const char *const *consumer, const char *topic, int partition, long long end, int span,
                      int at_once, int each, double *micros);

// Does the same as kafka_floor_publish through a gateway's socket on 127.0.0.1. An event is complete when it is acked.
// The events are those of a new site, with about `bytes` bytes in the log, and `per_frame` in a message.
int kafka_floor_publish_socket(int port, int count, int bytes, int depth, int per_frame, int per_second,
                               double *micros, kafka_floor_run *run);

// Starts a process that takes events on a socket as a gateway does, for one publisher at a time. It acks the records
// that librdkafka has tailed and reported, and does nothing else. Returns its port on 127.0.0.1, or -1. The caller ends
// the process.
int kafka_floor_relay(const char *const *producer, const char *const *consumer, const char *topic, int partition,
                      int *process);
