import Testing

@testable import ReelCheck

@Suite struct NaiveFoldTests {
    private let ann = "00000000-0000-4000-8000-00000000000a"
    private let bob = "00000000-0000-4000-8000-00000000000b"

    private func fold(_ events: [String]) -> (fold: NaiveFold, outcomes: [String]) {
        var fold = NaiveFold(epoch: "0123456789abcdef", partition: 0, of: 1)
        let outcomes = events.enumerated().map { seq, event in
            fold.apply(seq: Int64(seq), key: Array("todo".utf8), value: Array(event.utf8))?.description ?? "nil"
        }
        return (fold, outcomes)
    }

    private func text(_ fold: NaiveFold) -> String {
        String(decoding: fold.snapshot(of: "todo") ?? [], as: UTF8.self)
    }

    @Test func `Two authors type into one note at once, and each word stays whole`() throws {
        func splice(_ site: String, _ op: Int, _ base: Int, _ splice: String) -> String {
            #"{"base":\#(base),"id":"n","model":"note","op":\#(op),"ops":{"text":{"splice":[\#(splice)]}},"site":"\#(site)","type":"update"}"#
        }
        let (fold, outcomes) = fold([
            #"{"base":-1,"fields":{"text":"-"},"id":"n","model":"note","op":0,"site":"\#(ann)","type":"insert"}"#,
            splice(ann, 1, 0, #"[1,0,"ab"]"#),
            splice(bob, 0, 0, #"[1,0,"x"]"#),
            splice(bob, 1, 0, #"[0,1,""],[1,0,"y😀"]"#),
            splice(ann, 2, 0, #"[3,0,"c"]"#),
            splice(ann, 3, 4, #"[0,9,""]"#),
        ])
        #expect(outcomes == ["applied", "applied", "applied", "applied", "applied", "rejected(range)"])
        let expected = """
            {"after":-1,"consumed":6,"epoch":"0123456789abcdef","fold":1,"marks":[],"partition":0,"seq":5,"sites":["\(ann)","\(bob)"],"stream":"todo"}
            {"end":-1,"op":3,"r":5,"seq":5,"site":0}
            {"end":-1,"op":1,"r":-1,"seq":3,"site":1}
            {"fields":{"text":["xy😀abc",4,0,[["-",0,0,[[3,1]]],["x",2,1],["y😀",3,1],["ab",1,0],["c",4,0]],[0,0]]},"object":["note","n"],"seq":4}
            {"count":3,"digest":"\(fold.digest(of: "todo"))","end":true}

            """
        #expect(text(fold) == expected)
        let snapshot = try NaiveSnapshot(Array(expected.utf8))
        #expect(snapshot.digest == snapshot.declaredDigest)
        #expect(snapshot.normalForm == fold.normalForm(of: "todo"))
    }

    @Test func `A record below the last one is not folded again`() {
        var fold = NaiveFold(epoch: "0123456789abcdef", partition: 0, of: 1)
        #expect(fold.apply(seq: 3, key: [], value: []) == .void("the key names no stream"))
        #expect(fold.apply(seq: 3, key: [], value: []) == nil)
    }
}
