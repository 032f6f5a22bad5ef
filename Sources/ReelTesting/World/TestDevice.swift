public import ReelClient
public import ReelCore
internal import Synchronization

/// A device of a `TestWorld`: a store in memory that stays, and one process at a time with a real `SyncClient`.
///
///     let bob = try world.device("bob")
///     let todo = try await bob.client.open("todo", models: [TodoTask.self])
///     bob.kill()
///     try bob.start()
public final class TestDevice: Sendable {
    /// The name of the device, for messages and `TestWorld.log`.
    public let name: String
    let network: TestNetwork
    private let user: String?
    private let renewToken: SyncClient.TokenSource?
    private let memory = DeviceMemory()
    private let present: Mutex<SyncClient>

    init(
        _ name: String,
        _ network: TestNetwork,
        user: String?,
        renewToken: SyncClient.TokenSource?
    ) throws(ReelError) {
        (self.name, self.network, self.user, self.renewToken) = (name, network, user, renewToken)
        present = Mutex(try Self.client(name, network, memory, user, renewToken))
    }

    /// The client of the present process. After `kill` it is the ended one, whose calls throw `closed`.
    public var client: SyncClient { present.withLock { $0 } }

    /// True from the creation or `start` until `kill`, and until the app closes the client or signs out.
    public var isRunning: Bool { memory.isOpen }

    /// Ends the process of the device without a farewell. Everything that the client has stored stays: all writes that
    /// have returned, and what it has received. Events of `enqueue` that are not stored yet are lost. Calls that wait
    /// throw `closed`, and so do reads of the ended client. Has no effect on a device that is not running.
    public func kill() {
        guard isRunning else { return }
        memory.end()
        network.kill(name)
        let client = client
        network.loop.execute { client.assumeIsolated { $0.abandon() } }
    }

    /// Starts another process with the store of the device. Its `client` has no open stream yet.
    ///
    /// - Throws: `store_busy` if the device is running.
    public func start() throws(ReelError) {
        guard !isRunning else {
            throw ReelError(.storeBusy, "found the device \(name) running, expected a device after `kill`")
        }
        let client = try Self.client(name, network, memory, user, renewToken)
        present.withLock { $0 = client }
    }

    private static func client(
        _ name: String,
        _ network: TestNetwork,
        _ memory: DeviceMemory,
        _ user: String?,
        _ renewToken: SyncClient.TokenSource?
    ) throws(ReelError) -> SyncClient {
        let (process, seed) = network.start(name)
        do throws(ReelError) {
            return try SyncClient(
                nodes: [TestNode.name],
                store: .storage(memory.open(), user: user),
                transport: DeviceTransport(network, name, process: process),
                renewToken: renewToken,
                seed: seed
            )
        } catch {
            memory.end()
            throw error
        }
    }
}

extension TestDevice: CustomStringConvertible {
    /// The name of the device.
    public var description: String { name }
}
