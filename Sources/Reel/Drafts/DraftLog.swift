/// The edits of one draft, between the content that the client shows and the content that a view shows.
///
/// A view shows own edits at once, and the edits of others when it takes them. The client shows the edits of others at
/// once, and own edits when they are queued. With both kinds of edits both contents are the same:
///
///     view + incoming = synced + sent + local
///
/// The log is pure: it holds no view, and does not know how edits are queued.
struct DraftLog<Content: DraftContent>: Sendable {
    /// The content that the client has shown last.
    private(set) var synced: Content
    /// The own edits that are being queued, on the content that the client has shown last.
    private(set) var sent = Patch<Content>()
    /// The own edits that are not queued, on the content with those that are being queued.
    private(set) var local = Patch<Content>()
    /// The edits of others that the view has not taken.
    private(set) var incoming = Patch<Content>()

    init(_ content: Content) { synced = content }

    /// The content of the view after it has taken all edits of others.
    var merged: Content { local.applied(to: sent.applied(to: synced)) }

    /// Adds an own edit of the view's content.
    mutating func edit(_ hunk: Patch<Content>.Hunk) {
        if incoming.isEmpty { return local.append(hunk) }
        let edit = Patch(hunk)
        local.append(edit.rebased(over: incoming, isFirst: true))
        incoming = incoming.rebased(over: edit, isFirst: false)
    }

    /// Takes the content that the client shows now. Does nothing while own edits are being queued.
    ///
    /// - Parameters:
    ///   - content: the content.
    ///   - difference: the difference from the content that the client has shown last.
    mutating func receive(_ content: Content, by difference: Patch<Content>) {
        guard sent.isEmpty else { return }
        if difference.isEmpty { return synced = content }
        let moved = local.rebased(over: difference, isFirst: true)
        var fitted = Patch<Content>()
        var isFitted = true
        for hunk in moved.hunks {
            let fit = content.fitted(hunk)
            if fit.start != hunk.start || fit.removed != hunk.removed { isFitted = false }
            fitted.add(fit)
        }
        if isFitted {
            incoming.append(difference.rebased(over: local, isFirst: false))
        } else {
            incoming.append(Patch.difference(from: merged, to: fitted.applied(to: content)))
        }
        (synced, local) = (content, fitted)
    }

    /// Returns the own edits that are to be queued next, on the content that the client has shown last. Call
    /// `sendingEnded` when they are queued or refused.
    mutating func send() -> Patch<Content> {
        guard sent.isEmpty else { return Patch() }
        sent = local.removeFirst(unitsMax: Self.unitsMax, hunksMax: Self.hunksMax)
        return sent
    }

    /// The limits of one event.
    private static var unitsMax: Int { 16 << 10 }
    private static var hunksMax: Int { 500 }

    /// Ends the queueing of edits.
    ///
    /// - Parameter content: the content that the client shows with the edits; nil: the edits are not queued.
    mutating func sendingEnded(_ content: Content?) {
        if let content {
            synced = content
        } else {
            sent.append(local)
            local = sent
        }
        sent = Patch()
    }

    /// Returns the next edit of others, which the view performs. Nil if there is none.
    mutating func take() -> Patch<Content>.Hunk? { incoming.removeFirst() }
}
