internal import ReelCore
internal import Synchronization

/// The readable content of a client's streams. Safe on any thread.
///
/// Reading never waits for the client's executor, for a network or for a write to the disk. A reader takes a moment: a
/// snapshot of the storage, and the objects that differ from the storage in it. The client changes the differences of
/// all streams together at the end of a turn, before it commits, and drops those that are stored after the commit. So
/// the differences cover at each moment everything that the storage lacks.
final class ClientContent: Sendable {
    /// The readable content of one stream.
    struct Stream: Sendable {
        /// The opening of the stream, whose handles may read it.
        var opening: StreamOpening?
        /// The observers of the stream.
        var observers: ContentObservers?
        /// The generations of the stored objects, the upper one first.
        var layers: [Int64] = []
        /// The confirmed objects that differ from the stored ones; nil: the object is gone.
        var unwritten: [Overlay.Key: FoldedState?] = [:]
        /// The objects that own waiting events change, as the app sees them; nil: the object is gone.
        var own: [Overlay.Key: FoldedState?] = [:]
        /// The position up to which the stream is folded.
        var position = ReadPosition(epoch: nil, seq: .none, withdrawals: 0)
        /// True if the whole stream is there: an object that is absent does not exist.
        var isComplete = false
    }

    fileprivate struct State {
        var streams: [StreamName: Stream] = [:]
        var end: ReelError?
    }

    private let storage: any DeviceStorage
    private let state = Mutex(State())

    init(_ storage: any DeviceStorage) {
        self.storage = storage
    }

    /// Changes the content of streams, all at one moment for readers.
    func change(_ body: (inout [StreamName: Stream]) -> Void) {
        state.withLock { body(&$0.streams) }
    }

    /// Ends reading: later calls throw `error`.
    func end(_ error: ReelError) {
        state.withLock { state in
            state.end = error
            state.streams = [:]
        }
    }

    /// Adds an observer of a stream. Throws `closed` if the stream is not open.
    func add(_ observer: ContentObserver, to opening: StreamOpening) throws(ReelError) {
        try state.withLock { state throws(ReelError) in try state.stream(opening).observers?.append(observer) }
    }

    /// Returns the present moment of a stream with the changes that an observer has not read; nil if there are none.
    /// Throws `closed` if the stream is not open.
    ///
    /// - Parameters:
    ///   - observer: the observer, which then has read the changes.
    ///   - opening: the opening of the stream.
    ///   - always: true if the moment is returned also if there are no changes.
    ///   - report: called on the reader's thread when an object of the moment is damaged.
    func news(
        for observer: ContentObserver,
        of opening: StreamOpening,
        always: Bool,
        _ report: @escaping StreamSnapshot.DamageReport
    ) throws(ReelError) -> (StreamSnapshot, ContentChanges)? {
        try state.withLock { state throws(ReelError) in
            let stream = try state.stream(opening)
            guard let changes = observer.take() ?? (always ? ContentChanges() : nil) else { return nil }
            do throws(ReelError) {
                let snapshot = try storage.snapshot()
                return (StreamSnapshot(opening.name, stream: stream, storage: snapshot, report: report), changes)
            } catch {
                observer.add(changes)
                throw error
            }
        }
    }

    /// Returns the content of streams at one moment. Throws `closed` for a stream that is not open.
    ///
    /// - Parameters:
    ///   - openings: the openings of the streams.
    ///   - report: called on the reader's thread when an object of the moment is damaged.
    func moment(
        of openings: [StreamOpening],
        _ report: @escaping StreamSnapshot.DamageReport
    ) throws(ReelError) -> [StreamSnapshot] {
        try state.withLock { state throws(ReelError) in
            if let end = state.end { throw end }
            // Inside the lock, so that the differences and the storage are of one moment.
            let snapshot = try storage.snapshot()
            var moment: [StreamSnapshot] = []
            for opening in openings {
                let stream = try state.stream(opening)
                moment.append(StreamSnapshot(opening.name, stream: stream, storage: snapshot, report: report))
            }
            return moment
        }
    }

    /// Returns the content of one stream with changes that readers do not see yet.
    ///
    /// - Parameters:
    ///   - opening: the opening of the stream.
    ///   - report: called when an object of the moment is damaged.
    ///   - change: makes the changes.
    func moment(
        of opening: StreamOpening,
        _ report: @escaping StreamSnapshot.DamageReport,
        changedBy change: (inout Stream) -> Void
    ) throws(ReelError) -> StreamSnapshot {
        var stream = state.withLock { $0.streams[opening.name] } ?? Stream()
        change(&stream)
        return StreamSnapshot(opening.name, stream: stream, storage: try storage.snapshot(), report: report)
    }
}

extension ClientContent.State {
    /// Returns the content of a stream. Throws `closed` if it is not open.
    fileprivate func stream(_ opening: StreamOpening) throws(ReelError) -> ClientContent.Stream {
        if let end { throw end }
        guard let stream = streams[opening.name], stream.opening == opening else {
            throw .streamIsClosed(opening.name.description)
        }
        return stream
    }
}

extension ReelError {
    /// The error of calls to a stream that is not open any more.
    static func streamIsClosed(_ stream: String) -> ReelError {
        ReelError(.closed, "found the stream \(stream), which was closed: open it again")
    }
}
