import ReelKafka
import ReelLog
import ReelNode

extension Metrics {
    /// The metrics of a node, with what its log counts on Kafka, or knows of its file; a node that has opened it more
    /// than once shows the sums.
    convenience init(of logs: any EventLog...) {
        self.init()
        let files = logs.compactMap { $0 as? SQLiteLog }
        if !files.isEmpty {
            gauge(
                "reel_log_file_changed",
                "1 while the log's file may lack records: it was copied or restored, or its WAL was missing."
            ) {
                files.contains { $0.notice != nil } ? 1 : 0
            }
        }
        let logs = logs.compactMap { $0 as? KafkaLog }
        if !logs.isEmpty { show(logs) }
    }

    /// Shows what these logs count together.
    func show(_ logs: [KafkaLog]) {
        func sum(_ count: @escaping @Sendable (KafkaLogCounts) -> Int) -> @Sendable () -> Int {
            { logs.reduce(0) { $0 + count($1.counts) } }
        }
        counter("reel_kafka_holes_total", "Offsets without a record, believed once read twice.", measure: sum(\.holes))
        counter(
            "reel_kafka_rereads_total",
            "Ranges read again because an offset was missing.",
            measure: sum(\.rereads)
        )
        counter(
            "reel_kafka_tail_revalidations_total",
            "Times that a tail stopped to look at the log anew, after a lost connection or an error.",
            measure: sum(\.doubts)
        )
        counter(
            "reel_kafka_producers_replaced_total",
            "Producers that met a fatal error, or sent more at once than the brokers take.",
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
        gauge("reel_kafka_record_limit_bytes", "The largest record that the brokers take, as far as is known.") {
            logs.map(\.recordBytesMax).min() ?? 0
        }
    }
}
