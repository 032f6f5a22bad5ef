internal import CRdkafka
internal import Glibc

/// A property of the Kafka client, as the loaded librdkafka describes it. So the list always fits the library that
/// runs, of any version.
public struct KafkaProperty: Equatable, Sendable {
    /// The kinds of handle for which a property has a meaning.
    public enum Side: Sendable {
        /// A producer, a consumer, or every handle.
        case producer, consumer, both
    }

    /// The name as librdkafka spells it, such as `security.protocol`.
    public let name: String
    /// The kinds of handle that read the property.
    public let side: Side
    /// The property of which this one is an alias.
    public let original: String?
    /// The possible values in words; empty if any text is possible.
    let range: String
    private let isNumber: Bool

    /// All properties that can be set to a text, by name.
    public static let all: [KafkaProperty] = table().sorted { $0.name < $1.name }

    /// Returns the property of this name; nil: there is none.
    public static func named(_ name: String) -> KafkaProperty? { byName[name] }

    private static let byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }

    /// True if the value is secret: it never appears in a log line or an error.
    public var isSecret: Bool {
        ["password", "secret", "passphrase", "key.pem", "oauthbearer.config"].contains { name.contains($0) }
    }

    /// Why the property cannot be set; nil: it can.
    public var refusal: String? { Self.fixed[name] ?? original.flatMap { Self.fixed[$0] } }

    /// The possible values, in words.
    public var expected: String {
        range.isEmpty ? "a value that librdkafka takes, see its CONFIGURATION.md" : range
    }

    /// True if a handle of this kind reads the property. Another handle would warn about it.
    func matters(to kind: KafkaHandle.Kind) -> Bool {
        switch side {
        case .producer: kind.isProducer
        case .consumer: !kind.isProducer
        case .both: true
        }
    }

    /// Returns why `value` is not a possible value; nil: it is one. The text follows the name of the property.
    public func complaint(about value: String) -> String? {
        if let refusal { return "cannot be set: \(refusal)" }
        if !isNumber || Int(value) != nil, isTaken(value) { return nil }
        return "is \(isSecret ? "a text that is not shown" : "`\(value)`"); expected is \(expected)"
    }

    private func isTaken(_ value: String) -> Bool {
        guard let probe = rd_kafka_conf_new() else { return false }
        defer { rd_kafka_conf_destroy(probe) }
        return rd_kafka_conf_set(probe, name, value, nil, 0) == RD_KAFKA_CONF_OK
    }
}

// MARK: The library's own table

extension KafkaProperty {
    /// Returns the rows of the table that librdkafka prints: `name | C/P | range | default | importance | description`.
    private static func table() -> [KafkaProperty] {
        var text: UnsafeMutablePointer<CChar>?
        var length = 0
        guard let stream = open_memstream(&text, &length) else { return [] }
        rd_kafka_conf_properties_show(stream)
        fclose(stream)
        guard let text else { return [] }
        defer { free(text) }
        let table = String(decoding: UnsafeRawBufferPointer(start: text, count: length), as: UTF8.self)
        var properties: [String: KafkaProperty] = [:]
        for line in table.split(separator: "\n") {
            // A property of both the connection and a topic has two rows; the first one has more information.
            guard let property = KafkaProperty(row: line), properties[property.name] == nil else { continue }
            properties[property.name] = property
        }
        return Array(properties.values)
    }

    private init?(row: Substring) {
        let cells = row.split(separator: "|", maxSplits: 5, omittingEmptySubsequences: false)
        guard cells.count == 6 else { return nil }
        switch Self.trimmed(cells[1]) {
        case "P": side = .producer
        case "C": side = .consumer
        case "*": side = .both
        default: return nil
        }
        // Callbacks and pointers cannot be set to a text, and compiled-in features cannot be set.
        guard !cells[5].contains("see dedicated API"), !cells[0].contains("builtin.features") else { return nil }
        name = Self.trimmed(cells[0])
        range = Self.trimmed(cells[2])
        isNumber = cells[5].contains("*Type: integer*")
        let alias = cells[5].split(separator: "`", maxSplits: 2)
        original = cells[5].contains("Alias for `") && alias.count == 3 ? String(alias[1]) : nil
    }

    private static func trimmed(_ cell: Substring) -> String {
        guard let first = cell.firstIndex(where: { $0 != " " }), let last = cell.lastIndex(where: { $0 != " " })
        else { return "" }
        return String(cell[first...last])
    }
}
