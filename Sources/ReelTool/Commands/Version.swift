import Glibc

/// The version of this program; nodes announce it as their build.
enum Version {
    static let number = "0.1.0"

    /// The commit of the program's sources, with `-dirty` if they had changed since that commit. `unknown` if the build
    /// has not appended the commit to the program, as deploy/stamp does.
    static let commit = commit(ofProgram: "/proc/self/exe") ?? "unknown"

    private static let mark = "reel-commit:"
    /// The length of the stamp in bytes: 40 digits and `-dirty`, padded with spaces.
    private static let commitBytes = 46

    static func commit(ofProgram path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: mark.utf8.count + commitBytes)
        guard lseek(descriptor, -bytes.count, SEEK_END) >= 0, read(descriptor, &bytes, bytes.count) == bytes.count,
            bytes.starts(with: mark.utf8)
        else { return nil }
        let text = String(decoding: bytes.dropFirst(mark.utf8.count), as: UTF8.self)
        let commit = text.prefix { $0 != " " }
        let digits = commit.hasSuffix("-dirty") ? commit.dropLast("-dirty".count) : commit
        guard digits.utf8.count == 40, digits.allSatisfy({ $0.isASCII && $0.isHexDigit && !$0.isUppercase }) else {
            return nil
        }
        return String(commit)
    }
}
