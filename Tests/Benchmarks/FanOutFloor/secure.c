#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Clients of a gateway that speaks TLS, one after the other. Once subscribed, a client forgets its own side of TLS: it
// stays connected and costs this process a descriptor.

static int await_secure(SSL *ssl, const char *text) {
    char bytes[4096];
    int have = 0;
    while (have < (int)sizeof bytes) {
        int got = SSL_read(ssl, bytes + have, sizeof bytes - have);
        if (got <= 0) return 0;
        have += got;
        if (memmem(bytes, have, text, strlen(text))) return 1;
    }
    return 0;
}

static int subscribe_secure(SSL *ssl, int client) {
    char text[message_max], frame[2 * message_max];
    int size = make_head(text, sizeof text, floor_reel, 1);
    if (SSL_connect(ssl) != 1 || SSL_write(ssl, text, size) != size || !await_secure(ssl, "\r\n\r\n")) return 0;
    size = make_frame(frame, hello_of(floor_reel), strlen(hello_of(floor_reel)));
    size += make_frame(frame + size, text, make_subscription(text, floor_reel, 0, client));
    return SSL_write(ssl, frame, size) == size && await_secure(ssl, subscribed_of(floor_reel));
}

int floor_herd_secure(int port, int count, int *fds) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    int done = 0;
    while (context && done < count) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        SSL *ssl = SSL_new(context);
        int is_there = fd >= 0 && ssl && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && SSL_set_fd(ssl, fd) == 1
            && subscribe_secure(ssl, done);
        SSL_free(ssl);
        if (is_there) { fds[done++] = fd; continue; }
        if (fd >= 0) close(fd);
        break;
    }
    SSL_CTX_free(context);
    if (done == count) return 0;
    while (done > 0) close(fds[--done]);
    return -1;
}
