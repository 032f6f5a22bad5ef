import CRdkafka

/// An independent Kafka client on the same brokers. It finds leaders, and writes records that no gateway would write.
final class KafkaPeer {
    /// An error of this client.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ what: String, _ code: rd_kafka_resp_err_t) {
            description = "\(what): \(String(cString: rd_kafka_err2str(code)))"
        }

        init(_ what: String) { description = what }
    }

    /// A partition as the brokers describe it.
    struct Partition {
        var leader: Int
        var replicas: Set<Int>
        var inSync: Set<Int>
    }

    private let handle: OpaquePointer
    /// The timeout of requests in milliseconds, long enough for a busy machine.
    private static let patienceMs: Int32 = 120_000

    /// Connects to these brokers with these settings of librdkafka.
    init(_ bootstrap: String, _ settings: [String: String] = [:]) throws {
        let configuration = rd_kafka_conf_new()
        var reason = [CChar](repeating: 0, count: 512)
        for (name, value) in settings.merging(
            ["bootstrap.servers": bootstrap, "log_level": "0"],
            uniquingKeysWith: { $1 }
        )
        where rd_kafka_conf_set(configuration, name, value, &reason, reason.count) != RD_KAFKA_CONF_OK {
            rd_kafka_conf_destroy(configuration)
            throw Failure("\(name)=\(value) is refused")
        }
        guard let handle = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &reason, reason.count) else {
            rd_kafka_conf_destroy(configuration)
            throw Failure("no producer can be made")
        }
        self.handle = handle
    }

    deinit {
        rd_kafka_destroy(handle)
    }

    /// Returns the partitions of a topic, or an empty list if the brokers do not know the topic.
    func partitions(of topic: String) throws -> [Partition] {
        let known = rd_kafka_topic_new(handle, topic, nil)
        defer { if let known { rd_kafka_topic_destroy(known) } }
        var answer: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(handle, 0, known, &answer, 5_000)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer else { throw Failure("no metadata", code) }
        defer { rd_kafka_metadata_destroy(answer) }
        guard answer.pointee.topic_cnt == 1, let found = answer.pointee.topics else { return [] }
        return UnsafeBufferPointer(start: found.pointee.partitions, count: Int(found.pointee.partition_cnt))
            .sorted { $0.id < $1.id }
            .map { partition in
                func nodes(_ start: UnsafeMutablePointer<Int32>?, _ count: Int32) -> Set<Int> {
                    Set(UnsafeBufferPointer(start: start, count: Int(count)).map(Int.init))
                }
                return Partition(
                    leader: Int(partition.leader),
                    replicas: nodes(partition.replicas, partition.replica_cnt),
                    inSync: nodes(partition.isrs, partition.isr_cnt)
                )
            }
    }

    /// Sends a record whose witness does not match the log. A record that was copied from another log has such a
    /// witness.
    func copy(_ topic: String, _ partition: Int, key: String, value: String) throws {
        let known = rd_kafka_topic_new(handle, topic, nil)
        defer { if let known { rd_kafka_topic_destroy(known) } }
        let (key, value) = (Array(key.utf8), Array(value.utf8))
        // The header `p` contains seq 0 and a hash that no record has.
        let p = [UInt8](repeating: 0, count: 15) + [1]
        let code = reel_rd_kafka_produce(
            handle,
            known,
            Int32(partition),
            key,
            key.count,
            value,
            value.count,
            p,
            nil
        )
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Failure("a record was refused", code) }
    }

    /// Sends a record. A nil key or value is sent as Kafka's null.
    func produce(_ topic: String, _ partition: Int, key: String?, value: String?) throws {
        let known = rd_kafka_topic_new(handle, topic, nil)
        defer { if let known { rd_kafka_topic_destroy(known) } }
        let key = key.map { Array($0.utf8) }
        var value = value.map { Array($0.utf8) }
        let length = value?.count ?? 0
        let result = value.withPointer { value in
            rd_kafka_produce(known, Int32(partition), RD_KAFKA_MSG_F_COPY, value, length, key, key?.count ?? 0, nil)
        }
        guard result == 0 else { throw Failure("a record was refused", rd_kafka_last_error()) }
    }

    /// Waits until all records are in the log.
    func flush() throws {
        let code = rd_kafka_flush(handle, Self.patienceMs)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Failure("records did not arrive", code) }
    }

    /// Runs `body` in a transaction, and then commits or aborts it.
    func transaction(commits: Bool, _ body: () throws -> Void) throws {
        try check("a transaction is begun", rd_kafka_begin_transaction(handle))
        try body()
        try flush()
        if commits {
            try check("a transaction is committed", rd_kafka_commit_transaction(handle, Self.patienceMs))
        } else {
            try check("a transaction is aborted", rd_kafka_abort_transaction(handle, Self.patienceMs))
        }
    }

    /// Initializes transactions. The setting `transactional.id` must be set.
    func beginTransactions() throws {
        try check("transactions are prepared", rd_kafka_init_transactions(handle, Self.patienceMs))
    }

    /// Deletes the records of partitions below these offsets.
    func deleteRecords(_ topic: String, below offsets: [Int: Int64]) throws {
        let list = rd_kafka_topic_partition_list_new(Int32(offsets.count))
        for (partition, offset) in offsets {
            rd_kafka_topic_partition_list_add(list, topic, Int32(partition))?.pointee.offset = offset
        }
        var request = rd_kafka_DeleteRecords_new(list)
        let queue = rd_kafka_queue_new(handle)
        defer {
            rd_kafka_queue_destroy(queue)
            rd_kafka_DeleteRecords_destroy(request)
            rd_kafka_topic_partition_list_destroy(list)
        }
        rd_kafka_DeleteRecords(handle, &request, 1, nil, queue)
        let answer = rd_kafka_queue_poll(queue, Self.patienceMs)
        defer { rd_kafka_event_destroy(answer) }
        let code = answer.map(rd_kafka_event_error) ?? RD_KAFKA_RESP_ERR__TIMED_OUT
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Failure("records are not deleted", code) }
    }

    private func check(_ what: String, _ error: OpaquePointer?) throws {
        guard let error else { return }
        defer { rd_kafka_error_destroy(error) }
        throw Failure("\(what): \(String(cString: rd_kafka_error_string(error)))")
    }
}

extension Optional where Wrapped == [UInt8] {
    fileprivate mutating func withPointer<R>(_ body: (UnsafeMutableRawPointer?) -> R) -> R {
        guard self != nil else { return body(nil) }
        return self!.withUnsafeMutableBytes { bytes in
            // An empty value needs a pointer, because a null pointer would mean a missing value.
            withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { body(bytes.baseAddress ?? $0.baseAddress) }
        }
    }
}
