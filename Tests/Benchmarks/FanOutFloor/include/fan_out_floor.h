#pragma once

// The floor of the fan-out benchmark: a bare epoll server that does the least a WebSocket broadcast needs, and the
// reader that measures any server.

// Starts the bare server on a thread that lives as long as the process; returns its port on 127.0.0.1, or -1.
int floor_serve(void);

typedef struct {
    double seconds;
    long long deliveries;
} floor_result;

// The servers that the reader can speak with.
typedef enum { floor_bare, floor_reel, floor_load, floor_nats } floor_server;

// Opens `sockets` WebSockets that listen and one that publishes messages of 200 bytes, half a `window` in one write and
// at most a whole one under way, and counts what arrives. Returns 0, or -1 if the server does not behave.
int floor_drive(floor_server server, int port, int sockets, int window, double seconds, floor_result *result);

// A WebSocket to 127.0.0.1, non-blocking behind the handshake; -1 if it was refused.
int floor_open(int port, const char *path);

// Starts a server on a thread that speaks as a gateway does and does nothing but send: frames of so many events of the
// stream "load", to all who subscribe, as fast as the slowest takes them. Returns its port on 127.0.0.1, or -1. Once.
int floor_feed(int events_per_frame);

// Opens `sockets` WebSockets that listen to that server, and counts what arrives. Returns 0, or -1.
int floor_read(int port, int sockets, double seconds, floor_result *result);

// A WebSocket to a gateway on 127.0.0.1 that has said hello, blocking; -1 if it was refused.
int floor_open_gateway(int port);
