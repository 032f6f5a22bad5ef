import Foundation

// reel-bench [NAME…]: runs the benchmarks of these names and prints their table; without names, all but those that want
// a real Kafka, which together are called `kafka`.

// As `reel` has it: what is measured runs under the same conditions.
signal(SIGPIPE, SIG_IGN)
setenv("UV_THREADPOOL_SIZE", "16", 0)
try Leftovers.begin()
let status = await Benchmarks.run(CommandLine.arguments.dropFirst())
Leftovers.end()
exit(status)
