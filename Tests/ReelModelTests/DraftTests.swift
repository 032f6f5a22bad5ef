import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Drafts of a text and of bytes, with nodes in memory.
@Suite(.timeLimit(.minutes(5))) struct DraftTests {
    private let network: FakeNetwork
    private let first: SyncClient
    private let second: SyncClient
    private let id = ModelID<Job>("1")

    init() throws {
        network = try FakeNetwork()
        first = try network.client(nodes: ["a"], seed: 5)
        second = try network.client(nodes: ["b"], seed: 6)
    }

    private func open(_ client: SyncClient) async throws -> Dataset {
        try await client.open("s", models: [Job.self], from: .beginning)
    }

    /// Opens the stream on both devices, with one job.
    private func begin(note: String = "", data: [UInt8] = []) async throws -> (Dataset, Dataset) {
        let (one, two) = (try await open(first), try await open(second))
        var job = Job(id: id)
        (job.note, job.data) = (note, data)
        _ = try await one.insert(job).outcome()
        try await network.heal([one, two])
        return (one, two)
    }

    private func close() async {
        await first.close()
        await second.close()
    }

    private func shows(_ draft: TextDraft, _ text: String) async throws {
        try await eventually("the draft shows \(text.debugDescription)") {
            while draft.takeRemoteChange() != nil {}
            return draft.text.utf8.elementsEqual(text.utf8)
        }
    }

    @Test("edits are visible at once, durable after flush, and merge with those of another author")
    func merges() async throws {
        let (one, two) = try await begin(note: "hello world")
        let (a, b) = (try one.draft(of: id, \.note), try two.draft(of: id, \.note))
        try await network.cut(["a", "b"])
        try a.replace(utf16: 0..<5, with: "Bye")
        try a.replace(utf16: 3..<3, with: "!")
        #expect(a.text == "Bye! world" && a.selection == 4..<4)
        try b.replace(utf16: 11..<11, with: " 😀")
        b.selection = 6..<11
        try await a.flush()
        try await b.flush()
        #expect(try one.object(id)?.note == "Bye! world")
        try await network.heal([one, two])
        try await shows(a, "Bye! world 😀")
        try await shows(b, "Bye! world 😀")
        #expect(b.selection == 5..<10 && a.problem == nil && a.takeRefused().isEmpty)
        await close()
    }

    @Test("a loop on the main actor gets the edits of others, and the draft's text has each from then on")
    @MainActor func loop() async throws {
        let (one, two) = try await begin(note: "ab")
        let draft = try one.draft(of: id, \.note)
        var view = draft.text
        let (changes, target) = (draft.remoteChanges, "xabyz")
        let loop = Task { @MainActor in
            for await change in changes {
                view = DraftText.replaced(view, change.utf16, change.text)
                #expect(view == draft.text)
                if view == target { return }
            }
        }
        try await two.update(id) { $0.note = "xaby" }
        try await two.update(id) { $0.note = "xabyz" }
        await loop.value
        #expect(view == target)
        await close()
    }

    @Test("own edits on the main actor and a loop there never come between each other") @MainActor
    func isolation() async throws {
        let (one, two) = try await begin(note: "😀é\r\n")
        let (draft, other) = (try one.draft(of: id, \.note), try two.draft(of: id, \.note))
        var view = draft.text
        let changes = draft.remoteChanges
        let loop = Task { @MainActor in
            var count = 0
            for await change in changes {
                view = DraftText.replaced(view, change.utf16, change.text)
                #expect(view == draft.text)
                count += 1
            }
            return count
        }
        var random = SeededNumbers(TestSeed.value)
        for _ in 0..<300 {
            var (range, text) = DraftText.edit(of: view, &random)
            #expect(view == draft.text)
            try draft.replace(utf16: range, with: text)
            view = DraftText.replaced(view, range, text)
            while other.takeRemoteChange() != nil {}
            (range, text) = DraftText.edit(of: other.text, &random)
            try other.replace(utf16: range, with: text)
            if random.oneIn(3) { try await other.flush() }
            await Task.yield()
        }
        try await draft.flush()
        try await other.flush()
        try await network.heal([one, two])
        try await shows(other, try #require(try one.object(id)?.note))
        try await eventually("the view shows the text of the draft") { view.utf8.elementsEqual(other.text.utf8) }
        loop.cancel()
        #expect(await loop.value > 0)
        await close()
    }

    @Test("a loop ends when the draft is released, and edits that were not queued are queued nevertheless")
    func released() async throws {
        let (one, two) = try await begin(note: "a")
        var draft: TextDraft? = try one.draft(of: id, \.note)
        let changes = try #require(draft?.remoteChanges)
        let loop = Task { for await _ in changes {} }
        try await two.update(id) { $0.note = "ab" }
        try await eventually("the loop runs") { draft?.text == "ab" }
        // In most runs the loop waits again after this.
        for _ in 0..<100 { await Task.yield() }
        try draft?.replace(utf16: 2..<2, with: "c")
        draft = nil
        await loop.value
        try await eventually("the edit is queued") { try one.object(id)?.note == "abc" }
        await close()
    }

    @Test("two drafts of one text on one device follow each other") func sameDevice() async throws {
        let (one, _) = try await begin(note: "ab")
        let (a, b) = (try one.draft(of: id, \.note), try one.draft(of: id, \.note))
        try a.replace(utf16: 1..<1, with: "x")
        try b.replace(utf16: 2..<2, with: "y")
        try await one.update(id) { $0.note += "!" }
        try await a.flush()
        try await b.flush()
        let text = try #require(try one.object(id)?.note)
        #expect(text.sorted() == "!abxy".sorted() && text.contains("ax"))
        try await shows(a, text)
        try await shows(b, text)
        await close()
    }

    @Test("a deleted object leaves the text readable, and is reported") func deleted() async throws {
        let (one, two) = try await begin(note: "ab")
        let draft = try one.draft(of: id, \.note)
        var problems = draft.problems.makeAsyncIterator()
        _ = try await two.delete(id).outcome()
        let reported = try #require(await problems.next() as? (any Error))
        #expect((reported as? ReelError)?.code == .deleted)
        try draft.replace(utf16: 2..<2, with: "c")
        let error = await #expect(throws: ReelError.self) { try await draft.flush() }
        #expect(error?.code == .deleted && draft.text == "abc")
        #expect((draft.problem as? ReelError)?.code == .deleted)
        let missing = #expect(throws: ReelError.self) { try one.draft(of: self.id, \.note) }
        #expect(missing?.code == .noObject)
        await close()
    }

    @Test("a plain write of the field replaces the text and keeps own edits that were not queued")
    func plainWrite() async throws {
        let (one, two) = try await begin(note: "one two")
        let draft = try one.draft(of: id, \.note)
        try await two.stream.publish(.update("job", id: "1", ["note": "zzz"]))
        try await shows(draft, "zzz")
        try draft.replace(utf16: 3..<3, with: "!")
        try await draft.flush()
        try await network.heal([one, two])
        #expect(try two.object(id)?.note == "zzz!")
        await close()
    }

    @Test("an edit that the stream rejects is handed back") func rejected() async throws {
        let (one, two) = try await begin(note: "one two")
        let draft = try one.draft(of: id, \.note)
        try await network.cut(["a"])
        try draft.replace(utf16: 7..<7, with: " th")
        try await draft.flush()
        try draft.replace(utf16: 10..<10, with: "ree")
        try await draft.flush()
        _ = try await two.stream.publish(.update("job", id: "1", ["note": "zzz"])).outcome()
        try await network.heal([one, two])
        try await shows(draft, "zzz")
        try await eventually("the problem") { (draft.problem as? ReelError)?.code == .stale }
        var refused: [TextDraft.Refusal] = []
        try await eventually("the edit is refused") {
            refused += draft.takeRefused()
            return refused.map(\.text).joined() == " three"
        }
        #expect(refused.allSatisfy { $0.error.code == .stale })
        try draft.replace(utf16: 0..<0, with: "a")
        try await draft.flush()
        try await network.heal([one, two])
        #expect(try two.object(id)?.note == "azzz" && draft.problem == nil)
        await close()
    }

    @Test("an edit of an earlier run that the stream rejects is handed back to the next draft")
    func rejectedAfterRestart() async throws {
        let file = try LosableFile()
        let third = try network.client(nodes: ["c"], store: .file(file.path), seed: 7)
        let (one, _) = try await begin(note: "one")
        var dataset = try await open(third)
        try await network.heal([one, dataset])
        try await network.cut(["c"])
        let draft = try dataset.draft(of: id, \.note)
        try draft.replace(utf16: 3..<3, with: " two")
        try await draft.flush()
        await third.close()
        _ = try await one.stream.publish(.update("job", id: "1", ["note": "zzz"])).outcome()
        let again = try network.client(nodes: ["c"], store: .file(file.path), seed: 8)
        dataset = try await open(again)
        let next = try dataset.draft(of: id, \.note)
        #expect(next.text == "one two")
        try next.replace(utf16: 7..<7, with: "!")
        try await next.flush()
        try await network.heal([one, dataset])
        try await shows(next, "zzz")
        var refused = ""
        try await eventually("the edits are refused") {
            refused += next.takeRefused().map(\.text).joined()
            return refused == " two!"
        }
        await again.close()
        await close()
    }

    @Test("a draft continues in a new epoch, and an edit that depends on the former one is handed back")
    func newEpoch() async throws {
        let (one, two) = try await begin(note: "one")
        let draft = try one.draft(of: id, \.note)
        try await network.cut(["a"])
        try draft.replace(utf16: 3..<3, with: " two")
        try await draft.flush()
        try await two.update(id) { $0.note = "one!" }.outcome()
        try await network.on { $0.goOver(to: Epoch(2), lagging: []) }
        try await network.on { $0.down = [] }
        try await shows(draft, "one!")
        var refused: [TextDraft.Refusal] = []
        try await eventually("the edit is refused") {
            refused += draft.takeRefused()
            return refused.map(\.text) == [" two"]
        }
        #expect(refused.first?.error.code == .epochChanged)
        try draft.replace(utf16: 4..<4, with: "?")
        try await draft.flush()
        try await eventually("the edit arrives") { try two.object(id)?.note == "one!?" }
        #expect(draft.problem == nil && draft.text == "one!?")
        await close()
    }

    @Test("a field that holds no text is reported until it holds one") func noText() async throws {
        let (one, two) = try await begin(note: "ab")
        let draft = try one.draft(of: id, \.note)
        try await two.stream.publish(.update("job", id: "1", ["note": 5]))
        try await eventually("the problem") { (draft.problem as? ModelProblem)?.kind == .value }
        try draft.replace(utf16: 0..<0, with: "x")
        #expect(draft.text == "xab")
        #expect(throws: ModelProblem.self) { try one.draft(of: self.id, \.note) }
        #expect(throws: ModelProblem.self) { try one.draft(of: self.id, \.title) }
        try await two.stream.publish(.update("job", id: "1", ["note": "ab"]))
        try await network.heal([one, two])
        try await eventually("no problem") { draft.problem == nil }
        try await draft.flush()
        try await network.heal([one, two])
        #expect(try two.object(id)?.note == "xab")
        await close()
    }

    @Test("a text that is too long stays in the draft, and is queued once it is short enough")
    func tooLong() async throws {
        let (one, two) = try await begin()
        let draft = try one.draft(of: id, \.note)
        let long = String(repeating: "0123456789é\n", count: 70_000)
        try draft.replace(utf16: 0..<0, with: long)
        let error = await #expect(throws: ReelError.self) { try await draft.flush() }
        #expect(error?.code == .tooLarge)
        await #expect(throws: ReelError.self) { try await draft.flush() }
        #expect(draft.takeRemoteChange() == nil && draft.text.utf8.count == long.utf8.count)
        try draft.replace(utf16: 100..<long.utf16.count, with: "end")
        try await draft.flush()
        try await network.heal([one, two])
        #expect(draft.problem == nil && draft.text.hasSuffix("end"))
        #expect(try two.object(id)?.note == draft.text)
        await close()
    }

    @Test("a long text that fits is queued in parts") func parts() async throws {
        let (one, two) = try await begin(note: "<>")
        let draft = try one.draft(of: id, \.note)
        let long = String(repeating: "0123456789\n", count: 20_000)
        try draft.replace(utf16: 1..<1, with: long)
        try await draft.flush()
        try await network.heal([one, two])
        #expect(try two.object(id)?.note == "<\(long)>")
        await close()
    }

    @Test("a closed stream is reported, and the text stays readable") func closed() async throws {
        let (one, _) = try await begin(note: "ab")
        let draft = try one.draft(of: id, \.note)
        await one.stream.close()
        try await eventually("the problem") { (draft.problem as? ReelError)?.code == .closed }
        try draft.replace(utf16: 2..<2, with: "c")
        #expect(draft.text == "abc")
        let error = await #expect(throws: ReelError.self) { try await draft.flush() }
        #expect(error?.code == .closed)
        await close()
    }

    @Test("a text under its former name is taken along with the first edit") func formerly() async throws {
        let (one, two) = try await begin()
        try await one.stream.publish(.update("job", id: "1", ["text": "old"]))
        let draft = try one.draft(of: id, \.note)
        #expect(draft.text == "old")
        try draft.replace(utf16: 3..<3, with: "er")
        try await draft.flush()
        try await network.heal([one, two])
        #expect(try two.stream.object("job", id: "1")?["note"] == "older")
        await close()
    }

    @Test("a range outside of the content is refused with its numbers") func badRange() async throws {
        let (todo, _) = try await begin(note: "a😀", data: [1])
        let draft = try todo.draft(of: id, \.note)
        for range in [2..<5, 1..<2] {
            let error = #expect(throws: ReelError.self) { try draft.replace(utf16: range, with: "b") }
            let part = "found the range \(range.lowerBound)..<\(range.upperBound) in job/1.note"
            #expect(error?.code == .range)
            #expect(error?.message == part + ", expected a part of 0..<3 that splits no scalar")
        }
        let bytes = try todo.draft(of: id, \.data)
        let error = #expect(throws: ReelError.self) { try bytes.replace(0..<2, with: []) }
        #expect(error?.message.contains("found the range 0..<2 in job/1.data, expected a part of 0..<1") == true)
        await close()
    }

    @Test("bytes are edited at offsets, and merge with the edits of another author") func bytes() async throws {
        let (one, two) = try await begin(data: [0, 1, 2, 200, 255])
        let (a, b) = (try one.draft(of: id, \.data), try two.draft(of: id, \.data))
        try await network.cut(["a", "b"])
        try a.replace(1..<2, with: [7, 250])
        try b.replace(5..<5, with: [9])
        #expect(a.bytes == [0, 7, 250, 2, 200, 255])
        #expect(throws: ReelError.self) { try a.replace(6..<7, with: []) }
        try await a.flush()
        try await b.flush()
        try await network.heal([one, two])
        for draft in [a, b] {
            try await eventually("the bytes") {
                while draft.takeRemoteChange() != nil {}
                return draft.bytes == [0, 7, 250, 2, 200, 255, 9]
            }
        }
        #expect(try two.object(id)?.data == a.bytes)
        await close()
    }
}
