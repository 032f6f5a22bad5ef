internal import ReelCore

/// The confirmed objects of a stream: the device's fold, without the own events that still wait in the queue. Every
/// device that has folded the same seq of the same epoch has the same objects.
public struct ConfirmedObjects: Sendable {
    let client: SyncClient
    let name: StreamName

    /// Returns the object; nil if it does not exist or was deleted.
    public func object(_ model: String, _ id: String) async -> SyncObject? {
        await client.confirmed(model, id, of: name)
    }

    /// Returns all objects of a model, sorted by the bytes of their ids.
    public func objects(_ model: String) async -> [SyncObject] {
        await client.confirmed(model, of: name)
    }
}
