import Foundation

// reel-bench [NAME…]: runs the benchmarks of these names, or all, and prints their table.

try Leftovers.begin()
let status = await Benchmarks.run(CommandLine.arguments.dropFirst())
Leftovers.end()
exit(status)
