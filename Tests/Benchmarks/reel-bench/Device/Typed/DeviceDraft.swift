import Foundation
import Reel
import ReelClient
import ReelCore
import ScriptedNodes

/// Measures a person who types into a long text through a `TextDraft`, while another author types into the same text.
enum DeviceDraft {
    private static let (characters, keys) = (100_000, 10_000)
    /// The time between two keys of the person, and of the other author.
    private static let (pause, foreignPause) = (Duration.milliseconds(1), Duration.milliseconds(5))

    private struct Note: Model {
        let id: ID
        var text = ""

        init(id: ID) { self.id = id }

        static let schema = Schema<Note>("note") { Text("text", \.text) }
    }

    @Sendable static func run() async throws -> [Measured] {
        let typed = try await withFolder { folder in try await type(in: folder) }
        let work = "\(keys) keys into a text of \(characters) characters, beside another author"
        let floor = (name: "array of UTF-16 units", value: mean(array()))
        return [
            Measured(work: work + ", mean", value: mean(typed), unit: "µs", goal: .atMost(50)),
            Measured(work: work + ", mean", value: mean(typed), unit: "µs", peer: floor),
            Measured(work: work + ", p99", value: percentile99(typed), unit: "µs", goal: .atMost(1_000)),
        ]
    }

    private static func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(1, values.count)) }

    // MARK: The text and the keys

    /// A text with characters of one to four bytes.
    private static let text = String(repeating: sentence, count: characters / sentence.count)
    private static let sentence = "Größe und 😀 e\u{301} 字 in einem Text. "

    /// The place of the first key, in UTF-16 code units. It is the beginning of a sentence.
    private static let start = characters / sentence.count / 2 * sentence.utf16.count

    /// An edit at the selection: most keys insert, some delete the character before.
    private enum Key {
        case insertion(String)
        case deletion

        init(_ number: Int) {
            let letters = ["a", "b", "ß", "c", "e", " "]
            self = number % 16 == 15 ? .deletion : .insertion(letters[number % letters.count])
        }
    }

    // MARK: Reel

    /// Returns the microseconds of each key until the draft has returned.
    @MainActor private static func type(in folder: String) async throws -> [Double] {
        let snapshot = folder + "/stream.snapshot"
        try DeviceSnapshot.write(1, to: snapshot) {
            LoggedEvent(.insert, "note", "1", #""fields":{"text":"\#(text)"}"#, seq: $0, site: 0, op: 0)
        }
        let node = try ScriptedNode(snapshot: snapshot, head: 0, publishing: .appended { _, _ in })
        let client = try SyncClient(nodes: ["scripted"], store: .file(folder + "/device.sqlite"), transport: node)
        let notes = try await client.open(DeviceSnapshot.stream.description, models: [Note.self])
        try await notes.stream.waitUntil(seq: 0)
        let id = Note.ID("1")
        let draft = try notes.draft(of: id, \.text)
        draft.selection = start..<start
        let author = Task.detached { try await write(to: node) }
        var micros: [Double] = []
        for number in 0..<keys {
            try await Task.sleep(for: pause)
            let place = draft.selection.lowerBound
            let taken =
                switch Key(number) {
                case .insertion(let text): try seconds { try draft.replace(utf16: place..<place, with: text) }
                case .deletion: try seconds { try draft.replace(utf16: place - 1..<place, with: "") }
                }
            micros.append(taken * 1e6)
            if number.isMultiple(of: 8) { while draft.takeRemoteChange() != nil {} }
        }
        author.cancel()
        let written = try await author.value
        try await draft.flush()
        try await notes.stream.flush(deadline: .seconds(60))
        try await settle(draft) { try notes.object(id)?.text }
        guard written > 0, draft.text.hasPrefix(String(repeating: "y", count: written)) else {
            throw BenchmarkError("the keys of the other author have not arrived")
        }
        await client.close()
        return micros
    }

    /// Waits until the draft shows the text of the stream, for at most ten seconds.
    @MainActor private static func settle(_ draft: TextDraft, to text: () throws -> String?) async throws {
        for _ in 0..<2_000 {
            while draft.takeRemoteChange() != nil {}
            if try text() == draft.text { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw BenchmarkError("the draft differs from the text of the stream")
    }

    /// Inserts a letter at the beginning of the text, again and again. Returns the number of letters.
    private static func write(to node: ScriptedNode) async throws -> Int {
        var count = 0
        while !Task.isCancelled {
            let op = count
            node.append(to: DeviceSnapshot.stream) { seq in
                let splice = #""ops":{"text":{"splice":[[0,0,"y"]]}}"#
                return LoggedEvent(.update, "note", "1", splice, seq: seq, op: op).json
            }
            count += 1
            try? await Task.sleep(for: foreignPause)
        }
        return count
    }

    // MARK: Floor

    /// Returns the microseconds of each key in an array, in which nothing merges.
    private static func array() -> [Double] {
        var (units, place) = (Array(text.utf16), start)
        return (0..<keys).map { number in
            let taken: Double
            switch Key(number) {
            case .insertion(let text):
                taken = seconds { units.insert(contentsOf: text.utf16, at: place) }
                place += text.utf16.count
            case .deletion:
                taken = seconds { units.remove(at: place - 1) }
                place -= 1
            }
            return taken * 1e6
        }
    }
}
