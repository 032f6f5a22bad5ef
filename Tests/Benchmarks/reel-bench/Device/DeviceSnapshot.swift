import Foundation
import ReelCore

/// The snapshot of a large stream: objects of four fields, 200 bytes of JSON each, from four sites.
enum DeviceSnapshot {
    /// The number of objects of the large stream.
    static let objects = 1_000_000
    static let stream = StreamName("bench")!
    static let model = "task"
    static let epoch = Epoch(1)

    /// Returns the id of an object. The order of the ids is that of the numbers.
    static func id(_ number: Int) -> String { "object-" + String(1_0000_000 + number).dropFirst() }

    /// Returns the path of the delta that `write` makes beside a snapshot.
    static func delta(of path: String) -> String { path + ".delta" }

    /// Writes the snapshot of a stream of `objects` objects, each of which was inserted by one event. Beside it, writes
    /// the delta of one further event, which updates an object.
    static func write(_ objects: Int, to path: String) throws {
        try write(objects, to: path, last: update(of: objects / 2, seq: Seq(objects), op: 0)) { insert($0) }
    }

    /// Writes the snapshot of a stream.
    ///
    /// - Parameters:
    ///   - count: the number of events of the stream.
    ///   - path: the path of the snapshot.
    ///   - last: one further event, whose delta is written beside the snapshot; nil: there is none.
    ///   - event: returns the event with a seq.
    static func write(
        _ count: Int,
        to path: String,
        last: LoggedEvent? = nil,
        _ event: (Seq) -> LoggedEvent
    ) throws {
        var rules = PartitionRules(partition: 0, of: 1)
        var parsed = ParsedEvent()
        var state = Fold(stream: stream, partition: 0, epoch: epoch)
        func apply(_ event: LoggedEvent) throws {
            let isApplied = stream.key.withUnsafeBytes { key in
                event.json.withUnsafeBytes { value in
                    guard case .event = rules.read(key: key, value: value, into: &parsed) else { return false }
                    return state.apply(parsed, value, seq: event.seq) == .applied
                }
            }
            guard isApplied else { throw BenchmarkError("event \(event.seq) was refused") }
        }
        for number in 0..<count { try apply(event(Seq(number))) }
        try write(try state.snapshot(), to: path)
        guard let last else { return }
        try apply(last)
        try write(try state.snapshot(after: last.seq - 1), to: delta(of: path))
    }

    private static func write(_ lines: SnapshotWriter, to path: String) throws {
        guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path)
        else { throw BenchmarkError("cannot create \(path)") }
        var writer = lines
        var bytes: [UInt8] = []
        var hasMore = true
        while hasMore {
            bytes.removeAll(keepingCapacity: true)
            while hasMore, bytes.count < 1 << 20 { hasMore = writer.next(into: &bytes) }
            try file.write(contentsOf: bytes)
        }
        try file.close()
    }

    private static let fields = (0..<4).map { #""field\#($0)":"\#(String(repeating: "x", count: 38))""# }
        .joined(separator: ",")

    private static func insert(_ seq: Seq) -> LoggedEvent {
        let (number, sites) = (Int(seq), LoggedEvent.sites)
        return LoggedEvent(
            .insert,
            model,
            id(number),
            #""fields":{\#(fields)}"#,
            seq: seq,
            site: number % sites,
            op: number / sites
        )
    }

    /// Returns an update of one field by a site that has made no object.
    static func update(of number: Int, seq: Seq, op: Int) -> LoggedEvent {
        let fields = #""field1":"\#(String(repeating: "y", count: 38))""#
        return LoggedEvent(.update, model, id(number), #""fields":{\#(fields)}"#, seq: seq, op: op)
    }
}

/// The snapshot of the large stream, and the file of a device that has loaded it. The benchmarks of a run share them.
actor LoadedDevice {
    /// The files, and the figures of the load.
    struct Files {
        let snapshot = Leftovers.folder + "/stream.snapshot"
        let device = Leftovers.folder + "/device.sqlite"
        var figures: [String: Double] = [:]
    }

    static let shared = LoadedDevice()
    private var files: Files?

    /// Returns the files. Makes them at the first call.
    func load() throws -> Files {
        if let files { return files }
        var files = Files()
        _ = try DeviceWork.snapshot.figures(files.snapshot)
        files.figures = try DeviceWork.load.figures(files.snapshot, files.device)
        self.files = files
        return files
    }
}
