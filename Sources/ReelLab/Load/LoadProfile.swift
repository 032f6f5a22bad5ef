/// A named kind of load: the numbers of a plan that differ from the defaults.
public struct LoadProfile: Sendable, Equatable {
    /// A number that a profile may set.
    public enum Number: String, CaseIterable, Sendable {
        /// See the members of `LoadPlan`.
        case streams, publishers, sleepers, readers, editors, coldstarts, rate, size, storm, seconds
    }

    /// The name of the profile.
    public let name: String
    /// The purpose, in a few words.
    public let purpose: String
    /// The numbers that the profile sets.
    public private(set) var numbers: [Number: Int]

    /// The built-in profiles.
    public static let all = [
        LoadProfile("fanout", "one writes, a thousand listen", [.publishers: 1, .readers: 1_000, .rate: 100]),
        LoadProfile(
            "edit",
            "five people in each of ten texts",
            [.streams: 10, .editors: 50, .publishers: 0, .readers: 0, .rate: 150]
        ),
        LoadProfile(
            "offline",
            "publishers that come and go, and bring what they made meanwhile",
            [.publishers: 50, .sleepers: 50, .readers: 20, .streams: 5]
        ),
        LoadProfile(
            "coldstart",
            "readers that begin with nothing, twenty a second",
            [.publishers: 5, .readers: 5, .coldstarts: 20]
        ),
        LoadProfile(
            "storm",
            "every five seconds all connections are cut at once",
            [.publishers: 50, .readers: 500, .streams: 5, .storm: 5]
        ),
        LoadProfile(
            "mixed",
            "some of everything",
            [
                .streams: 10, .publishers: 30, .sleepers: 10, .readers: 200, .editors: 20, .coldstarts: 5, .rate: 300,
                .storm: 20,
            ]
        ),
    ]

    private init(_ name: String, _ purpose: String, _ numbers: [Number: Int]) {
        self.name = name
        self.purpose = purpose
        self.numbers = numbers
    }

    /// Reads a profile from a file's text: one `name=value` per line, `#` before a comment. Throws the number of the
    /// first invalid line, and the expected form.
    public init(name: String, text: String) throws(LoadFailure) {
        self.init(name, "from a file", [:])
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.prefix { $0 != "#" }.filter { !$0.isWhitespace }
            if line.isEmpty { continue }
            let words = line.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard words.count == 2, let number = Number(rawValue: words[0]), let value = Int(words[1]),
                number.bounds.contains(value)
            else {
                let names = Number.allCases.map(\.rawValue).joined(separator: ", ")
                throw LoadFailure(
                    .plan,
                    "line \(index + 1) of the profile is `\(line)`; expected is NAME=NUMBER, a name of \(names)"
                )
            }
            numbers[number] = value
        }
    }
}
