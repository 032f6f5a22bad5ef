import Foundation

/// The code blocks of a page, compared with a Swift file that the compiler sees.
package struct PageCode {
    /// The lines of Swift on the page, without indentation. A run of spaces becomes one space.
    package private(set) var lines: [String] = []
    /// Those lines that the Swift file does not have.
    package private(set) var missing: [String] = []

    /// Reads a page and the file with its code.
    ///
    /// - Parameters:
    ///   - page: the path of the page in the repository.
    ///   - source: the path of the Swift file in the repository.
    /// - Throws: The error of Foundation if a file cannot be read.
    package init(of page: String, in source: String) throws {
        let compiled = Set(try Self.lines(of: source))
        var isSwift = false
        for line in try Self.lines(of: page) {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift {
                lines.append(line)
                if !compiled.contains(line) { missing.append(line) }
            }
        }
    }

    private static func lines(of path: String) throws -> [String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        return text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    }
}
