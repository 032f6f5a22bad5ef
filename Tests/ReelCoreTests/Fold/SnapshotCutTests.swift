import TestSupport
import Testing

@testable import ReelCore

/// Answers with state that were cut, and their rests. Random tests print their seed.
@Suite struct SnapshotCutTests {
    private static let histories: Range<UInt64> = 0..<UInt64(2 * effort)

    /// A reader that has lost its answer after some lines.
    private struct Cut {
        /// The state of these lines, on top of what the reader had before.
        var fold: Fold
        /// The last object that was read; nil: the answer was cut before the first object.
        var place: SnapshotCut?
    }

    private func split(_ lines: [UInt8]) -> [[UInt8]] {
        lines.split(separator: UInt8(ascii: "\n")).map(Array.init)
    }

    /// All cuts of an answer: after the first line, after the second one, up to before the last.
    private func cuts(_ lines: [UInt8], of reader: SnapshotReader, beyond: Seq) throws -> [Cut] {
        var (reader, place, cuts) = (reader, SnapshotCut?.none, [Cut]())
        for line in split(lines).dropLast() {
            try line.withUnsafeBytes { try reader.read(line: $0) }
            if reader.step == .objects {
                let (model, id) = Fold.split(reader.lastKey) { (JSONText($0).string, JSONText($1).string) }
                place = SnapshotCut(model: model, id: id, beyond: beyond)
                #expect(place?.key == reader.lastKey)
                #expect(place?.name.model == model && place?.name.id == id)
            }
            cuts.append(Cut(fold: try #require(reader.fold), place: place))
        }
        return cuts
    }

    private func rest(_ fold: Fold, after: Seq, _ cut: SnapshotCut) throws -> [UInt8] {
        var (fold, bytes) = (fold, [UInt8]())
        var writer = try fold.rest(after: after, beyond: cut)
        writer.writeAll(to: &bytes)
        return bytes
    }

    private func read(_ lines: [UInt8], onto fold: Fold, _ cut: SnapshotCut) throws -> Fold {
        var reader = SnapshotReader(onto: fold, beyond: cut)
        try lines.withUnsafeBytes { try reader.read(lines: $0) }
        return try reader.finish()
    }

    private func code(_ body: () throws -> Void) -> ErrorCode? {
        do {
            try body()
            return nil
        } catch { return (error as? ReelError)?.code }
    }

    @Test("a snapshot that was cut at any line continues at a later seq to the whole state", arguments: histories)
    func continuesSnapshots(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 11_000 &+ number)
        for _ in 0..<80 { history.step() }
        for round in 0..<3 {
            if round > 0 { history.jump() }
            var start = history.fold
            let cuts = try cuts(start.lines(), of: SnapshotReader(), beyond: .none)
            for _ in 0..<3 {
                var end = history.fold
                let whole = try end.lines()
                for cut in cuts where end.horizon <= start.seq {
                    guard let place = cut.place else { continue }
                    var fold = try read(rest(end, after: start.seq, place), onto: cut.fold, place)
                    #expect(try fold.lines() == whole)
                    #expect(fold.digest() == end.digest())
                }
                for _ in 0..<20 { history.step() }
            }
        }
    }

    @Test("a delta that was cut at any line continues at a later seq to the whole state", arguments: histories)
    func continuesDeltas(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 12_000 &+ number)
        for _ in 0..<80 { history.step() }
        for round in 0..<3 {
            if round > 0 { history.jump() }
            let held = history.fold
            for _ in 0..<40 { history.step() }
            var middle = history.fold
            guard held.seq >= middle.horizon else { continue }
            let cuts = try cuts(middle.lines(after: held.seq), of: SnapshotReader(onto: held), beyond: held.seq)
            for _ in 0..<25 { history.step() }
            var end = history.fold
            guard held.seq >= end.horizon else { continue }
            let whole = try end.lines()
            for cut in cuts {
                guard let place = cut.place else { continue }
                var fold = try read(rest(end, after: middle.seq, place), onto: cut.fold, place)
                #expect(try fold.lines() == whole)
            }
        }
    }

