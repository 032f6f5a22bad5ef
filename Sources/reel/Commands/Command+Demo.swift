import Glibc
import ReelLab

extension Command {
    static let keep = Setting<Bool>.flag("keep", "leave the nodes running, and print what to try")

    /// The main job, shown on one screen.
    static let demo = Command(
        "demo",
        "watch devices share data through two gateways, one of which is killed",
        about: """
            Starts two gateways and a snapshot node on one SQLite log in a temporary folder, lets devices publish, miss
            a range, lose their gateway and join late, and checks at each step what must hold. It ends by itself; exit
            code 0 only if everything held.
            """,
        settings: [CommonSettings.apacheKafka, keep],
        examples: [
            Example("reel demo", "the whole story, in less than half a minute"),
            Example("reel demo --apache-kafka kafka_2.13-4.2.0", "on a real Kafka, as Apache's archive unpacks it"),
            Example("reel demo --keep", "and then look around in what it leaves running"),
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

/// The path of this program.
func ownPath() throws(CommandError) -> String {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &path, path.count - 1)
    guard count > 0 else {
        throw CommandError(.failed, "the program's own path is unknown: /proc/self/exe cannot be read")
    }
    return String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
