#define _GNU_SOURCE
#include "fan_out_floor.h"
#include "talk.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Harmful clients next to those that are measured. Some stop reading, some read slowly, and some send permitted
// requests without end. All of them run on one thread.

enum { heard_stream, big_stream, first_flooded_stream };
enum { big_event = 16000, big_per_second = 200 };
enum { sip = 400, sips_per_second = 10, rounds_per_second = 500 };
enum { fetched = 256 };
// The sizes of a client on a network instead of the loopback. The kernel then buffers little of the unread data.
enum { segment = 1448, room = 4096 };

// The kind of request that a client repeats.
typedef enum { pinging, subscribing, fetching, publishing, filling } trade;

enum { asked_ahead = 64, answer_max = 64 };
enum { out_max = 1 << 16, in_max = 1 << 18, message_most = big_event + 2 * message_max };

typedef struct {
    trade trade;
    int fd, stream, site;
    double per_second;
    long long asked, answered;
    // The request of a fetch.
    char question[message_max];
    // `answer` is a text that each answer contains once. `rest` is the end of the bytes read, which may be the start of
    // that text.
    char answer[answer_max], rest[answer_max];
    size_t kept;
    // The bytes that the kernel has not accepted yet.
    char *out;
    size_t size, written;
} speaker;

struct floor_harm {
    int port, stopped, slow, reader_count, speaker_count;
    int *readers;
    speaker *speakers;
    pthread_t thread;
    atomic_int is_over, failed;
    double seconds;
};

static int make_big(char *frame, speaker *s) {
    static char fill[big_event];
    char text[message_most];
    memset(fill, 'x', sizeof fill);
    int size = snprintf(text, sizeof text,
                        "{\"t\":\"publish\",\"stream\":\"fan%d\",\"events\":[{\"fields\":{\"a\":\"%.*s\"},\"id\":\"1\","
                        "\"model\":\"m\",\"op\":%lld,\"site\":\"00000000-0000-4000-8000-%012x\",\"type\":\"insert\"}]}",
                        s->stream, big_event, fill, s->asked, s->site);
    return make_frame(frame, text, size);
}

static int make_unsubscription(char *text) {
    return sprintf(text, "{\"t\":\"unsubscribe\",\"stream\":\"fan%d\"}", heard_stream);
}

static int make_question(char *out, speaker *s) {
    static const char ping[] = {(char)0x89, (char)0x81, 0, 0, 0, 0, '#'};
    char text[message_max];
    int size = 0;
    switch (s->trade) {
    case pinging:
        memcpy(out, ping, size = sizeof ping);
        break;
    case subscribing:
        size = make_frame(out, text, make_subscription(text, floor_reel, heard_stream, 0));
        size += make_frame(out + size, text, make_unsubscription(text));
        break;
    case fetching:
        size = make_frame(out, s->question, strlen(s->question));
        break;
    case publishing:
        size = make_message(out, floor_reel, s->stream, s->site, s->asked, s->asked);
        break;
    case filling:
        size = make_big(out, s);
        break;
    }
    s->asked++;
    return size;
}

// Writes the requests that are due, with a limit on those in flight. The rest waits until the server reads.
static int speak(speaker *s, double since) {
    if (s->written == s->size) s->written = s->size = 0;
    while (s->size == 0 || s->size + message_most < out_max) {
        if (s->written > 0 || s->asked >= since * s->per_second || s->asked - s->answered >= asked_ahead) break;
        s->size += make_question(s->out + s->size, s);
    }
    if (s->written == s->size) return 1;
    ssize_t wrote = write(s->fd, s->out + s->written, s->size - s->written);
    if (wrote > 0) s->written += wrote;
    return wrote >= 0 || errno == EAGAIN;
}

// Counts the answers in the bytes that have arrived. `buffer` must have `in_max` bytes.
static int hear(speaker *s, char *buffer) {
    size_t length = strlen(s->answer);
    for (;;) {
        memcpy(buffer, s->rest, s->kept);
        ssize_t got = read(s->fd, buffer + s->kept, in_max - s->kept);
        if (got <= 0) return got < 0 && errno == EAGAIN;
        char *next = buffer, *end = buffer + s->kept + got, *found;
        while ((found = memmem(next, end - next, s->answer, length))) {
            s->answered++;
            next = found + length;
        }
        s->kept = (size_t)(end - next) < length - 1 ? (size_t)(end - next) : length - 1;
        memcpy(s->rest, end - s->kept, s->kept);
    }
}

static void *run(void *context) {
    floor_harm *harm = context;
    struct timespec pause = {.tv_nsec = 1000000000 / rounds_per_second};
    char *buffer = malloc(in_max);
    double begin = now(), next_sip = begin;
    while (!harm->is_over) {
        if (now() >= next_sip) {
            next_sip += 1.0 / sips_per_second;
            for (int i = harm->stopped; i < harm->reader_count; i++) {
                ssize_t got = read(harm->readers[i], buffer, sip);
                if (got == 0 || (got < 0 && errno != EAGAIN)) harm->failed = 1;
            }
        }
        for (int i = 0; i < harm->speaker_count; i++) {
            speaker *s = &harm->speakers[i];
            if (!hear(s, buffer) || !speak(s, now() - begin)) harm->failed = 1;
        }
        nanosleep(&pause, 0);
    }
    harm->seconds = now() - begin;
    free(buffer);
    return 0;
}

