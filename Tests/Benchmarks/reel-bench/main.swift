// reel-bench [NAME…]: runs the benchmarks of these names, or all, and prints a table for each.

await Benchmarks.run(CommandLine.arguments.dropFirst())
