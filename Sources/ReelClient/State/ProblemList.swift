internal import ReelCore

/// The present problems of a client.
///
/// A pure state machine: each input is an observation of the client, and begins or ends problems. A place holds one
/// problem. A problem ends only with proof that it is repaired: a lost connection repairs nothing.
struct ProblemList: Sendable {
    /// A part of the client that can have a problem independently of the other parts, in the order in which an app gets
    /// them.
    enum Place: Hashable, Sendable {
        /// The device's file.
        case store
        /// The log that nodes name in `welcome`.
        case log
        /// The right to connect to nodes at all.
        case token
        /// The connection.
        case connection
        /// The subscription of a stream.
        case reading(StreamName)
        /// The snapshot or delta with which a stream begins.
        case state(StreamName)
        /// The publishes of a stream, according to the answers of nodes.
        case writing(StreamName)
        /// The own events of a stream, according to its fold.
        case consuming(StreamName)
    }

    /// An observation of the client.
    enum Input: Sendable, Equatable {
        /// The client looks for a node.
        case connecting
        /// A connection has ended, or could not be made.
        case disconnected(String)
        /// A node of the device's own deployment sent `welcome`.
        case welcomed
        /// A node serves an older log than this device has already seen.
        case formerLog(String)
        /// A node belongs to another deployment.
        case otherDeployment(String)
        /// The device belongs to another deployment from now on.
        case adopted
        /// A node refuses the device, at once or after a while.
        case entryRefused(ReelError)
        /// `renewToken` gave no token.
        case noToken(String)
        /// `renewToken` gave a token.
        case tokenCame
        /// The device's file failed.
        case storeFailed(ReelError)
        /// The subscription of a stream was refused.
        case notSubscribed(StreamName, ReelError)
        /// A subscription is live.
        case live(StreamName)
        /// A stream without a subscription was polled. The error is the reason why it has none.
        case polled(StreamName, ReelError)
        /// No node gave a snapshot or delta.
        case noState(StreamName, ReelError)
        /// A snapshot or delta was read.
        case stateCame(StreamName)
        /// A node did not accept an event.
        case nacked(StreamName, ReelError)
        /// The queue of a stream is held. The cause is a right, a user, or the number of sites.
        case held(StreamName, ReelError)
        /// A node has not answered a publish since this moment.
        case unanswered(StreamName, sinceMs: Int64)
        /// A node has acknowledged an event as durable.
        case acked(StreamName)
        /// The own fold has consumed an event of the queue.
        case consumed(StreamName)
        /// The queue is empty.
        case emptied(StreamName)
        /// The stream was closed.
        case streamClosed(StreamName)
    }

    /// A problem, and the time since which it exists.
    struct Problem: Sendable, Equatable {
        var code: ErrorCode
        var message: String
        var sinceMs: Int64
    }

    private(set) var problems: [Place: Problem] = [:]

    /// True if a node serves an older log than this device has already seen, and no other node has sent `welcome`
    /// since.
    var holdsFormerLog: Bool { problems[.log]?.code == .nodeBehind }

    /// Begins and ends problems. Returns true if the list has changed. All times are of the wall clock, because people
    /// read them.
    mutating func apply(_ input: Input, nowMs: Int64) -> Bool {
        switch input {
        case .connecting:
            guard problems[.connection] == nil else { return false }
            return begin(.connection, ReelError(.offline, "no node has said welcome yet"), nowMs)
        case .disconnected(let reason): return begin(.connection, ReelError(.offline, reason), nowMs)
        case .welcomed: return end(.connection, .token, .log)
        case .formerLog(let message): return begin(.log, ReelError(.nodeBehind, message), nowMs)
        case .otherDeployment(let message): return begin(.log, ReelError(.wrongDeployment, message), nowMs)
        case .adopted: return end(.log)
        case .entryRefused(let error): return begin(.token, error, nowMs)
        case .noToken(let reason): return begin(.token, ReelError(.noToken, reason), nowMs)
        case .tokenCame: return problems[.token]?.code == .noToken && end(.token)
        case .storeFailed(let error): return begin(.store, error, nowMs)
        case .notSubscribed(let stream, let error): return begin(.reading(stream), error, nowMs)
        case .live(let stream): return end(.reading(stream), .state(stream))
        case .polled(let stream, let error):
            let hasState = end(.state(stream))
            return begin(.reading(stream), error, nowMs) || hasState
        case .noState(let stream, let error): return begin(.state(stream), error, nowMs)
        case .stateCame(let stream): return end(.state(stream))
        case .nacked(let stream, let error):
            // A final error is the outcome of one event, and `gap` only follows another nack.
            guard error.retryMs != nil, error.code != .gap else { return false }
            return begin(.writing(stream), error, nowMs)
        case .held(let stream, let error):
            // An ack does not repair a problem of the fold.
            let isOfFold = [.tooManySites, .foreign].contains(error.code)
            return begin(isOfFold ? .consuming(stream) : .writing(stream), error, nowMs)
        case .unanswered(let stream, let sinceMs):
            guard problems[.writing(stream)] == nil else { return false }
            let error = ReelError(.logUnavailable, "a node has not answered what was published")
            return begin(.writing(stream), error, sinceMs)
        case .acked(let stream): return end(.writing(stream))
        case .consumed(let stream): return end(.consuming(stream))
        case .emptied(let stream): return end(.writing(stream), .consuming(stream))
        case .streamClosed(let stream):
            return end(.reading(stream), .state(stream), .writing(stream), .consuming(stream))
        }
    }

