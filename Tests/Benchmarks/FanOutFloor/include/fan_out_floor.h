#pragma once

// The floor of the fan-out benchmark: a bare epoll server that does the least a WebSocket broadcast needs, and the
// reader that measures any server.

// Starts the bare server on a thread that lives as long as the process; returns its port on 127.0.0.1, or -1.
int floor_serve(void);

// The same in a process of its own, which the caller ends. Messages come to the streams in turn, and each subscriber
// has so many of these, as those of floor_pace have. `log`, if not NULL, is a file in which the disk has a message
// before it is sent: what one read brings is written and waited for at once, by the thread that sends it.
int floor_serve_apart(int streams, int subscriptions, const char *log, int *process);

typedef struct {
    double seconds;
    long long deliveries, bytes;
    double p50_micros, p99_micros;
} floor_result;

// The servers that the reader can speak with.
typedef enum { floor_bare, floor_reel, floor_load, floor_nats, floor_jetstream } floor_server;

// Opens `sockets` WebSockets that listen and one that publishes messages of 200 bytes, half a `window` in one write and
// at most a whole one under way, and counts what arrives. Returns 0, or -1 if the server does not behave.
int floor_drive(floor_server server, int port, int sockets, int window, double seconds, floor_result *result);

// Called once all have subscribed and before the first message is due.
typedef void (*floor_started)(void *context);

// Opens `sockets` WebSockets, each with so many subscriptions, spread over the streams, and one that publishes
// `per_second` messages of 200 bytes, to one stream after the other. Latency counts from the moment at which a message
// was due. Returns 0, or -1 if not all arrived or the server does not behave.
int floor_pace(floor_server server, int port, int sockets, int streams, int subscriptions, int per_second,
               double seconds, floor_started started, void *context, floor_result *result);

// Connects so many clients as fast as they can, each of which subscribes to one stream as soon as it is connected, and
// leaves them open in `fds`. `seconds`: until the last one has its answer. Returns 0, or -1 and none is open.
int floor_herd(floor_server server, int port, int count, int *fds, double *seconds);

// The same, one after the other, for a gateway that speaks TLS.
int floor_herd_secure(int port, int count, int *fds);

// Has a NATS server keep what is published on the stream, as JetStream does. Returns 0, or -1.
int floor_jetstream_begin(int port);

// Publishes so many messages of 200 bytes, each of which the server says that it has. Returns 0, or -1.
int floor_jetstream_fill(int port, long long count);

// The seconds in which one client is sent all old messages, in which the mark '#' stands so many times; negative if it
// was not.
double floor_replay(floor_server server, int port, long long count);

// Adds so many entries of 200 bytes to the stream `s` of a Redis, and counts the bytes '#' of its answers to XREAD: a
// thousand entries each, eight of them asked for ahead. As above; the seconds, negative if not all came.
int floor_redis_fill(int port, long long count);
double floor_redis_replay(int port, long long count);

// A WebSocket to 127.0.0.1 that says nothing, blocking; -1 if it was refused.
int floor_open(int port, const char *path);

// Starts a server on a thread that speaks as a gateway does and does nothing but send: frames of so many events of the
// stream "load", to all who subscribe, as fast as the slowest takes them. Returns its port on 127.0.0.1, or -1. Once.
int floor_feed(int events_per_frame);

// Opens `sockets` WebSockets that listen to that server, and counts what arrives. Returns 0, or -1.
int floor_read(int port, int sockets, double seconds, floor_result *result);

// A WebSocket to a gateway on 127.0.0.1 that has said hello, blocking; -1 if it was refused.
int floor_open_gateway(int port);

typedef struct floor_harm floor_harm;

// So many in a second, by all clients together: pings; subscriptions, each of which ends at once; fetches of the last
// 256 seqs; publishes of one event.
typedef struct {
    double pings, subscriptions, fetches, publishes;
} floor_flood;

// On a thread, publishes 200 events of 16 kB a second to the stream "fan1" of a gateway, beside clients that do no
// good: some subscribe to it and stop reading, some read 4 kB of it in a second, and of each kind of flood there are
// so many, each with up to 64 questions under way. NULL if they were refused.
floor_harm *floor_harm_begin(int port, int stopped, int slow, int flooding, floor_flood per_second);

// Ends it, and says how much of the flood was answered. Returns 0, or -1 where one of them was cut off.
int floor_harm_end(floor_harm *harm, floor_flood *per_second);
