import Foundation
import TestSupport
import Testing

@testable import ReelCheck

@Suite struct RecordedSessionTests {
    /// The naive fold scans the whole text for each splice. The longest session takes a minute even with optimization,
    /// so it runs only with more effort.
    @Test(
        "A recorded session ends in the text that its editors had",
        .enabled(if: RecordedSession.folder != nil, "REEL_TRACES names no folder of recorded sessions"),
        arguments: ["sveltecomponent", "friendsforever"] + (effort > 1 ? ["seph-blog1"] : [])
    )
    func aRecordedSessionEndsInTheText(name: String) throws {
        let folder = try #require(RecordedSession.folder)
        let session = try RecordedSession(name, in: folder)
        var fold = NaiveFold(epoch: "0123456789abcdef", partition: 0, of: 1)
        let start = ContinuousClock.now
        var applied = 0
        for (seq, record) in session.records.enumerated()
        where fold.apply(seq: Int64(seq), key: RecordedSession.key, value: record) == .applied {
            applied += 1
        }
        print("\(name): \(applied) events in \(ContinuousClock.now - start)")
        #expect(applied == session.records.count)
        let snapshot = try NaiveSnapshot(try #require(fold.snapshot(of: "session")))
        let note = snapshot.state.objects[ObjectName(model: Text("note"), id: Text("1"))]
        #expect(note?.fields[Text("text")]?.value.text == session.endContent)
        #expect(snapshot.digest == fold.digest(of: "session"))
    }
}