// Prepares the request for a fetch of the last seqs, and the text at the end of its last answer.
static int prepare_fetch(speaker *s) {
    char text[message_max], bytes[8 * message_max];
    char *place = 0, *epoch = 0, *head = 0;
    make_subscription(text, floor_reel, heard_stream, 0);
    if (!say(s->fd, text)) return 0;
    for (size_t have = 0; !place || !strstr(place, "\"after\":");) {
        ssize_t got = read(s->fd, bytes + have, sizeof bytes - 1 - have);
        if (got <= 0) return 0;
        bytes[have += got] = 0;
        // Headers of frames are binary and may contain zeros.
        place = memmem(bytes, have, "\"subscribed\"", 12);
    }
    epoch = strstr(place, "\"epoch\":\"");
    head = strstr(place, "\"head\":");
    long long last = head ? atoll(head + 7) : -1;
    if (!epoch || last < 0) return 0;
    snprintf(s->question, sizeof s->question,
             "{\"t\":\"fetch\",\"stream\":\"fan%d\",\"epoch\":\"%.16s\",\"ranges\":[[%lld,%lld]]}",
             heard_stream, epoch + 9, last < fetched ? 0 : last - fetched + 1, last);
    snprintf(s->answer, sizeof s->answer, "\"to\":%lld,\"events\"", last);
    make_unsubscription(text);
    return say(s->fd, text) && await(s->fd, "\"unsubscribed\"");
}

static int open_speaker(floor_harm *harm, trade trade, int stream, double per_second) {
    static int sites = 1 << 28;
    static const char *const answers[] = {[pinging] = "#", [subscribing] = "\"unsubscribed\"", [fetching] = "",
                                          [publishing] = "\"op\":", [filling] = "\"op\":"};
    speaker *s = &harm->speakers[harm->speaker_count];
    s->trade = trade;
    s->stream = stream;
    s->site = sites++;
    s->per_second = per_second;
    s->fd = open_socket(floor_reel, harm->port, 0);
    if (s->fd < 0) return 0;
    harm->speaker_count++;
    s->out = malloc(out_max);
    strcpy(s->answer, answers[trade]);
    if (trade == fetching && !prepare_fetch(s)) return 0;
    set_blocking(s->fd, 0);
    return 1;
}

static int open_reader(floor_harm *harm) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), size = segment, bytes = room;
    if (fd < 0) return 0;
    harm->readers[harm->reader_count++] = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (!connect_to(fd, harm->port) || !shake_hands(fd, floor_reel, 1)) return 0;
    if (!subscribe(fd, floor_reel, big_stream, 0)) return 0;
    set_blocking(fd, 0);
    return 1;
}

static void let_go(floor_harm *harm) {
    for (int i = 0; i < harm->reader_count; i++) close(harm->readers[i]);
    for (int i = 0; i < harm->speaker_count; i++) {
        close(harm->speakers[i].fd);
        free(harm->speakers[i].out);
    }
    free(harm->readers);
    free(harm->speakers);
    free(harm);
}

floor_harm *floor_harm_begin(int port, int stopped, int slow, int flooding, floor_flood per_second) {
    double rates[] = {per_second.pings, per_second.subscriptions, per_second.fetches, per_second.publishes};
    floor_harm *harm = calloc(1, sizeof *harm);
    harm->port = port;
    harm->stopped = stopped;
    harm->readers = calloc(stopped + slow + 1, sizeof *harm->readers);
    harm->speakers = calloc(4 * flooding + 1, sizeof *harm->speakers);
    int opened = open_speaker(harm, filling, big_stream, big_per_second);
    for (int i = 0; i < stopped + slow && opened; i++) opened = open_reader(harm);
    for (int i = 0; i < 4 * flooding && opened; i++) {
        opened = open_speaker(harm, i % 4, first_flooded_stream + i / 4, rates[i % 4] / flooding);
    }
    if (opened && pthread_create(&harm->thread, 0, run, harm) == 0) return harm;
    let_go(harm);
    return 0;
}

int floor_harm_end(floor_harm *harm, floor_flood *per_second) {
    double answered[5] = {0};
    harm->is_over = 1;
    pthread_join(harm->thread, 0);
    for (int i = 0; i < harm->speaker_count; i++) answered[harm->speakers[i].trade] += harm->speakers[i].answered;
    for (int i = 0; i < 5; i++) answered[i] /= harm->seconds;
    *per_second = (floor_flood){answered[pinging], answered[subscribing], answered[fetching], answered[publishing]};
    int failed = harm->failed;
    let_go(harm);
    return failed ? -1 : 0;
}
