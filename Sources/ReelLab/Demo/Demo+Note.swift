import ReelClient
import ReelCore

extension Demo {
    /// Lets two people type into one text at once, letter by letter; their words stay whole.
    func twoTypists(_ ann: DemoDevice, _ bob: DemoDevice) async throws {
        screen.chapter("Two people type into one note, letter by letter, at the same time")
        let annsNote = try await ann.client.open(note)
        let bobsNote = try await bob.client.open(note)
        let made = try await annsNote.publish(.insert("note", id: "1", ["text": "Dear all, "])).acked() ?? 0
        try await settle([annsNote, bobsNote], to: made)
        let (annsWords, bobsWords) = ("the lamp in the hall is on. ", "we are out of bread. ")
        async let annIsDone = Self.type(annsWords, into: annsNote)
        async let bobIsDone = Self.type(bobsWords, into: bobsNote)
        try await settle([annsNote, bobsNote], to: max(try await annIsDone, try await bobIsDone))
        let texts = [try Self.text(annsNote), try Self.text(bobsNote)]
        screen.say("ann and bob read: \(texts[0])")
        screen.check(texts[0] == texts[1], "the same text on both")
        screen.check(texts[0].contains(annsWords) && texts[0].contains(bobsWords), "each one's words are whole")
    }

    /// Types at the end of the text that the device shows, and then after its own last letter. Returns the last
    /// letter's seq.
    private static func type(_ words: String, into note: SyncStream) async throws -> Seq {
        var typed = ""
        var last: Seq = 0
        for letter in words {
            guard let object = try note.object("note", id: "1") else { break }
            let shown = object["text"]?.string ?? ""
            let end =
                shown.firstRange(of: typed).map { typed.isEmpty ? shown.endIndex : $0.upperBound } ?? shown.endIndex
            let offset = Int64(shown[..<end].unicodeScalars.count)
            let splice = FieldOperation.splice([TextSplice(at: offset, removing: 0, inserting: String(letter))])
            let publication = try await note.publish(
                .update("note", id: "1", operations: ["text": splice]),
                base: object.readAt
            )
            guard case .applied(let seq) = try await publication.outcome() else { continue }
            last = seq
            typed.append(letter)
        }
        return last
    }

    private static func text(_ note: SyncStream) throws -> String {
        try note.confirmed.object("note", id: "1")?["text"]?.string ?? ""
    }
}
