internal import ReelCore

extension StreamSync {
    /// The node that a request is sent to.
    enum Source: Sendable, Equatable {
        /// The connected node, or another one if there is no connection.
        case connection
        /// Another node.
        case peer
    }

    /// The position at which a subscription begins.
    enum Position: Sendable, Equatable {
        /// After the folded state.
        case afterState
        /// With the next event of the stream.
        case now
    }

    /// A notice for the app, or for the list of problems.
    enum Notice: Sendable, Equatable {
        /// The subscription is live.
        case live
        /// The stream was polled, and its fold has reached the head.
        case polled
        /// The stream is read by its states, and has the present one.
        case stateRead
        /// A snapshot or delta has arrived.
        case loaded
        /// A node did not send a state.
        case noState(ReelError)
        /// No node sends the state without which the stream cannot continue.
        case waits(ReelError)
        /// The subscription was refused.
        case notSubscribed(ReelError)
        /// The connection has no subscription for the stream. `isNew`: true if the app has to be told.
        case noPlace(isNew: Bool)
    }

    /// An action that the client performs.
    enum Action: Sendable, Equatable {
        /// Send `subscribe`.
        case subscribe(Position)
        /// Send `unsubscribe`.
        case unsubscribe
        /// Request a state. A load that was cut may be continued.
        case load(Load.Kind, from: Source)
        case cancelLoad
        /// Continue from the state that has arrived. The result is the input `installed`.
        case install(Need)
        /// Drop the state that has arrived.
        case discardLoaded
        /// Request these seqs.
        case fetch(SeqRanges, from: Source)
        case cancelFetch
        /// Request the events after the folded seq by HTTP.
        case poll
        case cancelPoll
        /// Start a timer, in place of a running one of the same kind. An earlier poll stays scheduled.
        case startTimer(Timer, ms: Int64)
        case cancelTimer(Timer)
        /// Allow the fold to pass the record at which it has stopped.
        case resume
        /// Tell the app that the stream has stopped, and give its subscription to another stream.
        case stop(ReelError)
        /// Drop the connection, and connect to another node.
        case leaveNode(ReelError)
        case notify(Notice)
    }
}
