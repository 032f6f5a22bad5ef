import Foundation
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
import Testing

@testable import ReelTool

/// Tests that a wrong `--log kafka:…` gives an error of one line, with the right exit code, within ten seconds.
@Suite(.timeLimit(.minutes(20))) struct KafkaBadInputTests {
    private func check(
        _ words: [String],
        _ code: ExitCode,
        _ says: String,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        try await BuiltProgram.complains(
            ["topic", "check"] + words,
            code,
            says,
            patience: .seconds(3),
            at: location
        )
    }

    @Test("no broker") func noBroker() async throws {
        try await check(["--log", "kafka:127.0.0.1:1"], .unreachable, "127.0.0.1:1: Connection refused")
    }

    @Test("no such host") func noSuchHost() async throws {
        try await check(["--log", "kafka:nohost.invalid:9092"], .unreachable, "nohost.invalid:9092: Failed to resolve")
    }

    @Test("an HTTP server") func anHTTPServer() async throws {
        let server = try OneAnswer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        try await check(
            ["--log", "kafka:127.0.0.1:\(server.port)"],
            .unreachable,
            "an HTTP server answers at 127.0.0.1:"
        )
    }

    @Test("a server that hangs up") func aServerThatHangs() async throws {
        let server = try OneAnswer("")
        try await check(
            ["--log", "kafka:127.0.0.1:\(server.port)"],
            .unreachable,
            "closes the connection at the first"
        )
    }

    @Test("one dead broker of the list does no harm") func oneDeadBrokerOf() async throws {
        let mock = try MockBrokers(2)
        let log = try mock.currentLog()
        defer { log.close() }
        let record = LogAppend(key: Array("s".utf8), value: Array("there".utf8))
        let _: [Seq] = try await withCheckedThrowingContinuation { continuation in
            log.append([record], to: 0) { continuation.resume(with: $0) }
        }
        let brokers = (["127.0.0.1:1"] + mock.brokers).joined(separator: ",")
        // The brokers live in this process, which may be delayed.
        let run = try await BuiltProgram.runInTime(["dump", "--log", "kafka:\(brokers)"]) { run, took in
            run.code != 0 && took >= .seconds(3)
        }
        #expect(run.code == 0 && run.output.contains(#""value":"there""#), "\(run)")
    }

    @Test("a broker that is too old") func aBrokerThatIsToo() async throws {
        let mock = try MockBrokers(1)
        mock.claim(fetch: 11)
        let log = ["--log", "kafka:\(mock.brokers[0])"]
        let old =
            "broker \(mock.brokers[0]): it is of Kafka 2.3 to 2.6 (it takes Fetch up to version 11),"
            + " wanted is 3.7 or newer"
        let checked = try await BuiltProgram.runInTime(["topic", "check"] + log) { run, took in
            !run.output.contains(old) && took >= .seconds(3)
        }
        #expect(checked.code == ExitCode.badData.rawValue && checked.errors.isEmpty, "\(checked)")
        #expect(checked.output == "error: \(old)\n", "\(checked)")
        let gateway = ["gateway", "--listen", "127.0.0.1:0"] + log
        try await BuiltProgram.complains(gateway, .badData, old, patience: .seconds(3))
    }

    @Test(
        "usage",
        arguments: [
            (["--log", "kafka:"], "expected is sqlite:PATH"),
            (["--log", "kafka:broker"], "names the broker `broker`; expected is HOST:PORT"),
            (["--log", "kafka:broker:9092,"], "names the broker ``; expected is HOST:PORT"),
            (["--log", "kafka:broker:0"], "names the broker `broker:0`"),
            (["--log", "kafka:broker:99999"], "names the broker `broker:99999`"),
            (["--log", "sqlite:x"], "--log is `sqlite:x`; expected is kafka:HOST:PORT"),
            ([], "--log is not given; expected is kafka:HOST:PORT"),
            (
                ["--log", "kafka:127.0.0.1:1", "--kafka.security.protocol=ssl", "--kafka.ssl.ca.location=/nowhere"],
                "the Kafka client does not take its settings: ssl.ca.location finds nothing in `/nowhere` that it can use"
            ),
            (["--log", "kafka:127.0.0.1:1", "--kafka.acks=1"], "--kafka.acks cannot be set: it is `all`"),
        ]
    ) func usage(words: [String], says: String) async throws {
        try await check(words, .usage, says)
    }
}

/// A server that answers every connection with one text, whatever the request is, and closes it.
private final class OneAnswer: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init(_ text: String) throws {
        let descriptor = streamSocket()
        try #require(descriptor >= 0)
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (bound, named) = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                (bind(descriptor, $0, size), getsockname(descriptor, $0, &size))
            }
        }
        try #require(bound == 0 && named == 0 && listen(descriptor, 16) == 0)
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                var request = [UInt8](repeating: 0, count: 4096)
                _ = recv(connection, &request, request.count, 0)
                _ = Array(text.utf8).withUnsafeBytes {
                    send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                close(connection)
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
