package import ReelCore

/// Splits bytes that arrive in pieces into lines, at LF only.
struct LineSplitter: Sendable {
    private var rest: [UInt8] = []

    /// The longest line in bytes. A line with an object of 768 KiB and the history of its texts is shorter.
    static let lineBytesMax = 64 << 20

    /// Calls `body` with each line that `piece` completes, without its line feed.
    mutating func add(_ piece: Bytes, _ body: (Bytes) throws(ReelError) -> Void) throws(ReelError) {
        var start = 0
        while let end = piece[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = Bytes(rebasing: piece[start..<end])
            if rest.isEmpty {
                try body(line)
            } else {
                rest += line
                let whole = rest
                rest.removeAll(keepingCapacity: true)
                try whole.lend(body)
            }
            start = end + 1
        }
        rest += piece[start...]
        guard rest.count <= Self.lineBytesMax else {
            throw ReelError(.tooLarge, "found a line of more than \(Self.lineBytesMax) bytes")
        }
    }
}

extension [UInt8] {
    /// Calls `body` as `withUnsafeBytes` does, with typed errors.
    package func lend<R>(_ body: (Bytes) throws(ReelError) -> R) throws(ReelError) -> R {
        var result: Result<R, ReelError>?
        withUnsafeBytes { bytes in
            do throws(ReelError) {
                result = .success(try body(bytes))
            } catch {
                result = .failure(error)
            }
        }
        return try result!.get()
    }
}
