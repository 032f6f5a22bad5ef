/// The age of a broker, derived from the requests that it accepts. librdkafka prints them for each broker that it
/// connects to.
///
/// A broker does not report its release. Kafka 3.7 introduced version 16 of Fetch, and every release accepts the
/// requests of earlier ones.
struct BrokerVersion: Equatable {
    /// The address of the broker, `HOST:PORT`.
    let broker: String
    /// The newest version of Fetch that the broker accepts.
    let fetch: Int

    /// Reads a line such as `…/bootstrap:   ApiKey Fetch (1) Versions 4..18`; nil for other lines.
    init?(line: String) {
        guard let start = line.firstRange(of: "ApiKey Fetch (1) Versions ") else { return nil }
        guard let dots = line[start.upperBound...].firstRange(of: "..") else { return nil }
        guard let newest = Int(line[dots.upperBound...].prefix { $0.isNumber }) else { return nil }
        fetch = newest
        let name = line[..<start.lowerBound].split(separator: " ").last ?? ""
        let address = name.firstRange(of: "://").map { name[$0.upperBound...] } ?? name
        broker = String(address.lastIndex(of: "/").map { address[..<$0] } ?? address)
    }

    /// True for Kafka 3.7 or newer.
    var isEnough: Bool { fetch >= 16 }

    /// The releases with this version of Fetch as their newest.
    var releases: String {
        switch fetch {
        case ...10: "2.2 or older"
        case 11: "2.3 to 2.6"
        case 12: "2.7 to 3.0"
        case 13: "3.1 to 3.4"
        case 14...15: "3.5 to 3.6"
        case 16: "3.7 to 3.8"
        default: "3.9 or newer"
        }
    }
}
