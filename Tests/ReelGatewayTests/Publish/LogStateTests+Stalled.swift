import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a process that shares the log's file and stalls inside a commit.
extension LogStateTests {
    @Test("the log is unavailable while another process stalls in a commit")
    func stalledCommitBlocksLog() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/reel-stalled-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
        try await LiveGateway.with(log, { ($0.degradedMs, $0.unavailableMs) = (0, 1) }) { live in
            let socket = try await live.connect()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            // Every commit happens under this lock.
            let lock = open(folder + "/log.db.lock", O_RDWR | O_CLOEXEC)
            defer { close(lock) }
            try #require(flock(lock, LOCK_EX) == 0)
            publish(socket, 1...3)
            try await eventually("three wait") { try await live.metric("reel_gateway_in_flight_events") == 3 }
            try await live.state(becomes: "unavailable")
            publish(socket, 4...4)
            let nack = try await socket.nextNack()
            #expect(nack.op == 4 && nack.error.code == .logUnavailable && nack.error.retryMs != nil)
            #expect(try await live.get("/v1/streams/todo/events").status == 200, "reading goes on")
            try #require(flock(lock, LOCK_UN) == 0)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1, 2, 3])
            try await live.state(becomes: "ok")
            publish(socket, 4...4)
            #expect(try await socket.nextAck().acks.map(\.seq) == [4])
            #expect(try log.bounds(0).last == 4, "each once")
        }
    }

    @Test("the gateway reports an unwritable log file as unavailable without publishes, until writes succeed again")
    func withoutPublishes() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/reel-stalled-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
        try await LiveGateway.with(log, { ($0.degradedMs, $0.unavailableMs) = (0, 1) }) { live in
            let lock = open(folder + "/log.db.lock", O_RDWR | O_CLOEXEC)
            defer { close(lock) }
            try #require(flock(lock, LOCK_EX) == 0)
            try await live.state(becomes: "unavailable")
            #expect(try await live.ready().contains("the log has not taken the node's own announcement"))
            try #require(flock(lock, LOCK_UN) == 0)
            try await live.state(becomes: "ok")
        }
    }
}
