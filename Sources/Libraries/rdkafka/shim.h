#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// Here stand only things that Swift cannot import: variadic functions.

// Hands one record over, with the 16 bytes `p` as its header of that name unless `p` is NULL. All bytes are copied.
static inline rd_kafka_resp_err_t reel_rd_kafka_produce(
    rd_kafka_t *rk, rd_kafka_topic_t *topic, int32_t partition, const void *key, size_t key_size, const void *value,
    size_t value_size, const void *p, void *opaque) {
    if (!p)
        return rd_kafka_producev(
            rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key ? key : "", key_size),
            RD_KAFKA_V_VALUE(value ? (void *)value : (void *)"", value_size),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
    return rd_kafka_producev(
        rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key ? key : "", key_size),
        RD_KAFKA_V_VALUE(value ? (void *)value : (void *)"", value_size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_HEADER("p", p, 16), RD_KAFKA_V_END);
}
