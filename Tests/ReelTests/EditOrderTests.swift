import ReelCore
import Testing

@testable import ReelLab

/// Tests that the edits of any number of authors get an order that one log can have.
@Suite struct EditOrderTests {
    private func session(_ edits: [(Int, [Int])]) throws(ReelError) -> EditingSession {
        let lines = edits.map { #"{"agent":\#($0.0),"parents":\#($0.1),"patches":[[0,0,"x"]]}"# }
        return try EditingSession(file: Array(#"{"endContent":"","txns":[\#(lines.joined(separator: ","))]}"#.utf8))
    }

    @Test("the recorded order is kept if each author knows a beginning of it") func keepsRecordedOrder() throws {
        let session = try session([(0, []), (1, [0]), (2, [0]), (1, [1]), (0, [0]), (2, [2, 3, 4])])
        #expect(session.edits.map(\.index) == [0, 1, 2, 3, 4, 5])
        #expect(session.edits.map(\.base) == [-1, 0, 0, 1, 0, 4])
        #expect(session.authors == 3)
    }

    @Test("an edit that a third author knew comes before one that this author did not know") func movesEdits() throws {
        let session = try session([(0, []), (1, []), (2, [1])])
        #expect(session.edits.map(\.index) == [1, 0, 2])
        #expect(session.edits.map(\.author) == [1, 0, 2])
        #expect(session.edits.map(\.base) == [-1, -1, 0])
    }

    @Test("an author's later reading keeps out what the author did not know by then") func keepsLaterReadings() throws {
        // The third author's second edit knows edit 1 and not edit 0, which its first edit does not know either.
        let session = try session([(0, []), (1, []), (2, []), (2, [1, 2])])
        #expect(session.edits.map(\.index) == [1, 0, 2, 3])
        #expect(session.edits.map(\.base) == [-1, -1, -1, 0])
    }

    @Test("authors who know edits in contradicting orders are refused") func refusesContradictions() {
        let error = #expect(throws: ReelError.self) { try session([(0, []), (1, []), (2, [0]), (3, [1])]) }
        #expect(error?.code == .badEvent)
        #expect(error?.message.contains("record it through one server") == true, "\(error?.message ?? "")")
    }

    @Test("an author who does not know an own edit is refused") func refusesBranchesOfAnAuthor() {
        let error = #expect(throws: ReelError.self) { try session([(0, []), (0, [])]) }
        #expect(error?.message.contains("edit 1, which does not follow edit 0") == true, "\(error?.message ?? "")")
    }

    @Test("a session of more authors than the limit is refused") func refusesTooManyAuthors() throws {
        let most = EditingSession.authorsMax
        #expect(try session((0..<most).map { ($0, []) }).authors == most)
        let error = #expect(throws: ReelError.self) { try session((0...most).map { ($0, []) }) }
        #expect(error?.message.contains("\(most + 1) authors") == true)
    }

    @Test("the numbers of authors may have holes") func acceptsHoles() throws {
        #expect(try session([(7, []), (3, [0])]).edits.map(\.author) == [1, 0])
    }

    @Test("a transaction without patches passes on what its author knew") func passesKnowledgeOn() throws {
        let json = #"""
            {"endContent":"","txns":[
             {"agent":0,"parents":[],"patches":[[0,0,"a",0]]},{"agent":1,"parents":[0],"patches":[]},
             {"agent":1,"parents":[1],"patches":[[1,0,"b"]]}]}
            """#
        let session = try EditingSession(file: Array(json.utf8))
        #expect(session.edits.map(\.index) == [0, 2])
        #expect(session.edits.map(\.op) == [0, 0])
        #expect(session.edits.map(\.base) == [-1, 0])
    }

    @Test("in a random session each author knows exactly the recorded edits", arguments: 0..<20)
    func knowsExactlyRecordedEdits(seed: UInt64) throws {
        let recorded = RecordedAuthors(authors: 1 + Int(seed % 6), edits: 60, seed: seed).shuffled(seed: seed)
        let session = try session(recorded.map { ($0.author, $0.parents) })
        #expect(session.edits.count == recorded.count)
        var known: [Set<Int>] = []
        for entry in recorded {
            known.append(Set(entry.parents).union(entry.parents.flatMap { known[$0] }))
        }
        for edit in session.edits {
            for (position, other) in session.edits.enumerated() where other.author != edit.author {
                #expect(known[edit.index].contains(other.index) == (position <= edit.base), "edit \(edit.index)")
            }
        }
    }
}
