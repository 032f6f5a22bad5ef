import ReelCore
import ReelNode

/// What the doctor found out about one thing.
struct Finding: Equatable {
    enum Level: String, CaseIterable {
        /// As it must be.
        case ok
        /// Nothing is wrong; somebody may want to know.
        case note
        /// Something will go wrong, or goes slower than it could.
        case warning
        /// Something does not work.
        case problem
    }

    var level: Level
    /// `nodes`, `log`, `lag`, `limits`, `stream` or `site`.
    var about: String
    var text: String
    /// What to do about it.
    var advice: String?

    init(_ level: Level, _ about: String, _ text: String, do advice: String? = nil) {
        self.level = level
        self.about = about
        self.text = text
        self.advice = advice
    }

    /// A line of JSON.
    var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("level", level.rawValue)
        writer.member("about", about)
        writer.member("finding", text)
        writer.member("do", advice)
        return writer.finish() + [UInt8(ascii: "\n")]
    }

    /// A row for people, and under it what to do.
    var lines: [String] {
        let margin = Self.padded(level.rawValue, 9) + Self.padded(about, 8)
        return [margin + text] + (advice.map { [String(repeating: " ", count: margin.count) + "→ " + $0] } ?? [])
    }

    private static func padded(_ word: String, _ width: Int) -> String {
        word + String(repeating: " ", count: max(1, width - word.count))
    }
}

extension Finding {
    /// A finding about a stream that has half of its sites or more; nil for one that has fewer.
    static func crowd(_ stream: String, sites: Int, about: String) -> Finding? {
        guard sites >= CrowdedStream.sitesMin else { return nil }
        let isFull = sites >= Limits.sites
        return Finding(
            isFull ? .problem : .warning,
            about,
            "\(stream) has \(sites) of \(Limits.sites) sites"
                + (isFull ? "; new devices are refused (\(ErrorCode.tooManySites.rawValue))" : ""),
            do: "End the idle ones: `reel site list \(stream)` shows them, `reel site retire \(stream) --idle-events N "
                + "--dry-run` what it would end."
        )
    }
}

extension ErrorCode {
    /// What to do for who was refused with this by a command.
    var adviceToAsker: String {
        self == .unauthorized ? "Say with --token, or REEL_TOKEN, who asks." : entry.advice
    }
}

/// `1 node`, `2 nodes`.
func counted(_ count: Int, _ thing: String) -> String { "\(count) \(thing)\(count == 1 ? "" : "s")" }
