import Foundation
import ReelCore
import Testing

@testable import ReelLab

/// Tests that recorded sessions are read as they were recorded.
@Suite struct EditingSessionTests {
    private func session(_ json: String) throws(ReelError) -> EditingSession {
        try EditingSession(file: Array(json.utf8))
    }

    private func edit(_ author: Int, _ parents: [Int]) -> String {
        #"{"agent":\#(author),"parents":\#(parents),"patches":[[0,0,"x"]]}"#
    }

    @Test("a session of one author is a chain") func aSessionOfOne() throws {
        let session = try session(
            #"""
            {"startContent": "ab", "endContent": "aXc", "time": {"a": [1.5, null, true]},
             "txns": [{"time": "x", "patches": [[1, 1, "c"], [1, 0, "\u0058"]]}, {"patches": [[0, 0, ""]]}]}
            """#
        )
        #expect(session.startText == "ab")
        #expect(session.endText == "aXc")
        #expect(session.authors == 1)
        #expect(session.patchCount == 3)
        #expect(session.edits.map(\.base) == [-1, 0])
        #expect(session.edits.map(\.op) == [0, 1])
        #expect(session.edits[0].patches[1] == EditingSession.Patch(offset: 1, removed: 0, text: "X"))
    }

    @Test("a session derives the base of each edit from its parents") func derivesBasesFromParents() throws {
        let edits = [
            edit(0, []), edit(1, []), edit(0, [0]), edit(1, [1, 0]), edit(1, [3]), edit(0, [2]), edit(0, [5, 3]),
        ]
        let session = try session(#"{"endContent":"","txns":[\#(edits.joined(separator: ","))]}"#)
        #expect(session.authors == 2)
        // The second author knows edit 0 from edit 3 on, and never edit 2. The first author knows
        // only its own edits until edit 6.
        #expect(session.edits.map(\.base) == [-1, -1, 0, 1, 1, 0, 3])
        #expect(session.edits.map(\.op) == [0, 0, 1, 1, 2, 2, 3])
    }

    @Test(
        "the parser refuses an invalid session",
        arguments: [
            #"{"txns":[]}"#, #"{"endContent":""#, #"{"endContent":"","txns":[{"patches":[[0,0]]}]}"#, "[]", "",
            #"{"endContent":"","txns":[{"patches":[[-1,0,""]]}]}"#,
            #"{"endContent":""}"#, #"{"endContent":"","txns":[{"agent":-1,"patches":[]}]}"#,
            #"{"endContent":"","txns":[{"parents":[-1],"patches":[]}]}"#,
            #"{"endContent":"","txns":[{"parents":[0],"patches":[]}]}"#,
        ]
    ) func refusesInvalidSession(json: String) {
        #expect(throws: ReelError.self) { try session(json) }
    }

    @Test("a packed file is unpacked") func aPackedFileIs() throws {
        let packed = try #require(
            Data(
                base64Encoded:
                    "H4sIAAAAAAACA6tWSs1Lcc7PK0nNK1GyUso4vFJJR6mkIq9YySq6WqkgsSQ5IxXEjjbQMdABS8fG1sbWAgBC/jIbNwAAAA=="
            )
        )
        #expect(try EditingSession(file: Array(packed)).endText == "hé")
        #expect(throws: ReelError.self) { try EditingSession(file: Array(packed.dropLast(9))) }
    }

    @Test("the events are canonical") func theEventsAreCanonical() throws {
        let session = try session(#"{"endContent":"","txns":[{"patches":[[0,0,"a\"b\n"],[1,2,""]]}]}"#)
        let site = Site(high: 1, low: 2)
        var event: [UInt8] = []
        session.write(session.edits[0], site: site, base: 7, to: &event)
        for event in [event, session.opening(site: site)] {
            #expect(throws: Never.self) { try event.withUnsafeBytes { try CanonicalJSON.check($0) } }
        }
        #expect(String(decoding: event, as: UTF8.self).contains(#"{"splice":[[0,0,"a\"b\n"],[1,2,""]]}"#))
    }
}
