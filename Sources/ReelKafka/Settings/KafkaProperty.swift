internal import CRdkafka
internal import Glibc

/// One property of the Kafka client, as the loaded librdkafka describes it itself: so the list is always the list of
/// the library that runs, whichever version that is.
public struct KafkaProperty: Equatable, Sendable {
    /// Which kinds of handle it means something to.
    public enum Side: Sendable {
        /// Producer, consumer, or every handle.
        case producer, consumer, both
    }

    /// As librdkafka spells it, such as `security.protocol`.
    public let name: String
    /// The kinds of handle that read it.
    public let side: Side
    /// The property that this one is another name of.
    public let original: String?
    /// What a value may be; empty where any text may.
    let range: String
    private let isNumber: Bool

    /// All properties that a text can set, by name.
    public static let all: [KafkaProperty] = table().sorted { $0.name < $1.name }

    /// The property of this name; nil: there is none.
    public static func named(_ name: String) -> KafkaProperty? { byName[name] }

    private static let byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }

    /// Its value is nobody else's business: it never appears in a log line or an error.
    public var isSecret: Bool {
        ["password", "secret", "passphrase", "key.pem", "oauthbearer.config"].contains { name.contains($0) }
    }

    /// Why nobody may set it; nil: anybody may.
    public var refusal: String? { Self.fixed[name] ?? original.flatMap { Self.fixed[$0] } }

    /// What a value may be, in words.
    public var expected: String {
        range.isEmpty ? "a value that librdkafka takes, see its CONFIGURATION.md" : range
    }

    /// A handle of this kind reads it; another would warn of it.
    func matters(to kind: KafkaHandle.Kind) -> Bool {
        switch side {
        case .producer: kind.isProducer
        case .consumer: !kind.isProducer
        case .both: true
        }
    }

    /// Why this cannot be its value, to be read behind its name; nil: it can.
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
    /// The rows of the table that librdkafka prints: `name | C/P | range | default | importance | description`.
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
            // A property of the connection and of a topic alike has two rows; the first one says more.
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
        // Callbacks and pointers are no texts, and what is compiled in is no setting.
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
