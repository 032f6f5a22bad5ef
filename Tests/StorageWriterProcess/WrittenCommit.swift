import ReelClient

/// The commits of the process. The number of a commit determines its content, so a test can compute the expected
/// content.
enum WrittenCommit {
    /// The key whose value is the number of the last commit.
    static let last: [UInt8] = [0]

    /// True if the commit waits for the disk.
    static func isDurable(_ number: Int) -> Bool { number % 3 == 0 }

    /// Returns the changes of a commit: some pages of puts, and sometimes a large remove. Every sixth commit repeats
    /// the previous commit, so that it changes nothing.
    static func changes(_ number: Int) -> StorageChanges {
        let number = number % 6 == 0 && number > 0 ? number - 1 : number
        var changes = StorageChanges()
        changes.put(last, bytes(number))
        for i in 0..<20 {
            changes.put([1] + bytes(number * 20 + i), Array(repeating: UInt8(truncatingIfNeeded: number), count: 2_000))
        }
        changes.put([2] + bytes(number % 7), bytes(number))
        if number % 25 == 20 { changes.removeRange(from: [1], to: [1] + bytes((number - 5) * 20)) }
        return changes
    }

    /// Returns the bytes of a number, the highest first.
    static func bytes(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt64(truncatingIfNeeded: number).bigEndian) { Array($0) }
    }
}
