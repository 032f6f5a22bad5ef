/// Returns a count as an integer, rounded down; `Int.max` if no integer has its value.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded(.down)) ?? .max }

/// The samples of a node's `/metrics` that are not zero.
struct MetricsPage: Equatable {
    struct Sample: Equatable {
        /// The name with its labels, as on the page: `reel_gateway_nacks_total{code="stale"}`.
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

    /// Returns true if there are samples whose names begin with `prefix`.
    func hasFamily(_ prefix: String) -> Bool { samples.contains { $0.series.hasPrefix(prefix) } }

    /// Returns the value of a series without labels; 0 if there is none.
    func value(_ name: String) -> Double { samples.first { $0.series == name }?.value ?? 0 }

    /// Returns the values of a family with one label, by the values of `label`: `["stale": 3]`.
    func values(_ name: String, by label: String) -> [String: Double] {
        let prefix = "\(name){\(label)=\""
        var values: [String: Double] = [:]
        for sample in samples where sample.series.hasPrefix(prefix) {
            values[String(sample.series.dropFirst(prefix.count).prefix { $0 != "\"" })] = sample.value
        }
        return values
    }
}
