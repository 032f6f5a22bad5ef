#pragma once

// The floor of the fan-out benchmarks: a bare epoll server that does only the necessary part of a WebSocket broadcast.
// There is also a reader that measures any server.

// Starts the bare server on a thread that runs until the process ends. Returns its port on 127.0.0.1, or -1.
int floor_serve(void);

// Starts the bare server in a process of its own, which the caller ends. Messages go to the streams in turn. Each
// subscriber has `subscriptions` streams, as in floor_pace. If `log` is not NULL, the server writes the messages of
// each read to this file and waits for the disk before it sends them. The sending thread does this.
int floor_serve_apart(int streams, int subscriptions, const char *log, int *process);

typedef struct {
    double seconds;
    long long deliveries, bytes;
    double p50_micros, p99_micros;
} floor_result;

// The servers that the reader supports.
typedef enum { floor_bare, floor_reel, floor_load, floor_nats, floor_jetstream } floor_server;

// Opens `sockets` WebSockets that subscribe, and one that publishes messages of 200 bytes. It writes half a `window` of
// messages at once, and has at most a whole window in flight. Counts the deliveries. Returns 0, or -1 if the server
// fails.
int floor_drive(floor_server server, int port, int sockets, int window, double seconds, floor_result *result);

// A function that is called after all subscriptions and before the first message is due.
typedef void (*floor_started)(void *context);

// Opens `sockets` WebSockets with `subscriptions` subscriptions each, spread over the streams. One more WebSocket
// publishes `per_second` messages of 200 bytes to the streams in turn. Latency starts when a message is due. Returns 0,
// or -1 if a message did not arrive or the server fails.
int floor_pace(floor_server server, int port, int sockets, int streams, int subscriptions, int per_second,
               double seconds, floor_started started, void *context, floor_result *result);

// Connects `count` clients as fast as possible. Each one subscribes to one stream after it is connected. The open
// sockets are stored in `fds`. `seconds` is the time until the last client is subscribed. Returns 0, or -1 with all
// sockets closed.
int floor_herd(floor_server server, int port, int count, int *fds, double *seconds);

// Does the same with TLS for a gateway, one client after the other.
int floor_herd_secure(int port, int count, int *fds);

// Creates a JetStream stream on a NATS server. Returns 0, or -1.
int floor_jetstream_begin(int port);

// Publishes `count` messages of 200 bytes, and waits for an ack of each. Returns 0, or -1.
int floor_jetstream_fill(int port, long long count);

// Returns the seconds in which one client receives all old messages, which contain the mark '#' `count` times. Returns
// a negative number if not all arrive.
double floor_replay(floor_server server, int port, long long count);

// The first function adds `count` entries of 200 bytes to the stream `s` of a Redis. The second one reads them with
// XREAD, a thousand entries each, with eight requests in flight, and counts the marks '#'. It returns seconds, or a
// negative number if not all arrive.
int floor_redis_fill(int port, long long count);
double floor_redis_replay(int port, long long count);

// Opens a blocking WebSocket to 127.0.0.1 that sends nothing. Returns -1 if it was refused.
int floor_open(int port, const char *path);

// Starts a server thread that speaks as a gateway does, but only sends. All subscribers get frames of
// `events_per_frame` events of the stream "load", as fast as the slowest one reads. Returns its port on 127.0.0.1, or
// -1. It can be started once.
int floor_feed(int events_per_frame);

// Opens `sockets` WebSockets that subscribe to that server, and counts the deliveries. Returns 0, or -1.
int floor_read(int port, int sockets, double seconds, floor_result *result);

// Opens a blocking WebSocket to a gateway on 127.0.0.1, and sends `hello`. Returns -1 if it was refused.
int floor_open_gateway(int port);

typedef struct floor_harm floor_harm;

// Requests per second of all clients of a kind together: pings; subscriptions, each of which ends at once; fetches of
// the last 256 seqs; publishes of one event.
typedef struct {
    double pings, subscriptions, fetches, publishes;
} floor_flood;

// Starts a thread with harmful clients of a gateway. It publishes 200 events of 16 kB per second to the stream "fan1".
// `stopped` clients subscribe to it and stop reading, and `slow` clients read 4 kB of it per second. For each kind of
// flood, there are `flooding` clients with up to 64 requests in flight each. Returns NULL if a client was refused.
floor_harm *floor_harm_begin(int port, int stopped, int slow, int flooding, floor_flood per_second);

// Ends the thread, and stores the answered requests per second. Returns 0, or -1 if a client was disconnected.
int floor_harm_end(floor_harm *harm, floor_flood *per_second);
