import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelGateway

/// Runs gateways with a state in their own process, and gateways that ask another node.
enum StateWay {
    /// Runs the body with a gateway whose state is in its process, then with one that asks another node.
    static func each(
        _ change: @escaping (inout GatewaySettings) -> Void = { _ in },
        node changeNode: (inout SnapshotSettings) -> Void = { _ in },
        _ body: (LiveGateway) async throws -> Void
    ) async throws {
        for isApart in [false, true] {
            let folder = FileManager.default.temporaryDirectory.appending(path: "reel-state-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let log = try MemoryLog(partitions: 1)
            var settings = SnapshotSettings(folder: folder)
            // On a busy machine the node may fold an event late.
            settings.reachMs = 600_000
            changeNode(&settings)
            if isApart {
                var common = NodeSettings.forTests
                common.announceMs = 20
                let node = try SnapshotServer(log: log, settings: settings, common: common)
                let live = try LiveGateway(log) {
                    $0.node.announceMs = 20
                    $0.peerMs = 600_000
                    $0.outcomeMs = 600_000
                    change(&$0)
                }
                try await live.started()
                try await eventually("the gateway knows the snapshot node") {
                    live.gateway.announcer.nodes.contains { $0.role == "snapshot" }
                }
                try await use(live, body)
                node.end.begin()
                await node.waitUntilEnded()
            } else {
                let (logger, metrics) = (Logger(threshold: .error), Metrics())
                let node = try SnapshotNode(log: log, settings: settings, logger: logger, metrics: metrics)
                let live = try LiveGateway(log, state: node) {
                    $0.outcomeMs = 600_000
                    change(&$0)
                }
                try await live.started()
                try await use(live, body)
                node.close()
            }
            log.close()
        }
    }

    private static func use(_ live: LiveGateway, _ body: (LiveGateway) async throws -> Void) async throws {
        do {
            try await body(live)
        } catch {
            await live.end()
            throw error
        }
        await live.end()
    }
}

extension HTTPResponse {
    /// The JSON object in the body.
    var members: [String: Any] {
        get throws { try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) }
    }
}