    /// Begins a problem. A problem with the same code keeps its age, and only its message changes.
    private mutating func begin(_ place: Place, _ error: ReelError, _ nowMs: Int64) -> Bool {
        let former = problems[place]
        let sinceMs = former.flatMap { $0.code == error.code ? $0.sinceMs : nil } ?? nowMs
        let problem = Problem(code: error.code, message: error.message, sinceMs: sinceMs)
        problems[place] = problem
        return problem != former
    }

    private mutating func end(_ places: Place...) -> Bool {
        guard places.contains(where: { problems[$0] != nil }) else { return false }
        for place in places { problems[place] = nil }
        return true
    }

    // MARK: Reading

    /// True if the client has no node.
    var isOffline: Bool { problems[.connection] != nil }

    /// Returns the problems as an app sees them.
    func seen() -> [SyncProblem] { problems.sorted { $0.key.order < $1.key.order }.map(Self.seen) }

    /// Returns the problems of a stream as an app sees them.
    func seen(of stream: StreamName) -> [SyncProblem] {
        [Place.reading(stream), .state(stream), .writing(stream), .consuming(stream)].compactMap { place in
            problems[place].map { Self.seen(place, $0) }
        }
    }

    /// Returns the problems of the whole client as an app sees them.
    func seenOfClient() -> [SyncProblem] {
        Self.placesOfClient.compactMap { place in problems[place].map { Self.seen(place, $0) } }
    }

    private static let placesOfClient: [Place] = [.store, .log, .token, .connection]

    private static func seen(_ place: Place, _ problem: Problem) -> SyncProblem {
        SyncProblem(
            code: problem.code,
            stream: place.stream?.description,
            message: problem.message,
            sinceMs: problem.sinceMs
        )
    }
}

extension ProblemList.Input {
    /// The stream that the observation concerns; nil: the whole client.
    var stream: StreamName? {
        switch self {
        case .connecting, .disconnected, .welcomed, .formerLog, .otherDeployment, .adopted, .entryRefused, .noToken,
            .tokenCame, .storeFailed:
            nil
        case .notSubscribed(let stream, _), .live(let stream), .polled(let stream, _), .noState(let stream, _),
            .stateCame(let stream), .nacked(let stream, _), .held(let stream, _), .unanswered(let stream, _),
            .acked(let stream), .consumed(let stream), .emptied(let stream), .streamClosed(let stream):
            stream
        }
    }
}

extension ProblemList.Place {
    /// The stream that the place belongs to; nil: the whole client.
    var stream: StreamName? {
        switch self {
        case .store, .log, .token, .connection: nil
        case .reading(let stream), .state(let stream), .writing(let stream), .consuming(let stream): stream
        }
    }

    /// The sort key: the client's places first, then those of each stream, sorted by name.
    fileprivate var order: (String, Int) { (stream?.description ?? "", rank) }

    private var rank: Int {
        switch self {
        case .store: 0
        case .log: 1
        case .token: 2
        case .connection: 3
        case .reading: 4
        case .state: 5
        case .writing: 6
        case .consuming: 7
        }
    }
}
