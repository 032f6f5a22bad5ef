import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
import Testing

/// Tests a log with a batch that the disk of a broker has damaged. The mock cluster stores any bytes that a producer
/// sends, so the test sends a damaged batch.
@Suite(.timeLimit(.minutes(5)))
struct DamagedBatchTests {
    @Test("a damaged batch is no hole: reads fail there, and a tail ends before it") func damaged() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(partitions: 1)
        defer { log.close() }
        try await log.append([LogAppend("s", "a")])
        let damaged = Self.batch(at: 1, ["b", "c"], standingFor: 5, checksum: 7)
        try Self.produce(damaged + Self.batch(at: 3, ["d", "e", "f"]), "reel.\(log.epoch)", to: brokers.brokers[0])
        #expect(try log.bounds(0) == LogBounds(first: 0, last: 5))
        for from in [1, 2] as [Seq] {
            let error = #expect(throws: LogError.self) { try log.read(0, from: from, to: 9, bytes: 1 << 20) }
            #expect(error?.code == .logUnavailable && error?.message.contains("damaged") == true)
        }
        #expect(try log.read(0, from: 0, to: 9, bytes: 1 << 20).seqs == 0..<1)
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        try await eventually("an error") { sink.error != nil }
        #expect(sink.texts == ["a"] && sink.error?.code == .logUnavailable)
        #expect(log.counts.holes == 0)
    }

    /// Returns a batch of records in Kafka's format. `standingFor` is the number of records in its head. A missing
    /// `checksum` is computed.
    private static func batch(
        at offset: Int64,
        _ texts: [String],
        standingFor count: Int? = nil,
        checksum: UInt32? = nil
    ) -> [UInt8] {
        var records: [UInt8] = []
        for (index, text) in texts.enumerated() {
            // The fields are: attributes, time delta, offset delta, key, value, and no headers.
            let record =
                [0, 0] + varint(index) + varint(1) + Array("s".utf8) + varint(text.utf8.count) + text.utf8 + [0]
            records += varint(record.count) + record
        }
        let count = Int32(count ?? texts.count)
        let checked =
            bytes(Int16(0)) + bytes(count - 1) + bytes(Int64(0)) + bytes(Int64(0)) + bytes(Int64(-1)) + bytes(Int16(-1))
            + bytes(Int32(-1)) + bytes(count) + records
        let rest = bytes(Int32(0)) + [2] + bytes(checksum ?? crc32c(checked)) + checked
        return bytes(offset) + bytes(Int32(rest.count)) + rest
    }

    private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian, Array.init)
    }

    /// Encodes a number from 0 to 63 as a zigzag varint of one byte.
    private static func varint(_ value: Int) -> [UInt8] { [UInt8(value << 1)] }

    private static func crc32c(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0x82f6_3b78 : 0) }
        }
    }

    /// Sends batches to partition 0 of a topic, and waits for the answer.
    private static func produce(_ batches: [UInt8], _ topic: String, to broker: String) throws {
        func text(_ text: String) -> [UInt8] { bytes(Int16(text.utf8.count)) + text.utf8 }
        let request =
            bytes(Int16(0)) + bytes(Int16(3)) + bytes(Int32(1)) + text("test") + bytes(Int16(-1)) + bytes(Int16(-1))
            + bytes(Int32(5_000)) + bytes(Int32(1)) + text(topic) + bytes(Int32(1)) + bytes(Int32(0))
            + bytes(Int32(batches.count)) + batches
        let port = try #require(broker.split(separator: ":").last.flatMap { UInt16($0) })
        let connection = streamSocket()
        defer { close(connection) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        let sent = bytes(Int32(request.count)) + request
        try #require(send(connection, sent, sent.count, Int32(MSG_NOSIGNAL)) == sent.count)
        var answer: UInt8 = 0
        try #require(recv(connection, &answer, 1, 0) == 1)
    }
}
