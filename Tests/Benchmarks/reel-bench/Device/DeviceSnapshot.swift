import Foundation
import ReelCore

/// The snapshot of a large stream: objects of four fields, 200 bytes of JSON each, from four sites.
enum DeviceSnapshot {
    /// The number of objects of the large stream.
    static let objects = 1_000_000
    static let stream = StreamName("bench")!
    static let model = "task"
    static let epoch = Epoch(1)
    private static let sites = 4

    /// Returns the id of an object. The order of the ids is that of the numbers.
    static func id(_ number: Int) -> String { "object-" + String(1_0000_000 + number).dropFirst() }

    /// Returns the path of the delta that `write` makes beside a snapshot.
    static func delta(of path: String) -> String { path + ".delta" }

    /// Writes the snapshot of a stream of `objects` objects, each of which was inserted by one event. Beside it, writes
    /// the delta of one further event, which updates an object.
    static func write(_ objects: Int, to path: String) throws {
        var rules = PartitionRules(partition: 0, of: 1)
        var event = ParsedEvent()
        var state = Fold(stream: stream, partition: 0, epoch: epoch)
        func apply(_ value: [UInt8], seq: Seq) throws {
            let isApplied = stream.key.withUnsafeBytes { key in
                value.withUnsafeBytes { value in
                    guard case .event = rules.read(key: key, value: value, into: &event) else { return false }
                    return state.apply(event, value, seq: seq) == .applied
                }
            }
            guard isApplied else { throw BenchmarkError("event \(seq) was refused") }
        }
        for number in 0..<objects { try apply(insert(number), seq: Seq(number)) }
        try write(try state.snapshot(), to: path)
        try apply(update(of: objects / 2, seq: Seq(objects), op: 0), seq: Seq(objects))
        try write(try state.snapshot(after: Seq(objects) - 1), to: delta(of: path))
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

    private static func insert(_ number: Int) -> [UInt8] {
        stamped(fields, of: number, type: "insert", seq: number, site: number % sites, op: number / sites)
    }

    /// Returns an update of one field by a site that has made no object.
    static func update(of number: Int, seq: Seq, op: Int) -> [UInt8] {
        let fields = #""field1":"\#(String(repeating: "y", count: 38))""#
        return stamped(fields, of: number, type: "update", seq: Int(seq), site: sites, op: op)
    }

    private static func stamped(
        _ fields: String,
        of number: Int,
        type: String,
        seq: Int,
        site: Int,
        op: Int
    ) -> [UInt8] {
        let head = #"{"at":1795285748235,"base":\#(seq - 1),"fields":{"# + fields
        let name = #"},"id":"\#(id(number))","model":"\#(model)"#
        let tail = #"","op":\#(op),"site":"00000000-0000-4000-8000-00000000000\#(site)","type":"\#(type)"}"#
        return Array((head + name + tail).utf8)
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
