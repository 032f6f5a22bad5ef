/// Work of a device that runs in a process of its own, so that its memory and its processor time can be measured.
enum DeviceWork: String {
    case snapshot, load, open, memory, launch, read, held, unheld

    /// The first argument of a process that runs such work.
    static let command = "device"

    /// Runs the work that the arguments name, in this process, and prints its figures. Returns the exit status.
    static func run(_ arguments: ArraySlice<String>) async -> Int32 {
        let rest = Array(arguments.dropFirst())
        do {
            guard let work = arguments.first.flatMap(DeviceWork.init) else {
                throw BenchmarkError("found \(arguments), expected the work of a device")
            }
            for (name, value) in try await work.measure(rest) { print("\(name) \(value)") }
            return 0
        } catch {
            print("failed: \(error)")
            return 1
        }
    }

    private func measure(_ paths: [String]) async throws -> [String: Double] {
        guard let first = paths.first, let last = paths.last, paths.count <= 2 else {
            throw BenchmarkError("found \(paths), expected one or two paths")
        }
        switch self {
        case .snapshot:
            try DeviceSnapshot.write(DeviceSnapshot.objects, to: first)
            return [:]
        case .load: return try await DeviceLoad.load(snapshot: first, into: last)
        case .open: return try await DeviceLaunch.open(first)
        case .memory: return try await DeviceLaunch.memory(of: first)
        case .launch: return try await DeviceLaunch.withNews(first, last)
        case .read: return try await DeviceLaunch.readBesideLoad(of: first, into: last)
        case .held: return try await DeviceHeld.measure(in: first, isHeld: true)
        case .unheld: return try await DeviceHeld.measure(in: first, isHeld: false)
        }
    }

    /// Runs the work in a process of its own, and returns its figures by name. `paths`: the files that it uses.
    func figures(_ paths: String...) throws -> [String: Double] {
        try WorkProcess.figures([Self.command, rawValue] + paths)
    }
}