    @Test("a rest that was cut continues after the seq of the first answer", arguments: histories)
    func continuesRests(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 13_000 &+ number)
        for _ in 0..<80 { history.step() }
        for isDelta in [false, true] {
            let held = history.fold
            for _ in 0..<40 { history.step() }
            var first = history.fold
            let beyond = isDelta ? held.seq : .none
            let reader = isDelta ? SnapshotReader(onto: held) : SnapshotReader()
            let cuts = try cuts(first.lines(after: beyond), of: reader, beyond: beyond)
            for _ in 0..<25 { history.step() }
            let second = history.fold
            for _ in 0..<25 { history.step() }
            var end = history.fold
            let whole = try end.lines()
            for cut in cuts {
                guard let place = cut.place else { continue }
                let lines = try rest(second, after: first.seq, place)
                let reader = SnapshotReader(onto: cut.fold, beyond: place)
                for again in try self.cuts(lines, of: reader, beyond: beyond) {
                    // The rest begins with objects up to the first cut, which changed since.
                    let later = again.place.map { place.isPassed(by: $0.key) ? $0 : place } ?? place
                    var fold = try read(rest(end, after: first.seq, later), onto: again.fold, later)
                    #expect(try fold.lines() == whole)
                }
            }
        }
    }

    @Test("the lines of a rest")
    func lines() throws {
        var script = FoldScript()
        for id in ["1", "2", "3", "4"] { script.event("insert", 10, id: id, fields: "{\"n\":1}") }
        script.event("delete", 10, id: "4")
        let after = script.fold.seq
        script.event("update", 10, id: "1", fields: "{\"n\":2}")
        script.event("delete", 10, id: "2")
        let cut = try #require(SnapshotCut(model: "m", id: "2"))
        let lines = split(try rest(script.fold, after: after, cut)).map { String(decoding: $0, as: UTF8.self) }
        #expect(
            lines.dropLast() == [
                #"{"after":4,"beyond":["m","2",-1],"consumed":7,"epoch":"000000000000009f","fold":1,"marks":[],"partition":0,"seq":6,"sites":["\#(FoldScript.site(10))"],"stream":"todo"}"#,
                #"{"end":-1,"op":6,"r":-1,"seq":6,"site":0}"#,
                #"{"fields":{"n":[2,5,0]},"object":["m","1"],"seq":5}"#,
                #"{"fields":{"n":[1,2,0]},"object":["m","3"],"seq":2}"#,
                #"{"deleted":["m","2"],"seq":6}"#,
                #"{"deleted":["m","4"],"seq":4}"#,
            ]
        )
        #expect(lines.last == #"{"count":5,"digest":"af1349227f744381","end":true}"#)
    }

    @Test("a rest from below the horizon, or from the future, is refused")
    func truncated() throws {
        var script = FoldScript()
        for _ in 0..<40 { script.noop() }
        script.setHorizon(10)
        func code(after: Seq, beyond: Seq) throws -> ErrorCode? {
            let cut = try #require(SnapshotCut(model: "m", id: "1", beyond: beyond))
            return self.code { _ = try script.fold.rest(after: after, beyond: cut) }
        }
        #expect(try code(after: 9, beyond: -1) == .truncated)
        #expect(try code(after: 10, beyond: -1) == nil)
        #expect(try code(after: 12, beyond: 9) == .truncated, "a tombstone beyond the cut may be forgotten")
        #expect(try code(after: 12, beyond: 10) == nil)
        #expect(try code(after: 40, beyond: -1) == .badRange)
        #expect(try code(after: 12, beyond: 13) == .badRange)
        #expect(try code(after: -1, beyond: -1) == .badRange)
    }

    @Test("no cut has a name that no object has")
    func names() {
        for name in ["", "a\u{1F}", String(repeating: "é", count: 65)] {
            #expect(SnapshotCut(model: name, id: "1") == nil)
            #expect(SnapshotCut(model: "m", id: name) == nil)
        }
        #expect(SnapshotCut(model: "\"", id: "\\") != nil)
        // Two spellings of one text are two names.
        #expect(SnapshotCut(model: "m", id: "\u{E9}") != SnapshotCut(model: "m", id: "e\u{301}"))
    }

    @Test("a rest that is not exactly what was asked for is refused", arguments: histories)
    func refusesLies(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 14_000 &+ number)
        for _ in 0..<120 { history.step() }
        var start = history.fold
        let cuts = try cuts(start.lines(), of: SnapshotReader(), beyond: .none)
        for _ in 0..<30 { history.step() }
        let cut = try #require(cuts.first { $0.place != nil })
        let place = try #require(cut.place)
        let good = split(try rest(history.fold, after: start.seq, place))
        func refusal(_ lines: [[UInt8]], onto fold: Fold? = nil, _ asked: SnapshotCut? = nil) -> ErrorCode? {
            code { _ = try read(lines.flatMap { $0 + [0x0a] }, onto: fold ?? cut.fold, asked ?? place) }
        }
        #expect(refusal(good) == nil)
        for index in good.indices {
            let codes = [
                refusal(Array(good[..<index] + good[(index + 1)...])),
                refusal(Array(good[...index] + good[index...])),
            ]
            #expect(codes.allSatisfy { $0 == .badFrame || $0 == .diverged }, "line \(index): \(codes)")
        }
        // A left out object or tombstone with a right count.
        let end = #"{"count":\#(good.count - 3),"#
        for index in good.indices.dropFirst().dropLast() {
            var fewer = good
            let last = String(decoding: fewer.removeLast(), as: UTF8.self)
            fewer.remove(at: index)
            fewer.append(Array((end + last.drop { $0 != "," }.dropFirst()).utf8))
            let code = refusal(fewer)
            #expect(code == .badFrame || code == .diverged, "line \(index): \(String(describing: code))")
        }
        // Other answers than the one that was asked for.
        #expect(refusal(split(try start.lines())) == .badFrame, "a snapshot")
        var end2 = history.fold
        #expect(refusal(split(try end2.lines(after: start.seq))) == .badFrame, "a delta")
        let held = try #require(SnapshotCut(model: place.name.model, id: place.name.id, beyond: 3))
        #expect(refusal(good, held) == .badFrame)
        #expect(refusal(good, SnapshotCut(model: place.name.model, id: place.name.id + "1")) == .badFrame)
        let bytes: [UInt8] = good.flatMap { $0 + [0x0a] }
        #expect(code { _ = try bytes.withUnsafeBytes { try Fold(snapshot: $0) } } == .badFrame)
        #expect(code { _ = try bytes.withUnsafeBytes { try start.apply(delta: $0) } } == .badFrame)
        // A state that is not that of the answer.
        var wrong = cut.fold
        wrong.set(FoldScript.site(9), by: nil, op: 0, seq: 3, lost: LostTexts(), end: -1)
        #expect(refusal(good, onto: wrong) == .diverged)
        var early = cut.fold
        early.seq = start.seq - 1
        #expect(refusal(good, onto: early) == .badRange)
    }
}
