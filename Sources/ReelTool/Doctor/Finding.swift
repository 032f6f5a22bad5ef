import ReelCore
import ReelNode

/// A result of `reel doctor` about one subject.
struct Finding: Equatable {
    enum Level: String, CaseIterable {
        /// The subject has no problem.
        case ok
        /// Information: nothing is wrong.
        case note
        /// Something can fail later, or is slower than normal.
        case warning
        /// Something does not work.
        case problem
    }

    var level: Level
    /// The subject: `nodes`, `partitions`, `log`, `lag`, `limits`, `stream` or `site`.
    var about: String
    var text: String
    /// The advice: what to do; nil if nothing is to be done.
    var advice: String?

    init(_ level: Level, _ about: String, _ text: String, do advice: String? = nil) {
        self.level = level
        self.about = about
        self.text = text
        self.advice = advice
    }

    /// The finding as a line of JSON.
    var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("level", level.rawValue)
        writer.member("about", about)
        writer.member("finding", text)
        writer.member("do", advice)
        return writer.finish() + [UInt8(ascii: "\n")]
    }

    /// The finding as text for people: a row, and the advice in the next one.
    var lines: [String] {
        let margin = Self.padded(level.rawValue, 9) + Self.padded(about, 8)
        return [margin + text] + (advice.map { [String(repeating: " ", count: margin.count) + "→ " + $0] } ?? [])
    }

    private static func padded(_ word: String, _ width: Int) -> String {
        word + String(repeating: " ", count: max(1, width - word.count))
    }
}

extension Finding {
    /// Returns a finding about a stream that has at least half of the allowed sites; nil if it has fewer.
    static func crowd(_ stream: String, sites: Int, about: String) -> Finding? {
        guard sites >= CrowdedStream.sitesMin else { return nil }
        let isFull = sites >= Limits.sites
        return Finding(
            isFull ? .problem : .warning,
            about,
            "\(stream) has \(sites) of \(Limits.sites) sites"
                + (isFull ? "; new devices are refused (\(ErrorCode.tooManySites.rawValue))" : ""),
            do: "End idle sites: `reel site list \(stream)` shows them, `reel site retire \(stream) --idle-events N "
                + "--dry-run` shows which ones it would end."
        )
    }
}

extension ErrorCode {
    /// The advice for the user of a command whose request was refused with this code.
    var adviceToAsker: String {
        self == .unauthorized ? "Give a valid token with --token or REEL_TOKEN." : entry.advice
    }
}

/// Returns a number with its noun in singular or plural: `1 node`, `2 nodes`.
func counted(_ count: Int, _ thing: String) -> String { "\(count) \(thing)\(count == 1 ? "" : "s")" }
