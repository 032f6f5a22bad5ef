#pragma once
#include "fan_out_floor.h"
#include <stddef.h>
#include <sys/types.h>

// How a client speaks with each server: handshake, subscription, message.

enum { payload = 200, message_max = 512 };

// Stands once in each message, however a server wraps it, and nowhere else; sixteen digits follow it.
static const char mark = '#';

// Seconds of a clock that only goes forward.
double now(void);

// The head that asks for a WebSocket; returns its length.
int make_head(char *head, size_t size, floor_server server, int subscribes);

// A masked text frame; returns its length.
int make_frame(char *frame, const char *text, int length);

// What is said first behind the handshake; NULL: nothing.
const char *hello_of(floor_server server);

// What shows that a message was refused; NULL: nothing is ever refused.
const char *refusal_of(floor_server server);

// What a client says to hear a stream; returns its length. `subscribed_of` shows that it was understood.
int make_subscription(char *text, floor_server server, int stream, int client);
const char *subscribed_of(floor_server server);

// A message of 200 bytes for a stream, as a frame; of Reel the event as it stands in the log, with the stamps that the
// gateway adds. `digits` stands behind the mark.
int make_message(char *frame, floor_server server, int stream, int site, long long number, long long digits);

// Connects a socket to 127.0.0.1; it is blocking, and waits for 10 s at most.
int connect_to(int fd, int port);

// Makes a connection a WebSocket that has said hello.
int shake_hands(int fd, floor_server server, int subscribes);

// A blocking WebSocket that has said hello; -1 if it was refused.
int open_socket(floor_server server, int port, int subscribes);

// Subscribes and waits for the answer; what follows it in the same read is dropped.
int subscribe(int fd, floor_server server, int stream, int client);

// Says a text; whether it went out whole.
int say(int fd, const char *text);

// Reads until a text has come.
int await(int fd, const char *text);

// How many messages begin in what was read.
long long count_marks(const char *bytes, size_t size);

void set_blocking(int fd, int blocks);
