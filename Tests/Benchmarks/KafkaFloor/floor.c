#include "floor.h"
#include "clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batch_max = 1000 };

// Creates a client. A consumer that calls `assign` needs a `group`, but stores no offsets under it.
static rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings, const char *group, char *error,
                          int error_bytes) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (; settings && settings[0]; settings += 2) {
        if (rd_kafka_conf_set(conf, settings[0], settings[1], error, error_bytes) != RD_KAFKA_CONF_OK) {
            rd_kafka_conf_destroy(conf);
            return NULL;
        }
    }
    rd_kafka_conf_set(conf, "log_level", "0", error, error_bytes);
    if (group) rd_kafka_conf_set(conf, "group.id", group, error, error_bytes);
    rd_kafka_conf_set_events(conf, type == RD_KAFKA_PRODUCER ? RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR : 0);
    rd_kafka_t *rk = rd_kafka_new(type, conf, error, error_bytes);
    if (!rk) rd_kafka_conf_destroy(conf);
    return rk;
}

static int assign(rd_kafka_t *rk, const char *topic, int partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
    rd_kafka_resp_err_t error = rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return error ? -1 : 0;
}

// Notes that a record was tailed (`half` is 1) or reported (`half` is 2). The lock must be held.
static void came(kafka_floor *f, const void *value, size_t size, int half, double at) {
    uint32_t mark[2];
    if (size < sizeof mark) return;
    memcpy(mark, value, sizeof mark);
    if (mark[0] != f->run || (int)mark[1] >= f->count || f->halves[mark[1]] & half) return;
    f->halves[mark[1]] |= half;
    if (f->halves[mark[1]] != 3) return;
    f->through++;
    if (f->micros) f->micros[mark[1]] = at - f->due[mark[1]];
    if (at - f->last_through > f->longest) f->longest = at - f->last_through;
    f->last_through = at;
    if (f->tell) f->tell(f->context, (int)mark[1]);
}

// Notes the end of a batch. The lock must be held.
static void batch_ended(kafka_floor *f) {
    if (f->tell) f->tell(f->context, -1);
    pthread_cond_signal(&f->moved);
}

static void *report(void *context) {
    kafka_floor *f = context;
    const rd_kafka_message_t *messages[batch_max];
    while (!atomic_load(&f->stops)) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(f->reports, 100);
        if (!event) continue;
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
            size_t n;
            while ((n = rd_kafka_event_message_array(event, messages, batch_max)) > 0) {
                double at = now();
                pthread_mutex_lock(&f->lock);
                for (size_t i = 0; i < n; i++) {
                    if (messages[i]->err) f->failed++;
                    else came(f, messages[i]->payload, messages[i]->len, 2, at);
                }
                batch_ended(f);
                pthread_mutex_unlock(&f->lock);
            }
        }
        rd_kafka_event_destroy(event);
    }
    return NULL;
}

static ssize_t next_batch(rd_kafka_queue_t *queue, int wait_ms, rd_kafka_message_t **messages) {
    rd_kafka_message_t *first = rd_kafka_consume_queue(queue, wait_ms);
    if (!first) return 0;
    messages[0] = first;
    ssize_t more = rd_kafka_consume_batch_queue(queue, 0, messages + 1, batch_max - 1);
    return 1 + (more > 0 ? more : 0);
}

static void *tail(void *context) {
    kafka_floor *f = context;
    rd_kafka_message_t *messages[batch_max];
    while (!atomic_load(&f->stops)) {
        ssize_t n = next_batch(f->records, 100, messages);
        double at = now();
        pthread_mutex_lock(&f->lock);
        for (ssize_t i = 0; i < n; i++)
            if (!messages[i]->err) came(f, messages[i]->payload, messages[i]->len, 1, at);
        batch_ended(f);
        pthread_mutex_unlock(&f->lock);
        for (ssize_t i = 0; i < n; i++) rd_kafka_message_destroy(messages[i]);
    }
    return NULL;
}

