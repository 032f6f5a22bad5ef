/// The loss that `reel epoch new` printed for a lost log: the old epoch, the epoch that continues, and the seqs of the
/// kept state.
struct PrintedLoss: Sendable, Equatable {
    let old: UInt64
    let new: UInt64
    /// By partition of the old log: the last seq that the next epoch's initial state includes; −1 means that it begins
    /// empty. A partition that is absent here has lost nothing.
    let kept: [Int: Int64]

    private static let advice = "put there all that it printed"

    /// Reads the printed lines. Only lines of an epoch or of a loss matter; others are ignored.
    init(_ file: MappedFile) throws(Fault) {
        var (old, new): (UInt64?, UInt64?)
        var kept: [Int: Int64] = [:]
        guard !file.isCut else {
            throw Fault("\(file.name) was cut in the middle of a line: not all that is lost is known; \(Self.advice)")
        }
        do throws(Fault) {
            try file.eachLine { (place) throws(Fault) in
                let words = String(decoding: file.bytes[place], as: UTF8.self).split(separator: " ")
                switch words.first {
                case "old": old = try Self.epoch(words)
                case "new": new = try Self.epoch(words)
                case "partition":
                    let (partition, seq) = try Self.loss(words)
                    kept[partition] = seq
                default: break
                }
            }
        } catch {
            throw Fault("\(file.name): \(error.reason); \(Self.advice)")
        }
        guard let old, let new else {
            throw Fault("\(file.name) is not what `reel epoch new` prints: it names no epoch; \(Self.advice)")
        }
        (self.old, self.new, self.kept) = (old, new, kept)
    }

    /// Reads `old epoch 00000000000000aa: 6 partitions`.
    private static func epoch(_ words: [Substring]) throws(Fault) -> UInt64 {
        guard words.count > 3, words[1] == "epoch", words[2].last == ":",
            let epoch = LineReader.hex64(Array(words[2].utf8.dropLast()))
        else { throw Fault("no epoch: `\(words.joined(separator: " "))`") }
        return epoch
    }

    /// Reads `partition 3 begins with the state of seq 41; lost: …`, or `partition 3 begins empty; lost: …`.
    private static func loss(_ words: [Substring]) throws(Fault) -> (partition: Int, seq: Int64) {
        if words.count > 4, let partition = Int(words[1]), partition >= 0, words[2] == "begins" {
            if words[3...4] == ["empty;", "lost:"] { return (partition, -1) }
            if words.count > 9, words[3...7] == ["with", "the", "state", "of", "seq"], words[8].hasSuffix(";"),
                words[9] == "lost:", let seq = Int64(words[8].dropLast()), seq >= 0
            {
                return (partition, seq)
            }
        }
        throw Fault("no loss: `\(words.joined(separator: " "))`")
    }
}
