import TestSupport
import Testing

@testable import Reel

/// The pure core of drafts: patches, their transformation, and the log of edits, without a client.
@Suite struct DraftLogTests {
    private func patch(_ random: inout SeededNumbers, of content: [UInt8], _ first: UInt8) -> Patch<[UInt8]> {
        var (patch, next) = (Patch<[UInt8]>(), first)
        var count = content.count
        for _ in 0..<random.below(6) {
            let start = random.below(count + 1)
            let removed = random.below(min(4, count - start) + 1)
            let inserted = (0..<random.below(4)).map { _ in
                next += 1
                return next
            }
            patch.append(.init(start: start, removed: removed, inserted: inserted))
            count += inserted.count - removed
        }
        return patch
    }

    @Test("a patch made of edits one after the other has their effect") func appending() {
        Seeds.run(1_000) { seed in
            var random = SeededNumbers(seed)
            var content = [UInt8](0..<UInt8(random.below(12)))
            let original = content
            var patch = Patch<[UInt8]>()
            for step in 0..<12 {
                let start = random.below(content.count + 1)
                let removed = random.below(min(4, content.count - start) + 1)
                let inserted = [UInt8](repeating: UInt8(100 + step), count: random.below(4))
                content.replaceSubrange(start..<start + removed, with: inserted)
                patch.append(.init(start: start, removed: removed, inserted: inserted))
                #expect(patch.applied(to: original) == content, "REEL_SEED=\(seed)")
                let isNormal = zip(patch.hunks, patch.hunks.dropFirst()).allSatisfy { $0.end < $1.start }
                #expect(isNormal, "REEL_SEED=\(seed)")
            }
        }
    }

    @Test("two patches of one content have the same effect in either order, and lose nothing") func rebasing() {
        Seeds.run(1_500) { seed in
            var random = SeededNumbers(seed)
            let content = [UInt8](0..<UInt8(random.below(12)))
            let (own, other) = (patch(&random, of: content, 100), patch(&random, of: content, 200))
            let one = own.rebased(over: other, isFirst: true).applied(to: other.applied(to: content))
            let two = other.rebased(over: own, isFirst: false).applied(to: own.applied(to: content))
            #expect(one == two, "REEL_SEED=\(seed)")
            let inserted = (own.hunks + other.hunks).flatMap(\.inserted)
            let removed = Set((own.hunks + other.hunks).flatMap { Array(content[$0.start..<$0.end]) })
            let kept = content.filter { !removed.contains($0) }
            #expect(one.sorted() == (kept + inserted).sorted(), "REEL_SEED=\(seed)")
        }
    }

    @Test("a patch is cut into parts that have its effect one after the other") func parts() {
        Seeds.run(1_000) { seed in
            var random = SeededNumbers(seed)
            let content = [UInt8](0..<12)
            var patch = patch(&random, of: content, 100)
            let whole = patch.applied(to: content)
            var present = content
            for _ in 0..<40 where !patch.isEmpty {
                if random.oneIn(2) {
                    present = patch.removeFirst(unitsMax: 1 + random.below(4), hunksMax: 2).applied(to: present)
                } else if let hunk = patch.removeFirst() {
                    present.replaceSubrange(hunk.start..<hunk.end, with: hunk.inserted)
                }
            }
            #expect(present == whole && patch.isEmpty, "REEL_SEED=\(seed)")
        }
    }

    @Test("a long insertion is cut between clusters") func longInsertion() {
        var patch = Patch<String>(.init(start: 0, removed: 0, inserted: "👨‍👩‍👧ab"))
        #expect(patch.removeFirst(unitsMax: 3, hunksMax: 1).hunks.map(\.inserted) == ["👨‍👩‍👧"])
        #expect(patch.removeFirst(unitsMax: 1, hunksMax: 1).hunks.map(\.inserted) == ["a"])
        #expect(patch.hunks.map(\.inserted) == ["b"])
    }