kafka_floor *kafka_floor_open(const char *const *producer, const char *const *consumer, const char *topic,
                              int partition, char *error, int error_bytes) {
    kafka_floor *f = calloc(1, sizeof *f);
    f->topic = strdup(topic);
    f->partition = partition;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    f->producer = client(RD_KAFKA_PRODUCER, producer, NULL, error, error_bytes);
    f->consumer = f->producer ? client(RD_KAFKA_CONSUMER, consumer, "floor", error, error_bytes) : NULL;
    int64_t low, high;
    rd_kafka_resp_err_t unknown = 1;
    // A new topic is not known to all brokers at once.
    for (int i = 0; f->consumer && unknown && i < 100; i++) {
        unknown = rd_kafka_query_watermark_offsets(f->consumer, topic, partition, &low, &high, 5000);
        if (unknown) sleep_until(now() + 100e3);
    }
    if (!f->consumer || unknown || rd_kafka_poll_set_consumer(f->consumer) || assign(f->consumer, topic, partition, high)) {
        if (f->consumer) {
            snprintf(error, error_bytes, "the partition's end is not known, or it cannot be read");
            rd_kafka_destroy(f->consumer);
        }
        if (f->producer) rd_kafka_destroy(f->producer);
        free(f->topic);
        free(f);
        return NULL;
    }
    f->reports = rd_kafka_queue_get_main(f->producer);
    f->records = rd_kafka_queue_get_consumer(f->consumer);
    pthread_create(&f->report_thread, NULL, report, f);
    pthread_create(&f->tail_thread, NULL, tail, f);
    return f;
}

void kafka_floor_close(kafka_floor *f) {
    atomic_store(&f->stops, 1);
    pthread_join(f->report_thread, NULL);
    pthread_join(f->tail_thread, NULL);
    rd_kafka_queue_destroy(f->reports);
    rd_kafka_queue_destroy(f->records);
    rd_kafka_consumer_close(f->consumer);
    rd_kafka_destroy(f->consumer);
    rd_kafka_destroy(f->producer);
    free(f->topic);
    free(f);
}

void floor_begin_run(kafka_floor *f, int count, double *micros) {
    f->run++;
    f->count = count;
    f->through = f->failed = 0;
    f->halves = calloc(count, 1);
    f->due = calloc(count, sizeof(double));
    f->micros = micros;
    f->last_through = now();
    f->longest = 0;
}

void floor_end_run(kafka_floor *f) {
    f->count = 0;
    free(f->halves);
    free(f->due);
    f->micros = NULL;
}

void floor_produce(kafka_floor *f, uint32_t run, int number, char *value, int bytes) {
    char witness[16];
    // The header has the size of a gateway's witness but claims nothing, because a gateway may read the same partition.
    memset(witness, 0xff, sizeof witness);
    uint32_t mark[2] = {run, (uint32_t)number};
    memcpy(value, mark, sizeof mark);
    while (rd_kafka_producev(f->producer, RD_KAFKA_V_TOPIC(f->topic), RD_KAFKA_V_PARTITION(f->partition),
                             RD_KAFKA_V_KEY("bench", 5), RD_KAFKA_V_VALUE(value, (size_t)bytes),
                             RD_KAFKA_V_HEADER("p", witness, sizeof witness),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)
           == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        sleep_until(now() + 1000);
}

int kafka_floor_publish(kafka_floor *f, int count, int bytes, int depth, int per_second, double *micros,
                        kafka_floor_run *run) {
    char value[65536];
    if (bytes > (int)sizeof value || bytes < 8) return -1;
    memset(value, 'x', sizeof value);
    pthread_mutex_lock(&f->lock);
    floor_begin_run(f, count, micros);
    double begin = f->last_through;
    int failed = 0;
    for (int i = 0; i < count && !failed; i++) {
        if (per_second) {
            f->due[i] = begin + i * (1e6 / per_second);
            pthread_mutex_unlock(&f->lock);
            sleep_until(f->due[i]);
            pthread_mutex_lock(&f->lock);
        } else {
            while (i - f->through >= depth && !f->failed) pthread_cond_wait(&f->moved, &f->lock);
            f->due[i] = now();
        }
        failed = f->failed;
        pthread_mutex_unlock(&f->lock);
        floor_produce(f, f->run, i, value, bytes);
        pthread_mutex_lock(&f->lock);
    }
    while (f->through < count && !f->failed) pthread_cond_wait(&f->moved, &f->lock);
    failed = f->failed;
    run->seconds = (now() - begin) / 1e6;
    run->longest_pause_ms = f->longest / 1e3;
    floor_end_run(f);
    pthread_mutex_unlock(&f->lock);
    return failed ? -1 : 0;
}

double kafka_floor_consume(const char *const *consumer, const char *topic, int partition, long long first, int count) {
    char error[512];
    rd_kafka_message_t *messages[batch_max];
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, consumer, "floor", error, sizeof error);
    if (!rk) return -1;
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    double begin = 0, end = 0, limit = now() + 120e6;
    int seen = 0;
    if (assign(rk, topic, partition, first) == 0) {
        while (seen < count && now() < limit) {
            ssize_t n = next_batch(queue, 1000, messages);
            if (n > 0 && begin == 0) begin = now();
            for (ssize_t i = 0; i < n; i++) {
                if (!messages[i]->err) seen++;
                rd_kafka_message_destroy(messages[i]);
            }
        }
        end = now();
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return seen >= count ? (end - begin) / 1e6 : -1;
}

// Connected handles; each of them serves one reader at a time.
enum { pooled = 8 };

typedef struct {
    rd_kafka_t *rk[pooled];
    rd_kafka_topic_t *topic[pooled];
    int opened, idle[pooled], idle_count, partition, span;
    // Readers get handles in the order in which they began to wait.
    long long tickets, turn;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} pool;

static int take(pool *p) {
    pthread_mutex_lock(&p->lock);
    long long ticket = p->tickets++;
    while (ticket != p->turn || p->idle_count == 0) pthread_cond_wait(&p->moved, &p->lock);
    p->turn++;
    int handle = p->idle[--p->idle_count];
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->lock);
    return handle;
}

