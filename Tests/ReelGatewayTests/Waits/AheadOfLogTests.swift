import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests how a gateway learns what its log has lost: from clients, and from the log's file.
@Suite(.timeLimit(.minutes(5))) struct AheadOfLogTests {
    private let todo = StreamName("todo")!
    private let metric = "reel_gateway_ahead_of_log_total"

    @Test("a client with a seq of this epoch beyond the log's end is counted and named, by whatever way it comes")
    func heard() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            #expect(try await live.metric(metric) == 0)
            let socket = try await live.connect()
            socket.send(#"{"t":"subscribe","stream":"todo","after":64999,"epoch":"\#(log.epoch)"}"#)
            #expect(try await socket.nextError().error.code == .aheadOfLog)
            socket.send(#"{"t":"fetch","stream":"todo","epoch":"\#(log.epoch)","ranges":[[5,6]]}"#)
            #expect(try await socket.nextError().error.code == .aheadOfLog)
            for (after, headers) in [(7, [:]), (8, ["accept": "text/event-stream"])] as [(Int, HTTPHeaders)] {
                let target = "/v1/streams/todo/events?after=\(after)&epoch=\(log.epoch)"
                let answer = try await live.ask("GET", target, headers: headers)
                #expect(answer.status == 409, "\(headers): \(String(decoding: answer.body, as: UTF8.self))")
            }
            let sync = try await live.ask(
                "POST",
                "/v1/streams/todo/sync",
                body: #"{"epoch":"\#(log.epoch)","after":9,"events":[]}"#
            )
            #expect(sync.status == 409, "\(String(decoding: sync.body, as: UTF8.self))")
            #expect(try await live.metric(metric) == 5)
            try await live.logLines("a client is ahead of the log", has: 5)
            let line = live.logLines("a client is ahead of the log")[0]
            #expect(line.contains("epoch=\(log.epoch) partition=0 stream=todo seq=64999 "), "\(line)")
            #expect(line.contains("but the log ends at -1"), "\(line)")
        }
    }

    @Test("a seq without its epoch, or of another one, or that the log cannot be asked about, proves nothing")
    func notHeard() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            for epoch in ["", "&epoch=0000000000000000"] {
                let answer = try await live.get("/v1/streams/todo/events?after=5\(epoch)")
                #expect(answer.status == 409)
            }
            #expect(try await live.metric(metric) == 0)
            #expect(live.logLines("a client is ahead of the log").isEmpty)
        }
    }

    @Test("many such clients are all counted, and a few of them named") func limited() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            for seq in 100..<125 {
                socket.send(#"{"t":"subscribe","stream":"s\#(seq)","after":\#(seq),"epoch":"\#(log.epoch)"}"#)
            }
            for _ in 0..<25 { #expect(try await socket.nextError().error.code == .aheadOfLog) }
            #expect(try await live.metric(metric) == 25)
            #expect((10...20).contains(live.logLines("a client is ahead of the log").count))
        }
    }

    @Test("a gateway on a copied file is ready and reports the copy in /readyz until acceptance")
    func reportsCopiedFile() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/reel-notice-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try SQLiteLog(path: folder + "/log.db", partitions: 1).close()
        try FileManager.default.copyItem(atPath: folder + "/log.db", toPath: folder + "/copy.db")
        try await LiveGateway.with(try SQLiteLog(path: folder + "/copy.db")) { live in
            let ready = try await live.ready()
            #expect(ready.contains(#""log":"ok","detail":"the log's file is not the one that it was"#), "\(ready)")
            #expect(ready.contains("run `reel epoch new --from-snapshot DIR`"), "\(ready)")
            #expect(try SQLiteLogStore(path: folder + "/copy.db").accept() != nil)
            try await eventually("it has nothing to say any more") { try await !live.ready().contains("detail") }
        }
    }
}