    @Test("the difference of two texts makes one the other, splits no cluster, and leaves what is between two edits")
    func difference() {
        Seeds.run(700) { seed in
            var random = SeededNumbers(seed)
            let old = DraftText.random(&random, 20)
            var new = old
            for _ in 0..<random.below(4) { DraftText.edit(&new, &random) }
            let patch = Patch.difference(from: old, to: new)
            #expect(Array(patch.applied(to: old).utf8) == Array(new.utf8), "REEL_SEED=\(seed)")
            for hunk in patch.hunks {
                #expect(DraftText.isBorder(hunk.start, of: old), "REEL_SEED=\(seed)")
                #expect(DraftText.isBorder(hunk.end, of: old), "REEL_SEED=\(seed)")
            }
        }
        let line = String(repeating: "abc ", count: 1_000)
        let patch = Patch.difference(from: "x\(line)y", to: "1\(line)2")
        #expect(patch.hunks.map(\.inserted) == ["1", "2"])
        // Too many differences for a search.
        let other = String(repeating: "xyz ", count: 1_000)
        #expect(Patch.difference(from: line + "-", to: other + "-").hunks.count == 1)
    }

    @Test("texts that differ in their spelling only are different") func spelling() {
        let patch = Patch.difference(from: "a é b", to: "a e\u{301} b")
        #expect(patch.hunks.count == 1 && patch.hunks[0].inserted.unicodeScalars.count == 2)
    }

    /// Two drafts of one content that a simulated client shows to both.
    @Test("drafts of one content end alike, whatever the order of edits and rounds") func log() throws {
        try Seeds.run(1_000) { seed in
            var random = SeededNumbers(seed)
            var content = DraftText.random(&random, 12)
            var drafts = (0..<2 + random.below(3)).map { _ in (view: TextView(content), log: DraftLog(content)) }
            /// The content with the edits that a draft is sending, before they are accepted.
            var next = [String?](repeating: nil, count: drafts.count)
            for _ in 0..<60 {
                let index = random.below(drafts.count)
                switch random.below(5) {
                case 0, 1:
                    let (range, text) = DraftText.edit(of: drafts[index].view.text, &random)
                    let hunk = drafts[index].view.replace(range, with: text)
                    drafts[index].log.edit(try #require(hunk, "REEL_SEED=\(seed)"))
                case 2:
                    if let hunk = drafts[index].log.take() { _ = drafts[index].view.perform(hunk) }
                case 3:
                    guard next.allSatisfy({ $0 == nil }) else { continue }
                    let difference = Patch.difference(from: drafts[index].log.synced, to: content)
                    drafts[index].log.receive(content, by: difference)
                    let edits = drafts[index].log.send()
                    if !edits.isEmpty { next[index] = edits.applied(to: content) }
                default:
                    for index in drafts.indices {
                        guard let new = next[index] else { continue }
                        let isAccepted = !random.oneIn(3)
                        drafts[index].log.sendingEnded(isAccepted ? new : nil)
                        if isAccepted { content = new }
                        next[index] = nil
                    }
                }
                for draft in drafts {
                    let view = draft.log.incoming.applied(to: draft.view.text)
                    #expect(Array(view.utf8) == Array(draft.log.merged.utf8), "REEL_SEED=\(seed)")
                    #expect(draft.view.utf16Count == draft.view.text.utf16.count, "REEL_SEED=\(seed)")
                }
            }
            for index in drafts.indices where next[index] != nil { drafts[index].log.sendingEnded(nil) }
            // Every draft sends what it has, and then all take what the others have sent.
            for index in Array(drafts.indices) + Array(drafts.indices) {
                drafts[index].log.receive(content, by: .difference(from: drafts[index].log.synced, to: content))
                content = drafts[index].log.send().applied(to: content)
                drafts[index].log.sendingEnded(content)
                while let hunk = drafts[index].log.take() { _ = drafts[index].view.perform(hunk) }
            }
            for draft in drafts {
                #expect(Array(draft.view.text.utf8) == Array(content.utf8), "REEL_SEED=\(seed)")
                #expect(draft.log.sent.isEmpty && draft.log.local.isEmpty, "REEL_SEED=\(seed)")
            }
        }
    }
}
