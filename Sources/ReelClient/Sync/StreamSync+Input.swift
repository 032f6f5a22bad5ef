internal import ReelCore

extension StreamSync {
    /// The facts that inputs depend on, at the moment of the input.
    struct Facts: Sendable, Equatable {
        /// The time of a monotonic clock.
        var nowMs: Int64 = 0
        /// True if the device has a state of the present epoch, which may be empty.
        var hasState = false
        /// The last seq that is folded.
        var seq: Seq = .none
        /// The last seq of the partition that the device has heard of.
        var head: Seq = .none
        /// The missing seqs below those that the subscription has proven. Later ones are on their way.
        var missing = SeqRanges()
        /// True if a delta can be applied to the folded state.
        var takesDelta = false
        /// True if the node may have a digest to compare the folded state with.
        var asksDigest = false
        /// The number of nodes that the client knows.
        var nodes = 1

        /// True if a delta is shorter than the missing events.
        var isFarBehind: Bool { head - seq >= StreamSync.deltaFromSeqs }
    }

    /// The facts of a connection that `welcome` names.
    struct Link: Sendable, Equatable {
        var epoch: Epoch
        var partitions: Int
        /// The maximum number of seqs in one fetch.
        var fetchSeqs: Int64
    }

    /// The circumstances in which a stream is opened.
    struct Opening: Sendable, Equatable {
        /// The present connection; nil: there is none.
        var link: Link?
        var hasPlace = false
        /// True if the stored queue belongs to a log before that of the connection.
        var isOfFormerEpoch = false
    }

    /// The position of a state that has arrived.
    struct Loaded: Sendable, Equatable {
        var seq: Seq
        var epoch: Epoch
        var partition: Int
        /// True for a delta that is shorter than the events that it replaces.
        var isShort = false
    }

    /// The result of a poll.
    struct PollAnswer: Sendable, Equatable {
        /// The head of the partition that the node has named.
        var head: Seq
        /// True if the poll has settled a part of the queue.
        var isMoving: Bool
        /// True if nothing is queued.
        var isQueueEmpty: Bool
        /// The pause before the next poll while the queue is empty.
        var idleMs: Int64
    }

    /// The result of the comparison of digests.
    enum DigestFinding: Sendable, Equatable {
        /// The folded state is the node's state. All seqs up to the node's one are covered.
        case same
        /// The states differ, or it is not known if they do.
        case other
        /// The node has not folded the seq of this device yet.
        case behind
    }

    /// A request that runs outside of the machine.
    enum Request: Sendable, Hashable, CaseIterable {
        case load
        case fetch
        case poll
    }

    /// A timer that runs outside of the machine.
    enum Timer: Sendable, Hashable, CaseIterable {
        /// The pause before the next attempt.
        case retry
        /// The timeout of the running request.
        case answer
        /// The pause before the next poll.
        case poll
    }

    /// The subject of an error frame of the node.
    enum Subject: Sendable, Equatable {
        /// The subscription. The error answers no request, and ends it.
        case subscription
        /// A `subscribe`.
        case subscribe
        /// A `fetch`.
        case fetch
        /// Another request, such as a publish.
        case other
    }

    /// An input of the machine.
    enum Input: Sendable, Equatable {
        /// The app opens the stream.
        case opened(Opening)
        /// The stream is closed, or its client has ended.
        case closed
        /// A node sent `welcome`.
        case connectionOpened(Link, hasPlace: Bool)
        /// The connection has ended, or could not be made.
        case connectionLost
        /// The stream has got one of the connection's subscriptions, or has lost it to a stream that was opened
        /// earlier.
        case placeChanged(Bool)
        /// The node has accepted another token.
        case tokenChanged
        /// The next connection has another log, and the folded state of the former log was put aside.
        case epochChanged
        /// The next connection contradicts the folded state, which was put aside.
        case stateDropped

        /// The node sent `subscribed`. The head is the one that it names.
        case subscribed(head: Seq)
        /// The node has stopped live delivery.
        case lagged
        /// The connection is slower than the events of the stream, and their effect is shorter than they are.
        case behind
        /// Events or `upto` have proven seqs. `isAnswer`: true if they answer a fetch.
        case proven(isAnswer: Bool)
        /// The fold has advanced.
        case folded
        /// The node sent an error that concerns the stream.
        case refused(ReelError, Subject)
        /// The fold has found a record that this version cannot read.
        case unreadable(ReelError)

        /// A piece of the answer to the running request has arrived. The first piece of a load is its beginning.
        case progressed(Request)
        /// A snapshot or delta has arrived completely.
        case loadFinished(Loaded)
        /// `.install` was performed. `isTaken`: false if the state was not newer than the present one. `before`: the
        /// last folded seq before it.
        case installed(isTaken: Bool, before: Seq)
        /// A load has ended with an error.
        case loadFailed(ReelError)
        /// The digest of the state has arrived, or there is none.
        case digestAnswered(DigestFinding)
        /// The answer to a fetch by HTTP is complete, and its events were applied.
        case fetchAnswered
        /// A fetch by HTTP has ended with an error.
        case fetchFailed(ReelError)
        /// A fetch was not sent, because too many of the connection's fetches have no answer.
        case fetchPostponed
        /// The answer to a poll is complete, and its events were applied.
        case pollAnswered(PollAnswer)
        /// A poll has ended with an error.
        case pollFailed(ReelError)

        /// An event of the queue waits to be sent, and may be sent from this time on.
        case queued(fromMs: Int64)
        /// A node has acknowledged an event, or events are no longer held.
        case queueMoved
        /// The turn has ended. Events that could be handed over were handed over.
        case turnEnded
        /// A timer has fired.
        case timerFired(Timer)
    }
}
