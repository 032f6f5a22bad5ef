public import ReelClient
public import ReelCore
internal import Synchronization

/// A node and any number of devices in one process, with which an app tests its use of Reel.
///
///     let world = TestWorld(seed: 7)
///     let ann = try world.device("ann"), bob = try world.device("bob")
///     let todo = try await ann.client.open("todo", models: [TodoTask.self])
///     try await todo.insert(milk)
///     try await world.settle()
///
/// Each device has the real `SyncClient`, with its queue, its store format and its rules. Only the network and the node
/// are replaced, by ones in memory. There are no sockets, files or threads.
///
/// Time is virtual. It stands still, and no message arrives, except in `settle` and `advance`. So a call that waits for
/// the node, such as `outcome()` or `flush`, does not return before: call it after `settle`, or in `settle(during:)`.
///
/// The seed gives the delays of all messages, the sites of the devices, and the pauses of their clients. A test whose
/// calls come one after another repeats exactly. These are not given by the seed: the order in which concurrent tasks
/// of the app call the clients, ids and times that the app makes itself, and the duration of its own code, such as
/// `renewToken`.
public final class TestWorld: Sendable {
    let network: TestNetwork
    private let present = Mutex<[TestDevice]>([])

    /// Creates a world with an empty log and no device.
    public convenience init(seed: UInt64 = 1) { self.init(seed: seed, delaysMs: 1...40) }

    init(seed: UInt64, delaysMs: ClosedRange<Int64>) { network = TestNetwork(seed: seed, delaysMs: delaysMs) }

    /// The devices, in the order of their creation.
    public var devices: [TestDevice] { present.withLock { $0 } }

    /// Creates a device with an empty store, and starts it.
    ///
    /// - Parameters:
    ///   - name: the name of the device, which no other device of the world has.
    ///   - user: the user of the device; nil: the device has no tokens.
    ///   - renewToken: returns the tokens of the user; nil: `TestWorld.token(for:)`. The node accepts every token, for
    ///     an hour. The virtual time waits for a call for at most one second of real time.
    /// - Throws: `bad_request` for a name that another device has.
    public func device(
        _ name: String,
        user: String? = nil,
        renewToken: SyncClient.TokenSource? = nil
    ) throws(ReelError) -> TestDevice {
        guard network.add(name) else {
            throw ReelError(.badRequest, "found a second device \(name.debugDescription), expected another name")
        }
        let made: SyncClient.TokenSource? = user.map { user in { @Sendable in TestWorld.token(for: user) } }
        let device = try TestDevice(name, network, user: user, renewToken: renewToken ?? made)
        present.withLock { $0.append(device) }
        return device
    }

    /// Returns a token of a user, without a signature. Only the node of a `TestWorld` accepts it.
    public static func token(for user: String) -> String {
        var claims = JSONObjectWriter()
        claims.member("sub", user)
        return "e30." + Base64URL.encode(claims.finish()) + "."
    }

    // MARK: Faults

    /// Takes the network from a device. Messages on their way are lost. Its client notices at once, as when a system
    /// reports that the network is gone.
    public func cut(_ device: TestDevice) { network.cut(device.name) }

    /// Gives a device its network again, and ends the refusals that are for it alone. The client connects after a
    /// pause of virtual time.
    public func heal(_ device: TestDevice) { network.heal(device.name) }

    /// Gives all devices their network again, and ends all refusals.
    public func heal() { network.healAll() }

    /// Makes the node answer requests with an error, until `heal` or for a while.
    ///
    /// Clients repeat a request after a pause if its error is temporary, as `log_unavailable`. They repeat others, such
    /// as `forbidden`, with another token or on another connection. So the node ends the connections when the refusal
    /// of such an error ends.
    ///
    /// - Parameters:
    ///   - requests: the requests that are refused.
    ///   - code: the code of the error.
    ///   - device: the device whose requests are refused; nil: all devices.
    ///   - duration: the virtual time after which the refusal ends; nil: `heal` ends it.
    /// - Throws: `bad_request` for a code that no node sends.
    public func refuse(
        _ requests: TestRequests,
        with code: ErrorCode,
        of device: TestDevice? = nil,
        for duration: Duration? = nil
    ) throws(ReelError) {
        guard !code.isOfDevice else {
            throw ReelError(
                .badRequest,
                "found the code \(code.rawValue), which only a device has: expected one that a node sends, such as"
                    + " forbidden or log_unavailable"
            )
        }
        let number = network.refuse(requests, code, of: device?.name)
        guard let duration else { return }
        network.loop.at(network.loop.nowMs + duration.wholeMs) { [weak network] in network?.endRefusal(number) }
    }

    // MARK: Log

    /// Returns all events of a stream that the node has, in their order, with their outcomes.
    public func log(_ stream: String) -> [LoggedEvent] {
        let records = network.node { node -> [(Seq, TestNode.Record)] in
            guard let name = StreamName(stream), let stream = node.streams[name] else { return [] }
            return stream.seqs.map { ($0, node.records[Int($0)]) }
        }
        return records.compactMap { LoggedEvent($1, seq: $0) }
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up, and at most 1,000 years.
    var wholeMs: Int64 {
        let (seconds, attoseconds) = components
        let limited = min(max(seconds, 0), 1_000 * 365 * 86_400)
        return limited * 1_000 + max(0, attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
