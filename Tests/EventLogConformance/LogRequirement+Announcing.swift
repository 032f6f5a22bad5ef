import Foundation
import ReelCore
import ReelLog
import Testing

extension LogRequirement {
    /// The requirements on the announcements by which nodes find each other.
    static let announcing: [LogRequirement] = [
        LogRequirement("nodes announce themselves, and the latest word counts") {
            log in
            let now = Int64(Date.now.timeIntervalSince1970 * 1000)
            // Other users of the same brokers announce nodes too, so the test only looks at ids of its own run.
            let run = UUID().uuidString
            func ours() throws -> [NodeAnnouncement] { try log.nodes().filter { $0.id.hasSuffix(run) } }
            var node = NodeAnnouncement(
                id: "n1-\(run)",
                role: "gateway",
                url: "http://127.0.0.1:1",
                advertised: nil,
                build: "1",
                epoch: Epoch(7),
                positions: [.init(partition: 0, seq: -1), .init(partition: 3, seq: 77)],
                atMs: now
            )
            try log.announce(node)
            #expect(try ours() == [node])
            node.positions[0].seq = largestInteger
            node.advertised = "wss://example.org/é\u{0}"
            try log.announce(node)
            var other = NodeAnnouncement(
                id: "n2-\(run)",
                role: "snapshot",
                url: "",
                advertised: "",
                build: "",
                positions: [],
                atMs: now
            )
            try log.announce(other)
            #expect(try ours() == [node, other])
            (node.hasLeft, other.hasLeft) = (true, true)
            try log.announce(node)
            try log.announce(other)
            #expect(try ours() == [node, other])
            (node.hasLeft, node.role, node.isReady) = (false, "serve", false)
            node.adminURL = "http://a.example:7360"
            node.folded = [.init(partition: 0, seq: 76)]
            node.stops = [
                .init(role: "gateway", partition: 3, code: .damaged),
                .init(role: "snapshot", partition: 0, code: .aheadOfLog, lost: Witness(seq: 76, hash: .max)),
            ]
            try log.announce(node)
            #expect(try ours() == [node, other])
        }
    ]
}
