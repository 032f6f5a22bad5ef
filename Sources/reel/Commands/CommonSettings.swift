/// Settings that several commands share, so that a name means the same everywhere.
enum CommonSettings {
    static let json = Setting<Bool>.flag("json", "print JSON, one object a line, for a program to read")
    static let seed = Setting<Int?>.number("seed", "N", 0...Int.max, "repeats what chance decides")
    static let apacheKafka = Setting<String?>.text(
        "apache-kafka",
        "DIR",
        "put the log on three brokers of the Kafka in this folder, of which some are killed too"
    )

    static let dryRun = Setting<Bool>.flag("dry-run", "look and count, and write nothing")
}
