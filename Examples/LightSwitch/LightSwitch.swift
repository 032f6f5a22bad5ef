import Reel
import ReelClient

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A light switch on Reel, absolute and relative.
///
///     swift run example-light-switch http://127.0.0.1:7350 hall.reel on
///     swift run example-light-switch http://127.0.0.1:7350 hall.reel press
@main
struct LightSwitch {
    static let usage = """
        usage: example-light-switch NODE FILE COMMAND
          on, off     sets the switch: the last write of all devices wins
          press       presses the button: the presses of all devices count
          show        shows the lamp
        Without a network the change waits in FILE. NODE - stands for no network.

        """

    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count == 3, ["on", "off", "press", "show"].contains(words[2]) else { end(usage, code: 2) }
        do {
            try await run(words[2], nodes: words[0] == "-" ? [] : [words[0]], file: words[1])
        } catch {
            end("example-light-switch: \(error)\n", code: 1)
        }
    }

    static func run(_ command: String, nodes: [String], file: String) async throws {
        let client = try SyncClient(nodes: nodes, store: .file(file))
        let lights = try await client.open("lights", models: [Light.self])
        // The device reads what others have done, if a node can be reached.
        if !nodes.isEmpty { _ = try? await client.syncOnce(deadline: .seconds(5)) }
        if command != "show" { try await lights.insertDefaults(Light(id: Light.hall)) }
        switch command {
        case "on", "off": try await lights.update(Light.hall) { $0.isOn = command == "on" }
        case "press": try await lights.update(Light.hall) { $0.presses += 1 }
        default: break
        }
        var waits = false
        do {
            if !nodes.isEmpty { try await lights.stream.flush(deadline: .seconds(5)) }
        } catch is FlushTimeout {
            waits = true
        }
        let light = try lights.object(Light.hall) ?? Light(id: Light.hall)
        print("switch: \(light.isOn ? "on" : "off"), button: \(light.isLit ? "on" : "off")")
        if waits { print("no node answered: the change waits in \(file)") }
        await client.close()
    }

    static func end(_ text: String, code: Int32) -> Never {
        let bytes = Array(text.utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
        exit(code)
    }
}
