public import ReelCore

/// The bytes of one field of an object while an app edits them. It is for bytes what `TextDraft` is for a text, and
/// follows the same rules.
///
///     let draft = try todo.draft(of: drawing.id, \.strokes)
///     try draft.replace(3..<5, with: [1, 2])
///     for await change in draft.remoteChanges { canvas.apply(change.range, change.bytes) }
public final class BytesDraft: Sendable {
    /// An edit of another author.
    public struct Change: Sendable, Hashable {
        /// The offsets of the bytes that are replaced.
        public let range: Range<Int>
        /// The bytes that replace them.
        public let bytes: [UInt8]
    }

    /// Bytes that were inserted and that the stream does not have.
    public struct Refusal: Sendable, Hashable {
        /// The inserted bytes.
        public let bytes: [UInt8]
        /// The reason.
        public let error: ReelError
    }

    private let session: DraftSession<ByteView>

    init(_ session: DraftSession<ByteView>) { self.session = session }

    deinit { session.close() }

    /// The present bytes: own edits, and the edits of others that `remoteChanges` has handed out.
    public var bytes: [UInt8] { session.withView { $0.bytes } }

    /// Replaces bytes. It returns at once, without waiting for a disk or a network.
    ///
    /// - Parameters:
    ///   - range: the offsets of the bytes. An empty range inserts.
    ///   - bytes: the bytes that replace them.
    /// - Throws: `range` if the range is not in the bytes. Nothing is changed then.
    public func replace(_ range: Range<Int>, with bytes: some Sequence<UInt8>) throws {
        let bytes = Array(bytes)
        try session.edit(range) { $0.replace(range, with: bytes) }
    }

    /// Waits until all edits made so far are durable on this device: from then on they survive the end of the process.
    ///
    /// - Throws: The error that `problem` has then. The edits stay in the bytes.
    public func flush() async throws { try await session.flush() }

    /// The edits of others in order. The draft's bytes have an edit from the moment at which the loop gets it. The
    /// sequence is for one loop at a time, and ends when the draft is released.
    public var remoteChanges: DraftChanges<Change> { DraftChanges(session) }

    /// Returns the next edit of another author that waits, and performs it on the draft's bytes; nil if none waits. It
    /// takes the place of `remoteChanges`.
    public func takeRemoteChange() -> Change? { session.take() }

    /// The reason why own edits are not queued, or why the stream has refused edits that `takeRefused` returns; nil:
    /// there is none. The errors are those of `TextDraft.problem`.
    public var problem: (any Error)? { session.problem }

    /// The values of `problem` from now on, for one loop. It gets the newest value, and ends when the draft is
    /// released.
    public var problems: AsyncStream<(any Error)?> { session.problems }

    /// Returns what was inserted since the last call and is not in the stream for good. See `TextDraft.takeRefused`.
    public func takeRefused() -> [Refusal] {
        session.takeRefused().map { refused in
            Refusal(bytes: refused.text.unicodeScalars.compactMap { UInt8(exactly: $0.value) }, error: refused.error)
        }
    }
}
