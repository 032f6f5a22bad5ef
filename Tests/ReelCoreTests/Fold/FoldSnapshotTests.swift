import TestSupport
import Testing

@testable import ReelCore

@Suite struct FoldSnapshotTests {
    private func lines(_ fold: Fold, after: Seq = .none) throws -> [String] {
        var fold = fold
        let text = String(decoding: try fold.lines(after: after), as: UTF8.self)
        #expect(text.last == "\n")
        return text.split(separator: "\n").map(String.init)
    }

    private func read(_ text: String) throws -> Fold {
        try Array(text.utf8).withUnsafeBytes { try Fold(snapshot: $0) }
    }

    private func error(_ text: String) -> ReelError? {
        do {
            _ = try read(text)
            return nil
        } catch { return error as? ReelError }
    }

    /// Returns a script with a text in several runs, a tombstone, an ended site, and names that need escapes.
    private func sample() -> FoldScript {
        var script = FoldScript()
        script.event("insert", 1, by: "ann", id: "2", fields: "{\"n\":[1,\"x\"],\"t\":\"abc\"}")
        script.event("update", 2, base: 0, id: "2", ops: "{\"t\":{\"splice\":[[1,1,\"X\"]]}}")
        script.event("update", 1, base: 0, by: "ann", id: "2", ops: "{\"t\":{\"splice\":[[1,2,\"\\\"\"]]}}")
        script.event("insert", 2, id: "\\\"1")
        script.event("delete", 2, last: true, id: "\\\"1")
        return script
    }

