import Foundation
import ReelLab

/// A process of this program that does a part of a benchmark and prints its figures, each as a name and a number.
enum WorkProcess {
    /// Runs this program with these arguments until it ends. Returns the figures that it prints.
    static func figures(_ arguments: [String]) throws -> [String: Double] {
        let process = try ChildProcess("/proc/self/exe", arguments)
        Leftovers.started(process.pid)
        defer {
            process.killNow()
            Leftovers.ended(process.pid)
        }
        var figures: [String: Double] = [:]
        while let line = try process.readLine(timeoutMs: 180_000) {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let value = Double(parts[1]) else {
                throw BenchmarkError("\(arguments.prefix(2).joined(separator: " ")): \(line)")
            }
            figures[String(parts[0])] = value
        }
        return figures
    }
}

extension [String: Double] {
    /// Returns a figure of a process.
    func figure(_ name: String) throws -> Double {
        guard let value = self[name] else { throw BenchmarkError("found no figure \(name) of a process") }
        return value
    }
}
