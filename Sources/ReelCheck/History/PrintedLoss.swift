/// What `reel epoch new` printed where a log was lost: which epoch goes on with whose state, and as of which seqs.
struct PrintedLoss: Sendable, Equatable {
    let old: UInt64
    let new: UInt64
    /// The last seq of whose state the next epoch begins, by partition of the old log; −1: it begins empty. Of a
    /// partition that is not here nothing is lost.
    let kept: [Int: Int64]

    private static let advice = "put there all that it printed"

    /// Reads what was printed. Other lines than those of an epoch and of a loss say nothing about it.
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

    /// `old epoch 00000000000000aa: 6 partitions`.
    private static func epoch(_ words: [Substring]) throws(Fault) -> UInt64 {
        guard words.count > 3, words[1] == "epoch", words[2].last == ":",
            let epoch = LineReader.hex64(Array(words[2].utf8.dropLast()))
        else { throw Fault("no epoch: `\(words.joined(separator: " "))`") }
        return epoch
    }

    /// `partition 3 begins with the state of seq 41; lost: …`, or `partition 3 begins empty; lost: …`.
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
