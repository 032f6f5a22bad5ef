import ReelKafka
import ReelLog
import ReelNode

extension Metrics {
    /// Creates the metrics of a node, with those of its log on Kafka or in a file. For a node that has opened the log
    /// several times, `logs`, the metrics are sums.
    convenience init(of logs: any EventLog...) {
        self.init()
        let files = logs.compactMap { $0 as? SQLiteLog }
        if !files.isEmpty {
            gauge(
                "reel_log_file_changed",
                "1 while records may be missing in the log's file: it was copied or restored, or its WAL was missing."
            ) {
                files.contains { $0.notice != nil } ? 1 : 0
            }
        }
        let logs = logs.compactMap { $0 as? KafkaLog }
        if !logs.isEmpty { show(logs) }
    }

    /// Adds the metrics of Kafka logs, as sums over `logs`.
    func show(_ logs: [KafkaLog]) {
        func sum(_ count: @escaping @Sendable (KafkaLogCounts) -> Int) -> @Sendable () -> Int {
            { logs.reduce(0) { $0 + count($1.counts) } }
        }
        counter("reel_kafka_holes_total", "Offsets without a record, confirmed by two reads.", measure: sum(\.holes))
        counter(
            "reel_kafka_rereads_total",
            "Ranges read again because an offset was missing.",
            measure: sum(\.rereads)
        )
        counter(
            "reel_kafka_tail_revalidations_total",
            "Times that a tail stopped to check the log again, after a lost connection or an error.",
            measure: sum(\.doubts)
        )
        counter(
            "reel_kafka_producers_replaced_total",
            "Producers replaced after a fatal error, or after a batch that was too large for the brokers.",
            measure: sum(\.rebuilds)
        )
        gauge(
            "reel_kafka_in_flight_records",
            "Records that wait for the brokers.",
            measure: sum(\.recordsInFlight)
        )
        gauge(
            "reel_kafka_in_flight_bytes",
            "Keys and values of records that wait for the brokers.",
            measure: sum(\.bytesInFlight)
        )
        gauge("reel_kafka_record_limit_bytes", "The largest record that the brokers are known to accept.") {
            logs.map(\.recordBytesMax).min() ?? 0
        }
    }
}
