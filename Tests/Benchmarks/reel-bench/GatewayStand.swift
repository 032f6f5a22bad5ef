import Foundation
import ReelLab
import ReelNet

/// A gateway on an embedded log, and a NATS server next to it.
final class GatewayStand {
    let node: LocalNode
    let port: Int32
    let nats: Nats
    private let folder: String
    private var keeping: Nats?

    private init(_ node: LocalNode, _ folder: String) throws {
        self.node = node
        self.folder = folder
        guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
        self.port = port
        nats = try Nats(in: folder)
    }

    /// Starts both servers and calls `body` with them. `arguments` are further arguments of `reel gateway`.
    static func with<R>(
        _ arguments: [String] = [],
        _ body: (GatewayStand) async throws -> R
    ) async throws -> R {
        raiseDescriptorLimit()
        return try await withFolder { folder in
            let log = ["gateway", "--log", "sqlite:\(folder)/log.sqlite"]
            return try await withReel(log + arguments, in: folder) { node in
                try await body(try GatewayStand(node, folder))
            }
        }
    }

    /// Returns a NATS server that stores messages in the stream `FAN`.
    func jetStream() throws -> Nats {
        if let keeping { return keeping }
        let own = folder + "/keeping"
        try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: false)
        let nats = try Nats.withStream(in: own)
        keeping = nats
        return nats
    }
}

extension LocalNode {
    /// The port of the node.
    var port: Int32? { url.split(separator: ":").last.flatMap { Int32($0) } }

    /// Returns a client for HTTP queries to the node.
    func questions() throws -> Questions { try Questions(port: UInt16(clamping: port ?? 0)) }

    /// Waits until the node has read the records that the log contained at its start.
    func waitUntilReady() async throws {
        try await questions().wait(for: "\(name) is ready") { try await $0.get("/readyz").status == 200 }
    }
}
