/// A count that came as a double, whatever it is: what no integer holds is `Int.max`.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded(.down)) ?? .max }

/// The numbers of a node's `/metrics` that are not zero.
struct MetricsPage: Equatable {
    struct Sample: Equatable {
        /// With its labels, as the page has it: `reel_gateway_nacks_total{code="stale"}`.
        var series: String
        var value: Double
    }

    private(set) var samples: [Sample] = []

    init(_ page: String = "") {
        for line in page.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]), value != 0
            else { continue }
            samples.append(Sample(series: String(line[..<space]), value: value))
        }
    }

    /// Whether there are numbers whose names begin so.
    func hasFamily(_ prefix: String) -> Bool { samples.contains { $0.series.hasPrefix(prefix) } }

    /// The number of a series without labels; 0 where there is none.
    func value(_ name: String) -> Double { samples.first { $0.series == name }?.value ?? 0 }

    /// The numbers of a family by its one label's value: `["stale": 3]`.
    func values(_ name: String, by label: String) -> [String: Double] {
        let prefix = "\(name){\(label)=\""
        var values: [String: Double] = [:]
        for sample in samples where sample.series.hasPrefix(prefix) {
            values[String(sample.series.dropFirst(prefix.count).prefix { $0 != "\"" })] = sample.value
        }
        return values
    }
}
