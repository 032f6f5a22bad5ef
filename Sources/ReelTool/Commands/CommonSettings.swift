/// Settings that several commands share. A name has the same meaning in every command.
enum CommonSettings {
    static let json = Setting<Bool>.flag("json", "print JSON, one object a line, for programs")
    static let seed = Setting<Int?>.number("seed", "N", 0...Int.max, "seed of all random decisions, to repeat a run")
    static let apacheKafka = Setting<String?>.text(
        "apache-kafka",
        "DIR",
        "put the log on three brokers of the Kafka in this folder; some brokers are killed, too"
    )

    static let dryRun = Setting<Bool>.flag("dry-run", "show what the command would do, and write nothing")
}