static void give(pool *p, int handle) {
    pthread_mutex_lock(&p->lock);
    p->idle[p->idle_count++] = handle;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->lock);
}

// Reads a range with one of the handles. Returns 0 if the range is complete.
static int read_range(pool *p, int handle, long long from, rd_kafka_message_t **messages) {
    rd_kafka_topic_t *topic = p->topic[handle];
    long long next = from, end = from + p->span;
    double limit = now() + 30e6;
    if (rd_kafka_consume_start(topic, p->partition, from)) return -1;
    while (next < end && now() < limit) {
        // The call returns at once if all requested records have arrived.
        ssize_t n = rd_kafka_consume_batch(topic, p->partition, 1000, messages, end - next);
        for (ssize_t i = 0; i < n; i++) {
            if (!messages[i]->err && messages[i]->offset == next) next++;
            rd_kafka_message_destroy(messages[i]);
        }
        if (n < 0) break;
    }
    rd_kafka_consume_stop(topic, p->partition);
    return next == end ? 0 : -1;
}

static void close_pool(pool *p) {
    for (int i = 0; i < p->opened; i++) {
        rd_kafka_topic_destroy(p->topic[i]);
        rd_kafka_destroy(p->rk[i]);
    }
}

// Opens the handles, and reads a range with each of them so that they are connected.
static int open_pool(pool *p, const char *const *consumer, const char *topic, rd_kafka_message_t **messages) {
    char error[512];
    for (; p->opened < pooled; p->opened++) {
        int i = p->opened;
        p->rk[i] = client(RD_KAFKA_CONSUMER, consumer, NULL, error, sizeof error);
        if (!p->rk[i]) return -1;
        p->topic[i] = rd_kafka_topic_new(p->rk[i], topic, NULL);
        p->idle[i] = i;
    }
    p->idle_count = pooled;
    for (int i = 0; i < pooled; i++)
        if (read_range(p, i, 0, messages)) return -1;
    return 0;
}

typedef struct {
    pool *pool;
    int each, failed;
    long long end;
    unsigned seed;
    double *micros;
} reader;

static void *read_ranges(void *context) {
    reader *r = context;
    pool *p = r->pool;
    rd_kafka_message_t **messages = malloc(p->span * sizeof *messages);
    for (int i = 0; i < r->each && !r->failed; i++) {
        long long from = rand_r(&r->seed) % (r->end - p->span);
        double begin = now();
        int handle = take(p);
        r->failed = read_range(p, handle, from, messages) != 0;
        give(p, handle);
        r->micros[i] = now() - begin;
    }
    free(messages);
    return NULL;
}

int kafka_floor_reads(const char *const *consumer, const char *topic, int partition, long long end, int span,
                      int at_once, int each, double *micros) {
    pool p = {.partition = partition, .span = span};
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.moved, NULL);
    pthread_t *threads = calloc(at_once, sizeof *threads);
    reader *readers = calloc(at_once, sizeof *readers);
    rd_kafka_message_t **messages = malloc(span * sizeof *messages);
    int failed = open_pool(&p, consumer, topic, messages);
    for (int i = 0; i < at_once && !failed; i++) {
        readers[i] = (reader){&p, each, 0, end, (unsigned)i + 1, micros + i * each};
        pthread_create(&threads[i], NULL, read_ranges, &readers[i]);
    }
    for (int i = 0; i < at_once && readers[i].pool; i++) {
        pthread_join(threads[i], NULL);
        failed |= readers[i].failed;
    }
    close_pool(&p);
    free(threads);
    free(readers);
    free(messages);
    return failed ? -1 : 0;
}
