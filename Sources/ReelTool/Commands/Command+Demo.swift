import Glibc
import ReelLab

extension Command {
    static let keep = Setting<Bool>.flag("keep", "leave the nodes running, and print commands to try")

    /// `reel demo`: the guarantees, shown on one screen.
    static let demo = Command(
        "demo",
        "watch devices share data through two gateways, one of which is killed",
        about: """
            Starts two gateways and a snapshot node on one SQLite log in a temporary folder. Devices publish, miss a
            range of events, lose their gateway and join late. After each step the demo checks what must hold. The exit
            code is 0 only if every check succeeds.
            """,
        settings: [CommonSettings.apacheKafka, keep],
        examples: [
            Example("reel demo", "all steps, in less than half a minute"),
            Example("reel demo --apache-kafka kafka_2.13-4.2.0", "on a real Kafka, unpacked from Apache's archive"),
            Example("reel demo --keep", "the nodes keep running, so that you can try other commands"),
        ]
    ) { options, console in
        let screen = DemoScreen(isTerminal: console.isTerminal) { line in
            try? console.print(line)
            try? console.flush()
        }
        let home = try options[CommonSettings.apacheKafka].map { try KafkaHome($0) }
        let demo = try Demo(reel: try ownPath(), kafka: home, screen: screen)
        let held: Bool
        do {
            held = try await demo.run()
        } catch {
            await demo.end()
            throw error
        }
        if options[keep] { try await demo.keep() }
        await demo.end()
        return held ? .done : .failed
    }
}

/// Returns the path of this program.
func ownPath() throws(CommandError) -> String {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &path, path.count - 1)
    guard count > 0 else {
        throw CommandError(.failed, "the program's own path is unknown: /proc/self/exe cannot be read")
    }
    return String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
