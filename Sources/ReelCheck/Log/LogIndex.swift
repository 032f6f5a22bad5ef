/// The positions of the lines of all dumps, by epoch and partition, before the lines are interpreted.
struct LogIndex {
    /// The position of a record's line.
    struct Entry {
        let seq: Int64
        let file: Int32
        let start: Int
        let isEmpty: Bool
    }

    let files: [MappedFile]
    /// The entries of each partition, ordered by seq. A seq occurs once for each dump that contains it.
    private(set) var partitions: [UInt64: [Int: [Entry]]] = [:]
    /// The dumps of each epoch.
    private(set) var dumps: [UInt64: Set<Int32>] = [:]
    /// The dumps that do not name the seqs without a record.
    private(set) var kcat: Set<Int32> = []
    /// The reasons why a dump is incomplete. If there are any, the content after the last record of a partition is
    /// unknown.
    private(set) var troubles: [String] = []

    /// Reads all dumps. A line that names no epoch belongs to the epoch in the file's name, or else to `fallback`.
    init(_ files: [MappedFile], fallback: UInt64?) {
        self.files = files
        for (number, file) in files.enumerated() {
            if file.isCut {
                troubles.append(
                    "\(file.name) was cut in the middle of a line: the end of the log is not known; dump the log again"
                )
            }
            let usual = Self.epoch(inName: file.name) ?? fallback
            if file.bytes.isEmpty, let usual { dumps[usual, default: []].insert(Int32(number)) }
            var last: UInt64?
            do throws(Fault) {
                try file.eachLine { (place) throws(Fault) in
                    let epoch = try add(place, file, Int32(number), usual)
                    if epoch != last { dumps[epoch, default: []].insert(Int32(number)) }
                    last = epoch
                }
            } catch {
                troubles.append("\(file.name): \(error.reason)")
            }
        }
        for (epoch, numbered) in partitions {
            for (partition, entries) in numbered
            where !zip(entries, entries.dropFirst()).allSatisfy({ $0.seq < $1.seq }) {
                partitions[epoch]?[partition] = entries.sorted { ($0.seq, $0.file) < ($1.seq, $1.file) }
            }
        }
    }

    /// Adds a line, and returns the epoch of its record.
    private mutating func add(
        _ place: Range<Int>,
        _ file: MappedFile,
        _ number: Int32,
        _ usual: UInt64?
    ) throws(Fault) -> UInt64 {
        let line: LogLine
        do throws(Fault) {
            line = try LogLine(file.bytes, place)
        } catch {
            throw Fault("\(error.reason), in \(file.quote(lineAt: place.lowerBound)); dump the log again")
        }
        guard let epoch = line.epoch ?? usual else {
            throw Fault(
                "its lines name no epoch, and neither does its name; call it log-EPOCH.jsonl"
            )
        }
        if line.isFromKcat { kcat.insert(number) }
        partitions[epoch, default: [:]][line.partition, default: []]
            .append(Entry(seq: line.seq, file: number, start: place.lowerBound, isEmpty: line.isEmpty))
        return epoch
    }

    /// True if the name of a dump says that it is the last one of the epoch.
    func isNamedLast(_ file: Int32, of epoch: UInt64) -> Bool {
        ["log.jsonl", "log-\(hex(epoch, digits: 16)).jsonl"].contains(files[Int(file)].name)
    }

    func line(_ entry: Entry) throws(Fault) -> LogLine {
        let file = files[Int(entry.file)]
        return try LogLine(file.bytes, entry.start..<(file.end(ofLineAt: entry.start) ?? file.bytes.count))
    }

    /// Returns the place of a record's line in a readable form.
    func place(_ entry: Entry) -> String {
        files[Int(entry.file)].place(lineAt: entry.start)
    }

    func quote(_ entry: Entry) -> Quote {
        files[Int(entry.file)].quote(lineAt: entry.start)
    }

    /// Returns the epoch in a file's name: sixteen adjacent hex digits; nil if there is none.
    private static func epoch(inName name: String) -> UInt64? {
        name.utf8.split { hexDigit($0) == nil }.compactMap { LineReader.hex64(Array($0)) }.first
    }
}
