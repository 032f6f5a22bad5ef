/// A history as a file, with what has to be known of it before the log is folded.
struct HistoryFile: Sendable {
    let file: MappedFile
    /// Epochs that its lines name, and how many partitions their logs have.
    private(set) var epochs: [UInt64: Int] = [:]
    /// States that somebody claimed.
    private(set) var states: [ClaimedState] = []
    /// The driver broke something, and did not say that it is healed.
    private(set) var isBroken = false
    /// Why it cannot be read.
    private(set) var trouble: String?

    /// Somebody said that a stream's state as of a seq has this digest.
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
                    try look(place)
                } catch {
                    throw Fault("\(error.reason), in \(file.quote(lineAt: place.lowerBound))")
                }
            }
        } catch {
            trouble = Self.trouble(file, error)
        }
    }

    /// Why a history cannot be read, and what to do.
    static func trouble(_ file: MappedFile, _ fault: Fault) -> String {
        "\(file.name) cannot be read: \(fault.reason); write it as docs/reference/history.md says,"
            + " and record the run again"
    }

    private mutating func look(_ place: Range<Int>) throws(Fault) {
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
