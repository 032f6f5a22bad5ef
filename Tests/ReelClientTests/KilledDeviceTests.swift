import Foundation
import ReelCore
import Testing

@testable import ReelClient

/// A device's process that dies by SIGKILL in the middle of its work.
@Suite(.timeLimit(.minutes(5))) struct KilledDeviceTests {
    @Test func aKilledDeviceLosesNoEventThatPublishHadReturnedFor() async throws {
        try await Seeds.runAsync(4) { seed in
            var random = SeededGenerator(seed: seed)
            let path = temporaryPath()
            defer { removeStore(path) }
            var promised: [String] = []
            // Several lives of one device, none of which reaches a node.
            for life in 0..<3 {
                promised += try await feed(path, killAfter: Int.random(in: 1...60, using: &random), life: life)
            }
            let network = try FakeNetwork()
            let client = try network.client(store: .file(path))
            let todo = try await client.open("todo")
            try await eventually { await todo.queued == 0 }
            let tasks = Set(await todo.objects("task").map(\.name.id))
            #expect(!promised.isEmpty)
            #expect(tasks.isSuperset(of: promised), "seed \(seed): of \(promised.count) promised events some are lost")
            let consumed = try await network.on { $0.fold(StreamName("todo")!).consumed }
            #expect(consumed == tasks.count, "seed \(seed): an event happened twice")
            await client.close()
        }
    }

    /// Runs the example until it has said so many ids, then kills it; returns all ids that it said.
    private func feed(_ path: String, killAfter count: Int, life: Int) async throws -> [String] {
        let process = Process()
        process.executableURL = productsFolder.appendingPathComponent("example-todo")
        process.arguments = ["--store", path, "feed"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let lines = (0..<200).map { "task \(life)-\($0)\n" }.joined()
        try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
        var said = Data()
        while said.filter({ $0 == UInt8(ascii: "\n") }).count < count {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw Wrong() }
            said += piece
        }
        kill(process.processIdentifier, SIGKILL)
        said += try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        // A line without its end was not said.
        return String(decoding: said, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .map(String.init)
    }

    private var productsFolder: URL {
        // The test's own program lies beside the example's.
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    }
}
