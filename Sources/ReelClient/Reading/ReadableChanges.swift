internal import ReelCore

/// The changes of a stream's readable content in one turn of the client.
struct ReadableChanges {
    /// An object as own events that wait leave it.
    private enum Own {
        /// Own events change the object; nil: they delete it, or it does not exist.
        case shown(FoldedState?)
        /// No own event changes the object any more.
        case confirmed
    }

    private var unwritten: [Overlay.Key: FoldedState?] = [:]
    private var own: [Overlay.Key: Own] = [:]
    /// True if the folded state was replaced by another one, which is readable once it is stored.
    var isReplaced = false
    /// True if the folded state was stored in this turn, so that no object differs from its row.
    var isStored = false

    /// Adds the changes of a fold, and returns the keys of the changed objects.
    mutating func add(_ changes: ReelCore.Changes, of fold: Fold) -> Set<Overlay.Key> {
        var keys: Set<Overlay.Key> = []
        for key in changes.forgottenObjects {
            unwritten.updateValue(nil, forKey: key)
            keys.insert(key)
        }
        for slot in changes.objects {
            let key = fold.key(ofObject: slot)
            unwritten.updateValue(fold.folded(at: slot), forKey: key)
            keys.insert(key)
        }
        return keys
    }

    /// Adds the changes that own events make.
    mutating func add(_ overlay: inout Overlay) {
        for key in overlay.takeTouched() {
            own[key] = overlay.covers(key) ? .shown(overlay.folded(key)) : .confirmed
        }
    }

    /// Applies the changes that readers may see before they are stored.
    func apply(to stream: inout ClientContent.Stream) {
        for (key, own) in own {
            switch own {
            case .shown(let state): stream.own.updateValue(state, forKey: key)
            case .confirmed: stream.own[key] = nil
            }
        }
        stream.unwritten.merge(unwritten) { $1 }
    }
}
