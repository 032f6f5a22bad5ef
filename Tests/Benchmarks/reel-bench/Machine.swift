import Foundation

/// The machine on which the figures are measured.
enum Machine {
    /// The CPU, its cores, the kernel and the current time, in one line.
    static var line: String {
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let date = Date.now.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: false))
        return "\(cpu), \(cores) cores, Linux \(kernel), \(date) UTC; medians of 5"
    }

    private static var cpu: String {
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        return model.map { $0.trimmingCharacters(in: .whitespaces) } ?? "an unknown CPU"
    }
}
