import ReelKafka
import ReelNet

/// The settings of a log on Kafka: `--log kafka:…`, and every property of the client that may be set.
enum KafkaArguments {
    static let properties = SettingFamily(
        "kafka.NAME",
        "VALUE",
        KafkaProperty.all.map(KafkaSetting.init),
        "a property of the Kafka client, such as --kafka.security.protocol=ssl; see docs/kafka.md"
    )

    /// The properties that were given, by name.
    static func properties(_ options: Options) throws(Complaint) -> [String: String] {
        var given: [String: String] = [:]
        for (setting, value) in options[properties] {
            let property = setting.property
            let twin = property.original ?? property.name
            if let other = given.updateValue(value, forKey: twin), other != value {
                throw Complaint(.usage, "--\(setting.name) and --kafka.\(twin) are one property with two names")
            }
        }
        return given
    }

    /// The brokers of `HOST:PORT,HOST:PORT`; nil if it is no such list.
    static func brokers(_ list: Substring) -> [String]? {
        let brokers = list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        return brokers.allSatisfy { SocketAddress.split($0).map { !$0.host.isEmpty && $0.port > 0 } ?? false }
            ? brokers : nil
    }
}

/// A property of the Kafka client as a setting of the command line.
struct KafkaSetting: AnySetting {
    let property: KafkaProperty

    var name: String { "kafka." + property.name }
    var placeholder: String? { "VALUE" }
    var fallbackText: String? { nil }
    var repeats: Bool { false }
    var help: String { "a property of the Kafka client" }
    var expected: String { property.expected }

    func value(of texts: [String]) -> (any Sendable)? {
        texts.last.flatMap { property.complaint(about: $0) == nil ? $0 : nil }
    }

    func complaint(about texts: [String]) -> String {
        texts.last.flatMap(property.complaint) ?? "is empty"
    }
}
