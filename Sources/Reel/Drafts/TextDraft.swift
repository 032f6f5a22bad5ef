public import ReelCore

/// The text of one field of an object while a person edits it in a text view.
///
///     let draft = try todo.draft(of: task.id, \.note)
///     textView.text = draft.text
///     try draft.replace(utf16: 3..<5, with: "abc")
///     for await change in draft.remoteChanges { textView.apply(change.utf16, change.text) }
///
/// The draft shows own edits at once. It sends them in the background, merged with those that are waiting, and moves
/// them over the edits of others. It shows an edit of another author when the loop over `remoteChanges` gets it, so
/// that the text of the view and the text of the draft are always equal. Without such a loop the edits of others do not
/// arrive.
///
/// Places are UTF-16 offsets, as `UITextView` and `NSTextStorage` have them. A range may begin or end inside a grapheme
/// cluster, such as before an accent: the text becomes what the caller asks for, and the draft sends the whole cluster
/// as replaced. So no edit begins or ends inside a cluster of another author. If two authors change the inside of one
/// cluster at the same time, both results stay, one after the other.
///
/// A draft may be used from any isolation and on any thread. Use one isolation for one view, such as the main actor:
/// call `replace` and run the loop over `remoteChanges` there, so that no edit comes between a change and the view.
///
/// An own edit stays in the text and is tried again if it cannot be queued; `problem` tells why. An edit that the
/// stream rejects later leaves the text as a remote change, and `takeRefused` returns what was typed. When the draft is
/// released, edits that are not queued yet are queued, unless there is a problem. Before a write that depends on the
/// text, such as `Dataset.update` of the same field, await `flush`.
///
/// A draft holds its client.
public final class TextDraft: Sendable {
    /// An edit of another author, for the view of the draft.
    public struct Change: Sendable, Hashable {
        /// The part of the view's text that is replaced, in UTF-16 code units.
        public let utf16: Range<Int>
        /// The text that replaces it.
        public let text: String
    }

    /// A text that was typed and that the stream does not have.
    public struct Refusal: Sendable, Hashable {
        /// The typed text.
        public let text: String
        /// The reason.
        public let error: ReelError
    }

    private let session: DraftSession<TextView>

    init(_ session: DraftSession<TextView>) { self.session = session }

    deinit { session.close() }

    /// The present text: own edits, and the edits of others that `remoteChanges` has handed out.
    public var text: String { session.withView { $0.text } }

    /// The selected part of the text, in UTF-16 code units. It follows the edits of others, and what they insert at one
    /// of its ends stays outside. It begins and ends at borders of grapheme clusters: a range that does not is widened,
    /// and an insertion point moves to the start of its cluster. A range beyond the text is clamped. An own edit moves
    /// the insertion point to its end.
    public var selection: Range<Int> {
        get { session.withView { $0.selection } }
        set { session.withView { $0.selection = newValue } }
    }

    /// Replaces a part of the text. It returns at once, without waiting for a disk or a network.
    ///
    /// - Parameters:
    ///   - range: the part, in UTF-16 code units. An empty range inserts.
    ///   - text: the text that replaces the part.
    /// - Throws: `range` if the range is not in the text, or begins or ends between the two halves of a surrogate pair.
    ///   Nothing is changed then.
    public func replace(utf16 range: Range<Int>, with text: String) throws {
        var text = text
        text.makeContiguousUTF8()
        try session.edit(range) { $0.replace(range, with: text) }
    }

    /// Waits until all edits made so far are durable on this device: from then on they survive the end of the process.
    ///
    /// - Throws: The error that `problem` has then. The edits stay in the text.
    public func flush() async throws { try await session.flush() }

    /// The edits of others, for the view of the draft, in order. The draft's text has an edit from the moment at which
    /// the loop gets it. The sequence is for one loop at a time, and ends when the draft is released.
    public var remoteChanges: DraftChanges<Change> { DraftChanges(session) }

    /// Returns the next edit of another author that waits, and performs it on the draft's text; nil if none waits. It
    /// is for a view that is updated at a moment of its own, and takes the place of `remoteChanges`.
    public func takeRemoteChange() -> Change? { session.take() }

    /// The reason why own edits are not queued, or why the stream has refused edits that `takeRefused` returns; nil:
    /// there is none.
    ///
    /// It is a `ReelError`: `deleted` or `no_object` if the object is gone, `too_large` if the text is too long for
    /// the stream, `closed` if the stream or the client is closed, or another code of `SyncStream.publish`. It is a
    /// `ModelProblem` if the field holds no text. The draft keeps its text, takes further edits, and tries again with
    /// each edit and with each change of the object.
    ///
    /// After a refusal it is the code of the rejection, such as `stale`, until `takeRefused` is called.
    public var problem: (any Error)? { session.problem }

    /// The values of `problem` from now on, for one loop. It gets the newest value, and ends when the draft is
    /// released.
    public var problems: AsyncStream<(any Error)?> { session.problems }

    /// Returns what was typed since the last call and is not in the stream for good: the stream has rejected the edit,
    /// no node accepts it, or its outcome is unknown. The text of the draft no longer has it, except if the outcome is
    /// unknown. An edit that only deletes is not listed. Edits that were queued before the draft was made, and whose
    /// outcome was still open then, are included.
    public func takeRefused() -> [Refusal] {
        session.takeRefused().map { Refusal(text: $0.text, error: $0.error) }
    }
}
