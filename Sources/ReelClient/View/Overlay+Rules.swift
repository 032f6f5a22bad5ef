internal import ReelCore

// The horizon and the lost texts of the fold below. A change of them concerns few of the laid events.
extension Overlay {
    /// The consequences of other rules of the fold below.
    struct Rules {
        /// The objects whose events must be laid again.
        var dirty: Set<Key> = []
        /// The entries that have become too old.
        var old: [Int64] = []

        var isEmpty: Bool { dirty.isEmpty && old.isEmpty }
    }

    /// The look of objects before a step.
    struct Looks {
        /// False if nobody compares them.
        let isWanted: Bool
        private(set) var states: [Key: ObjectState?] = [:]

        init(isWanted: Bool) {
            self.isWanted = isWanted
        }

        /// Remembers the first look of an object.
        mutating func note(_ key: Key, _ state: () -> ObjectState?) {
            if isWanted, states[key] == nil { states.updateValue(state(), forKey: key) }
        }
    }

    /// Takes over the horizon and the lost texts of the fold below, and adds what that concerns. Returns false if all
    /// events must be laid again.
    mutating func takeRules(of confirmed: Fold?, _ rules: inout Rules) -> Bool {
        let (old, new) = (draft.horizon, confirmed?.horizon ?? .none)
        guard new >= old else { return false }
        for (site, lost) in confirmedLost {
            let present = confirmed?.site(site)?.lost ?? LostTexts()
            guard present != lost else { continue }
            guard present.all == lost.all, takeLost(present, of: site, &rules) else { return false }
        }
        if new > old { rules.old = takeHorizon(of: confirmed) }
        return true
    }
}
