import Synchronization

/// The metrics of a node, for Prometheus. Each metric is registered once, at the start. Counters and gauges are updated
/// without a lock.
public final class Metrics: Sendable {
    fileprivate enum Source: Sendable {
        case counter(Counter)
        case gauge(Gauge)
        case histogram(Histogram)
        case measured(@Sendable () -> Int)
        case timed(@Sendable () -> Duration)
    }

    private struct Family: Sendable {
        var name: String
        var help: String
        var kind: String
        var members: [(labels: String, source: Source)]
    }

    private let families = Mutex<[Family]>([])

    /// A set without metrics.
    public init() {}

    /// Registers a counter. A known name with other labels joins the family of that name. A second registration of the
    /// same name and labels, such as by another role of the process, returns the same counter.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - labels: The labels of the counter, by name.
    public func counter(_ name: String, _ help: String, labels: [String: String] = [:]) -> Counter {
        let text = text(of: labels)
        let known = families.withLock { families in
            families.first { $0.name == name }?.members.first { $0.labels == text }?.source
        }
        if case .counter(let counter) = known { return counter }
        let counter = Counter()
        add(name, help, "counter", labels, .counter(counter))
        return counter
    }

    /// Registers a counter whose count is stored elsewhere.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - labels: The labels of the counter, by name.
    ///   - measure: Returns the count. Called at each read, from any thread.
    public func counter(
        _ name: String,
        _ help: String,
        labels: [String: String] = [:],
        measure: @escaping @Sendable () -> Int
    ) {
        add(name, help, "counter", labels, .measured(measure))
    }

    /// Registers a gauge.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - labels: The labels of the gauge, by name.
    public func gauge(_ name: String, _ help: String, labels: [String: String] = [:]) -> Gauge {
        let gauge = Gauge()
        add(name, help, "gauge", labels, .gauge(gauge))
        return gauge
    }

    /// Registers a gauge whose value is stored elsewhere.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - labels: The labels of the gauge, by name.
    ///   - measure: Returns the value. Called at each read, from any thread.
    public func gauge(
        _ name: String,
        _ help: String,
        labels: [String: String] = [:],
        measure: @escaping @Sendable () -> Int
    ) {
        add(name, help, "gauge", labels, .measured(measure))
    }

    /// Registers a gauge of a time in seconds.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - time: Returns the time. Called at each read, from any thread.
    public func gauge(_ name: String, _ help: String, time: @escaping @Sendable () -> Duration) {
        add(name, help, "gauge", [:], .timed(time))
    }

    /// Registers a counter of a time in seconds.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - labels: The labels of the counter, by name.
    ///   - time: Returns the time. Called at each read, from any thread.
    public func timedCounter(
        _ name: String,
        _ help: String,
        labels: [String: String] = [:],
        time: @escaping @Sendable () -> Duration
    ) {
        add(name, help, "counter", labels, .timed(time))
    }

    /// Registers a histogram of times in seconds.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - help: The sentence that explains the metric.
    ///   - bounds: The upper bounds of the buckets, ascending.
    ///   - labels: The labels of the histogram, by name.
    public func histogram(
        _ name: String,
        _ help: String,
        bounds: [Duration],
        labels: [String: String] = [:]
    ) -> Histogram {
        let histogram = Histogram(bounds: bounds)
        add(name, help, "histogram", labels, .histogram(histogram))
        return histogram
    }

    private func add(_ name: String, _ help: String, _ kind: String, _ labels: [String: String], _ source: Source) {
        let text = text(of: labels)
        families.withLock { families in
            if let index = families.firstIndex(where: { $0.name == name }) {
                families[index].members.append((text, source))
            } else {
                families.append(Family(name: name, help: help, kind: kind, members: [(text, source)]))
            }
        }
    }

    private func text(of labels: [String: String]) -> String {
        labels.sorted { $0.key < $1.key }.map { "\($0.key)=\"\(escape($0.value))\"" }.joined(separator: ",")
    }

    private func escape(_ value: String) -> String {
        var escaped = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    /// Returns all metrics in the Prometheus text format, version 0.0.4.
    public func text() -> String {
        var text = ""
        for family in families.withLock({ $0 }) {
            text += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind)\n"
            for (labels, source) in family.members {
                let braced = labels.isEmpty ? "" : "{\(labels)}"
                switch source {
                case .counter(let counter): text += "\(family.name)\(braced) \(counter.value)\n"
                case .gauge(let gauge): text += "\(family.name)\(braced) \(gauge.value)\n"
                case .measured(let measure): text += "\(family.name)\(braced) \(measure())\n"
                case .timed(let time): text += "\(family.name)\(braced) \(time().inSeconds)\n"
                case .histogram(let histogram): text += histogram.lines(family.name, labels)
                }
            }
        }
        return text
    }
}

/// A number that only grows. From any thread.
public final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    /// The current count.
    public var value: Int { count.load(ordering: .relaxed) }

    /// Adds `amount` to the count.
    @inline(__always)
    public func add(_ amount: Int = 1) {
        count.wrappingAdd(amount, ordering: .relaxed)
    }
}

/// A number that goes up and down. From any thread.
public final class Gauge: Sendable {
    private let level = Atomic<Int>(0)

    /// The current value.
    public var value: Int { level.load(ordering: .relaxed) }

    /// Adds `amount`, which may be negative, to the value.
    public func add(_ amount: Int) {
        level.wrappingAdd(amount, ordering: .relaxed)
    }

    /// Sets the value.
    public func set(_ value: Int) {
        level.store(value, ordering: .relaxed)
    }
}

/// The number of times at or below each bound. From any thread.
public final class Histogram: Sendable {
    private struct State {
        var counts: [Int]
        var sum = Duration.zero
    }

    private let bounds: [Duration]
    private let state: Mutex<State>

    fileprivate init(bounds: [Duration]) {
        self.bounds = bounds
        state = Mutex(State(counts: [Int](repeating: 0, count: bounds.count + 1)))
    }

    /// Counts one time.
    public func record(_ time: Duration) {
        let index = bounds.firstIndex { time <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += time
        }
    }

    fileprivate func lines(_ name: String, _ labels: String) -> String {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        let prefix = labels.isEmpty ? "" : labels + ","
        let braced = labels.isEmpty ? "" : "{\(labels)}"
        var text = ""
        var total = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? "\(bounds[index].inSeconds)" : "+Inf"
            text += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
        }
        return text + "\(name)_sum\(braced) \(sum.inSeconds)\n\(name)_count\(braced) \(total)\n"
    }
}

extension Duration {
    fileprivate var inSeconds: Double { self / .seconds(1) }
}
