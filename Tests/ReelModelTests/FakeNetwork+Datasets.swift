import Reel
import TestSupport

@testable import ClientTestSupport
@testable import ReelClient

extension FakeNetwork {
    /// Kills nodes, so that their devices have no network.
    func cut(_ nodes: Set<String>) async throws {
        try await on { network in
            for node in nodes { network.kill(node) }
        }
    }

    /// Connects the devices of these datasets again, and waits until each has everything.
    func heal(_ datasets: [Dataset]) async throws {
        try await on { $0.down = [] }
        for dataset in datasets { try await dataset.stream.flush(deadline: .seconds(60)) }
        let head = try await on { $0.head }
        for dataset in datasets { try await dataset.stream.waitUntil(seq: head) }
    }
}
