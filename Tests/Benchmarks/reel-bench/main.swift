// reel-bench NAME: one benchmark a file.
import Glibc

let benchmarks: [(name: String, run: () throws -> Void)] = [
    ("fan-out", { try benchmarkFanOut() })
]

let names = CommandLine.arguments.dropFirst()
for name in names where !benchmarks.contains(where: { $0.name == name }) {
    print("no benchmark \(name); there are: \(benchmarks.map(\.name).joined(separator: ", "))")
    exit(2)
}
for benchmark in benchmarks where names.isEmpty || names.contains(benchmark.name) {
    try benchmark.run()
}
