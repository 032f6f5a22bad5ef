extension KafkaProperty {
    /// The properties that Reel sets itself, each with the reason. The values are in `KafkaConfiguration`.
    static let fixed: [String: String] = [
        "metadata.broker.list": "the brokers are given by --log",
        "test.mock.num.brokers": "a log that lives in one process is lost with it",

        "request.required.acks": "it is `all`: an event is acked only once every replica in sync has it",
        "enable.idempotence": "it is `true`: a retry must neither double nor reorder the events of a site",
        "enable.gapless.guarantee": "a failed record does not stop later ones; Reel answers each record separately",
        "message.timeout.ms": "it is 0: a record that times out leaves a hole before the one behind it;"
            + " the gateway decides how long clients wait",
        "message.send.max.retries": "it is unlimited: a record that is given up leaves a hole before the one behind it",
        "queuing.strategy": "it is `fifo`: a site's events keep their order",
        "transactional.id": "Reel appends without transactions, because their markers would use up seqs",
        "partitioner": "it is `murmur2_random`: Kafka's own default, by which every client finds a stream's partition",
        "message.max.bytes": "the largest record is part of the data format, not a setting",
        "delivery.report.only.error": "it is `false`: an ack needs the report of a success too",

        "isolation.level": "it is `read_uncommitted`: every offset must be seen, also those that count for nothing",
        "auto.offset.reset": "it is `error`: a position that the log does not have is told, never moved",
        "check.crcs": "it is `true`: data that the disk or the network has changed must not be folded",
        "group.id": "Reel assigns partitions itself: every node reads the whole log",
        "group.instance.id": "Reel assigns partitions itself: every node reads the whole log",
        "group.protocol": "Reel assigns partitions itself: every node reads the whole log",
        "partition.assignment.strategy": "Reel assigns partitions itself: every node reads the whole log",
        "enable.auto.commit": "a position is kept with the data that it belongs to, never at the broker",
        "auto.commit.enable": "a position is kept with the data that it belongs to, never at the broker",
        "auto.commit.interval.ms": "a position is kept with the data that it belongs to, never at the broker",
        "enable.auto.offset.store": "a position is kept with the data that it belongs to, never at the broker",
        "offset.store.method": "a position is kept with the data that it belongs to, never at the broker",
        "enable.partition.eof": "Reel queries the ends of a partition itself",
        "allow.auto.create.topics": "it is `false`: a topic that a broker creates automatically has the wrong settings;"
            + " `reel topic create` creates the right ones",
        "enabled_events": "Reel chooses which events it listens to",
        "log.connection.close": "it is `true`: after a lost connection a tail reads its last record again",
        "log.queue": "it is `false`: librdkafka's messages become log lines of the node",
        "log_level": "it is 6: Reel needs librdkafka's line about a changed number of partitions",
    ]
}
