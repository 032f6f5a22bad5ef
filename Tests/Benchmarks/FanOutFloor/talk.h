#pragma once
#include "fan_out_floor.h"
#include <stddef.h>
#include <sys/types.h>

// The client side of each server's protocol: handshake, subscription, message.

enum { payload = 200, message_max = 512 };

// A character that each message contains exactly once, in the protocol of every server. Sixteen digits follow it.
static const char mark = '#';

// Returns the seconds of a monotonic clock.
double now(void);

// Writes the HTTP head of a WebSocket handshake, and returns its length.
int make_head(char *head, size_t size, floor_server server, int subscribes);

// Writes a masked text frame, and returns its length.
int make_frame(char *frame, const char *text, int length);

// Returns the first text after the handshake, or NULL if there is none.
const char *hello_of(floor_server server);

// Returns the text by which an answer refuses a message, or NULL if the server refuses none.
const char *refusal_of(floor_server server);

// Writes the request for a subscription, and returns its length. `subscribed_of` returns the text that confirms it.
int make_subscription(char *text, floor_server server, int stream, int client);
const char *subscribed_of(floor_server server);

// Writes a frame with a message of 200 bytes for a stream. For Reel, this is the size of the event in the log, with the
// members that the gateway adds. `digits` follows the mark.
int make_message(char *frame, floor_server server, int stream, int site, long long number, long long digits);

// Connects a blocking socket to 127.0.0.1, with a timeout of 10 s for reads.
int connect_to(int fd, int port);

// Makes the handshake of a WebSocket and sends the first text.
int shake_hands(int fd, floor_server server, int subscribes);

// Opens a blocking WebSocket and sends the first text. Returns -1 if it was refused.
int open_socket(floor_server server, int port, int subscribes);

// Subscribes and waits for the answer. Bytes after the answer in the same read are dropped.
int subscribe(int fd, floor_server server, int stream, int client);

// Sends a text. Returns 1 if all of it was written.
int say(int fd, const char *text);

// Reads until a text has arrived.
int await(int fd, const char *text);

// Returns the number of marks in the bytes.
long long count_marks(const char *bytes, size_t size);

void set_blocking(int fd, int blocks);
