#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// This file contains only what Swift cannot import: variadic functions.

// Delays the response to the next request of this kind to a broker of a mock cluster by `ms` milliseconds.
static inline rd_kafka_resp_err_t reel_rd_kafka_mock_delay(
    rd_kafka_mock_cluster_t *cluster, int32_t broker, int16_t request, int ms) {
    return rd_kafka_mock_broker_push_request_error_rtts(cluster, broker, request, 1, RD_KAFKA_RESP_ERR_NO_ERROR, ms);
}

// Passes one record to librdkafka. The 16 bytes `p` become the header named `p`, unless `p` is NULL. All bytes are
// copied.
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
