internal import ReelCore

/// The objects of a stream as everybody has them who has folded it as far as this device: without the own events that
/// still wait in its queue.
public struct ConfirmedObjects: Sendable {
    let client: SyncClient
    let name: StreamName

    /// The object, nil if it is not there or was deleted.
    public func object(_ model: String, _ id: String) async -> SyncObject? {
        await client.confirmed(model, id, of: name)
    }

    /// All objects of a model by id, in byte order.
    public func objects(_ model: String) async -> [SyncObject] {
        await client.confirmed(model, of: name)
    }
}
