import Foundation
import ReelClient
import ReelLab

/// Measures a person who types into one text for hours without a network, and then connects beside another one who
/// types into the same text.
enum DeviceTyping {
    private static let (keystrokes, part) = (20_000, 2_000)
    /// The time in seconds after which typing or sending is given up.
    private static let secondsMax = 15.0

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            try await withReel(["serve", "--data", folder], in: folder) { node in
                let device = folder + "/device.sqlite"
                let first = try SyncClient(nodes: [node.url], store: .file(device))
                try await first.open("bench").publish(.insert("note", id: "1", ["text": .string("")])).outcome()
                await first.close()
                let typed = try await type(device)
                return typed.rows + (try await connect(device, node, typed.count))
            }
        }
    }

    /// The keystrokes that were stored before the time limit.
    private struct Typed {
        /// The median times of a keystroke in microseconds, for each `part` keystrokes.
        var parts: [Double] = []
        /// The times of reading the text, in milliseconds.
        var reads: [Double] = []

        var count: Int { parts.count * part }

        var rows: [Measured] {
            let work = "\(count) keystrokes into one text, offline"
            return [
                Measured(
                    work: work + ": one of the last \(part), p50",
                    value: parts.last ?? .infinity,
                    unit: "µs",
                    peer: ("one of the first \(part)", parts.first ?? .infinity),
                    goal: .atMost(1.5)
                ),
                Measured(
                    work: work + ": reading the text, p99",
                    value: percentile99(reads),
                    unit: "ms",
                    goal: .atMost(5)
                ),
            ]
        }
    }

    /// Publishes one splice for each keystroke, and reads the text now and then.
    private static func type(_ device: String) async throws -> Typed {
        let client = try SyncClient(nodes: [], store: .file(device))
        let stream = try await client.open("bench")
        var typed = Typed()
        let begin = ContinuousClock.now
        while typed.count < keystrokes, (ContinuousClock.now - begin) / .seconds(1) < secondsMax {
            var micros: [Double] = []
            for number in typed.count..<typed.count + part {
                let start = ContinuousClock.now
                try await stream.publish(splice(at: number, "x"))
                micros.append((ContinuousClock.now - start) / .microseconds(1))
                guard number.isMultiple(of: 50) else { continue }
                typed.reads.append(try seconds { _ = try stream.object("note", id: "1") } * 1_000)
            }
            typed.parts.append(median(micros))
        }
        await client.close()
        return typed
    }

    private static func splice(at offset: Int, _ text: String) -> SyncEvent {
        .update(
            "note",
            id: "1",
            operations: ["text": .splice([TextSplice(at: Int64(offset), removing: 0, inserting: text)])]
        )
    }

    /// Connects the device while a peer types, and waits until its queue is empty.
    private static func connect(_ device: String, _ node: LocalNode, _ typed: Int) async throws -> [Measured] {
        let peer = try SyncClient(nodes: [node.url], store: .memory)
        let text = try await peer.open("bench")
        while try text.object("note", id: "1") == nil { try await Task.sleep(for: .milliseconds(5)) }
        let begin = Int(text.status.seq)
        let typing = Task { () -> Int in
            var count = 0
            while !Task.isCancelled {
                try await text.publish(splice(at: 0, "y")).acked()
                count += 1
                try? await Task.sleep(for: .milliseconds(50))
            }
            return count
        }
        let start = ContinuousClock.now
        let client = try SyncClient(nodes: [node.url], store: .file(device))
        let stream = try await client.open("bench")
        while stream.status.pendingCount > 0, (ContinuousClock.now - start) / .seconds(1) < secondsMax {
            try await Task.sleep(for: .milliseconds(5))
        }
        let taken = (ContinuousClock.now - start) / .seconds(1)
        let left = stream.status.pendingCount
        typing.cancel()
        let typedByPeer = try await typing.value
        let head = try await node.questions().head(of: "bench")
        let rest = left > 0 ? ", of which \(left) still wait" : ""
        await client.close()
        await peer.close()
        let work = "\(typed) keystrokes\(rest), connect beside a typing peer"
        return [
            Measured(
                work: work + ": events sent",
                value: Double(head - begin - typedByPeer),
                unit: "",
                goal: .atMost(50)
            ),
            Measured(work: work + ": time until the queue is empty", value: taken, unit: "s"),
        ]
    }
}