    @Test("a snapshot of an empty stream has two lines")
    func emptySnapshot() throws {
        let fold = Fold(stream: FoldHistory.stream, partition: 3, epoch: FoldHistory.epoch)
        #expect(
            try lines(fold) == [
                #"{"after":-1,"consumed":0,"epoch":"000000000000009f","fold":1,"marks":[],"partition":3,"seq":-1,"sites":[],"stream":"todo"}"#,
                #"{"count":0,"digest":"4952d2f93576f2f1","end":true}"#,
            ]
        )
    }

    @Test("the lines of a snapshot")
    func whole() throws {
        var script = sample()
        script.fold.advance(to: 9)
        script.fold.apply(.end(Epoch(0xab)), seq: 10)
        let lines = try lines(script.fold)
        let (one, two) = (FoldScript.site(1), FoldScript.site(2))
        #expect(
            lines.dropLast() == [
                #"{"after":-1,"consumed":5,"epoch":"000000000000009f","fold":1,"marks":[],"next":"00000000000000ab","partition":0,"seq":10,"sites":["\#(one)","\#(two)"],"stream":"todo"}"#,
                #"{"by":"ann","end":-1,"op":1,"r":-1,"seq":2,"site":0}"#,
                #"{"end":4,"op":2,"r":-1,"seq":4,"site":1}"#,
                #"{"fields":{"n":[[1,"x"],0,0],"t":["a\"X",2,0,[["a",0,0],["\"",2,0],["X",1,1],["b",0,0,[[1,1],[2,0]]],["c",0,0,[[2,0]]]],[0,0]]},"object":["m","2"],"seq":2}"#,
                #"{"deleted":["m","\"1"],"seq":4}"#,
            ]
        )
        #expect(lines.last == "{\"count\":4,\"digest\":\"\(Hex64.text(script.fold.digest()))\",\"end\":true}")
        #expect(try self.lines(read(lines.joined(separator: "\n") + "\n")) == lines)
    }

    @Test("a delta has what was touched after its seq, and the digest of all")
    func delta() throws {
        let script = sample()
        let lines = try lines(script.fold, after: 2)
        let site = FoldScript.site(2)
        #expect(
            lines.dropLast() == [
                #"{"after":2,"consumed":5,"epoch":"000000000000009f","fold":1,"marks":[],"partition":0,"seq":4,"sites":["\#(site)"],"stream":"todo"}"#,
                #"{"end":4,"op":2,"r":-1,"seq":4,"site":0}"#,
                #"{"deleted":["m","\"1"],"seq":4}"#,
            ]
        )
        #expect(try lines.last == self.lines(script.fold).last?.replacing("\"count\":4", with: "\"count\":2"))
    }

    @Test("a delta from below the horizon, or from the future, is refused")
    func truncated() throws {
        var script = FoldScript()
        for _ in 0..<40 { script.noop() }
        script.setHorizon(10)
        #expect(throws: ReelError.self) { try lines(script.fold, after: 40) }
        #expect(try lines(script.fold, after: 10).count == 3)
        do {
            _ = try script.fold.snapshot(after: 9)
            Issue.record("a delta from below the horizon")
        } catch { #expect(error.code == .truncated) }
    }

    @Test("a delta that does not fit changes nothing")
    func misfit() throws {
        var script = sample()
        let early = script.fold
        script.noop()
        let delta = try script.fold.lines(after: 4)
        var other = Fold(stream: FoldHistory.stream, partition: 0, epoch: FoldHistory.epoch)
        #expect(throws: ReelError.self) { try delta.withUnsafeBytes { try other.apply(delta: $0) } }
        #expect(other.seq == -1)
        var fold = early
        try delta.withUnsafeBytes { try fold.apply(delta: $0) }
        #expect(fold.seq == 5)
        // The digest of the delta reveals a wrong state below it.
        var wrong = early
        wrong.set(FoldScript.site(9), by: nil, op: 0, seq: 3, lost: LostTexts(), end: -1)
        let before = wrong.digest()
        do {
            try delta.withUnsafeBytes { try wrong.apply(delta: $0) }
            Issue.record("a delta onto a wrong state")
        } catch { #expect((error as? ReelError)?.code == .diverged) }
        #expect(wrong.digest() == before)
    }

    @Test("the snapshot reader rejects each invalid line, and the error names the line")
    func rejectsInvalidLines() throws {
        let script = sample()
        let good = try lines(script.fold)
        let text = good.joined(separator: "\n") + "\n"
        let changes: [(String, String)] = [
            ("\"fold\":1", "\"fold\":2"), ("\"consumed\":5", "\"consumed\":4096"), ("\"marks\":[]", "\"marks\":[1]"),
            ("\"seq\":4,\"sites\"", "\"seq\":3,\"sites\""), ("\"stream\":\"todo\"", "\"stream\":\"~todo\""),
            ("\"site\":1", "\"site\":0"), ("\"site\":1", "\"site\":2"), ("\"op\":1", "\"op\":2"),
            ("\"end\":4", "\"end\":3"), ("[\"a\",0,0]", "[\"b\",0,0]"), ("[\"a\",0,0]", "[\"\",0,0],[\"a\",0,0]"),
            ("[[1,1],[2,0]]", "[[2,0],[1,1]]"), ("[[2,0]]]]", "[]]]"), ("[0,0]]}", "[3,0]]}"),
            ("\"r\":-1", "\"r\":-2"), ("\"by\":\"ann\"", "\"by\":\"\""), ("{\"deleted\"", " {\"deleted\""),
            ("\"count\":4", "\"count\":3"), ("\"digest\":\"", "\"digest\":\"0"), ("[1,\"x\"]", "null"),
            ("\"n\":[[1,\"x\"]", "\"n\":[[1.0,\"x\"]"), ("\"after\":-1", "\"after\":1"),
        ]
        for (old, new) in changes {
            #expect(text.contains(old))
            let range = text.firstRange(of: old)!
            let error = error(text.replacingCharacters(in: range, with: new))
            #expect(error != nil, "\(old) → \(new)")
            #expect(error?.message.hasPrefix("line ") == true, "\(old) → \(new)")
        }
        for index in good.indices {
            var fewer = good
            fewer.remove(at: index)
            #expect(error(fewer.joined(separator: "\n") + "\n") != nil)
            var more = good
            more.insert(good[index], at: index)
            #expect(error(more.joined(separator: "\n") + "\n") != nil)
            if index + 1 < good.count {
                var swapped = good
                swapped.swapAt(index, index + 1)
                #expect(error(swapped.joined(separator: "\n") + "\n") != nil)
            }
        }
        #expect(error(String(text.dropLast())) != nil)
        #expect(error("") != nil)
    }

    @Test("damaged snapshots and rows are errors, never traps", arguments: 0..<UInt64(2 * effort))
    func damaged(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 5_000 &+ number)
        for _ in 0..<120 { history.step() }
        history.jump()
        for _ in 0..<60 { history.step() }
        var fold = history.fold
        let good = try fold.lines()
        var rows = fold.slots().map { slot in
            var row = [UInt8]()
            fold.writeRow(ofObject: slot, to: &row)
            return row
        }
        var head = [UInt8]()
        fold.writeHead(to: &head)
        for site in fold.sites() {
            rows.append([])
            fold.writeRow(ofSite: site, to: &rows[rows.count - 1])
        }
        var random = history.random
        var event = ParsedEvent()
        for _ in 0..<300 {
            var bytes = good
            Self.damage(&bytes, &random)
            var read = try? bytes.withUnsafeBytes { try Fold(snapshot: $0) }
            if let digest = read?.digest() { #expect(digest == fold.digest()) }
            var loader = try head.withUnsafeBytes {
                try FoldLoader(stream: fold.stream, partition: 0, epoch: fold.epoch, seq: fold.seq, head: $0)
            }
            for var row in rows {
                if random.oneIn(3) { Self.damage(&row, &random) }
                row.withUnsafeBytes { row in
                    try? [UInt8]("m\01".utf8).withUnsafeBytes { try loader.add(objectKey: $0, row: row) }
                    try? loader.add(site: .random(using: &random), row: row)
                }
            }
            var loaded = loader.finish()
            _ = loaded.digest()
            if random.oneIn(10) {
                for record in history.records.suffix(20) {
                    _ = loaded.fold(record.value, seq: record.seq + 1_000, &event)
                }
            }
            var copy = head
            Self.damage(&copy, &random)
            _ = try? copy.withUnsafeBytes {
                try FoldLoader(stream: fold.stream, partition: 0, epoch: fold.epoch, seq: fold.seq, head: $0)
            }
        }
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededNumbers) {
        for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
            let at = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[at] = random.pick(Array("0129\"[]{},:\\-".utf8))
            case 2: bytes.remove(at: at)
            case 3: bytes.insert(bytes[at], at: at)
            default: bytes.removeSubrange(at..<min(bytes.count, at + Int.random(in: 1...40, using: &random)))
            }
        }
    }

    @Test("the fold takes seeds unchanged, and a later seed replaces an earlier one")
    func laterSeedReplaces() throws {
        var fold = Fold(stream: FoldHistory.stream, partition: 0, epoch: FoldHistory.epoch)
        let (one, two) = (FoldScript.site(1), FoldScript.site(2))
        let seeds = [
            #"{"line":{"by":"ann","end":-1,"op":7,"site":"\#(one)"},"type":"seed"}"#,
            #"{"line":{"end":0,"op":3,"site":"\#(two)"},"type":"seed"}"#,
            #"{"line":{"fields":{"t":["abc","\#(two)"]},"object":["m","1"]},"type":"seed"}"#,
            #"{"line":{"deleted":["m","2"]},"type":"seed"}"#,
            #"{"line":{"fields":{"n":[1,"\#(one)"]},"object":["m","2"]},"type":"seed"}"#,
            #"{"line":{"deleted":["m","1"]},"type":"seed"}"#,
            #"{"line":{"fields":{"t":["abc","\#(two)"]},"object":["m","1"]},"type":"seed"}"#,
        ]
        for (seq, seed) in seeds.enumerated() {
            let outcome = try Array(seed.utf8).withUnsafeBytes { fold.apply(try ParsedSeed($0), $0, seq: Seq(seq)) }
            #expect(outcome == .seed)
        }
        let lines = try lines(fold)
        #expect(
            lines.dropFirst().dropLast() == [
                #"{"by":"ann","end":-1,"op":7,"r":-1,"seq":0,"site":0}"#,
                #"{"end":1,"op":3,"r":-1,"seq":1,"site":1}"#,
                #"{"fields":{"t":["abc",6,1]},"object":["m","1"],"seq":6}"#,
                #"{"fields":{"n":[1,4,0]},"object":["m","2"],"seq":4}"#,
            ]
        )
        #expect(fold.consumed == 0)
        #expect(try self.lines(read(lines.joined(separator: "\n") + "\n")) == lines)
    }

    @Test("names are ordered as their decoded bytes, members by UTF-16")
    func orders() {
        let names = ["a", "a\"", "a#", "a[", "a\\", "a\\\\", "a\\b", "a]", "é", "\u{FFFD}", "😀", "A\"\"", "A\"z"]
        for a in names {
            for b in names {
                JSONText.withEscaped(a) { x in
                    JSONText.withEscaped(b) { y in
                        let bytes = a.utf8.elementsEqual(b.utf8) ? 0 : a.utf8.lexicographicallyPrecedes(b.utf8) ? -1 : 1
                        let units =
                            a.utf16.elementsEqual(b.utf16) ? 0 : a.utf16.lexicographicallyPrecedes(b.utf16) ? -1 : 1
                        #expect(NameOrder.bytes(x, y).signum() == bytes, "\(a) \(b)")
                        #expect(NameOrder.members(x, y).signum() == units, "\(a) \(b)")
                    }
                }
            }
        }
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
        self[..<range.lowerBound] + text + self[range.upperBound...]
    }
}
