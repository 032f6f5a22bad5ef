import Foundation

// `reel-bench [NAME…]` runs the benchmarks or groups with these names and prints their table. Without names, it runs
// all benchmarks except the groups `kafka` and `gateway`, which need other programs, and `sdk`.

// `reel` sets these for its own process too, so the benchmarks run under the same conditions.
signal(SIGPIPE, SIG_IGN)
setenv("UV_THREADPOOL_SIZE", "16", 0)
if CommandLine.arguments.dropFirst().first == DeviceWork.command {
    exit(await DeviceWork.run(CommandLine.arguments.dropFirst(2)))
}
if CommandLine.arguments.dropFirst().first == NodeWork.command {
    exit(NodeWork.run(CommandLine.arguments.dropFirst(2)))
}
try Leftovers.begin()
let status = await Benchmarks.run(CommandLine.arguments.dropFirst())
Leftovers.end()
exit(status)
