/// The file of a history, with the facts that must be known before the log is folded.
struct HistoryFile: Sendable {
    let file: MappedFile
    /// The epochs that its lines name, with the number of partitions of their logs.
    private(set) var epochs: [UInt64: Int] = [:]
    /// The digests of states that the history claims.
    private(set) var states: [ClaimedState] = []
    /// True if the driver caused a fault and has not reported its end.
    private(set) var isBroken = false
    /// The reason why the file cannot be read; nil if it can.
    private(set) var trouble: String?

    /// A claim that a stream's state as of a seq has this digest.
    struct ClaimedState: Sendable {
        let epoch: UInt64
        let stream: Text
        let seq: Int64
        let digest: UInt64
        let of: String
        let start: Int
    }

    init(_ file: MappedFile) {
        self.file = file
        do throws(Fault) {
            try file.eachLine { (place) throws(Fault) in
                do throws(Fault) {
                    try collect(place)
                } catch {
                    throw Fault("\(error.reason), in \(file.quote(lineAt: place.lowerBound))")
                }
            }
        } catch {
            trouble = Self.trouble(file, error)
        }
    }

    /// Returns the message that a history cannot be read, with the advice what to do.
    static func trouble(_ file: MappedFile, _ fault: Fault) -> String {
        "\(file.name) cannot be read: \(fault.reason); write it as docs/reference/history.md says,"
            + " and record the run again"
    }

    private mutating func collect(_ place: Range<Int>) throws(Fault) {
        var reader = LineReader(file.bytes, place)
        switch try HistoryLine.kind(&reader) {
        case .connect, .state, .fault, .heal: break
        default: return
        }
        let line = try HistoryLine(file.bytes, place)
        switch line.kind {
        case .connect:
            let partitions = try line.required(line.partitions, "partitions")
            guard (1...Int64(UInt16.max)).contains(partitions) else { throw Fault("\(partitions) partitions") }
            epochs[try line.required(line.epoch, "epoch")] = Int(partitions)
        case .state:
            let reader = LineReader(file.bytes, place)
            states.append(
                ClaimedState(
                    epoch: try line.required(line.epoch, "epoch"),
                    stream: Text(reader.decoded(try line.required(line.stream, "stream"))),
                    seq: try line.required(line.seq, "seq"),
                    digest: try line.required(line.digest, "digest"),
                    of: Text(reader.decoded(try line.required(line.of, "of"))).string,
                    start: place.lowerBound
                )
            )
        case .fault: isBroken = true
        case .heal: isBroken = false
        default: break
        }
    }
}
