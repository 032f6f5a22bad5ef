import Reel
import TestSupport

extension Job {
    /// Changes up to four properties at random; a constant never.
    mutating func change(_ random: inout SeededNumbers) {
        for _ in 0..<random.below(5) { changeOne(&random) }
    }

    private mutating func changeOne(_ random: inout SeededNumbers) {
        switch random.below(13) {
        case 0: title = Self.text(&random)
        case 1: isDone.toggle()
        case 2: priority = random.oneIn(4) ? -0.0 : Double.random(in: -1e9...1e9, using: &random)
        case 3: label = random.pick(Label.allCases)
        case 4: due = random.oneIn(2) ? nil : Timestamp(ms: random.below(1_000))
        case 5: steps = (0..<random.below(3)).map { _ in Self.text(&random) }
        case 6: votes += random.oneIn(9) ? -(1 << 40) : random.below(7) - 3
        case 7: tags.insert(Self.text(&random))
        case 8: if let tag = tags.sorted().first { tags.remove(tag) }
        case 9:
            let place = note.index(note.startIndex, offsetBy: random.below(note.count + 1))
            let end = note.index(place, offsetBy: random.below(3), limitedBy: note.endIndex) ?? note.endIndex
            note.replaceSubrange(place..<end, with: Self.text(&random))
        case 10:
            let place = random.below(data.count + 1)
            let end = min(data.count, place + random.below(3))
            data.replaceSubrange(
                place..<end,
                with: (0..<random.below(4)).map { _ in UInt8.random(in: 0...255, using: &random) }
            )
        case 11:
            let id = JobList.ID("list \(random.below(3))")
            list = random.oneIn(3) ? nil : Ref(id)
        default:
            let lower = random.oneIn(2) ? rank : nil
            rank = Rank.between(lower, nil, using: &random)
        }
    }

    private static func text(_ random: inout SeededNumbers) -> String {
        let parts = ["a", "b ", "é", "e\u{301}", "\u{301}", "😀", "🇩🇪", "\r\n", "\u{0}", "字"]
        return (0..<random.below(5)).map { _ in random.pick(parts) }.joined()
    }
}
